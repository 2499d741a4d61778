//! One flow's state machine: what a packet from the client means, and which gap is held back.
//!
//! It classifies and remembers; [`Dida`](super::Dida) acts on what it says, since that needs the
//! bounds of all flows.

use super::config::ReleasedUntil;
use super::estimator::Estimator;
use super::received::Received;
use crate::time::{Duration, Instant};
use crate::wire::tcp::{TcpFlags, TcpPacket, TcpSeq};

/// Sequence numbers further apart belong to another connection: no window is as large (RFC 7323
/// §2.3).
const WINDOW_BYTES_MAX: u32 = 1 << 30;
/// Duplicates that are forwarded before any is held: they let a sender send new data (RFC 3042),
/// and only the third makes it retransmit (RFC 5681 §3.2).
pub(super) const EARLY_DUPLICATES: u32 = 2;

/// What DIDA looks at in a packet from a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    flags: TcpFlags,
    ack: TcpSeq,
    window: u16,
    pub(super) seq_end: TcpSeq,
    pub(super) payload_bytes: u32,
    is_signed: bool,
    pub(super) has_sack: bool,
    pub(super) has_dsack: bool,
    /// The client's clock.
    pub(super) timestamp: Option<u32>,
}

impl Segment {
    pub(super) fn of(packet: &TcpPacket<'_>) -> Self {
        Self {
            flags: packet.flags(),
            ack: packet.ack(),
            window: packet.window(),
            seq_end: packet.seq_end(),
            payload_bytes: packet.payload_bytes(),
            is_signed: packet.has_signature(),
            has_sack: packet.has_sack(),
            has_dsack: packet.has_dsack(),
            timestamp: packet.timestamps().map(|(value, _)| value),
        }
    }

    /// Why it is no pure ACK, if it is none.
    fn impure(&self) -> Option<Meaning> {
        if self.payload_bytes > 0 {
            Some(Meaning::Data)
        } else if self.flags.any(TcpFlags::FIN | TcpFlags::URG) {
            Some(Meaning::Flagged)
        } else if self.is_signed {
            Some(Meaning::Signed)
        } else {
            None
        }
    }

    /// Whether it is an ACK and nothing else, and may be changed.
    pub(super) fn is_pure(&self) -> bool {
        self.impure().is_none()
    }

    /// The next byte that the client expects.
    pub(super) const fn ack(&self) -> TcpSeq {
        self.ack
    }

    /// Whether its SACK option shows a gap and may be taken out: a pure ACK's, and no report of
    /// duplicates.
    pub(super) fn shows_gap(&self) -> bool {
        self.has_sack && !self.has_dsack && self.impure().is_none()
    }
}

/// What a packet from a client means to its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meaning {
    /// Carries data.
    Data,
    /// SYN, FIN, RST or URG, or no ACK.
    Flagged,
    /// A signature covers it.
    Signed,
    /// Acknowledges what was never sent, or is older than any window.
    BeyondSent,
    /// Its number is the highest so far.
    Advancing,
    /// Its number is lower than the highest.
    Old,
    /// Nothing is outstanding.
    NothingOutstanding,
    /// The highest number again, with another window.
    WindowUpdate,
    /// Reports data received twice.
    Dsack,
    /// The highest number once more, for the n-th time.
    Duplicate(u32),
}

/// A gap at the highest number, of which the sender is not told for now.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    pub(super) began: Instant,
    /// When the hold ends.
    pub(super) deadline: Instant,
    /// Held duplicates in order.
    pub(super) held: Vec<Vec<u8>>,
    /// The latest ACK that went on without its SACK option, as it came; `None` when a duplicate
    /// held later says as much.
    pub(super) owed: Option<Vec<u8>>,
}

impl Gap {
    pub(super) fn bytes(&self) -> usize {
        let held: usize = self.held.iter().map(Vec::len).sum();
        held + self.owed.as_ref().map_or(0, Vec::len)
    }
}

/// What is known of the client's side.
#[derive(Clone, Copy, Debug)]
struct Acked {
    /// The highest number acknowledged, 000's `exp`.
    ack: TcpSeq,
    /// The window of its latest packet.
    window: u16,
    /// Duplicates of `ack` so far.
    duplicates: u32,
}

