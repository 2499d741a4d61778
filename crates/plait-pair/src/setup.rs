//! What a pair is made from.

use plait_proto::config::{BondConfig, LinkConfig, LossDetection, Order, PeerConfig, RekeyLimits};
use plait_proto::endpoint::Endpoint;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::{Algorithm, SchedulerConfig};
use plait_proto::session::PresharedKey;
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::dscp::Dscps;

use crate::gateway::{
    CUSTOMER, Gateway, WALL_CLOCK_AT_ZERO, link_config, provider_address, public_key,
};

/// What an endpoint is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input<'a> {
    /// A packet of its host.
    Packet,
    /// A datagram of these bytes.
    Datagram(&'a [u8]),
}

/// Gives an endpoint its input by calling the last argument once, and may inspect the endpoint
/// before and after.
pub type Watch = fn(&mut Endpoint, Instant, Input<'_>, &mut dyn FnMut(&mut Endpoint));

/// What a pair is made from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Links of the customer.
    pub links: usize,
    /// The links of these numbers are metered.
    pub metered: Vec<usize>,
    /// The links of these numbers stand by.
    pub standby: Vec<usize>,
    /// Outer addresses are IPv6.
    pub ipv6: bool,
    /// The provider describes its own link, too.
    pub provider_link: bool,
    /// The provider knows the customer's first address and initiates too.
    pub both_seek: bool,
    /// The preshared key in each side's configuration.
    pub psk: [PresharedKey; 2],
    /// How bonds behave at both sides.
    pub bond: BondConfig,
    /// The provider's peers besides the customer.
    pub others: Vec<PeerConfig>,
    /// The seed of a side's random numbers after so many restarts.
    pub seed: fn(usize, u8) -> [u8; 32],
    /// Sees every input.
    pub watch: Watch,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            links: 2,
            metered: Vec::new(),
            standby: Vec::new(),
            ipv6: false,
            provider_link: true,
            both_seek: false,
            psk: [PresharedKey::default(), PresharedKey::default()],
            bond: bond_config(Algorithm::RoundRobin, Order::Bond),
            others: Vec::new(),
            seed: |side, restarts| [restarts.wrapping_add(1 + 100 * side as u8); 32],
            watch: |side, _, _, act| act(side),
        }
    }
}

/// A bond in an open loop, with defaults otherwise.
pub fn bond_config(algorithm: Algorithm, order: Order) -> BondConfig {
    BondConfig {
        scheduler: SchedulerConfig { algorithm, ..SchedulerConfig::default() },
        congestion: None,
        order,
        unordered: Dscps::default(),
        resequencer: ResequencerConfig::default(),
        loss_detection: LossDetection::Known,
        report_interval: Duration::from_millis(50),
        inner_mtu: 1440,
        rekey: RekeyLimits::default(),
        release: None,
    }
}

impl Setup {
    /// A side's gateway, after so many restarts, its wall clock so many seconds ahead.
    pub(crate) fn gateway(&self, side: usize, restarts: u8, ahead_s: u64) -> Gateway {
        let is_customer = side == CUSTOMER;
        Gateway {
            side,
            wall_clock_at_zero: WALL_CLOCK_AT_ZERO + Duration::from_secs(ahead_s),
            links: self.links_of(side),
            bond: self.bond.clone(),
            seeks: match side {
                CUSTOMER => vec![provider_address(self.ipv6)],
                _ if self.both_seek => vec![([10, 1, 0, 1], 1000).into()],
                _ => Vec::new(),
            },
            other: public_key(1 - side),
            psk: self.psk[side].clone(),
            others: if is_customer { Vec::new() } else { self.others.clone() },
            seed: (self.seed)(side, restarts),
        }
    }

    fn links_of(&self, side: usize) -> Vec<LinkConfig> {
        let count = match side {
            CUSTOMER => self.links,
            _ => usize::from(self.provider_link).min(self.links),
        };
        let link = |at: usize| LinkConfig {
            standby: self.standby.contains(&at),
            metered: self.metered.contains(&at),
            ..link_config(at as u16)
        };
        (0..count).map(link).collect()
    }
}
