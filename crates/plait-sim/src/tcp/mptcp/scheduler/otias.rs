//! OTIAS, out-of-order transmission for in-order arrival (Yang et al., WAINA 2014): the subflow on
//! which the segment would arrive first, behind what already waits in it.
//! `docs/algorithms/otias.md`.

use plait_proto::time::Duration;

use super::{ConnectionView, Decision, Scheduler, SubflowView, candidates};

#[derive(Debug, Default)]
pub(super) struct Otias;

/// T = srtt · ⌊(queued − (cwnd − in flight)) / cwnd⌋ + srtt/2: round trips that what waits needs
/// before the segment leaves, and half of one until it is there. A subflow without a sample comes
/// first: it is about to get one.
fn arrival(subflow: &SubflowView, segment_bytes: u64) -> Duration {
    let segments = |bytes: u64| bytes.div_ceil(segment_bytes);
    let window = (subflow.window_bytes / segment_bytes).max(1);
    let free = window.saturating_sub(segments(subflow.in_flight_bytes));
    let waiting = segments(subflow.unsent_bytes).saturating_sub(free);
    let rounds = u32::try_from(waiting / window).unwrap_or(u32::MAX);
    let srtt = subflow.srtt.unwrap_or_default();
    srtt.saturating_mul(rounds).saturating_add(srtt / 2)
}

impl Scheduler for Otias {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        let bytes = connection.segment_bytes;
        let with_memory = candidates(subflows).filter(|(_, subflow)| subflow.has_memory());
        let first = with_memory.min_by_key(|(_, subflow)| arrival(subflow, bytes));
        first.map_or(Decision::Wait, |(subflow, _)| Decision::Send { subflow, bytes })
    }

    fn fills_buffers(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connection, full, subflow};
    use super::*;

    #[test]
    fn a_full_window_may_still_be_the_earlier_way() {
        let pick = |subflows: &[SubflowView]| Otias.pick(&connection(9), subflows);
        let send = |subflow| Decision::Send { subflow, bytes: 1000 };
        assert_eq!(pick(&[subflow(20, 10), subflow(100, 10)]), send(0));
        assert_eq!(pick(&[full(20, 10), subflow(100, 10)]), send(0), "10 ms against 50 ms");
        // Two windows wait in the quick one: 2·20 + 10 = 50 ms, as long as the slow one takes.
        let queued = |bytes| SubflowView { unsent_bytes: bytes, ..full(20, 10) };
        assert_eq!(pick(&[queued(29_000), subflow(100, 10)]), send(0));
        assert_eq!(pick(&[queued(30_000), subflow(100, 10)]), send(1), "3·20 + 10 = 70 ms");
        let no_memory = SubflowView { memory_bytes: 87_040, ..subflow(20, 10) };
        assert_eq!(pick(&[no_memory, subflow(100, 10)]), send(1));
    }

    #[test]
    fn what_the_window_still_takes_does_not_wait() {
        let half = SubflowView { in_flight_bytes: 4000, unsent_bytes: 6000, ..subflow(20, 10) };
        assert_eq!(arrival(&half, 1000), Duration::from_millis(10));
        let more = SubflowView { unsent_bytes: 16_000, ..half };
        assert_eq!(arrival(&more, 1000), Duration::from_millis(30));
    }
}
