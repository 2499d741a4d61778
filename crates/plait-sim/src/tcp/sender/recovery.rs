//! The states of loss recovery: open, fast recovery, and recovery after a timeout.

use plait_proto::congestion::{Episode, Loss, Phase, Rto, Spurious};
use plait_proto::time::Instant;

use super::{Detector, TcpSender};
use crate::tcp::prr::{Progress, Prr};
use crate::tcp::rack::Detection;
use crate::tcp::segment::Segment;
use crate::tcp::tail_loss::Verdict;
use crate::tcp::undo::Undo;

/// How a loss recovery proved spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mistake {
    /// The original filled the gap.
    LateOriginal,
    /// The original filled the gap, while retransmissions are under way for others.
    OthersUnderWay,
    /// All retransmissions were reported as duplicates.
    AllDuplicates,
}

/// What an acknowledgement says of losses where SACK blocks are counted (Linux: `do_lost`).
#[derive(Clone, Copy, Debug)]
pub(super) struct LossHint {
    /// It only reports that something arrived.
    pub(super) is_duplicate: bool,
    /// It counts as one if what was selectively acknowledged reaches far.
    pub(super) may_be_far: bool,
    /// Bytes outstanding before it.
    pub(super) flight_before: u64,
}

impl TcpSender {
    /// Marks lost segments; returns whether any was marked. `advanced` says whether the cumulative
    /// acknowledgement did.
    pub(super) fn detect_losses(&mut self, now: Instant, advanced: bool) -> bool {
        let detection = self.detection(now);
        match &mut self.detector {
            // By `find_losses_by_sack`.
            Detector::Sack(_) => false,
            Detector::Linux32(_) => self.detect_as_linux_3_2(now),
            Detector::NewReno(reno) => {
                // RFC 6582: the third duplicate, then each partial acknowledgement.
                let is_lost = match self.phase {
                    Phase::Open => reno.shows_loss(),
                    Phase::FastRecovery => advanced,
                    Phase::RtoRecovery => false,
                };
                let una = self.board.una();
                let is_new = self.board.get(una).is_some_and(|first| !first.is_lost);
                if is_lost && is_new {
                    self.board.mark_lost(una);
                }
                is_lost && is_new
            }
            Detector::Quic(quic) => {
                let (marked, next_at) = quic.detect(&mut self.board, now, detection.srtt);
                self.timers.reorder = next_at;
                marked
            }
            Detector::Rack(rack) => {
                let (marked, next_at) = rack.detect(&mut self.board, &detection);
                self.timers.reorder = next_at;
                marked
            }
        }
    }

    /// Finds losses by counting what was selectively acknowledged, and begins a recovery. Linux
    /// looks for them only where an acknowledgement suggests some, and recovers even without.
    pub(super) fn find_losses_by_sack(&mut self, now: Instant, hint: LossHint) -> bool {
        let Detector::Sack(reordering) = &self.detector else { return false };
        let threshold = reordering.threshold_segments();
        let sacked = self.board.sacked_segments();
        let begins = self.phase == Phase::Open
            && (self.board.has_lost() || sacked + 1 > threshold)
            && !self.board.is_empty();
        if begins {
            self.enter_fast_recovery(now, hint.flight_before);
        }
        let reach = self.board.una() + (threshold + 1) * self.config.segment_bytes;
        let is_far = self.board.highest_sacked() > reach;
        let looks = hint.is_duplicate || (hint.may_be_far && is_far);
        if self.phase != Phase::FastRecovery || !looks {
            return false;
        }
        if sacked >= threshold { self.board.mark_lost_by_sack(threshold) } else { false }
    }

    fn detect_as_linux_3_2(&mut self, now: Instant) -> bool {
        let may_send = self.next_range(now).is_ok();
        let Detector::Linux32(linux) = &self.detector else { return false };
        let board = &mut self.board;
        let threshold = linux.threshold_segments();
        let marked = if linux.is_fack() {
            board.mark_lost_by_fack(threshold)
        } else {
            board.mark_lost_by_sack(threshold)
        };
        let gives_up = !may_send
            && self.phase == Phase::Open
            && linux.gives_up_small_flight(board.len() as u64, board.sacked_segments());
        let is_new = gives_up && board.get(board.una()).is_some_and(|first| !first.is_lost);
        if is_new {
            board.mark_lost(board.una());
        }
        marked || is_new
    }

