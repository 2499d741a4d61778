//! Gauge over a model of a link: what decides whether it can be a path's controller.

mod channel;
mod disturbed;
mod growth;
mod policed;
mod random;

use super::*;
use channel::{Channel, Demand, Spec, Stretch};

const START: u64 = 3_000;

fn clean(mbit: u64, rtt_ms: u64, queue_ms: u64) -> Spec {
    Spec::new(Rate::from_mbit(mbit), ms(rtt_ms), ms(queue_ms))
}

/// From three seconds on, for ten.
fn steady(spec: Spec) -> Stretch {
    let mut channel = Channel::new(spec, Demand::Endless);
    channel.run_until(at(START));
    channel.measure_until(at(START + 10_000))
}

#[test]
fn a_steady_link_is_filled_with_a_short_queue() {
    for rtt_ms in [5, 20, 40, 60, 300] {
        let stretch = steady(clean(50, rtt_ms, 50));
        assert!(stretch.used_permille >= 950, "RTT {rtt_ms} ms: {stretch:?}");
        assert!(stretch.queue_median <= ms(10), "RTT {rtt_ms} ms: {stretch:?}");
    }
}

#[test]
fn slow_links_are_filled_too() {
    for (mbit, rtt_ms) in [(1, 60), (2, 30), (10, 60)] {
        let stretch = steady(clean(mbit, rtt_ms, 100));
        assert!(stretch.used_permille >= 930, "{mbit} Mbit/s: {stretch:?}");
        assert!(stretch.queue_median <= ms(25), "{mbit} Mbit/s: {stretch:?}");
    }
}

#[test]
fn a_second_of_buffer_is_never_filled() {
    for (mbit, rtt_ms) in [(20, 30), (50, 60), (5, 40)] {
        let mut channel = Channel::new(clean(mbit, rtt_ms, 1000), Demand::Endless);
        let startup = channel.measure_until(at(1_500));
        assert!(startup.queue_max < ms(2 * rtt_ms), "{mbit} Mbit/s: {startup:?}");
        let after = channel.measure_until(at(11_500));
        assert_eq!(startup.dropped + after.dropped, 0);
        assert!(after.queue_mean <= ms(20), "{mbit} Mbit/s: {after:?}");
        assert!(after.used_permille >= 950, "{mbit} Mbit/s: {after:?}");
    }
}

#[test]
fn the_queue_of_startup_is_drained_within_a_few_round_trips() {
    let mut channel = Channel::new(clean(20, 40, 1000), Demand::Endless);
    while channel.controller.in_slow_start() {
        let now = channel.now();
        channel.run_until(now + ms(1));
        assert!(channel.now() < at(1_000), "startup ends");
    }
    let now = channel.now();
    channel.run_until(now + ms(6 * 40));
    assert!(channel.queue() <= ms(5), "{:?}", channel.queue());
}

#[test]
fn random_loss_costs_little_more_than_itself() {
    let mut rates = Vec::new();
    for loss_ppm in [0, 10_000, 20_000, 50_000] {
        let stretch = steady(Spec { loss_ppm, ..clean(50, 40, 50) });
        rates.push(u64::from(stretch.used_permille) * 1_000_000 / (1_000_000 - loss_ppm));
    }
    assert!(rates[1] + 15 >= rates[0], "of what is left: {rates:?}");
    assert!(rates[2] >= 950, "of what is left: {rates:?}");
    assert!(rates[3] >= 900, "of what is left: {rates:?}");
}

#[test]
fn random_loss_keeps_no_startup_from_filling_the_pipe() {
    for loss_ppm in [20_000, 50_000] {
        let mut channel = Channel::new(Spec { loss_ppm, ..clean(50, 40, 50) }, Demand::Endless);
        channel.run_until(at(1_000));
        let stretch = channel.measure_until(at(2_000));
        assert!(stretch.used_permille >= 850, "{loss_ppm}: {stretch:?}");
    }
}

#[test]
fn a_shallow_queue_loses_little() {
    for rtt_ms in [20, 60] {
        let stretch = steady(clean(50, rtt_ms, 5));
        assert!(stretch.used_permille >= 900, "RTT {rtt_ms} ms: {stretch:?}");
        assert!(stretch.lost_permille <= 20, "RTT {rtt_ms} ms: {stretch:?}");
    }
}

/// A quarter more for a round trip of 600 ms would be 150 ms of queue.
#[test]
fn regression_a_probe_over_a_far_path_does_not_overrun_its_queue() {
    let mut channel = Channel::new(clean(20, 600, 50), Demand::Endless);
    channel.run_until(at(20_000));
    let stretch = channel.measure_until(at(60_000));
    assert_eq!(stretch.dropped, 0, "{stretch:?}");
    assert!(stretch.used_permille >= 950, "{stretch:?}");
}

