//! Links that their owner takes out of use for a while, as when a month's quota is spent.

use super::Endpoint;
use super::peer::Peer;
use crate::config::{LinkConfig, SocketId};
use crate::stats::{PathState, PeerStatus};
use crate::time::Instant;

impl Endpoint {
    /// Makes a link stand by, or carry data as any other; peers are told. A standby link carries
    /// data only while no other does. `reason` is what the status says of the link's paths, in
    /// words; `None` when there is nothing to say. Does nothing for a socket without a link.
    pub fn set_standby(
        &mut self,
        now: Instant,
        socket: SocketId,
        standby: bool,
        reason: Option<String>,
    ) {
        let link = self.config.links.iter().find(|link| link.socket == socket);
        let Some(link) = link.map(|link| LinkConfig { standby, ..link.clone() }) else { return };
        match reason {
            Some(reason) => self.standby_reasons.insert(socket, reason),
            None => self.standby_reasons.remove(&socket),
        };
        self.update_link(now, link);
    }

    /// A path that works says why its link stands by; any other says what is wrong with it.
    pub(super) fn tell_standby_reasons(&self, peer: &Peer, told: &mut PeerStatus) {
        let Some(bond) = peer.used_bond() else { return };
        for (socket, reason) in &self.standby_reasons {
            for id in bond.own_paths_over(*socket) {
                let path = told.paths.iter_mut().find(|path| path.id == id.0);
                if let Some(path) = path.filter(|path| path.state == PathState::Up) {
                    path.reason.clone_from(reason);
                }
            }
        }
    }
}
