//! The receiving end of the connection: puts the subflows' data in order, and offers one window for
//! all of them (RFC 8684 section 3.3.4).

use plait_proto::time::{Duration, Instant};

use crate::tcp::config::ReceiverConfig;
use crate::tcp::ranges::RangeSet;
use crate::tcp::receiver::right_sizing::Read;
use crate::tcp::receiver::window::Window;
use crate::tcp::segment::SeqRange;

#[derive(Debug)]
pub(super) struct DataReceiver {
    /// The next byte expected.
    next: u64,
    /// The next byte that the application will read.
    read: u64,
    out_of_order: RangeSet,
    window: Window,
    /// Bytes that arrived beyond the window.
    beyond_window_bytes: u64,
}

impl DataReceiver {
    pub(super) fn new(config: &ReceiverConfig) -> Self {
        Self {
            next: 0,
            read: 0,
            out_of_order: RangeSet::default(),
            window: Window::of_connection(config),
            beyond_window_bytes: 0,
        }
    }

    /// Data came into order on a subflow. `rtt` is the longest round-trip time of all subflows: the
    /// window is for a round trip of the slowest.
    pub(super) fn arrive(&mut self, now: Instant, data: SeqRange, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.window.set_rtt(rtt);
        }
        self.beyond_window_bytes += data.end.saturating_sub(self.window.right_edge());
        let start = data.start.max(self.next);
        self.out_of_order.insert(SeqRange { start, end: data.end.max(start) });
        let before = self.next;
        if let Some(first) = self.out_of_order.first().filter(|first| first.start <= self.next) {
            self.next = first.end;
            self.out_of_order.remove_below(self.next);
        }
        if self.next > before {
            let first_bytes = self.next - before;
            self.window.on_read(Read { at: now, first_bytes, rest_bytes: 0 });
        }
    }

    /// What the window may become.
    pub(super) fn window_clamp_bytes(&self) -> u64 {
        self.window.clamp_bytes()
    }

    /// A subflow would offer so much: the window is the largest of them.
    pub(super) fn follow_window(&mut self, bytes: u64) {
        self.window.follow(bytes);
    }

    /// What an acknowledgement says: the next byte expected, and the end of the window.
    pub(super) fn acknowledge(&mut self) -> (u64, u64) {
        let window = self.window.advertise(self.next, 0);
        (self.next, self.next + window)
    }

    /// Takes the data that is now in order.
    pub(super) fn poll_deliver(&mut self) -> Option<SeqRange> {
        let range = SeqRange { start: self.read, end: self.next };
        self.read = self.next;
        (!range.is_empty()).then_some(range)
    }

    pub(super) fn beyond_window_bytes(&self) -> u64 {
        self.beyond_window_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(window_bytes_max: u64) -> DataReceiver {
        let config = ReceiverConfig { window_bytes_max, ..ReceiverConfig::default() };
        DataReceiver::new(&config)
    }

    fn arrive(receiver: &mut DataReceiver, start: u64, end: u64) -> Option<SeqRange> {
        receiver.arrive(Instant::from_millis(1), SeqRange { start, end }, None);
        receiver.poll_deliver()
    }

    #[test]
    fn data_of_all_subflows_comes_out_once_and_in_order() {
        let mut receiver = receiver(20_000);
        assert_eq!(arrive(&mut receiver, 1000, 2000), None);
        assert_eq!(arrive(&mut receiver, 3000, 4000), None);
        assert_eq!(arrive(&mut receiver, 0, 1000), Some(SeqRange { start: 0, end: 2000 }));
        assert_eq!(arrive(&mut receiver, 500, 1500), None, "a copy");
        assert_eq!(arrive(&mut receiver, 1500, 3500), Some(SeqRange { start: 2000, end: 4000 }));
        assert_eq!(receiver.beyond_window_bytes(), 0);
    }

    #[test]
    fn the_window_stands_still_while_the_head_is_missing() {
        let mut receiver = receiver(20_000);
        assert_eq!(receiver.acknowledge(), (0, 20_000));
        arrive(&mut receiver, 1000, 20_000);
        assert_eq!(receiver.acknowledge(), (0, 20_000));
        arrive(&mut receiver, 20_000, 20_001);
        assert_eq!(receiver.beyond_window_bytes(), 1);
        arrive(&mut receiver, 0, 1000);
        assert_eq!(receiver.acknowledge(), (20_001, 40_001));
    }
}
