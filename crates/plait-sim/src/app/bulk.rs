//! Bulk transfers over TCP.

use plait_proto::time::Instant;

use super::connection::{Connection, Ends, ends, is_tallied};
use super::tally::Tally;
use super::{App, Observation, Outbox, Place, RecoveryView, Transfer};
use crate::error::WorldError;
use crate::packet::Packet;
use crate::scenario::app::TcpSpec;
use crate::tcp::{Segment, Source, TcpSender};

/// Identical connections that begin together.
#[derive(Debug)]
pub(super) struct Bulk {
    place: Place,
    ends: Ends,
    flow_count: u32,
    /// Empty before the start.
    flows: Vec<Connection>,
    stopped: bool,
    /// What each flow sends, if it ends.
    transfer_bytes: Option<u64>,
    received_bytes: u64,
    transfer: Option<Transfer>,
    tally: Tally,
}

impl Bulk {
    pub(super) fn new(place: Place, spec: &TcpSpec) -> Result<Self, WorldError> {
        let source = spec.transfer_bytes.map_or(Source::Endless, Source::Bytes);
        Ok(Self {
            ends: ends(&place, &spec.tcp, source)?,
            flow_count: spec.flows,
            flows: Vec::new(),
            stopped: false,
            transfer_bytes: spec.transfer_bytes,
            received_bytes: 0,
            transfer: None,
            tally: Tally::new(place.span),
            place,
        })
    }

    fn start(&mut self) {
        let (place, ends) = (&self.place, self.ends);
        let flow = |at: u32| Connection::new(place.app, 2 * at, place.data_to, ends);
        self.flows = (0..self.flow_count).map(flow).collect();
    }

    fn drain(&mut self, now: Instant, at: usize, out: &mut Outbox) {
        let bytes = self.flows[at].drain(now, &mut self.tally, out);
        self.tally.on_goodput(now, bytes);
        self.received_bytes += bytes;
        let whole = self.transfer_bytes.map(|bytes| bytes * u64::from(self.flow_count));
        if self.transfer.is_none() && whole == Some(self.received_bytes) {
            let time = now.since(self.place.start);
            self.transfer = Some(Transfer { bytes: self.received_bytes, time });
        }
    }

    fn recovery(&self) -> RecoveryView {
        let mut view = RecoveryView::default();
        for sender in self.flows.iter().map(Connection::sender) {
            let counters = sender.counters();
            view.duplicate_acks += counters.duplicate_acks;
            view.fast_recoveries += counters.fast_recoveries;
            view.undone_recoveries += counters.spurious_undos;
            view.rto = view.rto.max(sender.rto());
        }
        view
    }
}

impl App for Bulk {
    fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        if self.flows.is_empty() {
            return Some(self.place.start);
        }
        let timers = self.flows.iter().filter_map(Connection::poll_timeout);
        Some(timers.fold(self.place.stop, Ord::min))
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Outbox) {
        if now >= self.place.stop {
            self.stopped = true;
        } else if self.flows.is_empty() {
            self.start();
            (0..self.flows.len()).for_each(|at| self.drain(now, at, out));
        } else {
            for at in 0..self.flows.len() {
                let connection = &mut self.flows[at];
                if connection.poll_timeout().is_some_and(|due| due <= now) {
                    connection.handle_timeout(now);
                    self.drain(now, at, out);
                }
            }
        }
    }

    fn handle_packet(&mut self, now: Instant, packet: &Packet, out: &mut Outbox) {
        if is_tallied(packet) {
            self.tally.on_received(now, packet.sent_at);
        }
        if !self.stopped {
            let at = packet.stream as usize / 2;
            self.flows[at].handle_packet(now, packet);
            self.drain(now, at, out);
        }
    }

    fn segment(&self, packet: &Packet) -> Option<Segment> {
        self.flows.get(packet.stream as usize / 2)?.segment(packet)
    }

    fn replace(&mut self, now: Instant, stream: u32, segment: Segment) -> Option<Packet> {
        Some(self.flows.get_mut(stream as usize / 2)?.replace(now, stream, segment))
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn observe(&self) -> Observation {
        let senders = || self.flows.iter().map(Connection::sender);
        let counters = || senders().map(TcpSender::counters);
        let window_bytes: u64 =
            if self.stopped { 0 } else { senders().map(TcpSender::window_bytes).sum() };
        Observation {
            cwnd_segments: Some(window_bytes as f64 / self.ends.sender.segment_bytes as f64),
            segments: counters().map(|counters| counters.segments_sent).sum(),
            retransmits: counters().map(|counters| counters.retransmits).sum(),
            timeouts: counters().map(|counters| counters.rtos).sum(),
            recovery: Some(self.recovery()),
            transfer: self.transfer,
            ..Observation::default()
        }
    }
}
