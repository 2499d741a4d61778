//! Times at which a link is dead.

use plait_proto::time::Instant;

/// A list of outages: each from its first instant up to, not including, its second.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outages {
    spans: Vec<(Instant, Instant)>,
}

/// Why a list of spans is not a list of outages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OutageError {
    /// It ends when or before it begins.
    #[error("outage {index} ends before it has begun; give the earlier instant first")]
    Reversed {
        /// The outage, counted from 0.
        index: usize,
    },
    /// It begins before the one before it ends.
    #[error("outage {index} begins before the one before it ends; sort them, or join them")]
    Overlaps {
        /// The outage, counted from 0.
        index: usize,
    },
}

impl Outages {
    /// Outages in the order of time.
    ///
    /// # Errors
    ///
    /// One is reversed or empty, or two overlap.
    pub fn new(spans: Vec<(Instant, Instant)>) -> Result<Self, OutageError> {
        let mut last = Instant::ZERO;
        for (index, &(from, to)) in spans.iter().enumerate() {
            if to <= from {
                return Err(OutageError::Reversed { index });
            }
            if from < last {
                return Err(OutageError::Overlaps { index });
            }
            last = to;
        }
        Ok(Self { spans })
    }

    /// The spans, in the order of time.
    pub fn spans(&self) -> &[(Instant, Instant)] {
        &self.spans
    }

    /// Whether the link is dead at this instant.
    pub fn contains(&self, at: Instant) -> bool {
        if self.spans.is_empty() {
            return false;
        }
        let begun = self.spans.partition_point(|(from, _)| *from <= at);
        begun > 0 && at < self.spans[begun - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, to: u64) -> (Instant, Instant) {
        (Instant::from_millis(from), Instant::from_millis(to))
    }

    #[test]
    fn the_first_instant_is_in_and_the_last_is_not() {
        let outages = Outages::new(vec![span(10, 20), span(20, 21), span(30, 40)]).unwrap();
        let dead = |ms| outages.contains(Instant::from_millis(ms));
        assert_eq!(
            [9, 10, 19, 20, 21, 30, 40].map(dead),
            [false, true, true, true, false, true, false]
        );
        assert!(!Outages::default().contains(Instant::ZERO));
    }

    #[test]
    fn spans_out_of_order_are_refused() {
        assert_eq!(Outages::new(vec![span(5, 5)]), Err(OutageError::Reversed { index: 0 }));
        assert_eq!(
            Outages::new(vec![span(5, 9), span(8, 10)]),
            Err(OutageError::Overlaps { index: 1 })
        );
    }
}
