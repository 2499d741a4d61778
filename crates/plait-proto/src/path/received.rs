//! The runs of packet numbers that arrived on a path, for acknowledgements.

use std::collections::VecDeque;

use crate::seq::PacketNumber;
use crate::wire::control::{ACK_RANGES_MAX, AckRange};

/// Runs of packet numbers, highest first, at most [`ACK_RANGES_MAX`]; the lowest are forgotten.
#[derive(Debug, Default)]
pub struct ReceivedRanges(VecDeque<(u64, u64)>);

impl ReceivedRanges {
    /// Adds a number that passed the replay window. Says whether it left a gap below itself.
    pub fn insert(&mut self, number: PacketNumber) -> bool {
        let number = number.0;
        match self.0.front_mut() {
            None => self.0.push_front((number, number)),
            Some((_, high)) if number == *high + 1 => *high = number,
            Some((_, high)) if number > *high => {
                self.0.push_front((number, number));
                self.0.truncate(ACK_RANGES_MAX);
                return true;
            }
            Some(_) => self.insert_below(number),
        }
        false
    }

    fn insert_below(&mut self, number: u64) {
        let Some(at) = self.0.iter().position(|(low, _)| number + 1 >= *low) else {
            if self.0.len() < ACK_RANGES_MAX {
                self.0.push_back((number, number));
            }
            return;
        };
        let (low, high) = self.0[at];
        if number + 1 == low {
            self.0[at].0 = number;
        } else if number == high + 1 {
            self.0[at].1 = number;
            if at > 0 && self.0[at - 1].0 == number + 1 {
                self.0[at].1 = self.0[at - 1].1;
                self.0.remove(at - 1);
            }
        } else if number > high {
            self.0.insert(at, (number, number));
            self.0.truncate(ACK_RANGES_MAX);
        }
        if let (Some((low, _)), Some((_, below))) =
            (self.0.get(at).copied(), self.0.get(at + 1).copied())
            && low == below + 1
        {
            self.0[at].0 = self.0[at + 1].0;
            self.0.remove(at + 1);
        }
    }

    /// The highest number; `None` when nothing arrived.
    pub fn largest(&self) -> Option<PacketNumber> {
        self.0.front().map(|(_, high)| PacketNumber(*high))
    }

    /// The runs as an acknowledgement carries them. Runs further apart than the field reaches end
    /// the list.
    pub fn to_ack_ranges(&self) -> Vec<AckRange> {
        let mut ranges: Vec<AckRange> = Vec::with_capacity(self.0.len());
        let mut above: Option<u64> = None;
        for (low, high) in &self.0 {
            let gap = above.map_or(Ok(0), |above| u16::try_from(above - high - 1));
            let (Ok(gap), Ok(length)) = (gap, u32::try_from(high - low + 1)) else { break };
            ranges.push(AckRange { gap, length });
            above = Some(*low);
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn numbers(ranges: &ReceivedRanges) -> BTreeSet<u64> {
        let mut set = BTreeSet::new();
        let Some(mut next) = ranges.largest().map(|n| n.0 + 1) else { return set };
        for range in ranges.to_ack_ranges() {
            next -= u64::from(range.gap);
            for _ in 0..range.length {
                next -= 1;
                set.insert(next);
            }
        }
        set
    }

    proptest! {
        #[test]
        fn ranges_hold_what_arrived(arrivals in vec(0_u64..60, 0..60)) {
            let mut ranges = ReceivedRanges::default();
            let mut model = BTreeSet::new();
            for number in arrivals {
                ranges.insert(PacketNumber(number));
                model.insert(number);
            }
            prop_assert_eq!(numbers(&ranges), model);
        }
    }

    #[test]
    fn the_lowest_runs_are_forgotten() {
        let mut ranges = ReceivedRanges::default();
        for n in 0..100 {
            assert_eq!(ranges.insert(PacketNumber(n * 2)), n > 0);
        }
        assert_eq!(ranges.to_ack_ranges().len(), ACK_RANGES_MAX);
    }
}
