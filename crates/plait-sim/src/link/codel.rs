//! Controlled delay (RFC 8289): drops at the head of the queue when packets have waited longer than
//! the target for a whole interval, and then more and more often until they no longer do.

use plait_proto::time::{Duration, Instant};

use super::queue::{Packet, Queue};

/// Acceptable standing delay of the queue (RFC 8289 section 4).
pub const CODEL_TARGET: Duration = Duration::from_millis(5);
/// Time in which a mere burst drains from the queue (RFC 8289 section 4).
pub const CODEL_INTERVAL: Duration = Duration::from_millis(100);
/// A dropping state that begins within this many intervals of the last one resumes its drop rate
/// (RFC 8289 section 5.5).
const RESUME_INTERVALS: u32 = 16;

/// The state of the pseudocode in RFC 8289 section 5.
#[derive(Clone, Debug, Default)]
pub(super) struct Codel {
    /// When the delay has been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    dropping: bool,
    /// When the next packet is dropped, or would have been when the dropping state ended.
    drop_next: Instant,
    /// Packets dropped in this dropping state, including those carried over from the last.
    count: u32,
    /// `count` at the start of the dropping state.
    count_first: u32,
    /// The largest packet that came: what RFC 8289 calls the MTU.
    largest_bytes: u64,
}

impl Codel {
    /// The state at first, for a queue that has already seen packets.
    pub(super) fn restarted(&self) -> Self {
        Self { largest_bytes: self.largest_bytes, ..Self::default() }
    }

    /// Notes a packet that enters the queue.
    pub(super) fn on_enqueue(&mut self, bytes: u64) {
        self.largest_bytes = self.largest_bytes.max(bytes);
    }

    /// Takes the next packet to send out of the queue; packets dropped before it go to `drop` (RFC
    /// 8289 section 5.5).
    pub(super) fn dequeue<P>(
        &mut self,
        now: Instant,
        queue: &mut Queue<P>,
        mut drop: impl FnMut(Packet<P>),
    ) -> Option<Packet<P>> {
        let (mut packet, mut above) = self.pop(now, queue);
        if !self.dropping {
            if above {
                packet.into_iter().for_each(&mut drop);
                (packet, _) = self.pop(now, queue);
                self.enter_dropping(now);
            }
            return packet;
        }
        self.dropping = above;
        while self.dropping && now >= self.drop_next {
            packet.into_iter().for_each(&mut drop);
            self.count = self.count.saturating_add(1);
            (packet, above) = self.pop(now, queue);
            self.dropping = above;
            if above {
                self.drop_next += spacing(self.count);
            }
        }
        packet
    }

    fn enter_dropping(&mut self, now: Instant) {
        let last = self.count - self.count_first;
        let soon = now.since(self.drop_next) < CODEL_INTERVAL * RESUME_INTERVALS;
        self.count = if last > 1 && soon { last } else { 1 };
        self.count_first = self.count;
        self.drop_next = now + spacing(self.count);
        self.dropping = true;
    }

    /// Takes a packet out; true when the delay has been above the target for an interval.
    fn pop<P>(&mut self, now: Instant, queue: &mut Queue<P>) -> (Option<Packet<P>>, bool) {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return (None, false);
        };
        // With less than one packet behind it there is no standing queue, however slow the link.
        if now.since(came) < CODEL_TARGET || queue.bytes() <= self.largest_bytes {
            self.first_above = None;
            return (Some(packet), false);
        }
        let first_above = *self.first_above.get_or_insert(now + CODEL_INTERVAL);
        (Some(packet), now >= first_above)
    }
}

