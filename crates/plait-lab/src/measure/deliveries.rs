//! When data arrived, to the microsecond, and how long nothing did.

use std::time::{Duration, Instant};

/// Arrivals in the order of their time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    arrivals: Vec<(Instant, u64)>,
}

impl Deliveries {
    /// Notes `bytes` that arrived at `at`, which is no earlier than what was noted before.
    pub(crate) fn add(&mut self, at: Instant, bytes: u64) {
        self.arrivals.push((at, bytes));
    }

    /// Longest time without an arrival that lies, as far as it is counted, before `until` and ends
    /// after `from`. It begins with the arrival before it, or with `from` when there was none.
    pub(crate) fn longest_gap(&self, from: Instant, until: Instant) -> Duration {
        let mut last = from;
        let mut longest = Duration::ZERO;
        for &(at, _) in self.arrivals.iter().take_while(|(at, _)| *at < until) {
            if at > from {
                longest = longest.max(at.saturating_duration_since(last));
            }
            last = at;
        }
        longest.max(until.saturating_duration_since(last))
    }

    /// Bytes that arrived from `from` on, before `until`.
    pub(crate) fn bytes_between(&self, from: Instant, until: Instant) -> u64 {
        let within = self.arrivals.iter().filter(|(at, _)| (from..until).contains(at));
        within.map(|(_, bytes)| bytes).sum()
    }

    /// Mean rate from `from` to `until`.
    pub(crate) fn rate_bps(&self, from: Instant, until: Instant) -> u64 {
        let micros = until.saturating_duration_since(from).as_micros();
        let bits = u128::from(self.bytes_between(from, until)) * 8;
        let rate = (bits * 1_000_000).checked_div(micros).unwrap_or(0);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// Rate over each window of length `window` that lies between `from` and `until`, in the order
    /// of their starts, which are `step` apart.
    pub(crate) fn sliding_bps(
        &self,
        from: Instant,
        until: Instant,
        window: Duration,
        step: Duration,
    ) -> Vec<(Instant, u64)> {
        let before = |at: Instant| self.arrivals.partition_point(|(arrival, _)| *arrival < at);
        let starts = (0..).map(|index| from + step * index);
        let starts = starts.take_while(|start| *start + window <= until);
        let rate = |start: Instant| {
            let within = &self.arrivals[before(start)..before(start + window)];
            let bits: u128 = within.iter().map(|(_, bytes)| u128::from(*bytes) * 8).sum();
            let rate = (bits * 1_000_000).checked_div(window.as_micros()).unwrap_or(0);
            (start, u64::try_from(rate).unwrap_or(u64::MAX))
        };
        starts.map(rate).collect()
    }

    /// The arrivals of several as one.
    pub(crate) fn merged(all: &[Self]) -> Self {
        let mut arrivals: Vec<_> = all.iter().flat_map(|one| one.arrivals.clone()).collect();
        arrivals.sort_unstable_by_key(|(at, _)| *at);
        Self { arrivals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arriving(start: Instant, at_ms: &[u64]) -> Deliveries {
        let mut deliveries = Deliveries::default();
        at_ms.iter().for_each(|ms| deliveries.add(start + Duration::from_millis(*ms), 1000));
        deliveries
    }

    #[test]
    fn the_gap_reaches_back_to_the_arrival_before_it() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let deliveries = arriving(start, &[0, 90, 300, 310, 320]);
        let gap = |from, until| deliveries.longest_gap(at(from), at(until)).as_millis();
        assert_eq!(gap(100, 330), 210);
        assert_eq!(gap(0, 95), 90);
        assert_eq!(gap(305, 330), 10);
    }

    #[test]
    fn silence_counts_until_the_end() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(arriving(start, &[10]).longest_gap(at(0), at(500)).as_millis(), 490);
        assert_eq!(arriving(start, &[]).longest_gap(at(100), at(500)).as_millis(), 400);
    }

    #[test]
    fn rates_count_what_arrived_within() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let both = [arriving(start, &[0, 40]), arriving(start, &[20, 100])];
        let merged = Deliveries::merged(&both);
        assert_eq!(merged.bytes_between(at(0), at(100)), 3000);
        assert_eq!(merged.rate_bps(at(0), at(100)), 240_000);
        assert_eq!(merged.longest_gap(at(0), at(100)).as_millis(), 60);
        assert_eq!(merged.rate_bps(at(5), at(5)), 0);
    }

    #[test]
    fn windows_slide_over_what_arrived() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let deliveries = arriving(start, &[0, 40, 99, 100, 150, 399]);
        let windows = deliveries.sliding_bps(start, start + ms(300), ms(100), ms(50));
        // 1000 bytes in 100 ms are 80 kbit/s.
        let expected = [(0, 240_000), (50, 160_000), (100, 160_000), (150, 80_000), (200, 0)];
        assert_eq!(windows, expected.map(|(at, rate)| (start + ms(at), rate)));
        assert!(deliveries.sliding_bps(start, start + ms(99), ms(100), ms(50)).is_empty());
    }
}
