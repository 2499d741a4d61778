//! Paths that have become bad beside another one: late or lossy. Such a path leaves the bulk set at
//! once, is measured with copies, and comes back by doubling what it may have in flight.

use super::super::PathView;
use super::super::delivery::{
    FREE_BYTES_MIN, base_rtt, one_way_delay, seen_excess, smoothed_rtt, useful_rate,
};
use super::relapse::Relapses;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A queue shorter than this is no reason to leave a path.
const LATE_MIN: Duration = Duration::from_millis(50);
/// So many bytes may always queue, however slow the path.
const LATE_BYTES: u64 = 8 * 1500;
/// A path that loses so many of a thousand is left: every tenth packet would wait for its repair.
const LOSSY_PERMILLE: u16 = 100;
/// Unless it delivers more than so many times what the sound paths do: without it there is less.
const LOSSY_OUTWEIGHS: u64 = 2;
/// A path with less than one such part of what all sound ones deliver is not missed for a while.
const MISSED_PARTS: u64 = 4;
/// A controller's start overshoots for a round trip or two, learns of it a round trip later, and
/// the share of losses has then to fall.
const OVERSHOOT_ROUNDS: u32 = 4;
/// The share of losses is that of so much time at least.
const LOSS_REMEMBERED: Duration = Duration::from_millis(750);
/// With a slow path's few outcomes it is longer.
const LOSS_REMEMBERED_FAR: Duration = Duration::from_millis(1000);
/// Twice the quickest path's one-way delay and this more is far.
const FAR: Duration = Duration::from_millis(10);
/// It is taken back below this.
const LOSSY_NO_MORE_PERMILLE: u16 = 50;

/// An excess stands when no round trip was shorter for this long; it may take twice as long until
/// that is known.
const STANDS_FOR: Duration = Duration::from_millis(100);
/// A delay that comes back within this does so by itself, as over a cell that sends in turns.
const COMES_BACK_WITHIN: Duration = Duration::from_millis(300);
/// The longest such time is forgotten after this, or after twice as long.
const REMEMBERED: Duration = Duration::from_secs(5);

/// The least excess of the latest time: a delay that wanders comes back within it, a queue that
/// stands does not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    since: Instant,
    latest: Duration,
    before: Duration,
    returns: Returns,
}

impl Standing {
    /// Takes the path's latest figures and tells the excess that stands.
    pub(super) fn follow(&mut self, path: &PathView, now: Instant) -> Duration {
        let excess = seen_excess(path);
        self.returns.follow(path, excess, now);
        if now.since(self.since) >= STANDS_FOR.max(self.returns.longest()) {
            *self = Self { since: now, latest: excess, before: self.latest, ..*self };
        }
        self.latest = self.latest.min(excess);
        self.latest.min(self.before)
    }
}

/// How long a loaded path's delay takes to come back by itself.
#[derive(Clone, Copy, Debug, Default)]
struct Returns {
    /// When it was last below half of what is late.
    low_at: Option<Instant>,
    /// Whether it has been above since then: time between two low ones is none of a return.
    was_high: bool,
    epoch_began: Instant,
    /// Of this epoch and the one before.
    longest: [Duration; 2],
}

impl Returns {
    fn follow(&mut self, path: &PathView, excess: Duration, now: Instant) {
        if now.since(self.epoch_began) >= REMEMBERED {
            self.longest = [Duration::ZERO, self.longest[0]];
            self.epoch_began = now;
        }
        if path.in_flight_bytes <= FREE_BYTES_MIN {
            (self.low_at, self.was_high) = (None, false);
        } else if excess < late_excess(path) / 2 {
            let took = self.low_at.map_or(Duration::ZERO, |at| now.since(at));
            if self.was_high && took <= COMES_BACK_WITHIN {
                self.longest[0] = self.longest[0].max(took);
            }
            (self.low_at, self.was_high) = (Some(now), false);
        } else {
            self.was_high = true;
        }
    }

    fn longest(&self) -> Duration {
        self.longest[0].max(self.longest[1])
    }
}

/// How much a path may be trusted with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Health {
    /// All that its controller allows.
    #[default]
    Good,
    /// The same, though it has lost much since then.
    Losing { since: Instant },
    /// It was bad: so many bytes in flight, doubled with each round trip that shows no queue.
    Recovering { limit_bytes: u64, doubles_at: Instant },
    /// It is bad: copies only.
    Out,
}

/// What the other paths offer.
#[derive(Debug)]
pub(super) struct Reference {
    /// One-way delay of the quickest path in use.
    delay: Duration,
    /// What arrives over the paths in use that lose little, in bits per second; `None` when there
    /// are none.
    sound: Option<u64>,
}

