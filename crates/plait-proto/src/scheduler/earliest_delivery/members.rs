//! Which paths carry bulk traffic. The egress restores each flow's order, so a flow over several
//! paths sees the sum of their rates with the delay of the slowest. A path belongs to the set when
//! its rate outweighs what its delay costs.

use super::super::by_path::ByPath;
use super::super::delivery::{
    ack_interval, base_rtt, one_way_delay, price_classes, seen_excess, useful_rate,
};
use super::super::stall::Stalls;
use super::super::{BulkLoad, COPIES_LOSS_PERMILLE, Part, PathView, View};
use super::PathMemory;
use super::growth::{Filled, Growth, Joined};
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
/// A path of known capacity has to carry this part of the set's sum, in permille: each of its
/// losses holds up what all of them carry. Of a member four fifths are asked, so that none comes
/// and goes.
const PART_PERMILLE: u64 = 20;
/// What an access line carries that nobody has loaded yet.
const USUAL_BITS_PER_SECOND: u64 = 20_000_000;
/// A path that takes a quarter and this much longer is as good as the quickest.
const NEAR: Duration = Duration::from_micros(2500);

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
#[derive(Clone, Copy, Default)]
struct Pipe {
    bits_per_second: u64,
    /// One-way delay of the slowest path.
    delay: Duration,
    /// The same without its queue and repairs, which come and go while windows stay.
    empty_delay: Duration,
}

impl Pipe {
    fn filled(&self, flows: &Flows) -> Filled {
        let round_trip = self.empty_delay.saturating_add(flows.quickest_empty);
        Filled { bits_per_second: self.bits_per_second, round_trip }
    }
}

/// Who is to use the set.
struct Flows {
    /// One-way delay of the quickest path; acknowledgements come back over it.
    quickest: Duration,
    quickest_empty: Duration,
    demand: Demand,
    now: Instant,
}

/// What is asked of the set.
#[derive(Clone, Copy)]
pub(super) struct Demand {
    pub(super) load: BulkLoad,
    /// What the flows sent in the last second.
    pub(super) sent: Rate,
}

impl Members {
    pub(super) fn new(delay_cost: f64) -> Self {
        Self {
            cost_permille: (delay_cost * 1000.0).round() as u64,
            next_choice: Instant::ZERO,
            chosen_among: (0, 0),
        }
    }