    pub(super) fn detection(&self, now: Instant) -> Detection {
        Detection {
            now,
            min_rtt: self.rtt.min_rtt(),
            srtt: self.rtt.srtt(),
            in_recovery: self.phase != Phase::Open,
        }
    }

    /// Whether the losses found require a new reaction of the controller.
    pub(super) fn begins_episode(&mut self) -> bool {
        match &mut self.detector {
            Detector::Quic(quic) => quic.begin_event(),
            Detector::Sack(_) => false,
            _ => self.phase == Phase::Open && self.board.has_lost(),
        }
    }

    /// Whether the current episode is over.
    pub(super) fn is_recovered(&self) -> bool {
        match &self.detector {
            Detector::Quic(quic) => quic.is_recovered(),
            _ => self.board.una() >= self.high_seq,
        }
    }

    /// Whether losses are found as QUIC does.
    pub(crate) fn is_quic(&self) -> bool {
        matches!(self.detector, Detector::Quic(_))
    }

    pub(super) fn on_reorder_timeout(&mut self, now: Instant) {
        self.detect_losses(now, false);
        if self.begins_episode() {
            self.enter_fast_recovery(now, self.board.flight_bytes());
            let in_flight_bytes = self.board.in_flight_bytes();
            if let Some(prr) = &mut self.prr {
                // As if a segment had been delivered (Linux: `tcp_rack_reo_timeout`).
                let delivered_bytes = self.config.segment_bytes;
                prr.on_ack(Progress { delivered_bytes, in_flight_bytes, is_safe: false });
            }
        }
        if self.timers.rto.is_none() || self.timers.probe.is_some() {
            self.restart_timers(now);
        }
    }

    /// `flight_bytes` is what was outstanding before the acknowledgement that showed the loss.
    pub(super) fn enter_fast_recovery(&mut self, now: Instant, flight_bytes: u64) {
        self.counters.fast_recoveries += 1;
        self.phase = Phase::FastRecovery;
        self.high_seq = self.board.nxt();
        if let Detector::NewReno(reno) = &mut self.detector {
            reno.on_recovery(self.high_seq);
        }
        self.watch_for_mistake();
        self.probe = None;
        if !self.is_quic() {
            self.timers.probe = None;
        }
        let prior = self.controller.window();
        self.controller.on_loss(&Loss { now, flight_bytes });
        if !self.controller.meters_recovery() && !self.is_quic() {
            let target = self.controller.window();
            self.prr = Some(Prr::new(target, prior, self.config.segment_bytes));
        }
    }

    pub(super) fn enter_rto_recovery(&mut self, now: Instant) {
        // A timeout within an episode, or without an acknowledgement since the timeout before it,
        // tells the controller nothing new.
        let is_new = self.phase == Phase::Open
            || (self.phase == Phase::RtoRecovery && !self.rtt.is_backed_off());
        let flight_bytes = self.board.flight_bytes();
        let detection = self.detection(now);
        let lost = match &mut self.detector {
            Detector::Sack(reordering) => {
                if self.phase == Phase::Open {
                    reordering.on_timeout_in_disorder(self.board.sacked_segments());
                }
                self.board.missing()
            }
            Detector::Linux32(linux) => {
                if is_new {
                    linux.on_timeout();
                }
                self.board.missing()
            }
            Detector::NewReno(reno) => {
                if self.phase == Phase::Open {
                    reno.on_timeout_in_disorder();
                }
                reno.forget_duplicates();
                reno.on_recovery(self.board.nxt());
                self.board.presume_arrived(0);
                self.board.missing()
            }
            Detector::Quic(_) => unreachable!("QUIC probes and has no retransmission timeout"),
            Detector::Rack(rack) => rack.overdue_at_timeout(&self.board, &detection),
        };
        lost.into_iter().for_each(|seq| self.board.mark_lost(seq));
        self.counters.rtos += 1;
        self.resends_nothing = false;
        self.phase = Phase::RtoRecovery;
        self.high_seq = self.board.nxt();
        self.prr = None;
        self.probe = None;
        self.probe_due = false;
        if is_new {
            self.watch_for_mistake();
        }
        self.controller.on_rto(&Rto {
            now,
            flight_bytes,
            in_flight_bytes: self.board.in_flight_bytes(),
            episode: if is_new { Episode::New } else { Episode::Continued },
        });
        self.rtt.back_off();
        self.restart_timers(now);
    }

