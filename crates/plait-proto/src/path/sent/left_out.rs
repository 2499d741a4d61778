//! Numbers that were never sent: whoever acknowledges one has not received what it says.

use std::collections::VecDeque;

use super::outcome::NumberRange;

/// Numbers left out that are remembered.
const LEFT_OUT_MAX: usize = 64;

/// The latest numbers that were left out, ascending.
#[derive(Debug, Default)]
pub(super) struct LeftOut(VecDeque<u64>);

impl LeftOut {
    /// A number above all others.
    pub(super) fn add(&mut self, number: u64) {
        if self.0.len() == LEFT_OUT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(number);
    }

    /// Whether any of these runs, from the highest down, names one of them.
    pub(super) fn is_named(&self, ranges: impl Iterator<Item = NumberRange>) -> bool {
        let mut left_out = self.0.iter().rev().copied();
        let Some(mut highest) = left_out.next() else { return false };
        for NumberRange { low, high } in ranges {
            while highest > high {
                let Some(next) = left_out.next() else { return false };
                highest = next;
            }
            if highest >= low {
                return true;
            }
        }
        false
    }
}
