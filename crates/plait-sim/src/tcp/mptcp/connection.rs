//! The connection: both of its ends, and what goes on between its subflows. `push.rs` decides what
//! the subflows carry.

mod push;

use plait_proto::congestion::Sibling;
use plait_proto::time::{Duration, Instant};

use super::config::MptcpConfig;
use super::data_sequence::DataSequence;
use super::penalty::Penalty;
use super::receiver::DataReceiver;
use super::reinjection::{Reinjection, Rule};
use super::scheduler::{LocalQueue, Scheduler, SchedulerName, SubflowView};
use super::segment::{MptcpSegment, Toward};
use super::send_buffer::SendBuffer;
use super::subflow::{Stage, Subflow, SubflowStatus};
use crate::tcp::Segment;
use crate::tcp::segment::SeqRange;

/// A connection's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MptcpCounters {
    /// Data bytes acknowledged by the connection's receiver.
    pub acked_bytes: u64,
    /// Data bytes that were handed to another subflow as well, redundant copies not counted.
    pub reinjected_bytes: u64,
    /// How often a subflow's window was halved because it held the connection up.
    pub penalties: u64,
    /// For how long the receiver's window kept data back that was there.
    pub blocked: Duration,
    /// Bytes that reached the receiver beyond the window that it had offered; a sender that obeys
    /// has none.
    pub beyond_window_bytes: u64,
}

/// Both ends of a connection over several subflows.
#[derive(Debug)]
pub struct MptcpConnection {
    config: MptcpConfig,
    subflows: Vec<Subflow>,
    data: DataSequence,
    send_buffer: SendBuffer,
    scheduler: Box<dyn Scheduler>,
    reinjection: Reinjection,
    penalty: Penalty,
    receiver: DataReceiver,
    /// When the subflows that wait for the first one begin.
    joins_at: Option<Instant>,
    /// The sender's devices, by subflow.
    local: Vec<LocalQueue>,
    /// What the scheduler is shown; kept for reuse.
    views: Vec<SubflowView>,
    reinjections: u64,
    reinjected_bytes: u64,
}

impl MptcpConnection {
    /// A connection that opens when it is first polled. The sender's `source` is
    /// `Endless`, `Bytes` or `Written`.
    ///
    /// # Panics
    ///
    /// Without subflows or with more than 255 of them, with a primary that is none of them, or
    /// with another source.
    pub fn new(config: MptcpConfig) -> Self {
        let count = config.subflows.len();
        assert!((1..256).contains(&count), "a connection has 1 to 255 subflows");
        assert!(config.primary < count, "the primary is one of the subflows");
        let subflow = |(at, own)| Subflow::new(&config, own, at == config.primary);
        let subflows = config.subflows.iter().copied().enumerate().map(subflow).collect();
        let rule = match config.scheduler {
            SchedulerName::ShortestFlush => Rule::Linux,
            _ => Rule::AtTimeout,
        };
        Self {
            subflows,
            data: DataSequence::new(config.sender.segment_bytes, config.sender.source),
            send_buffer: SendBuffer::new(config.send_buffer_bytes),
            scheduler: config.scheduler.build(),
            reinjection: Reinjection::new(rule, count),
            penalty: Penalty::new(count),
            receiver: DataReceiver::new(&config.receiver),
            joins_at: None,
            local: vec![LocalQueue::default(); count],
            views: Vec::new(),
            reinjections: 0,
            reinjected_bytes: 0,
            config,
        }
    }

    /// Handles a segment of a subflow that arrived at one of the ends.
    pub fn handle_segment(
        &mut self,
        now: Instant,
        subflow: usize,
        toward: Toward,
        segment: &MptcpSegment,
    ) {
        match toward {
            Toward::Receiver => self.receive(now, subflow, segment),
            Toward::Sender => self.handle_ack(now, subflow, segment),
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.subflows.iter_mut().for_each(|subflow| subflow.handle_timeout(now));
        let place = (self.data.una(), self.data.nxt());
        let segment_bytes = self.config.sender.segment_bytes;
        self.reinjection.handle_timeout(now, &mut self.subflows, place, segment_bytes);
        self.advance(now);
        self.push(now);
    }

    /// The application has more to send, where the source is `Written`.
    pub fn write(&mut self, now: Instant, bytes: u64) {
        self.data.give(bytes);
        self.push(now);
    }

    /// Takes the next segment to send: its subflow, and the end that it goes to.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(usize, Toward, MptcpSegment)> {
        let is_over = self.data.is_finished();
        for at in 0..self.subflows.len() {
            let subflow = &mut self.subflows[at];
            if !is_over
                && subflow.sends()
                && let Some(segment) = subflow.sender.poll_transmit(now)
            {
                let data = subflow.sent.get(segment.seq);
                let data_seq = data.map_or(0, |data| data.start);
                return Some((at, Toward::Receiver, self.wrap(at, segment, data_seq, (0, 0))));
            }
            if let Some(segment) = subflow.receiver.poll_transmit(now) {
                let place = self.receiver.acknowledge();
                return Some((at, Toward::Sender, self.wrap(at, segment, 0, place)));
            }
        }
        None
    }