/// Time between drops: the interval over the square root of their count (RFC 8289 section 5),
/// rounded down.
fn spacing(count: u32) -> Duration {
    const INTERVAL_NANOS: u64 = CODEL_INTERVAL.as_nanos() as u64;
    Duration::from_nanos((INTERVAL_NANOS * INTERVAL_NANOS / u64::from(count.max(1))).isqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    const PACKET_BYTES: u64 = 1000;

    /// A queue, and its packets' outcomes: (when, the millisecond at which it came).
    struct Bench {
        codel: Codel,
        queue: Queue<u64>,
        sent: Vec<(u64, u64)>,
        dropped: Vec<(u64, u64)>,
    }

    impl Bench {
        /// One packet for each of these milliseconds waits.
        fn new(came_ms: impl IntoIterator<Item = u64>) -> Self {
            let (mut codel, mut queue) = (Codel::default(), Queue::new());
            for came in came_ms {
                codel.on_enqueue(PACKET_BYTES);
                queue.push(ms(came), Packet { bytes: PACKET_BYTES, payload: came });
            }
            Self { codel, queue, sent: Vec::new(), dropped: Vec::new() }
        }

        fn dequeue_at(&mut self, now_ms: u64) {
            let drop = |packet: Packet<u64>| self.dropped.push((now_ms, packet.payload));
            if let Some(packet) = self.codel.dequeue(ms(now_ms), &mut self.queue, drop) {
                self.sent.push((now_ms, packet.payload));
            }
        }

        fn drop_times(&self) -> Vec<u64> {
            self.dropped.iter().map(|(when, _)| *when).collect()
        }
    }

    #[test]
    fn spacing_falls_with_the_root_of_the_count() {
        let counts = [1, 2, 4, 100, 10_000].map(|count| spacing(count).as_micros());
        assert_eq!(counts, [100_000, 70_710, 50_000, 10_000, 1_000]);
    }

    #[test]
    fn drops_begin_after_an_interval_above_the_target_and_come_faster() {
        let mut bench = Bench::new(std::iter::repeat_n(0, 1000));
        (5..500).for_each(|now| bench.dequeue_at(now));
        // From 105 on: 100, 100/√2, 100/√3 … ms apart, each at the next whole millisecond.
        assert_eq!(bench.drop_times(), [105, 205, 276, 334, 384, 429, 469]);
        assert_eq!(bench.sent.len(), 495, "a packet leaves each time");
    }

    #[test]
    fn a_burst_shorter_than_the_interval_loses_nothing() {
        let mut bench = Bench::new(std::iter::repeat_n(0, 95));
        (5..120).for_each(|now| bench.dequeue_at(now));
        assert_eq!((bench.sent.len(), bench.dropped.len()), (95, 0));
    }

    #[test]
    fn delay_below_the_target_loses_nothing() {
        let mut bench = Bench::new(0..1000);
        (4..1004).for_each(|now| bench.dequeue_at(now));
        assert_eq!((bench.sent.len(), bench.dropped.len()), (1000, 0));
    }

    #[test]
    fn a_single_packet_behind_is_no_standing_queue() {
        let mut bench = Bench::new([]);
        for now in (0..100_000).step_by(100) {
            bench.queue.push(ms(now), Packet { bytes: PACKET_BYTES, payload: now });
            bench.codel.on_enqueue(PACKET_BYTES);
            if now > 0 {
                bench.dequeue_at(now);
            }
        }
        assert_eq!(bench.dropped.len(), 0, "100 ms each, but one packet only");
    }

    #[test]
    fn a_queue_that_comes_right_back_meets_the_drop_rate_it_left() {
        let mut bench = Bench::new(std::iter::repeat_n(0, 400));
        (5..400).for_each(|now| bench.dequeue_at(now));
        let reached = bench.codel.count;
        assert!(!bench.codel.dropping && bench.queue.packets() == 0, "it drained");
        for _ in 0..1000 {
            bench.queue.push(ms(400), Packet { bytes: PACKET_BYTES, payload: 400 });
        }
        (405..506).for_each(|now| bench.dequeue_at(now));
        assert!(bench.codel.dropping);
        assert_eq!((reached, bench.codel.count), (5, 4), "from 5 with 1 to begin with");
    }
}
