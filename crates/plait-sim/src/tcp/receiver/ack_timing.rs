//! When an acknowledgement leaves: at once, with every second segment, or after a while.

use plait_proto::time::{Duration, Instant};

use crate::tcp::config::Acks;
use crate::tcp::quic;

/// Linux's TCP_DELACK_MIN.
const DELAY: Duration = Duration::from_millis(40);
/// Linux's TCP_MAX_QUICKACKS: this many segments are acknowledged immediately at the start, to let
/// the sender's window grow.
const QUICK_ACKS: u32 = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct AckTiming {
    acks: Acks,
    segment_bytes: u64,
    quick_acks_left: u32,
    unacked_bytes: u64,
    delayed_until: Option<Instant>,
    is_due: bool,
}

impl AckTiming {
    pub(super) fn new(acks: Acks, segment_bytes: u64) -> Self {
        Self {
            acks,
            segment_bytes,
            quick_acks_left: if acks == Acks::Linux { QUICK_ACKS } else { 0 },
            unacked_bytes: 0,
            delayed_until: None,
            is_due: false,
        }
    }

    pub(super) fn is_linux(&self) -> bool {
        self.acks == Acks::Linux
    }

    /// In-order data arrived and no gap is open.
    pub(super) fn on_in_order(&mut self, now: Instant, bytes: u64) {
        self.unacked_bytes += bytes;
        if self.quick_acks_left > 0 || self.unacked_bytes > self.segment_bytes {
            self.is_due = true;
        } else {
            let delay = if self.acks == Acks::Linux { DELAY } else { quic::MAX_ACK_DELAY };
            self.delayed_until.get_or_insert(now + delay);
        }
    }

    /// Data arrived again: the sender has trouble and needs acknowledgements quickly.
    pub(super) fn on_duplicate(&mut self) {
        if self.acks == Acks::Linux {
            self.quick_acks_left = QUICK_ACKS;
        }
        self.is_due = true;
    }

    pub(super) fn at_once(&mut self) {
        self.is_due = true;
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        self.delayed_until
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.is_due |= self.delayed_until.is_some_and(|until| until <= now);
    }

    /// Whether an acknowledgement leaves now; if so it covers everything.
    pub(super) fn take_due(&mut self) -> bool {
        if !self.is_due {
            return false;
        }
        self.is_due = false;
        self.delayed_until = None;
        self.unacked_bytes = 0;
        self.quick_acks_left = self.quick_acks_left.saturating_sub(1);
        true
    }
}
