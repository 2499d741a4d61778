//! Earliest delivery: plait's own, and the default. Bulk traffic fills every path that makes the
//! bond faster; interactive traffic takes the path on which it arrives first.
//! `docs/algorithms/earliest-delivery.md`.

use super::by_path::ByPath;
use super::delivery::{
    FREE_BYTES_MIN, INTERACTIVE_WAIT_MAX, Preferred, SPILL_BACKLOG, any_has_room, base_rtt,
    delivery_delay, one_way_delay, price_classes, time_to_room, wait_for,
};
use super::stall::Stalls;
use super::{
    COPIES_LOSS_PERMILLE, Decision, FlowClass, PacketInfo, Part, PathId, PathSet, PathView,
    Scheduler, View,
};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use air::{Air, Airtime};
use growth::Joined;
use health::{Health, Standing};
use members::{Demand, Members};
use overflow::Overflow;
use relapse::Relapses;
use spread::{Spread, Turns};
use trial::Trial;

mod air;
mod growth;
mod health;
mod members;
mod overflow;
mod relapse;
mod spread;
#[cfg(test)]
mod tests;
mod trial;

/// Among paths of one price the slower one is used when this much of the quicker ones' time waits:
/// a packet alone does not take a detour because the pacer lets the next go in a moment.
const DETOUR_BACKLOG: Duration = Duration::from_millis(1);
/// A path whose round trip is no longer than so many times the best one's and this is near: outside
/// the set its trial may fill it with copies, and a member's trial may end in slow start.
const NEAR_TIMES: u32 = 3;
const NEAR_MORE: Duration = Duration::from_millis(20);
/// Packets of this length at least fill a path; what is shorter acknowledges them.
const FULL_BYTES_MIN: u64 = 500;
/// An interactive packet waits only if it arrives so much earlier.
const WORTH_WAITING: Duration = Duration::from_millis(1);

/// Parameters of earliest delivery.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EarliestDeliveryConfig {
    /// The share of the bond's rate that a bulk flow loses when its round trip becomes many times
    /// longer: a path whose delay does so must add at least as much.
    pub delay_cost: f64,
}

impl Default for EarliestDeliveryConfig {
    /// Between what CUBIC's mean window loses (0.075) and what Reno's does (0.25).
    fn default() -> Self {
        Self { delay_cost: 0.15 }
    }
}

/// What is known of one path beyond its view.
#[derive(Clone, Copy, Debug, Default)]
struct PathMemory {
    health: Health,
    relapses: Relapses,
    standing: Standing,
    trial: Trial,
    /// Whether it is neither bad nor stalled; as of the last choice.
    may_join: bool,
    /// Whether it belongs to the set that carries bulk traffic.
    is_member: bool,
    /// It does not for carrying next to nothing.
    is_negligible: bool,
    joined: Joined,
    air: Airtime,
    /// Whether it gets bulk packets although nothing waits.
    turns: Turns,
}

/// Sends each packet so that it, or what waits with it, arrives first.
#[derive(Debug)]
pub struct EarliestDelivery {
    paths: ByPath<PathMemory>,
    /// Of a path that was never seen.
    unknown: PathMemory,
    stalls: Stalls,
    members: Members,
    overflow: Overflow,
    spread: Spread,
    air: Air,
}

impl EarliestDelivery {
    /// A new scheduler.
    pub fn new(config: EarliestDeliveryConfig) -> Self {
        Self {
            paths: ByPath::default(),
            unknown: PathMemory::default(),
            stalls: Stalls::default(),
            members: Members::new(config.delay_cost),
            overflow: Overflow::default(),
            spread: Spread::default(),
            air: Air::default(),
        }
    }

    fn state(&self, path: &PathView) -> &PathMemory {
        self.paths.get(path.id).unwrap_or(&self.unknown)
    }

