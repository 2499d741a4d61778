//! The receiving end: puts data in order, and acknowledges it (RFC 9293, RFC 5681 section 4.2, RFC
//! 2018, RFC 2883), with Linux's timing of acknowledgements.

mod ack_timing;
mod reader;
mod recent;
pub(super) mod right_sizing;
pub(super) mod window;

use plait_proto::time::Instant;

use super::config::ReceiverConfig;
use super::ranges::RangeSet;
use super::segment::{Flags, SackOption, Segment, SeqRange};
use super::timestamp_ms;
use ack_timing::{AckTiming, Arrival, Gap};
use reader::Reader;
use recent::Recent;
use window::Window;

/// Linux's TCP_PAWS_WINDOW: timestamps may go back so far.
const PAWS_WINDOW_MS: u64 = 1;

/// A receiver's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiverCounters {
    /// Data bytes handed to the application, each once and in order.
    pub goodput_bytes: u64,
    /// Segments with data that arrived.
    pub data_segments: u64,
    /// Those of them without new data.
    pub duplicate_segments: u64,
    /// Those of them that arrived beyond a gap.
    pub out_of_order_segments: u64,
    /// Those of them that reached beyond the window and were dropped.
    pub beyond_window_segments: u64,
    /// Those of them that were dropped because a later one had moved the timestamp that is echoed.
    pub outdated_segments: u64,
    /// Acknowledgements sent.
    pub acks_sent: u64,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub struct TcpReceiver {
    /// Whether acknowledgements carry the SACK option.
    sack: bool,
    sack_blocks_max: usize,
    is_of_today: bool,
    /// The next byte expected.
    next: u64,
    /// The next byte that the application will read.
    read: u64,
    out_of_order: RangeSet,
    recent: Recent,
    dsack: Option<SeqRange>,
    window: Window,
    reader: Reader,
    timing: AckTiming,
    /// A SYN must be answered.
    syn_due: bool,
    /// The timestamp to echo (RFC 7323 section 4.3).
    ts_recent_ms: u64,
    last_ack_sent: u64,
    /// The highest packet number that arrived (QUIC).
    largest_number: u64,
    counters: ReceiverCounters,
}

impl TcpReceiver {
    /// A receiver that waits for a connection.
    pub fn new(config: ReceiverConfig) -> Self {
        Self {
            sack: config.sack,
            sack_blocks_max: config.sack_blocks_max,
            is_of_today: config.is_of_today && !config.is_subflow,
            next: 0,
            read: 0,
            out_of_order: RangeSet::default(),
            recent: Recent::default(),
            dsack: None,
            window: if config.is_subflow {
                Window::of_subflow(&config)
            } else {
                Window::new(&config)
            },
            reader: Reader::default(),
            timing: AckTiming::new(&config),
            syn_due: false,
            ts_recent_ms: 0,
            last_ack_sent: 0,
            largest_number: 0,
            counters: ReceiverCounters::default(),
        }
    }

    /// Of a subflow: the window that its connection may offer.
    pub(super) fn let_window_grow(&mut self, clamp_bytes: u64) {
        self.window.let_grow(clamp_bytes);
    }

    /// The window that it offers, or as a subflow would offer.
    pub(super) fn offered_bytes(&self) -> u64 {
        self.window.bytes()
    }

