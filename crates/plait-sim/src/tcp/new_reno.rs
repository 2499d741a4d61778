//! Loss recovery without SACK (RFC 6582, RFC 5681 section 3.2): three duplicate acknowledgements
//! mean a loss, and each one means that a segment arrived beyond the gap.

use super::reordering::{DupThreshold, Reordering};
use super::segment::SeqRange;

#[derive(Clone, Copy, Debug)]
pub(super) struct NewReno {
    /// RFC 5681's DupThresh, which Linux lets rise as far as its `tcp_max_reordering`.
    threshold: Reordering,
    /// Duplicate acknowledgements that no cumulative advance has covered yet.
    duplicates: u64,
    /// The end of the latest recovery; duplicates at exactly this byte may come from its own
    /// retransmissions (RFC 6582 section 3.2, step 2).
    recover: Option<u64>,
}

impl NewReno {
    /// With a threshold of three duplicates that may rise to `threshold_max_segments`.
    pub(super) fn new(segment_bytes: u64, threshold_max_segments: u32) -> Self {
        let threshold =
            Reordering::new(DupThreshold::Adaptive, segment_bytes, threshold_max_segments);
        Self { threshold, duplicates: 0, recover: None }
    }

    /// A duplicate acknowledgement of `una` came. Says whether it counts.
    pub(super) fn on_duplicate(&mut self, una: u64) -> bool {
        let counts = self.recover.is_none_or(|recover| una > recover);
        self.duplicates += u64::from(counts);
        counts
    }

    /// `segments` were cumulatively acknowledged, the first of which had been missing. Returns how
    /// many of them no duplicate had reported: at least one.
    pub(super) fn on_advance(&mut self, segments: u64, is_repairing: bool) -> u64 {
        let known = self.duplicates.min(segments.saturating_sub(1));
        self.duplicates = if is_repairing { self.duplicates - known } else { 0 };
        segments - known
    }

    /// Whether the duplicates show a loss.
    pub(super) const fn shows_loss(&self) -> bool {
        self.duplicates >= self.threshold.threshold_segments()
    }

    /// Segments that have arrived beyond the gap, according to duplicates.
    pub(super) const fn arrived_segments(&self) -> u64 {
        self.duplicates
    }

    /// A recovery of the data below `recover` begins.
    pub(super) fn on_recovery(&mut self, recover: u64) {
        self.recover = Some(recover);
    }

    /// If more duplicates came than can have arrived of the `segments` that are `outstanding`, some
    /// were for retransmissions, and the data was reordered. Says whether all of them count.
    pub(super) fn limit(&mut self, outstanding: SeqRange, segments: u64) -> bool {
        let beyond = segments.saturating_sub(1);
        let fits = self.duplicates <= beyond;
        if !fits {
            self.duplicates = beyond;
            self.threshold.on_reordered(outstanding);
        }
        fits
    }

    /// An original filled the first of the gaps in `outstanding`, none of which was lost. The
    /// recovery was undone, so the next duplicates count again at any byte, as in Linux.
    pub(super) fn on_undo(&mut self, outstanding: SeqRange) {
        self.recover = None;
        self.threshold.on_reordered(outstanding);
    }

    /// The timer fired outside of a recovery.
    pub(super) fn on_timeout_in_disorder(&mut self) {
        self.threshold.on_timeout_in_disorder(self.duplicates);
    }

    /// During fast recovery every duplicate counts, at any byte.
    pub(super) fn on_duplicate_in_recovery(&mut self) {
        self.duplicates += 1;
    }

    /// A recovery ended, or a timeout made the duplicates mean nothing.
    pub(super) fn forget_duplicates(&mut self) {
        self.duplicates = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_duplicate_shows_a_loss_and_an_advance_forgets_it() {
        let mut reno = NewReno::new(1000, 3);
        for _ in 0..2 {
            assert!(reno.on_duplicate(0));
        }
        assert!(!reno.shows_loss());
        reno.on_duplicate(0);
        assert!(reno.shows_loss());
        assert_eq!(reno.on_advance(4, false), 1, "three were spoken for");
        assert_eq!(reno.arrived_segments(), 0);
    }

    #[test]
    fn a_partial_advance_leaves_the_duplicates_beyond_it() {
        let mut reno = NewReno::new(1000, 3);
        (0..6).for_each(|_| reno.on_duplicate_in_recovery());
        assert_eq!(reno.on_advance(3, true), 1);
        assert_eq!(reno.arrived_segments(), 4, "two of six lay below");
        assert_eq!(reno.on_advance(1, true), 1);
        assert_eq!(reno.arrived_segments(), 4);
    }

    #[test]
    fn the_threshold_rises_with_what_was_late_as_far_as_allowed() {
        let outstanding = SeqRange { start: 0, end: 200_000 };
        for (most, expected) in [(3, true), (127, false)] {
            let mut reno = NewReno::new(1000, most);
            (0..3).for_each(|_| assert!(reno.on_duplicate(0)));
            assert!(reno.shows_loss());
            reno.on_undo(outstanding);
            assert_eq!(reno.shows_loss(), expected);
            (0..124).for_each(|_| assert!(reno.on_duplicate(0)));
            assert!(reno.shows_loss(), "127 duplicates");
        }
    }

    #[test]
    fn no_more_duplicates_count_than_segments_can_have_arrived() {
        let mut reno = NewReno::new(1000, 3);
        (0..4).for_each(|_| assert!(reno.on_duplicate(0)));
        let outstanding = SeqRange { start: 0, end: 5000 };
        assert!(reno.limit(outstanding, 5));
        reno.on_duplicate(0);
        assert!(!reno.limit(outstanding, 5));
        assert_eq!(reno.arrived_segments(), 4);
    }

    #[test]
    fn duplicates_of_the_last_recoverys_end_do_not_count() {
        let mut reno = NewReno::new(1000, 3);
        reno.on_recovery(10_000);
        assert!(!reno.on_duplicate(10_000));
        assert!(reno.on_duplicate(10_001));
        reno.on_undo(SeqRange { start: 9000, end: 10_000 });
        assert!(reno.on_duplicate(10_000), "an undone recovery has left nothing behind");
    }
}
