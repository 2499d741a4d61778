//! The data that a sender has to send.

use std::collections::VecDeque;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

/// The application behind a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Always more.
    Endless,
    /// So many bytes, all available at once.
    Bytes(u64),
    /// Data that the owner writes.
    Written,
    /// A steady stream from the moment the connection opens, in whole segments.
    Steady(Rate),
}

/// A source and its progress.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    source: Source,
    written_bytes: u64,
    /// Where records end that are not sent yet.
    record_ends: VecDeque<u64>,
    opened_at: Option<Instant>,
}

impl Supply {
    pub(super) fn new(source: Source) -> Self {
        Self { source, written_bytes: 0, record_ends: VecDeque::new(), opened_at: None }
    }

    pub(super) fn open(&mut self, now: Instant) {
        self.opened_at = Some(now);
    }

    pub(super) fn write(&mut self, bytes: u64) {
        self.written_bytes += bytes;
    }

    /// As [`Supply::write`]; no segment holds bytes of this record and of another.
    pub(super) fn write_record(&mut self, bytes: u64) {
        self.write(bytes);
        self.record_ends.push_back(self.written_bytes);
    }

    /// Everything below `nxt` was sent.
    pub(super) fn on_sent(&mut self, nxt: u64) {
        while self.record_ends.front().is_some_and(|end| *end <= nxt) {
            self.record_ends.pop_front();
        }
    }

    /// Bytes written since the start.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Bytes that exist beyond `nxt`, at most `segment_bytes`; less only at the end of the data.
    pub(super) fn next_len(&self, now: Instant, nxt: u64, segment_bytes: u64) -> u64 {
        let end = match self.source {
            Source::Endless => return segment_bytes,
            Source::Bytes(bytes) => bytes,
            Source::Written => self.record_ends.front().copied().unwrap_or(self.written_bytes),
            Source::Steady(rate) => {
                let elapsed = self.opened_at.map_or(Duration::ZERO, |opened| now.since(opened));
                rate.bytes_in(elapsed) / segment_bytes * segment_bytes
            }
        };
        end.saturating_sub(nxt).min(segment_bytes)
    }

    /// Bytes that exist beyond `nxt`.
    pub(super) fn unsent_bytes(&self, now: Instant, nxt: u64) -> u64 {
        let end = match self.source {
            Source::Endless => u64::MAX,
            Source::Bytes(bytes) => bytes,
            Source::Written => self.written_bytes,
            Source::Steady(rate) => {
                rate.bytes_in(self.opened_at.map_or(Duration::ZERO, |opened| now.since(opened)))
            }
        };
        end.saturating_sub(nxt)
    }

    /// When the bytes up to `nxt + segment_bytes` will exist, if only time is needed.
    pub(super) fn next_at(&self, nxt: u64, segment_bytes: u64) -> Option<Instant> {
        let Source::Steady(rate) = self.source else { return None };
        // One nanosecond more, because both conversions round down.
        let time = rate.time_for(nxt + segment_bytes).saturating_add(Duration::from_nanos(1));
        Some(self.opened_at? + time)
    }

    /// Whether everything that will ever exist lies below `una`.
    pub(super) fn is_finished(&self, una: u64) -> bool {
        self.source == Source::Bytes(una)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_stream_has_the_next_segment_when_it_says() {
        let mut supply = Supply::new(Source::Steady(Rate::from_bits_per_second(7_777_777)));
        supply.open(Instant::from_millis(5));
        for index in 0..1000 {
            let nxt = index * 1448;
            let at = supply.next_at(nxt, 1448).unwrap();
            assert_eq!(supply.next_len(at, nxt, 1448), 1448, "segment {index}");
            let before = at.saturating_sub(Duration::from_nanos(3));
            assert_eq!(supply.next_len(before, nxt, 1448), 0, "segment {index}");
        }
    }

    #[test]
    fn no_segment_spans_two_records() {
        let mut supply = Supply::new(Source::Written);
        [1448, 100, 1448].into_iter().for_each(|bytes| supply.write_record(bytes));
        let mut nxt = 0;
        let lengths: Vec<u64> = core::iter::from_fn(|| {
            let len = supply.next_len(Instant::ZERO, nxt, 1448);
            nxt += len;
            supply.on_sent(nxt);
            (len > 0).then_some(len)
        })
        .collect();
        assert_eq!(lengths, [1448, 100, 1448]);
    }

    #[test]
    fn the_last_segment_is_short() {
        let supply = Supply::new(Source::Bytes(3000));
        assert_eq!(supply.next_len(Instant::ZERO, 1448, 1448), 1448);
        assert_eq!(supply.next_len(Instant::ZERO, 2896, 1448), 104);
        assert!(supply.is_finished(3000));
    }
}
