//! Loss recovery and window growth of Linux 3.2 (2012), the sender of paper 000's testbed. Beside
//! [`Reordering`]'s adapting threshold it has forward acknowledgement (Mathis and Mahdavi, 1996)
//! until it sees reordering, and a window that grows per acknowledgement, not per byte.

use super::reordering::{DupThreshold, Reordering};
use super::segment::SeqRange;

/// Linux's `TCP_MAX_REORDERING` before 3.18.
const THRESHOLD_MAX_SEGMENTS: u32 = 127;
/// A small flight is repaired when so many segments, and half of it, have been selectively
/// acknowledged and nothing else may be sent.
const SMALL_FLIGHT_SACKED_MIN: u64 = 3;
/// CUBIC's mean of segments per acknowledgement is kept in sixteenths, at most 32 segments.
const RATIO_UNIT: u64 = 16;
const RATIO_MAX: u64 = 32 * RATIO_UNIT;

#[derive(Clone, Copy, Debug)]
pub(super) struct Linux32 {
    reordering: Reordering,
    is_fack: bool,
    /// The threshold and the marking before the latest timeout, which F-RTO restores.
    before_timeout: Option<(Reordering, bool)>,
    /// Segments per acknowledgement, in sixteenths.
    ratio: u64,
    /// Sixteenths of a segment that have not grown the window yet.
    credit: u64,
}

/// An acknowledgement that advanced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advance {
    /// Segments that it acknowledged cumulatively, those known to have arrived included.
    pub(super) segments: u64,
    /// Nothing had been selectively acknowledged before, and no loss is being repaired.
    pub(super) is_orderly: bool,
    pub(super) in_slow_start: bool,
}

impl Linux32 {
    pub(super) fn new(segment_bytes: u64) -> Self {
        Self {
            reordering: Reordering::new(
                DupThreshold::Adaptive,
                segment_bytes,
                THRESHOLD_MAX_SEGMENTS,
            ),
            is_fack: true,
            before_timeout: None,
            // Two segments per acknowledgement.
            ratio: 2 * RATIO_UNIT,
            credit: 0,
        }
    }

    pub(super) const fn threshold_segments(&self) -> u64 {
        self.reordering.threshold_segments()
    }

    /// Whether the highest block alone counts: everything more than the threshold below it is lost.
    pub(super) const fn is_fack(&self) -> bool {
        self.is_fack
    }

    /// As [`Reordering::on_reordered`]; a threshold that rises ends forward acknowledgement for
    /// the rest of the connection.
    pub(super) fn on_reordered(&mut self, gap: SeqRange) {
        let before = self.reordering.threshold_segments();
        self.reordering.on_reordered(gap);
        self.is_fack &= self.reordering.threshold_segments() == before;
    }

    /// Whether the first segment of a flight that is too small for the threshold is lost, when
    /// nothing else may be sent.
    pub(super) fn gives_up_small_flight(&self, flight_segments: u64, sacked_segments: u64) -> bool {
        flight_segments <= self.reordering.threshold_segments()
            && sacked_segments >= SMALL_FLIGHT_SACKED_MIN.max(flight_segments / 2)
    }

    /// The retransmission timer fired: the threshold is three again.
    pub(super) fn on_timeout(&mut self) {
        self.before_timeout = Some((self.reordering, self.is_fack));
        self.reordering.reset();
    }

    /// The timeout was spurious, so that the flight was never taken for lost (F-RTO, RFC 5682).
    pub(super) fn on_spurious_timeout(&mut self) {
        if let Some((reordering, is_fack)) = self.before_timeout.take() {
            (self.reordering, self.is_fack) = (reordering, is_fack);
        }
    }

    /// How many segments the window's growth counts for an acknowledgement that advanced: in slow
    /// start one, later CUBIC's mean of segments per acknowledgement.
    pub(super) fn counted_segments(&mut self, advance: Advance) -> u64 {
        if advance.is_orderly {
            let ratio = self.ratio - self.ratio / RATIO_UNIT + advance.segments;
            self.ratio = ratio.min(RATIO_MAX);
        }
        if advance.in_slow_start {
            return 1;
        }
        self.credit += self.ratio;
        let counted = self.credit / RATIO_UNIT;
        self.credit %= RATIO_UNIT;
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(segments: u64) -> SeqRange {
        SeqRange { start: 0, end: segments * 1000 }
    }

    fn advance(segments: u64, in_slow_start: bool) -> Advance {
        Advance { segments, is_orderly: true, in_slow_start }
    }

    #[test]
    fn the_threshold_is_at_most_127() {
        let mut linux = Linux32::new(1000);
        linux.on_reordered(gap(500));
        assert_eq!(linux.threshold_segments(), 127);
    }

    #[test]
    fn reordering_beyond_the_threshold_ends_forward_acknowledgement_for_good() {
        let mut linux = Linux32::new(1000);
        linux.on_reordered(gap(3));
        assert!(linux.is_fack(), "three segments are within the threshold");
        linux.on_reordered(gap(4));
        assert!(!linux.is_fack());
        linux.on_timeout();
        assert_eq!((linux.threshold_segments(), linux.is_fack()), (3, false));
        linux.on_spurious_timeout();
        assert_eq!(linux.threshold_segments(), 4);
    }

    #[test]
    fn slow_start_counts_acknowledgements_and_avoidance_their_mean_size() {
        let mut linux = Linux32::new(1000);
        assert_eq!(linux.counted_segments(advance(40, true)), 1);
        let mut linux = Linux32::new(1000);
        let counted: u64 = (0..1000).map(|_| linux.counted_segments(advance(2, false))).sum();
        assert_eq!(counted, 2000);
        let mut linux = Linux32::new(1000);
        for _ in 0..1000 {
            linux.counted_segments(advance(100, false));
        }
        assert_eq!(linux.counted_segments(advance(100, false)), 32, "the mean is bounded");
    }

    #[test]
    fn a_small_flight_is_given_up_when_half_of_it_arrived() {
        let mut linux = Linux32::new(1000);
        linux.on_reordered(gap(100));
        assert!(linux.gives_up_small_flight(20, 10));
        assert!(!linux.gives_up_small_flight(20, 9), "less than half");
        assert!(!linux.gives_up_small_flight(4, 2), "less than three");
        assert!(!linux.gives_up_small_flight(101, 60), "the threshold can be reached");
    }
}
