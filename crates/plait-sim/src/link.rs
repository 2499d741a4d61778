//! One direction of a link: a policer, a queue, a shaper, a transmitter, random loss and outages,
//! and a propagation delay that may vary. The simulator drives it with virtual time, the lab's
//! emulator with real time between two TUN devices. What each part does, and its source:
//! `link-model.md` in `docs/algorithms`.
//!
//! Contract: [`Link::send`] puts a packet in, [`Link::poll`] takes out what is due, until it
//! returns `None`; [`Link::next_event`] says when to poll again and may change with every call.
//! Times given must not decrease. A late caller gets packets late, but the link's own behaviour
//! (which packet is dropped, when each is due) does not depend on how often it is polled.
//!
//! - [`LinkConfig`]: the link's configuration, except the following.
//! - [`Service`], [`RateSteps`], [`Trace`]: the transmitter's rate over time.
//! - [`Access`], [`Grants`], [`Aggregation`]: when it may send.
//! - [`Bucket`]: what a policer lets in, and a shaper lets out.
//! - [`Room`], [`Discipline`]: how much may wait, and which waiting packets are dropped.
//! - [`Loss`]: which packets are lost on the way.
//! - [`Outages`]: when all packets are lost.

use std::collections::VecDeque;

use plait_proto::time::Instant;

use crate::prng::Prng;

mod access;
mod aggregation;
mod bucket;
mod codel;
mod config;
mod counters;
mod grants;
mod jitter;
mod loss;
mod outage;
mod pie;
mod queue;
mod rate_steps;
mod service;
mod trace;
mod transmitter;

pub use access::Access;
pub use aggregation::Aggregation;
pub use bucket::Bucket;
use bucket::Tokens;
use codel::Codel;
pub use codel::{CODEL_INTERVAL, CODEL_TARGET};
pub use config::{DEFAULT_QUEUE_TIME, LinkConfig};
pub use counters::LinkCounters;
pub use grants::Grants;
use jitter::Jitter;
pub use loss::Loss;
use loss::LossState;
pub use outage::{OutageError, Outages};
pub use pie::PIE_TARGET;
use pie::Pie;
pub use queue::{Discipline, Room};
use queue::{Packet, Queue};
pub use rate_steps::{RateSteps, RateStepsError};
pub use service::Service;
pub use trace::{FRAMING_BYTES, OPPORTUNITY_BYTES, Trace, TraceError};
use transmitter::{Rules, Transmitter};

/// Separates the random numbers of the medium and of PIE from those of loss and jitter: adding
/// grants, aggregation or PIE to a link does not change which packets it loses and delays.
const MEDIUM_SEED: u64 = 0x6d65_6469_756d_0001;
const PIE_SEED: u64 = 0x7069_6521_0000_0001;

/// What happened to a packet at the link's entrance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits or is being sent. It may still be lost later.
    Accepted,
    /// The queue was full.
    QueueFull,
    /// The policer had too few tokens, or the packet is longer than a bucket.
    Policed,
    /// PIE dropped it.
    DroppedEarly,
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
    policer: Tokens,
    transmitter: Transmitter<P>,
    queue: Queue<P>,
    codel: Codel,
    pie: Pie,
    /// Packets past the transmitter, sorted by the time they are due.
    flying: VecDeque<(Instant, Packet<P>)>,
    /// The latest time at which any packet past the transmitter is or was due: without reordering,
    /// the earliest time for the next.
    due_last: Instant,
    counters: LinkCounters,
}

