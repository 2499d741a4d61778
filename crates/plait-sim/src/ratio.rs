//! Probabilities and shares as integers: no float affects a seeded run.

use core::fmt;

use crate::prng::Prng;

const MILLION: u32 = 1_000_000;

/// A share in parts per million, from 0 to 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Ratio {
    ppm: u32,
}

impl Ratio {
    /// Nothing, never.
    pub const ZERO: Self = Self { ppm: 0 };
    /// All, always.
    pub const ONE: Self = Self { ppm: MILLION };

    /// `ppm` parts per million; more than a million counts as all.
    pub const fn from_ppm(ppm: u32) -> Self {
        Self { ppm: if ppm > MILLION { MILLION } else { ppm } }
    }

    /// `percent` per cent; more than a hundred counts as all.
    pub const fn from_percent(percent: u32) -> Self {
        Self::from_ppm(percent.saturating_mul(MILLION / 100))
    }

    /// Parts per million.
    pub const fn ppm(self) -> u32 {
        self.ppm
    }

    /// One Bernoulli trial: true with this probability.
    pub fn happens(self, prng: &mut Prng) -> bool {
        prng.up_to(u64::from(MILLION) - 1) < u64::from(self.ppm)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:04} %", self.ppm / 10_000, self.ppm % 10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_never_happens_and_one_always() {
        let mut prng = Prng::new(7);
        for _ in 0..1000 {
            assert!(!Ratio::ZERO.happens(&mut prng));
            assert!(Ratio::ONE.happens(&mut prng));
        }
    }

    #[test]
    fn share_of_trials_is_near_the_ratio() {
        let mut prng = Prng::new(7);
        let ratio = Ratio::from_percent(2);
        let hits = (0..100_000).filter(|_| ratio.happens(&mut prng)).count();
        assert!((1_800..2_200).contains(&hits), "{hits}");
    }

    #[test]
    fn prints_per_cent() {
        assert_eq!(Ratio::from_ppm(12_345).to_string(), "1.2345 %");
        assert_eq!(Ratio::from_percent(900), Ratio::ONE);
    }
}
