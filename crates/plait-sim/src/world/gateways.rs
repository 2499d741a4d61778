//! The two gateways: the unmodified core.

use std::net::{IpAddr, SocketAddr};

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig as EndpointLink, PeerConfig, Prefix, RekeyLimits,
    SocketId,
};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::rng::Rng;
use plait_proto::session::{PresharedKey, PrivateKey};
use plait_proto::stats::{PathState, PeerStatus};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::ecn::Ecn;

use super::network::{Load, Network};
use super::queue::{Alarm, Event};
use super::timeline::Timeline;
use crate::packet::{CUSTOMER_IP, Packet, SERVER_IP, Way};
use crate::prng::Prng;
use crate::scenario::{BondSpec, Scenario};

/// The gateway at the customer's end.
pub(super) const CUSTOMER: usize = 0;
/// The gateway at the provider's end.
pub(super) const PROVIDER: usize = 1;

const WALL_CLOCK_AT_ZERO: Duration = Duration::from_secs(1_700_000_000);
const KEEPALIVE: Duration = Duration::from_secs(25);

/// The gateways' cipher. A run is the same with both, except for the time it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CipherChoice {
    /// The null cipher: the lengths of the real one without its work.
    #[default]
    Null,
    /// The AEAD of real gateways.
    Real,
}

#[derive(Debug)]
struct Side {
    endpoint: Endpoint,
    alarm: Alarm,
    /// Whether its process runs.
    runs: bool,
}

/// One of the bond's links.
#[derive(Debug)]
struct Attachment {
    /// Its number in the network.
    link: usize,
    config: EndpointLink,
    /// Whether the customer has the interface.
    plugged: bool,
    /// How many addresses the customer had on it before.
    addresses: u8,
    /// How many ports its NAT assigned before.
    ports: u16,
}

impl Attachment {
    /// The customer's address on a link, as the provider sees it.
    fn customer(&self, at: usize) -> SocketAddr {
        let at = u8::try_from(at).expect("a checked scenario's bond has at most 32 links");
        ([10, at, 0, 1 + self.addresses], 1000 + self.ports).into()
    }
}

/// Both gateways.
#[derive(Debug)]
pub(super) struct Gateways {
    sides: [Side; 2],
    /// The bond's links in the bond's order: the socket number of a path at the customer's end is
    /// its index here.
    links: Vec<Attachment>,
    bond: BondConfig,
    cipher: CipherChoice,
    scratch: Vec<u8>,
}

impl Gateways {
    /// Gateways that are configured for each other and have sent nothing yet.
    pub(super) fn new(
        scenario: &Scenario,
        spec: &BondSpec,
        cipher: CipherChoice,
        prng: &mut Prng,
    ) -> Self {
        let number = |name: &String| {
            let known = scenario.links.keys().position(|known| known == name);
            known.expect("a checked scenario's bond names links of the scenario")
        };
        let attach = |(at, name): (usize, &String)| Attachment {
            link: number(name),
            config: EndpointLink {
                socket: socket(at),
                name: name.clone(),
                price: scenario.links[name].price,
                weight: scenario.links[name].weight,
                standby: false,
                metered: false,
            },
            plugged: true,
            addresses: 0,
            ports: 0,
        };
        let links: Vec<Attachment> = spec.links.iter().enumerate().map(attach).collect();
        let bond = bond_config(spec);
        let sides = [CUSTOMER, PROVIDER].map(|side| Side {
            endpoint: endpoint(&links, &bond, side, cipher, prng),
            alarm: Alarm::default(),
            runs: true,
        });
        Self { sides, links, bond, cipher, scratch: Vec::new() }
    }

    /// The customer's gateway calls the provider's.
    pub(super) fn start(&mut self, now: Instant) {
        self.sides[CUSTOMER].endpoint.start(now);
    }

    /// A packet from the host behind a gateway.
    pub(super) fn handle_packet(&mut self, now: Instant, side: usize, packet: &Packet) {
        if !self.sides[side].runs {
            return;
        }
        let bytes = packet.write(&mut self.scratch);
        self.sides[side].endpoint.handle_packet(now, bytes);
    }

