//! Two endpoints in memory: a customer with two links, and a provider with one address.

use core::net::SocketAddr;
use std::collections::{BTreeMap, VecDeque};

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig, LossDetection, Order, PeerConfig, Prefix, RekeyLimits,
    SocketId,
};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::rng::Rng;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::session::{PresharedKey, PrivateKey, PublicKey};
use plait_proto::stats::PathState;
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::ecn::Ecn;

use crate::reached;

/// The side with the links, which initiates.
pub const CUSTOMER: usize = 0;
/// The side that answers.
pub const PROVIDER: usize = 1;
/// The customer's links.
pub const LINKS: usize = 2;
/// Bytes of the headers and the number of [`packet`].
pub const PACKET_BYTES_MIN: usize = 32;

const KEYS: [u8; 2] = [1, 2];
/// The sides' addresses inside.
pub const INNER_IPS: [[u8; 4]; 2] = [[10, 99, 0, 2], [10, 99, 0, 1]];
const DELAYS_MS: [u64; LINKS] = [5, 15];
/// Steps of one call of [`Pair::run_for`]: more means that time does not pass.
const STEPS_MAX: usize = 1_000_000;

/// A datagram on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The side it goes to.
    pub to: usize,
    /// The link it is on.
    pub link: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What happens to a datagram when it is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It is lost.
    Drop,
    /// It arrives twice, the second time this much later.
    Duplicate(Duration),
    /// It is this much later than the link makes it.
    Delay(Duration),
    /// The byte at this place, modulo the length, is changed by this pattern, which is not zero.
    Corrupt(usize, u8),
}

/// Two endpoints and what is between them.
#[derive(Debug)]
pub struct Pair {
    /// Virtual time.
    pub now: Instant,
    /// The endpoints.
    pub sides: [Endpoint; 2],
    /// Whether each link carries anything.
    pub up: [bool; LINKS],
    /// Faults of the next datagrams, one each.
    pub faults: VecDeque<Fault>,
    /// Datagrams are held back here instead of being sent.
    pub held: Option<Vec<Datagram>>,
    /// Inner packets that came out of each side since they were last taken.
    pub delivered: [Vec<Vec<u8>>; 2],
    /// Datagrams that left the sides.
    pub sent_datagrams: u64,
    /// What the provider sent to addresses that are not the customer's, when it has other peers.
    pub astray: Vec<(SocketAddr, Vec<u8>)>,
    bond: BondConfig,
    /// The provider's peers beside the customer.
    others: Vec<PeerConfig>,
    /// How often each of the customer's addresses has changed.
    bindings: [u8; LINKS],
    /// Seconds that both wall clocks have jumped forwards; read at a restart.
    jumped_s: u64,
    flying: BTreeMap<(Instant, u64), Datagram>,
    flown: u64,
    starts: u8,
}

/// The default bond.
pub fn bond_config() -> BondConfig {
    BondConfig {
        scheduler: SchedulerConfig::default(),
        congestion: None,
        order: Order::Flow,
        resequencer: ResequencerConfig::default(),
        loss_detection: LossDetection::Known,
        report_interval: Duration::from_millis(50),
        inner_mtu: 1440,
        rekey: RekeyLimits::default(),
    }
}

impl Pair {
    /// Two endpoints that have done nothing yet.
    pub fn new(bond: BondConfig) -> Self {
        Self::with_others(bond, Vec::new())
    }

    /// The same, with a provider that has other peers beside the customer.
    pub fn with_others(bond: BondConfig, others: Vec<PeerConfig>) -> Self {
        let sides = [CUSTOMER, PROVIDER].map(|side| endpoint(&bond, &others, side, 0, 0));
        Self {
            now: Instant::ZERO,
            sides,
            up: [true; LINKS],
            faults: VecDeque::new(),
            held: None,
            delivered: [Vec::new(), Vec::new()],
            sent_datagrams: 0,
            astray: Vec::new(),
            bond,
            others,
            bindings: [0; LINKS],
            jumped_s: 0,
            flying: BTreeMap::new(),
            flown: 0,
            starts: 0,
        }
    }

    /// The customer reaches out.
    pub fn start(&mut self) {
        for side in [CUSTOMER, PROVIDER] {
            self.sides[side].start(self.now);
            self.drain(side);
        }
    }

