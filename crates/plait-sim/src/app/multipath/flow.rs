//! A connection over several links, and its packets on their way.

use plait_proto::time::{Duration, Instant};

use super::{MultipathInside, MultipathView, OPTION_BYTES, SubflowView};
use crate::app::connection::{OnTheWay, ends, is_tallied};
use crate::app::tally::{Span, Tally};
use crate::app::{Outbox, Place, RecoveryView};
use crate::error::WorldError;
use crate::packet::{End, Packet, Protocol};
use crate::scenario::app::TcpKind;
use crate::scenario::multipath::MptcpSpec;
use crate::tcp::mptcp::{
    LocalQueue, MptcpConfig, MptcpConnection, MptcpSegment, SubflowConfig, SubflowStatus, Toward,
};
use crate::tcp::{ReceiverConfig, SenderConfig, Source};

/// Both ends of a connection as a scenario has it; `source` is the data to send.
pub(in crate::app) fn config(
    place: &Place,
    tcp: &TcpKind,
    mptcp: &MptcpSpec,
    source: Source,
) -> Result<MptcpConfig, WorldError> {
    if tcp.is_quic() {
        return Err(WorldError::QuicOverMptcp { app: place.name.clone() });
    }
    let ends = ends(place, tcp, source)?;
    let segment_bytes = ends.sender.segment_bytes - OPTION_BYTES;
    let is_backup = |link| SubflowConfig { is_backup: mptcp.backup.contains(link) };
    let primary = mptcp.subflows.iter().position(|link| *link == mptcp.primary);
    Ok(MptcpConfig {
        subflows: mptcp.subflows.iter().map(is_backup).collect(),
        primary: primary.expect("a checked scenario's primary is one of the subflows"),
        scheduler: mptcp.scheduler,
        penalise: mptcp.penalise,
        sender: SenderConfig { segment_bytes, ..ends.sender },
        receiver: ReceiverConfig { segment_bytes, ..ends.receiver },
        send_buffer_bytes: mptcp.send_buffer_bytes,
    })
}

/// A connection and what is on its way.
#[derive(Debug)]
pub(in crate::app) struct Flow {
    app: usize,
    data_to: End,
    /// Its first stream; each subflow has one for data and one for acknowledgements.
    first_stream: u32,
    connection: MptcpConnection,
    /// By subflow: data, and acknowledgements.
    on_the_way: Vec<[OnTheWay<MptcpSegment>; 2]>,
    opened_at: Option<Instant>,
    /// By subflow: throughput within the span, and what was counted so far.
    measured: Vec<(u64, u64)>,
}

impl Flow {
    /// The application's connection number `at`; it opens when it is first drained.
    pub(in crate::app) fn new(app: usize, at: usize, data_to: End, config: &MptcpConfig) -> Self {
        let subflows = config.subflows.len();
        let first_stream = u32::try_from(2 * at * subflows);
        Self {
            app,
            data_to,
            first_stream: first_stream.expect("flows times links are below STREAMS_MAX"),
            connection: MptcpConnection::new(config.clone()),
            on_the_way: (0..subflows).map(|_| Default::default()).collect(),
            opened_at: None,
            measured: vec![(0, 0); subflows],
        }
    }

    pub(in crate::app) fn write(&mut self, now: Instant, bytes: u64) {
        self.connection.write(now, bytes);
    }

    pub(in crate::app) fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Does what is due at `now`; says whether anything was.
    pub(in crate::app) fn handle_timeout(&mut self, now: Instant) -> bool {
        let is_due = self.connection.poll_timeout().is_some_and(|due| due <= now);
        if is_due {
            self.connection.handle_timeout(now);
        }
        is_due
    }

    /// Takes a packet of its own that arrived; says whether it was new.
    pub(in crate::app) fn handle_packet(
        &mut self,
        now: Instant,
        packet: &Packet,
        span: &Span,
    ) -> bool {
        let subflow = (packet.stream - self.first_stream) as usize / 2;
        let acknowledges = !packet.stream.is_multiple_of(2);
        let on_the_way = &mut self.on_the_way[subflow][usize::from(acknowledges)];
        let Some(segment) = on_the_way.take(packet.number) else { return false };
        let toward = if acknowledges { Toward::Sender } else { Toward::Receiver };
        self.connection.handle_segment(now, subflow, toward, &segment);
        let total = self.connection.status(subflow).throughput_bytes;
        let (measured, counted) = &mut self.measured[subflow];
        if span.holds(now) {
            *measured += total - *counted;
        }
        *counted = total;
        true
    }

