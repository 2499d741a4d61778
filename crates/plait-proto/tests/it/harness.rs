//! A customer with several links and a provider with one address, joined by queues with delay.

use core::net::{IpAddr, SocketAddr};
use std::collections::BTreeMap;

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig, LossDetection, Order, PeerConfig, Prefix, RekeyLimits,
    SocketId,
};
use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::path::Route;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::rng::Rng;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::session::{PresharedKey, PrivateKey, PublicKey};
use plait_proto::stats::PathState;
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::ecn::Ecn;

pub(crate) const CUSTOMER: usize = 0;
pub(crate) const PROVIDER: usize = 1;
pub(crate) const CUSTOMER_IP: [u8; 4] = [10, 99, 0, 2];
pub(crate) const PROVIDER_IP: [u8; 4] = [10, 99, 0, 1];

/// A datagram as it was on a link.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    pub(crate) to: usize,
    pub(crate) link: usize,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
struct InFlight {
    to: usize,
    link: usize,
    ecn: Ecn,
    bytes: Vec<u8>,
}

pub(crate) struct Link {
    pub(crate) delay: Duration,
    pub(crate) up: bool,
    /// Whether anything arrives at each side.
    pub(crate) up_to: [bool; 2],
    /// Of a hundred datagrams, so many are lost.
    pub(crate) loss_percent: u64,
    /// Longer datagrams vanish, in bytes at the IP layer.
    pub(crate) mtu: usize,
    /// What a router on it writes into the ECN fields of datagrams.
    pub(crate) rewrites: Option<Ecn>,
    /// The port by which the link's NAT shows the customer. Nothing gets in by another.
    pub(crate) port: u16,
    /// Whether the customer has a socket on it.
    plugged: bool,
}

impl Link {
    fn new(at: usize) -> Self {
        Self {
            delay: Duration::from_millis(5 + 10 * at as u64),
            up: true,
            up_to: [true; 2],
            loss_percent: 0,
            mtu: usize::MAX,
            rewrites: None,
            port: 1000,
            plugged: true,
        }
    }
}

/// What the harness is built from.
pub(crate) struct Setup {
    pub(crate) links: usize,
    pub(crate) ipv6: bool,
    pub(crate) psk: [PresharedKey; 2],
    pub(crate) bond: BondConfig,
    pub(crate) seed: u8,
    /// The provider knows the customer's first address and reaches out too.
    pub(crate) both_seek: bool,
    /// Links that are metered.
    pub(crate) metered: Vec<usize>,
    /// Links that stand by.
    pub(crate) standby: Vec<usize>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            links: 2,
            ipv6: false,
            psk: [PresharedKey::default(), PresharedKey::default()],
            bond: bond_config(Algorithm::RoundRobin, Order::Bond),
            seed: 1,
            both_seek: false,
            metered: Vec::new(),
            standby: Vec::new(),
        }
    }
}

pub(crate) fn bond_config(algorithm: Algorithm, order: Order) -> BondConfig {
    BondConfig {
        scheduler: SchedulerConfig { algorithm, ..SchedulerConfig::default() },
        congestion: None,
        order,
        resequencer: ResequencerConfig::default(),
        loss_detection: LossDetection::Known,
        report_interval: Duration::from_millis(50),
        inner_mtu: 1440,
        rekey: RekeyLimits::default(),
    }
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) sides: [Endpoint; 2],
    pub(crate) links: Vec<Link>,
    pub(crate) captured: Vec<Captured>,
    /// Where the provider is.
    pub(crate) provider_at: SocketAddr,
    /// What a side sent to where nobody is.
    pub(crate) astray: Vec<(SocketAddr, Vec<u8>)>,
    pub(crate) delivered: [Vec<Vec<u8>>; 2],
    pub(crate) events: [Vec<Event>; 2],
    /// A side that does not run.
    pub(crate) dead: [bool; 2],
    setup: Setup,
    flying: BTreeMap<(Instant, u64), InFlight>,
    count: u64,
    dice: u64,
    keys: [PrivateKey; 2],
}

