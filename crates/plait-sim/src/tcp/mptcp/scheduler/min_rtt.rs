//! minRTT, the default of multipath-tcp.org: the lowest smoothed round-trip time among the subflows
//! with room. `docs/algorithms/min-rtt.md`.

use plait_proto::scheduler;

use super::{ConnectionView, Decision, Scheduler, SubflowView, of_bond};

#[derive(Debug, Default)]
pub(super) struct MinRtt(scheduler::MinRtt);

impl Scheduler for MinRtt {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        of_bond::ask(&mut self.0, connection, subflows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connection, full, subflow};
    use super::*;

    #[test]
    fn the_quickest_with_room_is_taken_and_a_full_one_is_not_waited_for() {
        let pick = |subflows: &[SubflowView]| MinRtt::default().pick(&connection(9), subflows);
        let send = |subflow| Decision::Send { subflow, bytes: 1000 };
        assert_eq!(pick(&[subflow(60, 10), subflow(20, 10)]), send(1));
        assert_eq!(pick(&[subflow(60, 10), full(20, 10)]), send(0));
        assert_eq!(pick(&[full(60, 10), full(20, 10)]), Decision::Wait);
        let almost = SubflowView { unsent_bytes: 500, in_flight_bytes: 9000, ..subflow(20, 10) };
        assert_eq!(pick(&[subflow(60, 10), almost]), send(0), "what waits in it counts");
    }
}
