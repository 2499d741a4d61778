//! Peers that come and go while the gateway runs, one by one: what else follows them costs the same
//! however many others there are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::endpoint::Endpoint;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;
use plait_toml::hook::HookEvent;

use super::Operations;
use crate::config::{Config, Nat, PEERS_MAX, Peer};
use crate::control::message::PeerTold;
use crate::daemon::advertisements;
use crate::daemon::hooks::News;
use crate::daemon::nat;
use crate::daemon::reach::Reach;
use crate::daemon::runtime::RefusedChange;

/// NAT follows new peers after this: one call of `nft` for all that come within it.
const NAT_PAUSE: Duration = Duration::from_millis(100);
/// News that wait to be told.
const NEWS_MAX: usize = 1000;
/// RFC 8200 section 5.
const IPV6_MTU_MIN: u16 = 1280;

/// Finds peers and prefixes of a configuration.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: BTreeMap<PublicKey, usize>,
    prefixes: BTreeMap<Prefix, PublicKey>,
    /// Whether any prefix is IPv4, and whether any is IPv6.
    families: [bool; 2],
}

impl Index {
    pub(super) fn of(config: &Config) -> Self {
        let mut index = Self::default();
        for (at, peer) in config.peers.iter().enumerate() {
            index.add(at, peer);
        }
        index
    }

    fn add(&mut self, at: usize, peer: &Peer) {
        let key = peer.public_key.value;
        self.places.insert(key, at);
        for prefix in prefixes(peer) {
            self.prefixes.insert(prefix, key);
            self.families[usize::from(prefix.address.is_ipv6())] = true;
        }
    }

    /// A route of a peer that is gone: whether another peer's prefix asks for it, too.
    fn still_asks_for(&self, route: &Prefix) -> bool {
        let everything = Prefix { length: 0, ..unspecified(route.address) };
        self.prefixes.contains_key(route)
            || (route.length == 1 && self.prefixes.contains_key(&everything))
    }
}

fn unspecified(like: IpAddr) -> Prefix {
    let address = if like.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    Prefix { address, length: 0 }
}

fn prefixes(peer: &Peer) -> impl Iterator<Item = Prefix> + '_ {
    peer.allowed_ips.iter().map(|prefix| prefix.value.into())
}

/// What NAT has yet to follow.
#[derive(Debug, Default)]
pub(super) struct NatChanges {
    more: Vec<Prefix>,
    /// Some are gone.
    anew: bool,
    due: Option<Instant>,
}

impl NatChanges {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    fn expect(&mut self, now: Instant) {
        self.due.get_or_insert(now + NAT_PAUSE);
    }
}

impl Operations {
    /// Adds peers, all of them or none. Returns what looks unintended.
    ///
    /// # Errors
    /// What is wrong with the first that cannot be added.
    pub(in crate::daemon) fn add_peers(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        reach: &mut Reach,
        peers: Vec<Peer>,
    ) -> Result<Vec<String>, RefusedChange> {
        self.check_new(&peers)?;
        let mut warnings = Vec::new();
        for peer in peers {
            warnings.extend(self.looks_odd(&peer));
            reach.peer_came(now, &peer);
            let config = peer.config(|endpoint| reach.names.addresses(endpoint));
            warnings.extend(self.host_follows_new(now, &config));
            self.measurements.add(&self.config, &peer);
            self.index.add(self.config.peers.len(), &peer);
            self.tell_new_peer(&peer.public_key.value);
            self.config.peers.push(peer);
            self.peers.push(config.clone());
            endpoint.add_peer(now, config);
        }
        Ok(warnings)
    }

    fn tell_new_peer(&mut self, key: &PublicKey) {
        // Many at once are more than any hook is told of.
        if self.news.len() < NEWS_MAX {
            let (peer, path, reason) = (Some(key.to_string()), None, None);
            self.news.push(News { event: HookEvent::PeerNew, peer, path, reason });
        }
    }

    /// Another configuration has these peers.
    pub(super) fn tell_new_peers(&mut self, index: &Index) {
        let is_new = |key: &&PublicKey| !self.index.places.contains_key(key);
        let new: Vec<PublicKey> = index.places.keys().filter(is_new).copied().collect();
        new.iter().for_each(|key| self.tell_new_peer(key));
    }

    /// What a file's checks find between peers.
    fn check_new(&self, peers: &[Peer]) -> Result<(), RefusedChange> {
        if self.config.peers.len() + peers.len() > PEERS_MAX {
            return Err(RefusedChange::TooMany);
        }
        let gateway = &self.config.gateway;
        let (mut keys, mut taken) = (BTreeMap::new(), BTreeMap::new());
        for peer in peers {
            let key = peer.public_key.value;
            if key == gateway.public_key {
                return Err(RefusedChange::OwnKey(key));
            }
            if self.index.places.contains_key(&key) || keys.insert(key, ()).is_some() {
                return Err(RefusedChange::SamePeer(key));
            }
            if peer.endpoints.is_empty() && gateway.listen_port.is_none() {
                return Err(RefusedChange::NobodyCalls(key));
            }
            for prefix in prefixes(peer) {
                let other = self.index.prefixes.get(&prefix).copied();
                if let Some(other) = other.or_else(|| taken.insert(prefix, key)) {
                    return Err(RefusedChange::SamePrefix { prefix, other });
                }
                if let Some(mtu) = gateway.mtu.filter(|mtu| *mtu < IPV6_MTU_MIN)
                    && prefix.address.is_ipv6()
                {
                    return Err(RefusedChange::MtuTooSmallForIpv6 { mtu });
                }
            }
        }
        Ok(())
    }

