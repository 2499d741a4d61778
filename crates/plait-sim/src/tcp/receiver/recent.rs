//! The order of SACK blocks: the range that the latest segment fell in comes first, then those
//! reported before (RFC 2018 section 4).

use std::collections::VecDeque;

use crate::tcp::ranges::RangeSet;
use crate::tcp::segment::SeqRange;

/// Ranges remembered; Linux's TCP_NUM_SACKS.
const REMEMBERED: usize = 4;

/// A byte of each of the latest ranges, most recent first.
#[derive(Clone, Debug, Default)]
pub(super) struct Recent(VecDeque<u64>);

impl Recent {
    /// A segment that starts at `seq` arrived beyond a gap.
    pub(super) fn note(&mut self, seq: u64) {
        self.0.push_front(seq);
    }

    /// The ranges that still exist, each once; forgets those gone or merged.
    pub(super) fn blocks(&mut self, ranges: &RangeSet) -> Vec<SeqRange> {
        let mut blocks: Vec<SeqRange> = Vec::with_capacity(REMEMBERED);
        self.0.retain(|&seq| {
            let Some(range) = ranges.containing(seq) else { return false };
            let is_new = blocks.len() < REMEMBERED && !blocks.contains(&range);
            if is_new {
                blocks.push(range);
            }
            is_new
        });
        blocks
    }
}
