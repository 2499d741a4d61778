//! The state of a run: its clock, its event queue, and a digest of all past events.

use plait_proto::time::Instant;

use super::queue::{Event, EventQueue};

/// Clock, queue and digest.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) now: Instant,
    pub(super) queue: EventQueue,
    pub(super) trace: Trace,
}

impl Timeline {
    /// Moves to the next event at `end` or before, and returns it with the time for which it was
    /// queued, which may be in the past.
    pub(super) fn step(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let (at, event) = self.queue.pop_until(end)?;
        self.now = self.now.max(at);
        Some((at, event))
    }
}

/// A digest of a run's timeline: every packet at every link's entrance, with its time, and every
/// packet that an application sent or received. Two runs with the same digest were the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trace {
    digest: u64,
    events: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self { digest: 0xcbf2_9ce4_8422_2325, events: 0 }
    }
}

impl Trace {
    /// Adds an event (FNV-1a over words in place of bytes).
    pub(super) fn note(&mut self, now: Instant, words: [u64; 3]) {
        self.events += 1;
        for word in [now.as_nanos(), words[0], words[1], words[2]] {
            self.digest = (self.digest ^ word).wrapping_mul(0x0100_0000_01b3);
            self.digest ^= self.digest >> 32;
        }
    }

    /// The digest.
    pub const fn digest(self) -> u64 {
        self.digest
    }

    /// How many events it covers.
    pub const fn events(self) -> u64 {
        self.events
    }
}