    fn watch_for_mistake(&mut self) {
        if self.is_quic() {
            return;
        }
        let (una, under_way) = (self.board.una(), self.board.resent_segments());
        self.undo = Some(Undo::new(una, under_way));
    }

    /// Undoes the latest episode if it was spurious and the configuration allows it. `advanced`
    /// says whether the cumulative acknowledgement did.
    pub(super) fn try_undo(
        &mut self,
        now: Instant,
        segment: &Segment,
        advanced: bool,
    ) -> Option<Mistake> {
        let undo = self.undo.as_ref()?;
        let is_repairing = self.phase != Phase::Open;
        let is_of_original = self.resending_since_ms.is_none_or(|since| segment.ts_echo_ms < since);
        let mistake = if advanced && is_repairing && is_of_original {
            Mistake::LateOriginal
        } else if undo.all_duplicates() {
            Mistake::AllDuplicates
        } else {
            return None;
        };
        if mistake == Mistake::LateOriginal && self.waits_for_others() {
            return Some(Mistake::OthersUnderWay);
        }
        self.undo = None;
        if !self.config.undo {
            return Some(mistake);
        }
        self.counters.spurious_undos += 1;
        self.controller.on_spurious(&Spurious { now, window_bytes: self.window_bytes() });
        if self.phase == Phase::RtoRecovery
            && let Detector::Linux32(linux) = &mut self.detector
        {
            // `tcp_frto_response` 0: a spurious timeout still counts as congestion.
            linux.on_spurious_timeout();
            self.controller.on_loss(&Loss { now, flight_bytes: self.board.flight_bytes() });
        }
        if is_repairing {
            self.board.unmark_lost();
            if !self.is_recovered() {
                self.forget_resending();
            }
            self.end_recovery();
        }
        Some(mistake)
    }

    /// What is sent again next is the first, unless some that was is still under way, or awaited.
    pub(super) fn forget_resending(&mut self) {
        let first = self.board.get(self.board.una());
        let first_was_resent = first.is_some_and(|first| first.transmissions > 1);
        if self.board.resent_segments() == 0 && !first_was_resent {
            self.resending_since_ms = None;
        }
    }

    /// Linux does not undo by the echo while other retransmissions are under way: its counters tell
    /// two to three late originals (`TCPTSReorder`) for each recovery undone.
    fn waits_for_others(&self) -> bool {
        let counts_duplicates = !matches!(self.detector, Detector::Rack(_));
        let is_early = self.phase == Phase::FastRecovery && !self.is_recovered();
        self.config.undo && counts_duplicates && is_early && self.board.resent_segments() > 0
    }

    pub(super) fn end_recovery(&mut self) {
        self.phase = Phase::Open;
        self.prr = None;
        match &mut self.detector {
            Detector::Sack(_) | Detector::Quic(_) | Detector::Linux32(_) => {}
            // An undone recovery leaves duplicates beyond the next gap: they may begin another.
            Detector::NewReno(reno) => {
                if self.board.una() >= self.high_seq {
                    reno.forget_duplicates();
                    self.board.presume_arrived(0);
                }
            }
            Detector::Rack(rack) => rack.on_recovery_end(),
        }
    }

    /// Judges the probe that is out, if any (RFC 8985 section 7.4).
    pub(super) fn judge_probe(
        &mut self,
        now: Instant,
        segment: &Segment,
        advanced: bool,
        flight_bytes: u64,
    ) {
        let Some(probe) = self.probe else { return };
        let is_plain_dup = !advanced
            && segment.sack.dsack().is_none()
            && segment.sack.blocks().is_empty()
            && segment.ack == self.board.una();
        let verdict = probe.judge(segment.ack, segment.sack.dsack(), is_plain_dup);
        if verdict == Verdict::Repaired && self.phase == Phase::Open {
            self.controller.on_loss(&Loss { now, flight_bytes });
        }
        if verdict != Verdict::Open {
            self.probe = None;
        }
    }
}
