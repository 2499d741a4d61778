//! Attributes lost bond sequence numbers to paths.
//!
//! A gap in the bond sequence says that a packet is lost, not where; a gap in the packet numbers of
//! a path says where, but counts control datagrams too, and numbers that were left out. So every
//! lost bond sequence number is laid on a path whose packet numbers have a gap that explains no
//! loss yet (002: the global number detects, the local one attributes).

use crate::seq::{PacketNumber, PathId};

/// A gap that explains no loss while so many numbers arrive never will: it is a control datagram's,
/// or was left out (spec K-5).
const GAP_NUMBERS_MAX: u64 = 8192;

#[derive(Debug)]
struct PathGaps {
    path: PathId,
    /// One more than the highest packet number received.
    next: u64,
    received: u64,
    lost: u64,
    late: u64,
    /// Gaps that will explain no loss any more.
    written_off: u64,
    /// Those without a loss when the last stretch of [`GAP_NUMBERS_MAX`] began, and where it ends.
    open_before: u64,
    stretch_ends: u64,
}

impl PathGaps {
    fn new(path: PathId) -> Self {
        Self {
            path,
            next: 0,
            received: 0,
            lost: 0,
            late: 0,
            written_off: 0,
            open_before: 0,
            stretch_ends: GAP_NUMBERS_MAX,
        }
    }

    /// Missing packet numbers that explain no loss yet. Packets that were attributed and came late
    /// have left the gaps, so they no longer use one up.
    fn unattributed(&self) -> u64 {
        (self.next - self.received).saturating_sub(self.lost - self.late + self.written_off)
    }

    /// Writes off what was open all through a stretch.
    fn age(&mut self) {
        if self.next < self.stretch_ends {
            return;
        }
        let open = self.unattributed();
        self.written_off += open.min(self.open_before);
        self.open_before = self.unattributed();
        self.stretch_ends = self.next + GAP_NUMBERS_MAX;
    }
}

/// Losses of one path, cumulative.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathLoss {
    /// Packets counted lost.
    pub lost: u64,
    /// Of those, packets that arrived late after all.
    pub late: u64,
}

impl PathLoss {
    /// Lost, less those that arrived late.
    pub fn net(self) -> u64 {
        self.lost - self.late
    }
}

/// Gaps in the packet numbers of a bond's paths, and the losses laid on them.
///
/// The owner calls [`Self::received`] for every datagram that passed the replay window, duplicates
/// excluded.
#[derive(Debug, Default)]
pub struct PathGapCounter {
    paths: Vec<PathGaps>,
    unplaced: u64,
    /// The peer leaves numbers out: gaps that explain nothing for long are written off.
    writes_off: bool,
}

impl PathGapCounter {
    /// No path, no loss.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether the peer leaves numbers out (spec K-5), so that not every gap is a loss.
    pub fn set_leaves_out(&mut self, leaves_out: bool) {
        self.writes_off = leaves_out;
    }

    /// Takes a received packet number of `path`; numbers start at 0. A new gap takes losses that
    /// had found no place.
    pub fn received(&mut self, path: PathId, number: PacketNumber) {
        let writes_off = self.writes_off;
        let gaps = self.entry(path);
        let opens_gap = number.0 > gaps.next;
        gaps.next = gaps.next.max(number.0 + 1);
        // A number given twice would make more received than sent.
        gaps.received = (gaps.received + 1).min(gaps.next);
        if writes_off {
            gaps.age();
        }
        if opens_gap && self.unplaced > 0 {
            self.attribute(0);
        }
    }

    fn entry(&mut self, path: PathId) -> &mut PathGaps {
        let index = self.paths.iter().position(|gaps| gaps.path == path).unwrap_or_else(|| {
            self.paths.push(PathGaps::new(path));
            self.paths.len() - 1
        });
        &mut self.paths[index]
    }

    /// Lays `count` newly lost bond sequence numbers, and those that found no place before, on the
    /// paths: in proportion to their unattributed gaps, and not beyond them. What finds no place,
    /// because the path has not shown its gap yet, waits for the next gap.
    pub fn attribute(&mut self, count: u64) {
        self.unplaced += count;
        let mut gaps_left: u64 = self.paths.iter().map(PathGaps::unattributed).sum();
        let mut to_place = self.unplaced.min(gaps_left);
        self.unplaced -= to_place;
        for path in &mut self.paths {
            let gaps = path.unattributed();
            if gaps == 0 {
                continue;
            }
            // Rounded to nearest; the running totals leave no rest at the last path.
            let share = (u128::from(to_place) * u128::from(gaps) * 2 + u128::from(gaps_left))
                / (u128::from(gaps_left) * 2);
            let share = (share as u64).min(gaps).min(to_place);
            path.lost += share;
            to_place -= share;
            gaps_left -= gaps;
        }
        self.unplaced += to_place;
    }

