//! BLEST (Ferlin et al., IFIP Networking 2016) with the λ that adapts, as multipath-tcp.org's
//! kernel has it. `docs/algorithms/blest.md`.

use plait_proto::scheduler::{self, BlestConfig};
use plait_proto::time::Instant;

use super::{ConnectionView, Decision, Scheduler, SubflowView, candidates, of_bond};

/// λ in hundredths: its first value, its bounds, and its steps up and down.
const FIRST: u64 = 120;
const MIN: u64 = 100;
const MAX: u64 = 130;
const UP: u64 = 4;
const DOWN: u64 = 1;

#[derive(Debug)]
pub(super) struct Blest {
    lambda_percent: u64,
    updated_at: Instant,
    /// Reinjections that λ has answered to.
    reinjections: u64,
}

impl Default for Blest {
    fn default() -> Self {
        Self { lambda_percent: FIRST, updated_at: Instant::ZERO, reinjections: 0 }
    }
}

impl Blest {
    /// Raises λ where data had to be sent again over another subflow since, else lowers it; once
    /// in a round trip of the slowest subflow at most.
    fn adapt(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) {
        let slowest = candidates(subflows).filter_map(|(_, subflow)| subflow.srtt).max();
        let Some(round) = slowest else { return };
        if connection.now.since(self.updated_at) < round {
            return;
        }
        self.lambda_percent = if connection.reinjections > self.reinjections {
            (self.lambda_percent + UP).min(MAX)
        } else {
            (self.lambda_percent - DOWN).max(MIN)
        };
        (self.updated_at, self.reinjections) = (connection.now, connection.reinjections);
    }
}

impl Scheduler for Blest {
    fn pick(&mut self, connection: &ConnectionView, subflows: &[SubflowView]) -> Decision {
        self.adapt(connection, subflows);
        let mut rule = scheduler::Blest::new(BlestConfig {
            lambda: self.lambda_percent as f64 / 100.0,
            send_window_bytes: connection.window_bytes,
        });
        of_bond::ask(&mut rule, connection, subflows)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connection, full, subflow};
    use super::*;

    fn pick(blest: &mut Blest, window_segments: u64, subflows: &[SubflowView]) -> Decision {
        let window_bytes = window_segments * 1000;
        let connection = ConnectionView { window_bytes, ..connection(50) };
        blest.pick(&connection, subflows)
    }

    #[test]
    fn a_slow_subflow_is_not_used_where_it_would_block_the_window() {
        // rtts = 100/20 = 5, X = (10 + (5 - 1)/2)·5 = 60 segments, λX = 72. In flight on the slow
        // one: 3, and the segment itself: 72 fit a window of 76 segments.
        let subflows = [full(20, 10), SubflowView { in_flight_bytes: 3000, ..subflow(100, 10) }];
        let slow = Decision::Send { subflow: 1, bytes: 1000 };
        assert_eq!(pick(&mut Blest::default(), 76, &subflows), slow);
        assert_eq!(pick(&mut Blest::default(), 75, &subflows), Decision::Wait);
        let fast = Decision::Send { subflow: 0, bytes: 1000 };
        assert_eq!(pick(&mut Blest::default(), 1, &[subflow(20, 10), subflows[1]]), fast);
    }

    #[test]
    fn lambda_rises_with_reinjections_and_falls_without_once_a_round_trip() {
        let mut blest = Blest::default();
        let mut at = |millis, reinjections| {
            let now = Instant::from_millis(millis);
            let connection = ConnectionView { now, reinjections, ..connection(5) };
            blest.pick(&connection, &[subflow(20, 10), subflow(100, 10)]);
            blest.lambda_percent
        };
        assert_eq!([at(100, 1), at(150, 2), at(200, 2)], [124, 124, 128]);
        assert_eq!([at(300, 3), at(400, 3), at(500, 3)], [130, 129, 128]);
    }
}
