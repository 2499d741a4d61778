//! A subflow: both ends of its TCP connection, and its share of the connection's data.

use plait_proto::congestion::Phase;
use plait_proto::time::{Duration, Instant};

use super::config::{MptcpConfig, SubflowConfig};
use super::mapping::Mappings;
use super::send_buffer::{SubflowBuffer, memory_bytes};
use crate::tcp::segment::SeqRange;
use crate::tcp::timestamp_ms;
use crate::tcp::{ReceiverConfig, SenderConfig, SenderCounters, Source, TcpReceiver, TcpSender};

/// What SACK finds beside timestamps and a data acknowledgement: room for one block.
const SACK_BLOCKS: usize = 1;

/// How far a subflow has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// It waits for the first subflow, and then for this time.
    Waiting(Option<Instant>),
    /// Its handshake is under way.
    Opening,
    /// Its sender waits for the acknowledgement of the third segment of MP_JOIN (RFC 8684
    /// section 3.2).
    Confirming(Instant),
    /// It carries data.
    Ready,
}

/// A subflow as it stands.
#[derive(Clone, Copy, Debug)]
pub struct SubflowStatus {
    /// Data bytes that came into order on it, copies of others' included.
    pub throughput_bytes: u64,
    /// Its congestion window; that of the rate reduction during fast recovery.
    pub window_bytes: u64,
    /// Its ssthresh; `u64::MAX` while unknown.
    pub ssthresh_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Retransmission timeout, backed off.
    pub rto: Duration,
    /// Counters of its sender.
    pub counters: SenderCounters,
    /// Since when it carries data.
    pub ready_at: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Subflow {
    pub(super) sender: TcpSender,
    pub(super) receiver: TcpReceiver,
    pub(super) is_backup: bool,
    pub(super) stage: Stage,
    /// Where its outstanding data lies, at the sender.
    pub(super) sent: Mappings,
    /// Where data lies that arrived and is not yet in order on the subflow, at the receiver.
    arrived: Mappings,
    /// The connection's bytes below were handed to it, or acknowledged: of a redundant scheduler.
    pub(super) cursor: u64,
    pub(super) buffer: SubflowBuffer,
    /// The receiver's estimate of the round-trip time.
    rtt: Option<Duration>,
    /// Timeouts that were answered.
    pub(super) rtos_seen: u64,
    /// Given up for the time being (Linux: `stale`).
    pub(super) is_stale: bool,
    throughput_bytes: u64,
    ready_at: Option<Instant>,
}

impl Subflow {
    pub(super) fn new(config: &MptcpConfig, own: SubflowConfig, is_primary: bool) -> Self {
        let sender = SenderConfig { source: Source::Written, ..config.sender };
        let receiver =
            ReceiverConfig { is_subflow: true, sack_blocks_max: SACK_BLOCKS, ..config.receiver };
        Self {
            sender: TcpSender::new(sender),
            receiver: TcpReceiver::new(receiver),
            is_backup: own.is_backup,
            stage: if is_primary { Stage::Opening } else { Stage::Waiting(None) },
            sent: Mappings::default(),
            arrived: Mappings::default(),
            cursor: 0,
            buffer: SubflowBuffer::default(),
            rtt: None,
            rtos_seen: 0,
            is_stale: false,
            throughput_bytes: 0,
            ready_at: None,
        }
    }

    /// Moves on where that is due. `joins_at` is when a subflow may begin that waits for the first.
    pub(super) fn advance(&mut self, now: Instant, is_primary: bool, joins_at: Option<Instant>) {
        if let Stage::Waiting(at) = &mut self.stage {
            *at = at.or(joins_at);
            if at.is_some_and(|at| at <= now) {
                self.stage = Stage::Opening;
            }
        }
        if self.stage == Stage::Opening && self.sender.is_established() {
            let round = self.sender.srtt().unwrap_or_default();
            self.stage = if is_primary { Stage::Ready } else { Stage::Confirming(now + round) };
        }
        if let Stage::Confirming(at) = self.stage
            && at <= now
        {
            self.stage = Stage::Ready;
        }
        if self.stage == Stage::Ready {
            self.ready_at = self.ready_at.or(Some(now));
        }
    }

    /// Whether its sender may send: SYN or data.
    pub(super) fn sends(&self) -> bool {
        matches!(self.stage, Stage::Opening | Stage::Ready)
    }

    /// Whether it may be given data: it is ready, not given up, and did not time out lately where
    /// `spares_timed_out` says so.
    pub(super) fn is_usable(&self, spares_timed_out: bool) -> bool {
        let timed_out = spares_timed_out && self.sender.phase() == Phase::RtoRecovery;
        self.stage == Stage::Ready && !self.is_stale && !timed_out
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let own = match self.stage {
            Stage::Waiting(at) => return at,
            Stage::Confirming(at) => Some(at),
            Stage::Opening | Stage::Ready => self.sender.poll_timeout(),
        };
        [own, self.receiver.poll_timeout()].into_iter().flatten().min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.sends() && self.sender.poll_timeout().is_some_and(|at| at <= now) {
            self.sender.handle_timeout(now);
        }
        if self.receiver.poll_timeout().is_some_and(|at| at <= now) {
            self.receiver.handle_timeout(now);
        }
    }

    /// Hands it a segment's worth of the connection's data.
    pub(super) fn give(&mut self, data: SeqRange) {
        let start = self.sender.una() + self.sender.queued_bytes();
        self.sender.write_record(data.len());
        self.sent.insert(start, data);
        if data.start <= self.cursor {
            self.cursor = self.cursor.max(data.end);
        }
    }

    /// Forgets where acknowledged data lay.
    pub(super) fn forget_acknowledged(&mut self) {
        while self.sent.pop_below(self.sender.una()).is_some() {}
    }

    /// What its send buffer holds, as the kernel counts it.
    pub(super) fn memory_bytes(&self, segment_bytes: u64) -> u64 {
        let unsent = self.sender.unsent_bytes();
        let sent = self.sender.queued_bytes() - unsent;
        memory_bytes(sent, unsent, self.sender.pacing_estimate(), segment_bytes)
    }

    /// Whether its send buffer takes more.
    pub(super) fn has_memory(&self, segment_bytes: u64) -> bool {
        self.memory_bytes(segment_bytes) < self.buffer.bytes()
    }

    /// A segment with data, or a SYN, arrived at the receiver; `data` is where its data lies.
    /// Returns what came into order on the subflow, as it lies in the connection.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        segment: &crate::tcp::Segment,
        data: SeqRange,
    ) -> Vec<SeqRange> {
        if !data.is_empty() {
            self.arrived.insert(segment.seq, data);
            let millis = timestamp_ms(now).saturating_sub(segment.ts_echo_ms).max(1);
            let sample = Duration::from_millis(millis);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
        self.receiver.handle_segment(now, segment);
        let mut ordered = Vec::new();
        while let Some(range) = self.receiver.poll_deliver() {
            self.throughput_bytes += range.len();
            ordered.extend(core::iter::from_fn(|| self.arrived.pop_below(range.end)));
        }
        ordered
    }

    /// The receiver's estimate of the round-trip time.
    pub(super) fn receiver_rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(super) fn status(&self) -> SubflowStatus {
        SubflowStatus {
            throughput_bytes: self.throughput_bytes,
            window_bytes: self.sender.window_bytes(),
            ssthresh_bytes: self.sender.ssthresh_bytes(),
            srtt: self.sender.srtt(),
            rto: self.sender.rto(),
            counters: self.sender.counters(),
            ready_at: self.ready_at,
        }
    }
}