    /// What a file's check would warn of.
    fn looks_odd(&self, peer: &Peer) -> Vec<String> {
        let key = peer.public_key.value;
        let mut warnings = Vec::new();
        if peer.allowed_ips.is_empty() {
            warnings.push(format!("{key}: without allowed_ips nothing is sent to it or taken"));
        }
        for (_, written, network) in &peer.cleared_host_bits {
            warnings.push(format!("{key}: {written} is taken as {network}"));
        }
        if peer.measure == Some(true) && !self.serves_measurements {
            warnings.push(format!("{key}: measuring needs a restart: its service does not run"));
        }
        let own = |prefix: &Prefix| {
            let bits = if prefix.address.is_ipv4() { 32 } else { 128 };
            let addresses = &self.config.gateway.addresses;
            prefix.length == bits && addresses.iter().any(|own| own.address == prefix.address)
        };
        for prefix in prefixes(peer).filter(own) {
            warnings.push(format!("{key}: {} is this gateway's own address too", prefix.address));
        }
        warnings
    }

    /// Routes, forwarding and NAT of one more peer. Returns what failed, with its remedy.
    fn host_follows_new(&mut self, now: Instant, peer: &PeerConfig) -> Vec<String> {
        let gateway = &self.config.gateway;
        let mut failed = Vec::new();
        if gateway.routes {
            for error in self.routes.add_all(&peer.allowed_ips) {
                failed.push(format!("{error} ({})", error.help()));
            }
        }
        let new = nat::families(&peer.allowed_ips);
        let known = self.index.families;
        if gateway.forward && (new[0] && !known[0] || new[1] && !known[1]) {
            let links = advertisements::links_of(&self.config);
            if let Err(error) = nat::forward(&mut self.file, new[0], new[1], &links) {
                failed.push(format!("{error} ({})", error.help()));
            }
        }
        if gateway.nat != Nat::Off {
            self.nat.more.extend(&peer.allowed_ips);
            self.nat.expect(now);
        }
        failed
    }

    /// Removes a peer; the last one takes its place.
    ///
    /// # Errors
    /// There is none with this key, or no other.
    pub(in crate::daemon) fn remove_peer(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        key: &PublicKey,
    ) -> Result<Peer, RefusedChange> {
        let known = self.index.places.get(key).copied();
        let at = known.ok_or(RefusedChange::NoPeer(*key))?;
        if self.config.peers.len() == 1 {
            return Err(RefusedChange::OnlyPeer);
        }
        self.index.places.remove(key);
        let peer = self.config.peers.swap_remove(at);
        let config = self.peers.swap_remove(at);
        if let Some(moved) = self.config.peers.get(at) {
            self.index.places.insert(moved.public_key.value, at);
        }
        for prefix in &config.allowed_ips {
            self.index.prefixes.remove(prefix);
        }
        endpoint.remove_peer(now, key);
        self.measurements.remove(&key.to_string());
        if self.config.gateway.routes {
            let index = &self.index;
            self.routes.remove_all(&config.allowed_ips, |route| index.still_asks_for(route));
        }
        if self.config.gateway.nat != Nat::Off {
            self.nat.anew = true;
            self.nat.expect(now);
        }
        Ok(peer)
    }

    /// Lets NAT follow the peers that came and went.
    pub(super) fn follow_with_nat(&mut self) {
        let changes = std::mem::take(&mut self.nat);
        let result = if changes.anew {
            nat::set_nat(&self.config, &super::prefixes(&self.peers), &mut self.file)
        } else {
            nat::hide_more(&self.config, &changes.more)
        };
        if let Err(error) = result {
            log::error!("{error} ({}); NAT does not follow the peers", error.help());
        }
    }

    /// The peers, as the control socket tells them.
    pub(in crate::daemon) fn list_peers(&self, endpoint: &Endpoint) -> Vec<PeerTold> {
        let up: BTreeMap<PublicKey, bool> =
            endpoint.contacts().map(|contact| (contact.peer, contact.is_up)).collect();
        let text = |cidr: &plait_toml::value::Cidr| cidr.to_string();
        let told = self.config.peers.iter().map(|peer| PeerTold {
            public_key: peer.public_key.value.to_string(),
            endpoint: peer.endpoints.iter().map(|end| end.value.to_string()).collect(),
            allowed_ips: peer.allowed_ips.iter().map(|prefix| text(&prefix.value)).collect(),
            keepalive_s: peer.keepalive.as_secs(),
            has_preshared_key: peer.preshared_key.is_some(),
            measure: peer.measure,
            up: up.get(&peer.public_key.value).copied().unwrap_or_default(),
        });
        told.collect()
    }
}
