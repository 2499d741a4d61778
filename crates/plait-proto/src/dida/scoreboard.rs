//! What a client has received above its acknowledgement number, and from when on its sender is
//! told of each hole below.

use std::collections::VecDeque;

use crate::time::Instant;
use crate::wire::tcp::{SackBlock, TcpSeq};

/// Islands that are remembered of a flow: as many holes as a path with 200 ms of delay more leaves
/// at 30 Mbit/s. Beyond that the flow's sender is told everything.
const ISLANDS_MAX: usize = 512;

/// Blocks that fit a TCP header (RFC 2018 §3).
pub(super) const BLOCKS_MAX: usize = 4;

/// The blocks of one SACK option.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Blocks {
    blocks: [SackBlock; BLOCKS_MAX],
    count: usize,
}

impl Blocks {
    /// The first of these.
    pub(super) fn of(blocks: impl Iterator<Item = SackBlock>) -> Self {
        let mut all = Self::default();
        blocks.take(BLOCKS_MAX).for_each(|block| all.push(block));
        all
    }

    pub(super) fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..self.count]
    }

    fn push(&mut self, block: SackBlock) {
        self.blocks[self.count] = block;
        self.count += 1;
    }
}

/// Received bytes with a hole below.
#[derive(Clone, Copy, Debug)]
struct Island {
    left: TcpSeq,
    right: TcpSeq,
    /// From when on the sender is told of the hole.
    told_at: Instant,
}

