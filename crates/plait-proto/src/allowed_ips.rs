//! Which inner addresses belong to which peer.

mod family;

use core::net::IpAddr;

use family::Family;

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
/// all peers (spec R-5). Of two peers with the same prefix, which the configuration refuses, the
/// first has it.
#[derive(Clone, PartialEq, Debug)]
pub struct Routes<P> {
    ipv4: Family<u32, P>,
    ipv6: Family<u128, P>,
}

impl<P> Default for Routes<P> {
    fn default() -> Self {
        Self { ipv4: Family::default(), ipv6: Family::default() }
    }
}

impl<P: Copy + PartialEq> Routes<P> {
    /// Routes the prefixes of each peer to it.
    pub fn new<'a>(peers: impl IntoIterator<Item = (P, &'a [Prefix])>) -> Self {
        let (mut ipv4, mut ipv6) = (Vec::new(), Vec::new());
        for (peer, prefixes) in peers {
            for prefix in prefixes {
                match prefix.address {
                    IpAddr::V4(network) => ipv4.push((network.to_bits(), prefix.length, peer)),
                    IpAddr::V6(network) => ipv6.push((network.to_bits(), prefix.length, peer)),
                }
            }
        }
        Self { ipv4: Family::of(ipv4), ipv6: Family::of(ipv6) }
    }

    /// Routes prefixes to one more peer, whatever number of others there are.
    pub fn add(&mut self, peer: P, prefixes: &[Prefix]) {
        for prefix in prefixes {
            match prefix.address {
                IpAddr::V4(network) => self.ipv4.add(network.to_bits(), prefix.length, peer),
                IpAddr::V6(network) => self.ipv6.add(network.to_bits(), prefix.length, peer),
            }
        }
    }

    /// Routes prefixes that were `from`'s to `to`; `None`: to whoever has a prefix around them.
    pub fn pass_on(&mut self, from: P, to: Option<P>, prefixes: &[Prefix]) {
        for prefix in prefixes {
            match prefix.address {
                IpAddr::V4(network) => {
                    self.ipv4.pass_on(network.to_bits(), prefix.length, from, to);
                }
                IpAddr::V6(network) => {
                    self.ipv6.pass_on(network.to_bits(), prefix.length, from, to);
                }
            }
        }
    }

    /// The peer that an address belongs to.
    pub fn peer_of(&self, address: IpAddr) -> Option<P> {
        match address {
            IpAddr::V4(address) => self.ipv4.owner(address.to_bits()),
            IpAddr::V6(address) => self.ipv6.owner(address.to_bits()),
        }
    }
}

/// The inner sources of one peer of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    routes: &'a Routes<usize>,
    peer: usize,
}

impl<'a> Sources<'a> {
    /// What of `routes` belongs to `peer`, by its place.
    pub const fn new(routes: &'a Routes<usize>, peer: usize) -> Self {
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

        /// One change after the other leaves what a table made of the rest has.
        #[test]
        fn changes_leave_what_a_new_table_has(
            changes in vec((0..8_u32, 0_u8..=32, any::<bool>(), 0..4_usize), 1..40),
        ) {
            let mut routes = Routes::default();
            let mut model: Vec<(Prefix, usize)> = Vec::new();
            for (three, length, is_v6, peer) in changes {
                let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                let bits = (0..11).fold(0, |bits, _| bits << 3 | three) & mask;
                let address = if is_v6 {
                    Ipv6Addr::from_bits(u128::from(bits) << 96).into()
                } else {
                    Ipv4Addr::from_bits(bits).into()
                };
                let prefix = Prefix { address, length };
                match model.iter().position(|(known, _)| *known == prefix) {
                    None => {
                        routes.add(peer, &[prefix]);
                        model.push((prefix, peer));
                    }
                    Some(at) if model[at].1 == peer => {
                        routes.pass_on(peer, None, &[prefix]);
                        model.remove(at);
                    }
                    Some(at) => {
                        routes.add(peer, &[prefix]);
                        routes.pass_on(peer, None, &[prefix]);
                        routes.pass_on(model[at].1, Some(peer), &[prefix]);
                        model[at].1 = peer;
                    }
                }
                let anew = model.iter().map(|(prefix, peer)| {
                    (*peer, core::slice::from_ref(prefix))
                });
                prop_assert_eq!(&routes, &Routes::new(anew));
            }
        }
    }
}
