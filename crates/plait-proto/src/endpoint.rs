//! A gateway's whole protocol: peers by public key, handshakes, and the bonds that come of them.
//!
//! # Contract
//!
//! Input: [`Endpoint::handle_packet`] for inner packets from the host,
//! [`Endpoint::handle_datagrams`] for what the sockets received, [`Endpoint::handle_timeout`] when
//! the time that [`Endpoint::poll_timeout`] gave has come. Output: [`Endpoint::poll_transmit`],
//! [`Endpoint::poll_deliver`], [`Endpoint::poll_event`]; drain them, in this order, after every
//! batch of inputs, then ask for the timeout. `now` never goes backwards.

mod bonds;
mod contact;
mod cookies;
mod entropy;
mod handshakes;
mod limits;
mod links;
mod members;
mod peer;
mod peers;
mod pins;
mod ports;
mod reach;
mod reconfigure;
mod renewal;
mod schedule;
#[cfg(feature = "simulation")]
mod shape;
mod size;
mod standby;
mod status;
mod waiting;

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

pub use contact::Contact;
use limits::Guard;
use peer::{Peer, SessionAge};
use peers::Peers;
#[cfg(feature = "simulation")]
pub use shape::{NamedBondShape, PeerShape};
pub use status::StatusWalk;

use crate::allowed_ips::{Routes, Sources};
use crate::bond::{Bond, BondEvent};
use crate::config::{EndpointConfig, HandshakeLimits, PeerConfig, SocketId};
use crate::drop_reason::{DropCounters, DropReason};
use crate::faults::Faults;
use crate::output::{DeliverQueue, Transmit, TransmitQueue};
use crate::path::Route;
use crate::rng::Rng;
use crate::seq::{BondIncarnation, PathId};
use crate::session::{Established, Identity, LoggedSecret, PublicKey, Timestamp};
use crate::time::{Duration, Instant, earlier};
use crate::wire::ecn::Ecn;
use crate::wire::handshake::SessionIndex;
use crate::wire::ip::Inner;
use crate::wire::sealed::{Header, SEALED_BYTES_MAX};
use crate::wire::{self, Kind};

/// Something the owner may want to tell people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A bond with a peer exists.
    BondUp(PublicKey),
    /// The bond with a peer is gone.
    BondDown(PublicKey),
    /// One end of the bond throws away nearly all that arrives: the bond is made anew.
    BondStuck(PublicKey),
    /// A path can carry data.
    PathUp(PublicKey, PathId),
    /// Nothing comes back over a path.
    PathSilent(PublicKey, PathId),
    /// A path loses too much and is left out.
    PathLossy(PublicKey, PathId),
    /// The peer removed a path.
    PathClosed(PublicKey, PathId),
    /// The peer is followed to another address on a path.
    PathMoved(PublicKey, PathId, SocketAddr),
    /// The largest inner packet that the bond with a peer carries has changed, in bytes.
    InnerMtu(PublicKey, u16),
}

/// A gateway's protocol state.
#[derive(Debug)]
pub struct Endpoint {
    identity: Identity,
    config: EndpointConfig,
    peers: Peers,
    /// Where each peer stands in `peers`.
    places: BTreeMap<PublicKey, usize>,
    /// How often peers got other places.
    places_version: u64,
    /// Which peer inner addresses belong to.
    routes: Routes<usize>,
    /// Which peer a session index belongs to: established sessions and initiations under way.
    sessions: BTreeMap<SessionIndex, usize>,
    last_timestamp: Timestamp,
    guard: Guard,
    rng: Rng,
    handshakes: TransmitQueue,
    drops: DropCounters,
    events: VecDeque<Event>,
    /// Messages to the host about the sizes of its packets.
    told: DeliverQueue,
    /// Why links of this side stand by although their configuration does not say so, in words.
    standby_reasons: BTreeMap<SocketId, String>,
    /// Secrets for the owner's log of keys, when there is one.
    logged_secrets: Option<VecDeque<LoggedSecret>>,
    faults: Faults,
}

impl Endpoint {
    /// A gateway without sessions. `rng` must come from a secure seed outside tests and simulator.
    pub fn new(config: EndpointConfig, peers: Vec<PeerConfig>, rng: Rng) -> Self {
        let identity = Identity::new(config.private_key.clone());
        Self::with_identity(identity, config, peers, rng)
    }

    /// A gateway of the simulator without sessions, which will have the null cipher. It reaches no
    /// gateway but its like.
    #[cfg(feature = "simulation")]
    pub fn without_cipher(config: EndpointConfig, peers: Vec<PeerConfig>, rng: Rng) -> Self {
        let identity = Identity::without_cipher(config.private_key.clone());
        Self::with_identity(identity, config, peers, rng)
    }

