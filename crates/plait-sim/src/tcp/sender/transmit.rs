//! Sends, in this order: SYN, probe, retransmissions, new data.

use plait_proto::congestion::{self, Phase};
use plait_proto::time::{Duration, Instant};

use super::{Detector, Handshake, TcpSender};
use crate::tcp::offload::Moment;
use crate::tcp::scoreboard::Sent;
use crate::tcp::segment::{Flags, Segment, SeqRange};
use crate::tcp::tail_loss::Probe;
use crate::tcp::timestamp_ms;

/// Why nothing leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// The congestion window is full.
    Window,
    /// There is nothing to send, or the receiver has no room.
    Application,
    /// The pacer sends nothing before then.
    Paced(Instant),
    /// There is nothing to send before then.
    Supply(Instant),
}

impl TcpSender {
    /// Takes the next segment to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.handshake != Handshake::Established {
            return self.next_syn(now);
        }
        if core::mem::take(&mut self.probe_due) {
            return self.send_probe(now);
        }
        self.idle_until = None;
        match self.next_range(now) {
            Ok(range) if range.start < self.board.nxt() => Some(self.resend(now, range.start)),
            Ok(_) if self.waits_for_window(now) => {
                self.on_stop(Stop::Window);
                None
            }
            Ok(range) => Some(self.send_new(now, range)),
            Err(stop) => {
                self.on_stop(stop);
                None
            }
        }
    }

    fn next_syn(&mut self, now: Instant) -> Option<Segment> {
        let (first_at, times) = match self.handshake {
            Handshake::Due => (now, 1),
            // The timer is stopped when it fires.
            Handshake::Sent { first_at, times } if self.timers.rto.is_none() => {
                (first_at, times + 1)
            }
            Handshake::Sent { .. } | Handshake::Established => return None,
        };
        self.handshake = Handshake::Sent { first_at, times };
        self.timers.rto = Some(now + self.rtt.rto());
        let flags = Flags { syn: true, ack: false };
        Some(Segment { flags, ts_ms: timestamp_ms(now), ..Segment::default() })
    }

    /// What would leave now, if anything may.
    pub(super) fn next_range(&self, now: Instant) -> Result<SeqRange, Stop> {
        let lost = self.board.next_to_resend().filter(|_| !self.resends_nothing);
        let (range, is_new) = match lost {
            Some(lost) => (lost.range, false),
            None => (self.new_range(now)?, true),
        };
        if is_new && range.end > self.right_edge {
            return Err(Stop::Application);
        }
        if self.board.in_flight_bytes() + range.len() > self.window_bytes() {
            return Err(Stop::Window);
        }
        let next_at = self.pacer.next_at();
        if next_at > now { Err(Stop::Paced(next_at)) } else { Ok(range) }
    }

    /// Whether new data that may leave waits for a larger burst.
    fn waits_for_window(&mut self, now: Instant) -> bool {
        if self.is_quic() || self.phase != Phase::Open {
            return false;
        }
        let (una, nxt) = (self.board.una(), self.board.nxt());
        let receiver_bytes = self.right_edge - nxt;
        let window_bytes = self.window_bytes();
        let moment = Moment {
            now,
            segment_bytes: self.config.segment_bytes,
            limit_bytes: receiver_bytes.min(window_bytes - self.board.in_flight_bytes()),
            unsent_bytes: self.supply.unsent_bytes(now, nxt),
            window_bytes: window_bytes.min(self.right_edge - una),
            first_sent: self.board.get(una).map(|sent| sent.at),
            srtt: self.rtt.srtt().unwrap_or_default(),
            min_rtt: self.rtt.min_rtt().unwrap_or(Duration::MAX),
            pacing_rate: self.pacing_estimate(),
        };
        !self.pieces.may_leave(&moment)
    }

    fn new_range(&self, now: Instant) -> Result<SeqRange, Stop> {
        let nxt = self.board.nxt();
        match self.supply.next_len(now, nxt, self.config.segment_bytes) {
            0 => Err(match self.supply.next_at(nxt, self.config.segment_bytes) {
                Some(at) => Stop::Supply(at),
                None => Stop::Application,
            }),
            len => Ok(SeqRange::new(nxt, len)),
        }
    }

    fn on_stop(&mut self, stop: Stop) {
        if let Stop::Paced(at) | Stop::Supply(at) = stop {
            self.idle_until = Some(at);
        }
        let in_flight_bytes = self.board.in_flight_bytes();
        let has_room = in_flight_bytes + self.config.segment_bytes <= self.window_bytes();
        if has_room && matches!(stop, Stop::Application | Stop::Supply(_)) {
            self.rate.on_app_limited(in_flight_bytes);
        }
        let (una, nxt) = (self.board.una(), self.board.nxt());
        // A full window counts even when nothing waits behind it: MPTCP gives a subflow no more
        // than its window holds.
        let is_limited = stop == Stop::Window || !has_room;
        self.window_use.on_stop(is_limited, self.board.flight_bytes(), una, nxt);
    }

    fn send_new(&mut self, now: Instant, range: SeqRange) -> Segment {
        let was_idle = self.board.is_empty();
        let rate = self.rate.on_sent(now, was_idle);
        self.board.push(Sent {
            range,
            at: now,
            transmissions: 1,
            is_sacked: false,
            is_lost: false,
            is_resent: false,
            packet: congestion::PacketState::default(),
            first_packet: congestion::PacketState::default(),
            rate,
        });
        self.supply.on_sent(range.end);
        let packet = self.tell_sent(now, range.len());
        self.board.set_packet_of_last(packet);
        // RFC 6298 section 5.1, and RFC 8985 section 7.2: new data restarts the probe's wait.
        let probing = self.timers.probe.is_some();
        if self.timers.rto.is_none() || probing {
            self.restart_timers(now);
        }
        self.finish(now, range)
    }

    fn resend(&mut self, now: Instant, seq: u64) -> Segment {
        self.resending_since_ms.get_or_insert(timestamp_ms(now));
        let rate = self.rate.on_sent(now, false);
        let bytes = self.board.get(seq).map_or(0, |sent| sent.range.len());
        let packet = self.tell_sent(now, bytes);
        self.board.resend(seq, now, packet, rate);
        self.counters.retransmits += 1;
        if let Some(undo) = &mut self.undo {
            undo.on_retransmit();
        }
        if self.timers.rto.is_none() {
            self.restart_timers(now);
        }
        let range = self.board.get(seq).expect("a segment sent again is outstanding").range;
        self.finish(now, range)
    }

    /// New data if there is any and the receiver has room, else the last segment again (RFC 8985
    /// section 7.3).
    fn send_probe(&mut self, now: Instant) -> Option<Segment> {
        let last = self.board.last()?.range;
        self.counters.probes += 1;
        let new = self.new_range(now).ok().filter(|range| range.end <= self.right_edge);
        let segment = match new {
            Some(range) => self.send_new(now, range),
            None => self.resend(now, last.start),
        };
        let resent = new.is_none().then_some(last);
        if !self.is_quic() {
            self.probe = Some(Probe::new(self.board.nxt(), resent));
        }
        self.restart_timers(now);
        Some(segment)
    }

    fn tell_sent(&mut self, now: Instant, bytes: u64) -> congestion::PacketState {
        let in_flight_bytes = self.board.in_flight_bytes();
        self.controller.on_sent(&congestion::Sent { now, bytes, in_flight_bytes })
    }

    /// Accounts for a segment that leaves.
    fn finish(&mut self, now: Instant, range: SeqRange) -> Segment {
        self.counters.segments_sent += 1;
        let sent = *self.board.get(range.start).expect("a segment that leaves is outstanding");
        let number = match &mut self.detector {
            Detector::Rack(rack) => {
                rack.on_sent(&sent);
                0
            }
            Detector::Quic(quic) => quic.on_sent(&sent),
            Detector::Sack(_) | Detector::NewReno(_) | Detector::Linux32(_) => 0,
        };
        if let Some(prr) = &mut self.prr {
            prr.on_sent(range.len());
        }
        let segment = Segment {
            seq: range.start,
            len: range.len(),
            flags: Flags { syn: false, ack: true },
            ts_ms: timestamp_ms(now),
            ts_echo_ms: self.ts_recent_ms,
            number,
            ..Segment::default()
        };
        self.pieces.on_sent(now, range.len());
        let srtt = self.rtt.srtt();
        let bytes = (range.len(), segment.ip_bytes());
        self.pacer.on_sent(now, bytes, self.controller.as_ref(), srtt);
        segment
    }
}
