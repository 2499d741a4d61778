//! The sender's place in the connection's data: what exists, what was sent, what was acknowledged,
//! and how far the receiver has room.

use plait_proto::time::{Duration, Instant};

use crate::tcp::segment::SeqRange;

/// Numbers of the connection's bytes, from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataSequence {
    segment_bytes: u64,
    /// Bytes that there will ever be; `None` without an end.
    end: Option<u64>,
    /// Everything below is acknowledged.
    una: u64,
    /// The next byte to be sent for the first time.
    nxt: u64,
    /// The byte after the last that the application has written.
    written: u64,
    /// The byte after the last that the receiver has room for.
    right_edge: u64,
    /// Since when nothing new may be sent because the receiver has no room.
    blocked_since: Option<Instant>,
    blocked: Duration,
}

impl DataSequence {
    pub(super) fn new(segment_bytes: u64, end: Option<u64>) -> Self {
        Self {
            segment_bytes,
            end,
            una: 0,
            nxt: 0,
            written: 0,
            right_edge: 0,
            blocked_since: None,
            blocked: Duration::ZERO,
        }
    }

    pub(super) fn una(&self) -> u64 {
        self.una
    }

    pub(super) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes written and not acknowledged: what the send buffer holds.
    pub(super) fn held_bytes(&self) -> u64 {
        self.written - self.una
    }

    /// Bytes written and never sent.
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.written - self.nxt
    }

    /// Bytes that the receiver has room for beyond what was sent.
    pub(super) fn room_bytes(&self) -> u64 {
        self.right_edge.saturating_sub(self.nxt)
    }

    /// The receiver's window: what may be outstanding.
    pub(super) fn window_bytes(&self) -> u64 {
        self.right_edge - self.una
    }

    /// Whether the application has written everything.
    pub(super) fn is_all_written(&self) -> bool {
        self.end == Some(self.written)
    }

    /// Whether everything that will ever exist is acknowledged.
    pub(super) fn is_finished(&self) -> bool {
        self.end == Some(self.una)
    }

    /// The application writes until the buffer holds `bytes`.
    pub(super) fn fill_to(&mut self, bytes: u64) {
        let most = (self.una + bytes).min(self.end.unwrap_or(u64::MAX));
        self.written = self.written.max(most);
    }

    /// An acknowledgement arrived; says whether it was news.
    pub(super) fn on_ack(&mut self, ack: u64, right_edge: u64) -> bool {
        let is_new = ack > self.una || right_edge > self.right_edge;
        self.una = self.una.max(ack.min(self.nxt));
        self.right_edge = self.right_edge.max(right_edge);
        is_new
    }

    /// Length of the next segment, whether or not the receiver has room: a full one, or the end of
    /// the data.
    fn next_len(&self) -> u64 {
        let unsent = self.unsent_bytes();
        if unsent >= self.segment_bytes {
            self.segment_bytes
        } else if self.is_all_written() {
            unsent
        } else {
            0
        }
    }

    /// Whether a segment may leave.
    pub(super) fn may_send(&self) -> bool {
        let len = self.next_len();
        len > 0 && len <= self.room_bytes()
    }

    /// Takes the next segment's bytes. No segment is cut to what the receiver has room for: it is
    /// sent when there is room for all of it (RFC 9293 section 3.8.6.2.1).
    pub(super) fn take(&mut self) -> Option<SeqRange> {
        if !self.may_send() {
            return None;
        }
        let range = SeqRange::new(self.nxt, self.next_len());
        self.nxt = range.end;
        Some(range)
    }

    /// Notes whether a full window keeps data back.
    pub(super) fn note_blocked(&mut self, now: Instant) {
        let is_blocked = self.next_len() > self.room_bytes();
        match (is_blocked, self.blocked_since) {
            (true, None) => self.blocked_since = Some(now),
            (false, Some(since)) => {
                self.blocked += now.since(since);
                self.blocked_since = None;
            }
            _ => {}
        }
    }

    /// Whether a full window keeps data back.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked_since.is_some()
    }

    /// For how long a full window kept data back, ended times only.
    pub(super) fn blocked(&self) -> Duration {
        self.blocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_is_written_and_has_room() {
        let mut data = DataSequence::new(1000, Some(4500));
        assert!(data.on_ack(0, 2400));
        assert_eq!(data.take(), None, "nothing is written");
        data.fill_to(1500);
        assert_eq!(data.take(), Some(SeqRange::new(0, 1000)));
        assert_eq!(data.take(), None, "half a segment waits for the rest");
        data.fill_to(9000);
        assert!(data.is_all_written());
        assert_eq!(data.take(), Some(SeqRange::new(1000, 1000)));
        assert_eq!(data.take(), None, "the window ends");
        data.note_blocked(Instant::from_millis(10));
        assert!(data.is_blocked());
        assert!(!data.on_ack(0, 2400));
        assert!(data.on_ack(2000, 6000));
        data.note_blocked(Instant::from_millis(35));
        assert_eq!((data.is_blocked(), data.blocked()), (false, Duration::from_millis(25)));
        assert_eq!(data.take(), Some(SeqRange::new(2000, 1000)));
        assert_eq!(data.take(), Some(SeqRange::new(3000, 1000)));
        assert_eq!(data.take(), Some(SeqRange::new(4000, 500)));
        data.on_ack(4500, 6000);
        assert!(data.is_finished());
    }
}
