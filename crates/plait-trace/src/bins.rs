//! Sums over time that never take more than a bounded room: whoever has more time than bins makes
//! the bins wider.

/// Bins of a series at most.
pub const BINS_MAX: usize = 512;

/// The bins' common width. All series of one report share it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width {
    nanos: u64,
}

impl Width {
    /// A width of some nanoseconds, at least one.
    pub fn new(nanos: u64) -> Self {
        Self { nanos: nanos.max(1) }
    }

    /// The width in seconds.
    pub fn seconds(self) -> f64 {
        self.nanos as f64 / 1e9
    }

    /// The bin of a moment, in nanoseconds since the start.
    pub fn bin(self, at_ns: u64) -> usize {
        usize::try_from(at_ns / self.nanos).unwrap_or(usize::MAX)
    }

    /// How often the width must double until this moment has a bin.
    pub fn doublings_for(self, at_ns: u64) -> u32 {
        let mut doublings = 0;
        let mut width = self;
        while width.bin(at_ns) >= BINS_MAX {
            width = width.doubled();
            doublings += 1;
        }
        doublings
    }

    /// Twice the width.
    #[must_use]
    pub fn doubled(self) -> Self {
        Self { nanos: self.nanos.saturating_mul(2) }
    }
}

/// A sum per bin, from the first bin that has one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bins {
    first: usize,
    sums: Vec<u64>,
}

impl Bins {
    /// Adds to a bin below [`BINS_MAX`]; the last one takes what is beyond.
    pub fn add(&mut self, bin: usize, amount: u64) {
        let bin = bin.min(BINS_MAX - 1);
        if self.sums.is_empty() {
            self.first = bin;
        }
        if bin < self.first {
            let missing = self.first - bin;
            self.sums.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bin;
        }
        let at = bin - self.first;
        if at >= self.sums.len() {
            self.sums.resize(at + 1, 0);
        }
        self.sums[at] = self.sums[at].saturating_add(amount);
    }

    /// Joins bins in pairs, as when their width doubles.
    pub fn halve(&mut self) {
        let old = std::mem::take(self);
        for (at, sum) in old.sums.into_iter().enumerate() {
            self.add((old.first + at) / 2, sum);
        }
    }

    /// The first bin, and the sums from there on.
    pub fn parts(&self) -> (usize, &[u64]) {
        (self.first, &self.sums)
    }

    /// The sum of all bins.
    pub fn total(&self) -> u64 {
        self.sums.iter().fold(0, |sum, one| sum.saturating_add(*one))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_series_begins_at_its_first_bin() {
        let mut bins = Bins::default();
        bins.add(5, 1);
        bins.add(7, 2);
        bins.add(4, 8);
        assert_eq!(bins.parts(), (4, &[8, 1, 0, 2][..]));
        bins.halve();
        assert_eq!(bins.parts(), (2, &[9, 2][..]));
    }

    proptest! {
        #[test]
        fn widening_keeps_the_sum_and_the_bound(
            moments in proptest::collection::vec((0_u64..u64::MAX, 0_u64..1000), 1..50),
        ) {
            let mut width = Width::new(1_000_000);
            let mut bins = Bins::default();
            for (at, amount) in &moments {
                for _ in 0..width.doublings_for(*at) {
                    width = width.doubled();
                    bins.halve();
                }
                prop_assert!(width.bin(*at) < BINS_MAX);
                bins.add(width.bin(*at), *amount);
            }
            prop_assert_eq!(bins.total(), moments.iter().map(|(_, amount)| amount).sum::<u64>());
            let (first, sums) = bins.parts();
            prop_assert!(first + sums.len() <= BINS_MAX);
        }
    }
}
