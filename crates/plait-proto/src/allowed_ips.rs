//! Which inner addresses belong to which peer.

use core::net::IpAddr;
use std::sync::Arc;

use prefix_trie::PrefixMap;

use crate::config::Prefix;
use crate::drop_reason::DropReason;
use crate::wire::ip::Inner;

impl Prefix {
    /// Whether the prefix holds the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let difference = network.to_bits() ^ address.to_bits();
                difference.checked_shr(32 - u32::from(self.length.min(32))).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let difference = network.to_bits() ^ address.to_bits();
                difference.checked_shr(128 - u32::from(self.length.min(128))).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// So many prefixes are compared one after the other. Most gateways have one or two, and two walks
/// down a trie were a tenth of what a packet costs in the simulator.
const FEW: usize = 8;

/// A network, its mask, and whose it is.
type Network<A, P> = (A, A, P);

/// To which peer each inner address belongs: the one with the longest prefix that holds it, over
/// all peers (spec R-5).
#[derive(Clone, Debug)]
pub struct Routes<P> {
    ipv4: PrefixMap<(u32, u8), P>,
    ipv6: PrefixMap<(u128, u8), P>,
    /// The same, longest first, where there are no more than [`FEW`].
    few_ipv4: Option<Vec<Network<u32, P>>>,
    few_ipv6: Option<Vec<Network<u128, P>>>,
}

impl<P> Default for Routes<P> {
    fn default() -> Self {
        let (few_ipv4, few_ipv6) = (Some(Vec::new()), Some(Vec::new()));
        Self { ipv4: PrefixMap::new(), ipv6: PrefixMap::new(), few_ipv4, few_ipv6 }
    }
}

impl<P: Copy> Routes<P> {
    /// Routes the prefixes of each peer to it. Of two peers with the same prefix, which the
    /// configuration refuses, the first has it.
    pub fn new<'a>(peers: impl IntoIterator<Item = (P, &'a [Prefix])>) -> Self {
        let mut routes = Self::default();
        for (peer, prefixes) in peers {
            for prefix in prefixes {
                routes.add(prefix, peer);
            }
        }
        let masked = |length: u8| u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        routes.few_ipv4 = few(routes
            .ipv4
            .iter()
            .map(|((network, length), &peer)| (network & masked(length), masked(length), peer)));
        let masked = |length: u8| u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
        routes.few_ipv6 = few(routes
            .ipv6
            .iter()
            .map(|((network, length), &peer)| (network & masked(length), masked(length), peer)));
        routes
    }

    fn add(&mut self, prefix: &Prefix, peer: P) {
        match prefix.address {
            IpAddr::V4(network) => {
                let length = prefix.length.min(32);
                self.ipv4.entry((network.to_bits(), length)).or_insert(peer);
            }
            IpAddr::V6(network) => {
                let length = prefix.length.min(128);
                self.ipv6.entry((network.to_bits(), length)).or_insert(peer);
            }
        }
    }

    /// The peer that an address belongs to.
    pub fn peer_of(&self, address: IpAddr) -> Option<P> {
        match (address, &self.few_ipv4, &self.few_ipv6) {
            (IpAddr::V4(ip), Some(few), _) => longest(few, ip.to_bits()),
            (IpAddr::V6(ip), _, Some(few)) => longest(few, ip.to_bits()),
            (IpAddr::V4(ip), None, _) => {
                self.ipv4.get_lpm(&(ip.to_bits(), 32)).map(|(_, peer)| *peer)
            }
            (IpAddr::V6(ip), _, None) => {
                self.ipv6.get_lpm(&(ip.to_bits(), 128)).map(|(_, peer)| *peer)
            }
        }
    }
}

/// The networks, longest first, if there are few.
fn few<A: Ord + Copy, P: Copy>(
    networks: impl Iterator<Item = Network<A, P>>,
) -> Option<Vec<Network<A, P>>> {
    let mut few: Vec<Network<A, P>> = networks.take(FEW + 1).collect();
    // A longer mask is the larger number.
    few.sort_by_key(|(_, mask, _)| core::cmp::Reverse(*mask));
    (few.len() <= FEW).then_some(few)
}

/// Whose network holds the address, of several the longest one's.
fn longest<A, P: Copy>(few: &[Network<A, P>], address: A) -> Option<P>
where
    A: Copy + PartialEq + core::ops::BitAnd<Output = A>,
{
    let holder = few.iter().find(|(network, mask, _)| address & *mask == *network);
    holder.map(|(_, _, peer)| *peer)
}

/// The inner sources of one peer, as all bonds of a gateway see them.
#[derive(Clone, Debug)]
pub struct Sources {
    routes: Arc<Routes<usize>>,
    peer: usize,
}