    /// Takes the data that is now in order; `None` when there is none.
    pub fn poll_deliver(&mut self) -> Option<SeqRange> {
        self.receiver.poll_deliver()
    }

    /// When to call [`MptcpConnection::handle_timeout`] and then
    /// [`MptcpConnection::poll_transmit`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.data.is_finished() {
            return None;
        }
        let subflows = self.subflows.iter().filter_map(Subflow::poll_timeout);
        subflows.chain(self.reinjection.poll_timeout()).min()
    }

    /// Whether [`MptcpConnection::set_local_queue`] has an effect.
    pub fn sees_local_queues(&self) -> bool {
        self.scheduler.sees_local_queues()
    }

    /// The state of the sender's device of a subflow's link, before anything is handled.
    pub fn set_local_queue(&mut self, subflow: usize, queue: LocalQueue) {
        self.local[subflow] = queue;
    }

    /// Whether all data of the source is acknowledged; then the connection is closed: its subflows
    /// send no more.
    pub fn is_finished(&self) -> bool {
        self.data.is_finished()
    }

    /// The connection's counters.
    pub fn counters(&self) -> MptcpCounters {
        MptcpCounters {
            acked_bytes: self.data.una(),
            reinjected_bytes: self.reinjected_bytes,
            penalties: self.penalty.count(),
            blocked: self.data.blocked(),
            beyond_window_bytes: self.receiver.beyond_window_bytes(),
        }
    }

    /// A subflow as it stands.
    pub fn status(&self, subflow: usize) -> SubflowStatus {
        self.subflows[subflow].status()
    }

    fn wrap(
        &self,
        at: usize,
        segment: Segment,
        data_seq: u64,
        (data_ack, data_right_edge): (u64, u64),
    ) -> MptcpSegment {
        let joins = at != self.config.primary;
        MptcpSegment { segment, data_seq, data_ack, data_right_edge, joins }
    }

    fn receive(&mut self, now: Instant, at: usize, segment: &MptcpSegment) {
        let data = SeqRange::new(segment.data_seq, segment.segment.len);
        let receiver = &mut self.subflows[at].receiver;
        receiver.let_window_grow(self.receiver.window_clamp_bytes());
        let ordered = self.subflows[at].receive(now, &segment.segment, data);
        self.receiver.follow_window(self.subflows[at].receiver.offered_bytes());
        let rtt = self.subflows.iter().filter_map(Subflow::receiver_rtt).max();
        for data in ordered {
            self.receiver.arrive(now, data, rtt);
        }
    }

    fn handle_ack(&mut self, now: Instant, at: usize, segment: &MptcpSegment) {
        let others = self.subflows.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.filter(|(_, subflow)| subflow.stage == Stage::Ready);
        let siblings: Vec<Sibling> =
            others.map(|(_, subflow)| subflow.sender.as_sibling()).collect();
        let subflow = &mut self.subflows[at];
        subflow.sender.set_siblings(&siblings);
        subflow.sender.handle_segment(now, &segment.segment);
        subflow.forget_acknowledged();
        self.reinjection.revive(&mut self.subflows);
        let una = self.data.una();
        self.data.on_ack(segment.data_ack, segment.data_right_edge);
        self.advance(now);
        self.push(now);
        if self.grow_buffer(at) {
            self.push(now);
        }
        self.arm(now, self.data.una() > una);
    }

    /// Moves subflows on, and answers their timeouts.
    fn advance(&mut self, now: Instant) {
        let primary = &self.subflows[self.config.primary].sender;
        if self.joins_at.is_none() && primary.is_established() {
            // The peer must have confirmed that it speaks MPTCP (RFC 8684 section 3.1).
            self.joins_at = Some(now + primary.srtt().unwrap_or_default());
        }
        let una = self.data.una();
        for (at, subflow) in self.subflows.iter_mut().enumerate() {
            subflow.advance(now, at == self.config.primary, self.joins_at);
            let rtos = subflow.sender.counters().rtos;
            if core::mem::replace(&mut subflow.rtos_seen, rtos) < rtos {
                self.reinjection.on_timeout(at, subflow, una);
            }
        }
    }

    /// A subflow's buffer grows with its window. Says whether it did.
    fn grow_buffer(&mut self, at: usize) -> bool {
        let Subflow { sender, buffer, .. } = &mut self.subflows[at];
        let before = buffer.bytes();
        // What waits for the window fills it as soon as it leaves. Where data waits in the
        // connection instead, its buffer must hold more than the windows, full or not.
        let waits_here = self.scheduler.fills_buffers();
        let taken = if waits_here { sender.in_flight_bytes() + sender.unsent_bytes() } else { 0 };
        buffer.grow(taken, sender.window_bytes(), self.config.sender.segment_bytes);
        buffer.bytes() > before
    }

    fn arm(&mut self, now: Instant, anew: bool) {
        let is_idle = self.data.una() == self.data.nxt();
        self.reinjection.arm(now, &self.subflows, is_idle, anew);
    }
}
