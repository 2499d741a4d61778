//! Paths and machines that behave badly: late processes, drifting delays, short queues on long
//! ways, losses in runs, estimates that are far too low.

use super::channel::{Stalls, WayBack};
use super::*;

fn stalls(lasting_ms: u64, phase_ms: u64) -> Option<Stalls> {
    Some(Stalls { every: ms(300), lasting: ms(lasting_ms), phase: ms(phase_ms) })
}

/// A sender that sleeps for 50 of 300 ms and makes up for 20 has nine tenths to give.
#[test]
fn late_processes_teach_no_low_rate() {
    for (mbit, rtt_ms) in [(20, 30), (30, 30), (50, 60)] {
        for lasting_ms in [20, 50, 100] {
            let kinds = [
                (stalls(lasting_ms, 0), None),
                (None, stalls(lasting_ms, 0)),
                (stalls(lasting_ms, 0), stalls(lasting_ms, 100)),
            ];
            for (sender_stalls, receiver_stalls) in kinds {
                if lasting_ms == 100 && sender_stalls.is_some() && receiver_stalls.is_some() {
                    continue; // See the limits in the algorithm's page.
                }
                let spec = Spec { sender_stalls, receiver_stalls, ..clean(mbit, rtt_ms, 50) };
                let mut channel = Channel::new(spec, Demand::Endless);
                channel.run_until(at(START));
                let stretch = channel.measure_until(at(START + 15_000));
                let missed = lasting_ms.saturating_sub(20) * u64::from(sender_stalls.is_some());
                let late = lasting_ms.saturating_sub(rtt_ms) * u64::from(receiver_stalls.is_some());
                let possible = 1000 * (300 - missed - late) / 300;
                let senders = (sender_stalls.is_some(), receiver_stalls.is_some());
                assert!(
                    u64::from(stretch.used_permille) >= possible * 9 / 10,
                    "{mbit} Mbit/s, {lasting_ms} ms of {senders:?}: {stretch:?}"
                );
            }
        }
    }
}

#[test]
fn an_estimate_far_too_low_is_left_quickly() {
    for mbit in [5, 20] {
        let low = Rate::from_bits_per_second(200_000);
        let changes = vec![(at(0), low), (at(8_000), Rate::from_mbit(mbit))];
        let spec = Spec { changes, ..clean(mbit, 30, 100) };
        let mut channel = Channel::new(spec, Demand::Endless);
        channel.run_until(at(9_600));
        let stretch = channel.measure_until(at(11_600));
        assert!(stretch.used_permille >= 900, "{mbit} Mbit/s: {stretch:?}");
    }
}

/// After processes that hardly ever ran, whatever was believed then.
#[test]
fn the_rate_is_back_soon_after_the_processes_are() {
    for (mbit, rtt_ms) in [(20, 30), (50, 20)] {
        let spec = Spec {
            sender_stalls: stalls(220, 0),
            receiver_stalls: stalls(220, 130),
            ..clean(mbit, rtt_ms, 50)
        };
        let mut channel = Channel::new(spec, Demand::Endless);
        channel.run_until(at(15_000));
        channel.end_stalls();
        channel.run_until(at(16_600));
        let stretch = channel.measure_until(at(18_600));
        assert!(stretch.used_permille >= 900, "{mbit} Mbit/s, {rtt_ms} ms: {stretch:?}");
    }
}

#[test]
fn the_return_from_a_fall_is_found_quickly() {
    for low_ms in [1_000, 4_000, 10_000] {
        let changes =
            vec![(at(5_000), Rate::from_mbit(2)), (at(5_000 + low_ms), Rate::from_mbit(30))];
        let spec = Spec { changes, ..clean(30, 30, 50) };
        let mut channel = Channel::new(spec, Demand::Endless);
        channel.run_until(at(5_000 + low_ms + 1_600));
        let stretch = channel.measure_until(at(5_000 + low_ms + 3_600));
        assert!(stretch.used_permille >= 900, "low for {low_ms} ms: {stretch:?}");
    }
}

