//! What falls due, and when.

use super::{ACTIVE_TIME, Bond, BondEvent};
use crate::faults::Fault;
use crate::path::control::{Due, Situation};
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::{Duration, Instant, earlier};
use crate::wire::control::{FRAMES_MAX, Frame};

/// While nothing at all comes from the peer, the owner is told so again after this.
const ALL_SILENT_AGAIN: Duration = Duration::from_secs(2);

impl Bond {
    pub(super) fn situation(&self, now: Instant, id: PathId) -> Situation {
        Situation {
            active: now < self.last_data_at + ACTIVE_TIME,
            last_data_at: self.last_data_at,
            keepalive: self.keepalive,
            others_up: self.others_up(id),
        }
    }

    /// When [`Self::handle_timeout`] is due. A time to come may be too early: asked then, the
    /// answer is a later one.
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        debug_assert!(
            self.ingress
                .known_control_due()
                .zip(self.find_control_due(now))
                .is_none_or(|(known, found)| known <= found),
            "whatever brings a path's timer forward brings the bond's forward"
        );
        let control = self.control_due(now);
        let ingress = self.ingress.poll_timeout();
        earlier(earlier(self.egress.due(), control), earlier(ingress, self.notices_due()))
    }

    /// When a path may have something due.
    fn control_due(&self, now: Instant) -> Option<Instant> {
        self.ingress.control_due(now, || self.find_control_due(now))
    }

    /// When the first of the paths has something due.
    pub(super) fn find_control_due(&self, now: Instant) -> Option<Instant> {
        let paths = self.ingress.paths();
        let dues = paths.filter_map(|path| path.poll_control(&self.situation(now, path.id)));
        earlier(dues.min(), self.mtu_due(now))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.forget_expired_sessions(now);
        self.egress.handle_timeout(now);
        self.send_feedback(now);
        self.send_notices(now);
        if self.control_due(now).is_some_and(|due| due <= now) {
            self.control_paths(now);
        }
        self.notice_silence(now);
        self.ingress.handle_timeout(now);
        if self.ingress.paths().any(|path| path.last_data_at == Some(now)) {
            self.ingress.data_may_leave(now);
        }
    }

    /// Does what the paths have due.
    fn control_paths(&mut self, now: Instant) {
        for id in self.ingress.path_ids() {
            while let Some(due) = self.path_due(now, id) {
                self.act(now, id, due);
            }
        }
        self.mind_mtu(now);
        self.ingress.forget_control_due();
    }

    /// Keys that nothing may be opened or sealed with any more are wiped, also while the bond
    /// sleeps (spec K-6, K-6a).
    fn forget_expired_sessions(&mut self, now: Instant) {
        for index in self.egress.forget_expired(now) {
            self.events.push_back(BondEvent::SessionExpired(index));
        }
        if self.is_asleep() {
            self.ingress.forget_expired_keys(now);
        }
    }

    fn send_feedback(&mut self, now: Instant) {
        for (path, ack) in self.egress.take_acks(now) {
            if let Some(over) = self.feedback_path(path) {
                self.ingress.send_control(now, over, &[Frame::Ack(ack.clone())]);
            }
            // Over a much longer path it comes too late to end the silence: the peer would take
            // the path for dead again and again, and so would this side.
            if self.state(path) == Some(PathState::Silent) {
                self.ingress.send_control(now, path, &[Frame::Ack(ack)]);
            }
        }
        if let Some(reports) = self.egress.take_loss_reports(now)
            && let Some(over) = self.fastest_path()
        {
            let frames: Vec<Frame> = reports.into_iter().map(Frame::LossReport).collect();
            for frames in frames.chunks(FRAMES_MAX) {
                self.ingress.send_control(now, over, frames);
            }
        }
    }

    /// The path itself when it is up, else any that is.
    fn feedback_path(&self, path: PathId) -> Option<PathId> {
        if self.state(path) == Some(PathState::Up) { Some(path) } else { self.fastest_path() }
    }

    pub(super) fn fastest_path(&self) -> Option<PathId> {
        self.ingress
            .paths()
            .filter(|path| path.state == PathState::Up)
            .min_by_key(|path| (path.rtt.smoothed().unwrap_or(Duration::MAX), path.id))
            .map(|path| path.id)
    }

    fn path_due(&mut self, now: Instant, id: PathId) -> Option<Due> {
        let situation = self.situation(now, id);
        let rng = &mut self.rng;
        self.ingress.path_for_control(id)?.control_due(now, &situation, || rng.u64())
    }

    fn act(&mut self, now: Instant, id: PathId, due: Due) {
        match due {
            Due::Challenge(token) => {
                let link = self.ingress.path(id).and_then(|path| path.control.own_link.clone());
                let mut frames = vec![Frame::PathChallenge(token)];
                frames.extend(link.map(Frame::PathInfo));
                self.ingress.send_control(now, id, &frames);
                let path = self.ingress.path(id);
                if path.is_some_and(|path| path.info.metered && path.control.is_ignored()) {
                    self.tell_dead(now, id);
                }
            }
            Due::Probe(probe) => self.ingress.send_control(now, id, &[Frame::Probe(probe)]),
            Due::Mark => self.ingress.send_control(now, id, &[]),
            Due::Silence => self.declare_silent(now, id),
            Due::Healed => self.set_state(now, id, PathState::Up),
            Due::Sleep => self.set_state(now, id, PathState::Asleep),
        }
    }

    /// The peer may be gone for good after a handshake that brought no path up: what was told once
    /// is told again.
    fn notice_silence(&mut self, now: Instant) {
        let any_up = self.ingress.paths().any(|path| path.state == PathState::Up);
        let any_silent = self.ingress.paths().any(|path| path.state == PathState::Silent)
            || (self.ingress.paths().any(|path| path.control.is_ignored())
                && !self.faults.has(Fault::UnvalidatedIsNotSilent));
        let heard_at = self.ingress.paths().map(|path| path.heard_at).max();
        let last = self.all_silent_told_at.map(|told_at| told_at.max(heard_at.unwrap_or(told_at)));
        let again = !self.faults.has(Fault::SilenceToldOnce);
        let is_due = |last: Instant| again && now >= last + ALL_SILENT_AGAIN;
        if any_silent && !any_up && last.is_none_or(is_due) {
            self.all_silent_told_at = Some(now);
            self.events.push_back(BondEvent::AllPathsSilent);
        }
    }
}
