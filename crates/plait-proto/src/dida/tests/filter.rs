//! SACK blocks above young holes are left out, and told when the holes are old.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn late_packets_stay_hidden_while_a_loss_is_told() {
    let stats = golden(
        filtering(),
        "data 0-30             ->
         ack 1                 -> 1
         ack 1 [2-3]           -> held
         ack 1 [2-6]           -> held
         wait 30               ->
         ack 1 [2-6] [7-8]     -> held
         wait 20               -> 1[2-3] 1[2-6] 1[2-6]
         ack 1 [2-6] [7-9]     -> 1[2-6]
         ack 1 [2-9]           -> 1[2-9]
         ack 1 [10-11] [2-9]   -> 1[2-9]
         ack 9 [10-12]         -> 9
         ack 12                -> 12",
    );
    assert_eq!((stats.held_ends.expired, stats.held_ends.discarded), (3, 0));
}

/// The second hole is as old as the first, so that it is told as soon as it is the lowest.
#[test]
fn a_hole_is_not_hidden_anew_when_the_one_below_fills() {
    golden(
        filtering(),
        "data 0-30             ->
         ack 1                 -> 1
         ack 1 [2-3]           -> held
         ack 1 [4-5] [2-3]     -> held
         wait 50               -> 1[2-3] 1[4-5][2-3]
         ack 3 [4-6]           -> 3[4-6]
         ack 3 [4-7]           -> 3[4-7]
         ack 3 [4-8]           -> 3[4-8]",
    );
}

/// A report of duplicates goes on, without the blocks that would betray late packets.
#[test]
fn a_report_of_duplicates_tells_of_no_young_hole() {
    golden(
        filtering(),
        "data 0-30             ->
         ack 5                 -> 5
         ack 5 [2-3] [6-9]     -> 5[2-3]
         wait 50               -> 5[2-3][6-9]",
    );
}

#[test]
fn without_sack_the_timer_and_the_release_decide() {
    golden(
        filtering(),
        "data 0-30  ->
         ack 1      -> 1
         ack 1      -> 1
         ack 1      -> 1
         ack 1      -> held
         wait 50    -> 1
         ack 1      -> 1
         ack 4      -> 4
         ack 4      -> 4
         ack 4      -> 4
         ack 4      -> 4",
    );
}

/// Duplicates without blocks are held by the timer of their gap. A block that comes later opens a
/// hole with a time of its own, and the duplicates wait no longer for that.
#[test]
fn blocks_that_come_late_prolong_no_hold() {
    let stats = golden(
        filtering(),
        "data 0-12           ->
         ack 1               -> 1
         ack 1               -> 1
         ack 1               -> 1
         ack 1               -> held
         wait 30             ->
         ack 1 [2-3] win 400 -> 1w400
         wait 19             ->
         wait 1              -> 1 1w400
         wait 29             ->
         wait 1              -> 1[2-3]w400
         wait 500            ->",
    );
    assert_eq!((stats.held_ends.expired, stats.held_now), (1, 0));
}

/// Segments that arrive out of order; every packet of the client is checked against what it may
/// tell.
struct Client {
    case: Case,
    arrived: BTreeSet<u32>,
    ack: u32,
    /// Holes with the time at which they were first reported.
    holes: Vec<(u32, Instant)>,
}

const SEGMENTS: u32 = 40;

impl Client {
    fn new() -> Self {
        let mut case = Case::new(filtering(), false);
        case.line(&format!("data 0-{SEGMENTS}"));
        case.line("ack 0");
        case.up.clear();
        Self { case, arrived: BTreeSet::new(), ack: 0, holes: Vec::new() }
    }

    fn arrive(&mut self, segment: u32) {
        self.arrived.insert(segment);
        while self.arrived.contains(&self.ack) {
            self.ack += 1;
        }
        let mut blocks = Vec::new();
        let mut at = self.ack;
        while at < SEGMENTS {
            let Some(&left) = self.arrived.range(at..).next() else { break };
            let right = (left..).find(|next| !self.arrived.contains(next)).unwrap_or(SEGMENTS);
            blocks.push((left, right));
            at = right;
        }
        // The block of the latest segment first, then the highest others (RFC 2018 section 4).
        blocks.sort_by_key(|&(left, right)| {
            (!(left..right).contains(&segment), core::cmp::Reverse(left))
        });
        let top = self.arrived.last().copied().unwrap_or(0);
        self.holes.retain(|(hole, _)| *hole >= self.ack && !self.arrived.contains(hole));
        for hole in (self.ack..top).filter(|hole| !self.arrived.contains(hole)) {
            if self.holes.iter().all(|(known, _)| *known != hole) {
                self.holes.push((hole, self.case.now));
            }
        }
        let words: Vec<String> =
            blocks.iter().take(3).map(|(left, right)| format!("[{left}-{right}]")).collect();
        self.case.line(&format!("ack {} {}", self.ack, words.join(" ")));
        self.check();
    }

    fn check(&mut self) {
        let young = self.holes.iter().filter(|(_, seen)| self.case.now.since(*seen) < 50 * MS);
        let lowest = young.map(|(hole, _)| *hole).min().unwrap_or(SEGMENTS);
        for line in core::mem::take(&mut self.case.up) {
            let tops = line.split(['-', ']']).skip(1).step_by(2);
            for top in tops.filter_map(|top| top.parse::<u32>().ok()) {
                assert!(top <= lowest, "{line} tells of a hole at {lowest} that is young");
            }
        }
    }
}

proptest! {
    #[test]
    fn no_young_hole_is_betrayed_and_old_ones_are_told(
        steps in vec((0_u32..SEGMENTS - 1, 0_u64..30), 1..60),
    ) {
        let mut client = Client::new();
        for (segment, ms) in steps {
            if !client.arrived.contains(&segment) {
                client.arrive(segment);
            }
            client.case.wait(Duration::from_millis(ms));
            client.check();
        }
        client.case.wait(200 * MS);
        client.check();
        let flow = client.case.dida.table.peek(&client.case.flow).expect("it was met");
        let board = &client.case.dida.table.flow(flow).board;
        prop_assert_eq!(board.is_empty(), client.holes.is_empty());
        prop_assert_eq!(board.tells_more_at(client.case.now), None);
        prop_assert!(client.case.dida.deadlines.is_empty(), "nothing is owed any more");
    }
}