/// The islands of a flow, lowest first, with a hole below each.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    islands: VecDeque<Island>,
    /// More islands than are remembered: everything is told until all holes have filled.
    has_overflowed: bool,
}

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.islands.is_empty()
    }

    /// Everything below `ack` has arrived. The hole that is the lowest now is told at `told_at` or
    /// later, unless it has been told: as long as holes fill in their turn, packets are late.
    pub(super) fn advance(&mut self, now: Instant, ack: TcpSeq, told_at: Instant) {
        let mut told = self.told(now);
        while self.islands.front().is_some_and(|island| !island.right.is_after(ack)) {
            self.islands.pop_front();
            told = told.saturating_sub(1);
        }
        let Some(lowest) = self.islands.front_mut() else {
            self.has_overflowed = false;
            return;
        };
        lowest.left = lowest.left.later(ack);
        if told == 0 {
            lowest.told_at = lowest.told_at.max(told_at);
        }
    }

    /// These bytes have arrived. A hole that was not known is told of from `told_at` on; the parts
    /// of a hole are as old as the whole.
    pub(super) fn insert(&mut self, block: SackBlock, told_at: Instant) {
        let SackBlock { left, right } = block;
        let from = self.islands.partition_point(|island| island.right.is_before(left));
        let to = self.islands.partition_point(|island| !island.left.is_after(right));
        if from < to {
            let end = self.islands[to - 1].right.later(right);
            let first = &mut self.islands[from];
            first.left = if left.is_before(first.left) { left } else { first.left };
            first.right = end;
            self.islands.drain(from + 1..to);
        } else if self.islands.len() >= ISLANDS_MAX {
            self.has_overflowed = true;
        } else {
            let told_at = self.islands.get(from).map_or(told_at, |above| above.told_at);
            self.islands.insert(from, Island { left, right, told_at });
        }
    }

    /// When the sender is told more than now; `None` when nothing is kept from it.
    pub(super) fn tells_more_at(&self, now: Instant) -> Option<Instant> {
        Some(self.islands.get(self.told(now))?.told_at)
    }

    /// Whether the sender is not yet told of the lowest hole; `None` without any hole.
    pub(super) fn hides_first(&self, now: Instant) -> Option<bool> {
        self.islands.front().map(|first| !self.has_overflowed && first.told_at > now)
    }

    /// What may be told in place of `blocks` now: those that lie below the lowest hole that is
    /// hidden, and, where there is room, the highest other islands there. A first block below `ack`
    /// reports duplicates (RFC 2883 §4) and stays.
    pub(super) fn told_blocks(&self, now: Instant, ack: TcpSeq, blocks: &Blocks) -> Blocks {
        let told = self.told(now);
        let mut chosen = Blocks::default();
        for (at, block) in blocks.as_slice().iter().enumerate() {
            let is_dsack = at == 0 && block.left.is_before(ack);
            let island = self.islands.partition_point(|island| island.right.is_before(block.right));
            let is_told = island < told && !block.left.is_before(self.islands[island].left);
            if is_dsack || is_told {
                chosen.push(*block);
            }
        }
        for island in self.islands.range(..told).rev() {
            if chosen.count >= blocks.count {
                break;
            }
            let overlaps = |block: &SackBlock| {
                block.left.is_before(island.right) && block.right.is_after(island.left)
            };
            if !chosen.as_slice().iter().any(overlaps) {
                chosen.push(SackBlock { left: island.left, right: island.right });
            }
        }
        chosen
    }

    /// How many of the islands, from the lowest on, the sender may know of.
    fn told(&self, now: Instant) -> usize {
        let all = self.islands.len();
        if self.has_overflowed {
            return all;
        }
        self.islands.iter().position(|island| island.told_at > now).unwrap_or(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    const fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: TcpSeq(left), right: TcpSeq(right) }
    }

    fn islands(board: &Scoreboard) -> Vec<(u32, u32, u64)> {
        let island = |island: &Island| {
            (island.left.0, island.right.0, (island.told_at.as_nanos() / 1_000_000))
        };
        board.islands.iter().map(island).collect()
    }

    fn told(board: &Scoreboard, ms: u64, ack: u32, blocks: &[SackBlock]) -> Vec<(u32, u32)> {
        let blocks = Blocks::of(blocks.iter().copied());
        let chosen = board.told_blocks(at(ms), TcpSeq(ack), &blocks);
        chosen.as_slice().iter().map(|block| (block.left.0, block.right.0)).collect()
    }

    #[test]
    fn holes_keep_their_age_when_they_shrink_and_split() {
        let mut board = Scoreboard::default();
        board.insert(block(20, 30), at(50));
        board.insert(block(40, 50), at(60));
        assert_eq!(islands(&board), [(20, 30, 50), (40, 50, 60)]);
        board.insert(block(34, 36), at(70));
        assert_eq!(islands(&board), [(20, 30, 50), (34, 36, 60), (40, 50, 60)], "split");
        board.insert(block(30, 34), at(80));
        assert_eq!(islands(&board), [(20, 36, 50), (40, 50, 60)], "joined");
        board.insert(block(15, 55), at(90));
        assert_eq!(islands(&board), [(15, 55, 50)], "swallowed");
        board.advance(at(0), TcpSeq(55), at(0));
        assert!(board.is_empty());
    }

    #[test]
    fn nothing_above_the_lowest_hidden_hole_is_told() {
        let mut board = Scoreboard::default();
        for (left, ms) in [(20, 50), (40, 60), (60, 55)] {
            board.insert(block(left, left + 10), at(ms));
        }
        let newest = [block(60, 70), block(20, 30)];
        assert_eq!(told(&board, 49, 10, &newest), []);
        assert_eq!(
            (board.tells_more_at(at(49)), board.hides_first(at(49))),
            (Some(at(50)), Some(true))
        );
        assert_eq!(told(&board, 50, 10, &newest), [(20, 30)]);
        assert_eq!(board.hides_first(at(50)), Some(false));
        assert_eq!(told(&board, 57, 10, &newest), [(20, 30)], "an older hole above a hidden one");
        assert_eq!(told(&board, 60, 10, &newest), [(60, 70), (20, 30)]);
        assert_eq!(
            told(&board, 60, 10, &newest[1..]),
            [(20, 30)],
            "no more blocks than there were"
        );
        assert_eq!(board.tells_more_at(at(60)), None);
    }

    #[test]
    fn a_hole_that_becomes_the_lowest_waits_again_unless_it_was_told() {
        let mut board = Scoreboard::default();
        for (left, ms) in [(20, 50), (40, 55), (60, 90)] {
            board.insert(block(left, left + 10), at(ms));
        }
        let mut early = board.clone();
        early.advance(at(49), TcpSeq(30), at(99));
        assert_eq!(islands(&early), [(40, 50, 99), (60, 70, 90)]);
        board.advance(at(55), TcpSeq(30), at(105));
        assert_eq!(islands(&board), [(40, 50, 55), (60, 70, 90)]);
        board.advance(at(60), TcpSeq(50), at(110));
        assert_eq!(islands(&board), [(60, 70, 110)]);
    }

    #[test]
    fn room_that_is_left_tells_of_what_ripened_last() {
        let mut board = Scoreboard::default();
        for (left, ms) in [(20, 50), (40, 50), (60, 90)] {
            board.insert(block(left, left + 10), at(ms));
        }
        assert_eq!(told(&board, 50, 10, &[block(60, 70)]), [(40, 50)]);
        assert_eq!(told(&board, 50, 10, &[block(60, 70), block(62, 64)]), [(40, 50), (20, 30)]);
    }

    #[test]
    fn a_report_of_duplicates_stays() {
        let mut board = Scoreboard::default();
        board.insert(block(20, 30), at(50));
        assert_eq!(told(&board, 0, 10, &[block(2, 5), block(20, 30)]), [(2, 5)]);
        assert_eq!(told(&board, 0, 10, &[block(22, 25), block(20, 30)]), [], "above, it betrays");
    }

    #[test]
    fn too_many_holes_are_told_until_all_have_filled() {
        let mut board = Scoreboard::default();
        for n in 0..=ISLANDS_MAX as u32 {
            board.insert(block(10 * n + 5, 10 * n + 10), at(50));
        }
        assert_eq!(board.islands.len(), ISLANDS_MAX);
        assert_eq!(board.hides_first(at(0)), Some(false));
        assert_eq!(told(&board, 0, 0, &[block(5, 10)]), [(5, 10)]);
        board.advance(at(0), TcpSeq(1_000_000), at(0));
        board.insert(block(2_000_000, 2_000_010), at(50));
        assert_eq!(board.hides_first(at(0)), Some(true));
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut board = Scoreboard::default();
        board.insert(block(u32::MAX - 5, 3), at(50));
        board.insert(block(10, 20), at(50));
        assert_eq!(told(&board, 50, u32::MAX - 9, &[block(10, 20)]), [(10, 20)]);
        board.advance(at(50), TcpSeq(3), at(60));
        assert_eq!(islands(&board), [(10, 20, 50)], "it has been told");
    }
}
