//! The most that the path has delivered lately.

use crate::units::Rate;

/// The maximum of the present and the previous probing cycle (draft-ietf-ccwg-bbr-06 section
/// 5.5.5). Cycles in which the path was not put to the test do not count, so that a sender with
/// little to send forgets nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bandwidth {
    current: Rate,
    previous: Rate,
    /// Whether the present cycle holds a sample of a full pipe.
    is_tested: bool,
}

impl Bandwidth {
    pub(super) fn get(&self) -> Rate {
        self.current.max(self.previous)
    }

    /// Takes a sample; `is_full` says that there was enough in flight to fill the pipe.
    pub(super) fn update(&mut self, rate: Rate, is_full: bool) {
        if is_full || rate > self.get() {
            self.current = self.current.max(rate);
            self.is_tested = self.is_tested || is_full;
        }
    }

    /// A new cycle begins.
    pub(super) fn advance(&mut self) {
        if core::mem::take(&mut self.is_tested) {
            self.previous = core::mem::take(&mut self.current);
        }
    }

    /// Forgets all but `rate`.
    pub(super) fn reset(&mut self, rate: Rate) {
        *self = Self { current: rate, previous: Rate::ZERO, is_tested: true };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_lasts_for_two_cycles() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.update(Rate::from_mbit(50), true);
        bandwidth.advance();
        bandwidth.update(Rate::from_mbit(40), true);
        assert_eq!(bandwidth.get(), Rate::from_mbit(50));
        bandwidth.advance();
        assert_eq!(bandwidth.get(), Rate::from_mbit(40));
    }

    #[test]
    fn cycles_without_a_test_forget_nothing_and_learn_more_only() {
        let mut bandwidth = Bandwidth::default();
        bandwidth.update(Rate::from_mbit(50), true);
        for _ in 0..5 {
            bandwidth.advance();
            bandwidth.update(Rate::from_mbit(3), false);
        }
        assert_eq!(bandwidth.get(), Rate::from_mbit(50));
        bandwidth.update(Rate::from_mbit(60), false);
        assert_eq!(bandwidth.get(), Rate::from_mbit(60));
    }
}