    /// Follows windows, health and trials, and chooses the bulk set again when it is time.
    fn observe(&mut self, view: &View<'_>, packet: &PacketInfo) {
        self.stalls.watch(view, packet.bytes);
        let mut changed = self.judge_health(view);
        let quickest = view.paths.iter().map(base_rtt).min().unwrap_or_default();
        let sent = self.spread.seconds();
        for path in view.paths {
            let state = self.paths.touch(path.id);
            let is_near = is_near(base_rtt(path), quickest);
            changed |= state.trial.follow(path, view.now, state.is_member, is_near, &sent);
        }
        // Acknowledgements alone fill no path, and interactive packets tell nothing.
        if packet.class == FlowClass::Bulk {
            let is_full = self.overflow.is_on(view.now) && packet.bytes >= FULL_BYTES_MIN;
            changed |= self.air.follow(view, &mut self.paths, is_full);
        }
        if self.spread.is_silent(view.now) {
            // Flows that begin now have the windows of the quick path.
            view.paths.iter().for_each(|path| self.paths.touch(path.id).joined.begin_anew());
        }
        let are_due = self.members.are_due(view, changed);
        if are_due {
            let demand = Demand { load: packet.load, sent: self.spread.last_second() };
            self.members.choose(view, &mut self.paths, &self.stalls, demand);
        }
        if self.spread.follow(view.now) || are_due {
            self.spread.choose(view, &mut self.paths);
        }
    }

    /// Takes paths out that have become bad beside another one. Returns whether any changed.
    fn judge_health(&mut self, view: &View<'_>) -> bool {
        let in_use = |path: &&PathView| {
            !self.state(path).health.is_out() && !self.stalls.is_stalled(path, view.now)
        };
        let Some(reference) = health::Reference::of(view.paths.iter().filter(in_use)) else {
            return self.readmit_all(view);
        };
        let mut changed = false;
        for path in view.paths {
            let state = self.paths.touch(path.id);
            let standing = state.standing.follow(path, view.now);
            let health = &mut state.health;
            let relapses = &mut state.relapses;
            changed |= health.follow(path, view.now, standing, &reference, relapses);
        }
        changed
    }

    /// No path is good: the bad ones are all there is.
    fn readmit_all(&mut self, view: &View<'_>) -> bool {
        let mut changed = false;
        for path in view.paths {
            let health = &mut self.paths.touch(path.id).health;
            changed |= health.is_out();
            *health = Health::default();
        }
        changed
    }

    /// Notes whether more waits than the quickest member carries in a moment.
    fn follow_queue(&mut self, view: &View<'_>, packet: &PacketInfo) {
        let members = view
            .paths
            .iter()
            .filter(|path| self.state(path).is_member && !self.stalls.is_stalled(path, view.now));
        let quickest = members.min_by_key(|path| (path.price, one_way_delay(path)));
        let rate = quickest.map_or(Rate::ZERO, |path| path.capacity);
        let waiting_bytes = packet.queued_bytes.saturating_add(packet.bytes);
        self.overflow.follow(view.now, waiting_bytes > rate.bytes_in(DETOUR_BACKLOG));
    }

    fn has_room(&self, path: &PathView, now: Instant, bytes: u64) -> bool {
        path.has_room(now, bytes) && self.state(path).health.lets(path, bytes)
    }

    fn bulk(&self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        let bytes = packet.bytes;
        let backlog_bytes = packet.queued_bytes.saturating_add(bytes);
        let mut cheaper = Preferred::default();
        for class in price_classes(view) {
            let members = || {
                let alive = |path: &&PathView| !self.stalls.is_stalled(path, view.now);
                class.iter().filter(|path| self.state(path).is_member).filter(alive)
            };
            let with_room = members().filter(|path| self.has_room(path, view.now, bytes));
            let Some(best) = with_room.min_by_key(|path| delivery_delay(path, bytes)) else {
                members().for_each(|path| cheaper.add(path, view, bytes));
                continue;
            };
            let best = self.slowest_due(members(), view, bytes).unwrap_or(best);
            // A path that has turns has joined: what waits for it waits all the same.
            let quicker = match self.state(best).turns.are_on {
                true => Preferred::default(),
                false => self.quicker_soon(members(), best, view, bytes),
            };
            for (preferred, backlog) in [(cheaper, SPILL_BACKLOG), (quicker, DETOUR_BACKLOG)] {
                let keeping_up = preferred.keeping_up(backlog_bytes, backlog);
                let burst = preferred.soonest.filter(|_| !self.overflow.is_on(view.now));
                if let Some(soonest) = keeping_up.or(burst) {
                    return wait_for(soonest, view, bytes);
                }
            }
            return self.send_and_probe(best, view, packet);
        }
        self.without_members(cheaper.soonest, view, bytes)
    }

