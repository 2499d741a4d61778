//! Another configuration for a running endpoint: what did not change goes on undisturbed.

use core::net::SocketAddr;

use super::peer::Peer;
use super::peers::Peers;
use super::{Endpoint, Event, endpoint_for};
use crate::bond::Bond;
use crate::config::{BondConfig, PeerConfig};
use crate::seq::BondIncarnation;
use crate::time::Instant;

impl Endpoint {
    /// Goes on with these peers and this behaviour of bonds.
    ///
    /// - The bond with a peer whose configuration did not change is not touched, nor is one that
    ///   differs in `allowed_ips` or `keepalive` alone, beyond the change itself.
    /// - A changed preshared key: the session in use goes on until it is renewed, and renewal
    ///   begins at once where this side seeks the peer. Nothing is agreed under the old key any
    ///   more.
    /// - Changed endpoints: paths to addresses that are no longer named are left, new ones opened.
    /// - Peers that are gone are told so; new ones are sought.
    /// - A changed `bond` acts on running bonds, but for `inner_mtu` and `rekey.rekey_after`, which
    ///   act from the next handshake on.
    ///
    /// Call it with all outputs drained.
    pub fn reconfigure(&mut self, now: Instant, peers: Vec<PeerConfig>, bond: BondConfig) {
        self.reconfigure_bonds(&bond);
        self.config.bond = bond;
        let old = core::mem::take(&mut self.peers).into_all().into_iter();
        let mut old: Vec<Option<Peer>> = old.map(Some).collect();
        let (mut all, mut changes) = (Vec::with_capacity(peers.len()), Vec::new());
        for config in peers {
            let known = self.places.get(&config.public_key).and_then(|at| old[*at].take());
            let (peer, before) = match known {
                Some(mut peer) => {
                    let before = core::mem::replace(&mut peer.config, config);
                    (peer, Some(before))
                }
                None => (Peer::new(config, BondIncarnation(self.rng.u64())), None),
            };
            all.push(peer);
            changes.push(before);
        }
        let mut gone: Vec<Peer> = old.into_iter().flatten().collect();
        gone.sort_unstable_by_key(|peer| peer.config.public_key);
        for peer in gone {
            self.dismiss(now, peer);
        }
        self.peers = Peers::new(all);
        self.index_peers();
        self.index_sessions();
        for (at, before) in changes.into_iter().enumerate() {
            match before {
                Some(before) => self.change_peer(now, at, &before),
                None if self.peers[at].is_sought() => self.initiate(now, at),
                None => {}
            }
        }
    }

    /// How bonds behave.
    pub const fn bond_config(&self) -> &BondConfig {
        &self.config.bond
    }

    fn reconfigure_bonds(&mut self, new: &BondConfig) {
        let old = &self.config.bond;
        for peer in self.peers.iter_mut() {
            for named in peer.bond.iter_mut().chain(&mut peer.next_bond) {
                named.bond.reconfigure(old, new);
            }
        }
    }

    /// Says farewell to a peer. Its bond is gone before its datagrams are: they leave with the
    /// handshakes.
    pub(super) fn dismiss(&mut self, now: Instant, peer: Peer) {
        self.guard.forget_reached(&peer.reached);
        peer.add_drops(&mut self.drops);
        let Some(mut bond) = peer.bond.map(|named| named.bond) else { return };
        bond.close(now);
        let farewells: Vec<_> = bond.routes().collect();
        while let Some(transmit) = bond.poll_transmit() {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
            let route = farewells
                .iter()
                .find(|route| route.socket == transmit.socket && route.remote == transmit.remote);
            let Some(route) = route else { continue };
            for datagram in transmit.contents.chunks(size) {
                self.handshakes.push_single(*route, datagram);
            }
        }
        self.events.push_back(Event::BondDown(peer.config.public_key));
    }

    /// The table of sessions, anew: peers have other places.
    fn index_sessions(&mut self) {
        self.sessions.clear();
        for (at, peer) in self.peers.iter().enumerate() {
            for named in peer.bond.iter().chain(&peer.next_bond) {
                self.sessions.extend(named.bond.session_indices().map(|index| (index, at)));
            }
            self.sessions.extend(peer.attempts.state.iter().map(|state| (state.local, at)));
        }
    }

    /// Acts on what differs between `before` and the peer's configuration now.
    fn change_peer(&mut self, now: Instant, at: usize, before: &PeerConfig) {
        let peer = &mut self.peers[at];
        let config = &peer.config;
        let new_key = !config.preshared_key.is_same_as(&before.preshared_key);
        let new_endpoints = config.endpoints != before.endpoints;
        if config.keepalive != before.keepalive {
            for named in peer.bond.iter_mut().chain(&mut peer.next_bond) {
                named.bond.set_keepalive(config.keepalive);
            }
        }
        if new_key {
            self.forget_old_key(at);
        }
        let astray = new_endpoints && self.change_endpoints(now, at, &before.endpoints);
        let peer = &self.peers[at];
        let unreached = new_endpoints && !peer.used_bond().is_some_and(Bond::is_up);
        if peer.is_sought() && (new_key || astray || unreached) {
            self.peers[at].attempts.count = 0;
            self.initiate(now, at);
        }
    }

    /// Drops what was agreed, or may yet be, under the key of before, but for the session in use.
    fn forget_old_key(&mut self, at: usize) {
        self.stop_attempts(at);
        self.peers[at].answer = None;
        self.discard_next_bond(at);
    }

    /// Leaves a peer's old endpoints and opens paths to the new. Says whether any path was left. A
    /// peer that calls from now on keeps the paths there are.
    fn change_endpoints(&mut self, now: Instant, at: usize, before: &[SocketAddr]) -> bool {
        let peer = &mut self.peers[at];
        let endpoints = &peer.config.endpoints;
        let answered = endpoint_for(before, peer.answered_attempt);
        let place = endpoints.iter().position(|endpoint| Some(*endpoint) == answered);
        peer.answered_attempt = place.unwrap_or(0);
        let Some(named) = &mut peer.bond else { return false };
        let left = !endpoints.is_empty() && named.bond.leave_other_endpoints(now, endpoints);
        self.open_missing_paths(now, at);
        left
    }
}
