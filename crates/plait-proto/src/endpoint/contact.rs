//! How far peers are reached, for people and for an owner who looks for them elsewhere.

use core::net::{IpAddr, SocketAddr};

use super::Endpoint;
use super::peer::Peer;
use crate::bond::Bond;
use crate::config::SocketId;
use crate::drop_reason::DropReason;
use crate::path::Route;
use crate::seq::PathId;
use crate::session::PublicKey;
use crate::stats::{AskedStatus, AttemptsStatus, PathState};
use crate::time::Instant;

/// Why a packet for no peer is dropped: what the host tells everybody on a device is no mistake.
pub(super) fn no_peer(destination: IpAddr) -> DropReason {
    let is_for_many = match destination {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_multicast(),
    };
    if is_for_many { DropReason::HostMulticast } else { DropReason::NoPeer }
}

/// How far a peer is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contact {
    /// The peer.
    pub peer: PublicKey,
    /// Whether this side has an address at which it looks for the peer.
    pub is_sought: bool,
    /// Whether a path of the bond carries data, or would if there were any.
    pub is_up: bool,
    /// Whether nothing comes back over a path.
    pub has_silent_path: bool,
}

impl Endpoint {
    /// How far each peer is reached.
    pub fn contacts(&self) -> impl Iterator<Item = Contact> + '_ {
        self.peers.iter().map(|peer| Contact {
            peer: peer.config.public_key,
            is_sought: peer.is_sought(),
            is_up: peer.used_bond().is_some_and(Bond::is_up) || peer.is_asleep(),
            has_silent_path: peer.used_bond().is_some_and(Bond::has_silent_path),
        })
    }

    /// Whether a path of the bond with a peer carries data, or would if there were any.
    pub fn is_reached(&self, peer: &PublicKey) -> bool {
        self.peer(peer).is_some_and(|peer| peer.is_up() || peer.is_asleep())
    }

    /// Attempts to reach a peer, when any are under way.
    pub fn attempts(&self, now: Instant, peer: &PublicKey) -> Option<AttemptsStatus> {
        self.peer(peer).and_then(|peer| self.attempts_of(now, peer))
    }

    /// The addresses at which a peer answers now.
    pub fn remotes_up(&self, peer: &PublicKey) -> Vec<SocketAddr> {
        let bond = self.peer(peer).and_then(Peer::used_bond);
        bond.map(|bond| bond.remotes_up().collect()).unwrap_or_default()
    }

    /// The sockets over which nobody answers although a peer answers over another: their links
    /// lead nowhere.
    pub fn silent_sockets(&self) -> Vec<SocketId> {
        let mut silent = Vec::new();
        let mut answered = Vec::new();
        for bond in self.peers.iter().filter_map(Peer::used_bond) {
            let of = |wanted: PathState| {
                let states = bond.socket_states().filter(move |(_, state)| *state == wanted);
                states.map(|(socket, _)| socket)
            };
            let before = answered.len();
            answered.extend(of(PathState::Up));
            if answered.len() > before {
                silent.extend(of(PathState::Silent));
            }
        }
        silent.retain(|socket| !answered.contains(socket));
        silent
    }

    /// The name of a path's link, as its owner configured it.
    pub fn path_name(&self, peer: &PublicKey, id: PathId) -> Option<&str> {
        self.peer(peer)?.used_bond()?.path_name(id)
    }

    fn peer(&self, key: &PublicKey) -> Option<&Peer> {
        self.places.get(key).map(|at| &self.peers[*at])
    }

    pub(super) fn attempts_of(&self, now: Instant, peer: &Peer) -> Option<AttemptsStatus> {
        let attempts = &peer.attempts;
        let since = attempts.since?;
        let millis = |from: Instant, to: Instant| to.since(from).as_millis() as u64;
        let asked = |route: &Route| AskedStatus {
            link: self.link_name(route),
            remote: route.remote.to_string(),
        };
        Some(AttemptsStatus {
            count: attempts.sent,
            since_ms: millis(since, now),
            last_ms_ago: peer.initiated_at.map_or(0, |last| millis(last, now)),
            next_in_ms: attempts.next_at.map(|next| millis(now, next)),
            asked: attempts.asked.iter().map(asked).collect(),
        })
    }

    fn link_name(&self, route: &Route) -> String {
        let link = self.config.links.iter().find(|link| link.socket == route.socket);
        link.map(|link| link.name.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_what_the_host_tells_everybody_is_no_packet_without_a_peer() {
        let reasons = ["ff02::2", "224.0.0.22", "255.255.255.255", "192.0.2.1", "2001:db8::1"]
            .map(|address| no_peer(address.parse().unwrap()));
        let (multicast, none) = (DropReason::HostMulticast, DropReason::NoPeer);
        assert_eq!(reasons, [multicast, multicast, multicast, none, none]);
    }
}
