//! When a path's next datagram may leave.
//!
//! Datagrams leave in runs, not one by one: up to a millisecond's worth goes at once, then nothing
//! until its time is over. One timer serves a run, and a run is one system call.

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// A run holds what the rate gives in this time, and the datagram that goes beyond it.
const RUN_TIME: Duration = Duration::from_millis(1);
/// Time that was missed for want of packets or of a window is made up for so far.
const CATCH_UP_IDLE: Duration = Duration::from_millis(2);
/// The same where a packet waited for nothing but its time: the timer came late, as it does where
/// the processor is busy. The window bounds what leaves at once.
const CATCH_UP_LATE: Duration = Duration::from_millis(20);

/// Spaces the datagrams of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    /// When all that left will have had its time.
    next_at: Instant,
    /// A run is complete: nothing leaves before `next_at`.
    holds: bool,
    /// When somebody last looked, a packet waited and only `next_at` kept it from leaving.
    is_waited_for: bool,
}

impl Pacer {
    /// From when on a datagram may leave; in the past when one may now.
    pub const fn ready_at(&self) -> Instant {
        if self.holds { self.next_at } else { Instant::ZERO }
    }

    /// Whether the path could have sent for a while and did not.
    pub fn is_starved(&self, now: Instant) -> bool {
        self.next_at + CATCH_UP_IDLE < now
    }

    /// All that may leave now has left. `could_send` when there is more, and a window for it: where
    /// the time has come as well, somebody chose not to.
    pub fn note_rest(&mut self, now: Instant, could_send: bool) {
        self.is_waited_for = could_send && self.ready_at() > now;
    }

    /// Notes a datagram of `bytes` that left. Without a rate nothing is spaced.
    pub fn on_sent(&mut self, now: Instant, bytes: u64, rate: Option<Rate>) {
        let Some(rate) = rate.filter(|rate| *rate > Rate::ZERO) else { return };
        let catch_up = if self.is_waited_for { CATCH_UP_LATE } else { CATCH_UP_IDLE };
        let from = self.next_at.max(now.saturating_sub(catch_up));
        self.next_at = from + rate.time_for(bytes);
        self.holds = self.next_at > now + RUN_TIME;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends as much as may leave until `end`, waking only when told to. Gives the bytes and how
    /// often it woke.
    fn drive(rate: Rate, bytes: u64, end: Instant) -> (u64, u64) {
        let (mut pacer, mut now) = (Pacer::default(), Instant::from_millis(100));
        let (mut sent, mut wakes) = (0, 0);
        while now < end {
            wakes += 1;
            while pacer.ready_at() <= now {
                pacer.on_sent(now, bytes, Some(rate));
                sent += bytes;
            }
            now = pacer.ready_at();
        }
        (sent, wakes)
    }

    #[test]
    fn the_rate_is_kept_with_one_timer_for_a_run() {
        let (sent, wakes) = drive(Rate::from_mbit(120), 1500, Instant::from_millis(1100));
        // 15 MB in a second, and the catch-up of 2 ms at the start.
        assert!((15_000_000..15_060_000).contains(&sent), "{sent}");
        assert!(wakes <= 1000, "{wakes}");
    }

    #[test]
    fn a_slow_path_sends_one_by_one() {
        let (sent, wakes) = drive(Rate::from_mbit(1), 1500, Instant::from_millis(1100));
        assert!((123_000..129_000).contains(&sent), "{sent}");
        assert!((80..=86).contains(&wakes), "{wakes}");
    }

    #[test]
    fn an_idle_path_saves_up_little() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::from_millis(10), 1500, Some(Rate::from_mbit(12)));
        let now = Instant::from_millis(500);
        assert!(pacer.is_starved(now));
        let burst = (0..10).take_while(|_| {
            let ready = pacer.ready_at() <= now;
            pacer.on_sent(now, 1500, Some(Rate::from_mbit(12)));
            ready
        });
        assert_eq!(burst.count(), 4, "two milliseconds caught up, one of a run, and one beyond");
    }

    #[test]
    fn a_timer_that_came_late_costs_nothing_while_packets_wait() {
        let rate = Some(Rate::from_mbit(12));
        let (mut pacer, mut now, mut sent) = (Pacer::default(), Instant::from_millis(100), 0);
        while now < Instant::from_millis(1100) {
            while pacer.ready_at() <= now {
                pacer.on_sent(now, 1500, rate);
                sent += 1500;
            }
            pacer.note_rest(now, true);
            now = pacer.ready_at() + Duration::from_millis(10);
        }
        assert!((1_485_000..=1_530_000).contains(&sent), "{sent}");
    }

    /// What leaves at once 15 ms after the time that a look left the pacer with.
    fn burst_after(looks: &[(u64, bool)]) -> usize {
        let (mut pacer, rate) = (Pacer::default(), Some(Rate::from_mbit(12)));
        let start = Instant::from_millis(100);
        while pacer.ready_at() <= start {
            pacer.on_sent(start, 1500, rate);
        }
        for (later_ms, could_send) in looks {
            pacer.note_rest(start + Duration::from_millis(*later_ms), *could_send);
        }
        let now = pacer.ready_at() + Duration::from_millis(15);
        let burst = (0..100).take_while(|_| {
            let ready = pacer.ready_at() <= now;
            pacer.on_sent(now, 1500, rate);
            ready
        });
        burst.count()
    }

    #[test]
    fn only_time_that_a_late_timer_took_is_made_up_for() {
        assert_eq!(burst_after(&[(0, true)]), 17, "15 ms, one of a run, and one beyond");
        for (looks, why) in [
            (&[(0, false)][..], "nothing waited, or the window was full"),
            (&[(0, true), (1, false)], "the window shrank, or the queue became empty"),
            (&[(0, true), (10, true)], "it was let go, and another path was taken"),
        ] {
            assert_eq!(burst_after(looks), 4, "{why}");
        }
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::default();
        pacer.on_sent(Instant::from_millis(10), 1 << 20, None);
        pacer.on_sent(Instant::from_millis(10), 1 << 20, Some(Rate::ZERO));
        assert_eq!(pacer.ready_at(), Instant::ZERO);
    }
}
