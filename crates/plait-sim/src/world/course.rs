//! Where a run stands: its clock, what is to come, and a digest of all that happened.

use plait_proto::time::Instant;

use super::queue::{Event, EventQueue};

/// Clock, queue and digest.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) now: Instant,
    pub(super) queue: EventQueue,
    pub(super) trace: Trace,
}

impl Course {
    /// Moves to the next event that happens at `end` or before, and gives it with the time for
    /// which it was queued, which may have passed by then.
    pub(super) fn step(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let (at, event) = self.queue.pop_until(end)?;
        self.now = self.now.max(at);
        Some((at, event))
    }
}

/// A digest of a run's course: every packet at every link's door, with its time, and every packet
/// that an application sent or got. Two runs with the same digest went the same way.
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
    /// Takes an event in (FNV-1a over words in place of bytes).
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