    /// A datagram that arrived over a link.
    pub(super) fn handle_datagram(
        &mut self,
        now: Instant,
        side: usize,
        link: usize,
        datagram: &mut [u8],
    ) {
        let at = self.links.iter().position(|known| known.link == link);
        let at = at.expect("datagrams travel on the bond's links only");
        if !self.sides[side].runs || (side == CUSTOMER && !self.links[at].plugged) {
            return;
        }
        let (socket, remote) = match side {
            CUSTOMER => (socket(at), provider_address()),
            _ => (SocketId(0), self.links[at].customer(at)),
        };
        let route = Route { socket, remote, local: None };
        let stride = datagram.len();
        let ecn = Ecn::NotEct; // Simulated hosts do not use it.
        self.sides[side].endpoint.handle_datagrams(now, route, ecn, stride, datagram);
    }

    /// Handles a gateway's timer event that was queued for `at`. Returns false for a stale event;
    /// otherwise the gateway must be drained.
    pub(super) fn handle_timeout(&mut self, now: Instant, at: Instant, side: usize) -> bool {
        let Side { endpoint, alarm, runs } = &mut self.sides[side];
        let rings = alarm.rings(at) && *runs;
        if rings && endpoint.poll_timeout(now).is_some_and(|due| due <= now) {
            endpoint.handle_timeout(now);
        }
        rings
    }

    /// Takes all output of a gateway for links and host after any call.
    pub(super) fn drain(
        &mut self,
        timeline: &mut Timeline,
        side: usize,
        network: &mut Network,
        delivered: &mut Vec<Packet>,
    ) {
        let Side { endpoint, alarm, runs } = &mut self.sides[side];
        if !*runs {
            return;
        }
        while let Some(transmit) = endpoint.poll_transmit() {
            let (at, way) = match side {
                CUSTOMER => (usize::from(transmit.socket.0), Way::Up),
                _ => (path_to(transmit.remote), Way::Down),
            };
            let attachment = &self.links[at];
            let reaches = side == CUSTOMER || transmit.remote == attachment.customer(at);
            if !attachment.plugged || !reaches {
                continue;
            }
            let link = attachment.link;
            if let Some(size) = transmit.segment_size {
                for datagram in transmit.contents.chunks(size.max(1)) {
                    network.send_datagram(timeline, link, way, datagram);
                }
            } else {
                // Usually there is one datagram, which can stay in its buffer.
                let datagram = endpoint.take_contents(network.buffer());
                network.send(timeline, link, way, Load::Datagram(datagram));
            }
        }
        while let Some(packet) = endpoint.poll_deliver() {
            delivered.extend(Packet::read(packet));
        }
        while endpoint.poll_event().is_some() {}
        alarm.set(endpoint.poll_timeout(timeline.now), Event::Gateway(side), &mut timeline.queue);
    }

    /// Whether both gateways have all their paths up.
    pub(super) fn are_up(&mut self, now: Instant) -> bool {
        let paths = self.links.len();
        [CUSTOMER, PROVIDER].iter().all(|side| {
            let status = self.status(now, *side);
            status.paths.len() == paths
                && status.paths.iter().all(|path| path.state == PathState::Up)
        })
    }

    /// A gateway's process ends without a farewell.
    pub(super) fn kill(&mut self, side: usize) {
        self.sides[side].runs = false;
    }

    /// A gateway's process starts again without any state.
    pub(super) fn restart(&mut self, now: Instant, side: usize, prng: &mut Prng) {
        let mut endpoint = endpoint(&self.links, &self.bond, side, self.cipher, prng);
        endpoint.start(now);
        // The old timer's event may still come; it then finds nothing due.
        self.sides[side] = Side { endpoint, alarm: Alarm::default(), runs: true };
    }

    /// A gateway reads its own configuration again.
    pub(super) fn reload(&mut self, now: Instant, side: usize) {
        if self.sides[side].runs {
            self.sides[side].endpoint.reconfigure(now, vec![peer(side)], self.bond.clone());
        }
    }