    /// A gateway of the search without sessions, whose handshakes hide nothing, which will have the
    /// null cipher, and into which `faults` are put back. It reaches no gateway but its like, and
    /// its peers are known by [`PrivateKey::toy_public_key`](crate::session::PrivateKey).
    #[cfg(feature = "simulation")]
    pub fn for_search(
        config: EndpointConfig,
        peers: Vec<PeerConfig>,
        rng: Rng,
        faults: Faults,
    ) -> Self {
        let identity = Identity::with_toy_handshake(config.private_key.clone());
        Self { faults, ..Self::with_identity(identity, config, peers, rng) }
    }

    fn with_identity(
        identity: Identity,
        config: EndpointConfig,
        peers: Vec<PeerConfig>,
        mut rng: Rng,
    ) -> Self {
        let peers =
            peers.into_iter().map(|peer| Peer::new(peer, BondIncarnation(rng.u64()))).collect();
        let peers = Peers::new(peers);
        let mut endpoint = Self {
            identity,
            config,
            peers,
            places: BTreeMap::new(),
            places_version: 0,
            routes: Routes::default(),
            sessions: BTreeMap::new(),
            last_timestamp: Timestamp::default(),
            guard: Guard::new(HandshakeLimits::default()),
            rng,
            handshakes: TransmitQueue::default(),
            drops: DropCounters::default(),
            events: VecDeque::new(),
            told: DeliverQueue::default(),
            standby_reasons: BTreeMap::new(),
            logged_secrets: None,
            faults: Faults::default(),
        };
        endpoint.index_peers();
        endpoint
    }

    /// The tables that find a peer's place, anew.
    fn index_peers(&mut self) {
        self.places_version += 1;
        let peers = self.peers.iter().enumerate();
        self.places = peers.clone().map(|(at, peer)| (peer.config.public_key, at)).collect();
        self.routes = Routes::new(peers.map(|(at, peer)| (at, &peer.config.allowed_ips[..])));
    }

    /// Other limits than the default ones, from now on.
    pub fn set_handshake_limits(&mut self, limits: HandshakeLimits) {
        self.guard.set_limits(limits);
    }

    /// From now on keeps the secrets of new sessions for [`Self::poll_secret`]. For an owner that
    /// was told to write them down, and for nobody else.
    pub fn log_secrets(&mut self) {
        self.logged_secrets = Some(VecDeque::new());
    }

    /// The next secret for the owner's log of keys; without [`Self::log_secrets`] there is none.
    pub fn poll_secret(&mut self) -> Option<LoggedSecret> {
        self.logged_secrets.as_mut()?.pop_front()
    }

    fn log_secrets_of(&mut self, established: &Established) {
        if let Some(logged) = &mut self.logged_secrets {
            logged.extend(LoggedSecret::of(established));
        }
    }

    /// Reaches out to every peer that has an endpoint, or of which a route is remembered.
    pub fn start(&mut self, now: Instant) {
        for at in 0..self.peers.len() {
            if self.peers[at].can_be_called() {
                self.initiate(now, at);
            }
        }
    }

    /// Says farewell to every peer.
    pub fn close(&mut self, now: Instant) {
        for bond in self.peers.iter_mut().filter_map(Peer::used_bond_mut) {
            bond.close(now);
        }
    }