    /// Of the members whose turn it is the slowest: while it has a packet of the flow, those behind
    /// it over quicker paths wait for it, and the flow sees one round trip.
    fn slowest_due<'a>(
        &self,
        members: impl Iterator<Item = &'a PathView>,
        view: &View<'_>,
        bytes: u64,
    ) -> Option<&'a PathView> {
        let due = members.filter(|path| {
            let state = self.state(path);
            path.window_bytes.is_some()
                && state.turns.are_on
                && state.turns.next_at <= view.now
                && self.has_room(path, view.now, bytes)
        });
        due.max_by_key(|path| base_rtt(path))
    }

    /// Takes note of the paths that a bulk packet takes.
    fn count(&mut self, view: &View<'_>, path: PathId, bytes: u64) {
        if let Some(path) = view.paths.iter().find(|other| other.id == path) {
            let state = self.paths.touch(path.id);
            self.spread.on_sent(view.now, path, state, bytes);
        }
    }

    /// Members that have no room now, but soon, and would deliver earlier than `best` all the same.
    fn quicker_soon<'a>(
        &self,
        members: impl Iterator<Item = &'a PathView>,
        best: &PathView,
        view: &View<'_>,
        bytes: u64,
    ) -> Preferred<'a> {
        let mut quicker = Preferred::default();
        let now = view.now;
        for path in members.filter(|path| !self.has_room(path, now, bytes)) {
            let wait = time_to_room(path, now, bytes);
            let delivery = wait.saturating_add(delivery_delay(path, bytes));
            if wait <= DETOUR_BACKLOG && delivery < delivery_delay(best, bytes) {
                quicker.add(path, view, bytes);
            }
        }
        quicker
    }

    /// No member of the bulk set has room. They are waited for; when none is left, any path will
    /// do.
    fn without_members(&self, soonest: Option<&PathView>, view: &View<'_>, bytes: u64) -> Decision {
        if let Some(soonest) = soonest
            && any_has_room(view, bytes)
        {
            return wait_for(soonest, view, bytes);
        }
        let with_room = view.paths.iter().filter(|path| path.has_room(view.now, bytes));
        let best = with_room.min_by_key(|path| delivery_delay(path, bytes));
        best.map_or(Decision::Blocked, |best| Decision::Send(best.id))
    }

    /// A path outside the bulk set gets copies: it is measured, and nothing waits for it.
    fn send_and_probe(&self, best: &PathView, view: &View<'_>, packet: &PacketInfo) -> Decision {
        let overflows = packet.queued_bytes.saturating_add(packet.bytes)
            > best.capacity.bytes_in(SPILL_BACKLOG);
        let probed = view.paths.iter().find(|path| {
            let state = self.state(path);
            let few = path.in_flight_bytes + packet.bytes <= FREE_BYTES_MIN;
            // Copies that fill a far path for its trial would cost more than is won by them.
            let is_near = is_near(base_rtt(path), base_rtt(best));
            let is_tried = is_near && state.trial.is_on() && !state.health.is_out();
            path.id != best.id
                && !state.is_member
                && !state.air.is_off()
                && (path.price <= best.price || overflows)
                && (few || is_tried)
                && path.has_room(view.now, packet.bytes)
        });
        probed.map_or(Decision::Send(best.id), |probed| copies(best, probed))
    }

    fn interactive(&self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        let (now, bytes) = (view.now, packet.bytes);
        for class in price_classes(view) {
            let sound = || class.iter().filter(|path| !self.state(path).health.is_out());
            let with_room = sound().filter(|path| path.has_room(now, bytes));
            let best = with_room.min_by_key(|path| delivery_delay(path, bytes));
            if let Some(better) = self.better_soon(sound(), best, now, bytes)
                && any_has_room(view, bytes)
            {
                return wait_for_briefly(better, view, bytes);
            }
            if let Some(best) = best {
                return self.send_or_double(best, view, bytes);
            }
        }
        let with_room = view.paths.iter().filter(|path| path.has_room(now, bytes));
        let best = with_room.min_by_key(|path| delivery_delay(path, bytes));
        best.map_or(Decision::Blocked, |best| self.send_or_double(best, view, bytes))
    }

    /// A path without room that is going to have it within a few milliseconds and then delivers
    /// earlier than `best` would.
    fn better_soon<'a>(
        &self,
        paths: impl Iterator<Item = &'a PathView>,
        best: Option<&PathView>,
        now: Instant,
        bytes: u64,
    ) -> Option<&'a PathView> {
        let delivery = |path: &PathView| {
            time_to_room(path, now, bytes).saturating_add(delivery_delay(path, bytes))
        };
        let soon = paths.filter(|path| {
            !path.has_room(now, bytes)
                && time_to_room(path, now, bytes) <= INTERACTIVE_WAIT_MAX
                && !self.stalls.is_slow_to_open(path, now)
        });
        let better = soon.min_by_key(|path| delivery(path))?;
        let is_worth_it =
            best.is_none_or(|best| delivery(better) + WORTH_WAITING < delivery_delay(best, bytes));
        is_worth_it.then_some(better)
    }

    /// While the chosen path is bad, a copy goes over the next best one.
    fn send_or_double(&self, best: &PathView, view: &View<'_>, bytes: u64) -> Decision {
        let is_bad = best.loss_permille >= COPIES_LOSS_PERMILLE
            || self.state(best).health != Health::default();
        if !is_bad {
            return Decision::Send(best.id);
        }
        let others = view.paths.iter().filter(|path| path.id != best.id);
        let with_room = others.filter(|path| path.has_room(view.now, bytes));
        let second = with_room
            .min_by_key(|path| (self.state(path).health.is_out(), delivery_delay(path, bytes)));
        second.map_or(Decision::Send(best.id), |second| copies(best, second))
    }
}

