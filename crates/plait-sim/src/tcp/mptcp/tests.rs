//! Whole connections over links of their own: what always holds (`random.rs`), and what certain
//! pairs of links show (`pairs.rs`).

mod pairs;
mod random;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::*;
use crate::ratio::Ratio;
use crate::tcp::segment::SeqRange;
use crate::tcp::tests::channel::{Channel, ChannelConfig};
use crate::tcp::{ReceiverConfig, SenderConfig, Source};

const SEGMENT_BYTES: u64 = 1424;

/// A connection with a link of its own for each subflow. Checks meanwhile what is delivered, and
/// that the window is obeyed.
struct World {
    now: Instant,
    connection: MptcpConnection,
    /// By subflow: forth and back.
    channels: Vec<[Channel<MptcpSegment>; 2]>,
    /// From when on each link loses everything, both ways.
    dead_from: Vec<Option<Instant>>,
    delivered_to: u64,
}

fn config(scheduler: SchedulerName, subflows: usize, source: Source) -> MptcpConfig {
    MptcpConfig {
        subflows: vec![SubflowConfig::default(); subflows],
        primary: 0,
        scheduler,
        penalise: false,
        sender: SenderConfig { segment_bytes: SEGMENT_BYTES, source, ..SenderConfig::default() },
        receiver: ReceiverConfig { segment_bytes: SEGMENT_BYTES, ..ReceiverConfig::default() },
        send_buffer_bytes: None,
    }
}

/// A clean link with a queue of 50 ms.
fn clean(mbit: u64, rtt_ms: u64) -> ChannelConfig {
    ChannelConfig::clean(Rate::from_mbit(mbit), Duration::from_millis(rtt_ms))
}

impl World {
    fn new(config: MptcpConfig, links: &[ChannelConfig]) -> Self {
        let pair = |(at, link): (usize, &ChannelConfig)| {
            let seed = 2 * at as u64;
            let back = ChannelConfig { queue_bytes: 1 << 20, ..*link };
            [Channel::new(*link, seed + 1), Channel::new(back, seed + 2)]
        };
        Self {
            now: Instant::ZERO,
            connection: MptcpConnection::new(config),
            channels: links.iter().enumerate().map(pair).collect(),
            dead_from: vec![None; links.len()],
            delivered_to: 0,
        }
    }

    /// Runs until `end`, or until everything is acknowledged.
    fn run_until(&mut self, end: Instant) {
        self.drain();
        while !self.connection.is_finished() {
            let events = self.channels.iter().flatten().filter_map(Channel::next_event);
            let next = events.chain(self.connection.poll_timeout()).min();
            // One that was given no data yet may have nothing to wait for.
            let next = next.unwrap_or(Instant::FAR_FUTURE).max(self.now);
            if next > end {
                self.now = end;
                break;
            }
            self.now = next;
            if self.connection.poll_timeout().is_some_and(|due| due <= next) {
                self.connection.handle_timeout(next);
                self.drain();
            }
            self.deliver();
        }
        let counters = self.connection.counters();
        assert_eq!(counters.beyond_window_bytes, 0, "the window is never overrun");
    }

    fn deliver(&mut self) {
        for at in 0..self.channels.len() {
            for (way, toward) in [Toward::Receiver, Toward::Sender].into_iter().enumerate() {
                while let Some(segment) = self.channels[at][way].poll(self.now) {
                    self.connection.handle_segment(self.now, at, toward, &segment);
                    self.drain();
                }
            }
        }
    }

    fn drain(&mut self) {
        while let Some((at, toward, segment)) = self.connection.poll_transmit(self.now) {
            if self.dead_from[at].is_none_or(|dead| self.now < dead) {
                let way = usize::from(toward == Toward::Sender);
                self.channels[at][way].send_bytes(self.now, segment.ip_bytes(), segment);
            }
        }
        while let Some(range) = self.connection.poll_deliver() {
            assert_eq!(range.start, self.delivered_to, "every byte once, and in order");
            self.delivered_to = range.end;
        }
    }

    fn throughput(&self, subflow: usize) -> u64 {
        self.connection.status(subflow).throughput_bytes
    }

    /// What was delivered, in Mbit/s.
    fn goodput_mbit(&self) -> f64 {
        self.delivered_to as f64 * 8.0 / 1e6 / self.now.since(Instant::ZERO).as_secs_f64()
    }
}

#[test]
fn a_full_segment_fills_an_ethernet_packet() {
    let segment = crate::tcp::Segment { len: SEGMENT_BYTES, ..crate::tcp::Segment::default() };
    let whole =
        MptcpSegment { segment, data_seq: 0, data_ack: 0, data_right_edge: 0, joins: false };
    assert_eq!(whole.ip_bytes(), 1500);
    assert_eq!(SeqRange::new(0, SEGMENT_BYTES).len(), 1424);
}

#[test]
fn what_is_written_later_comes_through_at_once() {
    let config = config(SchedulerName::ShortestFlush, 2, Source::Written);
    let mut world = World::new(config, &[clean(20, 20), clean(20, 40)]);
    world.run_until(Instant::from_millis(500));
    assert_eq!(world.delivered_to, 0);
    // A request, less than a segment: half a round trip.
    world.connection.write(world.now, 400);
    world.run_until(Instant::from_millis(512));
    assert_eq!(world.delivered_to, 400);
    world.connection.write(world.now, 1_000_000);
    world.run_until(Instant::from_millis(3000));
    assert_eq!((world.delivered_to, world.connection.is_finished()), (1_000_400, false));
    assert!(world.throughput(0) > 100_000 && world.throughput(1) > 100_000);
}
