//! Both ends together, over single links and over a hostile channel.

pub(super) mod channel;
mod kernel;
mod random;
mod reordering;
mod throughput;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::*;
use crate::ratio::Ratio;
use channel::{Channel, ChannelConfig};

/// A connection over two channels. Checks meanwhile what the receiver gets and delivers.
struct World {
    now: Instant,
    sender: TcpSender,
    receiver: TcpReceiver,
    forward: Channel,
    backward: Channel,
    /// What came out of the channel, to check the receiver against.
    arrived: ranges::RangeSet,
    delivered_to: u64,
}

impl World {
    fn new(config: SenderConfig, forward: ChannelConfig, backward: ChannelConfig) -> Self {
        Self {
            now: Instant::ZERO,
            sender: TcpSender::new(config),
            receiver: TcpReceiver::new(ReceiverConfig {
                is_of_today: config.recovery == Recovery::RackTlp,
                ..ReceiverConfig::default()
            }),
            forward: Channel::new(forward, 1),
            backward: Channel::new(backward, 2),
            arrived: ranges::RangeSet::default(),
            delivered_to: 0,
        }
    }

    /// Runs until `end`, or until everything is acknowledged.
    fn run_until(&mut self, end: Instant) {
        self.drain();
        while !self.sender.is_finished() {
            let events = [
                self.sender.poll_timeout(),
                self.receiver.poll_timeout(),
                self.forward.next_event(),
                self.backward.next_event(),
            ];
            let next = events.into_iter().flatten().min().expect("a connection always has a timer");
            assert!(next >= self.now || self.now == Instant::ZERO, "no timer stays in the past");
            if next > end {
                self.now = end;
                break;
            }
            self.now = next;
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        self.sender.handle_timeout(now);
        self.receiver.handle_timeout(now);
        self.drain();
        while let Some(segment) = self.forward.poll(now) {
            self.arrived.insert(segment.range());
            self.receiver.handle_segment(now, &segment);
            self.drain();
        }
        while let Some(segment) = self.backward.poll(now) {
            self.sender.handle_segment(now, &segment);
            self.drain();
        }
    }

    fn drain(&mut self) {
        let now = self.now;
        while let Some(segment) = self.sender.poll_transmit(now) {
            self.forward.send(now, segment);
        }
        while let Some(segment) = self.receiver.poll_transmit(now) {
            self.backward.send(now, segment);
        }
        while let Some(range) = self.receiver.poll_deliver() {
            assert_eq!(range.start, self.delivered_to, "every byte is delivered once, in order");
            let arrived = self.arrived.first().expect("something arrived before it is delivered");
            assert!(arrived.start == 0 && range.end <= arrived.end, "only what has arrived");
            self.delivered_to = range.end;
        }
    }
}
