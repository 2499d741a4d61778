//! Bulk transfers over MPTCP, each connection with a subflow on each of several bare links.

use plait_proto::time::{Duration, Instant};

use super::connection::{OnTheWay, ends, is_tallied};
use super::tally::Tally;
use super::{App, ETHERNET_MTU_BYTES, Observation, Outbox, Place, RecoveryView, Transfer};
use crate::error::WorldError;
use crate::packet::{Packet, Protocol};
use crate::scenario::app::TcpSpec;
use crate::scenario::multipath::MptcpSpec;
use crate::scenario::{AppSpec, Scenario};
use crate::tcp::mptcp::{
    LocalQueue, MptcpConfig, MptcpConnection, MptcpSegment, SubflowConfig, SubflowStatus, Toward,
};
use crate::tcp::{SenderConfig, Source};

/// Headers of a segment's options of MPTCP, beside those of TCP.
const OPTION_BYTES: u64 = MptcpSegment::DATA_OPTION_BYTES;

/// The subflows on one link, all connections together.
#[derive(Clone, PartialEq, Debug)]
pub struct SubflowView {
    /// The link's name.
    pub link: String,
    /// Payload that came into order on them since the start, copies of others' included.
    pub throughput_bytes: u64,
    /// The same within the span that metrics cover.
    pub measured_throughput_bytes: u64,
    /// Their windows, in full segments.
    pub cwnd_segments: f64,
    /// Their slow start thresholds, in full segments; `None` while one is unknown.
    pub ssthresh_segments: Option<f64>,
    /// The longest smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
}

/// How MPTCP did, all connections together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MultipathView {
    /// By subflow.
    pub subflows: Vec<SubflowView>,
    /// Payload that was handed to another subflow as well, redundant copies not counted.
    pub reinjected_bytes: u64,
    /// How often a subflow was penalised.
    pub penalties: u64,
    /// For how long the receivers' windows kept data back.
    pub blocked: Duration,
}

/// The subflow that a packet belongs to, of a connection with so many.
pub(crate) fn subflow_of(packet: &Packet, subflows: usize) -> usize {
    packet.stream as usize / 2 % subflows
}

/// The longest packet that all links of an application's subflows carry.
pub(super) fn mtu(scenario: &Scenario, spec: &AppSpec) -> u16 {
    let mtus = spec.subflow_links().map(|link| scenario.links[link].mtu);
    mtus.min().unwrap_or(ETHERNET_MTU_BYTES)
}

/// A connection and what is on its way.
#[derive(Debug)]
struct Flow {
    connection: MptcpConnection,
    /// By subflow: data, and acknowledgements.
    on_the_way: Vec<[OnTheWay<MptcpSegment>; 2]>,
}

/// Identical connections that begin together.
#[derive(Debug)]
pub(super) struct Multipath {
    place: Place,
    config: MptcpConfig,
    links: Vec<String>,
    flow_count: u32,
    /// Empty before the start.
    flows: Vec<Flow>,
    stopped: bool,
    transfer_bytes: Option<u64>,
    received_bytes: u64,
    transfer: Option<Transfer>,
    tally: Tally,
    /// By subflow: throughput within the span, and what was counted so far.
    measured: Vec<(u64, u64)>,
}

impl Multipath {
    pub(super) fn new(
        place: Place,
        spec: &TcpSpec,
        mptcp: &MptcpSpec,
        scenario: &Scenario,
    ) -> Result<Self, WorldError> {
        if spec.tcp.is_quic() {
            return Err(WorldError::QuicOverMptcp { app: place.name.clone() });
        }
        debug_assert!(mptcp.subflows.iter().all(|link| scenario.links.contains_key(link)));
        let source = spec.transfer_bytes.map_or(Source::Endless, Source::Bytes);
        let ends = ends(&place, &spec.tcp, source)?;
        let segment_bytes = ends.sender.segment_bytes - OPTION_BYTES;
        let is_backup = |link| SubflowConfig { is_backup: mptcp.backup.contains(link) };
        let primary = mptcp.subflows.iter().position(|link| *link == mptcp.primary);
        Ok(Self {
            config: MptcpConfig {
                subflows: mptcp.subflows.iter().map(is_backup).collect(),
                primary: primary.expect("a checked scenario's primary is one of the subflows"),
                scheduler: mptcp.scheduler,
                penalise: mptcp.penalise,
                sender: SenderConfig { segment_bytes, ..ends.sender },
                receiver: crate::tcp::ReceiverConfig { segment_bytes, ..ends.receiver },
                send_buffer_bytes: mptcp.send_buffer_bytes,
            },
            links: mptcp.subflows.clone(),
            flow_count: spec.flows,
            flows: Vec::new(),
            stopped: false,
            transfer_bytes: spec.transfer_bytes,
            received_bytes: 0,
            transfer: None,
            tally: Tally::new(place.span),
            measured: vec![(0, 0); mptcp.subflows.len()],
            place,
        })
    }

    fn start(&mut self) {
        let flow = |_| Flow {
            connection: MptcpConnection::new(self.config.clone()),
            on_the_way: self.links.iter().map(|_| Default::default()).collect(),
        };
        self.flows = (0..self.flow_count).map(flow).collect();
    }

    fn drain(&mut self, now: Instant, at: usize, out: &mut Outbox) {
        while let Some((subflow, toward, segment)) = self.flows[at].connection.poll_transmit(now) {
            let packet = self.packet(now, at, subflow, toward, segment);
            if toward == Toward::Receiver && is_tallied(&packet) {
                self.tally.on_sent(now, segment.segment.len);
            }
            out.push(packet);
        }
        let connection = &mut self.flows[at].connection;
        let in_order = core::iter::from_fn(|| connection.poll_deliver());
        let bytes = in_order.map(|range| range.len()).sum();
        self.tally.on_goodput(now, bytes);
        self.received_bytes += bytes;
        let whole = self.transfer_bytes.map(|bytes| bytes * u64::from(self.flow_count));
        if self.transfer.is_none() && whole == Some(self.received_bytes) {
            let time = now.since(self.place.start);
            self.transfer = Some(Transfer { bytes: self.received_bytes, time });
        }
    }

