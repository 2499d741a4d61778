//! Gauge behind a policer: a token bucket that drops, with no queue before it.

use super::*;

fn policed(mbit: u64, bucket_bytes: u64, rtt_ms: u64) -> Spec {
    let policer = Some((Rate::from_mbit(mbit), bucket_bytes));
    Spec { policer, ..clean(1000, rtt_ms, 1) }
}

/// Of the policer's rate, in permille, and of the packets sent what was lost, over ten seconds.
fn after_three_seconds(spec: Spec) -> (u64, u32) {
    let mbit = spec.policer.unwrap().0.bits_per_second() / 1_000_000;
    let stretch = steady(spec);
    (u64::from(stretch.used_permille) * 1000 / mbit, stretch.lost_permille)
}

#[test]
fn a_policers_rate_is_used_and_little_of_it_lost() {
    for (mbit, bucket_bytes, rtt_ms) in [
        (100, 64_000, 10),
        (30, 64_000, 10),
        (30, 32_000, 24),
        (30, 256_000, 60),
        (60, 64_000, 100),
    ] {
        let (used, lost) = after_three_seconds(policed(mbit, bucket_bytes, rtt_ms));
        assert!(used >= 930, "{mbit} Mbit/s, {bucket_bytes}, {rtt_ms} ms: {used} {lost}");
        assert!(lost <= 20, "{mbit} Mbit/s, {bucket_bytes}, {rtt_ms} ms: {used} {lost}");
    }
}

#[test]
fn random_loss_behind_a_policer_is_no_reason_to_send_less() {
    let spec = Spec { loss_ppm: 10_000, ..policed(30, 64_000, 20) };
    let (used, lost) = after_three_seconds(spec);
    assert!(used >= 900 && lost <= 35, "{used} {lost}");
}

/// A radio that others held back looks policed until they rest.
#[test]
fn regression_a_relieved_path_looks_for_its_policer_anew() {
    for is_gone in [false, true] {
        let mut channel = Channel::new(policed(30, 64_000, 20), Demand::Endless);
        channel.run_until(at(START));
        assert!(channel.controller.bandwidth().unwrap() <= Rate::from_mbit(33));
        if is_gone {
            channel.end_policer();
        }
        channel.controller.on_relief(channel.now());
        channel.run_until(at(START + 300));
        let found = channel.controller.bandwidth().unwrap();
        assert_eq!(found >= Rate::from_mbit(100), is_gone, "{found}");
        let lost = channel.measure_until(at(START + 10_000)).lost_permille;
        assert!(lost <= 25, "{lost}");
    }
}