#[test]
fn a_fall_to_a_fifteenth_is_followed_at_once_and_the_return_found_within_three_seconds() {
    for queue_ms in [50, 1000] {
        let mut spec = clean(30, 30, queue_ms);
        spec.queue = ms(queue_ms);
        let changes = [(at(5_000), Rate::from_mbit(2)), (at(15_000), Rate::from_mbit(30))];
        let mut channel = Channel::new(Spec { changes: changes.to_vec(), ..spec }, Demand::Endless);
        channel.run_until(at(5_000));
        channel.run_until(at(5_000 + 300));
        let bandwidth = channel.controller.bandwidth().unwrap();
        assert!(bandwidth <= Rate::from_mbit(3), "after ten round trips: {bandwidth}");
        channel.run_until(at(7_000));
        let low = channel.measure_until(at(15_000));
        assert!(low.used_permille >= 900, "{low:?}");
        assert!(low.queue_mean <= ms(60), "{low:?}");
        channel.run_until(at(18_000));
        let high = channel.measure_until(at(20_000));
        assert!(high.used_permille >= 930, "{high:?}");
    }
}

/// As a scheduler does that sees the path fall behind.
#[test]
fn a_fall_is_known_though_the_path_is_hardly_loaded_any_more() {
    for (mbit, rtt_ms) in [(30, 30), (30, 10), (80, 50)] {
        // A queue of 100 ms at the new rate.
        let mut spec = clean(mbit, rtt_ms, 100);
        spec.queue = ms(100) * 2 / u32::try_from(mbit).unwrap();
        let changes = vec![(at(5_000), Rate::from_mbit(2))];
        let mut channel = Channel::new(Spec { changes, ..spec }, Demand::Endless);
        channel.run_until(at(5_000 + 2 * rtt_ms + 60));
        channel.demand(Demand::Steady(Rate::from_mbit(1)));
        channel.run_until(at(5_000 + rtt_ms / 2 + 250));
        let bandwidth = channel.controller.bandwidth().unwrap();
        assert!(bandwidth <= Rate::from_mbit(4), "{mbit} Mbit/s at {rtt_ms} ms: {bandwidth}");
    }
}

/// As with a path that is given up for dead while its queue still takes seconds.
#[test]
fn a_path_that_falls_silent_as_it_falls_behind_is_known_to_be_slow() {
    for (rtt_ms, silent_after_ms) in [(10, 70), (30, 90)] {
        let changes = vec![(at(5_000), Rate::from_mbit(1))];
        let mut channel = Channel::new(Spec { changes, ..clean(40, rtt_ms, 100) }, Demand::Endless);
        channel.run_until(at(5_000 + silent_after_ms));
        let before = channel.controller.bandwidth().unwrap();
        assert!(before >= Rate::from_mbit(30), "not known yet: {before}");
        channel.controller.on_silence(channel.now());
        let bandwidth = channel.controller.bandwidth().unwrap();
        assert!(bandwidth <= Rate::from_mbit(4), "RTT {rtt_ms} ms: {bandwidth}");
    }
}

/// A link that is cut has delivered all it was sent until then.
#[test]
fn a_path_that_falls_silent_at_its_rate_has_it_still() {
    for (mbit, rtt_ms) in [(40, 10), (20, 80)] {
        let cut = vec![(at(5_000), Rate::from_bits_per_second(1_000))];
        let spec = Spec { changes: cut, ..clean(mbit, rtt_ms, 100) };
        let mut channel = Channel::new(spec, Demand::Endless);
        channel.run_until(at(5_000 + rtt_ms + 100));
        channel.controller.on_silence(channel.now());
        let bandwidth = channel.controller.bandwidth().unwrap();
        assert!(bandwidth.bits_per_second() >= mbit * 900_000, "{mbit} Mbit/s: {bandwidth}");
    }
}

/// Such as between two turns to send.
#[test]
fn a_gap_of_a_tenth_of_a_second_is_no_fall() {
    for (mbit, rtt_ms) in [(30, 30), (50, 10), (20, 80)] {
        let changes = (5..15).flat_map(|second| {
            let (from, full) = (at(1_000 * second), Rate::from_mbit(mbit));
            [(from, Rate::from_bits_per_second(1_000)), (from + ms(100), full)]
        });
        let spec = Spec { changes: changes.collect(), ..clean(mbit, rtt_ms, 120) };
        let mut channel = Channel::new(spec, Demand::Endless);
        for second in 5..15 {
            channel.run_until(at(1_000 * second + 900));
            let bandwidth = channel.controller.bandwidth().unwrap();
            let most = bandwidth.bits_per_second() / 10_000 / mbit;
            assert!(most >= 90, "{mbit} Mbit/s at {rtt_ms} ms, {second} s: {bandwidth}");
        }
    }
}

#[test]
fn a_fall_by_half_is_followed_and_the_return_found() {
    for queue_ms in [20, 50, 500] {
        let changes = [(at(5_000), Rate::from_mbit(15)), (at(10_000), Rate::from_mbit(30))];
        let spec = Spec { changes: changes.to_vec(), ..clean(30, 30, queue_ms) };
        let mut channel = Channel::new(spec, Demand::Endless);
        channel.run_until(at(5_500));
        let low = channel.measure_until(at(10_000));
        assert!(low.used_permille >= 930, "{low:?}");
        assert!(low.queue_mean <= ms(15), "{low:?}");
        channel.run_until(at(13_000));
        let high = channel.measure_until(at(16_000));
        assert!(high.used_permille >= 930, "{high:?}");
    }
}

