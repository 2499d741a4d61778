//! A gateway of the swarm: the core as it is, and the addresses around it.

use std::net::{IpAddr, SocketAddr};

use plait_proto::config::{EndpointConfig, LinkConfig, PeerConfig, Prefix, SocketId};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::rng::Rng;
use plait_proto::session::{PresharedKey, PrivateKey};
use plait_proto::stats::PeerStatus;
use plait_proto::time::{Duration, Instant};

use super::draw::Draw;
use super::intruder;
use super::plan::{LinkPlan, Plan};
use crate::world::CipherChoice;

/// The gateway with the links.
pub const CUSTOMER: usize = 0;
/// The gateway with one address.
pub const PROVIDER: usize = 1;

pub(super) const WALL_CLOCK_AT_ZERO_S: i64 = 1_700_000_000;
pub(super) const KEEPALIVE: Duration = Duration::from_secs(25);

/// Inner address of each side's host.
pub(super) const INNER_IPS: [[u8; 4]; 2] = [[10, 99, 0, 2], [10, 99, 0, 1]];

/// The customer's address on a link after so many rebindings.
pub(super) fn customer_address(link: usize, bindings: u16) -> SocketAddr {
    let link = u8::try_from(link).expect("a plan has at most six links");
    // A NAT that forgot gives another port, and every other time another address as well.
    let host = (bindings / 2 % 250) as u8 + 1;
    ([10, link, 0, host], 1000 + bindings).into()
}

fn provider_address() -> SocketAddr {
    ([192, 0, 2, 1], 7788).into()
}

fn socket(link: usize) -> SocketId {
    SocketId(u16::try_from(link).expect("a plan has at most six links"))
}

/// Where a datagram seems to come from at the side it goes to.
pub(super) fn route(to: usize, link: usize, bindings: u16) -> Route {
    match to {
        CUSTOMER => Route { socket: socket(link), remote: provider_address(), local: None },
        _ => {
            let remote = customer_address(link, bindings);
            Route { socket: SocketId(0), remote, local: None }
        }
    }
}

/// The keys of both sides.
pub(super) fn keys() -> [PrivateKey; 2] {
    [1, 2].map(|byte| PrivateKey::from_bytes([byte; 32]))
}

/// A gateway that has done nothing yet.
pub(super) fn endpoint(
    plan: &Plan,
    side: usize,
    now: Instant,
    wall_offset_s: i64,
    draw: &mut Draw,
) -> Endpoint {
    let keys = keys();
    let seconds = u64::try_from(WALL_CLOCK_AT_ZERO_S + wall_offset_s).unwrap_or(0);
    let own_links = plan.links.iter().enumerate().map(|(at, link)| link_config(at, link));
    let config = EndpointConfig {
        private_key: keys[side].clone(),
        wall_clock_at_zero: Duration::from_secs(seconds),
        links: match side {
            CUSTOMER => own_links.collect(),
            _ if plan.both_seek => vec![provider_link()],
            _ => Vec::new(),
        },
        bond: plan.bonds[side].clone(),
    };
    let endpoints = match side {
        CUSTOMER => vec![provider_address()],
        _ if plan.both_seek => vec![customer_address(0, 0)],
        _ => Vec::new(),
    };
    let inner = IpAddr::from(INNER_IPS[1 - side]);
    let peer = PeerConfig {
        public_key: keys[1 - side].public_key(),
        preshared_key: PresharedKey::default(),
        endpoints,
        allowed_ips: vec![Prefix { address: inner, length: 32 }],
        keepalive: KEEPALIVE,
    };
    let mut peers = vec![peer];
    if side == PROVIDER && plan.hostile {
        peers.push(intruder::peer_config());
    }
    let mut seed = [0; 32];
    for word in seed.chunks_mut(8) {
        word.copy_from_slice(&draw.next().to_be_bytes());
    }
    let new = match plan.cipher {
        CipherChoice::Null => Endpoint::without_cipher,
        CipherChoice::Real => Endpoint::new,
    };
    let mut endpoint = new(config, peers, Rng::from_seed(seed));
    endpoint.start(now);
    endpoint
}

fn link_config(at: usize, link: &LinkPlan) -> LinkConfig {
    LinkConfig {
        socket: socket(at),
        name: format!("link{at}"),
        price: link.price,
        weight: link.weight,
        standby: link.standby,
        metered: link.metered,
    }
}

fn provider_link() -> LinkConfig {
    LinkConfig {
        socket: SocketId(0),
        name: "wan".to_owned(),
        price: 0,
        weight: 1,
        standby: false,
        metered: false,
    }
}

/// Takes a link away from a running gateway.
pub(super) fn unplug(endpoint: &mut Endpoint, now: Instant, link: usize) {
    endpoint.remove_link(now, socket(link));
}

/// Gives a running gateway a link.
pub(super) fn plug(endpoint: &mut Endpoint, now: Instant, link: usize, plan: &LinkPlan) {
    endpoint.add_link(now, link_config(link, plan));
}

/// What the endpoint says of the other side.
pub(super) fn status(endpoint: &mut Endpoint, now: Instant) -> PeerStatus {
    let peers = endpoint.status(now).peers;
    peers.into_iter().next().expect("each gateway was given the other as its first peer")
}
