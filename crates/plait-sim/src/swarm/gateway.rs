//! A gateway of the swarm: the unmodified core, and the addresses around it.

use std::net::SocketAddr;

use plait_pair::{CUSTOMER, Gateway, PROVIDER, WALL_CLOCK_AT_ZERO, provider_address, public_key};
use plait_proto::config::{LinkConfig, SocketId};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::session::PresharedKey;
use plait_proto::stats::PeerStatus;
use plait_proto::time::{Duration, Instant};

use super::draw::Draw;
use super::intruder;
use super::plan::{LinkPlan, SwarmPlan};
use crate::world::CipherChoice;

/// The customer's address on a link after so many rebindings.
pub(super) fn customer_address(link: usize, bindings: u16) -> SocketAddr {
    let link = u8::try_from(link).expect("a plan has at most six links");
    // A NAT that lost its state assigns another port, and every other time another address too.
    let host = (bindings / 2 % 250) as u8 + 1;
    ([10, link, 0, host], 1000 + bindings).into()
}

/// The route by which a datagram seems to come, at its receiver.
pub(super) fn route(to: usize, link: usize, bindings: u16) -> Route {
    let from = match to {
        CUSTOMER => provider_address(false),
        _ => customer_address(link, bindings),
    };
    plait_pair::route(to, link, from)
}

/// A gateway that has just started.
pub(super) fn endpoint(
    plan: &SwarmPlan,
    side: usize,
    now: Instant,
    wall_offset_s: i64,
    draw: &mut Draw,
) -> Endpoint {
    let own_links = plan.links.iter().enumerate().map(|(at, link)| link_config(at, link));
    let mut seed = [0; 32];
    for word in seed.chunks_mut(8) {
        word.copy_from_slice(&draw.next().to_be_bytes());
    }
    let gateway = Gateway {
        side,
        wall_clock_at_zero: Duration::from_secs(
            WALL_CLOCK_AT_ZERO.as_secs().saturating_add_signed(wall_offset_s),
        ),
        links: match side {
            CUSTOMER => own_links.collect(),
            _ if plan.both_seek => vec![provider_link()],
            _ => Vec::new(),
        },
        bond: plan.bonds[side].clone(),
        seeks: match side {
            CUSTOMER => vec![provider_address(false)],
            _ if plan.both_seek => vec![customer_address(0, 0)],
            _ => Vec::new(),
        },
        other: public_key(1 - side),
        psk: PresharedKey::default(),
        others: match side {
            PROVIDER if plan.hostile => vec![intruder::peer_config()],
            _ => Vec::new(),
        },
        seed,
    };
    let mut endpoint = gateway.build(match plan.cipher {
        CipherChoice::Null => Endpoint::without_cipher,
        CipherChoice::Real => Endpoint::new,
    });
    endpoint.start(now);
    endpoint
}

fn link_config(at: usize, link: &LinkPlan) -> LinkConfig {
    LinkConfig {
        price: link.price,
        weight: link.weight,
        standby: link.standby,
        metered: link.metered,
        ..plait_pair::link_config(socket(at).0)
    }
}

fn socket(link: usize) -> SocketId {
    SocketId(u16::try_from(link).expect("a plan has at most six links"))
}

fn provider_link() -> LinkConfig {
    LinkConfig { name: "wan".to_owned(), ..plait_pair::link_config(0) }
}

/// Takes a link away from a running gateway.
pub(super) fn unplug(endpoint: &mut Endpoint, now: Instant, link: usize) {
    endpoint.remove_link(now, socket(link));
}

/// Gives a running gateway a link.
pub(super) fn plug(endpoint: &mut Endpoint, now: Instant, link: usize, plan: &LinkPlan) {
    endpoint.add_link(now, link_config(link, plan));
}

/// The endpoint's status of the other side.
pub(super) fn status(endpoint: &mut Endpoint, now: Instant) -> PeerStatus {
    let peers = endpoint.status(now).peers;
    peers.into_iter().next().expect("each gateway was given the other as its first peer")
}
