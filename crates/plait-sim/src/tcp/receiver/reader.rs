//! The application that reads: until it does, what arrived in order takes up room in the window.

use plait_proto::time::{Duration, Instant};

use super::right_sizing::Read;

/// How long it takes to wake up.
const DELAY: Duration = Duration::from_micros(20);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reader {
    /// What waits to be read, or was read last.
    last: Option<Read>,
}

impl Reader {
    /// Data arrived in order. Returns what was read before that and not told yet.
    pub(super) fn on_arrival(&mut self, now: Instant, bytes: u64) -> Option<Read> {
        match &mut self.last {
            Some(read) if read.at > now => {
                read.rest_bytes += bytes;
                None
            }
            last => last.replace(Read { at: now + DELAY, first_bytes: bytes, rest_bytes: 0 }),
        }
    }

    /// When it reads what waits, or read last.
    pub(super) fn wakes_at(&self) -> Instant {
        self.last.map_or(Instant::ZERO, |read| read.at)
    }

    /// Whether nothing waits that came before now. A burst that the model hands over at one instant
    /// takes a kernel a while, in which its reader, on another core, reads.
    pub(super) fn has_caught_up(&self, now: Instant) -> bool {
        self.last.is_none_or(|read| read.at <= now || read.at >= now + DELAY)
    }

    /// What waits to be read.
    pub(super) fn unread_bytes(&self, now: Instant) -> u64 {
        let waiting = self.last.filter(|read| read.at > now);
        waiting.map_or(0, |read| read.first_bytes + read.rest_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_arrives_before_it_wakes_is_read_at_once() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut reader = Reader::default();
        assert_eq!(reader.on_arrival(at(100), 10), None);
        assert_eq!(reader.wakes_at(), at(120));
        assert_eq!(reader.on_arrival(at(119), 5), None);
        assert_eq!(reader.unread_bytes(at(119)), 15);
        assert_eq!(reader.unread_bytes(at(120)), 0);
        let read = Read { at: at(120), first_bytes: 10, rest_bytes: 5 };
        assert_eq!(reader.on_arrival(at(130), 7), Some(read), "told with what comes next");
        assert_eq!(reader.wakes_at(), at(150));
        assert_eq!(reader.unread_bytes(at(149)), 7);
    }

    /// Behind a bond each packet that comes late lets go what waited for it, all at one instant.
    /// The round-trip time was taken from none of it, stayed at what it was before the bond had a
    /// far path, and with it the window.
    #[test]
    fn regression_what_arrives_together_does_not_wait_for_the_reader() {
        let at = |micros| Instant::ZERO + Duration::from_micros(micros);
        let mut reader = Reader::default();
        assert!(reader.has_caught_up(at(100)));
        reader.on_arrival(at(100), 10);
        assert!(reader.has_caught_up(at(100)), "it came at this instant");
        assert!(!reader.has_caught_up(at(101)));
        assert!(!reader.has_caught_up(at(119)));
        assert!(reader.has_caught_up(at(120)));
    }
}
