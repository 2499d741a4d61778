//! Round robin: the subflows with room in turn, a segment each (multipath-tcp.org's `roundrobin`
//! with `num_segments` 1 and `cwnd_limited` 1). `docs/algorithms/round-robin.md`.

use super::{ConnectionView, Decision, Scheduler, SubflowView, candidates};

#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    last: Option<usize>,
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        let bytes = connection.segment_bytes;
        let with_room = candidates(subflows).filter(|(_, subflow)| subflow.has_room(bytes));
        // Those after the last one come first.
        let turn = |at: usize| (self.last.is_some_and(|last| at <= last), at);
        let next = with_room.map(|(at, _)| at).min_by_key(|at| turn(*at));
        self.last = next.or(self.last);
        next.map_or(Decision::Wait, |subflow| Decision::Send { subflow, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connection, full, subflow};
    use super::*;

    #[test]
    fn those_with_room_take_turns() {
        let mut scheduler = RoundRobin::default();
        let mut picks = |subflows: &[SubflowView], count| -> Vec<usize> {
            let pick = || match scheduler.pick(&connection(9), subflows) {
                Decision::Send { subflow, .. } => Some(subflow),
                _ => None,
            };
            core::iter::from_fn(pick).take(count).collect()
        };
        let open = [subflow(20, 10), subflow(90, 10), subflow(5, 10)];
        assert_eq!(picks(&open, 5), [0, 1, 2, 0, 1]);
        assert_eq!(picks(&[open[0], open[1], full(5, 10)], 3), [0, 1, 0]);
        assert!(picks(&[full(5, 10)], 3).is_empty());
    }
}
