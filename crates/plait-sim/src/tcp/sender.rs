//! The sending end. `ack.rs` handles acknowledgements, `transmit.rs` sends, timers are in
//! `timers.rs`, and `recovery.rs` holds the states of loss recovery; the rules themselves are small
//! modules beside this one, independent of each other.

mod ack;
mod recovery;
mod timers;
mod transmit;

use plait_proto::congestion::{Controller, PacketState, Phase, Sibling, Start};
use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::config::{Recovery, SenderConfig};
use super::delivery_rate::DeliveryRate;
use super::linux_3_2::Linux32;
use super::new_reno::NewReno;
use super::offload::Pieces;
use super::pacing::{self, Pacer};
use super::prr::Prr;
use super::quic::Quic;
use super::rack::Rack;
use super::reordering::Reordering;
use super::rto::RttEstimator;
use super::scoreboard::Scoreboard;
use super::segment::{Segment, SeqRange};
use super::source::Supply;
use super::tail_loss::Probe;
use super::undo::Undo;
use super::window_use::WindowUse;
use timers::Timers;

/// A sender's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderCounters {
    /// Segments with data sent, retransmissions and probes included.
    pub segments_sent: u64,
    /// Those of them that are retransmissions.
    pub retransmits: u64,
    /// Retransmission timeouts, those of the handshake included.
    pub rtos: u64,
    /// Fast recoveries begun.
    pub fast_recoveries: u64,
    /// Loss recoveries that proved spurious and were undone.
    pub spurious_undos: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Acknowledgements that advanced nothing while data was outstanding.
    pub duplicate_acks: u64,
    /// Those of them, and others, that reported a duplicate (DSACK).
    pub dsacks: u64,
    /// Data bytes cumulatively acknowledged.
    pub acked_bytes: u64,
}

/// A sample of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowPoint {
    /// When.
    pub at: Instant,
    /// The window in use; during fast recovery that of the rate reduction.
    pub window_bytes: u64,
    /// The controller's ssthresh; `u64::MAX` while unknown.
    pub ssthresh_bytes: u64,
    /// In flight.
    pub in_flight_bytes: u64,
}

/// State of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Handshake {
    /// A SYN must be sent.
    Due,
    /// A SYN was sent, first at that time, so many times.
    Sent {
        first_at: Instant,
        times: u32,
    },
    Established,
}

/// The loss detector.
#[derive(Debug)]
enum Detector {
    Sack(Reordering),
    NewReno(NewReno),
    Rack(Rack),
    Quic(Quic),
    Linux32(Linux32),
}

impl Detector {
    /// The duplicate-acknowledgement threshold of those with one that counts blocks.
    fn threshold_segments(&self) -> Option<u64> {
        match self {
            Self::Sack(reordering) => Some(reordering.threshold_segments()),
            Self::Linux32(linux) => Some(linux.threshold_segments()),
            Self::NewReno(_) | Self::Rack(_) | Self::Quic(_) => None,
        }
    }

    /// What lies in `gap` was late, not lost, as [`Reordering::on_reordered`].
    fn on_reordered(&mut self, gap: SeqRange) {
        match self {
            Self::Sack(reordering) => reordering.on_reordered(gap),
            Self::Linux32(linux) => linux.on_reordered(gap),
            Self::Rack(rack) if !gap.is_empty() => rack.on_reordered(),
            Self::NewReno(_) | Self::Rack(_) | Self::Quic(_) => {}
        }
    }
}

