//! Counts of an application's data, over the whole run and over the span that metrics cover.

use plait_proto::time::{Duration, Instant};

use super::delays::Delays;

/// A span of time, its end not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first moment within.
    pub start: Instant,
    /// The first moment after.
    pub end: Instant,
}

impl Span {
    /// Whether a moment lies within.
    pub fn holds(self, at: Instant) -> bool {
        self.start <= at && at < self.end
    }

    /// How long it is.
    pub fn length(self) -> Duration {
        self.end.since(self.start)
    }

    /// Its overlap with another.
    #[must_use]
    pub fn overlap(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }
}

/// What an application sent and received. Counts named `measured` cover the span: packets sent
/// within it whenever they arrive, and goodput that arrived within it.
#[derive(Clone, Debug)]
pub struct Tally {
    span: Span,
    /// Payload that was offered since the start, in bytes. A TCP sender offers what it sends.
    pub offered_bytes: u64,
    /// Payload that the receiver received in order since the start, in bytes.
    pub goodput_bytes: u64,
    /// Packets with data sent since the start.
    pub sent_packets: u64,
    /// Those of them that arrived, copies not counted.
    pub received_packets: u64,
    /// Packets that arrived a second time.
    pub repeated_packets: u64,
    /// Packets that arrived after a later one.
    pub reordered_packets: u64,
    /// The same as `offered_bytes`, within the span.
    pub measured_offered_bytes: u64,
    /// The same as `goodput_bytes`, within the span.
    pub measured_goodput_bytes: u64,
    /// The same as `sent_packets`, within the span.
    pub measured_sent_packets: u64,
    /// Those of them that arrived.
    pub measured_received_packets: u64,
    /// One-way delays of the packets that were sent within the span.
    pub delays: Delays,
    /// Sum of all one-way delays since the start, in microseconds.
    pub delay_total_us: u64,
    /// When payload last came into order within the span; initially the span's start.
    goodput_at: Instant,
    gap_max: Duration,
}

impl Tally {
    /// Empty counts.
    pub fn new(span: Span) -> Self {
        Self {
            span,
            offered_bytes: 0,
            goodput_bytes: 0,
            sent_packets: 0,
            received_packets: 0,
            repeated_packets: 0,
            reordered_packets: 0,
            measured_offered_bytes: 0,
            measured_goodput_bytes: 0,
            measured_sent_packets: 0,
            measured_received_packets: 0,
            delays: Delays::default(),
            delay_total_us: 0,
            goodput_at: span.start,
            gap_max: Duration::ZERO,
        }
    }

    /// The span that metrics cover.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The longest time within the span in which no payload came into order.
    pub fn standstill(&self) -> Duration {
        self.gap_max.max(self.span.end.since(self.goodput_at))
    }

    pub(super) fn on_sent(&mut self, now: Instant, payload_bytes: u64) {
        self.sent_packets += 1;
        self.offered_bytes += payload_bytes;
        if self.span.holds(now) {
            self.measured_sent_packets += 1;
            self.measured_offered_bytes += payload_bytes;
        }
    }

    pub(super) fn on_received(&mut self, now: Instant, sent_at: Instant) {
        let delay_us = now.as_nanos().saturating_sub(sent_at.as_nanos()) / 1000;
        self.received_packets += 1;
        self.delay_total_us += delay_us;
        if self.span.holds(sent_at) {
            self.measured_received_packets += 1;
            self.delays.record_us(delay_us);
        }
    }

    /// Counts payload that came into order.
    pub fn on_goodput(&mut self, now: Instant, payload_bytes: u64) {
        self.goodput_bytes += payload_bytes;
        if self.span.holds(now) {
            self.measured_goodput_bytes += payload_bytes;
            if payload_bytes > 0 {
                self.gap_max = self.gap_max.max(now.since(self.goodput_at));
                self.goodput_at = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_lies_within_the_span_and_ends_with_payload() {
        let at = Instant::from_millis;
        let standstill_ms = |arrivals: &[(u64, u64)]| {
            let mut tally = Tally::new(Span { start: at(100), end: at(500) });
            arrivals.iter().for_each(|(ms, bytes)| tally.on_goodput(at(*ms), *bytes));
            tally.standstill().as_millis()
        };
        assert_eq!(standstill_ms(&[]), 400);
        assert_eq!(standstill_ms(&[(50, 9), (120, 9), (250, 0), (300, 9), (490, 9)]), 190);
        assert_eq!(standstill_ms(&[(120, 9), (200, 9), (900, 9)]), 300);
    }
}
