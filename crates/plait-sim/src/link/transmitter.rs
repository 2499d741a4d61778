//! The transmitter: sends one packet at a time, or one frame of several, as service, shaper and
//! access to the medium allow. The end of a transmission is known when it begins, so nothing
//! depends on how often the link is polled.

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::access::Access;
use super::aggregation::Aggregation;
use super::bucket::{Bucket, Tokens};
use super::grants::Cycle;
use super::queue::Packet;
use super::service::{Service, TraceCursor};
use super::trace::FRAMING_BYTES;
use crate::prng::Prng;

const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;

/// The rules of a transmitter.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Rules {
    pub(super) service: Service,
    pub(super) shaper: Option<Bucket>,
    pub(super) access: Access,
}

/// How much of its allowance a transmitter has used.
#[derive(Clone, Debug)]
struct Cursor {
    trace: TraceCursor,
    tokens: Tokens,
    /// Under grants.
    cycle: Option<Cycle>,
}

/// The packet in the transmitter.
#[derive(Debug)]
struct Sending<P> {
    packet: Packet<P>,
    /// The other packets of its frame.
    others: Vec<Packet<P>>,
    /// Bytes still to be sent at `begin`, including framing.
    bytes_left: u64,
    /// Until then it contends for the medium, and packets may join the frame.
    gathers_until: Option<Instant>,
    /// When the first byte leaves; `None` if never, or not known while packets may join.
    begin: Option<Instant>,
    /// Its position in a trace at `begin`.
    trace: TraceCursor,
    /// When the last byte leaves; `None` as above.
    sent: Option<Instant>,
    /// The transmitter's position at `sent`.
    cursor_after: Cursor,
}

#[derive(Debug)]
pub(super) struct Transmitter<P> {
    rules: Rules,
    cursor: Cursor,
    prng: Prng,
    sending: Option<Sending<P>>,
}

impl<P> Transmitter<P> {
    /// `prng` is for the medium alone.
    pub(super) fn new(rules: Rules, prng: Prng) -> Self {
        let tokens = Tokens::full(Instant::ZERO);
        let cursor = Cursor { trace: TraceCursor::default(), tokens, cycle: None };
        let mut new = Self { rules, cursor, prng, sending: None };
        new.enter_access(Instant::ZERO);
        new
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(super) fn is_idle(&self) -> bool {
        self.sending.is_none()
    }

    /// Lengths of the packets in it.
    pub(super) fn inside(&self) -> impl Iterator<Item = u64> {
        let packets = self.sending.iter();
        packets.flat_map(|one| [&one.packet].into_iter().chain(&one.others)).map(|one| one.bytes)
    }

    /// When it next needs attention: a frame is closed, or has left. `None` when there is no
    /// packet, or it never leaves.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let sending = self.sending.as_ref()?;
        sending.gathers_until.or(sending.sent)
    }

    /// When the packet has left; `None` when there is none, it never will, or it is not known.
    pub(super) fn sent_at(&self) -> Option<Instant> {
        self.sending.as_ref()?.sent
    }

    /// When the frame that gathers packets is closed.
    pub(super) fn gathers_until(&self) -> Option<Instant> {
        self.sending.as_ref()?.gathers_until
    }

    /// Begins sending a packet that found the transmitter idle at `now`.
    pub(super) fn start(&mut self, now: Instant, packet: Packet<P>) {
        self.cursor.trace = TraceCursor::at(&self.rules.service, now);
        self.follow(now, packet);
    }

    /// Begins sending a packet that waited until the one before had left, at `now`.
    pub(super) fn follow(&mut self, now: Instant, packet: Packet<P>) {
        assert!(self.sending.is_none(), "the transmitter has one packet at a time");
        let framing = match self.rules.service {
            Service::Fixed(_) | Service::Steps(_) => 0,
            Service::Trace(_) => FRAMING_BYTES,
        };
        let mut sending = Sending {
            bytes_left: packet.bytes.saturating_add(framing),
            packet,
            others: Vec::new(),
            gathers_until: None,
            begin: None,
            trace: self.cursor.trace,
            sent: None,
            cursor_after: self.cursor.clone(),
        };
        if let Some(aggregation) = self.aggregation() {
            sending.gathers_until = Some(now + aggregation.draw_access(&mut self.prng));
        } else {
            self.plan(now, &mut sending, true);
        }
        self.sending = Some(sending);
    }

