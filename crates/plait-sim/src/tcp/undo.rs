//! Detects spurious loss recovery: every retransmission was reported as a duplicate (RFC 2883, RFC
//! 3708), or the first acknowledgement that advances echoes a timestamp from before the first
//! retransmission (Eifel, RFC 3522). The rules are those of Linux.

use super::segment::SeqRange;

/// One episode of loss, from its start until a new one begins or it is undone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The lowest outstanding byte when the episode began.
    marker: u64,
    /// Retransmissions not yet reported as duplicates; `None` before the first.
    unreported: Option<u64>,
}

impl Undo {
    /// `under_way` retransmissions of an earlier episode are still out. They count, because they
    /// may fill this episode's gaps.
    pub(super) fn new(marker: u64, under_way: u64) -> Self {
        Self { marker, unreported: (under_way > 0).then_some(under_way) }
    }

    pub(super) fn on_retransmit(&mut self) {
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// The receiver reported that `range` arrived twice.
    pub(super) fn on_dsack(&mut self, range: SeqRange, segment_bytes: u64) {
        if range.end > self.marker {
            let segments = range.len().div_ceil(segment_bytes);
            self.unreported = self.unreported.map(|count| count.saturating_sub(segments));
        }
    }

    /// Whether every retransmission was spurious.
    pub(super) fn all_duplicates(&self) -> bool {
        self.unreported == Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_retransmissions_must_be_reported_as_duplicates() {
        let mut undo = Undo::new(5000, 0);
        assert!(!undo.all_duplicates(), "nothing was retransmitted");
        undo.on_retransmit();
        undo.on_retransmit();
        undo.on_dsack(SeqRange::new(1000, 1000), 1000);
        undo.on_dsack(SeqRange::new(5000, 1000), 1000);
        assert!(!undo.all_duplicates(), "one of two; the other report is of older data");
        undo.on_dsack(SeqRange::new(6000, 1000), 1000);
        assert!(undo.all_duplicates());
    }

    #[test]
    fn a_retransmission_under_way_from_before_counts() {
        let mut undo = Undo::new(0, 1);
        undo.on_retransmit();
        undo.on_dsack(SeqRange::new(0, 1000), 1000);
        assert!(!undo.all_duplicates(), "one of two");
    }
}
