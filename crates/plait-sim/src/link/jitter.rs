//! The varying part of a link's delay.
//!
//! Without reordering: every period a new target is drawn uniformly from 0 to the maximum, and the
//! extra delay moves to it in a straight line. The period is 100 ms, and longer for a maximum above
//! 10 ms, so that the delay never changes by more than a tenth of the elapsed time: packets are not
//! reordered, and while the delay falls the arrival rate is at most a ninth above the sending rate.
//! A draw per packet would either reorder or, with the order enforced, hold a whole train back
//! behind its slowest packet.
//!
//! With reordering: a draw per packet.

use plait_proto::time::{Duration, Instant};

use crate::prng::Prng;

const PERIOD_MIN: Duration = Duration::from_millis(100);
/// Period over maximum: the reciprocal of the steepest slope.
const PERIOD_PER_MAX: u32 = 10;

/// The process behind the extra delay. Times given must not decrease.
#[derive(Debug)]
pub(super) struct Jitter {
    max: Duration,
    period: Duration,
    /// The extra delay moves from `from` at `start` to `to` one period later.
    start: Instant,
    from: Duration,
    to: Duration,
}

impl Jitter {
    pub(super) fn new(max: Duration, prng: &mut Prng) -> Self {
        let from = draw(max, prng);
        let to = draw(max, prng);
        Self { max, period: period(max), start: Instant::ZERO, from, to }
    }

    /// A new maximum from `now` on, approached from the present value without a step.
    pub(super) fn set_max(&mut self, now: Instant, max: Duration, prng: &mut Prng) {
        self.from = self.at(now, prng);
        self.start = now;
        self.period = period(self.max.max(max));
        self.max = max;
        self.to = draw(max, prng);
    }

    /// The extra delay of a packet that leaves the transmitter at `now`.
    pub(super) fn at(&mut self, now: Instant, prng: &mut Prng) -> Duration {
        if self.max.is_zero() && self.from.is_zero() && self.to.is_zero() {
            return Duration::ZERO;
        }
        self.enter_period_of(now, prng);
        let passed = now.as_nanos().saturating_sub(self.start.as_nanos());
        let (from, to, period) = (nanos(self.from), nanos(self.to), nanos(self.period));
        // Division of 128 bits is slow, and needed only for delays of minutes.
        let weighted = from
            .checked_mul(period - passed)
            .and_then(|left| left.checked_add(to.checked_mul(passed)?));
        let extra = match weighted {
            Some(weighted) => weighted / period,
            None => {
                let left = u128::from(from) * u128::from(period - passed);
                let weighted = left + u128::from(to) * u128::from(passed);
                u64::try_from(weighted / u128::from(period)).unwrap_or(u64::MAX)
            }
        };
        Duration::from_nanos(extra)
    }

    /// Draws the targets up to the period that `now` lies in. After a long silence only the last
    /// two matter, which bounds the work.
    fn enter_period_of(&mut self, now: Instant, prng: &mut Prng) {
        // A smaller maximum makes the next period shorter, and `now` may lie beyond that one too;
        // from then on periods have one length.
        while now >= self.start + self.period {
            let behind = now.since(self.start).as_nanos() / self.period.as_nanos();
            self.from = if behind == 1 { self.to } else { draw(self.max, prng) };
            self.to = draw(self.max, prng);
            let skipped = behind.saturating_mul(self.period.as_nanos());
            self.start += Duration::from_nanos(u64::try_from(skipped).unwrap_or(u64::MAX));
            self.period = period(self.max.max(self.from));
        }
    }
}

/// An extra delay for one packet: uniform from 0 to `max`, independent of others.
pub(super) fn independent(max: Duration, prng: &mut Prng) -> Duration {
    if max.is_zero() { Duration::ZERO } else { draw(max, prng) }
}

fn draw(max: Duration, prng: &mut Prng) -> Duration {
    Duration::from_nanos(prng.up_to(nanos(max)))
}

fn nanos(duration: Duration) -> u64 {
    // The 128 bits of `Duration::as_nanos` would be many instructions for each packet.
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(duration.subsec_nanos()))
}

fn period(max: Duration) -> Duration {
    PERIOD_MIN.max(max.saturating_mul(PERIOD_PER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_the_range_and_moves_slowly() {
        let mut prng = Prng::new(3);
        let max = Duration::from_millis(10);
        let mut jitter = Jitter::new(max, &mut prng);
        let step = Duration::from_millis(1);
        let (mut now, mut before) = (Instant::ZERO, jitter.at(Instant::ZERO, &mut prng));
        let (mut low, mut high) = (before, before);
        for _ in 0..60_000 {
            now += step;
            let extra = jitter.at(now, &mut prng);
            assert!(extra <= max);
            assert!(extra.abs_diff(before) <= step / 10 + Duration::from_nanos(1));
            (low, high, before) = (low.min(extra), high.max(extra), extra);
        }
        assert!(low < Duration::from_micros(500) && high > Duration::from_micros(9_500));
    }

    #[test]
    fn no_jitter_is_no_delay() {
        let mut prng = Prng::new(3);
        let mut jitter = Jitter::new(Duration::ZERO, &mut prng);
        assert_eq!(jitter.at(Instant::from_millis(1234), &mut prng), Duration::ZERO);
    }

    #[test]
    fn a_new_maximum_makes_no_step() {
        let mut prng = Prng::new(3);
        let mut jitter = Jitter::new(Duration::from_millis(10), &mut prng);
        let now = Instant::from_millis(150);
        let before = jitter.at(now, &mut prng);
        jitter.set_max(now, Duration::from_millis(40), &mut prng);
        assert!(jitter.at(now, &mut prng).abs_diff(before) <= Duration::from_nanos(1));
        jitter.set_max(now, Duration::ZERO, &mut prng);
        assert!(jitter.at(now, &mut prng).abs_diff(before) <= Duration::from_nanos(2));
        assert_eq!(jitter.at(Instant::from_millis(5_000), &mut prng), Duration::ZERO);
    }
    #[test]
    fn regression_a_smaller_maximum_shortens_the_next_period_only() {
        let mut prng = Prng::new(3);
        let mut jitter = Jitter::new(Duration::from_millis(60), &mut prng);
        jitter.set_max(Instant::from_millis(100), Duration::from_millis(5), &mut prng);
        // The current period lasts 600 ms, later ones 100 ms.
        let extra = jitter.at(Instant::from_millis(1_250), &mut prng);
        assert!(extra <= Duration::from_millis(5), "{extra:?}");
    }
}
