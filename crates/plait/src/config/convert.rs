//! From the file's words to the protocol's types.

use std::net::SocketAddr;
use std::time::Duration;

use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig, PeerConfig, Prefix, RekeyLimits, SocketId,
};
use plait_toml::Place;

use super::prefix::Cidr;
use super::{Config, ConfigError, ConfigErrors, PathConfig, Peer};

/// What a configuration says once the host names in it have been resolved.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The peers, in the order of the file.
    pub(crate) peers: Vec<PeerConfig>,
    /// Largest inner packet in bytes.
    pub(crate) inner_mtu: u16,
}

impl Config {
    /// Asks DNS for the endpoints that are host names.
    ///
    /// # Errors
    ///
    /// Each endpoint that cannot be resolved, with its line.
    pub(crate) fn resolve(&self) -> Result<Resolved, ConfigErrors> {
        let mut errors = Vec::new();
        let peers: Vec<_> =
            self.peers.iter().map(|peer| self.resolve_peer(peer, &mut errors)).collect();
        if let Some(errors) = ConfigErrors::new(errors) {
            return Err(errors);
        }
        let any_ipv6 = peers.iter().flat_map(|peer| &peer.endpoints).any(SocketAddr::is_ipv6);
        Ok(Resolved { inner_mtu: self.inner_mtu(any_ipv6), peers })
    }

    fn resolve_peer(&self, peer: &Peer, errors: &mut Vec<ConfigError>) -> PeerConfig {
        let mut endpoints = Vec::new();
        for endpoint in &peer.endpoints {
            match endpoint.value.resolve() {
                Ok(addresses) => endpoints.extend(addresses),
                Err(problem) => {
                    let place = Place::Line(self.file.as_path().into(), endpoint.line);
                    errors.push(ConfigError::new(place, "[[peer]] endpoint", problem));
                }
            }
        }
        PeerConfig {
            public_key: peer.public_key.value,
            preshared_key: peer.preshared_key.clone().unwrap_or_default(),
            endpoints,
            allowed_ips: peer.allowed_ips.iter().map(|prefix| prefix.value.into()).collect(),
            keepalive: peer.keepalive,
        }
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

    /// What the endpoint is told at its start. `wall_clock_at_zero` is the time since the Unix
    /// epoch at the daemon's instant zero.
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
            resequencer: self.tuning.resequencer,
            loss_detection: self.tuning.loss_detection,
            report_interval: self.tuning.report_interval,
            inner_mtu,
            rekey: RekeyLimits::default(),
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

impl From<Cidr> for Prefix {
    fn from(cidr: Cidr) -> Self {
        let Cidr { address, length } = cidr.network();
        Self { address, length }
    }
}
