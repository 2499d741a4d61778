//! Whether a path's capacity is known yet. A controller finds it only under load, so a path's first
//! estimates are low; judged by them it would never be used, and so never be known.

use super::super::PathView;
use super::super::delivery::{FREE_BYTES_MIN, ack_interval, smoothed_rtt};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The capacity is known when the estimate has grown by less than a quarter in so many loaded
/// rounds, as BBR decides that the pipe is full.
const FLAT_ROUNDS: u8 = 3;
/// A member that flows do not fill is known after this and so many round trips, once it has carried
/// no quarter more for the shorter time and its round trips: they have no use for the rest.
const MEMBER_TRIED_FOR: (Duration, u32) = (Duration::from_secs(3), 10);
const MEMBER_FLAT_FOR: (Duration, u32) = (Duration::from_secs(1), 4);
/// A far path on trial with which less is sent, in per cent, than in the best second before costs
/// more than it brings, unless more is sent from second to second: windows that have to fit the
/// longer round trip grow.
const HARMS_BELOW_PERCENT: u64 = 85;
const GROWS_PERCENT: u64 = 110;
/// They do not begin to before so many round trips.
const SETTLES_IN: u32 = 4;
/// A path outside the bulk set is tried again after this: its rate may have risen.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// What flows sent in the last two whole seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seconds {
    pub(super) last: Rate,
    pub(super) before: Rate,
    /// When the earlier one began, and the later.
    pub(super) began: Instant,
    pub(super) last_began: Instant,
}

/// A path's capacity being found out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trial {
    highest: Rate,
    flat_rounds: u8,
    round_ends: Instant,
    /// Whether the window was a quarter full at some time in this round.
    is_loaded: bool,
    /// Since when each round had more than the few packets that measure it, and whether this one.
    used_since: Option<Instant>,
    is_used: bool,
    /// The most that flows sent in a second before.
    sent_before: Rate,
    /// Since when it has been a member, and when it last carried a quarter more.
    member_since: Option<Instant>,
    carried: Rate,
    carried_since: Instant,
    /// When the capacity was known.
    over_since: Option<Instant>,
    /// What was known before the path was tried again.
    before: Option<Rate>,
}

impl Trial {
    pub(super) fn is_on(&self) -> bool {
        self.over_since.is_none()
    }

    /// The capacity found by the trial before this one.
    pub(super) fn known_before(&self) -> Option<Rate> {
        self.before
    }

    /// Follows the path's latest figures. Returns whether the trial began or ended.
    pub(super) fn follow(
        &mut self,
        path: &PathView,
        now: Instant,
        is_member: bool,
        is_near: bool,
        sent: &Seconds,
    ) -> bool {
        if let Some(over_since) = self.over_since {
            let is_due = !is_member && now.since(over_since) >= TRIED_AGAIN_AFTER;
            if is_due {
                let before = Some(path.capacity);
                *self = Self { highest: path.capacity, before, ..Self::default() };
            } else if is_member {
                self.over_since = Some(now);
            }
            return is_due;
        }
        // The few copies that a path outside the set gets are no load, however small its window.
        let may_load = is_member || path.in_flight_bytes > FREE_BYTES_MIN;
        let fills = path.window_bytes.is_some_and(|window| path.in_flight_bytes >= window / 4);
        self.is_loaded |= may_load && fills;
        self.is_used |= is_member && path.in_flight_bytes > FREE_BYTES_MIN;
        self.follow_member(path, now, is_member);
        if now < self.round_ends {
            return false;
        }
        // A member that is offered little may stay in slow start, and is to have its turns. Over a
        // far one the windows of the flows that came to it have to grow first.
        let may_end = (is_member && is_near) || !path.is_starting;
        if self.is_loaded && path.capacity != Rate::ZERO && may_end {
            self.end_loaded_round(path.capacity, now);
        }
        self.follow_use(now, sent);
        let does_harm = !is_near && self.does_harm(path, sent);
        if self.is_of_no_use(path, now) || does_harm {
            self.over_since = Some(now);
        }
        self.is_loaded = false;
        self.round_ends = now + smoothed_rtt(path) + ack_interval(path);
        !self.is_on()
    }

    fn follow_member(&mut self, path: &PathView, now: Instant, is_member: bool) {
        let carried = self.carried.bits_per_second();
        if !is_member {
            self.member_since = None;
        } else if self.member_since.is_none() {
            self.member_since = Some(now);
            (self.carried, self.carried_since) = (path.capacity, now);
        } else if path.capacity.bits_per_second() > carried.saturating_add(carried / 4) {
            (self.carried, self.carried_since) = (path.capacity, now);
        }
    }

    fn follow_use(&mut self, now: Instant, sent: &Seconds) {
        self.used_since = self.used_since.filter(|_| self.is_used).or(self.is_used.then_some(now));
        self.is_used = false;
        if self.used_since.is_none_or(|since| sent.last_began < since) {
            self.sent_before = self.sent_before.max(sent.last);
        }
    }

