//! Logs events, with the names that people know.

use std::collections::BTreeMap;

use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::seq::PathId;
use plait_proto::session::PublicKey;
use plait_toml::hook::HookEvent;

use super::hooks::News;
use super::reach::short;

/// Knows the names of paths, even of paths that are gone when their end is logged.
#[derive(Debug, Default)]
pub(super) struct Teller {
    names: BTreeMap<(PublicKey, PathId), String>,
}

impl Teller {
    /// Notes the name of the path that an event is about.
    pub(super) fn learn(&mut self, endpoint: &Endpoint, event: &Event) {
        if let Event::PathUp(peer, id)
        | Event::PathSilent(peer, id)
        | Event::PathLossy(peer, id)
        | Event::PathClosed(peer, id)
        | Event::PathMoved(peer, id, _) = event
            && let Some(name) = endpoint.path_name(peer, *id)
        {
            self.names.insert((*peer, *id), name.to_owned());
        }
    }

    /// Forgets paths that are gone after an event.
    pub(super) fn forget(&mut self, event: &Event) {
        match event {
            Event::BondDown(peer) => self.names.retain(|(of, _), _| of != peer),
            Event::PathClosed(peer, id) => {
                self.names.remove(&(*peer, *id));
            }
            _ => {}
        }
    }

    /// What hooks are told of an event; `None` when none is for such.
    pub(super) fn news(&self, event: &Event) -> Option<News> {
        let of_path = |event, peer: &PublicKey, id: &PathId, reason: Option<&str>| News {
            event,
            peer: Some(peer.to_string()),
            path: self.names.get(&(*peer, *id)).cloned(),
            reason: reason.map(str::to_owned),
        };
        let of_bond = |event, peer: &PublicKey| News {
            event,
            peer: Some(peer.to_string()),
            path: None,
            reason: None,
        };
        Some(match event {
            Event::PathUp(peer, id) => of_path(HookEvent::PathUp, peer, id, None),
            Event::PathSilent(peer, id) => {
                of_path(HookEvent::PathDown, peer, id, Some("nothing comes back"))
            }
            Event::PathLossy(peer, id) => {
                of_path(HookEvent::PathDown, peer, id, Some("it loses too much"))
            }
            Event::PathClosed(peer, id) => {
                of_path(HookEvent::PathDown, peer, id, Some("the peer removed it"))
            }
            Event::BondUp(peer) => of_bond(HookEvent::BondUp, peer),
            Event::BondDown(peer) => of_bond(HookEvent::BondDown, peer),
            Event::BondStuck(_) | Event::PathMoved(..) | Event::InnerMtu(..) => return None,
        })
    }

    /// Logs an event.
    pub(super) fn tell(&self, event: &Event) {
        match event {
            Event::BondUp(peer) => log::info!("bond with {} is made", short(peer)),
            Event::BondDown(peer) => log::warn!("bond with {} is gone", short(peer)),
            Event::BondStuck(peer) => {
                let peer = short(peer);
                log::warn!("bond with {peer} delivers next to nothing: it is made anew");
            }
            Event::PathUp(peer, id) => log::info!("{} carries data", self.path(peer, *id)),
            Event::PathSilent(peer, id) => {
                let path = self.path(peer, *id);
                log::warn!("{path} is silent: left out, and probed until it answers");
            }
            Event::PathLossy(peer, id) => {
                let path = self.path(peer, *id);
                log::warn!("{path} loses too much: left out, and probed until nothing is lost");
            }
            Event::PathClosed(peer, id) => {
                log::info!("{} was removed by the peer", self.path(peer, *id));
            }
            Event::PathMoved(peer, id, remote) => {
                log::info!("{} follows the peer to {remote}", self.path(peer, *id));
            }
            Event::InnerMtu(peer, mtu) => {
                let peer = short(peer);
                log::info!("bond with {peer} carries inner packets of up to {mtu} bytes");
            }
        }
    }

    fn path(&self, peer: &PublicKey, id: PathId) -> String {
        let name = self.names.get(&(*peer, id)).map_or("", String::as_str);
        format!("path {name} ({id}) to {}", short(peer))
    }
}
