//! Which paths carry bulk traffic. The egress restores each flow's order, so a flow over several
//! paths sees the sum of their rates with the delay of the slowest. A path belongs to the set when
//! its rate outweighs what its delay costs.

use super::super::by_path::ByPath;
use super::super::delivery::{ack_interval, base_rtt, one_way_delay, price_classes};
use super::super::stall::Stalls;
use super::super::{COPIES_LOSS_PERMILLE, PathView, View};
use super::PathState;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The set is chosen so often, and whenever a path comes, goes or changes its standing.
const CHOSEN_EVERY: Duration = Duration::from_millis(5);
/// The part of a longer round trip that costs nothing: the ingress queue holds about as much when
/// it slows a flow down, and so keeps the paths busy meanwhile.
const COVERED: Duration = Duration::from_millis(20);
/// Of a member's delay only so many fifths count, so that a path at the border does not change the
/// round trip back and forth.
const MEMBER_FIFTHS: u64 = 4;
/// While a path's capacity is unknown it is a member if its delay costs no more than this.
const TRIAL_COST_PER_MILLION: u64 = 100_000;

const MILLION: u64 = 1_000_000;

/// Chooses the members.
#[derive(Debug)]
pub(super) struct Members {
    cost_permille: u64,
    next_choice: Instant,
    /// Number and ids of the paths at the last choice.
    chosen_among: (usize, u64),
}

/// A set of paths as a bulk flow sees it.
#[derive(Clone, Copy)]
struct Pipe {
    bits_per_second: u64,
    /// One-way delay of the slowest path.
    delay: Duration,
}

impl Members {
    pub(super) fn new(delay_cost: f64) -> Self {
        Self {
            cost_permille: (delay_cost * 1000.0).round() as u64,
            next_choice: Instant::ZERO,
            chosen_among: (0, 0),
        }
    }

    /// Whether the set is to be chosen again.
    pub(super) fn are_due(&mut self, view: &View<'_>, changed: bool) -> bool {
        let ids = view
            .paths
            .iter()
            .fold(0_u64, |ids, path| ids.wrapping_mul(257).wrapping_add(u64::from(path.id.0) + 1));
        let among = (view.paths.len(), ids);
        if !changed && among == self.chosen_among && view.now < self.next_choice {
            return false;
        }
        self.chosen_among = among;
        self.next_choice = view.now + CHOSEN_EVERY;
        true
    }

    /// Chooses class by class: the members of cheaper classes stay, whatever dearer ones offer.
    pub(super) fn choose(&self, view: &View<'_>, states: &mut ByPath<PathState>, stalls: &Stalls) {
        let mut chosen = Pipe { bits_per_second: 0, delay: Duration::ZERO };
        let mut quickest = Duration::MAX;
        for class in price_classes(view) {
            for path in class {
                let state = states.touch(path.id);
                state.may_join = !state.health.is_out() && !stalls.is_stalled(path, view.now);
            }
            let candidates =
                || class.iter().filter(|path| states.get(path.id).is_some_and(|s| s.may_join));
            let class_quickest = candidates().map(bulk_delay).min();
            quickest = quickest.min(class_quickest.unwrap_or(Duration::MAX));
            let horizon = self.horizon(class, states, chosen, quickest);
            for path in class {
                let state = states.touch(path.id);
                let delay = bulk_delay(path);
                let pays = is_known(path, state) && horizon.is_some_and(|horizon| delay <= horizon);
                let is_tried =
                    !is_known(path, state) && self.cost(delay, quickest) <= TRIAL_COST_PER_MILLION;
                let is_only_hope = quickest == delay && chosen.bits_per_second == 0;
                state.is_member = state.may_join && (pays || is_tried || is_only_hope);
                if state.is_member && is_known(path, state) {
                    chosen.bits_per_second =
                        chosen.bits_per_second.saturating_add(useful_rate(path));
                    chosen.delay = chosen.delay.max(delay);
                }
            }
        }
    }

    /// The delay up to which the class's paths are worth having; `None` when none is.
    fn horizon(
        &self,
        class: &[PathView],
        states: &ByPath<PathState>,
        cheaper: Pipe,
        quickest: Duration,
    ) -> Option<Duration> {
        let state = |path: &PathView| states.get(path.id).copied().unwrap_or_default();
        let known =
            || class.iter().filter(|path| state(path).may_join && is_known(path, &state(path)));
        let mut best = (worth(cheaper, self.cost(cheaper.delay, quickest)), None);
        for last in known() {
            let delay = bulk_delay(last);
            let within = known().filter(|path| bulk_delay(path) <= delay);
            let pipe = Pipe {
                bits_per_second: within
                    .map(useful_rate)
                    .fold(cheaper.bits_per_second, u64::saturating_add),
                delay: delay.max(cheaper.delay),
            };
            let fifths = if state(last).is_member { MEMBER_FIFTHS } else { 5 };
            let worth = worth(pipe, self.cost(pipe.delay, quickest) * fifths / 5);
            if worth > best.0 {
                best = (worth, Some(delay));
            }
        }
        best.1
    }

    /// Millionths of the rate that a flow loses when its packets take `delay` instead of
    /// `quickest` to arrive; its acknowledgements come back the quickest way.
    fn cost(&self, delay: Duration, quickest: Duration) -> u64 {
        let round_trip = delay.saturating_add(quickest);
        let unhurt = quickest.saturating_mul(2).saturating_add(COVERED);
        let added = round_trip.saturating_sub(unhurt).as_micros();
        let permille = added * 1000 / round_trip.as_micros().max(1);
        self.cost_permille * u64::try_from(permille).unwrap_or(1000)
    }
}

/// What a set carries after the cost of its delay, in millionths.
fn worth(pipe: Pipe, cost: u64) -> u64 {
    (pipe.bits_per_second / 1000).saturating_mul(MILLION.saturating_sub(cost)) / 1000
}

/// Capacity is a guess while the trial lasts.
fn is_known(path: &PathView, state: &PathState) -> bool {
    path.capacity != Rate::ZERO && !state.trial.is_on()
}

/// What arrives of what the path carries.
fn useful_rate(path: &PathView) -> u64 {
    let arriving = 1000_u64.saturating_sub(path.loss_permille.into());
    path.capacity.bits_per_second() / 1000 * arriving
}

/// The delay that the path adds to a bulk flow. With a loss in nearly every window, the flow waits
/// for a repair in nearly every round trip: another one until the loss is known.
fn bulk_delay(path: &PathView) -> Duration {
    let delay = one_way_delay(path);
    if path.loss_permille < COPIES_LOSS_PERMILLE {
        return delay;
    }
    delay.saturating_add(base_rtt(path)).saturating_add(ack_interval(path))
}
