//! Loss recovery without SACK (RFC 6582, RFC 5681 section 3.2): three duplicate acknowledgements
//! mean a loss, and each one means that a segment arrived beyond the gap.

/// RFC 5681's DupThresh.
const DUP_THRESH: u64 = 3;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewReno {
    /// Duplicate acknowledgements that no cumulative advance has covered yet.
    duplicates: u64,
    /// The end of the latest recovery; duplicates at exactly this byte may come from its own
    /// retransmissions (RFC 6582 section 3.2, step 2).
    recover: Option<u64>,
}

impl NewReno {
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
        self.duplicates >= DUP_THRESH
    }

    /// Segments that have arrived beyond the gap, according to duplicates.
    pub(super) const fn arrived_segments(&self) -> u64 {
        self.duplicates
    }

    /// A recovery of the data below `recover` begins.
    pub(super) fn on_recovery(&mut self, recover: u64) {
        self.recover = Some(recover);
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
        let mut reno = NewReno::default();
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
        let mut reno = NewReno::default();
        (0..6).for_each(|_| reno.on_duplicate_in_recovery());
        assert_eq!(reno.on_advance(3, true), 1);
        assert_eq!(reno.arrived_segments(), 4, "two of six lay below");
        assert_eq!(reno.on_advance(1, true), 1);
        assert_eq!(reno.arrived_segments(), 4);
    }

    #[test]
    fn duplicates_of_the_last_recoverys_end_do_not_count() {
        let mut reno = NewReno::default();
        reno.on_recovery(10_000);
        assert!(!reno.on_duplicate(10_000));
        assert!(reno.on_duplicate(10_001));
    }
}
