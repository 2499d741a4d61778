//! The log of what comes and goes, with the names that people know.

use std::collections::BTreeMap;

use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::seq::PathId;
use plait_proto::session::PublicKey;

use super::reach::short;

/// Knows the names of paths, also of those that are gone when their end is told.
#[derive(Debug, Default)]
pub(super) struct Teller {
    names: BTreeMap<(PublicKey, PathId), String>,
}

impl Teller {
    /// Logs an event.
    pub(super) fn tell(&mut self, endpoint: &Endpoint, event: &Event) {
        match event {
            Event::BondUp(peer) => log::info!("bond with {} is made", short(peer)),
            Event::BondDown(peer) => {
                self.names.retain(|(of, _), _| of != peer);
                log::warn!("bond with {} is gone", short(peer));
            }
            Event::BondStuck(peer) => {
                let peer = short(peer);
                log::warn!("bond with {peer} delivers next to nothing: it is made anew");
            }
            Event::PathUp(peer, id) => {
                log::info!("{} carries data", self.path(endpoint, peer, *id));
            }
            Event::PathSilent(peer, id) => {
                let path = self.path(endpoint, peer, *id);
                log::warn!("{path} is silent: left out, and probed until it answers");
            }
            Event::PathLossy(peer, id) => {
                let path = self.path(endpoint, peer, *id);
                log::warn!("{path} loses too much: left out, probed");
            }
            Event::PathClosed(peer, id) => {
                log::info!("{} was removed by the peer", self.path(endpoint, peer, *id));
                self.names.remove(&(*peer, *id));
            }
            Event::PathMoved(peer, id, remote) => {
                log::info!("{} follows the peer to {remote}", self.path(endpoint, peer, *id));
            }
            Event::InnerMtu(peer, mtu) => {
                let peer = short(peer);
                log::info!("bond with {peer} carries inner packets of up to {mtu} bytes");
            }
        }
    }

    fn path(&mut self, endpoint: &Endpoint, peer: &PublicKey, id: PathId) -> String {
        if let Some(name) = endpoint.path_name(peer, id) {
            self.names.insert((*peer, id), name.to_owned());
        }
        let name = self.names.get(&(*peer, id)).map_or("", String::as_str);
        format!("path {name} ({id}) to {}", short(peer))
    }
}
