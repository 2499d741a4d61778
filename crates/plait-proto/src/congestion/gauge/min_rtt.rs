//! The round-trip time without a queue.

use crate::time::{Duration, Instant};

/// Without a low sample for so long the path is asked for one (draft-ietf-ccwg-bbr-06 section
/// 5.3.4.3, `ProbeRTTInterval`).
const STALE_AFTER: Duration = Duration::from_secs(5);
/// A sample is low when it exceeds the least by this part of it and this much at most: exactly the
/// least comes again only on paths without jitter.
const LOW_PART: u32 = 16;
const LOW_EXTRA: Duration = Duration::from_millis(1);
/// Part and time above the least from which on a queue is certain.
const QUEUE_PART: u32 = 4;
const QUEUE_MIN: Duration = Duration::from_millis(4);
/// Part and time above the least that jitter may explain.
const JITTER_PART: u32 = 16;
const JITTER_MIN: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    least: Option<Duration>,
    low_at: Instant,
}

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.least
    }

    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration) {
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        if rtt <= least + least / LOW_PART + LOW_EXTRA {
            self.low_at = now;
        }
    }

    /// Takes what was measured with the pipe half empty, be it more than was known.
    pub(super) fn adopt(&mut self, now: Instant, rtt: Option<Duration>) {
        self.least = rtt.or(self.least);
        self.low_at = now;
    }

    pub(super) fn is_stale(&self, now: Instant) -> bool {
        now.since(self.low_at) > STALE_AFTER
    }

    pub(super) fn was_low_after(&self, at: Instant) -> bool {
        self.low_at > at
    }

    /// Whether a least round-trip time of `rtt`, over some time, means that a queue stood.
    pub(super) fn has_queue(&self, rtt: Duration) -> bool {
        self.least.is_some_and(|least| rtt > least + (least / QUEUE_PART).max(QUEUE_MIN))
    }

    /// The part of `rtt` that only a queue explains.
    pub(super) fn queue_of(&self, rtt: Duration) -> Duration {
        let Some(least) = self.least else { return Duration::ZERO };
        rtt.saturating_sub(least + (least / JITTER_PART).max(JITTER_MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearly_low_sample_keeps_the_least_fresh_but_does_not_replace_it() {
        let ms = Duration::from_millis;
        let mut min = MinRtt::default();
        min.on_sample(Instant::from_millis(0), ms(32));
        min.on_sample(Instant::from_millis(4_000), ms(35));
        assert_eq!(min.get(), Some(ms(32)));
        min.on_sample(Instant::from_millis(8_000), ms(36));
        assert!(!min.is_stale(Instant::from_millis(9_000)));
        assert!(min.is_stale(Instant::from_millis(9_001)), "32 + 2 + 1 ms is the limit");
    }
}