    /// The side starts again with nothing but its configuration.
    pub fn restart(&mut self, side: usize) {
        self.starts = self.starts.wrapping_add(1);
        self.sides[side] = endpoint(&self.bond, &self.others, side, self.starts, self.jumped_s);
        self.sides[side].start(self.now);
        self.drain(side);
    }

    /// The customer's address on a link is another one from now on; the old one reaches nobody.
    pub fn rebind(&mut self, link: usize) {
        self.bindings[link] = self.bindings[link].wrapping_add(1);
    }

    /// The wall clocks jump forwards.
    pub fn jump_clocks(&mut self, seconds: u64) {
        self.jumped_s += seconds;
    }

    /// Hands inner packets to a side as one batch.
    pub fn send(&mut self, from: usize, packets: &[Vec<u8>]) {
        self.send_any(from, 0, packets);
    }

    /// Puts a datagram before a side.
    pub fn inject(&mut self, datagram: &Datagram) {
        let Datagram { to, link, bytes } = datagram;
        let message = datagram.bytes.first().map_or("nothing", |first| reached::message(*first));
        let route = route_at(*to, *link, self.bindings);
        self.hand(*to, 0, message, route, Ecn::NotEct, bytes);
    }

    /// Puts a datagram of this content, from the side's peer of this number, before the side.
    pub fn hand(
        &mut self,
        to: usize,
        peer: usize,
        message: &'static str,
        route: Route,
        ecn: Ecn,
        bytes: &[u8],
    ) {
        let (side, now, stride) = (&mut self.sides[to], self.now, bytes.len());
        let mut bytes = bytes.to_vec();
        reached::around(side, now, peer, message, |side| {
            side.handle_datagrams(now, route, ecn, stride, &mut bytes);
        });
        self.drain(to);
    }

    /// The other peers hear no more of what was sent to them until now.
    pub fn take_astray(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        core::mem::take(&mut self.astray)
    }

    /// The provider's host has packets for other peers.
    pub fn send_any(&mut self, from: usize, peer: usize, packets: &[Vec<u8>]) {
        for packet in packets {
            let now = self.now;
            reached::around(&mut self.sides[from], now, peer, "packet of the host", |side| {
                side.handle_packet(now, packet);
            });
        }
        self.drain(from);
    }

    /// Lets what was held back go on.
    pub fn release(&mut self) {
        for datagram in self.held.take().unwrap_or_default() {
            self.fly(datagram);
        }
    }

    /// Paths that carry data, as a side sees it.
    pub fn paths_up(&mut self, side: usize) -> usize {
        let status = self.sides[side].status(self.now);
        let paths = status.peers.iter().flat_map(|peer| &peer.paths);
        paths.filter(|path| path.state == PathState::Up).count()
    }