/// The sending end of a connection.
#[derive(Debug)]
pub struct TcpSender {
    config: SenderConfig,
    handshake: Handshake,
    supply: Supply,
    board: Scoreboard,
    controller: Box<dyn Controller>,
    /// The other subflows of its connection, as they stood last.
    siblings: Vec<Sibling>,
    /// The latest delivery rate that is known; zero before.
    delivery_rate: Rate,
    rtt: RttEstimator,
    detector: Detector,
    /// The controller's state in the last segment that was acknowledged cumulatively, as of when it
    /// first left.
    in_order: Option<PacketState>,
    phase: Phase,
    /// Recovery ends when this byte is acknowledged.
    high_seq: u64,
    prr: Option<Prr>,
    undo: Option<Undo>,
    /// Segments that were reported as duplicates.
    duplicate_segments: u64,
    /// Until the next acknowledgement, only new data leaves: what seemed lost was late, and other
    /// retransmissions are under way (Linux: `tcp_try_undo_partial`).
    resends_nothing: bool,
    /// Timestamp of the first retransmission of those that may fill gaps (Linux: `retrans_stamp`).
    resending_since_ms: Option<u64>,
    probe: Option<Probe>,
    /// A probe must be sent, regardless of the window.
    probe_due: bool,
    timers: Timers,
    pacer: Pacer,
    pieces: Pieces,
    rate: DeliveryRate,
    window_use: WindowUse,
    /// The byte after the last that the receiver has room for.
    right_edge: u64,
    /// The receiver's latest timestamp.
    ts_recent_ms: u64,
    /// Until when nothing can leave although the window has room.
    idle_until: Option<Instant>,
    counters: SenderCounters,
    trace: Vec<WindowPoint>,
}

impl TcpSender {
    /// A sender that opens a connection as soon as it is polled.
    ///
    /// # Panics
    ///
    /// When a segment holds no byte.
    pub fn new(config: SenderConfig) -> Self {
        assert!(config.segment_bytes > 0, "a segment holds at least one byte");
        let detector = match config.recovery {
            Recovery::Sack { dup_threshold } => {
                let max_segments = config.reordering_max;
                Detector::Sack(Reordering::new(dup_threshold, config.segment_bytes, max_segments))
            }
            Recovery::NewReno => {
                Detector::NewReno(NewReno::new(config.segment_bytes, config.reordering_max))
            }
            Recovery::RackTlp => Detector::Rack(Rack::default()),
            Recovery::Quic => Detector::Quic(Quic::default()),
            Recovery::Linux32 => Detector::Linux32(Linux32::new(config.segment_bytes)),
        };
        Self {
            handshake: Handshake::Due,
            supply: Supply::new(config.source),
            board: Scoreboard::default(),
            controller: config.controller.build(Start::ten_segments(config.segment_bytes)),
            siblings: Vec::new(),
            delivery_rate: Rate::ZERO,
            rtt: RttEstimator::default(),
            detector,
            in_order: None,
            phase: Phase::Open,
            high_seq: 0,
            prr: None,
            undo: None,
            duplicate_segments: 0,
            resends_nothing: false,
            resending_since_ms: None,
            probe: None,
            probe_due: false,
            timers: Timers::default(),
            pacer: Pacer::new(config.pacing),
            pieces: Pieces::default(),
            rate: DeliveryRate::default(),
            window_use: WindowUse::default(),
            right_edge: 0,
            ts_recent_ms: 0,
            idle_until: None,
            counters: SenderCounters::default(),
            trace: Vec::new(),
            config,
        }
    }

