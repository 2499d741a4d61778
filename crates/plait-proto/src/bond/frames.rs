//! What the peer's control frames do.

use super::{Bond, BondEvent, PATHS_MAX, PathIdParity};
use crate::drop_reason::DropReason;
use crate::feedback::Feedback;
use crate::path::Route;
use crate::path::control::PathControl;
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::wire::control::{Ack, FRAMES_MAX, Frame, PathInfo};
use crate::wire::sealed::Header;

impl Bond {
    /// The peer found a path dead; what it finds counts here as well. A sleeping one it wanted to
    /// wake: a NAT in between may have forgotten the path, and only what this side sends opens it.
    fn handle_path_dead(&mut self, now: Instant, id: PathId) {
        match self.state(id) {
            Some(PathState::Up | PathState::Lossy) => self.set_state(now, id, PathState::Silent),
            Some(PathState::Asleep) => self.wake(now, id),
            _ => {}
        }
    }

    pub(super) fn handle_control(
        &mut self,
        now: Instant,
        header: &Header,
        route: Route,
        frames: Vec<Frame>,
    ) -> Result<(), DropReason> {
        let id = header.path;
        let asked = frames.iter().filter(|frame| frame.asks()).count();
        let mut replies = Vec::with_capacity(asked);
        if self.ingress.path(id).is_none() {
            let joined = self.join(now, header, route);
            // What is refused leaves nothing behind.
            replies.push(joined.inspect_err(|_| self.egress.remove_path(id))?);
        }
        let mut reports = Vec::new();
        let any_ack = frames.iter().any(|frame| matches!(frame, Frame::Ack(_)));
        for frame in frames {
            match frame {
                Frame::PathChallenge(token) => {
                    replies.push(Frame::PathResponse(token));
                    // Once it has the answer the peer may send data at any moment.
                    self.egress.set_live(now, id, true);
                    if self.state(id) == Some(PathState::Asleep) {
                        self.wake(now, id);
                    }
                }
                Frame::PathResponse(token) => self.handle_response(now, id, route, token),
                Frame::PathInfo(info) => self.learn_link(id, info),
                Frame::Probe(probe) => {
                    replies.push(Frame::ProbeEcho(probe));
                    self.egress.set_live(now, id, true);
                }
                Frame::ProbeEcho(probe) => {
                    let path = self.ingress.path_for_control(id);
                    let rtt = path.and_then(|path| path.control.echo(now, probe));
                    self.handle_echo(now, id, rtt);
                }
                Frame::PathDead(dead) => self.handle_path_dead(now, dead),
                Frame::Ack(ack) => self.handle_ack(now, ack),
                Frame::LossReport(report) => reports.push(report),
                Frame::Close => self.events.push_back(BondEvent::Closed),
                Frame::PathClose(closed) => self.handle_path_close(now, closed),
                Frame::MtuProbe { id: probe, .. } => replies.push(Frame::MtuEcho(probe)),
                Frame::MtuEcho(probe) => self.handle_mtu_echo(now, id, probe),
                Frame::Discards(discards) => {
                    self.peer_discards = Some((now, discards));
                    self.events.push_back(BondEvent::Discarding);
                }
                Frame::Release(release) => self.peer_release = Some(release),
            }
        }
        if any_ack {
            self.ingress.after_feedback(now);
        }
        if !reports.is_empty() {
            self.ingress.handle_feedback(now, Feedback::LossReports(reports));
        }
        for replies in replies.chunks(FRAMES_MAX) {
            self.ingress.send_control(now, id, replies);
        }
        Ok(())
    }

    /// The peer opened a path: it is asked to answer from where it sent.
    fn join(&mut self, now: Instant, header: &Header, route: Route) -> Result<Frame, DropReason> {
        let id = header.path;
        if !self.ids.may_join(id, header.session == self.session) {
            self.refuse_closed_path(now, id);
            return Err(DropReason::ClosedPath);
        }
        if self.ingress.path_count() >= PATHS_MAX && !self.make_room(now) {
            return Err(DropReason::TooManyPaths);
        }
        if let Some(own) = self.path_over(&route).filter(|own| self.is_own(*own)) {
            // Both sides opened a path over the same link: the side of the even ids keeps its own.
            if self.parity == PathIdParity::Even {
                return Err(DropReason::RepeatedPath);
            }
            self.remove_path(now, own);
        }
        let control = PathControl::new(now, None, self.rng.u64());
        let challenge = Frame::PathChallenge(control.token());
        self.ids.note(id);
        self.notices.forget(id);
        self.ingress.add_path(id, route, PathInfo::default(), control);
        Ok(challenge)
    }

    pub(super) fn is_own(&self, id: PathId) -> bool {
        self.ingress.path(id).is_some_and(|path| path.control.own_link.is_some())
    }

    fn handle_response(&mut self, now: Instant, id: PathId, route: Route, token: u64) {
        if self.confirm_route(now, id, token, &route) {
            return;
        }
        let path = self.ingress.path_for_control(id);
        let rtt = path.and_then(|path| path.control.validate(now, token));
        if rtt.is_some() {
            self.take_rtt(now, id, rtt);
            self.settle(id);
            self.set_state(now, id, PathState::Up);
        }
    }

    /// The owner of a link describes it; nobody else may.
    fn learn_link(&mut self, id: PathId, info: PathInfo) {
        if !self.is_own(id)
            && let Some(path) = self.ingress.path_mut(id)
        {
            path.info = info;
        }
    }

    pub(super) fn handle_ack(&mut self, now: Instant, ack: Ack) {
        let id = PathId((ack.index & 0xff) as u8);
        let outcome = self.ingress.handle_feedback(now, Feedback::Ack(ack));
        let Some(path) = self.ingress.path_mut(id) else { return };
        if outcome.is_news {
            path.answered(now);
        }
        self.egress.set_rtt(id, &path.rtt);
        let loss = &mut path.control.loss;
        loss.record(now, &path.rtt, &outcome);
        path.loss_permille = (loss.ratio() * 1000.0) as u16;
        let is_lossy = loss.is_lossy(path.congestion.is_some());
        if is_lossy && path.state == PathState::Up && self.leaves_out_lossy && self.others_up(id) {
            self.set_state(now, id, PathState::Lossy);
        }
    }

    fn handle_echo(&mut self, now: Instant, id: PathId, rtt: Option<Duration>) {
        if rtt.is_none() {
            return;
        }
        self.take_rtt(now, id, rtt);
        self.settle(id);
        if let Some(path) = self.ingress.path_for_control(id) {
            path.control.loss_check.answered();
        }
        self.path_answered(now, id);
    }
}
