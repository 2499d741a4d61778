//! minRTT. With congestion windows, as Linux has it: the lowest smoothed round-trip time among the
//! paths with room. Without, the path on which the next packet would come back first.
//!
//! Linux's minRTT leaves the quickest path when its congestion window is full. The open loop has no
//! window, so the queue that a path's bytes in flight imply takes its place: when it has made the
//! quickest path as slow as the next, traffic spills over. `docs/algorithms/min-rtt.md`.

use super::delivery::{ACK_INTERVAL_MIN, FREE_BYTES_MIN};
use super::{Decision, PacketInfo, PathId, PathView, Scheduler, View};
use crate::time::Duration;
use crate::units::Rate;

/// What a queue delay costs: its time, and a quarter more because a fuller queue is nearer to loss.
fn queue_cost(delay: Duration) -> Duration {
    delay.saturating_add(delay / 4)
}

/// Sends each packet over the path with the lowest expected cost.
#[derive(Debug, Default)]
pub struct MinRtt {
    /// Turns taken while no path was measured.
    unmeasured_turns: usize,
}

/// The cost of sending `bytes` more over `path`; `None` before its first round trip.
fn cost(path: &PathView, bytes: u64) -> Option<Duration> {
    let base = path.min_rtt.or(path.srtt)?;
    let queue = queue_delay(path, base, path.in_flight_bytes + bytes);
    Some(base.saturating_add(queue_cost(queue)))
}

/// Little's law: of the bytes in flight, those beyond what the path itself holds stand in a queue
/// and leave it at the delivery rate. A rate that is too low, because no more was ever sent, only
/// makes the queue look longer; the path is still taken when the others' queues are longer yet, and
/// then its rate grows.
fn queue_delay(path: &PathView, base: Duration, in_flight_bytes: u64) -> Duration {
    let unqueued = base + ACK_INTERVAL_MIN.max(base / 8);
    let free = path.delivery_rate.bytes_in(unqueued).max(FREE_BYTES_MIN);
    if in_flight_bytes <= free {
        Duration::ZERO
    } else if path.delivery_rate == Rate::ZERO {
        // With so much in flight the round-trip time is recent; on an idle path it would tell of a
        // queue long gone, and keep the path idle for ever.
        path.srtt.unwrap_or(base).saturating_sub(base)
    } else {
        path.delivery_rate.time_for(in_flight_bytes - free)
    }
}

/// Linux's rule. A path without a sample comes last: it is about to get one.
fn lowest_srtt_with_room(view: &View<'_>, bytes: u64) -> Decision {
    let with_room = view.paths.iter().filter(|path| path.has_room(view.now, bytes));
    let lowest = with_room.min_by_key(|path| path.srtt.unwrap_or(Duration::MAX));
    lowest.map_or(Decision::Blocked, |path| Decision::Send(path.id))
}

impl Scheduler for MinRtt {
    fn respects_windows(&self) -> bool {
        true
    }

    fn pick(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        if view.paths.iter().any(|path| path.window_bytes.is_some()) {
            return lowest_srtt_with_room(view, packet.bytes);
        }
        if view.paths.is_empty() {
            return Decision::Blocked;
        }
        let costs = view.paths.iter().filter_map(|path| Some((path.id, cost(path, packet.bytes)?)));
        // The first of the lowest: earlier in the view means cheaper.
        if let Some((path, _)) = costs.min_by_key(|&(_, cost)| cost) {
            return Decision::Send(path);
        }
        let path = view.paths[self.unmeasured_turns % view.paths.len()].id;
        self.unmeasured_turns = self.unmeasured_turns.wrapping_add(1);
        Decision::Send(path)
    }

    /// The view's bytes in flight already hold the packet.
    fn on_run(&mut self, _view: &View<'_>, _path: PathId, _bytes: u64) {}
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PACKET, decide, path, pick, picks, plain_paths, view};
    use super::*;

