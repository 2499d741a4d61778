//! The sender's timers.

use plait_proto::congestion::Phase;
use plait_proto::time::Instant;

use super::{Detector, Handshake, TcpSender};
use crate::tcp::{quic, tail_loss};

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// When to retransmit without any acknowledgement.
    pub(super) rto: Option<Instant>,
    /// When to send a tail loss probe; earlier than `rto`.
    pub(super) probe: Option<Instant>,
    /// When to check again for late segments that are not yet overdue (RACK).
    pub(super) reorder: Option<Instant>,
}

impl Timers {
    pub(super) fn stop_all(&mut self) {
        *self = Self::default();
    }
}

impl TcpSender {
    /// When to call [`TcpSender::handle_timeout`] and then [`TcpSender::poll_transmit`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let timers = [self.timers.rto, self.timers.probe, self.timers.reorder, self.idle_until];
        timers.into_iter().flatten().min()
    }

    /// When the retransmission timer fires; `None` if it has fired since data was last
    /// acknowledged, or does not run.
    pub fn first_timeout(&self) -> Option<Instant> {
        self.timers.rto.filter(|_| !self.rtt.is_backed_off())
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |timer: Option<Instant>| timer.is_some_and(|at| at <= now);
        if is_due(self.timers.reorder) {
            self.timers.reorder = None;
            self.on_reorder_timeout(now);
        }
        if is_due(self.timers.probe) {
            self.timers.probe = None;
            self.probe_due = true;
            if self.is_quic() {
                self.rtt.back_off();
            }
        } else if is_due(self.timers.rto) {
            self.timers.stop_all();
            self.on_rto(now);
        }
        if is_due(self.idle_until) {
            self.idle_until = None;
        }
        self.record(now);
    }

    /// Restarts the retransmission timer, or stops it when nothing is outstanding (RFC 6298
    /// sections 5.2 and 5.3), and schedules a probe before it where allowed.
    pub(super) fn restart_timers(&mut self, now: Instant) {
        self.timers.rto = None;
        self.timers.probe = None;
        if self.board.is_empty() {
            return;
        }
        if self.is_quic() {
            self.timers.probe = Some(now + self.rtt.backed_off(quic::probe_timeout));
            return;
        }
        let rto = now + self.rtt.rto();
        self.timers.rto = Some(rto);
        if self.may_probe() {
            let timeout = tail_loss::timeout(self.rtt.srtt(), self.board.len());
            self.timers.probe = Some((now + timeout).min(rto));
        }
    }

    /// RFC 8985 section 7.2: not during loss recovery or while something has arrived beyond a gap.
    fn may_probe(&self) -> bool {
        matches!(self.detector, Detector::Rack(_))
            && self.phase == Phase::Open
            && self.probe.is_none()
            && self.board.sacked_segments() == 0
            && !self.rtt.is_backed_off()
    }

    fn on_rto(&mut self, now: Instant) {
        if let Handshake::Sent { .. } = self.handshake {
            self.counters.rtos += 1;
            self.rtt.back_off();
            return;
        }
        if !self.board.is_empty() {
            self.enter_rto_recovery(now);
        }
    }
}
