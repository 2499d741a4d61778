//! A rate that changes at given times.

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

/// A rate over time: an initial rate, then others, each from its time on; once or repeating.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateSteps {
    zero: Instant,
    base: Rate,
    steps: Vec<(Duration, Rate)>,
    period: Option<Duration>,
}

/// Why a list of steps is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RateStepsError {
    /// A step is not later than the one before it.
    #[error("step {index} is not later than the one before it; sort them by their times")]
    OutOfOrder {
        /// The step, counted from 0.
        index: usize,
    },
    /// A step is not before the end of the period.
    #[error("step {index} is not before the end of the period; make the period longer")]
    AfterPeriod {
        /// The step, counted from 0.
        index: usize,
    },
    /// Repeating steps have no rate above zero.
    #[error("the rate is zero for ever; let some step have a rate above zero")]
    NeverSends,
}

impl RateSteps {
    /// `base` until the first step; each step's rate from its time after `zero` on. With a `period`
    /// all of it repeats, with `base` again until the first step.
    ///
    /// # Errors
    ///
    /// The steps are out of order, one lies outside of the period, or repeating steps are all zero.
    pub fn new(
        zero: Instant,
        base: Rate,
        steps: Vec<(Duration, Rate)>,
        period: Option<Duration>,
    ) -> Result<Self, RateStepsError> {
        for (before, pair) in steps.windows(2).enumerate() {
            if pair[1].0 <= pair[0].0 {
                return Err(RateStepsError::OutOfOrder { index: before + 1 });
            }
        }
        if let Some(period) = period {
            if let Some(index) = steps.iter().position(|(at, _)| *at >= period) {
                return Err(RateStepsError::AfterPeriod { index });
            }
            let base_counts = steps.first().is_none_or(|(at, _)| !at.is_zero());
            let sends = steps.iter().any(|(_, rate)| *rate > Rate::ZERO);
            if period.is_zero() || !(sends || base_counts && base > Rate::ZERO) {
                return Err(RateStepsError::NeverSends);
            }
        }
        Ok(Self { zero, base, steps, period })
    }

    /// The same steps from another instant on.
    pub fn starting_at(&self, zero: Instant) -> Self {
        Self { zero, ..self.clone() }
    }

    /// The rate before the first step.
    pub fn base(&self) -> Rate {
        self.base
    }

    /// Each later rate with its time after the start.
    pub fn steps(&self) -> &[(Duration, Rate)] {
        &self.steps
    }

    /// The period after which the steps repeat; `None`: never.
    pub fn period(&self) -> Option<Duration> {
        self.period
    }

    /// The rate at this time, and when another begins.
    pub fn at(&self, now: Instant) -> (Rate, Option<Instant>) {
        let first = self.steps.first().map(|(at, _)| self.zero + *at);
        if now < self.zero {
            return (self.base, first);
        }
        let begin = match self.period {
            None => self.zero,
            Some(period) => {
                let repetitions = now.since(self.zero).as_nanos() / period.as_nanos();
                let passed = repetitions.saturating_mul(period.as_nanos());
                self.zero + Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX))
            }
        };
        let passed = self.steps.partition_point(|(at, _)| begin + *at <= now);
        let rate = if passed == 0 { self.base } else { self.steps[passed - 1].1 };
        let next = self.steps.get(passed).map(|(at, _)| begin + *at);
        (rate, next.or(self.period.map(|period| begin + period)))
    }

    /// The mean rate over this time after the start.
    pub fn mean_over(&self, length: Duration) -> Rate {
        let end = self.zero + length;
        let (mut at, mut nanobits) = (self.zero, 0_u128);
        while at < end {
            let (rate, next) = self.at(at);
            let until = next.unwrap_or(end).min(end);
            nanobits += u128::from(rate.bits_per_second()) * (until - at).as_nanos();
            at = until;
        }
        let mean = nanobits.checked_div(length.as_nanos());
        mean.map_or(self.base, |bits| {
            Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
        })
    }

    /// The lowest rate above zero that occurs.
    pub fn lowest(&self) -> Option<Rate> {
        let rates = self.steps.iter().map(|(_, rate)| *rate).chain([self.base]);
        rates.filter(|rate| *rate > Rate::ZERO).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: fn(u64) -> Rate = Rate::from_mbit;

    fn steps(period_ms: Option<u64>) -> RateSteps {
        let ms = Duration::from_millis;
        let steps = vec![(ms(10), MBIT(20)), (ms(30), MBIT(0))];
        RateSteps::new(Instant::from_millis(100), MBIT(5), steps, period_ms.map(ms)).unwrap()
    }

    #[test]
    fn each_rate_holds_until_the_next() {
        let at = |course: &RateSteps, ms| {
            let (rate, next) = course.at(Instant::from_millis(ms));
            (rate.bits_per_second() / 1_000_000, next.map(|at| at.as_nanos() / 1_000_000))
        };
        let once = steps(None);
        assert_eq!(
            [0, 100, 110, 129, 130, 999].map(|ms| at(&once, ms)),
            [
                (5, Some(110)),
                (5, Some(110)),
                (20, Some(130)),
                (20, Some(130)),
                (0, None),
                (0, None)
            ]
        );
        let repeated = steps(Some(40));
        assert_eq!(
            [139, 140, 150, 175, 180].map(|ms| at(&repeated, ms)),
            [(0, Some(140)), (5, Some(150)), (20, Some(170)), (0, Some(180)), (5, Some(190))]
        );
    }

    #[test]
    fn the_mean_weighs_rates_with_their_time() {
        // 10 ms at 5, 20 ms at 20 and 10 ms at 0 Mbit/s.
        let mean = steps(Some(40)).mean_over(Duration::from_millis(80));
        assert_eq!(mean, Rate::from_bits_per_second(11_250_000));
        assert_eq!(steps(None).mean_over(Duration::ZERO), MBIT(5));
        assert_eq!(steps(None).lowest(), Some(MBIT(5)));
    }

    #[test]
    fn lists_that_are_no_course_are_refused() {
        let ms = Duration::from_millis;
        let new = |steps, period| RateSteps::new(Instant::ZERO, Rate::ZERO, steps, period);
        let same = vec![(ms(1), MBIT(1)), (ms(1), MBIT(2))];
        assert_eq!(new(same, None), Err(RateStepsError::OutOfOrder { index: 1 }));
        let late = vec![(ms(9), MBIT(1))];
        assert_eq!(new(late, Some(ms(9))), Err(RateStepsError::AfterPeriod { index: 0 }));
        let silent = vec![(ms(0), MBIT(0))];
        assert_eq!(new(silent.clone(), Some(ms(9))), Err(RateStepsError::NeverSends));
        assert!(new(silent, None).is_ok());
    }
}
