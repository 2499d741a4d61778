//! The steps of a measurement, their order, and what they may cost. All of it is known before the
//! first byte is sent.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The most that a phase takes beyond its flows' time: two seconds to establish all connections,
/// one for the last counts, one for queues to empty.
pub(super) const PHASE_EXTRA: Duration = Duration::from_secs(4);
/// How long latencies are measured while nothing is sent, not counting the first second.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(3);
/// The beginning of the idle phase, in which sleeping paths wake up.
pub(super) const IDLE_OMIT: Duration = Duration::from_secs(1);
/// The most that is left out at a flow's beginning: slow start and its aftermath.
const OMIT_MAX: Duration = Duration::from_secs(3);
/// Percentage of a phase's bytes that is the flows' payload. Framing and headers are 8 % more,
/// acknowledgements 3 %; the rest is for retransmissions.
const PAYLOAD_PERCENT: u64 = 80;
/// Slow-start losses in a link's queue, and their retransmissions, do not shrink with the phase:
/// this much is reserved for them as well, but no more than a tenth of a phase.
const START_BYTES: u64 = 256_000;
/// A phase ends when this percentage of its bytes is seen to be spent: what is in flight then fits
/// into the rest.
const STOP_PERCENT: u64 = 94;

/// Direction of the bytes, as seen from here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Direction {
    /// From the peer.
    Down,
    /// To the peer.
    Up,
}

impl Direction {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Down => "download",
            Self::Up => "upload",
        }
    }
}

/// What a phase measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// One path by itself; its place in the list of paths.
    Individual(usize),
    /// All paths at once, a flow on each.
    Simultaneous,
    /// One flow over the bond as it is configured.
    Bonded,
}

/// A step that sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Phase {
    pub(super) direction: Direction,
    pub(super) kind: Kind,
}

/// The whole measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MeasurementPlan {
    pub(super) phases: Vec<Phase>,
    /// How long a flow lasts.
    pub(super) flow_time: Duration,
    /// What it may cost over all links, both directions together, framing included.
    pub(super) bytes_max: u64,
}

impl MeasurementPlan {
    /// The bond's `paths` are measured individually and simultaneously; without paths only the bond
    /// is.
    pub(super) fn new(
        directions: &[Direction],
        paths: usize,
        flow_time: Duration,
        bytes_max: u64,
    ) -> Self {
        let mut phases = Vec::new();
        for &direction in directions {
            let mut add = |kind| phases.push(Phase { direction, kind });
            (0..paths).for_each(|at| add(Kind::Individual(at)));
            if paths > 1 {
                add(Kind::Simultaneous);
            }
            add(Kind::Bonded);
        }
        Self { phases, flow_time, bytes_max }
    }

    /// The longest that it takes.
    pub(super) fn duration(&self) -> Duration {
        let phases = u32::try_from(self.phases.len()).expect("a bond has 32 paths at most");
        IDLE_TIME + PHASE_EXTRA + (self.flow_time + PHASE_EXTRA) * phases
    }
}

/// The time to leave out at the beginning of a flow that lasted so long.
pub(super) fn omit(lasted: Duration) -> Duration {
    (lasted * 3 / 10).min(OMIT_MAX)
}

/// Bytes that may still be spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Budget {
    left: u64,
    phases: u64,
}

impl Budget {
    pub(super) fn new(plan: &MeasurementPlan) -> Self {
        Self { left: plan.bytes_max, phases: plan.phases.len() as u64 }
    }

    /// What the next phase may cost over all links: an equal share of what is left.
    pub(super) fn next_phase(&self) -> u64 {
        self.left.checked_div(self.phases).unwrap_or(0)
    }

    /// A phase cost so much.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
        self.phases = self.phases.saturating_sub(1);
    }

    /// Something outside the phases cost so much.
    pub(super) fn spend_aside(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }
}

/// A phase that may cost `bytes` is ended when so many are seen to be spent.
pub(super) fn stop_at(bytes: u64) -> u64 {
    bytes / 100 * STOP_PERCENT
}

/// The payload of each flow of a phase that may cost `bytes`, in proportion to what the flows are
/// expected to carry.
pub(super) fn payload_limits(bytes: u64, expected: &[u64]) -> Vec<u64> {
    let start = u128::from(START_BYTES.min(bytes / 10));
    let payload = u128::from(bytes) * u128::from(PAYLOAD_PERCENT) / 100 - start;
    let sum: u128 = expected.iter().map(|rate| u128::from(*rate).max(1)).sum();
    let share = |rate: &u64| (payload * u128::from(*rate).max(1) / sum.max(1)) as u64;
    expected.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS: Duration = Duration::from_secs(10);

    #[test]
    fn each_direction_has_each_path_then_all_then_the_bond() {
        let both = [Direction::Down, Direction::Up];
        let plan = MeasurementPlan::new(&both, 2, SECONDS, 1000);
        let kinds: Vec<_> = plan.phases.iter().map(|phase| phase.kind).collect();
        let once =
            [Kind::Individual(0), Kind::Individual(1), Kind::Simultaneous, Kind::Bonded].to_vec();
        assert_eq!(kinds, [once.clone(), once].concat());
        assert_eq!(plan.phases[4].direction, Direction::Up);
        assert_eq!(plan.duration().as_secs(), 3 + 4 + 8 * 14);
        let bonded = MeasurementPlan::new(&both[..1], 0, SECONDS, 1000);
        assert_eq!(bonded.phases, [Phase { direction: Direction::Down, kind: Kind::Bonded }]);
        let alone = MeasurementPlan::new(&both[..1], 1, SECONDS, 1000);
        assert_eq!(alone.phases.len(), 2, "one path needs no others beside it");
    }

    #[test]
    fn slow_start_does_not_count() {
        let omitted = |seconds| omit(Duration::from_secs(seconds)).as_millis();
        assert_eq!([omitted(1), omitted(5), omitted(10), omitted(40)], [300, 1500, 3000, 3000]);
    }

    #[test]
    fn what_a_phase_leaves_is_for_those_after_it_and_the_sum_is_kept() {
        let plan = MeasurementPlan::new(&[Direction::Down], 2, SECONDS, 1000);
        let mut budget = Budget::new(&plan);
        let mut spent = 0;
        for (share, cost) in [(250, 100), (300, 300), (300, 0), (600, 600)] {
            assert_eq!(budget.next_phase(), share);
            budget.spend(cost);
            spent += cost;
        }
        assert_eq!((spent, budget.next_phase()), (1000, 0));
        let mut over = Budget::new(&plan);
        over.spend_aside(2000);
        assert_eq!(over.next_phase(), 0);
    }

    #[test]
    fn payload_follows_what_the_paths_carry() {
        assert_eq!(payload_limits(1000, &[1]), [700]);
        assert_eq!(payload_limits(1200, &[50, 10]), [700, 140]);
        assert_eq!(payload_limits(1000, &[0, 0]), [350, 350]);
        assert_eq!(payload_limits(100_000_000, &[1]), [80_000_000 - START_BYTES]);
        assert_eq!(stop_at(1000), 940);
        let huge = payload_limits(u64::MAX, &[u64::MAX, u64::MAX]);
        assert!(huge.iter().all(|share| *share <= u64::MAX / 2));
    }
}
