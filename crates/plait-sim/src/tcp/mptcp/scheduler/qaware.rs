//! QAware (Shreedhar et al., IFIP Networking 2018): the lowest round-trip time with what waits in
//! the sender's own device added, which the smoothed time will show only a round trip later.
//! `docs/algorithms/qaware.md`.

use plait_proto::time::Duration;
use plait_proto::units::Rate;

use super::{ConnectionView, Decision, Scheduler, SubflowView, candidates};

/// Headers of a segment with MPTCP's options, at the IP layer.
const HEADERS_BYTES: u64 = 76;

#[derive(Debug, Default)]
pub(super) struct Qaware;

/// srtt + (q + 1) · s: q packets wait in the device, s is what it needs for one.
fn delay(subflow: &SubflowView, segment_bytes: u64) -> Duration {
    let rate = subflow.local.rate;
    let packet_bytes = segment_bytes + HEADERS_BYTES;
    let service = if rate == Rate::ZERO { Duration::ZERO } else { rate.time_for(packet_bytes) };
    let waiting = u32::try_from(subflow.local.packets + 1).unwrap_or(u32::MAX);
    subflow.srtt.unwrap_or_default().saturating_add(service.saturating_mul(waiting))
}

impl Scheduler for Qaware {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        let bytes = connection.segment_bytes;
        let with_room = candidates(subflows).filter(|(_, subflow)| subflow.has_room(bytes));
        let least = with_room.min_by_key(|(_, subflow)| delay(subflow, bytes));
        least.map_or(Decision::Wait, |(subflow, _)| Decision::Send { subflow, bytes })
    }

    fn sees_local_queues(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::LocalQueue;
    use super::super::testing::{connection, full, subflow};
    use super::*;

    #[test]
    fn a_queue_in_the_own_device_counts_before_the_round_trip_shows_it() {
        let pick = |subflows: &[SubflowView]| Qaware.pick(&connection(9), subflows);
        let send = |subflow| Decision::Send { subflow, bytes: 1000 };
        // 1076 bytes at 8.608 Mbit/s: 1 ms each.
        let rate = Rate::from_bits_per_second(8_608_000);
        let with_queue =
            |view, packets| SubflowView { local: LocalQueue { packets, rate }, ..view };
        let slow = with_queue(subflow(60, 10), 0);
        assert_eq!(pick(&[with_queue(subflow(20, 10), 39), slow]), send(0), "20 + 40 against 61");
        assert_eq!(pick(&[with_queue(subflow(20, 10), 41), slow]), send(1), "20 + 42");
        assert_eq!(pick(&[full(20, 10), slow]), send(1));
        assert_eq!(pick(&[full(20, 10), full(60, 10)]), Decision::Wait);
    }
}