    fn packet(
        &mut self,
        now: Instant,
        at: usize,
        subflow: usize,
        toward: Toward,
        segment: MptcpSegment,
    ) -> Packet {
        let acknowledges = toward == Toward::Sender;
        let stream = 2 * (at * self.links.len() + subflow) + usize::from(acknowledges);
        let on_the_way = &mut self.flows[at].on_the_way[subflow][usize::from(acknowledges)];
        let only_acknowledges = acknowledges && !segment.segment.flags.syn;
        Packet {
            app: self.place.app,
            stream: u32::try_from(stream).expect("flows times links are below STREAMS_MAX"),
            number: on_the_way.put(now, segment),
            sent_at: now,
            bytes: u16::try_from(segment.ip_bytes()).expect("a segment fits the MTU"),
            protocol: if only_acknowledges { Protocol::TcpAck } else { Protocol::Tcp },
            dscp: 0,
            to: if acknowledges { self.place.data_to.other() } else { self.place.data_to },
        }
    }

    /// Counts what came into order on a subflow.
    fn measure(&mut self, now: Instant, subflow: usize) {
        let statuses = self.flows.iter().map(|flow| flow.connection.status(subflow));
        let total = statuses.map(|status| status.throughput_bytes).sum();
        let (measured, counted) = &mut self.measured[subflow];
        if self.tally.span().holds(now) {
            *measured += total - *counted;
        }
        *counted = total;
    }

    fn statuses(&self) -> impl Iterator<Item = SubflowStatus> {
        let each = |flow: &Flow| {
            let status = |subflow| flow.connection.status(subflow);
            (0..self.links.len()).map(status).collect::<Vec<_>>()
        };
        self.flows.iter().flat_map(each)
    }

    fn subflow_view(&self, subflow: usize) -> SubflowView {
        let statuses = || self.flows.iter().map(|flow| flow.connection.status(subflow));
        let segments = |bytes: u64| bytes as f64 / self.config.sender.segment_bytes as f64;
        let thresholds = statuses().map(|status| status.ssthresh_bytes);
        let is_known = !self.flows.is_empty() && thresholds.clone().all(|bytes| bytes < u64::MAX);
        let windows = statuses().map(|status| status.window_bytes).sum();
        SubflowView {
            link: self.links[subflow].clone(),
            throughput_bytes: statuses().map(|status| status.throughput_bytes).sum(),
            measured_throughput_bytes: self.measured[subflow].0,
            cwnd_segments: if self.stopped { 0.0 } else { segments(windows) },
            ssthresh_segments: is_known.then(|| segments(thresholds.sum())),
            srtt: statuses().filter_map(|status| status.srtt).max(),
        }
    }

    fn recovery(&self) -> RecoveryView {
        let mut view = RecoveryView::default();
        for status in self.statuses() {
            view.duplicate_acks += status.counters.duplicate_acks;
            view.fast_recoveries += status.counters.fast_recoveries;
            view.undone_recoveries += status.counters.spurious_undos;
            view.rto = view.rto.max(status.rto);
        }
        view
    }

    fn view(&self) -> MultipathView {
        let counters = || self.flows.iter().map(|flow| flow.connection.counters());
        MultipathView {
            subflows: (0..self.links.len()).map(|at| self.subflow_view(at)).collect(),
            reinjected_bytes: counters().map(|counters| counters.reinjected_bytes).sum(),
            penalties: counters().map(|counters| counters.penalties).sum(),
            blocked: counters().map(|counters| counters.blocked).sum(),
        }
    }
}

impl App for Multipath {
    fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        if self.flows.is_empty() {
            return Some(self.place.start);
        }
        let timers = self.flows.iter().filter_map(|flow| flow.connection.poll_timeout());
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
                let connection = &mut self.flows[at].connection;
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
        if self.stopped {
            return;
        }
        let subflow = subflow_of(packet, self.links.len());
        let at = packet.stream as usize / 2 / self.links.len();
        let acknowledges = !packet.stream.is_multiple_of(2);
        let flow = &mut self.flows[at];
        let on_the_way = &mut flow.on_the_way[subflow][usize::from(acknowledges)];
        let Some(segment) = on_the_way.take(packet.number) else { return };
        let toward = if acknowledges { Toward::Sender } else { Toward::Receiver };
        flow.connection.handle_segment(now, subflow, toward, &segment);
        self.measure(now, subflow);
        self.drain(now, at, out);
    }

    fn sees_links(&self) -> bool {
        self.flows.iter().any(|flow| flow.connection.sees_local_queues())
    }

    fn see_link(&mut self, subflow: usize, queue: LocalQueue) {
        for flow in &mut self.flows {
            flow.connection.set_local_queue(subflow, queue);
        }
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn observe(&self) -> Observation {
        let counters = || self.statuses().map(|status| status.counters);
        let view = self.view();
        Observation {
            cwnd_segments: Some(view.subflows.iter().map(|subflow| subflow.cwnd_segments).sum()),
            segments: counters().map(|counters| counters.segments_sent).sum(),
            retransmits: counters().map(|counters| counters.retransmits).sum(),
            timeouts: counters().map(|counters| counters.rtos).sum(),
            recovery: Some(self.recovery()),
            transfer: self.transfer,
            multipath: Some(view),
            ..Observation::default()
        }
    }
}
