//! Which inner addresses belong to which peer.

use core::net::IpAddr;
use std::sync::Arc;

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

/// To which peer each inner address belongs: the one with the longest prefix that holds it, over
/// all peers (spec R-5).
#[derive(Clone, Debug)]
pub struct Routes<P> {
    ipv4: Runs<u32, P>,
    ipv6: Runs<u128, P>,
}

impl<P> Default for Routes<P> {
    fn default() -> Self {
        Self { ipv4: Runs::default(), ipv6: Runs::default() }
    }
}

impl<P: Copy> Routes<P> {
    /// Routes the prefixes of each peer to it. Of two peers with the same prefix, which the
    /// configuration refuses, the first has it.
    pub fn new<'a>(peers: impl IntoIterator<Item = (P, &'a [Prefix])>) -> Self {
        let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
        for (peer, prefixes) in peers {
            for prefix in prefixes {
                match prefix.address {
                    IpAddr::V4(network) => {
                        let length = prefix.length.min(32);
                        let size = 1_u32.checked_shl(32 - u32::from(length));
                        let first = network.to_bits() & !size.unwrap_or(0).wrapping_sub(1);
                        let after = size.and_then(|size| first.checked_add(size));
                        ipv4.push(Network { first, length, after, peer });
                    }
                    IpAddr::V6(network) => {
                        let length = prefix.length.min(128);
                        let size = 1_u128.checked_shl(128 - u32::from(length));
                        let first = network.to_bits() & !size.unwrap_or(0).wrapping_sub(1);
                        let after = size.and_then(|size| first.checked_add(size));
                        ipv6.push(Network { first, length, after, peer });
                    }
                }
            }
        }
        Self { ipv4: Runs::of(ipv4), ipv6: Runs::of(ipv6) }
    }

    /// The peer that an address belongs to.
    pub fn peer_of(&self, address: IpAddr) -> Option<P> {
        match address {
            IpAddr::V4(address) => self.ipv4.owner(address.to_bits()),
            IpAddr::V6(address) => self.ipv6.owner(address.to_bits()),
        }
    }
}

/// A network and whose it is.
struct Network<A, P> {
    first: A,
    length: u8,
    /// The first address behind it; `None` where there are no more.
    after: Option<A>,
    peer: P,
}

/// All addresses of a family, cut into runs with one owner or none. A search among ten thousand
/// peers' takes fifteen comparisons, without a branch; down a trie it was five hundred
/// instructions.
#[derive(Clone, Debug)]
struct Runs<A, P> {
    /// Where each run begins, in order.
    firsts: Vec<A>,
    owners: Vec<Option<P>>,
}

impl<A, P> Default for Runs<A, P> {
    fn default() -> Self {
        Self { firsts: Vec::new(), owners: Vec::new() }
    }
}

impl<A: Copy + Ord, P: Copy> Runs<A, P> {
    fn of(mut networks: Vec<Network<A, P>>) -> Self {
        // The outer network before those in it, and of two that are the same the one given first.
        networks.sort_by_key(|network| (network.first, network.length));
        networks.dedup_by_key(|network| (network.first, network.length));
        let mut runs = Self::default();
        let mut around: Vec<Network<A, P>> = Vec::new();
        for network in networks {
            runs.leave(&mut around, Some(network.first));
            runs.begin(network.first, Some(network.peer));
            around.push(network);
        }
        runs.leave(&mut around, None);
        runs
    }

    /// Ends the networks that do not reach to `until`, the innermost first.
    fn leave(&mut self, around: &mut Vec<Network<A, P>>, until: Option<A>) {
        while let Some(ended) = around.last()
            && until.is_none_or(|until| ended.after.is_some_and(|after| after <= until))
        {
            let after = ended.after;
            around.pop();
            if let Some(after) = after {
                self.begin(after, around.last().map(|outer| outer.peer));
            }
        }
    }

    /// A run from `first` on, in place of one that began there.
    fn begin(&mut self, first: A, owner: Option<P>) {
        if self.firsts.last() == Some(&first) {
            self.firsts.pop();
            self.owners.pop();
        }
        self.firsts.push(first);
        self.owners.push(owner);
    }

    #[inline]
    fn owner(&self, address: A) -> Option<P> {
        let runs = self.firsts.partition_point(|first| *first <= address);
        self.owners.get(runs.checked_sub(1)?).copied().flatten()
    }
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
    use core::net::{Ipv4Addr, Ipv6Addr};

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
        for count in [1, 8, 9, nested.len()] {
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

        /// The same with few addresses, so that networks lie in each other and end together, at
        /// both ends of either family, and at the addresses on both sides of each of their ends.
        #[test]
        fn agrees_with_a_search_at_the_ends_of_networks(
            prefixes in vec((0..8_u32, 0_u8..=32, any::<bool>()), 1..20),
        ) {
            let network = |(three, length, is_v6): (u32, u8, bool)| {
                // Three bits, repeated: the first and the last address of all are among them.
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                let bits = (0..11).fold(0, |bits, _| bits << 3 | three) & mask;
                let address = if is_v6 {
                    Ipv6Addr::from_bits(u128::from(bits) << 96).into()
                } else {
                    Ipv4Addr::from_bits(bits).into()
                };
                (Prefix { address, length }, bits, bits | !mask)
            };
            let all: Vec<(Prefix, u32, u32)> = prefixes.into_iter().map(network).collect();
            let routes = Routes::new(all.iter().enumerate().map(|(at, (prefix, ..))| {
                (at, core::slice::from_ref(prefix))
            }));
            let ends = all.iter().flat_map(|(_, first, last)| {
                [*first, *last, first.wrapping_sub(1), last.wrapping_add(1)]
            });
            for bits in ends {
                let v6 = u128::from(bits) << 96 | (u128::MAX >> 32);
                for address in [Ipv4Addr::from_bits(bits).into(), Ipv6Addr::from_bits(v6).into()] {
                    let holding = all.iter().enumerate().filter(|(_, (p, ..))| p.contains(address));
                    let longest = holding.rev().max_by_key(|(_, (p, ..))| p.length);
                    prop_assert_eq!(routes.peer_of(address), longest.map(|(at, _)| at));
                }
            }
        }
    }
}
