//! The number of segments that must arrive beyond a gap before it counts as a loss, and its
//! adaptation to reordering (Linux's `tcp_reordering`, before RACK).

use super::segment::SeqRange;

/// Duplicate-acknowledgement threshold of SACK-based recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DupThreshold {
    /// A constant, three in RFC 5681 and RFC 6675.
    Fixed(u32),
    /// Three at first; rises to the greatest reordering seen, up to a maximum.
    Adaptive,
}

const INITIAL_SEGMENTS: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct Reordering {
    kind: DupThreshold,
    segment_bytes: u64,
    threshold_segments: u64,
    max_segments: u64,
}

impl Reordering {
    /// The threshold of `kind`; an adaptive one rises to at most `max_segments`.
    pub(super) fn new(kind: DupThreshold, segment_bytes: u64, max_segments: u32) -> Self {
        let threshold_segments = match kind {
            DupThreshold::Fixed(segments) => u64::from(segments.max(1)),
            DupThreshold::Adaptive => INITIAL_SEGMENTS,
        };
        Self { kind, segment_bytes, threshold_segments, max_segments: max_segments.into() }
    }

    pub(super) const fn threshold_segments(&self) -> u64 {
        self.threshold_segments
    }

    /// Whether reordering was seen that the initial threshold would take for a loss.
    pub(super) const fn has_risen(&self) -> bool {
        self.threshold_segments > INITIAL_SEGMENTS
    }

    /// Segments from `gap.start` up to `gap.end`, the highest byte known to have arrived, were
    /// overtaken by later ones: the segment at `gap.start` was late, not lost.
    pub(super) fn on_reordered(&mut self, gap: SeqRange) {
        if self.kind == DupThreshold::Adaptive && !gap.is_empty() {
            let extent = gap.len().div_ceil(self.segment_bytes).min(self.max_segments);
            self.threshold_segments = self.threshold_segments.max(extent);
        }
    }

    /// The timer fired while `sacked_segments` had arrived beyond the gap and the threshold held
    /// recovery back: it was too high.
    pub(super) fn on_timeout_in_disorder(&mut self, sacked_segments: u64) {
        if self.kind == DupThreshold::Adaptive && sacked_segments >= INITIAL_SEGMENTS {
            self.reset();
        }
    }

    /// Forgets what was learned.
    pub(super) fn reset(&mut self) {
        self.threshold_segments = INITIAL_SEGMENTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(start: u64, end: u64) -> SeqRange {
        SeqRange { start: start * 1000, end: end * 1000 }
    }

    #[test]
    fn adaptive_rises_to_the_extent_seen_and_no_further_than_told() {
        let mut reordering = Reordering::new(DupThreshold::Adaptive, 1000, 127);
        assert_eq!(reordering.threshold_segments(), 3);
        reordering.on_reordered(segments(10, 17));
        assert_eq!(reordering.threshold_segments(), 7);
        reordering.on_reordered(segments(20, 24));
        assert_eq!(reordering.threshold_segments(), 7, "it does not fall again");
        reordering.on_reordered(segments(20, 900));
        assert_eq!(reordering.threshold_segments(), 127);
    }

    #[test]
    fn a_timeout_held_back_by_the_threshold_resets_it() {
        let mut reordering = Reordering::new(DupThreshold::Adaptive, 1000, 300);
        reordering.on_reordered(segments(0, 20));
        reordering.on_timeout_in_disorder(2);
        assert_eq!(reordering.threshold_segments(), 20);
        reordering.on_timeout_in_disorder(10);
        assert_eq!(reordering.threshold_segments(), 3);
    }

    #[test]
    fn fixed_stays() {
        let mut reordering = Reordering::new(DupThreshold::Fixed(3), 1000, 300);
        reordering.on_reordered(segments(0, 20));
        assert_eq!(reordering.threshold_segments(), 3);
    }
}