#[test]
fn small_falls_are_worked_off_as_well() {
    let changes = [(at(5_000), Rate::from_mbit(25))];
    let spec = Spec { changes: changes.to_vec(), ..clean(30, 30, 500) };
    let mut channel = Channel::new(spec, Demand::Endless);
    channel.run_until(at(5_000));
    let fall = channel.measure_until(at(8_000));
    assert!(fall.queue_max <= ms(45), "{fall:?}");
    let low = channel.measure_until(at(12_000));
    assert!(low.queue_mean <= ms(10) && low.used_permille >= 950, "{low:?}");
}

#[test]
fn little_to_send_lowers_no_estimate() {
    let mut channel = Channel::new(clean(50, 40, 50), Demand::Endless);
    channel.run_until(at(4_000));
    for demand in [
        Demand::Steady(Rate::from_mbit(3)),
        Demand::Bursts { bytes: 30_000, every: ms(100) },
        Demand::Bursts { bytes: 200_000, every: ms(200) },
    ] {
        channel.demand(demand);
        let end = channel.now() + ms(15_000);
        channel.run_until(end);
        let bandwidth = channel.controller.bandwidth().unwrap();
        assert!(bandwidth >= Rate::from_mbit(47), "{demand:?}: {bandwidth}");
    }
    channel.demand(Demand::Endless);
    let now = channel.now();
    channel.run_until(now + ms(100));
    let stretch = channel.measure_until(now + ms(2_000));
    assert!(stretch.used_permille >= 940, "at the known rate at once: {stretch:?}");
}

/// A sample with little in flight cannot show a full pipe, whoever marks it.
#[test]
fn an_owner_that_marks_nothing_lowers_no_estimate_either() {
    let mut channel = Channel::new(clean(50, 40, 50), Demand::Endless);
    channel.marks_app_limited = false;
    channel.run_until(at(4_000));
    for demand in [
        Demand::Steady(Rate::from_mbit(3)),
        Demand::Steady(Rate::from_mbit(25)),
        Demand::Bursts { bytes: 30_000, every: ms(100) },
    ] {
        channel.demand(demand);
        let end = channel.now() + ms(15_000);
        channel.run_until(end);
        let bandwidth = channel.controller.bandwidth().unwrap();
        assert!(bandwidth >= Rate::from_mbit(47), "{demand:?}: {bandwidth}");
    }
}

#[test]
fn idle_time_forgets_nothing() {
    let mut channel = Channel::new(clean(50, 40, 50), Demand::Endless);
    channel.run_until(at(4_000));
    channel.demand(Demand::Bursts { bytes: 1, every: ms(60_000) });
    channel.run_until(at(34_000));
    channel.demand(Demand::Endless);
    channel.run_until(at(34_100));
    let stretch = channel.measure_until(at(34_600));
    assert!(stretch.used_permille >= 940, "{stretch:?}");
    assert!(stretch.queue_max <= ms(20), "{stretch:?}");
}

#[test]
fn a_longer_way_is_found_and_taken_for_no_queue() {
    let mut channel = Channel::new(clean(30, 20, 100), Demand::Endless);
    channel.run_until(at(4_000));
    channel.set_rtt(ms(70));
    channel.run_until(at(10_000));
    let stretch = channel.measure_until(at(16_000));
    assert!(stretch.used_permille >= 940, "{stretch:?}");
    assert!(stretch.queue_median <= ms(10), "{stretch:?}");
}

#[test]
fn jitter_leaves_most_of_the_rate() {
    for jitter_ms in [5, 15] {
        let stretch = steady(Spec { jitter: ms(jitter_ms), ..clean(50, 30, 50) });
        assert!(stretch.used_permille >= 900, "{jitter_ms} ms: {stretch:?}");
    }
}

/// A standing queue of others: the estimate of the least round-trip time grows stale, and the probe
/// for it must cost little.
#[test]
fn asking_for_the_round_trip_time_costs_little() {
    let mut channel = Channel::new(clean(50, 40, 100), Demand::Endless);
    channel.run_until(at(4_000));
    channel.set_rtt(ms(46));
    let stretch = channel.measure_until(at(16_000));
    assert!(stretch.used_permille >= 950, "{stretch:?}");
}

#[test]
fn after_a_timeout_the_window_is_small_and_soon_as_before() {
    let mut channel = Channel::new(clean(50, 40, 50), Demand::Endless);
    channel.run_until(at(4_000));
    let before = channel.controller.window();
    let rto = Rto { now: at(4_000), flight_bytes: before, ..rto(0, Episode::New) };
    channel.controller.on_rto(&rto);
    assert_eq!(channel.controller.window(), S);
    channel.controller.on_spurious(&Spurious { now: at(4_000), window_bytes: 0 });
    assert_eq!(channel.controller.window(), before, "taken back");
    channel.controller.on_rto(&rto);
    channel.run_until(at(5_000));
    let after = channel.controller.window();
    assert!(after >= before * 8 / 10, "{after} of {before}");
}