impl Sources {
    /// What of `routes` belongs to `peer`, by its place in the configuration.
    pub const fn new(routes: Arc<Routes<usize>>, peer: usize) -> Self {
        Self { routes, peer }
    }

    /// Refuses a packet whose source does not belong to the peer (spec R-5).
    ///
    /// # Errors
    /// [`DropReason::SourceNotAllowed`].
    pub fn check(&self, inner: &Inner) -> Result<(), DropReason> {
        let is_own = self.routes.peer_of(inner.source) == Some(self.peer);
        if is_own { Ok(()) } else { Err(DropReason::SourceNotAllowed) }
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix { address: text.parse().expect("an address"), length }
    }

    #[test]
    fn prefixes_hold_what_they_should() {
        let v4 = |text: &str| text.parse::<IpAddr>().expect("an address");
        assert!(prefix("0.0.0.0", 0).contains(v4("203.0.113.9")));
        assert!(!prefix("0.0.0.0", 0).contains(v4("2001:db8::1")));
        assert!(prefix("10.1.2.0", 24).contains(v4("10.1.2.255")));
        assert!(!prefix("10.1.2.0", 24).contains(v4("10.1.3.0")));
        assert!(prefix("10.1.2.3", 32).contains(v4("10.1.2.3")));
        assert!(!prefix("10.1.2.3", 32).contains(v4("10.1.2.2")));
        assert!(prefix("2001:db8::", 32).contains(v4("2001:db8:ffff::1")));
        assert!(prefix("::", 0).contains(v4("2001:db8::1")));
        assert!(!prefix("fd00::1", 128).contains(v4("fd00::2")));
    }

    #[test]
    fn the_longest_prefix_of_all_peers_counts() {
        let v6 = [prefix("fd00::", 8), prefix("10.0.0.0", 8)];
        let nested = [prefix("10.1.0.0", 16), prefix("fd00:1::", 32)];
        let all = [prefix("0.0.0.0", 0)];
        let routes = Routes::new([(1, &v6[..]), (2, &nested[..]), (3, &all[..]), (4, &v6[..])]);
        let peer_of = |text: &str| routes.peer_of(text.parse().expect("an address"));
        assert_eq!(peer_of("10.2.0.1"), Some(1));
        assert_eq!(peer_of("10.1.0.1"), Some(2));
        assert_eq!(peer_of("192.0.2.1"), Some(3));
        assert_eq!(peer_of("fd00:1::9"), Some(2));
        assert_eq!(peer_of("fd00:2::9"), Some(1), "the first of two has it");
        assert_eq!(peer_of("2001:db8::1"), None);
        assert_eq!(Routes::<u8>::default().peer_of(IpAddr::from([0, 0, 0, 0])), None);
    }

    #[test]
    fn many_ipv6_networks_are_found_as_few_are() {
        let nested: Vec<Prefix> = (0..20).map(|step| prefix("fd00:1234::", 16 + step)).collect();
        for count in [1, FEW, FEW + 1, nested.len()] {
            let own = nested.iter().take(count).enumerate();
            let routes = Routes::new(own.map(|(at, prefix)| (at, core::slice::from_ref(prefix))));
            let peer_of = |text: &str| routes.peer_of(text.parse().expect("an address"));
            assert_eq!(peer_of("fd00:1234::5"), Some(count - 1), "of {count}");
            assert_eq!(peer_of("fd00:ffff::5"), Some(0), "of {count}");
            assert_eq!(peer_of("fe80::1"), None, "of {count}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_search_of_all_prefixes(
            prefixes in vec((any::<u32>(), 0_u8..=32), 1..30),
            addresses in vec(any::<u32>(), 1..60),
        ) {
            let network = |(bits, length): (u32, u8)| {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                Prefix { address: Ipv4Addr::from_bits(bits & mask).into(), length }
            };
            let prefixes: Vec<Prefix> = prefixes.into_iter().map(network).collect();
            let routes = Routes::new(prefixes.iter().enumerate().map(|(at, p)| {
                (at, core::slice::from_ref(p))
            }));
            let near = prefixes.iter().map(|prefix| prefix.address);
            let others = addresses.iter().map(|bits| Ipv4Addr::from_bits(*bits).into());
            for address in near.chain(others) {
                let holding = prefixes.iter().enumerate().filter(|(_, p)| p.contains(address));
                let longest = holding.rev().max_by_key(|(_, p)| p.length).map(|(at, _)| at);
                prop_assert_eq!(routes.peer_of(address), longest);
            }
        }
    }
}
