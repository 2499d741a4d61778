//! Converts the configuration to the protocol's types.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig, PeerConfig, Prefix, RekeyLimits, SocketId,
};
use plait_proto::wire::control::Release;

use super::{Config, Endpoint, PathConfig, Peer};

impl Config {
    /// The peers in the order of the file; `addresses_of` gives the known addresses of an endpoint.
    pub(crate) fn peer_configs(
        &self,
        addresses_of: impl Fn(&Endpoint) -> Vec<SocketAddr>,
    ) -> Vec<PeerConfig> {
        self.peers.iter().map(|peer| peer.config(&addresses_of)).collect()
    }

    /// The prefixes of all peers.
    pub(crate) fn allowed_prefixes(&self) -> Vec<Prefix> {
        let prefixes = self.peers.iter().flat_map(|peer| &peer.allowed_ips);
        prefixes.map(|prefix| prefix.value.into()).collect()
    }

    /// The link of a gateway that has no `[[path]]`: its listening socket.
    pub(crate) fn listening_link(&self, socket: SocketId) -> Option<LinkConfig> {
        let name = "any".to_owned();
        let (standby, metered) = (false, false);
        let link = LinkConfig { socket, name, price: 0, weight: 1, standby, metered };
        self.paths.is_empty().then_some(link)
    }

    /// The endpoint's configuration. `wall_clock_at_zero` is the time since the Unix epoch at the
    /// daemon's instant zero.
    pub(crate) fn endpoint(
        &self,
        links: Vec<LinkConfig>,
        inner_mtu: u16,
        wall_clock_at_zero: Duration,
    ) -> EndpointConfig {
        EndpointConfig {
            private_key: self.gateway.private_key.clone(),
            wall_clock_at_zero,
            links,
            bond: self.bond(inner_mtu),
        }
    }

    /// How bonds behave.
    pub(crate) fn bond(&self, inner_mtu: u16) -> BondConfig {
        BondConfig {
            scheduler: self.tuning.scheduler.clone(),
            congestion: self.tuning.congestion,
            order: self.tuning.order,
            unordered: self.tuning.unordered,
            resequencer: self.tuning.resequencer,
            loss_detection: self.tuning.loss_detection,
            report_interval: self.tuning.report_interval(),
            inner_mtu,
            rekey: RekeyLimits::default(),
            release: Release::parse(env!("CARGO_PKG_VERSION")),
        }
    }
}

impl Peer {
    /// The peer; `addresses_of` gives the known addresses of an endpoint.
    pub(crate) fn config(&self, addresses_of: impl Fn(&Endpoint) -> Vec<SocketAddr>) -> PeerConfig {
        let first: Vec<_> = self.endpoints.iter().flat_map(|e| addresses_of(&e.value)).collect();
        let mut endpoints = first.clone();
        for port in &self.more_ports {
            let more = first.iter().map(|address| SocketAddr::new(address.ip(), *port));
            endpoints.extend(more);
        }
        // A host may be there under several of its ports already.
        let mut seen = BTreeSet::new();
        endpoints.retain(|address| seen.insert(*address));
        PeerConfig {
            public_key: self.public_key.value,
            preshared_key: self.preshared_key.clone().unwrap_or_default(),
            endpoints,
            allowed_ips: self.allowed_ips.iter().map(|prefix| prefix.value.into()).collect(),
            keepalive: self.keepalive,
        }
    }
}

impl PathConfig {
    /// The path's link on one interface.
    pub(crate) fn link(&self, socket: SocketId, name: &str) -> LinkConfig {
        LinkConfig {
            socket,
            name: name.to_owned(),
            price: self.price,
            weight: self.weight,
            standby: self.standby,
            metered: self.metered,
        }
    }
}
