//! Links that come, change and go while the endpoint runs.

use super::{Endpoint, endpoint_for};
use crate::bond::Bond;
use crate::config::{LinkConfig, SocketId};
use crate::path::Route;
use crate::time::Instant;
use crate::wire::control::PathInfo;

/// Among links of one price the peer, too, keeps to the order of the socket numbers.
fn path_info(link: &LinkConfig) -> PathInfo {
    PathInfo {
        price: link.price,
        order: u8::try_from(link.socket.0).unwrap_or(u8::MAX),
        weight: link.weight,
        standby: link.standby,
        metered: link.metered,
        name: link.name.clone(),
    }
}

impl Endpoint {
    /// The owner has one more link: every bond with a peer that has an endpoint gets a path over
    /// it, and where no path works, a handshake goes out over it at once. Call it after
    /// [`Self::start`]; a link that is there already is updated.
    pub fn add_link(&mut self, now: Instant, link: LinkConfig) {
        if self.config.links.iter().any(|known| known.socket == link.socket) {
            self.update_link(now, link);
            return;
        }
        let socket = link.socket;
        self.config.links.push(link);
        self.config.links.sort_by_key(|link| link.socket);
        for at in 0..self.peers.len() {
            if self.peers[at].is_sought() {
                self.open_missing_paths(now, at);
                if !self.peers[at].used_bond().is_some_and(Bond::is_up) {
                    self.initiate_over(now, at, socket);
                }
            }
        }
    }

    /// A link is gone, or its socket is about to be closed: its paths are removed and the peers
    /// told. Bonds stay, also without any path.
    pub fn remove_link(&mut self, now: Instant, socket: SocketId) {
        self.config.links.retain(|link| link.socket != socket);
        self.standby_reasons.remove(&socket);
        for peer in self.peers.iter_mut() {
            let bonds = [&mut peer.bond, &mut peer.next_bond];
            for named in bonds.into_iter().flatten() {
                named.bond.remove_paths_over(now, socket);
                named.bond.send_notices(now);
            }
        }
    }

    /// A link has another price, weight, name, or turned `standby` or `metered`: the peers are
    /// told. A link that is not there is left alone.
    pub fn update_link(&mut self, now: Instant, link: LinkConfig) {
        let known = self.config.links.iter_mut().find(|known| known.socket == link.socket);
        let Some(known) = known else { return };
        known.clone_from(&link);
        for bond in self.peers.iter_mut().filter_map(super::Peer::used_bond_mut) {
            bond.update_link(now, link.socket, &path_info(&link));
        }
    }

    /// The own address of a link may have changed below its socket: peers that hear of it at once
    /// follow at once.
    pub fn probe_link(&mut self, now: Instant, socket: SocketId) {
        for bond in self.peers.iter_mut().filter_map(super::Peer::used_bond_mut) {
            bond.probe_paths_over(now, socket);
        }
    }

    /// The links over which this endpoint opens paths.
    pub fn links(&self) -> &[LinkConfig] {
        &self.config.links
    }

    /// Joins the handshake under way, if there is one: its first answer counts, over whichever link
    /// it comes (spec H-8).
    fn initiate_over(&mut self, now: Instant, at: usize, socket: SocketId) {
        let is_only = self.config.links.len() == 1;
        let peer = &self.peers[at];
        let under_way = peer.attempts.state.as_ref().filter(|_| !is_only);
        let Some(state) = under_way else {
            // Attempts without a link say nothing about the peer: the waiting times begin anew.
            self.stop_attempts(at);
            self.initiate(now, at);
            return;
        };
        let attempt = peer.attempts.count.saturating_sub(1);
        let link = self.config.links.iter().find(|link| link.socket == socket);
        let remote = link
            .and_then(|link| peer.ports.endpoint_over(&link.name, &peer.config.endpoints, attempt));
        if let Some(remote) = remote {
            self.handshakes.push_single(Route { socket, remote, local: None }, &state.message);
        }
    }

    /// Opens a path over every link that has none to the peer. When the path ids of the epoch run
    /// short, a new session brings new ones (spec K-5). A bond that sleeps under a session too old
    /// gets its paths with the next.
    pub(super) fn open_missing_paths(&mut self, now: Instant, at: usize) {
        if self.sleeps_too_long(now, at) {
            return;
        }
        let Some(mut named) = self.peers[at].bond.take() else { return };
        self.open_paths(now, at, &mut named.bond);
        let runs_short = named.bond.runs_short_of_path_ids();
        self.peers[at].bond = Some(named);
        if runs_short && self.peers[at].attempts.next_at.is_none() {
            self.initiate(now, at);
        }
    }

    pub(super) fn open_paths(&self, now: Instant, at: usize, bond: &mut Bond) {
        let peer = &self.peers[at];
        let endpoints = &peer.config.endpoints;
        let Some(answered) = endpoint_for(endpoints, peer.answered_attempt) else { return };
        for link in &self.config.links {
            let remote = peer.ports.port_over(&link.name, endpoints, answered);
            let route = Route { socket: link.socket, remote, local: None };
            if !bond.has_own_path_over(link.socket) {
                bond.open_path(now, route, path_info(link));
            }
        }
    }
}
