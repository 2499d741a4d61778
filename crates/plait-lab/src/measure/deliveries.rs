//! Records when data arrived, to the microsecond, and finds gaps.

use std::time::{Duration, Instant};

/// Arrivals in the order of their time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deliveries {
    arrivals: Vec<(Instant, u64)>,
}

impl Deliveries {
    /// Notes `bytes` that arrived at `at`, no earlier than the last note.
    pub(crate) fn add(&mut self, at: Instant, bytes: u64) {
        self.arrivals.push((at, bytes));
    }

    /// Longest time without an arrival that ends after `from`, cut at `until`. It begins with the
    /// arrival before it, or with `from` when there was none.
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

    /// Merges several records.
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
}