    /// Takes back one loss: a packet counted lost arrived over `path`. If none was laid on that
    /// path, one that has no place is taken back instead, or one of the path with the most.
    pub fn late(&mut self, path: PathId) {
        let open = |gaps: &PathGaps| gaps.lost > gaps.late;
        if let Some(own) = self.paths.iter_mut().find(|gaps| gaps.path == path && open(gaps)) {
            own.late += 1;
        } else if self.unplaced > 0 {
            self.unplaced -= 1;
        } else if let Some(other) = self.paths.iter_mut().max_by_key(|gaps| gaps.lost - gaps.late)
            && open(other)
        {
            other.late += 1;
        }
    }

    /// The losses of a path so far.
    pub fn loss(&self, path: PathId) -> PathLoss {
        let gaps = self.paths.iter().find(|gaps| gaps.path == path);
        gaps.map_or_else(PathLoss::default, |gaps| PathLoss { lost: gaps.lost, late: gaps.late })
    }

    /// Losses without a place so far.
    pub fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// Removes a path that is dead and returns its losses; those without a place go to it, because
    /// what a path loses last leaves no gap.
    pub fn remove(&mut self, path: PathId) -> PathLoss {
        let Some(index) = self.paths.iter().position(|gaps| gaps.path == path) else {
            return PathLoss::default();
        };
        let gaps = self.paths.remove(index);
        let unplaced = core::mem::take(&mut self.unplaced);
        PathLoss { lost: gaps.lost + unplaced, late: gaps.late }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    fn receive(gaps: &mut PathGapCounter, path: PathId, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            gaps.received(path, PacketNumber(number));
        }
    }

    #[test]
    fn a_loss_goes_to_the_path_with_the_gap() {
        let mut gaps = PathGapCounter::new();
        receive(&mut gaps, A, 0..10);
        receive(&mut gaps, B, [0, 1, 4, 5]);
        gaps.attribute(2);
        assert_eq!(gaps.loss(A), PathLoss { lost: 0, late: 0 });
        assert_eq!(gaps.loss(B), PathLoss { lost: 2, late: 0 });
    }

    #[test]
    fn losses_are_spread_in_proportion_to_the_gaps() {
        let mut gaps = PathGapCounter::new();
        receive(&mut gaps, A, [0, 4]);
        receive(&mut gaps, B, [0, 10]);
        gaps.attribute(4);
        assert_eq!((gaps.loss(A).lost, gaps.loss(B).lost), (1, 3));
        gaps.attribute(8);
        assert_eq!((gaps.loss(A).lost, gaps.loss(B).lost, gaps.unplaced()), (3, 9, 0));
    }

    #[test]
    fn a_loss_without_a_gap_waits_for_one() {
        let mut gaps = PathGapCounter::new();
        receive(&mut gaps, A, 0..5);
        gaps.attribute(1);
        assert_eq!(gaps.unplaced(), 1);
        receive(&mut gaps, A, [6]);
        assert_eq!((gaps.loss(A).lost, gaps.unplaced()), (1, 0));
    }

    #[test]
    fn a_late_packet_takes_its_loss_back_and_frees_no_gap_twice() {
        let mut gaps = PathGapCounter::new();
        receive(&mut gaps, A, [0, 3]);
        gaps.attribute(2);
        receive(&mut gaps, A, [1]);
        gaps.late(A);
        assert_eq!(gaps.loss(A), PathLoss { lost: 2, late: 1 });
        assert_eq!(gaps.loss(A).net(), 1);
        gaps.attribute(1);
        assert_eq!(gaps.unplaced(), 1, "the one gap left explains the loss that stayed");
        receive(&mut gaps, A, [5]);
        assert_eq!((gaps.loss(A).lost, gaps.unplaced()), (3, 0), "a new gap explains another");
    }

    /// A path whose sender leaves numbers out must not take the losses of another.
    #[test]
    fn gaps_that_explain_nothing_for_long_are_written_off() {
        let mut gaps = PathGapCounter::new();
        gaps.set_leaves_out(true);
        receive(&mut gaps, A, (0..40_000).filter(|number| number % 1000 != 7));
        receive(&mut gaps, B, (0..100).chain(104..200));
        gaps.attribute(4);
        let lost = [A, B].map(|path| gaps.loss(path).lost);
        assert!(lost[1] >= 1 && lost.iter().sum::<u64>() == 4, "{lost:?}");
        receive(&mut gaps, A, 40_000..80_000);
        receive(&mut gaps, B, [210]);
        gaps.attribute(10);
        assert_eq!([A, B].map(|path| gaps.loss(path).lost), [lost[0], 14 - lost[0]]);
    }

    #[test]
    fn a_number_given_twice_is_no_more_than_received() {
        let mut gaps = PathGapCounter::new();
        receive(&mut gaps, A, [0, 0, 0, 3]);
        gaps.attribute(5);
        assert_eq!(gaps.loss(A).lost, 2);
    }

    #[test]
    fn a_dead_path_takes_the_losses_without_a_place() {
        let mut gaps = PathGapCounter::new();
        receive(&mut gaps, A, 0..5);
        receive(&mut gaps, B, 0..5);
        gaps.attribute(7);
        assert_eq!(gaps.remove(B), PathLoss { lost: 7, late: 0 });
        assert_eq!(gaps.unplaced(), 0);
        assert_eq!(gaps.loss(B), PathLoss::default());
    }
}
