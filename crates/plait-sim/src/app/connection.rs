//! A TCP connection with data in one direction: both of its ends, and the segments between them.

use std::collections::BTreeMap;

use plait_proto::congestion::{ControllerConfig, SlowStart};
use plait_proto::time::{Duration, Instant};

use super::tally::Tally;
use super::{Outbox, Place};
use crate::error::WorldError;
use crate::packet::{End, Packet, Protocol};
use crate::scenario::app::TcpKind;
use crate::tcp::{
    Acks, DupThreshold, Pacing, ReceiverConfig, Recovery, SackOption, Segment, SenderConfig,
    Source, TcpReceiver, TcpSender,
};

/// IPv4 and TCP headers with timestamps.
const HEADERS_BYTES: u64 = 52;
/// Segments that did not arrive are forgotten after this time: longer than any queue holds them.
const SEGMENT_LIFE: Duration = Duration::from_secs(120);

/// Configuration of a connection's two ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) sender: SenderConfig,
    pub(super) receiver: ReceiverConfig,
}

/// Converts a scenario's settings for both ends; `source` is the data to send.
pub(super) fn ends(place: &Place, kind: &TcpKind, source: Source) -> Result<Ends, WorldError> {
    let wrong = |cause: String| WorldError::Tcp { app: place.name.clone(), cause };
    // The scenario names the RFC, the model the threshold.
    let recovery = match kind.recovery.as_str() {
        "rfc6675" if !kind.sack => Recovery::NewReno,
        "rfc6675" => Recovery::Sack { dup_threshold: DupThreshold::Fixed(3) },
        "rfc6675-adaptive" => Recovery::Sack { dup_threshold: DupThreshold::Adaptive },
        other => other.parse().map_err(|error| wrong(format!("{error}")))?,
    };
    // QUIC stacks begin with a slow start that only a loss ends.
    let own = kind.congestion.algorithm.default_slow_start();
    let is_quic_stacks = recovery == Recovery::Quic && own == Some(SlowStart::HyStart);
    let of_quic = is_quic_stacks.then_some(SlowStart::Standard);
    let slow_start = kind.congestion.slow_start.or(of_quic);
    let controller = ControllerConfig { slow_start, ..kind.congestion };
    let segment_bytes = u64::from(place.mtu) - HEADERS_BYTES;
    Ok(Ends {
        sender: SenderConfig {
            segment_bytes,
            controller,
            recovery,
            reordering_max: kind.reordering_max,
            undo: kind.undo,
            pacing: if kind.paced { Pacing::Always } else { Pacing::Controller },
            source,
            ..SenderConfig::default()
        },
        receiver: ReceiverConfig {
            segment_bytes,
            window_bytes_max: kind.window_bytes_max,
            is_subflow: false,
            sack_blocks_max: SackOption::BLOCKS_MAX,
            sack: kind.sack,
            acks: if recovery == Recovery::Quic { Acks::Quic } else { Acks::Linux },
            // A sender that counts duplicates is from before that.
            is_of_today: recovery == Recovery::RackTlp,
        },
    })
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    app: usize,
    /// Data travels in stream `stream`, acknowledgements in the one after it.
    stream: u32,
    data_to: End,
    sender: TcpSender,
    receiver: TcpReceiver,
    /// Data segments and acknowledgements in flight.
    on_the_way: [OnTheWay<Segment>; 2],
}

impl Connection {
    /// A connection that opens when it is first drained. `stream` is even.
    pub(super) fn new(app: usize, stream: u32, data_to: End, ends: Ends) -> Self {
        Self {
            app,
            stream,
            data_to,
            sender: TcpSender::new(ends.sender),
            receiver: TcpReceiver::new(ends.receiver),
            on_the_way: [OnTheWay::default(), OnTheWay::default()],
        }
    }

    pub(super) fn sender(&self) -> &TcpSender {
        &self.sender
    }

