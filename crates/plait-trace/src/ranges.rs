//! Which numbers of a growing sequence were seen, with a bounded number of holes.

/// Ranges remembered at most; beyond them the oldest hole counts as seen.
const RANGES_MAX: usize = 256;

/// The numbers seen: ranges in order that do not touch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranges {
    seen: Vec<(u64, u64)>,
}

impl Ranges {
    /// Adds the numbers from `start` to before `end`; gives how many of them are new.
    pub fn add(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let first = self.seen.partition_point(|(_, old_end)| *old_end < start);
        let last = self.seen.partition_point(|(old_start, _)| *old_start <= end);
        let met = &self.seen[first..last];
        let known: u64 =
            met.iter().map(|(a, b)| (*b).min(end).saturating_sub((*a).max(start))).sum();
        let joined = (
            met.first().map_or(start, |(a, _)| start.min(*a)),
            met.last().map_or(end, |(_, b)| end.max(*b)),
        );
        self.seen.splice(first..last, [joined]);
        if self.seen.len() > RANGES_MAX {
            let (start, _) = self.seen[0];
            self.seen[1].0 = start;
            self.seen.remove(0);
        }
        end - start - known
    }

    /// The end of what was seen.
    pub fn end(&self) -> Option<u64> {
        self.seen.last().map(|(_, end)| *end)
    }
}

/// A 32-bit number as the nearest 64-bit one to `near` that ends in it.
pub fn unwrap(number: u32, near: u64) -> u64 {
    let step = number.wrapping_sub(near as u32) as i32;
    near.checked_add_signed(i64::from(step)).unwrap_or_else(|| near.wrapping_add(u64::from(number)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_wrap_both_ways() {
        let near = (7 << 32) + 5;
        assert_eq!(unwrap(9, near), (7 << 32) + 9);
        assert_eq!(unwrap(u32::MAX, near), (7 << 32) - 1);
        assert_eq!(unwrap(3, (7 << 32) - 2), (7 << 32) + 3);
    }

    #[test]
    fn the_oldest_hole_is_given_up() {
        let mut ranges = Ranges::default();
        for hole in 0..RANGES_MAX as u64 + 1 {
            assert_eq!(ranges.add(hole * 10, hole * 10 + 5), 5);
        }
        assert_eq!(ranges.seen.len(), RANGES_MAX);
        assert_eq!(ranges.add(5, 10), 0, "the first hole was given up");
        assert_eq!(ranges.add(15, 20), 5, "the second was not");
    }

    proptest! {
        #[test]
        fn ranges_are_a_set(ops in proptest::collection::vec((0_u64..300, 0_u64..40), 1..100)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, length) in ops {
                let new = (start..start + length).filter(|n| set.insert(*n)).count() as u64;
                prop_assert_eq!(ranges.add(start, start + length), new);
                prop_assert!(ranges.seen.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
