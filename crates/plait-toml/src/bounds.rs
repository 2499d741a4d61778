//! The numbers that an option may have.

use crate::problem::Problem;
use crate::tree::Node;

/// Numbers that an option may have, with their unit (empty for none).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// The smallest; without `low_is_included` all are above it.
    pub low: f64,
    /// Whether `low` itself is allowed.
    pub low_is_included: bool,
    /// The largest.
    pub high: f64,
    /// What the numbers count, for people.
    pub unit: &'static str,
}

impl Bounds {
    /// A time in seconds, at most a day.
    pub const SECONDS: Self = Self::new(0.0, 86_400.0, "seconds");

    /// From `low` to `high`, both included.
    pub const fn new(low: f64, high: f64, unit: &'static str) -> Self {
        Self { low, low_is_included: true, high, unit }
    }

    /// Above zero, to `high`.
    pub const fn above_zero(high: f64) -> Self {
        let unit = "(a fraction will do, zero will not)";
        Self { low: 0.0, low_is_included: false, high, unit }
    }

    /// Whether a number lies within; NaN does not.
    pub fn hold(self, number: f64) -> bool {
        let above_low = if self.low_is_included { number >= self.low } else { number > self.low };
        above_low && number <= self.high
    }

    /// The problem of `value`, which lies outside.
    pub fn problem(self, value: impl Into<String>) -> Problem {
        let Self { low, high, unit, .. } = self;
        let space = if unit.is_empty() { "" } else { " " };
        let expected = format!("a number from {low} to {high}{space}{unit}");
        Problem::Range { value: value.into(), expected }
    }

    pub(crate) fn problem_of(self, node: &Node) -> Problem {
        self.problem(node.number_as_text().unwrap_or_else(|| node.describe()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_included_but_zero_where_numbers_are_above_it() {
        let (share, gain) = (Bounds::new(0.0, 1.0, ""), Bounds::above_zero(100.0));
        let within = |bounds: Bounds, numbers: [f64; 5]| numbers.map(|number| bounds.hold(number));
        let numbers = [-0.1, 0.0, 1.0, 1.1, f64::NAN];
        assert_eq!(within(share, numbers), [false, true, true, false, false]);
        let numbers = [-0.1, 0.0, 1e-9, 100.0, 100.1];
        assert_eq!(within(gain, numbers), [false, false, true, true, false]);
    }

    #[test]
    fn the_unit_stands_after_the_numbers() {
        let help = |bounds: Bounds| bounds.problem("7").help();
        assert_eq!(help(Bounds::new(0.0, 1.0, "")), "write a number from 0 to 1");
        assert_eq!(help(Bounds::SECONDS), "write a number from 0 to 86400 seconds");
    }
}
