//! The application that reads: until it does, what arrived in order takes up room in the window.

use plait_proto::time::{Duration, Instant};

/// How long it takes to wake up.
const DELAY: Duration = Duration::from_micros(20);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    wakes_at: Instant,
    unread_bytes: u64,
}

impl Reader {
    /// Data arrived in order. Returns when it will be read.
    pub(super) fn on_arrival(&mut self, now: Instant, bytes: u64) -> Instant {
        if self.wakes_at <= now {
            *self = Self { wakes_at: now + DELAY, unread_bytes: 0 };
        }
        self.unread_bytes += bytes;
        self.wakes_at
    }

    /// When it reads what waits.
    pub(super) fn wakes_at(&self) -> Instant {
        self.wakes_at
    }

    /// What waits to be read.
    pub(super) fn unread_bytes(&self, now: Instant) -> u64 {
        if self.wakes_at <= now { 0 } else { self.unread_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_arrives_before_it_wakes_is_read_at_once() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut reader = Reader::default();
        assert_eq!(reader.on_arrival(at(100), 10), at(120));
        assert_eq!(reader.on_arrival(at(119), 5), at(120));
        assert_eq!(reader.unread_bytes(at(119)), 15);
        assert_eq!(reader.unread_bytes(at(120)), 0);
        assert_eq!(reader.on_arrival(at(130), 7), at(150));
        assert_eq!(reader.unread_bytes(at(149)), 7);
    }
}
