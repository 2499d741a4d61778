//! One direction of a link: a queue, a transmitter, random loss and outages, and a propagation
//! delay that may vary. The simulator drives it with virtual time, the lab's emulator with real
//! time between two TUN devices. What each part does and where it comes from: `link-model.md` in
//! `docs/algorithms`.
//!
//! Contract: [`Link::send`] puts a packet in, [`Link::poll`] takes out what is due, until it gives
//! `None`; [`Link::next_event`] says when to poll again and may change with every call. Times given
//! must not decrease. A late caller gets packets late, but the link's own course (which packet is
//! dropped, when each is due) does not depend on how often it is polled.
//!
//! - [`LinkConfig`]: what the link is like, besides what follows.
//! - [`Service`], [`Trace`]: what the transmitter can send when.
//! - [`Discipline`]: which of the packets that wait are dropped.
//! - [`Loss`]: which packets are lost on the way.
//! - [`Outages`]: when all are.

use std::collections::VecDeque;

use plait_proto::time::Instant;

use crate::prng::Prng;

mod codel;
mod config;
mod counters;
mod jitter;
mod loss;
mod outage;
mod queue;
mod service;
mod trace;

use codel::Codel;
pub use codel::{CODEL_INTERVAL, CODEL_TARGET};
pub use config::{DEFAULT_QUEUE_TIME, LinkConfig};
pub use counters::LinkCounters;
use jitter::Jitter;
pub use loss::Loss;
use loss::LossState;
pub use outage::{OutageError, Outages};
pub use queue::Discipline;
use queue::{Packet, Queue};
pub use service::Service;
use service::Transmitter;
pub use trace::{FRAMING_BYTES, OPPORTUNITY_BYTES, Trace, TraceError};

/// What became of a packet at the link's door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits or is being sent. It may still be lost on the way.
    Accepted,
    /// The queue was full.
    QueueFull,
}

/// One direction of a link that carries payloads of type `P`.
#[derive(Debug)]
pub struct Link<P> {
    config: LinkConfig,
    outages: Outages,
    cut: bool,
    prng: Prng,
    jitter: Jitter,
    loss: LossState,
    transmitter: Transmitter<P>,
    queue: Queue<P>,
    codel: Codel,
    /// Packets past the transmitter, sorted by the time they are due.
    flying: VecDeque<(Instant, Packet<P>)>,
    /// The latest time at which any packet past the transmitter is or was due: without reordering
    /// the floor for the next.
    due_last: Instant,
    counters: LinkCounters,
}

