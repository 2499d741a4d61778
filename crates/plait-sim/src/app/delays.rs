//! A bounded record of delays.

use plait_proto::time::Duration;

/// Buckets for each power of two.
const STEPS_BITS: u32 = 6;

/// A histogram of delays in microseconds. Buckets are at most a sixty-fourth of their value wide,
/// and at least a microsecond.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    buckets: Vec<u64>,
    count: u64,
}

impl Delays {
    /// Records a delay.
    pub fn record(&mut self, delay: Duration) {
        self.record_us(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX));
    }

    /// Records a delay in microseconds.
    pub fn record_us(&mut self, delay_us: u64) {
        let bucket = bucket_of(delay_us);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The delay that a share of all do not exceed, in milliseconds; `None` when there is none.
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        let rank = (share * self.count as f64).ceil().max(1.0) as u64;
        let mut passed = 0;
        let bucket = self.buckets.iter().position(|count| {
            passed += count;
            passed >= rank
        })?;
        Some(middle_of(bucket) / 1e3)
    }

    /// How many exceed a delay, to the width of a bucket.
    pub fn above(&self, delay: Duration) -> u64 {
        let bucket = bucket_of(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX));
        self.buckets.iter().skip(bucket + 1).sum()
    }
}

fn bucket_of(us: u64) -> usize {
    let octave = (u64::BITS - us.leading_zeros()).saturating_sub(STEPS_BITS + 1);
    ((u64::from(octave) << STEPS_BITS) + (us >> octave)) as usize
}

fn middle_of(bucket: usize) -> f64 {
    let steps = 1 << STEPS_BITS;
    if bucket < 2 * steps {
        return bucket as f64;
    }
    let octave = bucket / steps - 1;
    let low = (bucket - octave * steps) as f64;
    (low + 0.5) * (octave as f64).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_without_gap_and_hold_their_middle() {
        let mut last = 0;
        for us in 0..100_000 {
            let bucket = bucket_of(us);
            assert!(bucket == last || bucket == last + 1, "{us}");
            last = bucket;
            let off = (middle_of(bucket) - us as f64).abs();
            assert!(off <= us as f64 / 64.0, "{us} µs is {off} off");
        }
        assert!(bucket_of(u64::MAX) < 64 * 64);
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut delays = Delays::default();
        assert_eq!(delays.quantile_ms(0.5), None);
        (1..=100).for_each(|us| delays.record(Duration::from_micros(us)));
        assert_eq!(delays.quantile_ms(0.5), Some(0.05));
        assert_eq!(delays.quantile_ms(0.95), Some(0.095));
        assert_eq!(delays.quantile_ms(1.0), Some(0.1));
        assert_eq!(delays.above(Duration::from_micros(90)), 10);
    }
}
