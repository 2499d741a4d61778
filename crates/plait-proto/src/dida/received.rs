//! What a client has reported beyond its acknowledgement number, and since when: so that a sender
//! can be told of a gap that has lasted, and not of those that will fill by themselves.

use std::collections::VecDeque;

use crate::time::{Duration, Instant};
use crate::wire::tcp::{SackBlock, TcpSeq};

/// Ranges remembered; the highest are forgotten first, and reported again by the client.
const RANGES_MAX: usize = 64;
/// Moments remembered of the time that something takes to ripen.
const MARKS: u32 = 32;

/// What a client has beyond its acknowledgement number.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// Apart from each other, in order.
    ranges: Vec<SackBlock>,
    /// The highest byte reported, from time to time.
    marks: VecDeque<(Instant, TcpSeq)>,
}

impl Received {
    /// The client acknowledges `ack`, and reports blocks; those below are reports of duplicates.
    /// What is `age` old is ripe.
    pub(super) fn on_report(
        &mut self,
        now: Instant,
        age: Duration,
        ack: TcpSeq,
        blocks: impl Iterator<Item = SackBlock>,
    ) {
        self.ranges.retain(|range| range.right.is_after(ack));
        for block in blocks.filter(|block| is_beyond(block, ack)) {
            self.insert(block);
        }
        if let Some(last) = self.ranges.last() {
            self.mark(now, age, last.right);
        } else {
            self.marks.clear();
        }
    }

    /// What has been known for `age`: the highest first, as a client reports its latest first.
    pub(super) fn ripe(&self, now: Instant, age: Duration) -> impl Iterator<Item = SackBlock> {
        let is_old = |mark: &&(Instant, TcpSeq)| mark.0 + age <= now;
        let limit = self.marks.iter().rev().find(is_old).map(|(_, highest)| *highest);
        let ranges = self.ranges.iter().rev();
        ranges.filter_map(move |range| {
            let limit = limit?;
            let right = if range.right.is_after(limit) { limit } else { range.right };
            let left = range.left;
            left.is_before(right).then_some(SackBlock { left, right })
        })
    }

    fn insert(&mut self, mut block: SackBlock) {
        let apart = |range: &SackBlock, block: &SackBlock| {
            range.right.is_before(block.left) || range.left.is_after(block.right)
        };
        self.ranges.retain(|range| {
            let stays = apart(range, &block);
            if !stays {
                block.left = if range.left.is_before(block.left) { range.left } else { block.left };
                block.right = block.right.later(range.right);
            }
            stays
        });
        let at = self.ranges.partition_point(|range| range.left.is_before(block.left));
        self.ranges.insert(at, block);
        self.ranges.truncate(RANGES_MAX);
    }

    fn mark(&mut self, now: Instant, age: Duration, highest: TcpSeq) {
        // One mark that is old enough says all that older ones say.
        while self.marks.get(1).is_some_and(|(at, _)| *at + age <= now) {
            self.marks.pop_front();
        }
        if self.marks.back().is_some_and(|(_, known)| !highest.is_after(*known)) {
            return;
        }
        // The last mark moves on until it is far enough from the one before.
        let before = self.marks.len().checked_sub(2).map(|at| self.marks[at].0);
        if before.is_some_and(|before| now.since(before) < age / MARKS) {
            self.marks.pop_back();
        }
        self.marks.push_back((now, highest));
    }
}

fn is_beyond(block: &SackBlock, ack: TcpSeq) -> bool {
    block.left.is_after(ack) && block.right.is_after(block.left)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE: Duration = Duration::from_millis(50);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: TcpSeq(left), right: TcpSeq(right) }
    }

    fn report(received: &mut Received, millis: u64, ack: u32, blocks: &[(u32, u32)]) {
        let blocks = blocks.iter().map(|&(left, right)| block(left, right));
        received.on_report(at(millis), AGE, TcpSeq(ack), blocks);
    }

    fn ripe(received: &Received, millis: u64) -> Vec<SackBlock> {
        received.ripe(at(millis), AGE).collect()
    }

    #[test]
    fn only_what_lies_below_what_was_highest_then_is_ripe() {
        let mut received = Received::default();
        report(&mut received, 0, 100, &[(200, 300)]);
        report(&mut received, 10, 100, &[(400, 500), (200, 300)]);
        assert_eq!(ripe(&received, 49), []);
        assert_eq!(ripe(&received, 50), [block(200, 300)]);
        // What lay between has come meanwhile.
        report(&mut received, 55, 100, &[(200, 600)]);
        assert_eq!(ripe(&received, 59), [block(200, 300)]);
        assert_eq!(ripe(&received, 60), [block(200, 500)]);
        report(&mut received, 61, 600, &[]);
        assert_eq!(ripe(&received, 300), [], "the gap is filled");
    }

    #[test]
    fn numbers_wrap_and_reports_of_duplicates_are_none_of_gaps() {
        let mut received = Received::default();
        let top = u32::MAX - 99;
        report(&mut received, 0, top, &[(top.wrapping_sub(500), top), (u32::MAX - 9, 40)]);
        report(&mut received, 1, top, &[(100, 200)]);
        assert_eq!(ripe(&received, 90), [block(100, 200), block(u32::MAX - 9, 40)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut received = Received::default();
        for n in 0..1000 {
            let left = 1000 + n * 100;
            report(&mut received, u64::from(n), 0, &[(left, left + 50)]);
        }
        assert!(received.ranges.len() <= RANGES_MAX);
        assert!(received.marks.len() <= 2 * MARKS as usize + 2, "{}", received.marks.len());
    }
}
