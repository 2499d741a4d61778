//! When an acknowledgement leaves: at once, with every second segment, or after a while.

use plait_proto::time::{Duration, Instant};

use crate::tcp::config::{Acks, ReceiverConfig};
use crate::tcp::quic;

/// Linux's TCP_DELACK_MIN.
const DELAY: Duration = Duration::from_millis(40);
/// Linux's TCP_MAX_QUICKACKS: this many segments are acknowledged immediately at the start, to let
/// the sender's window grow, beside those with which the receiver's grows.
const QUICK_ACKS: u32 = 16;
/// So many segments beyond a gap are acknowledged at once before their reports are compressed,
/// which is what a sender needs for a fast retransmit (Linux's TCP_FASTRETRANS_THRESH).
const DUPLICATES: u32 = 3;
/// A report beyond a gap waits for so much of a round trip, at most [`COMPRESSED_DELAY`], and for
/// at most [`COMPRESSED_MAX`] others (Linux's `tcp_comp_sack_delay_ns` and `tcp_comp_sack_nr`).
const COMPRESSED_PART: u32 = 20;
const COMPRESSED_DELAY: Duration = Duration::from_millis(1);
const COMPRESSED_MAX: u32 = 44;
/// What in-order data did to the gap beyond it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gap {
    /// There was none.
    None,
    /// It is filled, and nothing waits beyond another.
    Filled,
    /// Something still waits beyond one.
    Open,
}

/// Data that arrived in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) bytes: u64,
    /// The byte expected next.
    pub(super) next: u64,
    pub(super) gap: Gap,
    /// When it is read.
    pub(super) read_at: Instant,
    pub(super) rtt: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AckTiming {
    acks: Acks,
    /// Whether reports beyond a gap may wait.
    compresses: bool,
    /// Whether a second segment waits for the reader.
    awaits_reader: bool,
    segment_bytes: u64,
    quick_acks_left: u32,
    /// New data waits for its acknowledgement, which uses up a quick one.
    has_new: bool,
    unacked_bytes: u64,
    delayed_until: Option<Instant>,
    /// The byte expected when the last duplicate left, and how many left for it.
    duplicates_of: u64,
    duplicates: u32,
    /// Reports beyond a gap that wait.
    compressed: u32,
    compressed_until: Option<Instant>,
    is_due: bool,
}

impl AckTiming {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        let is_linux = config.acks == Acks::Linux;
        Self {
            acks: config.acks,
            compresses: is_linux && config.sack && config.is_of_today,
            // A subflow hands its data on as it arrives.
            awaits_reader: is_linux && !config.is_subflow,
            segment_bytes: config.segment_bytes,
            quick_acks_left: if is_linux { QUICK_ACKS } else { 0 },
            has_new: false,
            unacked_bytes: 0,
            delayed_until: None,
            duplicates_of: 0,
            duplicates: 0,
            compressed: 0,
            compressed_until: None,
            is_due: false,
        }
    }

    pub(super) fn is_linux(&self) -> bool {
        self.acks == Acks::Linux
    }

    /// Data arrived in order.
    pub(super) fn on_in_order(&mut self, now: Instant, arrival: &Arrival) {
        self.has_new = true;
        self.unacked_bytes += arrival.bytes;
        // RFC 5681 section 4.2: a segment that fills a gap is acknowledged at once.
        if arrival.gap == Gap::Filled || self.quick_acks_left > 0 {
            self.is_due = true;
        } else if arrival.gap == Gap::Open {
            self.report(now, arrival.next, arrival.rtt);
        } else if self.unacked_bytes <= self.segment_bytes {
            let delay = if self.is_linux() { DELAY } else { quic::MAX_ACK_DELAY };
            self.delayed_until.get_or_insert(now + delay);
        } else if self.awaits_reader {
            // Until it is read it takes up room in the window, and Linux leaves it to the reader.
            self.at(arrival.read_at);
        } else {
            self.is_due = true;
        }
    }

    /// Data arrived beyond a gap, where `next` is expected.
    pub(super) fn on_beyond_gap(&mut self, now: Instant, next: u64, rtt: Option<Duration>) {
        self.has_new = true;
        self.report(now, next, rtt);
    }

    fn report(&mut self, now: Instant, next: u64, rtt: Option<Duration>) {
        if !self.compresses || self.quick_acks_left > 0 || self.compressed >= COMPRESSED_MAX {
            self.is_due = true;
            return;
        }
        if core::mem::replace(&mut self.duplicates_of, next) != next {
            self.duplicates = 0;
        }
        if self.duplicates < DUPLICATES {
            self.duplicates += 1;
            self.is_due = true;
        } else {
            self.compressed += 1;
            let delay = (rtt.unwrap_or_default() / COMPRESSED_PART).min(COMPRESSED_DELAY);
            self.compressed_until.get_or_insert(now + delay);
        }
    }

    /// Data arrived again: the sender has trouble and needs acknowledgements quickly.
    pub(super) fn on_duplicate(&mut self) {
        if self.is_linux() {
            self.quick_acks_left = self.quick_acks_left.max(QUICK_ACKS);
        }
        self.is_due = true;
    }

    /// More is offered than before, which the sender learns at once. What was left of quick
    /// acknowledgements stays for when the window no longer grows (Linux: `quick |= 1`).
    pub(super) fn on_window_growth(&mut self) {
        if self.is_linux() {
            self.quick_acks_left |= 1;
        }
    }

    pub(super) fn at_once(&mut self) {
        self.is_due = true;
    }

    /// An acknowledgement leaves at `at` at the latest.
    pub(super) fn at(&mut self, at: Instant) {
        self.delayed_until = Some(self.delayed_until.map_or(at, |until| until.min(at)));
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        [self.delayed_until, self.compressed_until].into_iter().flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= self.timeout().is_some_and(|until| until <= now);
    }

    /// Whether an acknowledgement leaves now; if so it covers everything.
    pub(super) fn take_due(&mut self) -> bool {
        if !self.is_due {
            return false;
        }
        self.is_due = false;
        self.delayed_until = None;
        self.compressed = 0;
        self.compressed_until = None;
        self.unacked_bytes = 0;
        let used = u32::from(core::mem::take(&mut self.has_new));
        self.quick_acks_left = self.quick_acks_left.saturating_sub(used);
        true
    }
}