/// Probes that had nothing to send found nothing, and the next one is a second away or more.
#[test]
fn room_is_found_soon_after_there_is_something_to_send() {
    for begin_ms in [8_000, 8_300, 8_600, 8_900, 9_200] {
        let changes = vec![(at(5_000), Rate::from_mbit(60))];
        let spec = Spec { changes, ..clean(30, 30, 50) };
        let mut channel = Channel::new(spec, Demand::Endless);
        channel.marks_app_limited = true;
        channel.run_until(at(4_000));
        channel.demand(Demand::Steady(Rate::from_mbit(25)));
        channel.run_until(at(begin_ms));
        channel.demand(Demand::Endless);
        channel.run_until(at(begin_ms + 600));
        let stretch = channel.measure_until(at(begin_ms + 1_000));
        assert!(stretch.used_permille >= 850, "from {begin_ms} ms: {stretch:?}");
    }
}

/// Hardly more than the path carries never fills the pacer of a startup, but the path's queue.
#[test]
fn an_overrun_ends_a_startup_that_lacks_something_to_send() {
    let mut channel = Channel::new(clean(30, 100, 50), Demand::InFlight(620_000));
    channel.marks_app_limited = true;
    channel.run_until(at(5_000));
    let stretch = channel.measure_until(at(15_000));
    assert!(stretch.lost_permille < 20, "{stretch:?}");
    assert!(stretch.used_permille >= 930, "{stretch:?}");
}

/// A bond puts no more on a path than the others leave, which may be just a queue's worth too much.
#[test]
fn a_standing_queue_ends_a_startup_that_lacks_something_to_send() {
    let mut channel = Channel::new(clean(60, 15, 200), Demand::InFlight(220_000));
    channel.run_until(at(3_000));
    assert!(!channel.controller.in_slow_start());
}

/// What a path holds up by itself is no queue of a call or two.
#[test]
fn jitter_does_not_end_a_startup_that_lacks_something_to_send() {
    let jitter = Duration::from_millis(20);
    let spec = Spec { jitter, ..clean(60, 15, 200) };
    let mut channel = Channel::new(spec, Demand::Steady(Rate::from_mbit(2)));
    channel.run_until(at(10_000));
    assert!(channel.controller.in_slow_start());
}

/// The other way's traffic holds up acknowledgements and lets them go together: neither is the
/// length of this path's queue nor its rate.
#[test]
fn queues_on_the_way_back_are_none_of_its_own() {
    for every_ms in [90, 250, 1_000] {
        let way_back = Some(WayBack {
            every: Duration::from_millis(every_ms),
            shortest: Duration::ZERO,
            longest: Duration::from_millis(40),
            from: at(2_000),
        });
        let mut channel = Channel::new(Spec { way_back, ..clean(30, 30, 200) }, Demand::Endless);
        channel.run_until(at(5_000));
        let stretch = channel.measure_until(at(25_000));
        assert!(stretch.used_permille >= 950, "every {every_ms} ms: {stretch:?}");
        assert!(stretch.queue_mean < Duration::from_millis(8), "every {every_ms} ms: {stretch:?}");
    }
}

/// A modem's buffer that somebody's upload fills: ten round trips.
#[test]
fn a_long_queue_on_the_way_back_leaves_the_path_full() {
    let long = Duration::from_millis(300);
    let way_back =
        WayBack { every: Duration::from_secs(1), shortest: long, longest: long, from: at(2_000) };
    let spec = Spec { way_back: Some(way_back), ..clean(30, 30, 200) };
    let mut channel = Channel::new(spec, Demand::Endless);
    channel.run_until(at(5_000));
    let stretch = channel.measure_until(at(25_000));
    assert!(stretch.used_permille >= 950, "{stretch:?}");
}

/// The scheduler puts little on the path, and what it puts there keeps it busy.
#[test]
fn a_fall_is_seen_with_little_in_flight() {
    for (in_flight, marks_app_limited) in [(24_000, false), (24_000, true), (16_000, true)] {
        let changes = vec![(at(5_000), Rate::from_mbit(2))];
        let mut channel = Channel::new(Spec { changes, ..clean(30, 30, 500) }, Demand::Endless);
        channel.marks_app_limited = marks_app_limited;
        channel.run_until(at(4_000));
        channel.demand(Demand::InFlight(in_flight));
        channel.run_until(at(5_000));
        let before = channel.controller.bandwidth().unwrap();
        assert!(before >= Rate::from_mbit(28), "{in_flight}: {before}");
        channel.run_until(at(5_800));
        let after = channel.controller.bandwidth().unwrap();
        assert!(after <= Rate::from_mbit(3), "{in_flight}: {after}");
    }
}

