//! Over how many members bulk traffic is spread while it builds no queue. A flow that never builds
//! one (BBR's) sizes its window by the shortest round trip it sees: it has to see the slowest
//! path's all the time, or it never offers more than the quickest path carries.

use super::super::by_path::ByPath;
use super::super::delivery::{base_rtt, price_classes};
use super::super::{PathView, View};
use super::PathMemory;
use super::trial::Seconds;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// What is offered is measured over this: about a round trip, and more than a short transfer lasts.
const WINDOW: Duration = Duration::from_millis(100);
/// The highest rate counts for one to two times this, so that a flow that rests to measure its
/// round trip (BBR for 200 ms) sees the paths that it is going to use.
const HOLD: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);
/// A silence of this long is the end of what was offered: a flow that rests still sends a few
/// packets each round trip, and between two pages there is hardly more.
const IDLE: Duration = Duration::from_millis(200);
/// A member is joined when more than this share of what quicker ones carry is offered.
const JOINED_ABOVE_PERCENT: u64 = 85;
/// It is left below this.
const LEFT_BELOW_PERCENT: u64 = 60;
/// A path is joined if a flow's round trip is then at most so many per cent of the quick one: BBR
/// keeps two of the round trips in flight that it saw before.
const ROUND_TRIP_PERCENT: u32 = 225;
/// Once left, it is not joined again for so long: less is offered because it did harm, or there is
/// no need.
const LEFT_FOR: Duration = Duration::from_secs(30);
/// Capacities of this time and the one before count: what is offered less is carried less, and then
/// believed to be all that can be.
const REMEMBERED: Duration = Duration::from_secs(15);
/// A joined path gets a packet at least so often: no round trip differs by more.
const TURN: Duration = Duration::from_millis(2);
/// So many packets of a slow path fit into its turn at least, so that this alone does not fill it.
const TURN_BYTES: u64 = 2 * 1500;

/// Whether a path gets bulk packets by turns although nothing waits, and when.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turns {
    pub(super) are_on: bool,
    pub(super) next_at: Instant,
    barred_until: Instant,
    /// The path's highest capacities of this epoch and the one before.
    highest: [Rate; 2],
}

impl Turns {
    fn remember(&mut self, capacity: Rate, is_epoch_over: bool) {
        if is_epoch_over {
            self.highest = [Rate::ZERO, self.highest[0]];
        }
        self.highest[0] = self.highest[0].max(capacity);
    }

    /// The highest capacity of the last fifteen to thirty seconds, in bit/s.
    pub(super) fn remembered(&self) -> u64 {
        self.highest[0].max(self.highest[1]).bits_per_second()
    }

    /// Joins or leaves: `offered` and what `quicker` paths carry are in bit/s.
    fn choose(&mut self, now: Instant, offered: u64, quicker: u64, may_join: bool) {
        let percent = if self.are_on { LEFT_BELOW_PERCENT } else { JOINED_ABOVE_PERCENT };
        let is_much = quicker > 0 && offered > quicker / 100 * percent;
        if offered == 0 {
            self.barred_until = Instant::ZERO;
        } else if self.are_on && !is_much {
            self.barred_until = now + LEFT_FOR;
        }
        self.are_on = may_join && is_much && now >= self.barred_until;
    }
}

/// Bulk traffic as it leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    window_began: Instant,
    bytes: u64,
    sent_at: Instant,
    hold_began: Instant,
    /// The highest rates of this time of holding and of the one before.
    highest: [Rate; 2],
    epoch_began: Instant,
    second_began: Instant,
    second_bytes: u64,
    seconds: Seconds,
    /// Length of the packet that began the run under way.
    pub(super) run_bytes: u64,
}

impl Spread {
    /// What counts as offered.
    fn offered(&self) -> Rate {
        self.highest[0].max(self.highest[1])
    }

    /// What was sent in the last whole second.
    pub(super) fn last_second(&self) -> Rate {
        self.seconds.last
    }

    pub(super) fn seconds(&self) -> Seconds {
        self.seconds
    }

    /// Whether nothing was offered for so long that what comes is something new.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        now.since(self.sent_at) >= IDLE
    }

    /// Looks at the clock; to be called before each decision. Returns whether a window has ended.
    pub(super) fn follow(&mut self, now: Instant) -> bool {
        if self.is_silent(now) && self.offered() > Rate::ZERO {
            let epoch_began = self.epoch_began;
            let (window_began, hold_began, second_began) = (now, now, now);
            let none = Self::default();
            *self = Self { window_began, hold_began, second_began, epoch_began, ..none };
            return true;
        }
        let elapsed = now.since(self.window_began);
        if elapsed < WINDOW {
            return false;
        }
        if now.since(self.hold_began) >= HOLD {
            self.highest = [Rate::ZERO, self.highest[0]];
            self.hold_began = now;
        }
        let second = now.since(self.second_began);
        if second >= SECOND {
            let last = Rate::from_bytes_over(self.second_bytes, second);
            self.seconds = Seconds {
                last,
                before: self.seconds.last,
                began: self.seconds.last_began,
                last_began: self.second_began,
            };
            (self.second_began, self.second_bytes) = (now, 0);
        }
        let rate = Rate::from_bytes_over(self.bytes, elapsed);
        self.highest[0] = self.highest[0].max(rate);
        (self.window_began, self.bytes) = (now, 0);
        true
    }

    /// Chooses the slower members that join the quicker ones because those hardly carry what is
    /// offered. To be called when a window has ended or the members have changed.
    pub(super) fn choose(&mut self, view: &View<'_>, states: &mut ByPath<PathMemory>) {
        let is_epoch_over = view.now.since(self.epoch_began) >= REMEMBERED;
        if is_epoch_over {
            self.epoch_began = view.now;
        }
        let quickest = view.paths.iter().filter(|path| states.touch(path.id).is_member);
        let quickest = quickest.map(base_rtt).min().unwrap_or_default();
        let mut quicker = 0_u64;
        for class in price_classes(view) {
            let mut members: Vec<&PathView> =
                class.iter().filter(|path| states.touch(path.id).is_member).collect();
            members.sort_by_key(|path| base_rtt(path));
            for path in members {
                let state = states.touch(path.id);
                state.turns.remember(path.capacity, is_epoch_over);
                let is_known = !state.trial.is_on();
                let round_trip = (quickest + base_rtt(path)) / 2;
                let is_near = round_trip <= quickest * ROUND_TRIP_PERCENT / 100;
                state.turns.choose(view.now, self.offered().bits_per_second(), quicker, is_near);
                // What is not known yet may be anything.
                let carried = if is_known { state.turns.remembered() } else { u64::MAX };
                quicker = quicker.saturating_add(carried);
            }
        }
    }

    /// Takes note of bulk traffic sent over a path.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        path: &PathView,
        state: &mut PathMemory,
        bytes: u64,
    ) {
        self.bytes += bytes;
        self.second_bytes += bytes;
        self.sent_at = now;
        let few_packets = match path.capacity {
            Rate::ZERO => Duration::ZERO,
            rate => rate.time_for(TURN_BYTES),
        };
        state.turns.next_at = now + TURN.max(few_packets);
    }
}