impl Reference {
    /// Of the paths in use; `None` when there is none.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a PathView> + Clone) -> Option<Self> {
        let delay = paths.clone().map(one_way_delay).min()?;
        let sound = paths
            .filter(|path| path.loss_permille < LOSSY_NO_MORE_PERMILLE)
            .map(useful_rate)
            .reduce(u64::saturating_add);
        Some(Self { delay, sound })
    }

    /// Whether the path carries a good part of what all do.
    fn would_miss(&self, path: &PathView) -> bool {
        let sound = self.sound.unwrap_or_default();
        useful_rate(path).saturating_mul(MISSED_PARTS) >= sound
    }
}

impl Health {
    pub(super) fn is_out(self) -> bool {
        self == Self::Out
    }

    /// Whether the path may carry `bytes` more as far as its health goes.
    pub(super) fn lets(self, path: &PathView, bytes: u64) -> bool {
        match self {
            _ if path.window_bytes.is_none() => true,
            Self::Good | Self::Losing { .. } => true,
            Self::Recovering { limit_bytes, .. } => {
                path.in_flight_bytes == 0 || path.in_flight_bytes + bytes <= limit_bytes
            }
            Self::Out => false,
        }
    }

    /// Follows the path's latest figures and the excess that stands. Returns whether it went out or
    /// came back.
    pub(super) fn follow(
        &mut self,
        path: &PathView,
        now: Instant,
        standing: Duration,
        others: &Reference,
        relapses: &mut Relapses,
    ) -> bool {
        let before = self.is_out();
        // In an open loop nothing may be kept back.
        let is_closed = path.window_bytes.is_some();
        let is_lossy = is_closed && is_lossy(path, others);
        match *self {
            Self::Good | Self::Losing { .. } | Self::Recovering { .. }
                if is_closed && is_late(path, standing, others) =>
            {
                *self = Self::Out;
            }
            Self::Good | Self::Losing { .. } if is_lossy => {
                let since = match *self {
                    Self::Losing { since } => since,
                    _ => now,
                };
                *self = Self::Losing { since };
                if now.since(since) >= loss_patience(path, others) {
                    *self = Self::Out;
                }
            }
            Self::Recovering { .. } if is_lossy => *self = Self::Out,
            Self::Losing { .. } => *self = Self::Good,
            Self::Recovering { limit_bytes, doubles_at } => {
                if path.window_bytes.is_none_or(|window| limit_bytes >= window) {
                    *self = Self::Good;
                } else if now >= doubles_at && is_on_time(path) {
                    *self = Self::recovering(limit_bytes * 2, path, now);
                }
            }
            Self::Out
                if relapses.may_return(now)
                    && is_on_time(path)
                    && path.loss_permille < LOSSY_NO_MORE_PERMILLE =>
            {
                *self = Self::recovering(2 * FREE_BYTES_MIN, path, now);
            }
            Self::Good | Self::Out => {}
        }
        match (before, self.is_out()) {
            (true, false) => relapses.on_return(now),
            (false, true) => relapses.on_out(now, others.would_miss(path)),
            _ => return false,
        }
        true
    }

    fn recovering(limit_bytes: u64, path: &PathView, now: Instant) -> Self {
        Self::Recovering { limit_bytes, doubles_at: now + smoothed_rtt(path) }
    }
}

/// The queue with which a path counts as late: as long as its base round trip, or what few packets
/// make on a slow path.
fn late_excess(path: &PathView) -> Duration {
    let few_packets = match path.capacity {
        Rate::ZERO => Duration::ZERO,
        rate => rate.time_for(LATE_BYTES),
    };
    base_rtt(path).max(LATE_MIN).max(few_packets)
}

/// With next to nothing in flight the round trips are old and say nothing.
fn is_late(path: &PathView, standing: Duration, others: &Reference) -> bool {
    path.in_flight_bytes > FREE_BYTES_MIN
        && standing > late_excess(path)
        && one_way_delay(path) > others.delay * 2
}

/// The latest round trip shows at most half of what would be late. The smoothed one remembers too
/// long.
fn is_on_time(path: &PathView) -> bool {
    path.latest_rtt.is_some_and(|rtt| rtt <= base_rtt(path) + late_excess(path) / 2)
}

/// How long a path may be lossy before it is left. One burst shows for as long as the measured
/// share remembers it, that of a controller's start for some rounds more. Flows whose windows have
/// grown for a far path would lose them for that; a near one can be taken back at any time.
fn loss_patience(path: &PathView, others: &Reference) -> Duration {
    let rounds = smoothed_rtt(path) * OVERSHOOT_ROUNDS;
    if base_rtt(path) / 2 > others.delay * 2 + FAR {
        return rounds.max(LOSS_REMEMBERED_FAR);
    }
    rounds.saturating_sub(LOSS_REMEMBERED)
}

fn is_lossy(path: &PathView, others: &Reference) -> bool {
    let Some(sound) = others.sound else { return false };
    path.loss_permille >= LOSSY_PERMILLE
        && useful_rate(path) <= sound.saturating_mul(LOSSY_OUTWEIGHS)
}
