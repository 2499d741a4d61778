//! The window that the receiver offers. What it may become grows with what the application reads
//! per round trip, so that it does not limit the sender (Linux's dynamic right-sizing); the window
//! follows by two segments for each that arrives.

use plait_proto::time::{Duration, Instant};

use crate::tcp::timestamp_ms;

/// What Linux offers first.
const INITIAL_BYTES: u64 = 65_535;
const INITIAL_SEGMENTS: u64 = 10;
/// Beyond all that a connection sends.
const UNLIMITED: u64 = 1 << 60;

#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Window {
    segment_bytes: u64,
    /// What is offered (Linux: `rcv_ssthresh`).
    bytes: u64,
    /// What may be offered (Linux: `window_clamp`).
    clamp_bytes: u64,
    bytes_max: u64,
    /// The byte after the last that may arrive; never moves back.
    right_edge: u64,
    /// Round-trip time from timestamp echoes, each taken once.
    rtt: Option<Duration>,
    ts_echo_ms: Option<u64>,
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
            clamp_bytes: bytes,
            bytes_max,
            right_edge: bytes,
            rtt: None,
            ts_echo_ms: None,
            round_start: Instant::ZERO,
            read_bytes: 0,
            read_bytes_max: bytes.min(INITIAL_SEGMENTS * segment_bytes),
        }
    }

    /// A subflow's, which keeps nothing back: the connection's does (RFC 8684 section 3.3.4).
    /// What it would offer grows as far as the connection lets it.
    pub(in crate::tcp) fn of_subflow(segment_bytes: u64) -> Self {
        Self { right_edge: UNLIMITED, ..Self::new(segment_bytes, INITIAL_BYTES) }
    }

    pub(in crate::tcp) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(in crate::tcp) fn clamp_bytes(&self) -> u64 {
        self.clamp_bytes
    }

    /// The window may become that of the connection.
    pub(in crate::tcp) fn let_grow(&mut self, clamp_bytes: u64) {
        self.clamp_bytes = self.clamp_bytes.max(clamp_bytes);
    }

    /// A subflow would offer so much, and the connection with it.
    pub(in crate::tcp) fn follow(&mut self, bytes: u64) {
        self.bytes = self.bytes.max(bytes.min(self.clamp_bytes));
    }

    /// New data arrived (Linux: `tcp_grow_window`), and `used_bytes` take up room. Says whether
    /// more may be offered than before.
    pub(in crate::tcp) fn grow(&mut self, used_bytes: u64) -> bool {
        let before = self.bytes;
        let room = self.clamp_bytes.saturating_sub(used_bytes).saturating_sub(before);
        self.bytes += room.min(2 * self.segment_bytes);
        self.bytes > before
    }

    pub(in crate::tcp) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(in crate::tcp) fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// The connection is open.
    pub(in crate::tcp) fn on_open(&mut self, now: Instant) {
        self.round_start = now;
    }

    /// Data came that echoes a timestamp of ours.
    pub(in crate::tcp) fn on_segment(&mut self, now: Instant, ts_echo_ms: u64) {
        if self.ts_echo_ms.replace(ts_echo_ms) == Some(ts_echo_ms) {
            return;
        }
        let millis = timestamp_ms(now).saturating_sub(ts_echo_ms).max(1);
        let sample = Duration::from_millis(millis);
        self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
    }

    /// The round-trip time, where it is not taken from the echoes.
    pub(in crate::tcp) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// The application read `bytes`. At the end of each round trip the window may become twice what
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
            self.let_grow(wanted);
            self.read_bytes_max = self.read_bytes;
        }
        self.round_start = now;
        self.read_bytes = 0;
    }

    /// The window that goes with an acknowledgement of everything below `next`, while `used_bytes`
    /// take up room.
    pub(in crate::tcp) fn advertise(&mut self, next: u64, used_bytes: u64) -> u64 {
        self.right_edge = self.right_edge.max(next + self.would_offer(used_bytes));
        self.right_edge - next
    }

    /// What there is to offer while `used_bytes` take up room; more may have been offered before.
    /// It never closes, since senders do not probe a closed window.
    pub(in crate::tcp) fn would_offer(&self, used_bytes: u64) -> u64 {
        let room = self.clamp_bytes.saturating_sub(used_bytes);
        self.bytes.min(room.max(2 * self.segment_bytes))
    }
}
