//! The sender's place in the connection's data: what exists, what was sent, what was acknowledged,
//! and how far the receiver has room.

use plait_proto::time::{Duration, Instant};

use crate::tcp::Source;
use crate::tcp::segment::SeqRange;

/// Numbers of the connection's bytes, from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataSequence {
    segment_bytes: u64,
    /// Bytes that the source has given so far.
    given: u64,
    /// Whether it will give no more.
    is_whole: bool,
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
    /// # Panics
    ///
    /// With a source that gives its data over time by itself.
    pub(super) fn new(segment_bytes: u64, source: Source) -> Self {
        let (given, is_whole) = match source {
            Source::Endless => (u64::MAX, false),
            Source::Bytes(bytes) => (bytes, true),
            Source::Written => (0, false),
            Source::Steady(_) => panic!("a connection over several subflows has no steady source"),
        };
        Self {
            segment_bytes,
            given,
            is_whole,
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

    /// The source gives more.
    pub(super) fn give(&mut self, bytes: u64) {
        self.given += bytes;
    }

    /// Whether the application has written everything that it has so far.
    pub(super) fn is_all_written(&self) -> bool {
        self.given == self.written
    }

    /// Whether everything that will ever exist is acknowledged.
    pub(super) fn is_finished(&self) -> bool {
        self.is_whole && self.given == self.una
    }

    /// The application writes until the buffer holds `bytes`.
    pub(super) fn fill_to(&mut self, bytes: u64) {
        let most = (self.una + bytes).min(self.given);
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
        let mut data = DataSequence::new(1000, Source::Bytes(4500));
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

    #[test]
    fn what_is_given_later_leaves_later_and_never_ends() {
        let mut data = DataSequence::new(1000, Source::Written);
        data.on_ack(0, 10_000);
        data.fill_to(9000);
        assert_eq!((data.take(), data.is_finished()), (None, false));
        data.give(1500);
        data.fill_to(9000);
        assert_eq!(data.take(), Some(SeqRange::new(0, 1000)));
        assert_eq!(data.take(), Some(SeqRange::new(1000, 500)), "the end of what there is");
        data.on_ack(1500, 10_000);
        assert!(!data.is_finished());
        data.give(100);
        data.fill_to(9000);
        assert_eq!(data.take(), Some(SeqRange::new(1500, 100)));
    }
}