fn is_near(rtt: Duration, best: Duration) -> bool {
    rtt <= best * NEAR_TIMES + NEAR_MORE
}

fn copies(first: &PathView, second: &PathView) -> Decision {
    let mut paths = PathSet::default();
    paths.insert(first.id);
    paths.insert(second.id);
    Decision::Copies(paths)
}

fn wait_for_briefly(path: &PathView, view: &View<'_>, bytes: u64) -> Decision {
    match wait_for(path, view, bytes) {
        Decision::Wait { until } => {
            Decision::Wait { until: until.min(view.now + INTERACTIVE_WAIT_MAX) }
        }
        other => other,
    }
}

impl Scheduler for EarliestDelivery {
    fn respects_windows(&self) -> bool {
        true
    }

    fn pick(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        self.observe(view, packet);
        match packet.class {
            FlowClass::Bulk => {
                self.follow_queue(view, packet);
                let decision = self.bulk(view, packet);
                self.spread.run_bytes = packet.bytes;
                match &decision {
                    Decision::Send(path) => self.count(view, *path, packet.bytes),
                    // The first of a copied packet's paths may not be the better one; the length
                    // counts.
                    Decision::Copies(set) => {
                        let first = set.iter().find(|path| {
                            self.paths.get(*path).is_some_and(|state| state.is_member)
                        });
                        first.into_iter().for_each(|path| self.count(view, path, packet.bytes));
                    }
                    Decision::Wait { .. } | Decision::Blocked => {}
                }
                decision
            }
            FlowClass::Interactive => {
                self.spread.run_bytes = 0;
                self.interactive(view, packet)
            }
        }
    }

    fn on_run(&mut self, view: &View<'_>, path: PathId, _bytes: u64) {
        self.count(view, path, self.spread.run_bytes);
    }

    fn take_relieved(&mut self) -> PathSet {
        self.air.take_relieved()
    }

    fn part(&self, view: &View<'_>, path: PathId) -> Option<Part> {
        let path = view.paths.iter().find(|candidate| candidate.id == path)?;
        let state = self.paths.get(path.id).filter(|_| self.members.were_chosen())?;
        Some(match state.health {
            Health::Out => Part::Bad,
            _ if self.stalls.is_stalled(path, view.now) => Part::Stalled,
            Health::Recovering { .. } => Part::Recovering,
            _ if state.air.is_off() && !state.is_member => Part::TakesAir,
            _ if state.trial.is_on() => Part::Tried,
            _ if state.is_member => Part::Carries,
            _ => members::left_out_for(path, state),
        })
    }

    fn on_path_gone(&mut self, path: PathId) {
        self.air.forget(path);
        self.paths.forget(path);
        self.stalls.forget(path);
    }
}