    /// Whether flows had the path for long, and do not fill it.
    fn is_of_no_use(&self, path: &PathView, now: Instant) -> bool {
        let lasts = |since: Instant, (time, round_trips): (Duration, u32)| {
            now.since(since) >= time + smoothed_rtt(path) * round_trips
        };
        path.capacity != Rate::ZERO
            && self.member_since.is_some_and(|since| lasts(since, MEMBER_TRIED_FOR))
            && lasts(self.carried_since, MEMBER_FLAT_FOR)
    }

    /// Whether the flows send less than they did without the path, and no more from second to
    /// second.
    fn does_harm(&self, path: &PathView, sent: &Seconds) -> bool {
        let Seconds { last, before, began, .. } = *sent;
        let is_less = |than: Rate, percent: u64| {
            last.bits_per_second() < than.bits_per_second().saturating_mul(percent) / 100
        };
        path.capacity != Rate::ZERO
            && self.used_since.is_some_and(|since| began >= since + smoothed_rtt(path) * SETTLES_IN)
            && is_less(self.sent_before, HARMS_BELOW_PERCENT)
            && is_less(before, GROWS_PERCENT)
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

#[cfg(test)]
mod tests {
    use super::super::tests::link;
    use super::*;

    /// Whether a trial is over after forty rounds of a path like this.
    fn is_over(path: PathView, is_member: bool, is_near: bool) -> bool {
        let mut trial = Trial::default();
        (0..40).for_each(|round| {
            let sent = Seconds::default();
            trial.follow(&path, Instant::from_millis(200 * round), is_member, is_near, &sent);
        });
        !trial.is_on()
    }

    #[test]
    fn regression_four_packets_of_copies_end_no_trial() {
        let path = |bytes| link(1, 1, 60).in_flight(bytes).build();
        assert!(!is_over(path(FREE_BYTES_MIN), false, true));
        assert!(is_over(path(FREE_BYTES_MIN + 1), false, true));
        assert!(is_over(path(FREE_BYTES_MIN), true, true), "a member is loaded by its flows");
    }

    #[test]
    fn regression_a_member_that_stays_in_slow_start_is_known_and_has_its_turns() {
        let path = PathView { is_starting: true, ..link(1, 1, 60).in_flight(9000).build() };
        assert!(is_over(path, true, true));
        assert!(!is_over(path, false, true), "its capacity is what little was sent");
    }

    /// A flow that came from 10 ms has a window of a few packets: over 600 ms that is no rate.
    #[test]
    fn regression_what_a_small_window_sends_over_a_far_path_is_not_its_capacity() {
        let path = PathView { is_starting: true, ..link(1, 1, 600).in_flight(40_000).build() };
        assert!(!is_over(path, true, false));
        assert!(is_over(PathView { is_starting: false, ..path }, true, false));
    }

    /// Its controller stays in slow start, so it was never known and never judged, and the flow
    /// paid for its delay for as long as it lasted.
    #[test]
    fn regression_a_far_member_that_flows_do_not_fill_is_known_after_a_while() {
        let path = PathView { is_starting: true, ..link(1, 1, 300).in_flight(1000).build() };
        let known_after = |mbit: fn(u64) -> u64| {
            let mut trial = Trial::default();
            (0..100).find(|tenth| {
                let path = PathView { capacity: Rate::from_mbit(mbit(*tenth)), ..path };
                let sent = Seconds::default();
                trial.follow(&path, Instant::from_millis(100 * tenth), true, false, &sent)
            })
        };
        let at_last = known_after(|_| 5).expect("3 s and ten round trips are over");
        assert!((60..=63).contains(&at_last), "{at_last}");
        assert_eq!(known_after(|tenth| 1 << (tenth / 10)), None, "it grows each second");
    }

    /// 380 Mbit/s at 56 ms beside 3 at 260: the receiver's window filled 160 Mbit/s of the longer
    /// round trip, and that was so until the path was known after six seconds.
    #[test]
    fn regression_a_far_path_with_which_less_is_sent_is_left_unless_windows_grow() {
        let left_after = |rtt_ms: u64, mbit: fn(u64) -> u64| {
            let path = link(1, 1, rtt_ms).in_flight(40_000).build();
            let path = PathView { is_starting: true, ..path };
            let idle = PathView { in_flight_bytes: 0, ..path };
            let mut trial = Trial::default();
            (0_u64..60).find(|tenth| {
                let second = tenth / 10;
                let rate = |ago: u64| Rate::from_mbit(second.checked_sub(ago).map_or(0, mbit));
                let began = |ago: u64| Instant::from_millis(1000 * second.saturating_sub(ago));
                let (began, last_began) = (began(2), began(1));
                let sent = Seconds { last: rate(1), before: rate(2), began, last_began };
                // It is used from 2 s on, and its capacity grows all the time.
                let path = if *tenth < 20 { idle } else { path };
                let path = PathView { capacity: Rate::from_mbit(1 << second), ..path };
                trial.follow(&path, Instant::from_millis(100 * tenth), true, false, &sent)
            })
        };
        let falls = |second| if second < 2 { 350 } else { 158 };
        assert_eq!(left_after(100, falls), Some(50), "two whole seconds after four round trips");
        assert_eq!(left_after(100, |_| 350), None);
        assert_eq!(
            left_after(100, |second| if second < 2 { 350 } else { 50 << (second - 2) }),
            None
        );
    }
}
