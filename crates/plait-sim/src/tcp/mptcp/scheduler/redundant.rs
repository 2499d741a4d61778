//! Redundant (multipath-tcp.org from v0.90 on): every segment over every subflow, each at its own
//! place in the data. `docs/algorithms/redundant.md`.

use super::{ConnectionView, Decision, Scheduler, SubflowView, candidates};

#[derive(Debug, Default)]
pub(super) struct Redundant;

impl Scheduler for Redundant {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        let bytes = connection.segment_bytes;
        let mut with_room = candidates(subflows).filter(|(_, subflow)| subflow.has_room(bytes));
        if let Some((subflow, _)) = with_room.clone().find(|(_, view)| view.behind_bytes > 0) {
            return Decision::Copy { subflow };
        }
        match with_room.next().filter(|_| connection.sendable_bytes() > 0) {
            Some((subflow, _)) => Decision::Send { subflow, bytes },
            None => Decision::Wait,
        }
    }

    fn sends_copies(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connection, full, subflow};
    use super::*;

    #[test]
    fn who_is_behind_catches_up_before_anything_new_leaves() {
        let behind = |view| SubflowView { behind_bytes: 3000, ..view };
        for (subflows, unsent, expected) in [
            ([subflow(20, 10), subflow(90, 10)], 9, Decision::Send { subflow: 0, bytes: 1000 }),
            ([subflow(20, 10), behind(subflow(90, 10))], 9, Decision::Copy { subflow: 1 }),
            (
                [subflow(20, 10), behind(full(90, 10))],
                9,
                Decision::Send { subflow: 0, bytes: 1000 },
            ),
            ([full(20, 10), behind(subflow(90, 10))], 0, Decision::Copy { subflow: 1 }),
            ([subflow(20, 10), subflow(90, 10)], 0, Decision::Wait),
            ([full(20, 10), full(90, 10)], 9, Decision::Wait),
        ] {
            assert_eq!(Redundant.pick(&connection(unsent), &subflows), expected);
        }
    }
}
