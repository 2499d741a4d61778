//! Paths as links come and go, and as the peer changes its address.

use core::net::SocketAddr;

use super::notices::Notice;
use super::{Bond, BondEvent};
use crate::config::SocketId;
use crate::path::Route;
use crate::path::route_check::RouteCheck;
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::Instant;
use crate::wire::control::{FRAMES_MAX, Frame, PathInfo, Token};
use crate::wire::sealed::Header;

/// Whether the peer answers where a path leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answers {
    /// It does.
    Yes,
    /// It was asked and does not.
    No,
    /// Nobody asks it now, or it begins to answer.
    Unsure,
}

impl Bond {
    /// The paths that this side opened: where each leads, and whether the peer answers there.
    pub(crate) fn own_paths(&self) -> Vec<(Route, Answers)> {
        let own = self.ingress.paths().filter(|path| path.control.own_link.is_some());
        own.map(|path| {
            let answers = match path.state {
                PathState::Up | PathState::Lossy => Answers::Yes,
                PathState::Asleep => Answers::Unsure,
                PathState::Silent if path.control.silence.is_ending() => Answers::Unsure,
                PathState::Silent | PathState::Validating => Answers::No,
            };
            (path.route, answers)
        })
        .collect()
    }

    /// Leads this side's path over a socket to another address of the peer, which is asked there at
    /// once, as when the path was opened.
    pub(crate) fn lead_own_path(&mut self, now: Instant, socket: SocketId, remote: SocketAddr) {
        let own = self.paths_over(socket).into_iter().find(|id| self.is_own(*id));
        let Some(path) = own.and_then(|id| self.ingress.path(id)) else { return };
        let (id, route) = (path.id, Route { remote, ..path.route });
        let link = path.control.own_link.clone();
        self.ingress.move_path(now, id, route);
        let token = self.rng.u64();
        if let Some(path) = self.ingress.path_for_control(id) {
            path.control.check_again(now, token);
        }
        self.set_state(now, id, PathState::Validating);
        let mut frames = vec![Frame::PathChallenge(token)];
        frames.extend(link.map(Frame::PathInfo));
        self.ingress.send_control(now, id, &frames);
    }

    /// Removes the paths over a socket that is about to close, and tells the peer.
    pub fn remove_paths_over(&mut self, now: Instant, socket: SocketId) {
        for id in self.paths_over(socket) {
            self.remove_path(now, id);
            self.notices.add(now, Notice::Closed(id));
        }
    }

    /// Describes the link below a socket anew, and tells the peer.
    pub fn update_link(&mut self, now: Instant, socket: SocketId, link: &PathInfo) {
        for id in self.paths_over(socket) {
            let known = self.ingress.path(id).and_then(|path| path.control.own_link.as_ref());
            if known.is_none_or(|known| known == link) {
                continue;
            }
            if let Some(path) = self.ingress.path_mut(id) {
                path.control.own_link = Some(link.clone());
                path.info = link.clone();
            }
            self.notices.add(now, Notice::Changed(id));
        }
        self.send_notices(now);
    }

    /// Sends something over the paths of a socket whose own address may have changed, so that the
    /// peer follows.
    pub fn probe_paths_over(&mut self, now: Instant, socket: SocketId) {
        for id in self.paths_over(socket) {
            self.probe(now, id);
        }
    }

    fn paths_over(&self, socket: SocketId) -> Vec<PathId> {
        let over = self.ingress.paths().filter(|path| path.route.socket == socket);
        over.map(|path| path.id).collect()
    }

    /// Whether this side opened a path over a socket. The peer may have been followed to another
    /// address since.
    pub fn has_own_path_over(&self, socket: SocketId) -> bool {
        self.paths_over(socket).into_iter().any(|id| self.is_own(id))
    }

    /// Whether the session should be renewed for want of path ids.
    pub fn runs_short_of_path_ids(&self) -> bool {
        self.ids.run_short()
    }

    /// The one place where a path leaves the bond. What is on its way on it goes over another.
    pub(super) fn remove_path(&mut self, now: Instant, id: PathId) {
        self.notices.forget(id);
        self.ingress.remove_path(now, id);
        self.egress.remove_path(id);
    }

    /// The peer removed a path (spec P-8). Its own challenge may still be on its way here: the id
    /// opens nothing any more.
    pub(super) fn handle_path_close(&mut self, now: Instant, id: PathId) {
        self.ids.note(id);
        if self.ingress.path(id).is_some() {
            self.remove_path(now, id);
            self.events.push_back(BondEvent::PathClosed(id));
        }
    }

    /// Something came on a path that is gone: the peer does not know.
    pub(super) fn refuse_closed_path(&mut self, now: Instant, id: PathId) {
        if !self.notices.holds(Notice::Closed(id)) {
            self.notices.add(now, Notice::Closed(id));
        }
    }

    /// A path of the peer that does not work makes room for one that may.
    pub(super) fn make_room(&mut self, now: Instant) -> bool {
        let idle = |id: &PathId| !self.is_own(*id) && self.state(*id) != Some(PathState::Up);
        let Some(id) = self.ingress.path_ids().into_iter().find(idle) else { return false };
        self.remove_path(now, id);
        self.notices.add(now, Notice::Closed(id));
        true
    }

    /// Asks the peer at the address from which a path's newest datagram came, if the path leads
    /// elsewhere (spec P-9).
    pub(super) fn check_route(&mut self, now: Instant, header: &Header, seen: Route) {
        let id = header.path;
        let Some(path) = self.ingress.path(id) else { return };
        let other = RouteCheck::other_route(&path.route, &seen, self.is_own(id));
        let Some(route) = other.filter(|_| self.egress.is_newest(now, header)) else { return };
        let rtt = path.rtt.smoothed();
        let Some(path) = self.ingress.path_for_control(id) else { return };
        let token = path.route_check.note(now, route, rtt, || self.rng.u64());
        if let Some(token) = token {
            self.ingress.send_control_to(now, id, route, &[Frame::PathChallenge(token)]);
        }
    }

    /// The peer answered: if it was asked at another address and answers from there, the path leads
    /// there from now on.
    pub(super) fn confirm_route(
        &mut self,
        now: Instant,
        id: PathId,
        token: Token,
        seen: &Route,
    ) -> bool {
        let path = self.ingress.path_for_control(id);
        let Some(route) = path.and_then(|path| path.route_check.confirm(token, seen)) else {
            return false;
        };
        self.ingress.move_path(now, id, route);
        self.events.push_back(BondEvent::PathMoved(id, route.remote));
        true
    }

    /// When there is something to tell, and a path over which to do so.
    pub(super) fn notices_due(&self) -> Option<Instant> {
        self.notices.poll_timeout().filter(|_| self.is_up())
    }

    /// Tells the peer what is due.
    pub(crate) fn send_notices(&mut self, now: Instant) {
        if self.notices_due().is_none_or(|due| due > now) {
            return;
        }
        let mut frames = Vec::new();
        for notice in self.notices.due(now) {
            match notice {
                Notice::Closed(id) => frames.push(Frame::PathClose(id)),
                Notice::Release => frames.extend(self.release.map(Frame::Release)),
                Notice::Changed(id) => {
                    let link = self.ingress.path(id).and_then(|path| path.control.own_link.clone());
                    let info: Vec<Frame> = link.map(Frame::PathInfo).into_iter().collect();
                    self.ingress.send_control(now, id, &info);
                }
            }
        }
        if let Some(over) = self.fastest_path().filter(|_| !frames.is_empty()) {
            for frames in frames.chunks(FRAMES_MAX) {
                self.ingress.send_control(now, over, frames);
            }
        }
    }
}
