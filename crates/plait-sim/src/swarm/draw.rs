//! Random numbers of the swarm: integers only, all from one seed.

use plait_proto::time::Duration;

use crate::prng::Prng;
use crate::ratio::Ratio;

/// A generator with the draws that plans are made of.
#[derive(Clone, Debug)]
pub(super) struct Draw(Prng);

impl Draw {
    pub(super) const fn new(seed: u64) -> Self {
        Self(Prng::new(seed))
    }

    pub(super) const fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.up_to(high.saturating_sub(low))
    }

    /// From `low` to `high`, log-uniform: each doubling is equally likely.
    pub(super) fn spread(&mut self, low: u64, high: u64) -> u64 {
        let low = low.max(1);
        let doublings = (high / low).max(1).ilog2();
        let floor = low << self.between(0, doublings.into());
        self.between(floor, (2 * floor).min(high))
    }

    /// True once in `count` draws.
    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.between(1, count) == 1
    }

    pub(super) fn happens(&mut self, ratio: Ratio) -> bool {
        ratio.ppm() > 0 && ratio.happens(&mut self.0)
    }

    pub(super) fn pick<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.index(N)]
    }

    /// An index below `length`, which is not zero.
    pub(super) fn index(&mut self, length: usize) -> usize {
        self.between(0, length as u64 - 1) as usize
    }

    /// Between two numbers of milliseconds.
    pub(super) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.between(low * 1000, high * 1000))
    }

    /// As [`Self::spread`], in milliseconds.
    pub(super) fn millis_spread(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_micros(self.spread(low * 1000, high * 1000))
    }

    /// A share of at most `max` per cent.
    pub(super) fn percent(&mut self, max: u64) -> Ratio {
        let ppm = self.between(0, max.min(100) * 10_000);
        Ratio::from_ppm(u32::try_from(ppm).expect("a million fits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_range() {
        let mut draw = Draw::new(1);
        for _ in 0..10_000 {
            assert!((3..=5).contains(&draw.between(3, 5)));
            assert!((500..=100_000).contains(&draw.spread(500, 100_000)));
            assert_eq!(draw.between(7, 7), 7);
            assert!(draw.percent(20) <= Ratio::from_percent(20));
        }
        let small = (0..10_000).filter(|_| draw.spread(1, 1024) < 32).count();
        assert!((4_000..6_500).contains(&small), "{small} of 10000 in the lower half of doublings");
    }
}