/// A flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// One past the highest byte sent to the client.
    sent: TcpSeq,
    acked: Option<Acked>,
    pub(super) gap: Option<Gap>,
    /// Nothing is held until this is acknowledged: state RELEASED.
    released_until: Option<TcpSeq>,
    /// What the client has reported beyond its acknowledgement number.
    pub(super) received: Received,
    /// The holding time of the latest gap: what is as old is ripe.
    pub(super) hold: Duration,
    /// In state RELEASED the latest ACK as it came, and when all that it says is ripe.
    pub(super) unripe: Option<(Instant, Vec<u8>)>,
    pub(super) estimator: Estimator,
}

/// What a packet to the client was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// No data.
    Nothing,
    New,
    Retransmission,
    /// So far off that it belongs to another connection.
    Elsewhere,
}

impl Flow {
    /// A flow whose first data seen ends at `sent`.
    pub(super) fn new(now: Instant, sent: TcpSeq) -> Self {
        let estimator = Estimator::new(now);
        Self {
            sent,
            acked: None,
            gap: None,
            released_until: None,
            received: Received::default(),
            hold: Duration::ZERO,
            unripe: None,
            estimator,
        }
    }

    /// Takes a packet to the client.
    pub(super) fn on_downstream(&mut self, now: Instant, packet: &TcpPacket<'_>) -> Sent {
        let (seq, end) = (packet.seq(), packet.seq_end());
        let distance = seq.since(self.sent).min(self.sent.since(seq));
        if distance > WINDOW_BYTES_MAX {
            return Sent::Elsewhere;
        }
        let echo = packet.timestamps().map(|(_, echo)| echo);
        self.estimator.on_server_packet(now, echo, packet.ack());
        let is_new = end.is_after(self.sent);
        let is_retransmission = packet.payload_bytes() > 0 && seq.is_before(self.sent);
        self.sent = self.sent.later(end);
        if is_retransmission {
            self.estimator.on_retransmission(now, seq);
            Sent::Retransmission
        } else if packet.payload_bytes() > 0 {
            if is_new {
                self.estimator.on_new_data(now, end, packet.payload_bytes());
            }
            Sent::New
        } else {
            Sent::Nothing
        }
    }

    /// Takes a packet of the client; says what it means, and whether its number advanced.
    pub(super) fn on_upstream(&mut self, now: Instant, segment: &Segment) -> (Meaning, bool) {
        if !segment.flags.any(TcpFlags::ACK) || segment.flags.any(TcpFlags::SYN | TcpFlags::RST) {
            return (Meaning::Flagged, false);
        }
        let Segment { ack, window, .. } = *segment;
        if self.sent.since(ack) > WINDOW_BYTES_MAX {
            return (Meaning::BeyondSent, false);
        }
        // A highest number that fell so far behind was another connection's, or a lie.
        let is_known = |acked: &&mut Acked| self.sent.since(acked.ack) <= WINDOW_BYTES_MAX;
        match &mut self.acked.as_mut().filter(is_known) {
            Some(acked) if ack.is_before(acked.ack) => {
                (segment.impure().unwrap_or(Meaning::Old), false)
            }
            Some(acked) if ack == acked.ack => {
                let has_other_window = window != acked.window;
                acked.window = window;
                let meaning = match segment.impure() {
                    Some(impure) => impure,
                    None if ack == self.sent => Meaning::NothingOutstanding,
                    None if segment.has_dsack => Meaning::Dsack,
                    None if has_other_window => Meaning::WindowUpdate,
                    None => {
                        acked.duplicates = acked.duplicates.saturating_add(1);
                        Meaning::Duplicate(acked.duplicates)
                    }
                };
                (meaning, false)
            }
            _ => {
                self.acked = Some(Acked { ack, window, duplicates: 0 });
                if self.released_until.is_some_and(|until| !ack.is_before(until)) {
                    self.released_until = None;
                }
                self.estimator.on_acknowledged(now, ack);
                (segment.impure().unwrap_or(Meaning::Advancing), true)
            }
        }
    }

    /// Whether it is left alone after a hold that ended without its gap filled.
    pub(super) const fn is_released(&self) -> bool {
        self.released_until.is_some()
    }

    /// Leaves it alone from now on.
    pub(super) fn release(&mut self, until: ReleasedUntil) {
        self.released_until = match until {
            ReleasedUntil::RecoveryPoint => Some(self.sent),
            ReleasedUntil::NextAck => self.acked.map(|acked| acked.ack.plus(1)),
        };
    }

    /// Bytes sent to the client that it has not acknowledged.
    pub(super) fn outstanding_bytes(&self) -> u32 {
        self.acked.map_or(0, |acked| self.sent.since(acked.ack))
    }
}
