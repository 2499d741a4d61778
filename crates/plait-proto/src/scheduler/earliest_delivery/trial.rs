//! Whether a path's capacity is known yet. A controller finds it only under load, so a path's first
//! estimates are low; judged by them it would never be used, and so never be known.

use super::super::PathView;
use super::super::delivery::{ack_interval, smoothed_rtt};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The capacity is known when the estimate has grown by less than a quarter in so many loaded
/// rounds, as BBR decides that the pipe is full.
const FLAT_ROUNDS: u8 = 3;
/// A path outside the bulk set is tried again after this: its rate may have risen.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A path's capacity being found out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    highest: Rate,
    flat_rounds: u8,
    round_ends: Instant,
    /// Whether the window was a quarter full at some time in this round.
    is_loaded: bool,
    /// When the capacity was known.
    over_since: Option<Instant>,
}

impl Trial {
    pub(super) fn is_on(&self) -> bool {
        self.over_since.is_none()
    }

    /// Follows the path's latest figures. Returns whether the trial began or ended.
    pub(super) fn follow(&mut self, path: &PathView, now: Instant, is_member: bool) -> bool {
        if let Some(over_since) = self.over_since {
            let is_due = !is_member && now.since(over_since) >= TRIED_AGAIN_AFTER;
            if is_due {
                *self = Self { highest: path.capacity, ..Self::default() };
            } else if is_member {
                self.over_since = Some(now);
            }
            return is_due;
        }
        self.is_loaded |=
            path.window_bytes.is_some_and(|window| path.in_flight_bytes >= window / 4);
        if now < self.round_ends {
            return false;
        }
        if self.is_loaded && path.capacity != Rate::ZERO {
            self.end_loaded_round(path.capacity, now);
        }
        self.is_loaded = false;
        self.round_ends = now + smoothed_rtt(path) + ack_interval(path);
        !self.is_on()
    }

    fn end_loaded_round(&mut self, capacity: Rate, now: Instant) {
        let before = self.highest.bits_per_second();
        if capacity.bits_per_second() > before.saturating_add(before / 4) {
            self.highest = capacity;
            self.flat_rounds = 0;
        } else {
            self.flat_rounds += 1;
        }
        if self.flat_rounds >= FLAT_ROUNDS {
            self.over_since = Some(now);
        }
    }
}