impl<P> Link<P> {
    /// An empty link. The same seed and the same calls give the same course.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let jitter = Jitter::new(config.jitter, &mut prng);
        Self {
            config,
            outages: Outages::default(),
            cut: false,
            prng,
            jitter,
            loss: LossState::default(),
            transmitter: Transmitter::new(Service::Fixed(config.rate)),
            queue: Queue::new(),
            codel: Codel::default(),
            flying: VecDeque::new(),
            due_last: Instant::ZERO,
            counters: LinkCounters::default(),
        }
    }

    /// Puts a packet of `bytes` bytes at the IP layer in.
    pub fn send(&mut self, now: Instant, bytes: u64, payload: P) -> Verdict {
        self.advance(now);
        self.counters.in_packets += 1;
        self.counters.in_bytes += bytes;
        self.codel.on_enqueue(bytes);
        let packet = Packet { bytes, payload };
        if self.transmitter.packet().is_none() {
            self.transmitter.start(now, packet);
        } else if self.queue.bytes() + bytes <= self.config.queue_bytes {
            self.queue.push(now, packet);
        } else {
            self.counters.dropped_queue_packets += 1;
            self.counters.dropped_bytes += bytes;
            return Verdict::QueueFull;
        }
        Verdict::Accepted
    }

    /// Takes out the next packet that is due at `now`.
    pub fn poll(&mut self, now: Instant) -> Option<P> {
        self.poll_due(now).map(|(_, payload)| payload)
    }

    /// Like [`Link::poll`], with the time at which the packet was due: `now` minus it is the
    /// caller's lateness.
    pub fn poll_due(&mut self, now: Instant) -> Option<(Instant, P)> {
        self.advance(now);
        if self.flying.front()?.0 > now {
            return None;
        }
        let (due, packet) = self.flying.pop_front()?;
        self.counters.out_packets += 1;
        self.counters.out_bytes += packet.bytes;
        Some((due, packet.payload))
    }

    /// The earliest time at which [`Link::poll`] can give something or has work to do; `None` while
    /// the link is empty or stands still.
    pub fn next_event(&self) -> Option<Instant> {
        let flying = self.flying.front().map(|(due, _)| *due);
        let sending = self.transmitter.sent_at().map(|sent| self.floor(sent + self.config.delay));
        match (flying, sending) {
            (Some(flying), Some(sending)) => Some(flying.min(sending)),
            (flying, sending) => flying.or(sending),
        }
    }

    /// Changes what the link is like from `now` on. What is past the transmitter keeps the time it
    /// is due; the rest of the packet in the transmitter goes on at the new rate; what waits stays,
    /// even above a smaller queue. A trace stays in force, and the outages do.
    pub fn reconfigure(&mut self, now: Instant, config: LinkConfig) {
        self.advance(now);
        if config.jitter != self.config.jitter {
            self.jitter.set_max(now, config.jitter, &mut self.prng);
        }
        if config.discipline != self.config.discipline {
            self.codel = self.codel.restarted();
        }
        if matches!(self.transmitter.service(), Service::Fixed(_)) {
            self.transmitter.change(now, Service::Fixed(config.rate));
        }
        self.config = config;
    }

    /// Gives the transmitter a trace from `now` on, or a fixed rate, which then stands in the
    /// configuration too. While a trace is in force the configured rate says nothing. The trace
    /// begins at [`Instant::ZERO`], whenever it is set.
    pub fn set_service(&mut self, now: Instant, service: Service) {
        self.advance(now);
        if let Service::Fixed(rate) = service {
            self.config.rate = rate;
        }
        self.transmitter.change(now, service);
    }

    /// Replaces the outages from `now` on. What leaves the transmitter in an outage is lost, as on
    /// a cut link.
    pub fn set_outages(&mut self, now: Instant, outages: Outages) {
        self.advance(now);
        self.outages = outages;
    }

    /// Cuts the link or joins it again. A cut link goes on sending, and everything is lost: the
    /// silent loss of a dead radio link. What is past the transmitter still arrives.
    pub fn set_cut(&mut self, now: Instant, cut: bool) {
        self.advance(now);
        self.cut = cut;
    }

    /// What the link is like now.
    pub fn config(&self) -> LinkConfig {
        self.config
    }

    /// What the transmitter can send when.
    pub fn service(&self) -> &Service {
        self.transmitter.service()
    }

    /// When the link is dead.
    pub fn outages(&self) -> &Outages {
        &self.outages
    }

    /// What the link has done.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Bytes that wait for the transmitter.
    pub fn waiting_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Packets inside: waiting, being sent, or on their way.
    pub fn inside_packets(&self) -> u64 {
        let sending = usize::from(self.transmitter.packet().is_some());
        (self.queue.packets() + self.flying.len() + sending) as u64
    }

    /// Bytes of the packets inside.
    pub fn inside_bytes(&self) -> u64 {
        let sending = self.transmitter.packet().map_or(0, |packet| packet.bytes);
        let flying = self.flying.iter().map(|(_, packet)| packet.bytes).sum::<u64>();
        self.queue.bytes() + sending + flying
    }

    /// Brings transmitter and queue to `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        // Mostly nothing has left since the last call.
        if self.transmitter.sent_at().is_some_and(|sent| sent <= now) {
            self.send_until(now);
        }
    }

    fn send_until(&mut self, now: Instant) {
        while let Some((sent, packet)) = self.transmitter.take_sent(now) {
            self.launch(sent, packet);
            if let Some(next) = self.dequeue(sent) {
                self.transmitter.follow(sent, next);
            }
        }
    }

    /// The next packet to send at `now`.
    fn dequeue(&mut self, now: Instant) -> Option<Packet<P>> {
        match self.config.discipline {
            Discipline::DropTail => self.queue.pop().map(|(_, packet)| packet),
            Discipline::CoDel => self.codel.dequeue(now, &mut self.queue, |packet| {
                self.counters.dropped_codel_packets += 1;
                self.counters.dropped_bytes += packet.bytes;
            }),
        }
    }

    /// Takes a packet that left the transmitter at `sent`: lost, or on its way.
    fn launch(&mut self, sent: Instant, packet: Packet<P>) {
        let lost_to = if self.cut {
            Some(&mut self.counters.dropped_cut_packets)
        } else if self.outages.contains(sent) {
            Some(&mut self.counters.dropped_outage_packets)
        } else if self.loss.is_lost(&self.config.loss, &mut self.prng) {
            Some(&mut self.counters.dropped_loss_packets)
        } else {
            None
        };
        if let Some(counter) = lost_to {
            *counter += 1;
            self.counters.dropped_bytes += packet.bytes;
            return;
        }
        let extra = if self.config.reorder {
            jitter::independent(self.config.jitter, &mut self.prng)
        } else {
            self.jitter.at(sent, &mut self.prng)
        };
        let due = self.floor(sent + self.config.delay + extra);
        self.due_last = self.due_last.max(due);
        if self.flying.back().is_none_or(|(last, _)| *last <= due) {
            self.flying.push_back((due, packet));
        } else {
            let place = self.flying.partition_point(|(other, _)| *other <= due);
            self.flying.insert(place, (due, packet));
        }
    }

    /// `due`, or later where a smaller delay set in mid-flight must not let a packet overtake those
    /// before it.
    fn floor(&self, due: Instant) -> Instant {
        if self.config.reorder { due } else { due.max(self.due_last) }
    }
}

#[cfg(test)]
mod tests;