    /// 50 Mbit/s at 20 ms beside 10 Mbit/s at 60 ms, with these bytes in flight on the first.
    fn pair(in_flight: u64) -> [PathView; 2] {
        [
            path(0).rtt_ms(20).rate_mbit(50).in_flight(in_flight).build(),
            path(1).rtt_ms(60).rate_mbit(10).build(),
        ]
    }

    #[test]
    fn the_quickest_path_is_taken_while_it_has_no_queue() {
        let slow_first = [path(0).rtt_ms(60).build(), path(1).rtt_ms(20).build()];
        assert_eq!(pick(&mut MinRtt::default(), &slow_first), 1);
        assert_eq!(pick(&mut MinRtt::default(), &pair(125_000)), 0);
    }

    #[test]
    fn traffic_spills_over_when_the_queue_has_made_the_path_as_slow() {
        // Unqueued: 25 ms, 156250 bytes. The difference of 40 ms is a queue of 32 ms: 200000 bytes.
        assert_eq!(pick(&mut MinRtt::default(), &pair(356_250 - 1500 - 100)), 0);
        assert_eq!(pick(&mut MinRtt::default(), &pair(356_250 - 1500 + 100)), 1);
    }

    #[test]
    fn a_rate_measured_while_idle_does_not_exclude_a_path() {
        let mut paths = pair(400_000);
        paths[1].delivery_rate = Rate::from_bits_per_second(12_000);
        paths[1].in_flight_bytes = 4500;
        assert_eq!(pick(&mut MinRtt::default(), &paths), 1);
    }

    #[test]
    fn an_old_round_trip_time_does_not_exclude_an_idle_path() {
        let mut paths = pair(400_000);
        paths[1] = path(1).rtt_ms(60).srtt_ms(160).build();
        assert_eq!(pick(&mut MinRtt::default(), &paths), 1);
        paths[1] = path(1).rtt_ms(60).srtt_ms(160).in_flight(100_000).build();
        assert_eq!(pick(&mut MinRtt::default(), &paths), 0);
    }

    #[test]
    fn equal_paths_fill_the_cheaper_first() {
        let paths = [path(0).rtt_ms(20).build(), path(1).rtt_ms(20).build()];
        assert_eq!(picks(&mut MinRtt::default(), &paths, 3), [0, 0, 0]);
    }

    #[test]
    fn unmeasured_paths_are_left_alone_while_there_is_a_measured_one() {
        let paths = [path(0).build(), path(1).rtt_ms(500).build(), path(2).build()];
        assert_eq!(picks(&mut MinRtt::default(), &paths, 3), [1, 1, 1]);
    }

    #[test]
    fn unmeasured_paths_take_turns_when_there_is_no_other() {
        assert_eq!(picks(&mut MinRtt::default(), &plain_paths(2), 4), [0, 1, 0, 1]);
        assert_eq!(MinRtt::default().pick(&view(&[]), &PACKET), Decision::Blocked);
    }

    #[test]
    fn with_windows_the_lowest_smoothed_time_with_room_is_taken() {
        let quick = || path(0).rtt_ms(20).srtt_ms(30).closed(50, 125_000);
        let slow = path(1).rtt_ms(25).srtt_ms(60).closed(10, 75_000).build();
        let unmeasured = path(2).closed(10, 15_000).build();
        for (first, expected) in [
            (quick().in_flight(123_500).build(), "0"),
            (quick().in_flight(123_501).build(), "1"),
            (quick().ready_in_us(1).build(), "1"),
        ] {
            let paths = [first, slow, unmeasured];
            assert_eq!(decide(&mut MinRtt::default(), &paths, PACKET), expected);
        }
        let full = path(1).rtt_ms(60).closed(10, 75_000).full().build();
        let paths = [quick().full().build(), full, unmeasured];
        assert_eq!(decide(&mut MinRtt::default(), &paths, PACKET), "2");
        assert_eq!(decide(&mut MinRtt::default(), &paths[..2], PACKET), "blocked");
    }
}
