//! The window that the receiver offers. What it may become grows with what is read
//! ([`RightSizing`]); the window follows by two segments for each that arrives.

use plait_proto::time::{Duration, Instant};

use super::right_sizing::{Read, RightSizing};
use crate::tcp::config::ReceiverConfig;

/// What Linux offers first.
const INITIAL_BYTES: u64 = 65_535;
/// What Linux 6.18 may offer once it has seen how much memory full segments take: five eighths of
/// the 128 KiB of `tcp_rmem` (captured over a virtual device with an MTU of 1500).
const INITIAL_CLAMP_BYTES_TODAY: u64 = 80_896;
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
    sizing: RightSizing,
}

impl Window {
    pub(in crate::tcp) fn new(config: &ReceiverConfig) -> Self {
        let segment_bytes = config.segment_bytes;
        // With less, nothing would get through at all.
        let bytes_max = config.window_bytes_max.max(2 * segment_bytes);
        let bytes = INITIAL_BYTES.min(bytes_max);
        let clamp = if config.is_of_today { INITIAL_CLAMP_BYTES_TODAY } else { INITIAL_BYTES };
        Self {
            segment_bytes,
            bytes,
            clamp_bytes: clamp.min(bytes_max),
            bytes_max,
            right_edge: bytes,
            sizing: RightSizing::new(segment_bytes, bytes, config.is_of_today),
        }
    }

    /// An MPTCP connection's. What Linux 6.16 changed for it is not modelled.
    pub(in crate::tcp) fn of_connection(config: &ReceiverConfig) -> Self {
        Self::new(&ReceiverConfig { is_of_today: false, ..*config })
    }

    /// A subflow's, which keeps nothing back: the connection's does (RFC 8684 section 3.3.4).
    /// What it would offer grows as far as the connection lets it.
    pub(in crate::tcp) fn of_subflow(config: &ReceiverConfig) -> Self {
        let config = ReceiverConfig { window_bytes_max: INITIAL_BYTES, ..*config };
        Self { right_edge: UNLIMITED, ..Self::of_connection(&config) }
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
        self.sizing.rtt()
    }

    pub(in crate::tcp) fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// The connection is open.
    pub(in crate::tcp) fn on_open(&mut self, now: Instant) {
        self.sizing.on_open(now);
    }

    /// Data came that echoes a timestamp of ours; see [`RightSizing::on_segment`].
    pub(in crate::tcp) fn on_segment(&mut self, now: Instant, ts_echo_ms: u64, all_was_read: bool) {
        self.sizing.on_segment(now, ts_echo_ms, all_was_read);
    }

    /// The round-trip time, where it is not taken from the echoes.
    pub(in crate::tcp) fn set_rtt(&mut self, rtt: Duration) {
        self.sizing.set_rtt(rtt);
    }

    /// The application read.
    pub(in crate::tcp) fn on_read(&mut self, read: Read) {
        if let Some(wanted) = self.sizing.on_read(read) {
            self.let_grow(wanted.min(self.bytes_max));
        }
    }

    /// Data arrived beyond a gap; `span_bytes` lie between its end and what is expected.
    pub(in crate::tcp) fn on_beyond_gap(&mut self, span_bytes: u64) {
        if let Some(wanted) = self.sizing.on_beyond_gap(span_bytes) {
            self.let_grow(wanted.min(self.bytes_max));
        }
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
