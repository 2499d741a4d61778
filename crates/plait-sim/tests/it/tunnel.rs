//! Two real endpoints, joined by modelled links; packets flow from the provider to the customer.

use std::net::{IpAddr, SocketAddr};

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig as EndpointLink, PeerConfig, Prefix, SocketId,
};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::rng::Rng;
use plait_proto::session::{PresharedKey, PrivateKey};
use plait_proto::time::{Duration, Instant};
use plait_sim::link::{Link, LinkConfig};

const CUSTOMER: usize = 0;
const PROVIDER: usize = 1;
const CUSTOMER_IP: [u8; 4] = [10, 99, 0, 2];
const PROVIDER_IP: [u8; 4] = [10, 99, 0, 1];
const IP_AND_UDP_BYTES: u64 = 28;

pub(crate) struct Tunnel {
    pub(crate) now: Instant,
    pub(crate) sides: [Endpoint; 2],
    /// For each link: towards the customer, towards the provider.
    pub(crate) links: Vec<[Link<Vec<u8>>; 2]>,
    /// Numbers of the packets that the customer's host got.
    pub(crate) delivered: Vec<u32>,
}

fn provider_address() -> SocketAddr {
    ([192, 0, 2, 1], 7788).into()
}

fn customer_address(link: usize) -> SocketAddr {
    ([10, link as u8 + 1, 0, 1], 1000).into()
}

fn endpoint(bond: &BondConfig, links: usize, side: usize) -> Endpoint {
    let keys = [PrivateKey::from_bytes([1; 32]), PrivateKey::from_bytes([2; 32])];
    let own_links = (0..links as u16).map(|at| EndpointLink {
        socket: SocketId(at),
        name: format!("link{at}"),
        price: at as u8,
        weight: 1,
    });
    let config = EndpointConfig {
        private_key: keys[side].clone(),
        wall_clock_at_zero: Duration::from_secs(1_700_000_000),
        links: if side == CUSTOMER { own_links.collect() } else { Vec::new() },
        bond: bond.clone(),
    };
    let peer_ip = if side == CUSTOMER { PROVIDER_IP } else { CUSTOMER_IP };
    let peer = PeerConfig {
        public_key: keys[1 - side].public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: if side == CUSTOMER { vec![provider_address()] } else { Vec::new() },
        allowed_ips: vec![Prefix { address: IpAddr::from(peer_ip), length: 32 }],
        keepalive: Duration::from_secs(25),
    };
    Endpoint::new(config, vec![peer], Rng::from_seed([side as u8 + 1; 32]))
}

impl Tunnel {
    pub(crate) fn new(bond: &BondConfig, links: &[LinkConfig]) -> Self {
        let mut tunnel = Self {
            now: Instant::ZERO,
            sides: [CUSTOMER, PROVIDER].map(|side| endpoint(bond, links.len(), side)),
            links: links
                .iter()
                .enumerate()
                .map(|(at, link)| [0, 1].map(|way| Link::new(*link, 10 * at as u64 + way)))
                .collect(),
            delivered: Vec::new(),
        };
        tunnel.sides[CUSTOMER].start(tunnel.now);
        tunnel.drain(CUSTOMER);
        tunnel.run_until(Instant::from_millis(1000));
        tunnel
    }

    /// Hands the provider a UDP packet with a payload of `payload_bytes` for the customer.
    pub(crate) fn send_down(&mut self, number: u32, payload_bytes: usize) {
        let total = payload_bytes as u16 + 28;
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&total.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
        packet.extend_from_slice(&PROVIDER_IP);
        packet.extend_from_slice(&CUSTOMER_IP);
        packet.extend_from_slice(&[0, 9, 0, 9]);
        packet.extend_from_slice(&(total - 20).to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
        packet.extend_from_slice(&number.to_be_bytes());
        packet.resize(usize::from(total), 0);
        self.sides[PROVIDER].handle_packet(self.now, &packet);
        self.drain(PROVIDER);
    }

    fn drain(&mut self, side: usize) {
        while let Some(transmit) = self.sides[side].poll_transmit() {
            let link = if side == CUSTOMER {
                usize::from(transmit.socket.0)
            } else {
                (0..self.links.len())
                    .find(|link| customer_address(*link) == transmit.remote)
                    .expect("the provider answers addresses it was reached from")
            };
            let size = transmit.segment_size.unwrap_or(transmit.contents.len());
            for datagram in transmit.contents.chunks(size) {
                let bytes = datagram.len() as u64 + IP_AND_UDP_BYTES;
                self.links[link][side].send(self.now, bytes, datagram.to_vec());
            }
        }
        while let Some(packet) = self.sides[side].poll_deliver() {
            let number = packet[28..32].try_into().expect("a packet of ours");
            self.delivered.push(u32::from_be_bytes(number));
        }
        while self.sides[side].poll_event().is_some() {}
    }

    fn next_event(&self) -> Option<Instant> {
        let timers = self.sides.iter().filter_map(|side| side.poll_timeout(self.now));
        let links = self.links.iter().flatten().filter_map(Link::next_event);
        timers.chain(links).min()
    }

    pub(crate) fn run_until(&mut self, end: Instant) {
        while let Some(next) = self.next_event().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            for link in 0..self.links.len() {
                for way in [CUSTOMER, PROVIDER] {
                    while let Some(datagram) = self.links[link][1 - way].poll(self.now) {
                        self.arrive(way, link, datagram);
                    }
                }
            }
            for side in [CUSTOMER, PROVIDER] {
                if self.sides[side].poll_timeout(self.now).is_some_and(|due| due <= self.now) {
                    self.sides[side].handle_timeout(self.now);
                    self.drain(side);
                }
            }
        }
        self.now = end;
    }

    fn arrive(&mut self, to: usize, link: usize, mut datagram: Vec<u8>) {
        let (socket, remote) = if to == CUSTOMER {
            (SocketId(link as u16), provider_address())
        } else {
            (SocketId(0), customer_address(link))
        };
        let stride = datagram.len();
        let route = Route { socket, remote, local: None };
        self.sides[to].handle_datagrams(self.now, route, stride, &mut datagram);
        self.drain(to);
    }
}
