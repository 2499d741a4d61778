//! The gateways of a pair: their keys and addresses, and how an endpoint is made from them.

use core::net::{IpAddr, SocketAddr};

use plait_proto::config::{BondConfig, EndpointConfig, LinkConfig, PeerConfig, Prefix, SocketId};
use plait_proto::endpoint::Endpoint;
use plait_proto::output::Transmit;
use plait_proto::path::Route;
use plait_proto::rng::Rng;
use plait_proto::session::{PresharedKey, PrivateKey, PublicKey};
use plait_proto::time::Duration;

/// The side with the links: it initiates.
pub const CUSTOMER: usize = 0;
/// The side with one address: it responds.
pub const PROVIDER: usize = 1;

/// Inner address of the customer's host.
pub const CUSTOMER_IP: [u8; 4] = [10, 99, 0, 2];
/// Inner address of the provider's host.
pub const PROVIDER_IP: [u8; 4] = [10, 99, 0, 1];
/// Inner address of each side's host.
pub const INNER_IPS: [[u8; 4]; 2] = [CUSTOMER_IP, PROVIDER_IP];

/// What wall clocks show at virtual time zero, since 1970.
pub const WALL_CLOCK_AT_ZERO: Duration = Duration::from_secs(1_700_000_000);
/// How often an idle path sends a keepalive.
pub const KEEPALIVE: Duration = Duration::from_secs(25);

/// The key of a side.
pub fn private_key(side: usize) -> PrivateKey {
    PrivateKey::from_bytes([side as u8 + 1; 32])
}

/// The public key of a side.
pub fn public_key(side: usize) -> PublicKey {
    private_key(side).public_key()
}

/// The provider's outer address.
pub fn provider_address(ipv6: bool) -> SocketAddr {
    if ipv6 {
        (IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]), 7788).into()
    } else {
        ([192, 0, 2, 1], 7788).into()
    }
}

/// The customer's end of link number `at`. Each link has a higher price than the one before.
pub fn link_config(at: u16) -> LinkConfig {
    LinkConfig {
        socket: SocketId(at),
        name: format!("link{at}"),
        price: at as u8,
        weight: 1,
        standby: false,
        metered: false,
    }
}

/// The route by which a datagram from this address reaches a side over a link.
pub fn route(to: usize, link: usize, from: SocketAddr) -> Route {
    let socket = if to == CUSTOMER { SocketId(link as u16) } else { SocketId(0) };
    Route { socket, remote: from, local: None }
}

/// The datagrams of a transmit, one by one.
pub fn datagrams<'a>(transmit: &Transmit<'a>) -> impl Iterator<Item = &'a [u8]> {
    let size = transmit.segment_size.unwrap_or(transmit.contents.len());
    transmit.contents.chunks(size.max(1))
}

/// What one gateway of a pair is made from.
#[derive(Clone, Debug)]
pub struct Gateway {
    /// [`CUSTOMER`] or [`PROVIDER`].
    pub side: usize,
    /// What its wall clock shows at virtual time zero, since 1970.
    pub wall_clock_at_zero: Duration,
    /// The links that it knows of.
    pub links: Vec<LinkConfig>,
    /// How its bonds behave.
    pub bond: BondConfig,
    /// Addresses at which it contacts the other side; without any it waits to be contacted.
    pub seeks: Vec<SocketAddr>,
    /// The key by which it knows the other side.
    pub other: PublicKey,
    /// The preshared key that it shares with the other side.
    pub psk: PresharedKey,
    /// Its peers besides the other side.
    pub others: Vec<PeerConfig>,
    /// Seed of all its random numbers; different for every process.
    pub seed: [u8; 32],
}

impl Gateway {
    /// The other side, as this one's configuration describes it.
    pub fn peer(&self) -> PeerConfig {
        PeerConfig {
            public_key: self.other,
            preshared_key: self.psk.clone(),
            endpoints: self.seeks.clone(),
            allowed_ips: vec![Prefix { address: INNER_IPS[1 - self.side].into(), length: 32 }],
            keepalive: KEEPALIVE,
        }
    }

    /// All its peers, the other side first.
    pub fn peers(&self) -> Vec<PeerConfig> {
        core::iter::once(self.peer()).chain(self.others.iter().cloned()).collect()
    }

    /// The gateway, not started yet, as `new` makes one: [`Endpoint::new`] or its like.
    pub fn build(
        self,
        new: impl FnOnce(EndpointConfig, Vec<PeerConfig>, Rng) -> Endpoint,
    ) -> Endpoint {
        let peers = self.peers();
        let config = EndpointConfig {
            private_key: private_key(self.side),
            wall_clock_at_zero: self.wall_clock_at_zero,
            links: self.links,
            bond: self.bond,
        };
        new(config, peers, Rng::from_seed(self.seed))
    }
}