    pub(super) fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        [self.sender.poll_timeout(), self.receiver.poll_timeout()].into_iter().flatten().min()
    }

    /// Does what is due at `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.sender.poll_timeout().is_some_and(|at| at <= now) {
            self.sender.handle_timeout(now);
        }
        if self.receiver.poll_timeout().is_some_and(|at| at <= now) {
            self.receiver.handle_timeout(now);
        }
    }

    /// Takes a packet that arrived. A second copy does nothing.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let acknowledgement = packet.stream != self.stream;
        let on_the_way = &mut self.on_the_way[usize::from(acknowledgement)];
        let Some(segment) = on_the_way.take(packet.number) else { return };
        if acknowledgement {
            self.sender.handle_segment(now, &segment);
        } else {
            self.receiver.handle_segment(now, &segment);
        }
    }

    /// The segment that a packet in flight carries.
    pub(super) fn segment(&self, packet: &Packet) -> Option<Segment> {
        let on_the_way = &self.on_the_way[usize::from(packet.stream != self.stream)];
        on_the_way.segments.get(&packet.number).map(|(_, segment)| *segment)
    }

    /// Sends a segment that was read from bytes between the ends.
    pub(super) fn replace(&mut self, now: Instant, stream: u32, segment: Segment) -> Packet {
        self.packet(now, segment, stream != self.stream)
    }

    /// Takes out what both ends have to send, and returns the bytes that came into order.
    pub(super) fn drain(&mut self, now: Instant, tally: &mut Tally, out: &mut Outbox) -> u64 {
        while let Some(segment) = self.sender.poll_transmit(now) {
            let packet = self.packet(now, segment, false);
            if is_tallied(&packet) {
                tally.on_sent(now, segment.len);
            }
            out.push(packet);
        }
        while let Some(segment) = self.receiver.poll_transmit(now) {
            out.push(self.packet(now, segment, true));
        }
        let in_order = core::iter::from_fn(|| self.receiver.poll_deliver());
        in_order.map(|range| range.len()).sum()
    }

    fn packet(&mut self, now: Instant, segment: Segment, acknowledgement: bool) -> Packet {
        let bytes = u16::try_from(segment.ip_bytes());
        let only_acknowledges =
            segment.flags.ack && !segment.flags.syn && segment.len == 0 && segment.window > 0;
        Packet {
            app: self.app,
            stream: self.stream + u32::from(acknowledgement),
            number: self.on_the_way[usize::from(acknowledgement)].put(now, segment),
            sent_at: now,
            bytes: bytes.expect("a segment fits the MTU"),
            // QUIC's acknowledgements are encrypted and look like data.
            protocol: match only_acknowledges && !self.sender.is_quic() {
                true => Protocol::TcpAck,
                false => Protocol::Tcp,
            },
            dscp: 0,
            to: if acknowledgement { self.data_to.other() } else { self.data_to },
        }
    }
}

/// Whether a packet counts as sent and received: it travels in the direction of the data and
/// carries its sending time.
pub(super) fn is_tallied(packet: &Packet) -> bool {
    packet.stream.is_multiple_of(2) && packet.bytes >= Packet::TIMED_TCP_BYTES_MIN
}

/// Segments in flight, by number: packets carry only the number.
#[derive(Debug)]
pub(super) struct OnTheWay<S> {
    segments: BTreeMap<u32, (Instant, S)>,
    next_number: u32,
}

impl<S> Default for OnTheWay<S> {
    fn default() -> Self {
        Self { segments: BTreeMap::new(), next_number: 0 }
    }
}

impl<S> OnTheWay<S> {
    pub(super) fn put(&mut self, now: Instant, segment: S) -> u32 {
        while let Some(first) = self.segments.first_entry()
            && now.since(first.get().0) > SEGMENT_LIFE
        {
            first.remove();
        }
        let number = self.next_number;
        self.next_number += 1;
        self.segments.insert(number, (now, segment));
        number
    }

    pub(super) fn take(&mut self, number: u32) -> Option<S> {
        self.segments.remove(&number).map(|(_, segment)| segment)
    }
}
