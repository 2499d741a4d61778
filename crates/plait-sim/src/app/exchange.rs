//! A client's requests and a server's responses, over TCP or MPTCP: one response at a time.

use plait_proto::time::Instant;

use super::connection::{Connection, Ends, is_tallied};
use super::multipath::flow::Flow;
use super::tally::{Span, Tally};
use super::{Outbox, Place};
use crate::packet::Packet;
use crate::tcp::Segment;
use crate::tcp::mptcp::MptcpConfig;

/// Data in one direction. The model's connections carry no more.
#[derive(Debug)]
enum Half {
    Tcp(Box<Connection>),
    Mptcp(Box<Flow>),
}

impl Half {
    fn write(&mut self, now: Instant, bytes: u64) {
        match self {
            Self::Tcp(connection) => connection.write(bytes),
            Self::Mptcp(flow) => flow.write(now, bytes),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Tcp(connection) => connection.poll_timeout(),
            Self::Mptcp(flow) => flow.poll_timeout(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Tcp(connection) => connection.handle_timeout(now),
            Self::Mptcp(flow) => drop(flow.handle_timeout(now)),
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &Packet, span: &Span) {
        match self {
            Self::Tcp(connection) => connection.handle_packet(now, packet),
            Self::Mptcp(flow) => drop(flow.handle_packet(now, packet, span)),
        }
    }

    fn drain(&mut self, now: Instant, tally: &mut Tally, out: &mut Outbox) -> u64 {
        match self {
            Self::Tcp(connection) => connection.drain(now, tally, out),
            Self::Mptcp(flow) => flow.drain(now, tally, out),
        }
    }
}

/// One connection of a client to a server, as two of the model's: requests and responses.
#[derive(Debug)]
pub(super) struct Exchange {
    requests: Half,
    responses: Half,
    /// The first stream of the responses.
    responses_from: u32,
    /// What was asked for.
    response_bytes: u64,
    /// Bytes of the request that the server does not have yet.
    request_left: u64,
    /// Bytes of the response that the client does not have yet; zero when it waits for none.
    response_left: u64,
    /// Counts of requests, which are not goodput.
    requests_tally: Tally,
}

impl Exchange {
    /// Streams of an exchange over TCP.
    pub(super) const TCP_STREAMS: u32 = 4;

    /// Over TCP, in the streams from this one on; it opens when it is first drained.
    pub(super) fn tcp(place: &Place, stream: u32, ends: Ends) -> Self {
        let (app, to) = (place.app, place.data_to);
        let half = |stream, to| Half::Tcp(Box::new(Connection::new(app, stream, to, ends)));
        Self::new(place, stream + 2, half(stream, to.other()), half(stream + 2, to))
    }

    /// Over MPTCP, in an application's first streams; it opens when it is first drained.
    pub(super) fn mptcp(place: &Place, config: &MptcpConfig) -> Self {
        let (app, to) = (place.app, place.data_to);
        let half = |at, to| Half::Mptcp(Box::new(Flow::new(app, at, to, config)));
        let streams = u32::try_from(2 * config.subflows.len());
        let streams = streams.expect("a connection has at most 255 subflows");
        Self::new(place, streams, half(0, to.other()), half(1, to))
    }

    fn new(place: &Place, responses_from: u32, requests: Half, responses: Half) -> Self {
        Self {
            requests,
            responses,
            responses_from,
            response_bytes: 0,
            request_left: 0,
            response_left: 0,
            requests_tally: Tally::new(place.span),
        }
    }

    /// Whether a response is under way.
    pub(super) fn is_waiting(&self) -> bool {
        self.response_left > 0
    }

    /// Asks for so many bytes. The last response must have come.
    pub(super) fn ask(&mut self, now: Instant, request_bytes: u64, response_bytes: u64) {
        debug_assert!(!self.is_waiting(), "one response at a time");
        self.response_bytes = response_bytes;
        self.response_left = response_bytes;
        self.request_left = request_bytes;
        self.requests.write(now, request_bytes);
    }

    /// Takes out what both ends have to send, and counts what arrived.
    pub(super) fn drain(&mut self, now: Instant, tally: &mut Tally, out: &mut Outbox) {
        let asked = self.requests.drain(now, &mut self.requests_tally, out);
        if self.request_left > 0 {
            self.request_left -= asked;
            if self.request_left == 0 {
                self.responses.write(now, self.response_bytes);
            }
        }
        let bytes = self.responses.drain(now, tally, out);
        tally.on_goodput(now, bytes);
        self.response_left -= bytes;
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.requests.poll_timeout(), self.responses.poll_timeout()];
        timers.into_iter().flatten().min()
    }

    /// Does what is due at `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.requests.handle_timeout(now);
        self.responses.handle_timeout(now);
    }

    /// Whether a packet in one of its streams counts as sent and received.
    pub(super) fn counts(&self, packet: &Packet) -> bool {
        packet.stream >= self.responses_from && is_tallied(packet)
    }

    /// Takes a packet in one of its streams that arrived.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let span = self.requests_tally.span();
        self.half_mut(packet.stream).handle_packet(now, packet, &span);
    }

    /// The segment that a packet in flight carries; `None` over MPTCP, which nobody reads.
    pub(super) fn segment(&self, packet: &Packet) -> Option<Segment> {
        let is_response = packet.stream >= self.responses_from;
        match if is_response { &self.responses } else { &self.requests } {
            Half::Tcp(connection) => connection.segment(packet),
            Half::Mptcp(_) => None,
        }
    }

    /// Sends a segment that was read from bytes between the ends.
    pub(super) fn replace(
        &mut self,
        now: Instant,
        stream: u32,
        segment: Segment,
    ) -> Option<Packet> {
        match self.half_mut(stream) {
            Half::Tcp(connection) => Some(connection.replace(now, stream, segment)),
            Half::Mptcp(_) => None,
        }
    }

    /// Adds the counts of the responses' senders to an observation.
    pub(super) fn count(&self, observation: &mut super::Observation) {
        let mut add = |counters: crate::tcp::SenderCounters| {
            observation.segments += counters.segments_sent;
            observation.retransmits += counters.retransmits;
            observation.timeouts += counters.rtos;
        };
        match &self.responses {
            Half::Tcp(connection) => add(connection.sender().counters()),
            Half::Mptcp(flow) => flow.statuses().for_each(|status| add(status.counters)),
        }
    }

    /// The windows of the responses' senders together.
    pub(super) fn window_bytes(&self) -> u64 {
        match &self.responses {
            Half::Tcp(connection) => connection.sender().window_bytes(),
            Half::Mptcp(flow) => flow.statuses().map(|status| status.window_bytes).sum(),
        }
    }

    /// The MPTCP connection of the responses.
    pub(super) fn responses_flow(&self) -> Option<&Flow> {
        match &self.responses {
            Half::Tcp(_) => None,
            Half::Mptcp(flow) => Some(flow),
        }
    }

    /// The same, to show it its links.
    pub(super) fn responses_flow_mut(&mut self) -> Option<&mut Flow> {
        match &mut self.responses {
            Half::Tcp(_) => None,
            Half::Mptcp(flow) => Some(flow),
        }
    }

    fn half_mut(&mut self, stream: u32) -> &mut Half {
        if stream >= self.responses_from { &mut self.responses } else { &mut self.requests }
    }
}