    fn drain(&mut self, side: usize) {
        let mut sent = Vec::new();
        while let Some(transmit) = self.sides[side].poll_transmit() {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len());
            let link = link_of(side, transmit.socket, transmit.remote, self.bindings);
            let Some(link) = link else {
                if !self.others.is_empty() {
                    let datagrams = transmit.contents.chunks(size);
                    let astray = datagrams.map(|bytes| (transmit.remote, bytes.to_vec()));
                    self.astray.extend(astray);
                }
                continue;
            };
            let datagrams = transmit.contents.chunks(size).map(<[u8]>::to_vec);
            sent.extend(datagrams.map(|bytes| Datagram { to: 1 - side, link, bytes }));
        }
        self.sent_datagrams += sent.len() as u64;
        for datagram in sent {
            match &mut self.held {
                Some(held) => held.push(datagram),
                None => self.fly(datagram),
            }
        }
        while let Some(packet) = self.sides[side].poll_deliver() {
            self.delivered[side].push(packet.to_vec());
        }
        while self.sides[side].poll_event().is_some() {}
    }

    fn fly(&mut self, mut datagram: Datagram) {
        let mut later = Duration::ZERO;
        match self.faults.pop_front() {
            Some(Fault::Drop) => return,
            Some(Fault::Delay(by)) => later = by,
            Some(Fault::Duplicate(by)) => self.arrive_in(by, datagram.clone()),
            Some(Fault::Corrupt(at, pattern)) => {
                let at = at % datagram.bytes.len();
                datagram.bytes[at] ^= pattern;
            }
            None => {}
        }
        self.arrive_in(later, datagram);
    }

    fn arrive_in(&mut self, later: Duration, datagram: Datagram) {
        if self.up[datagram.link] {
            let delay = Duration::from_millis(DELAYS_MS[datagram.link]);
            self.flown += 1;
            self.flying.insert((self.now + delay + later, self.flown), datagram);
        }
    }

    /// Lets virtual time pass.
    ///
    /// # Panics
    /// When a timer is due for ever.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..STEPS_MAX {
            let timers = [CUSTOMER, PROVIDER].map(|side| self.sides[side].poll_timeout(self.now));
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let next = timers.into_iter().flatten().chain(arrival).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            if arrival.is_some_and(|at| at <= self.now)
                && let Some((_, datagram)) = self.flying.pop_first()
            {
                self.inject(&datagram);
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

fn provider_address() -> SocketAddr {
    ([192, 0, 2, 1], 7788).into()
}

fn customer_address(link: usize, bindings: [u8; LINKS]) -> SocketAddr {
    ([10, link as u8 + 1, 0, 1], 1000 + u16::from(bindings[link])).into()
}

fn route_at(to: usize, link: usize, bindings: [u8; LINKS]) -> Route {
    if to == CUSTOMER {
        Route { socket: SocketId(link as u16), remote: provider_address(), local: None }
    } else {
        Route { socket: SocketId(0), remote: customer_address(link, bindings), local: None }
    }
}

/// The link that leads to an address; `None` for an address that was left.
fn link_of(
    from: usize,
    socket: SocketId,
    remote: SocketAddr,
    bindings: [u8; LINKS],
) -> Option<usize> {
    if from == CUSTOMER {
        return Some(usize::from(socket.0));
    }
    (0..LINKS).find(|link| customer_address(*link, bindings) == remote)
}

/// The public key of a side.
pub fn public_key(side: usize) -> PublicKey {
    KEYS.map(|byte| PrivateKey::from_bytes([byte; 32]))[side].public_key()
}

fn endpoint(
    bond: &BondConfig,
    others: &[PeerConfig],
    side: usize,
    starts: u8,
    jumped_s: u64,
) -> Endpoint {
    let keys = KEYS.map(|byte| PrivateKey::from_bytes([byte; 32]));
    let is_customer = side == CUSTOMER;
    let links = (0..LINKS as u8).map(|at| LinkConfig {
        socket: SocketId(u16::from(at)),
        name: format!("link{at}"),
        price: at,
        weight: 1,
        standby: false,
        metered: false,
    });
    let config = EndpointConfig {
        private_key: keys[side].clone(),
        // A clock that a restart does not set back.
        wall_clock_at_zero: Duration::from_secs(1_700_000_000 + u64::from(starts) + jumped_s),
        links: if is_customer { links.collect() } else { Vec::new() },
        bond: bond.clone(),
    };
    let peer = PeerConfig {
        public_key: keys[1 - side].public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: if is_customer { vec![provider_address()] } else { Vec::new() },
        allowed_ips: vec![Prefix { address: INNER_IPS[1 - side].into(), length: 32 }],
        keepalive: Duration::from_secs(25),
    };
    let mut seed = [side as u8; 32];
    seed[1] = starts;
    let others = if is_customer { &[] } else { others };
    let peers = core::iter::once(peer).chain(others.iter().cloned());
    Endpoint::new(config, peers.collect(), Rng::from_seed(seed))
}

/// An inner UDP packet from a side to the other, of at least [`PACKET_BYTES_MIN`] bytes.
pub fn packet(from: usize, flow: u16, number: u32, bytes: usize) -> Vec<u8> {
    let bytes = bytes.max(PACKET_BYTES_MIN) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&bytes.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend_from_slice(&INNER_IPS[from]);
    packet.extend_from_slice(&INNER_IPS[1 - from]);
    packet.extend_from_slice(&flow.to_be_bytes());
    packet.extend_from_slice(&[0, 9]);
    packet.extend_from_slice(&(bytes - 20).to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(&number.to_be_bytes());
    packet.resize(usize::from(bytes), number as u8);
    packet
}

/// An inner packet from a side to any address.
pub fn packet_to(from: usize, to: [u8; 4], bytes: usize) -> Vec<u8> {
    let mut packet = packet(from, 0, 0, bytes);
    packet[16..20].copy_from_slice(&to);
    packet
}

/// The number of a [`packet`].
pub fn number(packet: &[u8]) -> u32 {
    let number = packet.get(28..PACKET_BYTES_MIN).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(number.expect("only packets of ours come out"))
}