    /// Whether a packet of `bytes` may join the frame that is closed at `now`.
    pub(super) fn takes(&self, now: Instant, bytes: u64) -> bool {
        let (Some(sending), Some(aggregation)) = (&self.sending, self.aggregation()) else {
            return false;
        };
        let (packets, bytes) = (sending.others.len() as u64 + 1, sending.bytes_left + bytes);
        let air = time_on_the_wire(self.rules.service.rate_at(now), bytes);
        packets < aggregation.packets_max.into()
            && air.is_some_and(|air| air <= aggregation.air_max)
            && self.rules.shaper.is_none_or(|bucket| bytes <= bucket.burst_bytes)
    }

    /// Adds a packet to the frame that is being gathered.
    pub(super) fn join(&mut self, packet: Packet<P>) {
        let sending = self.sending.as_mut().expect("a frame that packets join is there");
        sending.bytes_left += packet.bytes;
        sending.others.push(packet);
    }

    /// Closes the frame at `now` and sends it.
    pub(super) fn close(&mut self, now: Instant) {
        let mut sending = self.sending.take().expect("a frame that is closed is there");
        sending.gathers_until = None;
        self.plan(now, &mut sending, true);
        self.sending = Some(sending);
    }

    /// Takes out what has left by `now`, with its time: a packet, and the others of its frame.
    pub(super) fn take_sent(
        &mut self,
        now: Instant,
    ) -> Option<(Instant, Packet<P>, Vec<Packet<P>>)> {
        let sent = self.sent_at().filter(|sent| *sent <= now)?;
        let sending = self.sending.take()?;
        self.cursor = sending.cursor_after;
        Some((sent, sending.packet, sending.others))
    }

    /// Applies other rules. The part of the packet sent by `now` stays sent, and its tokens stay
    /// taken.
    pub(super) fn change(&mut self, now: Instant, rules: Rules) {
        if rules == self.rules {
            return;
        }
        let sending = self.sending.take();
        let under_way = sending.map(|mut sending| {
            let begun = sending.begin.is_some_and(|begin| begin <= now);
            if begun {
                sending.bytes_left -= self.passed(&sending, now).min(sending.bytes_left);
                self.cursor.tokens = sending.cursor_after.tokens;
            }
            (begun, sending)
        });
        let other_access = rules.access != self.rules.access;
        if rules.shaper.is_some() && self.rules.shaper.is_none() {
            self.cursor.tokens = Tokens::full(now);
        }
        self.rules = rules;
        self.cursor.trace = TraceCursor::at(&self.rules.service, now);
        if other_access {
            self.enter_access(now);
        }
        if let Some((begun, mut sending)) = under_way {
            if sending.gathers_until.is_none() || self.aggregation().is_none() {
                sending.gathers_until = None;
                self.plan(now, &mut sending, !begun);
            }
            self.sending = Some(sending);
        }
    }

    /// The aggregation in force.
    fn aggregation(&self) -> Option<Aggregation> {
        match (&self.rules.service, self.rules.access) {
            (Service::Fixed(_) | Service::Steps(_), Access::Contended(aggregation)) => {
                Some(aggregation)
            }
            _ => None,
        }
    }

    fn enter_access(&mut self, now: Instant) {
        self.cursor.cycle = match &self.rules.access {
            Access::Granted(grants) => {
                Some(Cycle::new(now, grants, Prng::new(self.prng.next_u64())))
            }
            Access::Always | Access::Contended(_) => None,
        };
    }

