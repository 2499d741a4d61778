//! Peers that come and go one by one. Each costs the same however many others there are: nothing
//! here looks at all of them.

use super::Endpoint;
use super::peer::Peer;
use crate::config::PeerConfig;
use crate::seq::BondIncarnation;
use crate::session::PublicKey;
use crate::time::Instant;
use crate::wire::handshake::SessionIndex;

impl Endpoint {
    /// One more peer, behind all others; it is sought at once if it has an endpoint. Says whether
    /// there was none with its key: else nothing happens. A prefix that another peer has stays that
    /// one's. Leaves the same as [`Self::reconfigure`] with one more peer. Call it with all outputs
    /// drained.
    pub fn add_peer(&mut self, now: Instant, config: PeerConfig) -> bool {
        if self.places.contains_key(&config.public_key) {
            return false;
        }
        let at = self.peers.len();
        self.places.insert(config.public_key, at);
        self.routes.add(at, &config.allowed_ips);
        self.peers.push(Peer::new(config, BondIncarnation(self.rng.u64())));
        if self.peers[at].is_sought() {
            self.initiate(now, at);
        }
        true
    }

    /// A peer goes, and is told so; the last one takes its place in the order. Says whether there
    /// was one with this key. Leaves the same as [`Self::reconfigure`] with the peers that are
    /// left. Call it with all outputs drained.
    pub fn remove_peer(&mut self, now: Instant, key: &PublicKey) -> bool {
        let Some(at) = self.places.remove(key) else { return false };
        self.places_version += 1;
        let peer = self.peers.swap_remove(at);
        self.routes.pass_on(at, None, &peer.config.allowed_ips);
        for index in indices(&peer) {
            self.sessions.remove(&index);
        }
        let last = self.peers.len();
        if at < last {
            let moved = &self.peers[at];
            self.places.insert(moved.config.public_key, at);
            self.routes.pass_on(last, Some(at), &moved.config.allowed_ips);
            self.sessions.extend(indices(moved).map(|index| (index, at)));
        }
        self.dismiss(now, peer);
        true
    }
}

/// What the table of sessions holds of a peer.
fn indices(peer: &Peer) -> impl Iterator<Item = SessionIndex> + '_ {
    let bonds = peer.bond.iter().chain(&peer.next_bond);
    let of_bonds = bonds.flat_map(|named| named.bond.session_indices());
    of_bonds.chain(peer.attempts.state.iter().map(|state| state.local))
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::config::{
        BondConfig, EndpointConfig, LinkConfig, LossDetection, Order, Prefix, RekeyLimits, SocketId,
    };
    use crate::resequencer::ResequencerConfig;
    use crate::rng::Rng;
    use crate::scheduler::SchedulerConfig;
    use crate::session::{PresharedKey, PrivateKey};
    use crate::time::Duration;
    use crate::wire::dscp::Dscps;

    fn peer(number: u8) -> PeerConfig {
        let endpoint = ([192, 0, 2, number], 7788).into();
        let network =
            |first: u8, length| Prefix { address: Ipv4Addr::new(10, first, 0, 0).into(), length };
        PeerConfig {
            public_key: PublicKey::from_bytes([number + 1; 32]),
            preshared_key: PresharedKey::default(),
            endpoints: if number.is_multiple_of(3) { vec![endpoint] } else { Vec::new() },
            // Every fourth network is around those of its neighbours.
            allowed_ips: vec![
                network(number, if number.is_multiple_of(4) { 14 } else { 16 }),
                network(number, 24),
            ],
            keepalive: Duration::from_secs(25),
        }
    }

    fn endpoint(peers: Vec<PeerConfig>) -> Endpoint {
        let link = LinkConfig {
            socket: SocketId(1),
            name: "dsl".into(),
            price: 0,
            weight: 1,
            standby: false,
            metered: false,
        };
        let config = EndpointConfig {
            private_key: PrivateKey::from_bytes([200; 32]),
            wall_clock_at_zero: Duration::from_secs(1_700_000_000),
            links: vec![link],
            bond: BondConfig {
                scheduler: SchedulerConfig::default(),
                congestion: None,
                order: Order::Flow,
                unordered: Dscps::default(),
                resequencer: ResequencerConfig::default(),
                loss_detection: LossDetection::Known,
                report_interval: Duration::from_millis(50),
                inner_mtu: 1440,
                rekey: RekeyLimits::default(),
                release: None,
            },
        };
        Endpoint::new(config, peers, Rng::from_seed([5; 32]))
    }

    fn drain(endpoint: &mut Endpoint, now: Instant) -> usize {
        let mut sent = 0;
        while endpoint.poll_transmit().is_some() {
            sent += 1;
        }
        while endpoint.poll_deliver().is_some() {}
        while endpoint.poll_event().is_some() {}
        endpoint.poll_timeout(now);
        sent
    }

    /// Keys in the order of the status, and the state of each that nobody seeks.
    fn seen(endpoint: &mut Endpoint, now: Instant) -> Vec<(String, String)> {
        let peers = endpoint.status(now).peers.into_iter();
        let state = |state: String| if state == "connecting" { "down".into() } else { state };
        peers.map(|peer| (peer.public_key, state(peer.state))).collect()
    }

    proptest! {
        #[test]
        fn one_by_one_leaves_the_same_as_a_whole_configuration(
            changes in vec(0..30_u8, 1..80),
            before in 0..20_u8,
        ) {
            let now = Instant::from_millis(5);
            let first: Vec<PeerConfig> = (0..before).map(peer).collect();
            let mut order: Vec<u8> = (0..before).collect();
            let mut endpoint = endpoint(first.clone());
            let mut other = super::tests::endpoint(first);
            for change in changes {
                match order.iter().position(|known| *known == change) {
                    Some(at) => {
                        order.swap_remove(at);
                        prop_assert!(endpoint.remove_peer(now, &peer(change).public_key));
                        prop_assert!(!endpoint.remove_peer(now, &peer(change).public_key));
                        drain(&mut endpoint, now);
                    }
                    None => {
                        order.push(change);
                        prop_assert!(endpoint.add_peer(now, peer(change)));
                        prop_assert_eq!(drain(&mut endpoint, now) > 0, change.is_multiple_of(3));
                        prop_assert!(!endpoint.add_peer(now, peer(change)));
                    }
                }
            }
            let bond = other.bond_config().clone();
            other.reconfigure(now, order.iter().map(|at| peer(*at)).collect(), bond);
            drain(&mut other, now);
            prop_assert_eq!(&endpoint.routes, &other.routes);
            prop_assert_eq!(&endpoint.places, &other.places);
            prop_assert_eq!(endpoint.sessions.len(), order.iter().filter(|at| {
                at.is_multiple_of(3) && endpoint.peers[endpoint.places[&peer(**at).public_key]]
                    .attempts.state.is_some()
            }).count());
            for (index, at) in &endpoint.sessions {
                prop_assert!(indices(&endpoint.peers[*at]).any(|known| known == *index));
            }
            prop_assert_eq!(seen(&mut endpoint, now), seen(&mut other, now));
            // Whoever has something due is found in time, at whatever place it stands now.
            let due = endpoint.peers.iter().filter_map(|peer| peer.attempts.next_at).min();
            prop_assert_eq!(endpoint.poll_timeout(now), due);
            endpoint.handle_timeout(Instant::from_millis(10_000));
            let late = endpoint.peers.iter().filter_map(|p| p.attempts.next_at);
            prop_assert!(late.min().is_none_or(|next| next > Instant::from_millis(10_000)));
        }
    }
}
