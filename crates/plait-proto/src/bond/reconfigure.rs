//! What changes about a running bond when its owner's configuration does.

use core::net::SocketAddr;

use super::Bond;
use super::notices::Notice;
use crate::config::{BondConfig, LossDetection, SocketId};
use crate::egress::ReceiveSession;
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::wire::handshake::SessionIndex;

impl Bond {
    /// Behaves as `new` says from now on, as `old` before. Sessions, paths and sequence numbers go
    /// on; a packet whose flow changes lanes does not wait for those before it.
    pub fn reconfigure(&mut self, old: &BondConfig, new: &BondConfig) {
        self.ingress.reconfigure(old, new, self.rng.u64());
        self.egress.reconfigure(old, new);
        self.leaves_out_lossy = new.loss_detection == LossDetection::Known;
        self.scheduler = new.scheduler.algorithm.name();
    }

    /// Receives under one more session. The peer gave the attempt before up when it began this one.
    /// Attempts that come to nothing, as with another preshared key, must not push the session in
    /// use out. Gives back the session that is forgotten.
    pub(super) fn accept_session(
        &mut self,
        receive: ReceiveSession,
        initiator: bool,
    ) -> Option<SessionIndex> {
        let abandoned = self.unconfirmed.take().filter(|_| !initiator).map(|(index, _)| index);
        if let Some(index) = abandoned {
            self.egress.remove_session(index);
        }
        self.egress.add_session(receive).or(abandoned)
    }

    /// Idle paths send a datagram this often from now on.
    pub fn set_keepalive(&mut self, keepalive: Duration) {
        self.keepalive = keepalive;
        self.ingress.forget_control_due();
    }

    /// This side's paths over a link.
    pub fn own_paths_over(&self, socket: SocketId) -> impl Iterator<Item = PathId> + '_ {
        let over = self.ingress.paths().filter(move |path| path.route.socket == socket);
        over.map(|path| path.id).filter(|id| self.is_own(*id))
    }

    /// Removes those of this side's paths that lead elsewhere than to one of these addresses, and
    /// tells the peer. Says whether there was any.
    pub fn leave_other_endpoints(&mut self, now: Instant, endpoints: &[SocketAddr]) -> bool {
        let astray = |id: &PathId| {
            self.is_own(*id)
                && self.ingress.path(*id).is_some_and(|p| !endpoints.contains(&p.route.remote))
        };
        let ids: Vec<PathId> = self.ingress.path_ids().into_iter().filter(astray).collect();
        for id in &ids {
            self.remove_path(now, *id);
            self.notices.add(now, Notice::Closed(*id));
        }
        !ids.is_empty()
    }
}