    /// Computes when the rest of a packet will have left, from `now` on. `takes_tokens` is false
    /// for a packet in transmission, which has its tokens already.
    fn plan(&self, now: Instant, sending: &mut Sending<P>, takes_tokens: bool) {
        let mut cursor = self.cursor.clone();
        let bytes = sending.bytes_left;
        let begin = match self.rules.shaper.filter(|_| takes_tokens) {
            Some(bucket) => cursor.tokens.take_when_ready(now, bucket, bytes),
            None => Some(now),
        };
        sending.begin = begin;
        sending.sent = begin.and_then(|begin| match &self.rules.service {
            Service::Trace(trace) => {
                if begin > now {
                    cursor.trace = TraceCursor::at(&self.rules.service, begin);
                }
                sending.trace = cursor.trace;
                Some(cursor.trace.send(trace, begin, bytes))
            }
            Service::Fixed(rate) if cursor.cycle.is_none() => {
                time_on_the_wire(*rate, bytes).map(|time| begin + time)
            }
            Service::Fixed(_) | Service::Steps(_) => self.sent(&mut cursor, begin, bytes),
        });
        sending.cursor_after = cursor;
    }

    /// Bytes of the packet that have left by `now`.
    fn passed(&self, sending: &Sending<P>, now: Instant) -> u64 {
        let Some(begin) = sending.begin else { return 0 };
        match &self.rules.service {
            Service::Trace(trace) => sending.trace.passed(trace, now),
            Service::Fixed(rate) if self.cursor.cycle.is_none() => rate.bytes_in(now - begin),
            Service::Fixed(_) | Service::Steps(_) => {
                let (mut at, mut bit_nanos, mut cycle) = (begin, 0, self.cursor.cycle.clone());
                while at < now {
                    let (speed, until) = self.speed_at(&mut cycle, at);
                    let until = until.map_or(now, |until| until.min(now));
                    bit_nanos += u128::from(speed) * (until - at).as_nanos();
                    at = until;
                }
                u64::try_from(bit_nanos / u128::from(BIT_NANOS_PER_BYTE)).unwrap_or(u64::MAX)
            }
        }
    }

    /// When `bytes` that begin at `begin` have left at a rate that changes; `None` if never.
    fn sent(&self, cursor: &mut Cursor, begin: Instant, bytes: u64) -> Option<Instant> {
        let mut left = u128::from(bytes) * u128::from(BIT_NANOS_PER_BYTE);
        let mut at = begin;
        while left > 0 {
            let (speed, until) = self.speed_at(&mut cursor.cycle, at);
            let most = until.map(|until| u128::from(speed) * (until - at).as_nanos());
            match (most, until) {
                (Some(most), Some(until)) if most < left => {
                    left -= most;
                    at = until;
                }
                _ if speed == 0 => return None,
                _ => {
                    let wait = left.div_ceil(speed.into());
                    let wait = u64::try_from(wait).unwrap_or(u64::MAX);
                    return Some(at + Duration::from_nanos(wait));
                }
            }
        }
        Some(at)
    }

    /// The rate at `at` in bits per second, and until when it holds.
    fn speed_at(&self, cycle: &mut Option<Cycle>, at: Instant) -> (u64, Option<Instant>) {
        let (rate, change) = match &self.rules.service {
            Service::Steps(steps) => steps.at(at),
            Service::Fixed(_) | Service::Trace(_) => (self.rules.service.rate_at(at), None),
        };
        let rate = rate.bits_per_second();
        match (&self.rules.access, cycle) {
            (Access::Granted(grants), Some(cycle)) if rate > 0 => {
                let (open, until) = cycle.at(at, grants);
                let until = change.map_or(until, |change| change.min(until));
                (if open { grants.peak(rate) } else { 0 }, Some(until))
            }
            _ => (rate, change),
        }
    }
}

/// Time that the transmitter needs, rounded up so that the rate is never exceeded; `None` at rate
/// zero.
fn time_on_the_wire(rate: Rate, bytes: u64) -> Option<Duration> {
    if rate == Rate::ZERO {
        return None;
    }
    let rate = rate.bits_per_second();
    let nanos = match bytes.checked_mul(BIT_NANOS_PER_BYTE) {
        Some(bit_nanos) => bit_nanos.div_ceil(rate),
        // More than two gigabytes.
        None => {
            let bit_nanos = u128::from(bytes) * u128::from(BIT_NANOS_PER_BYTE);
            u64::try_from(bit_nanos.div_ceil(rate.into())).unwrap_or(u64::MAX)
        }
    };
    Some(Duration::from_nanos(nanos))
}
