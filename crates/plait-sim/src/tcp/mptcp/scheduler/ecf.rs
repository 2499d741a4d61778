//! ECF, earliest completion first (Lim et al., CoNEXT 2017): the bond's, with what the connection
//! holds as its backlog. `docs/algorithms/ecf.md`.

use plait_proto::scheduler::{self, EcfConfig};

use super::{ConnectionView, Decision, Scheduler, SubflowView, of_bond};

#[derive(Debug)]
pub(super) struct Ecf(scheduler::Ecf);

impl Default for Ecf {
    fn default() -> Self {
        Self(scheduler::Ecf::new(EcfConfig::default()))
    }
}

impl Scheduler for Ecf {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        of_bond::ask(&mut self.0, connection, subflows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connection, full, subflow};
    use super::*;

    #[test]
    fn the_quick_one_is_waited_for_while_the_backlog_is_short() {
        // n·RTT_f = (1 + k/10)·20 ms against 100 ms: shorter up to k = 39. (k/10)·100 ms >= 40 ms
        // from k = 4 on: waiting pays.
        let subflows = [full(20, 10), subflow(100, 10)];
        let pick = |ecf: &mut Ecf, backlog| ecf.pick(&connection(backlog), &subflows);
        let slow = Decision::Send { subflow: 1, bytes: 1000 };
        let mut ecf = Ecf::default();
        assert_eq!(pick(&mut ecf, 3), slow, "too little to be worth a wait");
        assert_eq!(pick(&mut ecf, 40), slow, "too much for the quick one alone");
        assert_eq!(pick(&mut ecf, 39), Decision::Wait);
        // Once it waits, 125 ms count: up to k = 52.
        assert_eq!(pick(&mut ecf, 52), Decision::Wait);
        assert_eq!(pick(&mut ecf, 53), slow);
        assert_eq!(pick(&mut ecf, 40), slow, "it waits no more");
    }
}