fn prefix(ip: [u8; 4]) -> Prefix {
    Prefix { address: IpAddr::from(ip), length: 32 }
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        Self::new_with_lag(setup, Duration::ZERO)
    }

    /// The provider starts this long after the customer.
    pub(crate) fn new_with_lag(setup: Setup, lag: Duration) -> Self {
        let keys = [PrivateKey::from_bytes([1; 32]), PrivateKey::from_bytes([2; 32])];
        let links = (0..setup.links).map(Link::new).collect();
        let sides = [CUSTOMER, PROVIDER].map(|side| endpoint(&setup, &keys, side, 0));
        let mut world = Self {
            now: Instant::ZERO,
            sides,
            links,
            captured: Vec::new(),
            provider_at: provider_address(setup.ipv6),
            astray: Vec::new(),
            delivered: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
            dead: [false; 2],
            setup,
            flying: BTreeMap::new(),
            count: 0,
            dice: 1,
            keys,
        };
        for (side, wait) in [(CUSTOMER, lag), (PROVIDER, Duration::ZERO)] {
            world.sides[side].start(world.now);
            world.drain(side);
            world.run_for(wait);
        }
        world
    }

    /// A world whose paths are all up.
    pub(crate) fn connected(setup: Setup) -> Self {
        let links = setup.links;
        let mut world = Self::new(setup);
        world.run_for(Duration::from_millis(500));
        assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [links, links]);
        world
    }

    pub(crate) fn public_key(&self, side: usize) -> PublicKey {
        self.keys[side].public_key()
    }

    /// The side starts again with nothing but its configuration.
    pub(crate) fn restart(&mut self, side: usize) {
        self.restart_at(side, self.now.since(Instant::ZERO).as_secs());
    }

    /// The side starts again, with a wall clock so many seconds after the beginning.
    pub(crate) fn restart_at(&mut self, side: usize, seconds: u64) {
        self.begin_again(side, seconds, &[]);
    }

    /// The side starts again and is told over which routes it had last reached its peer.
    pub(crate) fn restart_and_remember(&mut self, side: usize) {
        let routes = self.sides[side].known_routes();
        self.begin_again(side, self.now.since(Instant::ZERO).as_secs(), &routes);
    }

    fn begin_again(&mut self, side: usize, seconds: u64, routes: &[(PublicKey, Route)]) {
        self.setup.seed += 1;
        self.dead[side] = false;
        self.sides[side] = endpoint(&self.setup, &self.keys, side, seconds);
        for (peer, route) in routes {
            self.sides[side].remember(peer, *route);
        }
        self.sides[side].start(self.now);
        self.drain(side);
    }

    /// The largest inner packet that a side's bond carries; before there is one, its host's.
    pub(crate) fn inner_mtu(&self, side: usize) -> u16 {
        let found = self.sides[side].inner_mtu_to(&self.public_key(1 - side));
        found.unwrap_or(self.setup.bond.inner_mtu)
    }

    /// Gives a side another configuration: what `change` makes of the one it was built from.
    pub(crate) fn reconfigure(
        &mut self,
        side: usize,
        change: impl FnOnce(&mut Vec<PeerConfig>, &mut BondConfig),
    ) {
        let mut peers = vec![peer_config(&self.setup, &self.keys, side)];
        let mut bond = self.setup.bond.clone();
        change(&mut peers, &mut bond);
        self.sides[side].reconfigure(self.now, peers, bond);
        self.drain(side);
    }

    /// Makes one of a side's links stand by, or no more.
    pub(crate) fn set_standby(&mut self, side: usize, link: u16, reason: Option<&str>) {
        let (standby, reason) = (reason.is_some(), reason.map(str::to_owned));
        self.sides[side].set_standby(self.now, SocketId(link), standby, reason);
        self.drain(side);
    }

    pub(crate) fn customer_address(&self, link: usize) -> SocketAddr {
        let last = link as u8 + 1;
        let port = self.links[link].port;
        if self.setup.ipv6 {
            (IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last) + 1]), port).into()
        } else {
            ([10, last, 0, 1], port).into()
        }
    }

    pub(crate) fn paths_up(&mut self, side: usize) -> usize {
        let status = self.sides[side].status(self.now);
        let paths = status.peers.iter().flat_map(|peer| &peer.paths);
        paths.filter(|path| path.state == PathState::Up).count()
    }

    /// Hands inner packets to a side as one batch.
    pub(crate) fn send(&mut self, from: usize, packets: &[Vec<u8>]) {
        for packet in packets {
            self.sides[from].handle_packet(self.now, packet);
        }
        self.drain(from);
    }

    /// Gives the customer a link that it had not, or not any more.
    pub(crate) fn plug(&mut self, link: usize) {
        while self.links.len() <= link {
            self.links.push(Link::new(self.links.len()));
        }
        self.links[link].plugged = true;
        self.sides[CUSTOMER].add_link(self.now, link_config(link as u16));
        self.drain(CUSTOMER);
    }

    /// Takes a link from the customer.
    pub(crate) fn unplug(&mut self, link: usize) {
        self.sides[CUSTOMER].remove_link(self.now, SocketId(link as u16));
        self.drain(CUSTOMER);
        self.links[link].plugged = false;
    }

    /// Another gateway with a side's key and configuration, which has seen nothing of this one.
    pub(crate) fn clone_of(&mut self, side: usize) -> Endpoint {
        self.setup.seed += 1;
        endpoint(&self.setup, &self.keys, side, self.now.since(Instant::ZERO).as_secs())
    }

    /// Puts a datagram before a side as if it came over a link.
    pub(crate) fn inject(&mut self, to: usize, link: usize, bytes: &[u8]) {
        self.arrive(to, self.route_at(to, link), Ecn::NotEct, bytes);
    }

    /// Puts a datagram before a side as if it came from some address on the first link.
    pub(crate) fn inject_from(&mut self, to: usize, remote: SocketAddr, bytes: &[u8]) {
        self.inject_over(to, Route { socket: SocketId(0), remote, local: None }, bytes);
    }

    /// Puts a datagram before a side as if it came by that route.
    pub(crate) fn inject_over(&mut self, to: usize, route: Route, bytes: &[u8]) {
        self.arrive(to, route, Ecn::NotEct, bytes);
    }

    fn arrive(&mut self, to: usize, route: Route, ecn: Ecn, bytes: &[u8]) {
        if self.dead[to] {
            return;
        }
        let mut bytes = bytes.to_vec();
        let stride = bytes.len();
        self.sides[to].handle_datagrams(self.now, route, ecn, stride, &mut bytes);
        self.drain(to);
    }

    fn route_at(&self, to: usize, link: usize) -> Route {
        if to == CUSTOMER {
            Route { socket: SocketId(link as u16), remote: self.provider_at, local: None }
        } else {
            Route { socket: SocketId(0), remote: self.customer_address(link), local: None }
        }
    }

    fn link_of(&self, from: usize, socket: SocketId, remote: SocketAddr) -> Option<usize> {
        if from == CUSTOMER {
            return (remote == self.provider_at).then_some(usize::from(socket.0));
        }
        (0..self.links.len()).find(|link| self.customer_address(*link) == remote)
    }

    fn drain(&mut self, side: usize) {
        let mut sent = Vec::new();
        while let Some(transmit) = self.sides[side].poll_transmit() {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len());
            for datagram in transmit.contents.chunks(size) {
                sent.push((transmit.socket, transmit.remote, transmit.ecn, datagram.to_vec()));
            }
        }
        for (socket, remote, ecn, bytes) in sent {
            let to = 1 - side;
            let Some(link) = self.link_of(side, socket, remote) else {
                self.astray.push((remote, bytes));
                continue;
            };
            self.captured.push(Captured { to, link, bytes: bytes.clone() });
            // A generator of its own would be no better: this one spreads and repeats.
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let is_lost = (self.dice >> 33) % 100 < self.links[link].loss_percent;
            let ip_bytes = bytes.len() + if self.setup.ipv6 { 48 } else { 28 };
            let is_lost = is_lost || ip_bytes > self.links[link].mtu;
            if self.links[link].up && self.links[link].up_to[to] && !is_lost {
                let at = self.now + self.links[link].delay;
                let ecn = self.links[link].rewrites.unwrap_or(ecn);
                self.count += 1;
                self.flying.insert((at, self.count), InFlight { to, link, ecn, bytes });
            }
        }
        while let Some(packet) = self.sides[side].poll_deliver() {
            self.delivered[side].push(packet.to_vec());
        }
        while let Some(event) = self.sides[side].poll_event() {
            self.events[side].push(event);
        }
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..5_000_000 {
            let timers = [CUSTOMER, PROVIDER]
                .map(|side| self.sides[side].poll_timeout(self.now).filter(|_| !self.dead[side]));
            let flying = self.flying.first_key_value().map(|((at, _), _)| *at);
            let next = timers.into_iter().flatten().chain(flying).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            if flying.is_some_and(|at| at <= self.now) {
                let (_, datagram) = self.flying.pop_first().expect("one is flying");
                if datagram.to == PROVIDER || self.links[datagram.link].plugged {
                    let route = self.route_at(datagram.to, datagram.link);
                    self.arrive(datagram.to, route, datagram.ecn, &datagram.bytes);
                }
            }
            for side in [CUSTOMER, PROVIDER] {
                if timers[side].is_some_and(|at| at <= self.now) {
                    self.sides[side].handle_timeout(self.now);
                    self.drain(side);
                }
            }
        }
        panic!("time does not pass: a timer is due for ever at {:?}", self.now);
    }
}

