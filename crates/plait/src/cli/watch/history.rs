//! The last minute of a rate, and its picture.

use std::collections::VecDeque;
use std::time::Duration;

/// How far a picture looks back.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// Most readings kept, whatever the interval.
const READINGS_MAX: usize = 2000;

/// A rate that held from one answer of the gateway to the next.
#[derive(Clone, Copy, Debug)]
struct Reading {
    from_s: f64,
    to_s: f64,
    bps: f64,
}

/// Readings of a little more than the last minute, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    readings: VecDeque<Reading>,
}

impl History {
    /// Adds the rate in bits per second between two instants since the start of watching.
    pub(super) fn push(&mut self, from: Duration, to: Duration, bps: f64) {
        let old = to.saturating_sub(MINUTE * 2).as_secs_f64();
        while self.readings.len() >= READINGS_MAX
            || self.readings.front().is_some_and(|reading| reading.to_s < old)
        {
            self.readings.pop_front();
        }
        self.readings.push_back(Reading {
            from_s: from.as_secs_f64(),
            to_s: to.as_secs_f64(),
            bps,
        });
    }

    /// The last minute in `width` columns, oldest first: the mean rate in bits per second of the
    /// part of each column that readings cover; `None` where there are none.
    ///
    /// Columns begin at multiples of their length, so a picture moves by whole columns and does
    /// not flicker in between.
    pub(super) fn columns(&self, now: Duration, width: usize) -> Vec<Option<f64>> {
        let length_s = MINUTE.as_secs_f64() / width.max(1) as f64;
        let end = (now.as_secs_f64() / length_s - 1e-9).ceil();
        let start_s = |column: usize| (end - (width - column) as f64) * length_s;
        (0..width).map(|c| self.mean_bps(start_s(c), start_s(c) + length_s)).collect()
    }

    /// Mean over the part of a period that readings cover.
    fn mean_bps(&self, from_s: f64, to_s: f64) -> Option<f64> {
        let (mut covered_s, mut bits) = (0.0, 0.0);
        for reading in &self.readings {
            let overlap_s = reading.to_s.min(to_s) - reading.from_s.max(from_s);
            if overlap_s > 0.0 {
                covered_s += overlap_s;
                bits += overlap_s * reading.bps;
            }
        }
        (covered_s > 1e-6).then(|| bits / covered_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: u64) -> Duration {
        Duration::from_secs(s)
    }

    #[test]
    fn a_column_is_the_mean_of_its_time() {
        let mut history = History::default();
        history.push(seconds(0), seconds(10), 10.0);
        history.push(seconds(10), seconds(20), 30.0);
        history.push(seconds(40), seconds(60), 8.0);
        let columns = history.columns(seconds(60), 3);
        assert_eq!(columns, [Some(20.0), None, Some(8.0)]);
        let columns = history.columns(seconds(60), 6);
        assert_eq!(columns, [Some(10.0), Some(30.0), None, None, Some(8.0), Some(8.0)]);
    }

    #[test]
    fn columns_stay_where_they_are_until_a_new_one_begins() {
        let mut history = History::default();
        history.push(seconds(20), seconds(40), 7.0);
        let before = history.columns(seconds(61), 3);
        assert_eq!(before, [Some(7.0), None, None], "the column from 60 s has begun");
        assert_eq!(history.columns(seconds(79), 3), before);
        assert_ne!(history.columns(seconds(81), 3), before);
    }

    #[test]
    fn memory_is_bounded() {
        let mut history = History::default();
        for s in 0..10_000 {
            history.push(seconds(s), seconds(s + 1), 1.0);
        }
        assert_eq!(history.readings.len(), 121);
        for ms in 10_000_000..10_010_000 {
            history.push(Duration::from_millis(ms), Duration::from_millis(ms + 1), 1.0);
        }
        assert_eq!(history.readings.len(), READINGS_MAX);
    }
}
