//! One direction of a link: a drop-tail queue, a transmitter of a fixed rate, random loss, and a
//! propagation delay that may vary slowly. The simulator drives it with virtual time, the lab's
//! emulator with real time between two TUN devices.
//!
//! Contract: [`Link::send`] puts a packet in, [`Link::poll`] takes out what is due, until it gives
//! `None`; [`Link::next_event`] says when to poll again and may change with every call. Times given
//! must not decrease. A late caller gets packets late, but the link's own course (which packet is
//! dropped, when each is due) does not depend on how often it is polled.

use std::collections::VecDeque;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use crate::prng::Prng;

mod config;
mod jitter;

pub use config::{DEFAULT_QUEUE_TIME, LinkConfig};
use jitter::Jitter;

/// What became of a packet at the link's door.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It waits or is being sent. It may still be lost on the way.
    Accepted,
    /// The queue was full.
    QueueFull,
}

/// What a link has done since it was made. `in` = `dropped_*` + `out` + what is still inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkCounters {
    /// Packets given to the link.
    pub in_packets: u64,
    /// Their bytes.
    pub in_bytes: u64,
    /// Packets dropped because the queue was full.
    pub dropped_queue_packets: u64,
    /// Packets lost at random.
    pub dropped_loss_packets: u64,
    /// Packets that left the transmitter while the link was cut.
    pub dropped_cut_packets: u64,
    /// Packets that came out.
    pub out_packets: u64,
    /// Their bytes.
    pub out_bytes: u64,
}

#[derive(Debug)]
struct Packet<P> {
    bytes: u64,
    payload: P,
}

/// One direction of a link that carries payloads of type `P`.
#[derive(Debug)]
pub struct Link<P> {
    config: LinkConfig,
    cut: bool,
    prng: Prng,
    jitter: Jitter,
    /// The packet that the transmitter works on, and when it started.
    sending: Option<(Instant, Packet<P>)>,
    /// Packets that wait for the transmitter; `waiting_bytes` is their sum.
    waiting: VecDeque<Packet<P>>,
    waiting_bytes: u64,
    /// Packets past the transmitter, by the time they are due.
    flying: VecDeque<(Instant, Packet<P>)>,
    /// When the latest packet that entered `flying` is due: the floor for the next.
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
            cut: false,
            prng,
            jitter,
            sending: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
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
        let packet = Packet { bytes, payload };
        if self.sending.is_none() {
            self.sending = Some((now, packet));
        } else if self.waiting_bytes + bytes <= self.config.queue_bytes {
            self.waiting_bytes += bytes;
            self.waiting.push_back(packet);
        } else {
            self.counters.dropped_queue_packets += 1;
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
        match self.flying.front() {
            Some((due, _)) => Some(*due),
            None => self.sent_at().map(|sent| (sent + self.config.delay).max(self.due_last)),
        }
    }

    /// Changes what the link is like from `now` on. What is past the transmitter keeps the time it
    /// is due; the packet in the transmitter goes on at the new rate as if it had always had it;
    /// what waits stays, even above a smaller queue.
    pub fn reconfigure(&mut self, now: Instant, config: LinkConfig) {
        self.advance(now);
        if config.jitter != self.config.jitter {
            self.jitter.set_max(now, config.jitter, &mut self.prng);
        }
        self.config = config;
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

    /// What the link has done.
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Bytes that wait for the transmitter.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes
    }

    /// Packets inside: waiting, being sent, or on their way.
    pub fn inside_packets(&self) -> u64 {
        (self.waiting.len() + self.flying.len() + usize::from(self.sending.is_some())) as u64
    }

    /// When the packet in the transmitter has left it; `None` when there is none or it never will.
    fn sent_at(&self) -> Option<Instant> {
        let (start, packet) = self.sending.as_ref()?;
        let time = time_on_the_wire(self.config.rate, packet.bytes)?;
        Some(*start + time)
    }

    /// Brings transmitter and queue to `now`.
    fn advance(&mut self, now: Instant) {
        while let Some(sent) = self.sent_at().filter(|sent| *sent <= now) {
            let (_, packet) = self.sending.take().expect("a packet was sent, so there is one");
            self.launch(sent, packet);
            self.sending = self.waiting.pop_front().map(|next| {
                self.waiting_bytes -= next.bytes;
                (sent, next)
            });
        }
    }

    /// Takes a packet that left the transmitter at `sent`: lost, or on its way.
    fn launch(&mut self, sent: Instant, packet: Packet<P>) {
        if self.cut {
            self.counters.dropped_cut_packets += 1;
            return;
        }
        if self.config.loss.happens(&mut self.prng) {
            self.counters.dropped_loss_packets += 1;
            return;
        }
        let extra = self.jitter.at(sent, &mut self.prng);
        // A smaller delay set in mid-flight must not let a packet overtake those before it.
        let due = (sent + self.config.delay + extra).max(self.due_last);
        self.due_last = due;
        self.flying.push_back((due, packet));
    }
}

/// Time that the transmitter needs, rounded up so that the rate is never exceeded; `None` at rate
/// zero.
fn time_on_the_wire(rate: Rate, bytes: u64) -> Option<Duration> {
    const BIT_NANOS_PER_BYTE: u128 = 8_000_000_000;
    if rate == Rate::ZERO {
        return None;
    }
    let bit_nanos = u128::from(bytes) * BIT_NANOS_PER_BYTE;
    let nanos = bit_nanos.div_ceil(u128::from(rate.bits_per_second()));
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests;
