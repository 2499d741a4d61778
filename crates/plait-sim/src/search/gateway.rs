//! The gateways of the search.

use core::net::SocketAddr;

use plait_pair::{CUSTOMER, Gateway, PROVIDER, WALL_CLOCK_AT_ZERO, private_key};
use plait_proto::config::{BondConfig, LinkConfig, LossDetection, Order, RekeyLimits};
use plait_proto::endpoint::Endpoint;
use plait_proto::faults::Faults;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::session::PresharedKey;
use plait_proto::time::Duration;
use plait_proto::wire::dscp::Dscps;

use super::network::{PROVIDER_AT, Side};
use super::setup::Setup;

/// The role of a side: the clone has the customer's key.
fn role(side: Side) -> usize {
    match side {
        Side::Customer | Side::Clone => CUSTOMER,
        Side::Provider => PROVIDER,
    }
}

/// A gateway that has not started yet; `seed` differs for every process.
pub(super) fn gateway(
    setup: Setup,
    put_back: Faults,
    side: Side,
    seed: u8,
    customer_at: SocketAddr,
) -> Endpoint {
    let role = role(side);
    let links = if role == PROVIDER { 1 } else { setup.links };
    let link = |at: usize| LinkConfig {
        price: 0,
        metered: setup.metered && role == CUSTOMER,
        ..plait_pair::link_config(at as u16)
    };
    let gateway = Gateway {
        side: role,
        wall_clock_at_zero: WALL_CLOCK_AT_ZERO,
        links: (0..links).map(link).collect(),
        bond: bond_config(),
        seeks: match role {
            CUSTOMER => vec![PROVIDER_AT],
            _ if setup.both_seek => vec![customer_at],
            _ => Vec::new(),
        },
        other: private_key(1 - role).toy_public_key(),
        psk: PresharedKey::default(),
        others: Vec::new(),
        seed: [seed.wrapping_add(100 * side as u8); 32],
    };
    gateway.build(|config, peers, rng| Endpoint::for_search(config, peers, rng, put_back))
}

/// The program's default configuration.
fn bond_config() -> BondConfig {
    BondConfig {
        scheduler: SchedulerConfig::default(),
        congestion: Algorithm::default().default_congestion(),
        order: Order::default(),
        unordered: Dscps::default(),
        resequencer: ResequencerConfig::default(),
        loss_detection: LossDetection::default(),
        report_interval: Duration::from_millis(50),
        inner_mtu: 1440,
        rekey: RekeyLimits::default(),
        release: None,
    }
}

/// An inner UDP packet from a side's host to the other's.
pub(super) fn packet(from: Side, number: u32) -> Vec<u8> {
    plait_pair::packet(role(from), 7, number)
}

/// The number that [`packet`] wrote.
pub(super) fn number(packet: &[u8]) -> Option<u32> {
    packet.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