    /// Whether a set was ever chosen.
    pub(super) fn were_chosen(&self) -> bool {
        self.chosen_among.0 > 0
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
    pub(super) fn choose(
        &self,
        view: &View<'_>,
        states: &mut ByPath<PathMemory>,
        stalls: &Stalls,
        demand: Demand,
    ) {
        let is_sound = |path: &PathView, states: &mut ByPath<PathMemory>| {
            !states.touch(path.id).health.is_out() && !stalls.is_stalled(path, view.now)
        };
        // Others carry more without it, if there are any.
        let are_others = view
            .paths
            .iter()
            .any(|path| is_sound(path, states) && !states.touch(path.id).air.is_off());
        let mut chosen = Pipe::default();
        let (mut quickest, mut quickest_empty) = (Duration::MAX, Duration::MAX);
        for class in price_classes(view) {
            for path in class {
                let is_sound = is_sound(path, states);
                let state = states.touch(path.id);
                state.may_join = is_sound && !(are_others && state.air.is_off());
            }
            let may_join = |path: &&PathView| states.get(path.id).is_some_and(|it| it.may_join);
            let mut candidates: Vec<&PathView> = class.iter().filter(may_join).collect();
            let delay_of = |path: &PathView, states: &ByPath<PathMemory>| {
                let state = states.get(path.id).copied().unwrap_or_default();
                expected_delay(path, &state)
            };
            candidates.sort_by_key(|path| delay_of(path, states));
            let class_quickest = candidates.first().map(|path| delay_of(path, states));
            quickest = quickest.min(class_quickest.unwrap_or(Duration::MAX));
            let class_empty = candidates.iter().map(|path| base_rtt(path) / 2).min();
            quickest_empty = quickest_empty.min(class_empty.unwrap_or(Duration::MAX));
            let flows = Flows { quickest, quickest_empty, demand, now: view.now };
            let (horizon, pipe) = self.horizon(&candidates, states, chosen, &flows);
            for path in class {
                let state = states.touch(path.id);
                let delay = expected_delay(path, state);
                state.is_negligible = is_negligible(path, state, pipe, demand.load);
                let is_worth_it = horizon.is_some_and(|horizon| delay <= horizon);
                let pays = is_worth_it && !state.is_negligible;
                let is_tried = !is_known(path, state) && is_near(delay, quickest);
                let is_only_hope =
                    horizon.is_none() && quickest == delay && chosen.bits_per_second == 0;
                state.is_member = state.may_join && (pays || is_tried || is_only_hope);
                state.joined.follow(view.now, state.is_member);
            }
            chosen = pipe;
        }
    }

    /// The delay up to which the class's paths are worth having, and what they then carry together
    /// with the cheaper ones; no delay when none is. `candidates` are sorted by delay.
    fn horizon(
        &self,
        candidates: &[&PathView],
        states: &ByPath<PathMemory>,
        cheaper: Pipe,
        flows: &Flows,
    ) -> (Option<Duration>, Pipe) {
        let mut pipe = cheaper;
        let mut best =
            (self.worth(cheaper, cheaper, false, Joined::default(), flows), cheaper, None);
        let mut is_any_known = cheaper.bits_per_second > 0;
        for path in candidates {
            let state = states.get(path.id).copied().unwrap_or_default();
            let is_known = is_known(path, &state);
            // What a known path carries says what to expect of others; a guess says nothing.
            if !is_known && !is_any_known && pipe.bits_per_second > 0 {
                continue;
            }
            is_any_known |= is_known;
            let delay = expected_delay(path, &state);
            let rate = expected_rate(path, &state, pipe.bits_per_second);
            pipe = Pipe {
                bits_per_second: pipe.bits_per_second.saturating_add(rate),
                delay: pipe.delay.max(delay),
                empty_delay: pipe.empty_delay.max(base_rtt(path) / 2),
            };
            let worth = self.worth(best.1, pipe, state.is_member, state.joined, flows);
            if worth > best.0 {
                best = (worth, pipe, Some(delay));
            }
        }
        (best.2, best.1)
    }

    /// What a set carries after the cost of its delay, and of getting there from a smaller one.
    fn worth(&self, from: Pipe, to: Pipe, is_member: bool, joined: Joined, flows: &Flows) -> u64 {
        let fifths = if is_member { MEMBER_FIFTHS } else { 5 };
        let cost = match flows.demand.load.is_unresponsive && self.cost_permille < 1000 {
            true => 0,
            // A drop slows down one flow of them all.
            false => {
                self.cost(to.delay, flows.quickest) * fifths
                    / 5
                    / u64::from(flows.demand.load.flows)
            }
        };
        let share = match from.bits_per_second {
            0 => MILLION,
            _ if self.cost_permille == 0 => MILLION,
            _ => {
                let Demand { load, sent } = flows.demand;
                let (sent, elapsed) = (joined.sent(flows.now, sent), joined.elapsed(flows.now));
                let (from, to) = (from.filled(flows), to.filled(flows));
                Growth { from, to, elapsed, sent, load }.share()
            }
        };
        let kbit = to.bits_per_second / 1000;
        kbit.saturating_mul(MILLION.saturating_sub(cost)) / 1000 * share / MILLION
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

/// Why a path of known capacity that is neither bad nor stalled is left out.
pub(super) fn left_out_for(path: &PathView, state: &PathMemory) -> Part {
    let rate = Rate::from_bits_per_second(useful_rate(path));
    if state.is_negligible {
        return Part::TooLittle { rate };
    }
    Part::TooFar { rate, delay: expected_delay(path, state) }
}

/// Capacity is a guess while the trial lasts.
fn is_known(path: &PathView, state: &PathMemory) -> bool {
    path.capacity != Rate::ZERO && !state.trial.is_on()
}

/// Whether the path carries next to nothing of what the set does. What was sent over one that is
/// still starting says nothing; and whoever sends on whatever is lost is held up by nobody.
fn is_negligible(path: &PathView, state: &PathMemory, set: Pipe, load: BulkLoad) -> bool {
    let fifths = if state.is_member { MEMBER_FIFTHS } else { 5 };
    let part = set.bits_per_second / 1000 * PART_PERMILLE;
    let is_small = is_known(path, state) && useful_rate(path) < part * fifths / 5;
    is_small && !path.is_starting && !load.is_unresponsive
}

/// What a path is expected to carry. One whose capacity was never known is taken for a usual
/// access line, or for half of what the quicker ones carry; one tried again, for half as much again
/// as it carried.
fn expected_rate(path: &PathView, state: &PathMemory, quicker: u64) -> u64 {
    let useful = useful_rate(path);
    if is_known(path, state) {
        return useful;
    }
    match state.trial.known_before() {
        Some(before) => useful.max(before.bits_per_second() / 2 * 3),
        None => useful.max(quicker / 2).max(USUAL_BITS_PER_SECOND),
    }
}

/// The delay that the path adds to a bulk flow. While its capacity is a guess, what is in flight
/// implies no queue: only round trips show one.
fn expected_delay(path: &PathView, state: &PathMemory) -> Duration {
    if is_known(path, state) {
        return bulk_delay(path);
    }
    bulk_delay(path).min((base_rtt(path) / 2).saturating_add(seen_excess(path)))
}

/// So much slower a path is tried by whoever comes: no flow notices.
fn is_near(delay: Duration, quickest: Duration) -> bool {
    delay <= quickest.saturating_add(quickest / 4).saturating_add(NEAR)
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
