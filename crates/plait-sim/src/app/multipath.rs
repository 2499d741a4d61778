//! Bulk transfers over MPTCP, each connection with a subflow on each of several bare links.

use plait_proto::time::{Duration, Instant};

use super::connection::is_tallied;
use super::tally::Tally;
use super::{App, ETHERNET_MTU_BYTES, Observation, Outbox, Place, Transfer};
use crate::error::WorldError;
use crate::packet::Packet;
use crate::scenario::app::TcpSpec;
use crate::scenario::multipath::MptcpSpec;
use crate::scenario::{AppSpec, Scenario};
use crate::tcp::Source;
use crate::tcp::mptcp::{LocalQueue, MptcpConfig, MptcpSegment};

pub(super) mod flow;

use flow::Flow;

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
    /// What only the model tells; the kernel keeps no such counts.
    pub inside: Option<MultipathInside>,
}

/// What the senders of MPTCP did by themselves, all connections together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MultipathInside {
    /// Payload that was handed to another subflow as well, redundant copies not counted.
    pub reinjected_bytes: u64,
    /// How often a subflow was penalised.
    pub penalties: u64,
    /// For how long the receivers' windows kept data back.
    pub blocked: Duration,
    /// From a connection's opening until all of its subflows carried data, the longest.
    pub join: Option<Duration>,
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
}

impl Multipath {
    pub(super) fn new(place: Place, spec: &TcpSpec, mptcp: &MptcpSpec) -> Result<Self, WorldError> {
        let source = spec.transfer_bytes.map_or(Source::Endless, Source::Bytes);
        Ok(Self {
            config: flow::config(&place, &spec.tcp, mptcp, source)?,
            links: mptcp.subflows.clone(),
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
        let flow = |at| Flow::new(self.place.app, at, self.place.data_to, &self.config);
        self.flows = (0..self.flow_count as usize).map(flow).collect();
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
}

impl App for Multipath {
    fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        if self.flows.is_empty() {
            return Some(self.place.start);
        }
        let timers = self.flows.iter().filter_map(Flow::poll_timeout);
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
                if self.flows[at].handle_timeout(now) {
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
        let at = packet.stream as usize / 2 / self.links.len();
        if self.flows[at].handle_packet(now, packet, &self.tally.span()) {
            self.drain(now, at, out);
        }
    }

    fn sees_links(&self) -> bool {
        self.flows.iter().any(Flow::sees_links)
    }

    fn see_link(&mut self, subflow: usize, queue: LocalQueue) {
        for flow in &mut self.flows {
            flow.see_link(subflow, queue);
        }
    }

    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn observe(&self) -> Observation {
        let statuses = || self.flows.iter().flat_map(Flow::statuses);
        let counters = || statuses().map(|status| status.counters);
        let segment_bytes = self.config.sender.segment_bytes;
        let view = flow::view(&self.flows, &self.links, segment_bytes, self.stopped);
        Observation {
            cwnd_segments: Some(view.subflows.iter().map(|subflow| subflow.cwnd_segments).sum()),
            segments: counters().map(|counters| counters.segments_sent).sum(),
            retransmits: counters().map(|counters| counters.retransmits).sum(),
            timeouts: counters().map(|counters| counters.rtos).sum(),
            recovery: Some(flow::recovery(&self.flows)),
            transfer: self.transfer,
            multipath: Some(view),
            ..Observation::default()
        }
    }
}
