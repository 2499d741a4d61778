//! How late packets were released.

use std::time::Duration;

use serde::Serialize;

const BUCKET: Duration = Duration::from_micros(10);
/// The last bucket takes everything from 50 ms on.
const BUCKETS: usize = 5_000;

/// The largest 99th percentile of a link in a valid run.
pub(crate) const LATE_P99_MAX: Duration = Duration::from_millis(2);
/// A release later than this is very late; and the allowed share of such releases.
pub(crate) const VERY_LATE: Duration = Duration::from_millis(10);
pub(crate) const VERY_LATE_SHARE_MAX: f64 = 0.002;

/// A histogram of lateness in steps of 10 us.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    counts: Vec<u64>,
    sum: Duration,
    max: Duration,
}

/// The figures of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct LatenessSummary {
    pub(crate) packets: u64,
    pub(crate) mean_us: u64,
    /// Upper edge of the bucket that holds the 99th percentile.
    pub(crate) p99_us: u64,
    pub(crate) max_us: u64,
}

impl LatenessSummary {
    /// For a row of a table.
    pub(crate) fn describe(&self) -> String {
        format!("{} / {} / {} us", self.mean_us, self.p99_us, self.max_us)
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], sum: Duration::ZERO, max: Duration::ZERO }
    }
}

impl Lateness {
    pub(crate) fn record(&mut self, late: Duration) {
        let bucket = usize::try_from(late.as_nanos() / BUCKET.as_nanos()).unwrap_or(BUCKETS);
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.sum = self.sum.saturating_add(late);
        self.max = self.max.max(late);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// The share of the packets that were at least this late, up to 50 ms.
    pub(crate) fn share_above(&self, late: Duration) -> f64 {
        let bucket = usize::try_from(late.as_nanos() / BUCKET.as_nanos()).unwrap_or(BUCKETS);
        let above: u64 = self.counts[bucket.min(BUCKETS - 1)..].iter().sum();
        let packets: u64 = self.counts.iter().sum();
        above as f64 / packets.max(1) as f64
    }

    /// Whether the machine was so busy that the links did not behave as configured.
    pub(crate) fn is_too_late(&self) -> bool {
        let p99 = Duration::from_micros(self.summary().p99_us);
        p99 > LATE_P99_MAX || self.share_above(VERY_LATE) > VERY_LATE_SHARE_MAX
    }

    pub(crate) fn summary(&self) -> LatenessSummary {
        let packets: u64 = self.counts.iter().sum();
        let mean = self.sum.as_micros() / u128::from(packets.max(1));
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below * 100 >= packets * 99
        });
        let p99 = BUCKET * u32::try_from(bucket.map_or(0, |bucket| bucket + 1)).unwrap_or(u32::MAX);
        LatenessSummary {
            packets,
            mean_us: micros(mean),
            p99_us: if packets == 0 { 0 } else { micros(p99.as_micros()) },
            max_us: micros(self.max.as_micros()),
        }
    }
}

fn micros(micros: u128) -> u64 {
    u64::try_from(micros).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_from_the_histogram() {
        let mut lateness = Lateness::default();
        (0..98).for_each(|_| lateness.record(Duration::from_micros(5)));
        let mut other = Lateness::default();
        other.record(Duration::from_micros(305));
        other.record(Duration::from_millis(70));
        lateness.add(&other);
        let expected = LatenessSummary { packets: 100, mean_us: 707, p99_us: 310, max_us: 70_000 };
        assert_eq!(lateness.summary(), expected);
        let shares = [305, 310, 50_000].map(|us| lateness.share_above(Duration::from_micros(us)));
        assert_eq!(shares, [0.02, 0.01, 0.01]);
    }

    #[test]
    fn a_busy_machine_is_noticed() {
        let mut lateness = Lateness::default();
        (0..1000).for_each(|_| lateness.record(Duration::from_micros(500)));
        (0..2).for_each(|_| lateness.record(Duration::from_millis(11)));
        assert!(!lateness.is_too_late());
        lateness.record(Duration::from_millis(11));
        assert!(lateness.is_too_late(), "three in a thousand very late");
        let mut lateness = Lateness::default();
        (0..100).for_each(|_| lateness.record(Duration::from_micros(2500)));
        assert!(lateness.is_too_late(), "all late");
    }

    #[test]
    fn nothing_released_is_not_late() {
        let expected = LatenessSummary { packets: 0, mean_us: 0, p99_us: 0, max_us: 0 };
        assert_eq!(Lateness::default().summary(), expected);
    }
}