    /// Handles a segment that arrived.
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        if !segment.flags.ack {
            return;
        }
        self.ts_recent_ms = self.ts_recent_ms.max(segment.ts_ms);
        let right_edge = segment.ack + segment.window;
        let raises_window = right_edge > self.right_edge;
        self.right_edge = self.right_edge.max(right_edge);
        match self.handshake {
            Handshake::Established => self.handle_ack(now, segment, raises_window),
            Handshake::Sent { first_at, times } if segment.flags.syn => {
                self.establish(now, (times == 1).then(|| now.since(first_at)));
            }
            Handshake::Due | Handshake::Sent { .. } => {}
        }
        self.record(now);
    }

    /// Gives [`Source::Written`](super::Source::Written) `bytes` more to send.
    pub fn write(&mut self, bytes: u64) {
        self.supply.write(bytes);
    }

    /// As [`TcpSender::write`]; no segment holds bytes of this record and of another.
    pub fn write_record(&mut self, bytes: u64) {
        self.supply.write_record(bytes);
    }

    /// Whether the controller needs [`TcpSender::set_siblings`].
    pub fn is_coupled(&self) -> bool {
        self.controller.is_coupled()
    }

    /// Tells a subflow how the connection's others stand, until told anew: before each
    /// acknowledgement, for a coupled controller. Without it the subflow counts as the only one.
    pub fn set_siblings(&mut self, siblings: &[Sibling]) {
        self.siblings.clear();
        self.siblings.extend_from_slice(siblings);
    }

    /// How this subflow stands, for [`TcpSender::set_siblings`] of the others.
    pub fn as_sibling(&self) -> Sibling {
        Sibling {
            window_bytes: self.controller.window(),
            in_flight_bytes: self.board.in_flight_bytes(),
            srtt: self.rtt.srtt(),
            delivery_rate: self.delivery_rate,
            loss_gap_bytes: self.controller.loss_gap_bytes(),
        }
    }

    /// Halves the window although nothing was lost: the connection suffers from this subflow.
    pub fn penalise(&mut self, now: Instant) {
        self.controller.on_penalty(now);
        self.record(now);
    }

    /// Whether the handshake is done.
    pub fn is_established(&self) -> bool {
        self.handshake == Handshake::Established
    }

    /// Whether all data of the source is acknowledged.
    pub fn is_finished(&self) -> bool {
        self.handshake == Handshake::Established && self.supply.is_finished(self.board.una())
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Option<Duration> {
        self.rtt.srtt()
    }

    /// Mean deviation of the round-trip time (RFC 6298).
    pub fn rtt_variation(&self) -> Option<Duration> {
        self.rtt.variation()
    }

    /// The lowest byte that is not cumulatively acknowledged.
    pub fn una(&self) -> u64 {
        self.board.una()
    }

    /// Bytes written that no acknowledgement has passed, sent or not.
    pub fn queued_bytes(&self) -> u64 {
        self.supply.written_bytes() - self.board.una()
    }

    /// Bytes written that have not been sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.supply.written_bytes() - self.board.nxt()
    }

    /// The controller's ssthresh; `u64::MAX` while unknown.
    pub fn ssthresh_bytes(&self) -> u64 {
        self.controller.ssthresh()
    }

    /// The rate at which the sender would pace: the controller's, or 200 % of the window per srtt
    /// below half of ssthresh and 120 % above (Linux's `sk_pacing_rate`); zero before the
    /// connection is established.
    pub fn pacing_estimate(&self) -> Rate {
        if let Some(rate) = self.controller.pacing_rate() {
            return rate;
        }
        if self.handshake != Handshake::Established {
            return Rate::ZERO;
        }
        // A handshake that was repeated gives no round trip; Linux then divides by none.
        let srtt = self.rtt.srtt().unwrap_or(Duration::from_micros(1));
        pacing::linux_rate(self.controller.as_ref(), self.board.flight_bytes(), srtt)
    }

    /// Bytes in flight.
    pub fn in_flight_bytes(&self) -> u64 {
        self.board.in_flight_bytes()
    }

    /// The window in use: the controller's, or that of the rate reduction during fast recovery.
    pub fn window_bytes(&self) -> u64 {
        self.prr.map_or_else(|| self.controller.window(), |prr| prr.window())
    }

    /// The retransmission timeout, backed off.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// The phase of loss recovery.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Duplicate-acknowledgement threshold of SACK-based recovery now, in segments; `None` with
    /// any other.
    pub fn dup_threshold(&self) -> Option<u64> {
        self.detector.threshold_segments()
    }

    /// The sender's counters.
    pub fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// The window over time since the start; empty unless the configuration asks for it.
    pub fn window_trace(&self) -> &[WindowPoint] {
        &self.trace
    }

    fn establish(&mut self, now: Instant, rtt: Option<Duration>) {
        self.handshake = Handshake::Established;
        self.supply.open(now);
        self.rtt.end_backoff();
        self.timers.stop_all();
        if let Some(rtt) = rtt {
            self.rtt.on_sample(rtt);
            self.rtt.on_min_sample(now, rtt);
        }
    }

    fn record(&mut self, now: Instant) {
        if !self.config.trace_window {
            return;
        }
        let point = WindowPoint {
            at: now,
            window_bytes: self.window_bytes(),
            ssthresh_bytes: self.controller.ssthresh(),
            in_flight_bytes: self.board.in_flight_bytes(),
        };
        let known = self.trace.last().map(|last| (last.window_bytes, last.ssthresh_bytes));
        if known != Some((point.window_bytes, point.ssthresh_bytes)) {
            self.trace.push(point);
        }
    }
}

#[cfg(test)]
mod tests;
