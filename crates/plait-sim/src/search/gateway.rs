//! The gateways of the search.

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig, LossDetection, Order, PeerConfig, Prefix, RekeyLimits,
    SocketId,
};
use plait_proto::endpoint::Endpoint;
use plait_proto::faults::Faults;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::rng::Rng;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::session::{PresharedKey, PrivateKey};

use super::network::{PROVIDER_AT, Side};
use super::setup::Setup;

/// The wall clock at the start, in seconds since 1970.
const WALL_CLOCK_S: u64 = 1_700_000_000;
const KEEPALIVE: Duration = Duration::from_secs(25);

fn key(side: Side) -> PrivateKey {
    PrivateKey::from_bytes(match side {
        Side::Customer | Side::Clone => [1; 32],
        Side::Provider => [2; 32],
    })
}

/// The inner address of a side's host.
fn inner(side: Side) -> [u8; 4] {
    match side {
        Side::Customer | Side::Clone => [10, 99, 0, 2],
        Side::Provider => [10, 99, 0, 1],
    }
}

/// A gateway that has not started yet; `seed` is another for every process.
pub(super) fn gateway(
    setup: Setup,
    put_back: Faults,
    side: Side,
    seed: u8,
    customer_at: SocketAddr,
) -> Endpoint {
    let links = if side == Side::Provider { 1 } else { setup.links };
    let link = |at: usize| LinkConfig {
        socket: SocketId(at as u16),
        name: format!("link{at}"),
        price: 0,
        weight: 1,
        standby: false,
        metered: setup.metered && side != Side::Provider,
    };
    let config = EndpointConfig {
        private_key: key(side),
        wall_clock_at_zero: Duration::from_secs(WALL_CLOCK_S),
        links: (0..links).map(link).collect(),
        bond: bond_config(),
    };
    let other = if side == Side::Provider { Side::Customer } else { Side::Provider };
    let peer = PeerConfig {
        public_key: key(other).toy_public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: match side {
            Side::Customer | Side::Clone => vec![PROVIDER_AT],
            Side::Provider if setup.both_seek => vec![customer_at],
            Side::Provider => Vec::new(),
        },
        allowed_ips: vec![Prefix { address: IpAddr::from(inner(other)), length: 32 }],
        keepalive: KEEPALIVE,
    };
    let seed = [seed.wrapping_add(100 * side as u8); 32];
    Endpoint::for_search(config, vec![peer], Rng::from_seed(seed), put_back)
}

/// What the program has by default.
fn bond_config() -> BondConfig {
    BondConfig {
        scheduler: SchedulerConfig::default(),
        congestion: Algorithm::default().default_congestion(),
        order: Order::default(),
        resequencer: ResequencerConfig::default(),
        loss_detection: LossDetection::default(),
        report_interval: Duration::from_millis(50),
        inner_mtu: 1440,
        rekey: RekeyLimits::default(),
    }
}

/// An inner UDP packet from a side's host to the other's.
pub(super) fn packet(from: Side, number: u32) -> [u8; 32] {
    let to = if from == Side::Provider { Side::Customer } else { Side::Provider };
    let mut packet = [0; 32];
    packet[..12].copy_from_slice(&[0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet[12..16].copy_from_slice(&inner(from));
    packet[16..20].copy_from_slice(&inner(to));
    packet[20..28].copy_from_slice(&[0, 7, 0, 9, 0, 12, 0, 0]);
    packet[28..].copy_from_slice(&number.to_be_bytes());
    packet
}

/// The number that [`packet`] wrote.
pub(super) fn number(packet: &[u8]) -> Option<u32> {
    packet.last_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
