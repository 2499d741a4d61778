//! The queue before the transmitter, first in, first out.

use std::collections::VecDeque;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

/// Which waiting packets are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discipline {
    /// Those that do not fit.
    #[default]
    DropTail,
    /// Those that do not fit, and those that CoDel picks when they leave the queue (RFC 8289), with
    /// its target of 5 ms and its interval of 100 ms.
    CoDel,
    /// Those that do not fit, and those that PIE picks when they arrive (RFC 8033), with its target
    /// of 15 ms.
    Pie,
}

/// How much may wait, not counting the packet in the transmitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// So many bytes, whatever the rate.
    Bytes(u64),
    /// So many packets, however long.
    Packets(u64),
    /// What the link sends in this time at its current rate.
    Time(Duration),
}

impl Room {
    /// Time that a full queue of packets of `packet_bytes` takes at `rate`.
    pub fn time_at(self, rate: Rate, packet_bytes: u64) -> Duration {
        match self {
            Self::Bytes(bytes) => rate.time_for(bytes),
            Self::Packets(packets) => rate.time_for(packets.saturating_mul(packet_bytes)),
            Self::Time(time) => time,
        }
    }
}

#[derive(Debug)]
pub(super) struct Packet<P> {
    pub(super) bytes: u64,
    pub(super) payload: P,
}

#[derive(Debug)]
pub(super) struct Queue<P> {
    /// Each with its arrival time.
    waiting: VecDeque<(Instant, Packet<P>)>,
    bytes: u64,
}

impl<P> Queue<P> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, now: Instant, packet: Packet<P>) {
        self.bytes += packet.bytes;
        self.waiting.push_back((now, packet));
    }

    /// The oldest packet, with its arrival time.
    pub(super) fn pop(&mut self) -> Option<(Instant, Packet<P>)> {
        let (came, packet) = self.waiting.pop_front()?;
        self.bytes -= packet.bytes;
        Some((came, packet))
    }

    /// Whether a packet of `bytes` still fits; `rate` gives the link's current rate.
    pub(super) fn fits(&self, bytes: u64, room: Room, rate: impl FnOnce() -> Rate) -> bool {
        match room {
            Room::Bytes(most) => self.bytes + bytes <= most,
            Room::Packets(most) => (self.waiting.len() as u64) < most,
            Room::Time(time) => self.bytes + bytes <= rate().bytes_in(time),
        }
    }

    /// When the packet at the head arrived, and its length.
    pub(super) fn head(&self) -> Option<(Instant, u64)> {
        self.waiting.front().map(|(came, packet)| (*came, packet.bytes))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn packets(&self) -> usize {
        self.waiting.len()
    }
}
