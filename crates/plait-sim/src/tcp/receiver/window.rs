//! The window that the receiver offers. It grows with what the application reads per round trip, so
//! that it does not limit the sender (Linux's dynamic right-sizing).

use plait_proto::time::{Duration, Instant};

use crate::tcp::timestamp_ms;

/// What Linux offers first.
const INITIAL_BYTES: u64 = 65_535;
const INITIAL_SEGMENTS: u64 = 10;

#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Window {
    segment_bytes: u64,
    bytes: u64,
    bytes_max: u64,
    /// The byte after the last that may arrive; never moves back.
    right_edge: u64,
    /// Round-trip time from timestamp echoes.
    rtt: Option<Duration>,
    round_start: Instant,
    read_bytes: u64,
    /// What was read in the best round so far.
    read_bytes_max: u64,
}

impl Window {
    pub(in crate::tcp) fn new(segment_bytes: u64, window_bytes_max: u64) -> Self {
        // With less, nothing would get through at all.
        let bytes_max = window_bytes_max.max(2 * segment_bytes);
        let bytes = INITIAL_BYTES.min(bytes_max);
        Self {
            segment_bytes,
            bytes,
            bytes_max,
            right_edge: bytes,
            rtt: None,
            round_start: Instant::ZERO,
            read_bytes: 0,
            read_bytes_max: bytes.min(INITIAL_SEGMENTS * segment_bytes),
        }
    }

    /// A window that is offered in full from the start.
    pub(in crate::tcp) fn constant(segment_bytes: u64, window_bytes: u64) -> Self {
        let window = Self::new(segment_bytes, window_bytes);
        Self { bytes: window.bytes_max, right_edge: window.bytes_max, ..window }
    }

    #[cfg(test)]
    pub(in crate::tcp) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(in crate::tcp) fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// Data came that echoes a timestamp of ours.
    pub(in crate::tcp) fn on_segment(&mut self, now: Instant, ts_echo_ms: u64) {
        let millis = timestamp_ms(now).saturating_sub(ts_echo_ms).max(1);
        let sample = Duration::from_millis(millis);
        self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
    }

    /// The round-trip time, where it is not taken from the echoes.
    pub(in crate::tcp) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// The application read `bytes`. At the end of each round trip the window becomes twice what
    /// was read in it, and more if that is growing, so that it stays ahead of slow start.
    pub(in crate::tcp) fn on_read(&mut self, now: Instant, bytes: u64) {
        self.read_bytes += bytes;
        if now.since(self.round_start) < self.rtt.unwrap_or_default() {
            return;
        }
        if self.read_bytes > self.read_bytes_max {
            let read = u128::from(self.read_bytes);
            let before = u128::from(self.read_bytes_max.max(1));
            let base = 2 * read + 16 * u128::from(self.segment_bytes);
            let wanted = base + 2 * base * (read - before) / before;
            let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).min(self.bytes_max);
            self.bytes = self.bytes.max(wanted);
            self.read_bytes_max = self.read_bytes;
        }
        self.round_start = now;
        self.read_bytes = 0;
    }

    /// The window that goes with an acknowledgement of everything below `next`.
    pub(in crate::tcp) fn advertise(&mut self, next: u64) -> u64 {
        self.right_edge = self.right_edge.max(next + self.bytes);
        self.right_edge - next
    }
}
