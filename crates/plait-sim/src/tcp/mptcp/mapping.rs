//! Where a subflow's bytes lie in the connection (RFC 8684 section 3.3.1). Each segment has one
//! mapping of its own.

use std::collections::VecDeque;

use crate::tcp::segment::SeqRange;

/// Mappings of a subflow that are still needed, in the order of the subflow's bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Mappings {
    entries: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The first byte in the subflow.
    start: u64,
    /// The range in the connection.
    data: SeqRange,
    /// Whether it was asked to be sent again over another subflow.
    is_reinjected: bool,
}

impl Mappings {
    /// The subflow's bytes from `start` on are those of `data`. Known mappings stay.
    pub(super) fn insert(&mut self, start: u64, data: SeqRange) {
        let at = self.entries.partition_point(|entry| entry.start < start);
        if self.entries.get(at).is_none_or(|entry| entry.start != start) {
            self.entries.insert(at, Entry { start, data, is_reinjected: false });
        }
    }

    /// The data of the segment that starts there.
    pub(super) fn get(&self, start: u64) -> Option<SeqRange> {
        let at = self.entries.partition_point(|entry| entry.start < start);
        self.entries.get(at).filter(|entry| entry.start == start).map(|entry| entry.data)
    }

    /// Takes out the first mapping that lies wholly below `end`.
    pub(super) fn pop_below(&mut self, end: u64) -> Option<SeqRange> {
        let lies_below = |entry: &Entry| entry.start + entry.data.len() <= end;
        if !self.entries.front().is_some_and(lies_below) {
            return None;
        }
        self.entries.pop_front().map(|entry| entry.data)
    }

    /// The mapping that holds this byte of the connection.
    pub(super) fn holding(&self, byte: u64) -> Option<SeqRange> {
        let data = self.entries.iter().map(|entry| entry.data);
        data.into_iter().find(|data| data.start <= byte && byte < data.end)
    }

    /// The data of the mappings that reach beyond `una`, each the first time that it is asked for.
    pub(super) fn reinject(&mut self, una: u64) -> Vec<SeqRange> {
        let is_due = |entry: &&mut Entry| entry.data.end > una && !entry.is_reinjected;
        let due = self.entries.iter_mut().filter(is_due);
        due.map(|entry| {
            entry.is_reinjected = true;
            entry.data
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> SeqRange {
        SeqRange { start, end }
    }

    #[test]
    fn mappings_are_found_by_their_first_byte_and_leave_in_order() {
        let mut mappings = Mappings::default();
        mappings.insert(100, range(700, 800));
        mappings.insert(0, range(500, 600));
        mappings.insert(100, range(0, 100));
        assert_eq!(mappings.get(100), Some(range(700, 800)), "the first one stands");
        assert_eq!(mappings.get(50), None);
        assert_eq!(mappings.holding(799), Some(range(700, 800)));
        assert_eq!(mappings.holding(600), None);
        assert_eq!(mappings.reinject(600), [range(700, 800)]);
        assert_eq!(mappings.reinject(0), [range(500, 600)], "the other one was asked for");
        assert_eq!(mappings.pop_below(99), None);
        assert_eq!(mappings.pop_below(150), Some(range(500, 600)));
        assert_eq!(mappings.pop_below(150), None, "half of the next one is not enough");
        assert_eq!(mappings.pop_below(200), Some(range(700, 800)));
    }
}
