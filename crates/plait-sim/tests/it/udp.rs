use std::time::Duration;

use plait_proto::config::{BondConfig, LossDetection, Order, RekeyLimits};
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::units::Rate;
use plait_sim::link::LinkConfig;

use crate::tunnel::Tunnel;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// 002's gateways with T_lto 50 ms, T_report 50 ms, k 0.5 and T_dwd 250 ms.
fn paper_002() -> BondConfig {
    BondConfig {
        scheduler: SchedulerConfig::from(Algorithm::AdaptiveWrr),
        order: Order::Bond,
        resequencer: ResequencerConfig::PAPER_002,
        loss_detection: LossDetection::Timer,
        report_interval: ms(50),
        inner_mtu: 1440,
        rekey: RekeyLimits::default(),
    }
}

/// Offers `mbit` of UDP payload for `seconds`; gives loss after the first two seconds, in parts per
/// million, and what was delivered.
fn offer(tunnel: &mut Tunnel, mbit: u64, seconds: u64) -> u64 {
    const PAYLOAD_BYTES: u64 = 1388;
    let gap = Rate::from_mbit(mbit).time_for(PAYLOAD_BYTES);
    let start = tunnel.now;
    let (mut at, mut number, mut counted_from) = (start, 0, 0);
    while at < start + ms(seconds * 1000) {
        tunnel.run_until(at);
        tunnel.send_down(number, PAYLOAD_BYTES as usize);
        number += 1;
        at += gap;
        if at <= start + ms(2000) {
            counted_from = number;
        }
    }
    tunnel.run_until(at + ms(1000));
    let counted = tunnel.delivered.iter().filter(|n| **n >= counted_from).count() as u64;
    let offered = u64::from(number - counted_from);
    (offered - counted) * 1_000_000 / offered
}

#[test]
fn adaptive_wrr_carries_what_one_link_cannot() {
    let dsl = LinkConfig::with_rtt(Rate::from_mbit(64), ms(13), ms(13));
    let lte = LinkConfig::with_rtt(Rate::from_mbit(60), ms(25), ms(45));
    let mut tunnel = Tunnel::new(&paper_002(), &[dsl, lte]);
    let loss_ppm = offer(&mut tunnel, 100, 30);
    let status = tunnel.sides[0].status(tunnel.now);
    println!("loss {loss_ppm} ppm; {:?}", status.peers[0].resequencer);
    for path in &tunnel.sides[1].status(tunnel.now).peers[0].paths {
        println!("{path:?}");
    }
    for link in &tunnel.links {
        println!("{:?}", link[0].counters());
    }
    assert!(tunnel.delivered.is_sorted(), "whole-bond order");
    assert!(loss_ppm < 10_000, "{loss_ppm} ppm");
}
