//! A bond that the side without links began: it calls over a route on which the peer was reached
//! before, and the peer, whose link that is, describes the path (spec P-11).

use super::{Bond, PATHS_MAX};
use crate::path::control::PathControl;
use crate::path::{Route, SendPath};
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::Instant;
use crate::wire::control::{Frame, PathInfo};

impl Bond {
    /// Opens a path that the peer is to describe, unless there is one over this route.
    pub fn call(&mut self, now: Instant, route: Route) {
        if self.path_over(&route).is_some() {
            return;
        }
        if self.ingress.path_count() >= PATHS_MAX {
            return;
        }
        let Some(id) = self.ids.allocate() else { return };
        self.notices.forget(id);
        let control = PathControl::new(now, None, self.rng.u64());
        let challenge = Frame::PathChallenge(control.token());
        self.ingress.add_path(id, route, PathInfo::default(), control);
        self.ingress.send_control(now, id, &[challenge]);
    }

    /// A path exists over a link that this side would open one on. If the peer opened it without a
    /// description, this side gives one, with a challenge of its own: it is repeated, description
    /// and all, until the peer has answered.
    pub(super) fn describe_called_path(&mut self, now: Instant, id: PathId, link: PathInfo) {
        let waits_for_words =
            |path: &SendPath| path.info == PathInfo::default() && !path.control.validated;
        if self.is_own(id) || !self.ingress.path(id).is_some_and(waits_for_words) {
            return;
        }
        let control = PathControl::new(now, Some(link.clone()), self.rng.u64());
        let frames = [Frame::PathChallenge(control.token()), Frame::PathInfo(link.clone())];
        if let Some(path) = self.ingress.path_mut(id) {
            path.info = link;
            path.control = control;
        }
        self.ingress.send_control(now, id, &frames);
    }

    /// Routes of the paths that the peer opened or described and that answered, best first.
    pub fn peer_routes(&self) -> impl Iterator<Item = Route> + '_ {
        let of_peer = |id: PathId| !self.is_own(id);
        let answered = move |up: bool| {
            self.ingress
                .paths()
                .filter(move |path| of_peer(path.id) && path.state != PathState::Validating)
                .filter(move |path| (path.state == PathState::Up) == up)
                .map(|path| path.route)
        };
        answered(true).chain(answered(false))
    }

    /// The path with the shortest round-trip time, when the bond carries no traffic: enough for
    /// what is not urgent.
    pub(super) fn idle_path(&self, now: Instant) -> Option<PathId> {
        let idle = now >= self.last_data_at + super::ACTIVE_TIME;
        self.fastest_path().filter(|_| idle)
    }

    /// The route of the one path over which an idle bond is renewed.
    pub fn idle_route(&self, now: Instant) -> Option<Route> {
        self.ingress.path(self.idle_path(now)?).map(|path| path.route)
    }
}