#[test]
fn a_longer_round_trip_with_little_in_flight_is_no_fall() {
    let mut channel = Channel::new(clean(30, 30, 500), Demand::Endless);
    channel.run_until(at(4_000));
    channel.demand(Demand::InFlight(24_000));
    channel.set_rtt(ms(42));
    channel.run_until(at(15_000));
    let bandwidth = channel.controller.bandwidth().unwrap();
    assert!(bandwidth >= Rate::from_mbit(28), "{bandwidth}");
}

#[test]
fn a_drifting_round_trip_is_no_queue() {
    for period_ms in [3_000_u64, 8_000, 20_000] {
        let mut channel =
            Channel::new(Spec { jitter: ms(5), ..clean(60, 25, 50) }, Demand::Endless);
        let drift = |channel: &mut Channel, end_ms: u64| {
            while channel.now() < at(end_ms) {
                // A triangle from 25 to 45 ms and back.
                let now = channel.now().since(Instant::ZERO).as_millis() as u64 % period_ms;
                let up = now.min(period_ms - now) * 2;
                channel.set_rtt(Duration::from_micros(25_000 + 20_000 * up / period_ms));
                let next = channel.now() + ms(10);
                channel.run_until(next);
            }
        };
        drift(&mut channel, START);
        channel.begin_measuring();
        drift(&mut channel, 23_000);
        let stretch = channel.measured();
        assert!(stretch.used_permille >= 950, "{period_ms} ms: {stretch:?}");
    }
}

#[test]
fn a_long_path_with_a_short_queue_loses_little() {
    for (mbit, rtt_ms) in [(10, 300), (25, 100), (25, 200)] {
        let mut channel = Channel::new(clean(mbit, rtt_ms, 50), Demand::Endless);
        channel.run_until(at(8_000));
        let stretch = channel.measure_until(at(28_000));
        assert!(stretch.lost_permille < 10, "{mbit} Mbit/s, {rtt_ms} ms: {stretch:?}");
        assert!(stretch.used_permille >= 930, "{mbit} Mbit/s, {rtt_ms} ms: {stretch:?}");
    }
}

/// A flow that stands still for a round trip and then sends all at once lacks something to send in
/// each round, and a startup that never ended sent each burst at 2.77 times the rate.
#[test]
fn regression_bursts_that_overrun_a_far_path_end_its_startup() {
    let bursts = Demand::Bursts { bytes: 1_300_000, every: Duration::from_millis(1_200) };
    let mut channel = Channel::new(clean(20, 600, 50), bursts);
    channel.run_until(at(30_000));
    assert!(!channel.controller.in_slow_start());
    let stretch = channel.measure_until(at(60_000));
    assert!(stretch.lost_permille < 20, "{stretch:?}");
}

/// Each probe sent its part of a burst at 1.25 times the rate, into 50 ms of queue; what was lost
/// held up a round trip's worth of packets.
#[test]
fn regression_a_far_path_is_not_asked_for_more_than_is_wanted() {
    let mut channel = Channel::new(clean(20, 600, 50), Demand::Endless);
    channel.run_until(at(20_000));
    channel.demand(Demand::Bursts { bytes: 1_000_000, every: Duration::from_millis(1_000) });
    channel.run_until(at(24_000));
    let stretch = channel.measure_until(at(60_000));
    assert_eq!(stretch.dropped, 0, "{stretch:?}");
}

#[test]
fn a_path_that_loses_in_runs_goes_on_being_used() {
    for rtt_ms in [20, 40, 100] {
        let spec = Spec { loss_ppm: 30_000, loss_run: 30, ..clean(50, rtt_ms, 50) };
        let mut channel = Channel::new(spec, Demand::Endless);
        channel.run_until(at(START));
        for second in 1..=20 {
            let stretch = channel.measure_until(at(START + 1_000 * second));
            assert!(stretch.used_permille >= 750, "RTT {rtt_ms} ms, {second} s: {stretch:?}");
        }
    }
}
