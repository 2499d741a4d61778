//! Round trips, told apart by the order of sending.

use super::{PacketState, Sent};

/// Counts what is sent and knows when a round is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    sent_bytes_total: u64,
    /// What had been sent when the current round began.
    end: u64,
}

impl Rounds {
    pub(super) fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.sent_bytes_total += sent.bytes;
        PacketState {
            sent_bytes_total: self.sent_bytes_total,
            in_flight_bytes: sent.in_flight_bytes,
            is_restrained: false,
        }
    }

    /// Bytes sent since the start.
    pub(super) const fn sent_bytes_total(&self) -> u64 {
        self.sent_bytes_total
    }

    /// Whether the acknowledgement of `newest` shows a packet that was sent after the round began.
    pub(super) const fn is_past(&self, newest: PacketState) -> bool {
        newest.sent_bytes_total > self.end
    }

    /// Whether the last packet that was sent before the round began is acknowledged.
    pub(super) const fn is_over(&self, newest: PacketState) -> bool {
        newest.sent_bytes_total >= self.end
    }

    /// Begins a round with what is in flight now.
    pub(super) const fn begin(&mut self) {
        self.end = self.sent_bytes_total;
    }
}
