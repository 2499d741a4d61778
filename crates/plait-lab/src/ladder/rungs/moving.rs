//! Rates that change: courses in the manner of recorded ones, links that fall to a tenth, links
//! that die; all return.

use super::links::*;
use crate::ladder::rung::Course::{Mobile, Satellite, Shared};
use crate::ladder::rung::{Inner, Load, Rung, rung};

const CUBIC: Load = Load::tcp(Inner::Cubic);
const BBR: Load = Load::tcp(Inner::Bbr);

#[rustfmt::skip]
pub(super) const RUNGS: &[Rung] = &[
    // Courses.
    rung("traces/train", "two LTE modems on a train",
        &[LTE_20.course(Mobile(1)), LTE_20.course(Mobile(2))], CUBIC).on_netns(),
    rung("traces/bus", "LTE 30 in a bus beside steady 5G",
        &[LTE_30.course(Mobile(3)), FIVE_G_40], CUBIC),
    rung("traces/dsl-beside-lte", "DSL 16 beside an LTE that wanders",
        &[DSL_16, LTE_30.course(Mobile(4))], CUBIC),
    rung("traces/van", "Starlink beside 5G on a van",
        &[LEO_60.course(Satellite(1)), FIVE_G_40.course(Mobile(5))], CUBIC),
    rung("traces/cabin", "Starlink beside DSL 6 in a cabin",
        &[LEO_40.course(Satellite(2)), DSL_6], CUBIC),
    rung("traces/two-dishes", "two Starlink dishes on a ship",
        &[LEO_40.course(Satellite(3)), LEO_40.course(Satellite(4))], CUBIC),
    rung("traces/hotel", "a busy wifi beside LTE 20",
        &[WIFI_40.course(Shared(1)).jitter(10), LTE_20], CUBIC),
    rung("traces/cable-evening", "cable among busy neighbours beside FTTC 30",
        &[CABLE_60.course(Shared(2)), FTTC_30], CUBIC),
    rung("traces/crew", "a camera crew's four modems in a crowd",
        &[LTE_20.course(Mobile(6)), LTE_20.course(Mobile(7)),
          LTE_10.course(Mobile(8)), LTE_10.course(Mobile(9))], CUBIC),
    rung("traces/bloated-train", "LTE that wanders with 1 s of buffer",
        &[LTE_20.course(Mobile(10)).queue(1000), DSL_16], CUBIC),
    rung("traces/train-bbr", "two LTE modems on a train, BBR inside",
        &[LTE_20.course(Mobile(1)), LTE_20.course(Mobile(2))], BBR),
    // To a tenth, and back.
    rung("falls/lte-30-to-2", "LTE 30 falls to 2 beside a steady 20",
        &[WISP_20.rtt(30), LTE_30.rtt(30).falls(67, 15, 35)], CUBIC).on_netns(),
    rung("falls/fast-to-a-tenth", "FTTC 50 falls to 5",
        &[FTTC_50.falls(100, 15, 30), LTE_20], CUBIC),
    rung("falls/slow-to-a-tenth", "LTE 20 falls to 2",
        &[FTTC_50, LTE_20.falls(100, 15, 30)], CUBIC),
    rung("falls/with-buffer", "LTE 30 with 1 s of buffer falls to 3",
        &[FTTC_30, LTE_30.queue(1000).falls(100, 15, 30)], CUBIC),
    rung("falls/tunnel", "LTE falls to a tenth for 3 s",
        &[DSL_16, LTE_30.falls(100, 18, 21)], CUBIC),
    rung("falls/to-half", "5G 60 falls to 30",
        &[FIVE_G_60.falls(500, 15, 30), DSL_25], CUBIC),
    rung("falls/bbr", "LTE 30 falls to 3, BBR inside",
        &[FTTC_30, LTE_30.falls(100, 15, 30)], BBR),
    rung("falls/one-of-three", "one of three modems falls to a tenth",
        &[LTE_20, LTE_20.falls(100, 15, 30), LTE_20], CUBIC),
    // Death and return.
    rung("dies/lte-unplugged", "LTE is gone for 10 s",
        &[FTTC_30, LTE_30.dies(15, 25)], CUBIC).on_netns(),
    rung("dies/line-cut", "the DSL line is gone for 10 s",
        &[FTTC_50.dies(15, 25), LTE_20], CUBIC),
    rung("dies/short", "5G is gone for 2 s",
        &[FIVE_G_40.dies(15, 17), DSL_25], CUBIC),
    rung("dies/long", "a satellite is gone for 20 s",
        &[LEO_40.dies(15, 35), DSL_16], CUBIC),
    rung("dies/one-of-four", "one of four modems is gone for 10 s",
        &[LTE_10, LTE_10.dies(15, 25), LTE_10, LTE_10], CUBIC),
    rung("dies/with-losses", "LTE is gone for 10 s, the other loses 1 %",
        &[DSL_25.loss(10), LTE_30.dies(15, 25)], CUBIC),
    rung("dies/bbr", "LTE is gone for 10 s, BBR inside",
        &[FTTC_30, LTE_30.dies(15, 25)], BBR),
];
