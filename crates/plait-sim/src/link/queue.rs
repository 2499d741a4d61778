//! Packets that wait for the transmitter, first in, first out.

use std::collections::VecDeque;

use plait_proto::time::Instant;

/// Which of the packets that wait are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discipline {
    /// Those that do not fit.
    #[default]
    DropTail,
    /// Those that do not fit, and those that CoDel picks when they leave the queue (RFC 8289), with
    /// its target of 5 ms and its interval of 100 ms.
    CoDel,
}

#[derive(Debug)]
pub(super) struct Packet<P> {
    pub(super) bytes: u64,
    pub(super) payload: P,
}

#[derive(Debug)]
pub(super) struct Queue<P> {
    /// With the time at which each came.
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

    /// The oldest packet, with the time at which it came.
    pub(super) fn pop(&mut self) -> Option<(Instant, Packet<P>)> {
        let (came, packet) = self.waiting.pop_front()?;
        self.bytes -= packet.bytes;
        Some((came, packet))
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn packets(&self) -> usize {
        self.waiting.len()
    }
}