    /// Takes out what both ends have to send, and returns the bytes that came into order.
    pub(in crate::app) fn drain(
        &mut self,
        now: Instant,
        tally: &mut Tally,
        out: &mut Outbox,
    ) -> u64 {
        self.opened_at = self.opened_at.or(Some(now));
        while let Some((subflow, toward, segment)) = self.connection.poll_transmit(now) {
            let packet = self.packet(now, subflow, toward, segment);
            if toward == Toward::Receiver && is_tallied(&packet) {
                tally.on_sent(now, segment.segment.len);
            }
            out.push(packet);
        }
        let in_order = core::iter::from_fn(|| self.connection.poll_deliver());
        in_order.map(|range| range.len()).sum()
    }

    pub(in crate::app) fn sees_links(&self) -> bool {
        self.connection.sees_local_queues()
    }

    pub(in crate::app) fn see_link(&mut self, subflow: usize, queue: LocalQueue) {
        self.connection.set_local_queue(subflow, queue);
    }

    pub(in crate::app) fn statuses(&self) -> impl Iterator<Item = SubflowStatus> {
        (0..self.on_the_way.len()).map(|subflow| self.connection.status(subflow))
    }

    /// From its opening until its last subflow carried data; `None` before.
    fn join_time(&self) -> Option<Duration> {
        let ready: Option<Vec<Instant>> = self.statuses().map(|status| status.ready_at).collect();
        Some(ready?.into_iter().max()?.since(self.opened_at?))
    }

    fn packet(
        &mut self,
        now: Instant,
        subflow: usize,
        toward: Toward,
        segment: MptcpSegment,
    ) -> Packet {
        let acknowledges = toward == Toward::Sender;
        let within = u32::try_from(2 * subflow + usize::from(acknowledges));
        let on_the_way = &mut self.on_the_way[subflow][usize::from(acknowledges)];
        let only_acknowledges = acknowledges && !segment.segment.flags.syn;
        Packet {
            app: self.app,
            stream: self.first_stream + within.expect("a connection has at most 255 subflows"),
            number: on_the_way.put(now, segment),
            sent_at: now,
            bytes: u16::try_from(segment.ip_bytes()).expect("a segment fits the MTU"),
            protocol: if only_acknowledges { Protocol::TcpAck } else { Protocol::Tcp },
            dscp: 0,
            to: if acknowledges { self.data_to.other() } else { self.data_to },
        }
    }
}

/// The figures of several connections over the same links together.
pub(in crate::app) fn view(
    flows: &[Flow],
    links: &[String],
    segment_bytes: u64,
    is_stopped: bool,
) -> MultipathView {
    let counters = || flows.iter().map(|flow| flow.connection.counters());
    let subflow = |at| subflow_view(flows, links, at, segment_bytes, is_stopped);
    MultipathView {
        subflows: (0..links.len()).map(subflow).collect(),
        inside: Some(MultipathInside {
            reinjected_bytes: counters().map(|counters| counters.reinjected_bytes).sum(),
            penalties: counters().map(|counters| counters.penalties).sum(),
            blocked: counters().map(|counters| counters.blocked).sum(),
            join: flows.iter().filter_map(Flow::join_time).max(),
        }),
    }
}

fn subflow_view(
    flows: &[Flow],
    links: &[String],
    at: usize,
    segment_bytes: u64,
    is_stopped: bool,
) -> SubflowView {
    let statuses = || flows.iter().map(|flow| flow.connection.status(at));
    let segments = |bytes: u64| bytes as f64 / segment_bytes as f64;
    let thresholds = statuses().map(|status| status.ssthresh_bytes);
    let is_known = !flows.is_empty() && thresholds.clone().all(|bytes| bytes < u64::MAX);
    let windows = statuses().map(|status| status.window_bytes).sum();
    SubflowView {
        link: links[at].clone(),
        throughput_bytes: statuses().map(|status| status.throughput_bytes).sum(),
        measured_throughput_bytes: flows.iter().map(|flow| flow.measured[at].0).sum(),
        cwnd_segments: if is_stopped { 0.0 } else { segments(windows) },
        ssthresh_segments: is_known.then(|| segments(thresholds.sum())),
        srtt: statuses().filter_map(|status| status.srtt).max(),
    }
}

/// How loss recovery went on all subflows of several connections.
pub(in crate::app) fn recovery(flows: &[Flow]) -> RecoveryView {
    let mut view = RecoveryView::default();
    for status in flows.iter().flat_map(Flow::statuses) {
        view.duplicate_acks += status.counters.duplicate_acks;
        view.fast_recoveries += status.counters.fast_recoveries;
        view.undone_recoveries += status.counters.spurious_undos;
        view.rto = view.rto.max(status.rto);
    }
    view
}
