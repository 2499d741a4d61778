//! What the bond does to the sending half's paths, and what it says to the peer over them.

use super::{Ingress, SendSession, seal};
use crate::drop_reason::DropReason;
use crate::path::control::PathControl;
use crate::path::{Route, SendPath};
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::Instant;
use crate::wire::Kind;
use crate::wire::control::{Frame, PathInfo};
use crate::wire::ecn::Ecn;
use crate::wire::sealed::{HEADER_BYTES, TAG_BYTES};

/// Control datagrams.
impl Ingress {
    /// Sends a control datagram over a path; without frames it is a mark.
    pub fn send_control(&mut self, now: Instant, id: PathId, frames: &[Frame]) {
        if let Some(path) = self.paths.get(id) {
            self.send_control_to(now, id, path.route, frames);
        }
    }

    /// Sends a control datagram of a path over another route than the one in use.
    pub fn send_control_to(&mut self, now: Instant, id: PathId, route: Route, frames: &[Frame]) {
        if self.is_expired(now) {
            self.drops.count(DropReason::ExpiredSession);
            return;
        }
        // Whoever sends what is to be answered asks for the path's control as well.
        let Some(path) = self.paths.get_for_view(id) else { return };
        let numbered = self.numbering.number(path, Kind::Control);
        if frames.iter().any(|frame| matches!(frame, Frame::Probe(_))) {
            path.await_answer(now);
        }
        let prefix = self.numbering.control_prefix(now).to_bytes();
        self.control_body.clear();
        for frame in frames {
            frame.write(&mut self.control_body);
        }
        let length = HEADER_BYTES + prefix.len() + self.control_body.len() + TAG_BYTES;
        path.sent.sent_unacknowledged();
        path.control_packets += 1;
        path.sent_bytes += u64::from(route.ip_bytes(length));
        let out = if frames.iter().any(|frame| matches!(frame, Frame::MtuProbe { .. })) {
            self.out.append_alone(id, route, length)
        } else {
            self.out.append(id, route, Ecn::NotEct, length)
        };
        seal(path.key(), &numbered, &prefix, &self.control_body, out);
    }
}

/// Paths.
impl Ingress {
    /// Adds a path that is to be validated.
    pub(crate) fn add_path(
        &mut self,
        id: PathId,
        route: Route,
        info: PathInfo,
        control: PathControl,
    ) {
        let (session, key) = (self.session.remote, self.session.key_of(id));
        let mtu = self.inner_mtu;
        self.paths.insert(SendPath::new(id, route, info, control, session, key, mtu));
    }

    /// Removes a path. What was in flight on it is sent over another.
    pub fn remove_path(&mut self, now: Instant, id: PathId) {
        self.repair_all_of(now, id);
        self.paths.remove(id);
        self.pins.forget_path(id);
        self.release_pinned(now, id);
        self.picker.on_path_gone(id);
        self.drain(now);
    }

    /// Changes whether a path may carry data. What was in flight on one that may no longer is sent
    /// over another.
    pub fn set_state(&mut self, now: Instant, id: PathId, state: PathState) {
        let fails = matches!(state, PathState::Silent | PathState::Lossy);
        if let Some(path) = self.paths.get_mut(id) {
            path.state = state;
            path.mtu.on_use(matches!(state, PathState::Up | PathState::Lossy));
            if let Some(congestion) = path.congestion.as_mut().filter(|_| fails) {
                congestion.on_silence(now);
            }
        }
        if fails {
            self.repair_all_of(now, id);
        }
        self.release_pinned(now, id);
        self.picker.end_run();
        self.drain(now);
    }

    /// A path leads elsewhere from now on. What was on its way to an address that was left is sent
    /// again: it is lost there, and would fill the window of a controller that begins anew.
    pub fn move_path(&mut self, now: Instant, id: PathId, route: Route) {
        if self.paths.get_mut(id).is_some_and(|path| path.move_to(route)) {
            self.repair_all_of(now, id);
        }
        self.drain(now);
    }

    /// Something authentic arrived on a path.
    pub fn heard(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.paths.get_unseen(id) {
            path.heard_at = now;
        }
    }

    /// A path, to change whatever there is of it.
    pub fn path_mut(&mut self, id: PathId) -> Option<&mut SendPath> {
        self.paths.get_mut(id)
    }

    /// A path, to change what its control has due and no scheduler sees.
    pub fn path_for_control(&mut self, id: PathId) -> Option<&mut SendPath> {
        self.paths.get_for_control(id)
    }

    /// The bond has traffic again: silent paths are probed quickly.
    pub fn hurry_probes(&mut self) {
        self.paths.forget_control_due();
        self.paths.iter_unseen().for_each(|path| path.control.silence.hurry());
    }

    /// How many paths there are.
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// The paths' ids.
    pub fn path_ids(&self) -> Vec<PathId> {
        self.paths.ids().collect()
    }

    /// When a path's control may have something due, which `find` finds.
    pub fn control_due(
        &self,
        now: Instant,
        find: impl FnOnce() -> Option<Instant>,
    ) -> Option<Instant> {
        self.paths.control_due(now, find)
    }

    /// What is known of it without looking.
    pub fn known_control_due(&self) -> Option<Instant> {
        self.paths.known_control_due()
    }

    /// Something changed that all paths' control waits for.
    pub fn forget_control_due(&self) {
        self.paths.forget_control_due();
    }

    /// Data may leave, and a mark after it.
    pub fn data_may_leave(&self, now: Instant) {
        self.paths.data_may_leave(now);
    }
}

/// Sessions.
impl Ingress {
    /// Goes on under a new session; every path keeps its id and gets a new key.
    pub fn enter_session(&mut self, session: SendSession) {
        for path in self.paths.iter_unseen() {
            path.enter_epoch(session.remote, session.key_of(path.id));
        }
        self.session = session;
    }

    /// The session in use.
    pub const fn session(&self) -> &SendSession {
        &self.session
    }

    /// Whether the session is too old to send under.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.session.is_expired(now, self.reject_after)
    }

    /// Wipes the keys of a session that is too old, for a bond that stays without one (spec K-6a).
    pub fn forget_expired_keys(&mut self, now: Instant) {
        if self.is_expired(now) {
            self.session.forget();
            for path in self.paths.iter_unseen() {
                path.forget_key(self.session.key_of(path.id));
            }
        }
    }
}