fn provider_address(ipv6: bool) -> SocketAddr {
    if ipv6 {
        (IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]), 7788).into()
    } else {
        ([192, 0, 2, 1], 7788).into()
    }
}

pub(crate) fn link_config(at: u16) -> LinkConfig {
    LinkConfig {
        socket: SocketId(at),
        name: format!("link{at}"),
        price: at as u8,
        weight: 1,
        standby: false,
        metered: false,
    }
}

fn endpoint(setup: &Setup, keys: &[PrivateKey; 2], side: usize, later_seconds: u64) -> Endpoint {
    let links = (0..setup.links as u16).map(|at| LinkConfig {
        standby: setup.standby.contains(&usize::from(at)),
        metered: setup.metered.contains(&usize::from(at)),
        ..link_config(at)
    });
    let config = EndpointConfig {
        private_key: keys[side].clone(),
        wall_clock_at_zero: Duration::from_secs(1_700_000_000 + later_seconds),
        links: links.take(if side == CUSTOMER { setup.links } else { 1 }).collect(),
        bond: setup.bond.clone(),
    };
    let peer = peer_config(setup, keys, side);
    Endpoint::new(config, vec![peer], Rng::from_seed([setup.seed + 100 * side as u8; 32]))
}

/// The one peer of a side.
fn peer_config(setup: &Setup, keys: &[PrivateKey; 2], side: usize) -> PeerConfig {
    PeerConfig {
        public_key: keys[1 - side].public_key(),
        preshared_key: setup.psk[side].clone(),
        endpoints: match side {
            CUSTOMER => vec![provider_address(setup.ipv6)],
            _ if setup.both_seek => vec![([10, 1, 0, 1], 1000).into()],
            _ => vec![],
        },
        allowed_ips: vec![prefix(if side == CUSTOMER { PROVIDER_IP } else { CUSTOMER_IP })],
        keepalive: Duration::from_secs(25),
    }
}

/// An inner UDP packet from one side to the other.
pub(crate) fn packet(from: usize, flow: u16, number: u32) -> Vec<u8> {
    let (source, destination) =
        if from == CUSTOMER { (CUSTOMER_IP, PROVIDER_IP) } else { (PROVIDER_IP, CUSTOMER_IP) };
    packet_with(source, destination, flow, number)
}

pub(crate) fn packet_with(
    source: [u8; 4],
    destination: [u8; 4],
    flow: u16,
    number: u32,
) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet.extend_from_slice(&source);
    packet.extend_from_slice(&destination);
    packet.extend_from_slice(&flow.to_be_bytes());
    packet.extend_from_slice(&[0, 9, 0, 12, 0, 0]);
    packet.extend_from_slice(&number.to_be_bytes());
    packet
}

/// The number that [`packet`] wrote.
pub(crate) fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[28..32].try_into().expect("a packet of ours"))
}
