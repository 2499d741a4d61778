//! A set of bytes of sequence space, kept as disjoint ranges that do not touch.

use std::collections::BTreeMap;

use super::segment::SeqRange;

#[derive(Clone, Debug, Default)]
pub(super) struct RangeSet {
    /// End by start.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
}

impl RangeSet {
    /// Adds `range` and returns those parts of it that were missing, in order.
    pub(super) fn insert(&mut self, range: SeqRange) -> Vec<SeqRange> {
        if range.is_empty() {
            return Vec::new();
        }
        let mut merged = range;
        let mut missing = Vec::new();
        let mut covered_to = range.start;
        // Only ranges that touch are visited: the last one that starts before, and those inside.
        let from = self.ranges.range(..=range.start).next_back().map_or(range.start, |(s, _)| *s);
        let touching: Vec<(u64, u64)> = self
            .ranges
            .range(from..=range.end)
            .map(|(start, end)| (*start, *end))
            .filter(|(_, end)| *end >= range.start)
            .collect();
        for (start, end) in touching {
            if start > covered_to {
                missing.push(SeqRange { start: covered_to, end: start });
            }
            covered_to = covered_to.max(end);
            merged = SeqRange { start: merged.start.min(start), end: merged.end.max(end) };
            self.ranges.remove(&start);
        }
        if covered_to < range.end {
            missing.push(SeqRange { start: covered_to, end: range.end });
        }
        self.ranges.insert(merged.start, merged.end);
        self.bytes += missing.iter().map(|part| part.end - part.start).sum::<u64>();
        missing
    }

    /// Forgets everything below `seq`.
    pub(super) fn remove_below(&mut self, seq: u64) {
        while let Some(entry) = self.ranges.first_entry().filter(|entry| *entry.key() < seq) {
            let start = *entry.key();
            let end = entry.remove();
            self.bytes -= end.min(seq) - start;
            if end > seq {
                self.ranges.insert(seq, end);
            }
        }
    }

    /// The range that holds the byte `seq`.
    pub(super) fn containing(&self, seq: u64) -> Option<SeqRange> {
        let (&start, &end) = self.ranges.range(..=seq).next_back()?;
        (seq < end).then_some(SeqRange { start, end })
    }

    pub(super) fn first(&self) -> Option<SeqRange> {
        self.ranges.first_key_value().map(|(&start, &end)| SeqRange { start, end })
    }

    /// Where the last range ends.
    pub(super) fn end(&self) -> Option<u64> {
        self.ranges.last_key_value().map(|(_, &end)| end)
    }

    /// How many bytes it has.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> SeqRange {
        SeqRange { start, end }
    }

    #[test]
    fn insertion_merges_and_tells_what_was_missing() {
        let mut set = RangeSet::default();
        assert_eq!(set.insert(range(10, 20)), [range(10, 20)]);
        assert_eq!(set.insert(range(30, 40)), [range(30, 40)]);
        assert_eq!(set.insert(range(12, 18)), []);
        assert_eq!(set.insert(range(5, 35)), [range(5, 10), range(20, 30)]);
        assert_eq!(set.first(), Some(range(5, 40)));
        assert_eq!(set.insert(range(40, 50)), [range(40, 50)]);
        assert_eq!(set.containing(49), Some(range(5, 50)));
        assert_eq!(set.containing(50), None);
    }

    #[test]
    fn removal_below_cuts_a_range() {
        let mut set = RangeSet::default();
        set.insert(range(0, 10));
        set.insert(range(20, 30));
        set.remove_below(25);
        assert_eq!(set.first(), Some(range(25, 30)));
        set.remove_below(30);
        assert!(set.is_empty());
    }
}
