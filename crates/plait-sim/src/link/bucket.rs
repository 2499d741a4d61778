//! Token buckets: a rate, plus a burst of what was not used before.

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

/// A token bucket over bytes at the IP layer. In any time t at most `burst_bytes` + `rate` · t
/// pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// The rate at which tokens come.
    pub rate: Rate,
    /// The most tokens that it holds, in bytes. A longer packet never passes.
    pub burst_bytes: u64,
}

/// Tokens are counted in billionths of a bit: a rate in bits per second times nanoseconds.
const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

/// What a bucket holds. It is full at first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    /// `u64::MAX` is about two gigabytes, and caps any larger bucket.
    nanobits: u64,
    at: Instant,
}

impl Tokens {
    /// A full bucket, whatever its size.
    pub(super) const fn full(now: Instant) -> Self {
        Self { nanobits: u64::MAX, at: now }
    }

    /// Takes tokens for `bytes`; false, without taking any, when there are too few.
    pub(super) fn take(&mut self, now: Instant, bucket: Bucket, bytes: u64) -> bool {
        self.fill(now, bucket);
        let left = self.nanobits.checked_sub(nanobits(bytes));
        self.nanobits = left.unwrap_or(self.nanobits);
        left.is_some()
    }

    /// Takes tokens for `bytes` as soon as there are enough and returns that time; `None`, without
    /// taking any, when there never are. A packet longer than the bucket waits until it is full.
    pub(super) fn take_when_ready(
        &mut self,
        now: Instant,
        bucket: Bucket,
        bytes: u64,
    ) -> Option<Instant> {
        self.fill(now, bucket);
        let needed = nanobits(bytes.min(bucket.burst_bytes));
        if let Some(missing) = needed.checked_sub(self.nanobits).filter(|missing| *missing > 0) {
            if bucket.rate == Rate::ZERO {
                return None;
            }
            let wait = missing.div_ceil(bucket.rate.bits_per_second());
            self.fill(now + Duration::from_nanos(wait), bucket);
        }
        self.nanobits -= needed;
        Some(self.at)
    }

    fn fill(&mut self, now: Instant, bucket: Bucket) {
        let passed = now.as_nanos().saturating_sub(self.at.as_nanos());
        let gained = bucket.rate.bits_per_second().saturating_mul(passed);
        let most = nanobits(bucket.burst_bytes);
        self.nanobits = self.nanobits.saturating_add(gained).min(most);
        self.at = self.at.max(now);
    }
}

fn nanobits(bytes: u64) -> u64 {
    bytes.saturating_mul(NANOBITS_PER_BYTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// A byte in each microsecond.
    const BUCKET: Bucket = Bucket { rate: Rate::from_mbit(8), burst_bytes: 3000 };

    #[test]
    fn what_was_saved_passes_at_once_and_then_the_rate() {
        let mut tokens = Tokens::full(ms(0));
        let taken = [0, 0, 0, 1, 2, 3].map(|at| tokens.take(ms(at), BUCKET, 1500));
        assert_eq!(taken, [true, true, false, false, true, true]);
        assert!(tokens.take(ms(60), BUCKET, 3000), "full again, and no more than that");
        assert!(!tokens.take(ms(60), BUCKET, 1));
        assert!(!tokens.take(ms(600), BUCKET, 3001), "never");
    }

    #[test]
    fn a_shaper_waits_for_what_is_missing() {
        let mut tokens = Tokens::full(ms(0));
        assert_eq!(tokens.take_when_ready(ms(0), BUCKET, 2500), Some(ms(0)));
        let ready = tokens.take_when_ready(ms(0), BUCKET, 1500).unwrap();
        assert_eq!(ready, ms(1));
        assert!(tokens.take_when_ready(ready, BUCKET, 9000).is_some(), "when it is full");
        let still = Bucket { rate: Rate::ZERO, ..BUCKET };
        assert_eq!(Tokens::full(ms(0)).take_when_ready(ms(0), still, 3000), Some(ms(0)));
        assert_eq!(tokens.take_when_ready(ms(9), still, 3000), None);
    }
}
