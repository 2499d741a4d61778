//! Logs events, with the names that people know.

use std::collections::BTreeMap;

use log::Level;
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

    /// Logs an event, with the link's name and the peer in fields of their own.
    pub(super) fn tell(&self, event: &Event) {
        match event {
            Event::BondUp(peer) => {
                let peer = short(peer);
                log::info!(plait_peer = peer; "bond with {peer} is made");
            }
            Event::BondDown(peer) => {
                let peer = short(peer);
                log::warn!(plait_peer = peer; "bond with {peer} is gone");
            }
            Event::BondStuck(peer) => {
                let peer = short(peer);
                log::warn!(
                    plait_peer = peer;
                    "bond with {peer} delivers next to nothing: it is made anew"
                );
            }
            Event::InnerMtu(peer, mtu) => {
                let peer = short(peer);
                log::info!(
                    plait_peer = peer;
                    "bond with {peer} carries inner packets of up to {mtu} bytes"
                );
            }
            Event::PathUp(peer, id) => {
                self.tell_of_path(Level::Info, peer, *id, "carries data");
            }
            Event::PathSilent(peer, id) => {
                let what = "is silent: left out, and probed until it answers";
                self.tell_of_path(Level::Warn, peer, *id, what);
            }
            Event::PathLossy(peer, id) => {
                let what = "loses too much: left out, and probed until nothing is lost";
                self.tell_of_path(Level::Warn, peer, *id, what);
            }
            Event::PathClosed(peer, id) => {
                self.tell_of_path(Level::Info, peer, *id, "was removed by the peer");
            }
            Event::PathMoved(peer, id, remote) => {
                let what = format!("follows the peer to {remote}");
                self.tell_of_path(Level::Info, peer, *id, &what);
            }
        }
    }

    fn tell_of_path(&self, level: Level, peer: &PublicKey, id: PathId, what: &str) {
        let name = self.names.get(&(*peer, id)).map_or("", String::as_str);
        let peer = short(peer);
        log::log!(
            level,
            plait_link = name,
            plait_peer = peer;
            "path {name} ({id}) to {peer} {what}"
        );
    }
}
