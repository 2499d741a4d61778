//! Recorded capacity as in mahimahi: a list of delivery opportunities.

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

/// Bytes that one delivery opportunity carries, including each packet's [`FRAMING_BYTES`]
/// (mahimahi's packet size).
pub const OPPORTUNITY_BYTES: u64 = 1504;
/// Bytes that a packet uses beyond its bytes at the IP layer: the TUN device's header, which
/// mahimahi counts. So one opportunity is one packet of 1500 bytes.
pub const FRAMING_BYTES: u64 = 4;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Delivery opportunities in milliseconds since the owner's start. After its last time the trace
/// repeats (Netravali et al., "Mahimahi", USENIX ATC 2015, section 3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    opportunities_ms: Vec<u32>,
}

/// Why a list of times is not a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// Earlier than the time before it.
    #[error(
        "trace entry {index}: {time_ms} ms comes after {last_ms} ms; sort the times, equal ones \
         may stand in a row"
    )]
    OutOfOrder {
        /// The entry, counted from 0.
        index: usize,
        /// Its time.
        time_ms: u32,
        /// The time of the entry before.
        last_ms: u32,
    },
    /// Empty, or all times are zero: the trace would repeat without time passing.
    #[error("the trace has no length; give at least one time above 0 ms")]
    NoLength,
}

impl Trace {
    /// A trace of these times; equal times are several opportunities at once.
    ///
    /// # Errors
    ///
    /// The times decrease, or none is above zero.
    pub fn new(opportunities_ms: Vec<u32>) -> Result<Self, TraceError> {
        for (before, pair) in opportunities_ms.windows(2).enumerate() {
            let (last_ms, time_ms) = (pair[0], pair[1]);
            if time_ms < last_ms {
                return Err(TraceError::OutOfOrder { index: before + 1, time_ms, last_ms });
            }
        }
        match opportunities_ms.last() {
            None | Some(0) => Err(TraceError::NoLength),
            Some(_) => Ok(Self { opportunities_ms }),
        }
    }

    /// The times, in milliseconds since the start of a repetition.
    pub fn opportunities_ms(&self) -> &[u32] {
        &self.opportunities_ms
    }

    /// The time after which the trace repeats.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period_nanos())
    }

    /// The mean rate of packets of 1500 bytes, at the IP layer.
    pub fn mean_rate(&self) -> Rate {
        let bytes = OPPORTUNITY_BYTES - FRAMING_BYTES;
        Rate::from_bytes_over(self.count().saturating_mul(bytes), self.period())
    }

    /// When opportunity `number` is, counted from 0 over all repetitions.
    pub fn opportunity_at(&self, number: u64) -> Instant {
        let (repetition, index) = (number / self.count(), number % self.count());
        let index = usize::try_from(index).expect("an index into a list in memory fits usize");
        let offset = u64::from(self.opportunities_ms[index]) * NANOS_PER_MILLI;
        let begin = repetition.saturating_mul(self.period_nanos());
        Instant::from_nanos(begin.saturating_add(offset))
    }

    /// The number of the first opportunity later than `now`.
    pub fn first_after(&self, now: Instant) -> u64 {
        let (repetition, offset) =
            (now.as_nanos() / self.period_nanos(), now.as_nanos() % self.period_nanos());
        let passed = |time_ms: &u32| u64::from(*time_ms) * NANOS_PER_MILLI <= offset;
        let index = self.opportunities_ms.partition_point(passed);
        // The last time is the period, which exceeds any offset: so there is such an index.
        repetition * self.count() + index as u64
    }

    fn count(&self) -> u64 {
        self.opportunities_ms.len() as u64
    }

    fn period_nanos(&self) -> u64 {
        let last_ms = self.opportunities_ms.last().expect("a trace holds a time above zero");
        u64::from(*last_ms) * NANOS_PER_MILLI
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_repeat_after_the_last() {
        let trace = Trace::new(vec![0, 5, 5, 10]).unwrap();
        let times: Vec<_> =
            (0..9).map(|n| trace.opportunity_at(n).as_nanos() / NANOS_PER_MILLI).collect();
        assert_eq!(times, [0, 5, 5, 10, 10, 15, 15, 20, 20]);
        assert_eq!(trace.mean_rate(), Rate::from_bits_per_second(4_800_000));
    }

    #[test]
    fn the_first_opportunity_after_an_instant_is_later() {
        let trace = Trace::new(vec![0, 5, 5, 10]).unwrap();
        for (ms, number) in [(0, 1), (4, 1), (5, 3), (9, 3), (10, 5), (14, 5), (15, 7), (20, 9)] {
            assert_eq!(trace.first_after(Instant::from_millis(ms)), number, "{ms} ms");
        }
    }

    #[test]
    fn lists_that_are_no_trace_are_refused() {
        assert_eq!(Trace::new(vec![]), Err(TraceError::NoLength));
        assert_eq!(Trace::new(vec![0, 0]), Err(TraceError::NoLength));
        let error = TraceError::OutOfOrder { index: 2, time_ms: 5, last_ms: 7 };
        assert_eq!(Trace::new(vec![1, 7, 5]), Err(error));
        assert!(error.to_string().starts_with("trace entry 2: 5 ms comes after 7 ms"));
    }
}