    /// Takes an inner packet from the host.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        if let Err(reason) = self.route_packet(now, packet) {
            self.drops.count(reason);
        }
    }

    fn route_packet(&mut self, now: Instant, packet: &[u8]) -> Result<(), DropReason> {
        let inner = Inner::read(packet).ok_or(DropReason::BadInnerPacket)?;
        let at = self.routes.peer_of(inner.destination);
        let at = at.ok_or_else(|| contact::no_peer(inner.destination))?;
        if self.peers[at].attempts.next_at.is_some() {
            self.ask_at_once(now, at);
        }
        if self.sleeps_too_long(now, at) {
            return self.await_path(now, at, packet);
        }
        match self.give_to_bond(now, at, &inner, packet) {
            Err(DropReason::NoSession) => self.await_path(now, at, packet),
            Err(DropReason::NoUsablePath) if !self.peers[at].is_up() => {
                self.await_path(now, at, packet)
            }
            result => result,
        }
    }

    /// Takes what a socket received from one address: datagrams of `stride` bytes, one after the
    /// other, of which the last may be shorter, all with this ECN field in their IP headers.
    pub fn handle_datagrams(
        &mut self,
        now: Instant,
        route: Route,
        ecn: Ecn,
        stride: usize,
        datagrams: &mut [u8],
    ) {
        for datagram in datagrams.chunks_mut(stride.max(1)) {
            if let Err(reason) = self.handle_datagram(now, route, ecn, datagram) {
                self.drops.count(reason);
            }
        }
    }

    fn handle_datagram(
        &mut self,
        now: Instant,
        route: Route,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let first = *datagram.first().ok_or(DropReason::Truncated)?;
        if datagram.len() > SEALED_BYTES_MAX {
            return Err(DropReason::Oversized);
        }
        let other = || match wire::is_other_version(first) {
            true => DropReason::OtherVersion,
            false => DropReason::UnknownType,
        };
        match Kind::of(first).ok_or_else(other)? {
            Kind::Initiation => self.handle_initiation(now, route, datagram),
            Kind::Response => self.handle_response(now, route, datagram),
            Kind::CookieReply => self.handle_cookie_reply(now, route, datagram),
            kind @ (Kind::Data | Kind::Control) => {
                let header = Header::read(kind, datagram).ok_or(DropReason::Truncated)?;
                self.handle_sealed(now, header, route, ecn, datagram)
            }
        }
    }

    fn handle_sealed(
        &mut self,
        now: Instant,
        header: Header,
        route: Route,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let at = *self.sessions.get(&header.session).ok_or(DropReason::UnknownIndex)?;
        let next = self.peers[at].next_bond.as_ref();
        let is_next = next.is_some_and(|next| next.bond.has_session(header.session));
        let own_stays = next.is_some() && self.own_bond_stays(now, at);
        if is_next && own_stays {
            return Err(DropReason::CrossedBond);
        }
        let sources = Sources::new(&self.routes, at);
        let peer = &mut self.peers[at];
        if let Some(next) = peer.next_bond.as_mut().filter(|_| is_next) {
            next.bond.handle_datagram(now, header, route, ecn, sources, datagram)?;
            self.adopt_next_bond(now, at);
        } else {
            let bond = peer.used_bond_mut().ok_or(DropReason::UnknownIndex)?;
            bond.handle_datagram(now, header, route, ecn, sources, datagram)?;
            if own_stays && bond.was_heard() {
                // The peer uses this one: what still comes under its own was sent before that.
                self.discard_next_bond(at);
            }
        }
        self.handle_bond_events(now, at);
        Ok(())
    }

    fn stop_attempts(&mut self, at: usize) {
        if let Some(index) = self.peers[at].attempts.stop() {
            self.sessions.remove(&index);
        }
    }

    fn handle_bond_events(&mut self, now: Instant, at: usize) {
        let mut any_path_changed = false;
        while let Some(event) = self.peers[at].used_bond_mut().and_then(Bond::poll_event) {
            let key = self.peers[at].config.public_key;
            any_path_changed |= matches!(event, BondEvent::PathUp(_) | BondEvent::PathSilent(_));
            match event {
                BondEvent::SessionExpired(index) => self.forget_session(Some(index)),
                BondEvent::SessionConfirmed(made_at) => {
                    let peer = &mut self.peers[at];
                    peer.session = Some(SessionAge { made_at, initiator: false });
                    peer.handshakes += 1;
                    self.open_missing_paths(now, at);
                }
                BondEvent::AllPathsSilent if self.peers[at].attempts.next_at.is_some() => {
                    self.ask_at_once(now, at);
                }
                BondEvent::AllPathsSilent => self.initiate(now, at),
                BondEvent::Closed => {
                    self.forget_bond(at);
                    if self.peers[at].is_sought() {
                        // The peer may be about to start again.
                        self.peers[at].attempts.schedule(now, false);
                    }
                }
                BondEvent::PathUp(id) => {
                    let peer = &mut self.peers[at];
                    let route = peer.bond.as_ref().and_then(|named| named.bond.route_of(id));
                    if let Some(route) = route {
                        self.guard.note_reached(&mut peer.reached, route.remote.ip());
                    }
                    self.events.push_back(Event::PathUp(key, id));
                    self.send_waiting(now, at);
                }
                BondEvent::PathSilent(id) => self.events.push_back(Event::PathSilent(key, id)),
                BondEvent::PathLossy(id) => self.events.push_back(Event::PathLossy(key, id)),
                BondEvent::PathClosed(id) => {
                    self.events.push_back(Event::PathClosed(key, id));
                    self.open_missing_paths(now, at);
                }
                BondEvent::PathMoved(id, remote) => {
                    self.events.push_back(Event::PathMoved(key, id, remote));
                }
                BondEvent::InnerMtu(mtu) => self.note_inner_mtu(at, mtu),
                BondEvent::Discarding => self.make_anew(now, at),
            }
        }
        if any_path_changed {
            self.mind_ports(now, at);
        }
    }

    /// When [`Self::handle_timeout`] is due; `None` when nothing is. A time to come may be too
    /// early: asked then, the answer is a later one.
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        self.peers.poll_timeout(now, |peer| self.peer_timeout(now, peer))
    }

    fn peer_timeout(&self, now: Instant, peer: &Peer) -> Option<Instant> {
        let bond = peer.used_bond().and_then(|bond| bond.poll_timeout(now));
        let session = peer.session.and_then(|session| self.session_timeout(peer, session));
        let unused = peer.next_bond.as_ref().map(|next| self.rejects_unused_at(&next.bond));
        let attempts = earlier(peer.attempts.next_at, peer.ports.due());
        earlier(earlier(bond, session), earlier(unused, attempts))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for at in self.peers.due(now, |peer| self.peer_timeout(now, peer)) {
            if let Some(bond) = self.peers[at].used_bond_mut() {
                bond.handle_timeout(now);
            }
            self.handle_bond_events(now, at);
            self.mind_ports(now, at);
            self.mind_next_bond(now, at);
            self.mind_session(now, at);
            if self.peers[at].attempts.next_at.is_some_and(|next| next <= now) {
                self.retry(now, at);
            }
        }
    }

    /// Another attempt, unless the reason for it is gone.
    fn retry(&mut self, now: Instant, at: usize) {
        let peer = &self.peers[at];
        let renewing = peer.attempts.state.is_some() && peer.session.is_some();
        let up = peer.used_bond().is_some_and(Bond::is_up);
        if !renewing && up {
            self.stop_attempts(at);
            return;
        }
        self.initiate(now, at);
    }

    /// The next send; valid until the next call.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        // Two passes, because a borrow that is returned cannot be tried first.
        if self.peers.has_transmit() {
            return self.peers.transmitting().and_then(Bond::poll_transmit);
        }
        if !self.handshakes.has_more() {
            self.peers.rewind_transmitting();
            return None;
        }
        self.handshakes.poll()
    }

    /// Takes the contents of the last [`Self::poll_transmit`] for good, with an empty buffer in
    /// exchange: for an owner that would have to copy them.
    pub fn take_contents(&mut self, spare: Vec<u8>) -> Vec<u8> {
        match self.peers.transmitting() {
            Some(bond) => bond.take_contents(spare),
            None => self.handshakes.take_contents(spare),
        }
    }

    /// The next inner packet for the host; valid until the next call.
    pub fn poll_deliver(&mut self) -> Option<&[u8]> {
        if self.peers.has_delivery() {
            return self.peers.delivering().and_then(Bond::poll_deliver);
        }
        self.told.poll()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Drops by reason, of the endpoint and all its bonds.
    pub fn drop_count(&self, reason: DropReason) -> u64 {
        let of_peers = self.peers.iter().map(|peer| peer.drop_count(reason));
        self.drops.get(reason) + of_peers.sum::<u64>()
    }

    /// Places of packets that all bonds together looked at one after the other, since each began.
    pub fn slots_walked(&self) -> u64 {
        self.peers.iter().filter_map(Peer::used_bond).map(Bond::slots_walked).sum()
    }

    /// All drops.
    pub fn drop_total(&self) -> u64 {
        DropReason::ALL.iter().map(|reason| self.drop_count(*reason)).sum()
    }

    fn random_index(&mut self) -> SessionIndex {
        loop {
            if let Some(index) = SessionIndex::from_random(self.rng.u64())
                && !self.sessions.contains_key(&index)
            {
                return index;
            }
        }
    }

    /// A wall-clock timestamp, newer than every one before it and than those the peer knows.
    fn next_timestamp(&mut self, now: Instant, at: usize) -> Timestamp {
        let time = self.config.wall_clock_at_zero + Duration::from_nanos(now.as_nanos());
        self.last_timestamp = self.last_timestamp.next().max(Timestamp::from_unix(time));
        // A floor is one peer's word and must not move the clock for others.
        let own = &mut self.peers[at].timestamp_floor;
        *own = own.next().max(self.last_timestamp);
        *own
    }

    /// Where an attempt to reach a peer goes: over the paths that worked, or over every link. An
    /// idle bond is renewed over one path, as long as that works.
    fn targets(&self, now: Instant, at: usize) -> Vec<Route> {
        let peer = &self.peers[at];
        if peer.attempts.count == 0
            && let Some(route) = peer.used_bond().and_then(|bond| bond.idle_route(now))
        {
            return vec![route];
        }
        let mut routes: Vec<Route> = match peer.used_bond() {
            Some(bond) => bond.routes().collect(),
            None => peer.remembered.clone(),
        };
        for link in &self.config.links {
            let endpoints = &peer.config.endpoints;
            let remote = peer.ports.endpoint_over(&link.name, endpoints, peer.attempts.count);
            if let Some(remote) = remote
                && !routes.iter().any(|known| known.socket == link.socket && known.remote == remote)
            {
                routes.push(Route { socket: link.socket, remote, local: None });
            }
        }
        routes
    }
}

/// Attempts go round a peer's endpoints.
fn endpoint_for(endpoints: &[SocketAddr], attempt: usize) -> Option<SocketAddr> {
    endpoints.get(attempt % endpoints.len().max(1)).copied()
}
