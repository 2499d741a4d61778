//! Losses, in bursts or not, and jitter.

use super::links::*;
use crate::ladder::rung::{Inner, Link, Load, Rung, rung};

const CUBIC: Load = Load::tcp(Inner::Cubic);
const BBR: Load = Load::tcp(Inner::Bbr);
const RENO: Load = Load::tcp(Inner::Reno);

#[rustfmt::skip]
pub(super) const RUNGS: &[Rung] = &[
    // Random losses up to 5 %.
    rung("loss/clean-enough", "one packet in a thousand on both",
        &[DSL_25.loss(1), LTE_20.loss(1)], CUBIC),
    rung("loss/noisy-dsl", "a DSL line that loses 0.5 %",
        &[DSL_16.loss(5), LTE_20], CUBIC),
    rung("loss/lte-1", "LTE loses 1 % beside FTTC 50",
        &[FTTC_50, LTE_30.loss(10)], CUBIC),
    rung("loss/both-1", "50+50, both lose 1 %",
        &[FTTC_50.loss(10), FTTC_50.rtt(40).loss(10)], CUBIC),
    rung("loss/both-1-reno", "30+20, both lose 1 %, Reno inside",
        &[FTTC_30.loss(10), LTE_20.loss(10)], RENO),
    rung("loss/both-1-bbr", "30+20, both lose 1 %, BBR inside",
        &[FTTC_30.loss(10), LTE_20.loss(10)], BBR),
    rung("loss/fast-loses-2", "the faster link loses 2 %",
        &[FIVE_G_40.loss(20), DSL_16], CUBIC),
    rung("loss/both-2", "both lose 2 %",
        &[LTE_30.loss(20), LTE_20.loss(20)], CUBIC).on_netns(),
    rung("loss/slow-loses-5", "a weak LTE loses 5 %",
        &[FTTC_30, LTE_10.loss(50)], CUBIC),
    rung("loss/fast-loses-5", "the faster link loses 5 %",
        &[FIVE_G_40.loss(50), DSL_16], CUBIC),
    rung("loss/both-5", "both lose 5 %",
        &[LTE_20.loss(50), LTE_20.loss(50)], CUBIC),
    rung("loss/far-loses-1", "150 ms and 1 %",
        &[DSL_25, MEO_20.loss(10)], CUBIC),
    rung("loss/many-flows-2", "16 flows, both lose 2 %",
        &[FTTC_30.loss(20), LTE_20.loss(20)], CUBIC.flows(16)),
    // The same in bursts.
    rung("bursts/lte-handover", "LTE loses 1 % in runs of 20",
        &[FTTC_30, LTE_30.bursts(10, 20)], CUBIC),
    rung("bursts/short-runs", "both lose 1 % in runs of 3",
        &[DSL_25.bursts(10, 3), LTE_20.bursts(10, 3)], CUBIC).on_netns(),
    rung("bursts/fast-in-runs", "the faster link loses 2 % in runs of 10",
        &[FIVE_G_40.bursts(20, 10), DSL_16], CUBIC),
    rung("bursts/both-2", "both lose 2 % in runs of 8",
        &[LTE_30.bursts(20, 8), LTE_20.bursts(20, 8)], CUBIC),
    rung("bursts/both-5", "both lose 5 % in runs of 5",
        &[LTE_20.bursts(50, 5), LTE_20.bursts(50, 5)], CUBIC),
    rung("bursts/rain", "low satellites in rain: 3 % in runs of 30",
        &[LEO_40.bursts(30, 30), DSL_16], CUBIC),
    rung("bursts/dsl-noise", "a DSL line hit by long runs of 50",
        &[DSL_25.bursts(5, 50), LTE_20], CUBIC),
    rung("bursts/bbr", "2 % in runs of 8, BBR inside",
        &[LTE_30.bursts(20, 8), LTE_20.bursts(20, 8)], BBR),
    // Jitter.
    rung("jitter/lte-20", "LTE from 25 to 45 ms beside DSL 64",
        &[DSL_64, LTE_60.rtt(25).jitter(20)], CUBIC),
    rung("jitter/lte-60", "LTE from 45 to 105 ms",
        &[FTTC_30, LTE_30.jitter(60)], CUBIC),
    rung("jitter/both-lte", "two LTE modems, 40 ms of jitter each",
        &[LTE_20.jitter(40), LTE_20.jitter(40)], CUBIC).on_netns(),
    rung("jitter/wifi", "a near wifi with 30 ms of jitter",
        &[WIFI_40.jitter(30), DSL_25], CUBIC),
    rung("jitter/bad-radio", "120 ms of jitter and 1 % of losses",
        &[FTTC_30, LTE_20.jitter(120).loss(10)], CUBIC),
    rung("jitter/five-g", "5G with 15 ms of jitter beside cable",
        &[CABLE_60, FIVE_G_60.jitter(15)], CUBIC),
    rung("jitter/bbr", "two LTE modems, 40 ms each, BBR inside",
        &[LTE_20.jitter(40), LTE_20.jitter(40)], BBR),
    rung("jitter/all-bad", "jitter, losses in bursts and 1 s of buffer",
        &[LTE_30.jitter(50).bursts(10, 8).queue(1000),
          Link::new("wifi", 20, 10).jitter(20).loss(5)], CUBIC),
];