impl<P> Link<P> {
    /// An empty link. The same seed and the same calls give the same result.
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
            policer: Tokens::full(Instant::ZERO),
            transmitter: Transmitter::new(
                rules(&config, Service::Fixed(config.rate)),
                Prng::new(seed ^ MEDIUM_SEED),
            ),
            queue: Queue::new(),
            codel: Codel::default(),
            pie: Pie::new(Prng::new(seed ^ PIE_SEED)),
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
        let verdict = self.admit(now, bytes);
        let counter = match verdict {
            Verdict::Accepted => {
                let packet = Packet { bytes, payload };
                if self.transmitter.is_idle() {
                    self.transmitter.start(now, packet);
                } else {
                    self.queue.push(now, packet);
                }
                return verdict;
            }
            Verdict::QueueFull => &mut self.counters.dropped_queue_packets,
            Verdict::Policed => &mut self.counters.dropped_policer_packets,
            Verdict::DroppedEarly => &mut self.counters.dropped_pie_packets,
        };
        *counter += 1;
        self.counters.dropped_bytes += bytes;
        verdict
    }

    /// Whether a packet may come in.
    fn admit(&mut self, now: Instant, bytes: u64) -> Verdict {
        if self.config.shaper.is_some_and(|bucket| bytes > bucket.burst_bytes) {
            return Verdict::Policed;
        }
        if self.config.policer.is_some_and(|bucket| !self.policer.take(now, bucket, bytes)) {
            return Verdict::Policed;
        }
        self.codel.on_enqueue(bytes);
        if self.transmitter.is_idle() {
            return Verdict::Accepted;
        }
        let rules = self.transmitter.rules();
        let rate = || {
            let rate = rules.service.rate_at(now);
            let rate = rules.shaper.map_or(rate, |bucket| bucket.rate.min(rate));
            rules.access.mean_rate(rate)
        };
        if !self.queue.fits(bytes, self.config.queue, rate) {
            return Verdict::QueueFull;
        }
        if self.config.discipline == Discipline::Pie {
            self.update_pie(now);
            if self.pie.drops(self.queue.packets()) {
                return Verdict::DroppedEarly;
            }
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
        let sending = match self.transmitter.gathers_until() {
            Some(until) => Some(until),
            None => self.transmitter.sent_at().map(|sent| self.floor(sent + self.config.delay)),
        };
        match (flying, sending) {
            (Some(flying), Some(sending)) => Some(flying.min(sending)),
            (flying, sending) => flying.or(sending),
        }
    }

    /// Changes the link's configuration from `now` on. Packets past the transmitter stay due at
    /// their times; the rest of the packet in the transmitter is sent at the new rate; waiting
    /// packets stay, even above a smaller queue limit. A trace and outages stay in force.
    pub fn reconfigure(&mut self, now: Instant, config: LinkConfig) {
        self.advance(now);
        if config.jitter != self.config.jitter {
            self.jitter.set_max(now, config.jitter, &mut self.prng);
        }
        if config.discipline != self.config.discipline {
            self.codel = self.codel.restarted();
            self.pie = self.pie.restarted(now);
        }
        if config.policer.is_some() && self.config.policer.is_none() {
            self.policer = Tokens::full(now);
        }
        let service = match self.transmitter.rules().service.clone() {
            Service::Fixed(_) => Service::Fixed(config.rate),
            other @ (Service::Steps(_) | Service::Trace(_)) => other,
        };
        self.transmitter.change(now, rules(&config, service));
        self.config = config;
    }

    /// Gives the transmitter a trace or steps of its rate from `now` on, or a fixed rate, which
    /// then stands in the configuration too. With a trace or steps the configured rate has no
    /// effect. The trace begins at [`Instant::ZERO`], whenever it is set.
    pub fn set_service(&mut self, now: Instant, service: Service) {
        self.advance(now);
        if let Service::Fixed(rate) = service {
            self.config.rate = rate;
        }
        self.transmitter.change(now, rules(&self.config, service));
    }

    /// Replaces the outages from `now` on. What leaves the transmitter in an outage is lost, as on
    /// a cut link.
    pub fn set_outages(&mut self, now: Instant, outages: Outages) {
        self.advance(now);
        self.outages = outages;
    }

    /// Cuts the link or restores it. A cut link goes on sending, and everything is lost: the silent
    /// loss of a dead radio link. Packets past the transmitter still arrive.
    pub fn set_cut(&mut self, now: Instant, cut: bool) {
        self.advance(now);
        self.cut = cut;
    }

    /// The current configuration.
    pub fn config(&self) -> LinkConfig {
        self.config
    }

    /// The transmitter's rate over time.
    pub fn service(&self) -> &Service {
        &self.transmitter.rules().service
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
        (self.queue.packets() + self.flying.len() + self.transmitter.inside().count()) as u64
    }

    /// Bytes of the packets inside.
    pub fn inside_bytes(&self) -> u64 {
        let sending = self.transmitter.inside().sum::<u64>();
        let flying = self.flying.iter().map(|(_, packet)| packet.bytes).sum::<u64>();
        self.queue.bytes() + sending + flying
    }

    /// Brings transmitter and queue to `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        // Mostly nothing has left since the last call.
        if self.transmitter.next_at().is_some_and(|at| at <= now) {
            self.send_until(now);
        }
    }

    fn send_until(&mut self, now: Instant) {
        loop {
            if let Some(at) = self.transmitter.gathers_until().filter(|at| *at <= now) {
                self.gather(at);
            }
            let Some((sent, packet, others)) = self.transmitter.take_sent(now) else { break };
            self.launch(sent, packet);
            others.into_iter().for_each(|packet| self.launch(sent, packet));
            if let Some(next) = self.dequeue(sent) {
                self.transmitter.follow(sent, next);
            }
        }
    }

    /// Fills the frame that the transmitter closes at `now`.
    fn gather(&mut self, now: Instant) {
        while let Some((_, bytes)) = self.queue.head() {
            if !self.transmitter.takes(now, bytes) {
                break;
            }
            let Some(packet) = self.dequeue(now) else { break };
            self.transmitter.join(packet);
        }
        self.transmitter.close(now);
    }

    /// The next packet to send at `now`.
    fn dequeue(&mut self, now: Instant) -> Option<Packet<P>> {
        match self.config.discipline {
            Discipline::DropTail => self.queue.pop().map(|(_, packet)| packet),
            Discipline::CoDel => self.codel.dequeue(now, &mut self.queue, |packet| {
                self.counters.dropped_codel_packets += 1;
                self.counters.dropped_bytes += packet.bytes;
            }),
            Discipline::Pie => {
                self.update_pie(now);
                self.queue.pop().map(|(_, packet)| packet)
            }
        }
    }

    fn update_pie(&mut self, now: Instant) {
        self.pie.update_until(now, self.queue.head().map(|(came, _)| came));
    }

    /// Handles a packet that left the transmitter at `sent`: it is lost, or in flight.
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

    /// `due`, or later: a delay reduced meanwhile must not let a packet overtake those before it.
    fn floor(&self, due: Instant) -> Instant {
        if self.config.reorder { due } else { due.max(self.due_last) }
    }
}

/// The transmitter's part of a configuration.
fn rules(config: &LinkConfig, service: Service) -> Rules {
    Rules { service, shaper: config.shaper, access: config.access }
}

#[cfg(test)]
mod tests;