    /// The customer's interface of a link disappears or appears. No effect when the bond has no
    /// such link.
    pub(super) fn plug(&mut self, now: Instant, link: usize, plugged: bool) {
        let Some(at) = self.links.iter().position(|known| known.link == link) else { return };
        self.links[at].plugged = plugged;
        let Side { endpoint, runs, .. } = &mut self.sides[CUSTOMER];
        match plugged {
            _ if !*runs => {}
            true => endpoint.add_link(now, self.links[at].config.clone()),
            false => endpoint.remove_link(now, socket(at)),
        }
    }

    /// The NAT on a link assigns another port.
    pub(super) fn rebind(&mut self, link: usize) {
        if let Some(known) = self.links.iter_mut().find(|known| known.link == link) {
            known.ports = (known.ports + 1) % 1000;
        }
    }

    /// The customer gets another address on a link, and its gateway sees that.
    pub(super) fn readdress(&mut self, now: Instant, link: usize) {
        let Some(at) = self.links.iter().position(|known| known.link == link) else { return };
        self.links[at].addresses = (self.links[at].addresses + 1) % 250;
        if self.sides[CUSTOMER].runs {
            self.sides[CUSTOMER].endpoint.probe_link(now, socket(at));
        }
    }

    /// A gateway's status of the bond.
    pub(super) fn status(&mut self, now: Instant, side: usize) -> PeerStatus {
        let mut status = self.sides[side].endpoint.status(now);
        status.peers.pop().expect("each gateway was given one peer")
    }

    /// Packets that a gateway dropped, for any reason.
    pub(super) fn drops(&self, side: usize) -> u64 {
        self.sides[side].endpoint.drop_total()
    }
}

fn provider_address() -> SocketAddr {
    ([192, 0, 2, 1], 7788).into()
}

fn path_to(remote: SocketAddr) -> usize {
    match remote.ip() {
        IpAddr::V4(ip) => usize::from(ip.octets()[1]),
        IpAddr::V6(_) => unreachable!("the customer's addresses are IPv4"),
    }
}

fn socket(at: usize) -> SocketId {
    SocketId(u16::try_from(at).expect("a checked scenario's bond has at most 32 links"))
}

fn endpoint(
    links: &[Attachment],
    bond: &BondConfig,
    side: usize,
    cipher: CipherChoice,
    prng: &mut Prng,
) -> Endpoint {
    let own_links = links.iter().filter(|link| link.plugged).map(|link| link.config.clone());
    let config = EndpointConfig {
        private_key: key(side),
        wall_clock_at_zero: WALL_CLOCK_AT_ZERO,
        links: if side == CUSTOMER { own_links.collect() } else { Vec::new() },
        bond: bond.clone(),
    };
    let peer = peer(side);
    let mut seed = [0; 32];
    for word in seed.chunks_mut(8) {
        word.copy_from_slice(&prng.next_u64().to_be_bytes());
    }
    let new = match cipher {
        CipherChoice::Null => Endpoint::without_cipher,
        CipherChoice::Real => Endpoint::new,
    };
    new(config, vec![peer], Rng::from_seed(seed))
}

/// A gateway's configuration of the other one.
fn peer(side: usize) -> PeerConfig {
    let peer_ip = if side == CUSTOMER { SERVER_IP } else { CUSTOMER_IP };
    PeerConfig {
        public_key: key(1 - side).public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: if side == CUSTOMER { vec![provider_address()] } else { Vec::new() },
        allowed_ips: vec![Prefix { address: IpAddr::from(peer_ip), length: 32 }],
        keepalive: KEEPALIVE,
    }
}

fn key(side: usize) -> PrivateKey {
    PrivateKey::from_bytes([if side == CUSTOMER { 1 } else { 2 }; 32])
}

fn bond_config(spec: &BondSpec) -> BondConfig {
    BondConfig {
        scheduler: spec.scheduler.clone(),
        congestion: spec.congestion,
        order: spec.order,
        unordered: spec.unordered,
        resequencer: spec.resequencer,
        loss_detection: spec.loss_detection,
        report_interval: spec.report_interval,
        inner_mtu: spec.inner_mtu,
        rekey: RekeyLimits::default(),
        release: None,
    }
}
