//! The transmitter: one packet at a time, at a fixed rate or at a trace's opportunities.

use std::sync::Arc;

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::queue::Packet;
use super::trace::{FRAMING_BYTES, OPPORTUNITY_BYTES, Trace};

/// What a transmitter can send when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Service {
    /// This rate at the IP layer. At rate zero nothing leaves.
    Fixed(Rate),
    /// What waits leaves at the trace's opportunities. A packet longer than one opportunity needs
    /// several; what it leaves of one serves the packet that waits behind it and is lost when none
    /// does. An opportunity serves what came before it, not what comes at the same instant.
    Trace(Arc<Trace>),
}

impl Service {
    /// The rate, or a trace's mean.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// Where a transmitter stands in its trace.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// What is left of the opportunity before `next`.
    spare_bytes: u64,
    /// The first opportunity that has not been used.
    next: u64,
}

/// The packet in the transmitter.
#[derive(Debug)]
struct Sending<P> {
    packet: Packet<P>,
    /// What was still to be sent at `since`, framing included.
    bytes_left: u64,
    since: Instant,
    /// When the last byte leaves; `None` if never.
    sent: Option<Instant>,
    /// Where the trace stands then.
    cursor_after: Cursor,
}

#[derive(Debug)]
pub(super) struct Transmitter<P> {
    service: Service,
    cursor: Cursor,
    sending: Option<Sending<P>>,
}

impl<P> Transmitter<P> {
    pub(super) fn new(service: Service) -> Self {
        Self { service, cursor: Cursor::default(), sending: None }
    }

    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    pub(super) fn packet(&self) -> Option<&Packet<P>> {
        self.sending.as_ref().map(|sending| &sending.packet)
    }

    /// When the packet has left; `None` when there is none or it never will.
    pub(super) fn sent_at(&self) -> Option<Instant> {
        self.sending.as_ref()?.sent
    }

    /// Begins with a packet that found the transmitter idle at `now`.
    pub(super) fn start(&mut self, now: Instant, packet: Packet<P>) {
        self.cursor = self.cursor_at(now);
        self.follow(now, packet);
    }

    /// Begins with a packet that waited until the one before had left, which was at `now`.
    pub(super) fn follow(&mut self, now: Instant, packet: Packet<P>) {
        assert!(self.sending.is_none(), "the transmitter has one packet at a time");
        let framing = match self.service {
            Service::Fixed(_) => 0,
            Service::Trace(_) => FRAMING_BYTES,
        };
        let bytes_left = packet.bytes.saturating_add(framing);
        self.plan(now, packet, bytes_left);
    }

    /// Takes the packet out if it has left by `now`, with the time at which it did.
    pub(super) fn take_sent(&mut self, now: Instant) -> Option<(Instant, Packet<P>)> {
        let sent = self.sent_at().filter(|sent| *sent <= now)?;
        let sending = self.sending.take()?;
        self.cursor = sending.cursor_after;
        Some((sent, sending.packet))
    }

    /// Goes on with another service. What has left of the packet by `now` stays sent.
    pub(super) fn change(&mut self, now: Instant, service: Service) {
        if service == self.service {
            return;
        }
        let sending = self.sending.take().map(|sending| (self.left(now, &sending), sending.packet));
        self.service = service;
        self.cursor = self.cursor_at(now);
        if let Some((bytes_left, packet)) = sending {
            self.plan(now, packet, bytes_left);
        }
    }

    fn cursor_at(&self, now: Instant) -> Cursor {
        match &self.service {
            Service::Fixed(_) => Cursor::default(),
            Service::Trace(trace) => Cursor { spare_bytes: 0, next: trace.first_after(now) },
        }
    }

    fn left(&self, now: Instant, sending: &Sending<P>) -> u64 {
        let gone = match &self.service {
            Service::Fixed(rate) => rate.bytes_in(now - sending.since),
            Service::Trace(trace) => {
                let used = trace.first_after(now).saturating_sub(self.cursor.next);
                self.cursor.spare_bytes.saturating_add(used.saturating_mul(OPPORTUNITY_BYTES))
            }
        };
        sending.bytes_left.saturating_sub(gone)
    }

    fn plan(&mut self, now: Instant, packet: Packet<P>, bytes_left: u64) {
        let (sent, cursor_after) = match &self.service {
            Service::Fixed(rate) => {
                (time_on_the_wire(*rate, bytes_left).map(|time| now + time), self.cursor)
            }
            Service::Trace(trace) => {
                let (sent, after) = use_opportunities(trace, self.cursor, now, bytes_left);
                (Some(sent), after)
            }
        };
        self.sending = Some(Sending { packet, bytes_left, since: now, sent, cursor_after });
    }
}

/// When `bytes` that begin at `now` have left, and where the trace stands then.
fn use_opportunities(trace: &Trace, from: Cursor, now: Instant, bytes: u64) -> (Instant, Cursor) {
    if bytes <= from.spare_bytes {
        return (now, Cursor { spare_bytes: from.spare_bytes - bytes, ..from });
    }
    let bytes = bytes - from.spare_bytes;
    let needed = bytes.div_ceil(OPPORTUNITY_BYTES);
    let next = from.next.saturating_add(needed);
    let spare_bytes = (OPPORTUNITY_BYTES - bytes % OPPORTUNITY_BYTES) % OPPORTUNITY_BYTES;
    (trace.opportunity_at(next - 1), Cursor { spare_bytes, next })
}

/// Time that the transmitter needs, rounded up so that the rate is never exceeded; `None` at rate
/// zero.
fn time_on_the_wire(rate: Rate, bytes: u64) -> Option<Duration> {
    const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;
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
