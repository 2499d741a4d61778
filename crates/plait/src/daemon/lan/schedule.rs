//! When a router sends its next advertisement (RFC 4861 sections 6.2.4 to 6.2.6).

use std::time::Duration;

use plait_proto::time::Instant;

/// MinRtrAdvInterval and MaxRtrAdvInterval, as RFC 4861 section 6.2.1 sets them.
const INTERVAL_MIN: Duration = Duration::from_secs(198);
const INTERVAL_MAX: Duration = Duration::from_secs(600);
/// MAX_INITIAL_RTR_ADVERT_INTERVAL and MAX_INITIAL_RTR_ADVERTISEMENTS (section 10): what is new is
/// told a few times.
const INITIAL_INTERVAL: Duration = Duration::from_secs(16);
const INITIAL_COUNT: u8 = 3;
/// MIN_DELAY_BETWEEN_RAS: whatever hosts ask, they are told no more often.
const GAP_MIN: Duration = Duration::from_secs(3);
/// MAX_RA_DELAY_TIME: routers on a link do not answer at the same time.
const ANSWER_DELAY_MAX: Duration = Duration::from_millis(500);

/// A number by chance, from 0 to 1.
pub(super) type Share = f64;

/// When the next one is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Schedule {
    sent_at: Option<Instant>,
    due_at: Instant,
    initial_left: u8,
}

impl Schedule {
    /// The first is due at this time.
    pub(super) fn new(due_at: Instant) -> Self {
        Self { sent_at: None, due_at, initial_left: INITIAL_COUNT }
    }

    /// When the next one is due.
    pub(super) fn due_at(self) -> Instant {
        self.due_at
    }

    /// There is something new to tell.
    pub(super) fn has_news(&mut self, now: Instant) {
        self.initial_left = INITIAL_COUNT;
        self.due_at = self.earliest(now);
    }

    /// A host asks. All of them are answered at once.
    pub(super) fn is_asked(&mut self, now: Instant, share: Share) {
        let answer_at = self.earliest(now + ANSWER_DELAY_MAX.mul_f64(share));
        self.due_at = self.due_at.min(answer_at);
    }

    /// One was sent, or could not be.
    pub(super) fn sent(&mut self, now: Instant, share: Share) {
        self.sent_at = Some(now);
        self.initial_left = self.initial_left.saturating_sub(1);
        let pause = INTERVAL_MIN + (INTERVAL_MAX - INTERVAL_MIN).mul_f64(share);
        let pause = if self.initial_left > 0 { pause.min(INITIAL_INTERVAL) } else { pause };
        self.due_at = now + pause;
    }

    fn earliest(&self, wanted: Instant) -> Instant {
        self.sent_at.map_or(wanted, |at| wanted.max(at + GAP_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn what_is_new_is_told_three_times_then_seldom() {
        let mut schedule = Schedule::new(at(0));
        let mut now = at(0);
        let mut pauses = Vec::new();
        for share in [0.0, 1.0, 0.0, 1.0] {
            assert_eq!(schedule.due_at(), now);
            schedule.sent(now, share);
            pauses.push(schedule.due_at().since(now).as_secs());
            now = schedule.due_at();
        }
        assert_eq!(pauses, [16, 16, 198, 600]);
    }

    #[test]
    fn questions_are_answered_soon_but_never_within_three_seconds_of_the_last() {
        let mut schedule = Schedule::new(at(0));
        schedule.sent(at(0), 0.5);
        for ms in 100..200 {
            schedule.is_asked(at(ms), 1.0);
        }
        assert_eq!(schedule.due_at(), at(3000));
        schedule.sent(at(3000), 0.5);
        schedule.is_asked(at(9000), 1.0);
        assert_eq!(schedule.due_at(), at(9500));
        schedule.is_asked(at(9200), 0.0);
        assert_eq!(schedule.due_at(), at(9200), "the earlier of both");
        schedule.sent(at(9200), 0.5);
        schedule.is_asked(at(9300), 0.0);
        assert_eq!(schedule.due_at(), at(12_200));
    }

    #[test]
    fn news_are_told_again_three_times() {
        let mut schedule = Schedule::new(at(0));
        for second in [0, 16, 32] {
            schedule.sent(at(second * 1000), 0.0);
        }
        assert_eq!(schedule.due_at(), at(230_000));
        schedule.has_news(at(33_000));
        assert_eq!(schedule.due_at(), at(35_000), "after the gap");
        schedule.sent(at(35_000), 0.0);
        assert_eq!(schedule.due_at(), at(51_000));
    }
}