    /// Handles a segment that arrived.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.syn {
            self.syn_due = true;
            self.ts_recent_ms = segment.ts_ms;
            return;
        }
        if segment.len == 0 {
            if self.next == 0 {
                self.window.on_open(now);
            }
            return;
        }
        self.counters.data_segments += 1;
        self.largest_number = self.largest_number.max(segment.number);
        let all_was_read = self.reader.has_caught_up(now);
        self.window.on_segment(now, segment.ts_echo_ms, all_was_read);
        let range = segment.range();
        if range.end > self.window.right_edge() {
            self.counters.beyond_window_segments += 1;
            self.timing.at_once();
            return;
        }
        if self.is_outdated(segment) {
            self.on_outdated(range);
            return;
        }
        // What was acknowledged as a whole is not acceptable and moves no timestamp.
        if range.start <= self.last_ack_sent && range.end >= self.last_ack_sent {
            self.ts_recent_ms = self.ts_recent_ms.max(segment.ts_ms);
        }
        if range.end <= self.next {
            self.on_duplicate(range);
        } else if range.start > self.next {
            self.on_out_of_order(now, range);
        } else {
            self.on_in_order(now, range);
        }
    }

    /// Takes the next segment to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let syn = core::mem::take(&mut self.syn_due);
        if !syn && !self.timing.take_due() {
            return None;
        }
        self.counters.acks_sent += 1;
        self.last_ack_sent = self.next;
        let dsack = self.dsack.take().filter(|_| self.sack);
        let mut blocks =
            if self.sack { self.recent.blocks(&self.out_of_order) } else { Vec::new() };
        blocks.truncate(self.sack_blocks_max - usize::from(dsack.is_some()));
        Some(Segment {
            ack: self.next,
            sack: SackOption::new(dsack, blocks),
            window: self.advertise(now),
            flags: Flags { syn, ack: true },
            ts_ms: timestamp_ms(now),
            ts_echo_ms: self.ts_recent_ms,
            number: self.largest_number,
            ..Segment::default()
        })
    }

    /// Takes the data that is now in order; `None` when there is none.
    pub fn poll_deliver(&mut self) -> Option<SeqRange> {
        let range = SeqRange { start: self.read, end: self.next };
        self.read = self.next;
        (!range.is_empty()).then_some(range)
    }

    /// When to call [`TcpReceiver::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timing.timeout()
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.timing.handle_timeout(now);
    }

    /// The receiver's counters.
    pub fn counters(&self) -> ReceiverCounters {
        self.counters
    }

    /// Whether a segment was sent before the one whose timestamp is echoed (RFC 7323 section 5,
    /// PAWS). A retransmission that overtakes originals makes them so, and Linux drops them.
    fn is_outdated(&self, segment: &Segment) -> bool {
        self.timing.is_linux() && segment.ts_ms + PAWS_WINDOW_MS < self.ts_recent_ms
    }

    fn on_outdated(&mut self, range: SeqRange) {
        self.counters.outdated_segments += 1;
        if range.start < self.next {
            self.on_duplicate(SeqRange { end: range.end.min(self.next), ..range });
        } else {
            self.timing.at_once();
        }
    }

    fn on_duplicate(&mut self, range: SeqRange) {
        self.counters.duplicate_segments += 1;
        self.dsack = Some(range);
        self.timing.on_duplicate();
    }

    fn on_out_of_order(&mut self, now: Instant, range: SeqRange) {
        self.recent.note(range.start);
        if self.out_of_order.insert(range).is_empty() {
            self.counters.duplicate_segments += 1;
            self.dsack = Some(range);
        } else {
            self.counters.out_of_order_segments += 1;
            self.window.on_beyond_gap(self.out_of_order.end().unwrap_or(range.end) - self.next);
            // Without SACK only an acknowledgement that offers no more counts as a duplicate.
            if self.sack {
                self.grow_window(self.used_bytes(now));
            }
        }
        self.timing.on_beyond_gap(now, self.next, self.window.rtt());
    }

    fn on_in_order(&mut self, now: Instant, range: SeqRange) {
        let before = self.next;
        let used_before = self.used_bytes(now);
        self.next = range.end;
        if let Some(read) = self.reader.on_arrival(now, self.next - before) {
            self.window.on_read(read);
        }
        let read_at = self.reader.wakes_at();
        // A segment itself takes hardly any room in Linux 6.18.
        let used = if self.is_of_today { used_before } else { self.used_bytes(now) };
        self.grow_window(used);
        let had_gap = !self.out_of_order.is_empty();
        if let Some(held) = self.out_of_order.first().filter(|held| held.start <= self.next) {
            let more = self.reader.on_arrival(now, held.end.saturating_sub(self.next));
            debug_assert_eq!(more, None, "what filled the gap is still unread");
            self.next = self.next.max(held.end);
            self.out_of_order.remove_below(self.next);
        }
        let gap = match (had_gap, self.out_of_order.is_empty()) {
            (false, _) => Gap::None,
            (true, true) => Gap::Filled,
            (true, false) => Gap::Open,
        };
        let (bytes, next) = (self.next - before, self.next);
        self.counters.goodput_bytes += bytes;
        let rtt = self.window.rtt();
        self.timing.on_in_order(now, &Arrival { bytes, next, gap, read_at, rtt });
    }

    fn grow_window(&mut self, used_bytes: u64) {
        if self.window.grow(used_bytes) {
            self.timing.on_window_growth();
        }
    }

    /// What is offered now. If reading will at least double it, that is told then (Linux:
    /// `tcp_cleanup_rbuf`).
    fn advertise(&mut self, now: Instant) -> u64 {
        let offered = self.window.advertise(self.next, self.used_bytes(now));
        let when_read = self.window.would_offer(self.out_of_order.bytes());
        if when_read >= 2 * offered && when_read > 0 && self.reader.unread_bytes(now) > 0 {
            self.timing.at(self.reader.wakes_at());
        }
        offered
    }

    /// What takes up room in the window: what lies beyond a gap, and what was not read yet.
    fn used_bytes(&self, now: Instant) -> u64 {
        self.out_of_order.bytes() + self.reader.unread_bytes(now)
    }
}

#[cfg(test)]
mod tests;
