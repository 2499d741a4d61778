//! What a receiver's window may become: twice what the application reads per round trip, and more
//! while that grows, so that the window does not limit the sender (Linux's dynamic right-sizing,
//! `tcp_rcv_space_adjust`).

use plait_proto::time::{Duration, Instant};

use crate::tcp::timestamp_ms;

/// What is taken for read in a round trip before anything was.
const INITIAL_SEGMENTS: u64 = 10;
/// What Linux before 6.16 adds.
const CUSHION_SEGMENTS: u64 = 16;

/// Data that the application reads at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp) struct Read {
    pub(in crate::tcp) at: Instant,
    /// Of the first segment.
    pub(in crate::tcp) first_bytes: u64,
    /// Of those that waited behind it.
    pub(in crate::tcp) rest_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RightSizing {
    is_of_today: bool,
    segment_bytes: u64,
    /// Round-trip time from timestamp echoes, each taken once.
    rtt: Option<Duration>,
    ts_echo_ms: Option<u64>,
    round_start: Instant,
    read_bytes: u64,
    /// What was read in the best round so far.
    read_bytes_max: u64,
}

impl RightSizing {
    pub(super) fn new(segment_bytes: u64, window_bytes: u64, is_of_today: bool) -> Self {
        Self {
            is_of_today,
            segment_bytes,
            rtt: None,
            ts_echo_ms: None,
            round_start: Instant::ZERO,
            read_bytes: 0,
            read_bytes_max: window_bytes.min(INITIAL_SEGMENTS * segment_bytes),
        }
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// The round-trip time, where it is not taken from the echoes.
    pub(super) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    /// The connection is open.
    pub(super) fn on_open(&mut self, now: Instant) {
        self.round_start = now;
    }

    /// Data came that echoes a timestamp of ours. `all_was_read` says whether nothing that came
    /// before it waits for the application.
    pub(super) fn on_segment(&mut self, now: Instant, ts_echo_ms: u64, all_was_read: bool) {
        if self.ts_echo_ms.replace(ts_echo_ms) == Some(ts_echo_ms) {
            return;
        }
        let millis = timestamp_ms(now).saturating_sub(ts_echo_ms).max(1);
        let sample = Duration::from_millis(millis);
        self.rtt = Some(match self.rtt {
            None => sample,
            // Since 6.16 the least is taken at once, and nothing while data waits.
            Some(rtt) if self.is_of_today && sample < rtt => sample,
            Some(rtt) if self.is_of_today && !all_was_read => rtt,
            Some(rtt) => (rtt * 7 + sample) / 8,
        });
    }

    /// What the window may become; `None` when that is as before. At the end of a round trip Linux
    /// looks at what has been read when the first segment is. Since 6.16 it takes off what waits
    /// behind that; mostly nothing is there yet, so the model takes nothing off.
    pub(super) fn on_read(&mut self, read: Read) -> Option<u64> {
        self.read_bytes += read.first_bytes;
        if read.at.since(self.round_start) < self.rtt.unwrap_or_default() {
            self.read_bytes += read.rest_bytes;
            return None;
        }
        let (new, before) = (self.read_bytes, self.read_bytes_max);
        self.read_bytes_max = before.max(new);
        (self.round_start, self.read_bytes) = (read.at, read.rest_bytes);
        (new > before).then(|| self.wanted(new, before.max(1)))
    }

    fn wanted(&self, read: u64, before: u64) -> u64 {
        let cushion = if self.is_of_today { 0 } else { CUSHION_SEGMENTS * self.segment_bytes };
        let [read, before, cushion] = [read, before, cushion].map(u128::from);
        let base = 2 * read + cushion;
        u64::try_from(base + 2 * base * (read - before) / before).unwrap_or(u64::MAX)
    }

    /// The same when data arrived beyond a gap and `span_bytes` lie between it and what is expected
    /// (since 6.16).
    pub(super) fn on_beyond_gap(&self, span_bytes: u64) -> Option<u64> {
        self.is_of_today.then_some(2 * self.read_bytes_max + span_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1448;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn read(millis: u64, segments: u64) -> Read {
        Read { at: at(millis), first_bytes: S, rest_bytes: (segments - 1) * S }
    }

    fn sizing(is_of_today: bool) -> RightSizing {
        let mut sizing = RightSizing::new(S, 65_535, is_of_today);
        sizing.on_open(at(0));
        sizing.on_segment(at(20), 0, true);
        sizing
    }

    #[test]
    fn what_waits_behind_the_first_segment_counts_for_the_next_round() {
        let mut before = sizing(false);
        assert_eq!(before.on_read(read(20, 20)), None, "only the first was read");
        assert_eq!(before.on_read(read(30, 10)), None, "the round is not over");
        // 19 + 10 + 1 for 10: base 2*30 + 16 segments, and four times that.
        assert_eq!(before.on_read(read(40, 15)), Some(5 * (2 * 30 + 16) * S));
        let mut today = sizing(true);
        assert_eq!(today.on_read(read(20, 20)), None);
        assert_eq!(today.on_read(read(30, 10)), None);
        // Without the 16 segments: 30 for 10, and five times that.
        assert_eq!(today.on_read(read(40, 15)), Some(5 * 2 * 30 * S));
        assert_eq!(today.on_read(read(60, 2)), None, "15 are less than 30");
    }

    #[test]
    fn today_the_least_round_trip_counts_at_once() {
        let rtts = |is_of_today: bool| {
            let mut sizing = sizing(is_of_today);
            let mut take = |now: u64, echo: u64, all_was_read: bool| {
                sizing.on_segment(at(now), echo, all_was_read);
                sizing.rtt().map(|rtt| rtt.as_micros())
            };
            [take(32, 20, true), take(60, 40, false), take(80, 60, true), take(81, 60, true)]
        };
        assert_eq!(rtts(false), [19_000, 19_125, 19_234, 19_234].map(Some));
        assert_eq!(rtts(true), [12_000, 12_000, 13_000, 13_000].map(Some));
    }

    #[test]
    fn today_a_gap_makes_room_for_what_it_spans() {
        assert_eq!(sizing(false).on_beyond_gap(30 * S), None);
        assert_eq!(sizing(true).on_beyond_gap(30 * S), Some(50 * S));
    }
}
