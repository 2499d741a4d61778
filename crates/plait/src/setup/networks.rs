//! The inner networks of a new bond: private ones that this machine does not use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plait_toml::value::Cidr;

/// Prefix lengths of the inner networks.
const IPV4_LENGTH: u8 = 24;
const IPV6_LENGTH: u8 = 64;
/// How often a network that is in use is replaced by another.
const TRIES_MAX: usize = 64;

/// The inner networks, one of each family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Networks {
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
}

impl Networks {
    /// Networks by chance: one of 10.64.0.0/10's, away from what small networks are numbered by,
    /// and a unique local one (RFC 4193 §3.2.2). `used` are the networks to keep clear of.
    pub(crate) fn choose(mut random: impl FnMut() -> [u8; 8], used: &[Cidr]) -> Self {
        let mut chosen = Self::of(random());
        for _ in 0..TRIES_MAX {
            if !used.iter().any(|used| used.overlaps(chosen.network(0))) {
                break;
            }
            chosen = Self::of(random());
        }
        chosen
    }

    fn of(random: [u8; 8]) -> Self {
        let [a, b, c, d, e, f, g, _] = random;
        let ipv4 = Ipv4Addr::new(10, 64 | a & 63, b, 0);
        let pair = |high, low| u16::from_be_bytes([high, low]);
        let ipv6 = Ipv6Addr::new(pair(0xfd, c), pair(d, e), pair(f, g), 0, 0, 0, 0, 0);
        Self { ipv4, ipv6 }
    }

    fn network(self, at: usize) -> Cidr {
        self.host(0)[at]
    }

    /// The addresses of a host, by its number, with the networks' prefix lengths.
    pub(crate) fn host(self, number: u8) -> [Cidr; 2] {
        let ipv4 = Ipv4Addr::from_bits(self.ipv4.to_bits() | u32::from(number));
        let ipv6 = Ipv6Addr::from_bits(self.ipv6.to_bits() | u128::from(number));
        [
            Cidr { address: IpAddr::V4(ipv4), length: IPV4_LENGTH },
            Cidr { address: IpAddr::V6(ipv6), length: IPV6_LENGTH },
        ]
    }
}

/// The address of the router of a network: one that its interface has there, or the first.
pub(crate) fn router_of(network: Cidr, held: &[Cidr]) -> Cidr {
    let known = held.iter().find(|own| own.network() == network.network());
    known.copied().unwrap_or_else(|| {
        let address = match network.network().address {
            IpAddr::V4(v4) => IpAddr::V4((v4.to_bits() | 1).into()),
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() | 1).into()),
        };
        Cidr { address, length: network.length }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_private_and_keep_clear_of_those_in_use() {
        let [v4, v6] = Networks::choose(|| [0xff; 8], &[]).host(2);
        assert_eq!((v4.to_string().as_str(), v6.length), ("10.127.255.2/24", 64));
        assert!(v6.address.to_string().starts_with("fdff:ffff:ffff::"), "{v6}");
        let mut first = true;
        let random = || if std::mem::take(&mut first) { [0; 8] } else { [1; 8] };
        let used = [Cidr::parse("10.64.0.7/20").unwrap()];
        assert_eq!(Networks::choose(random, &used).host(1)[0].to_string(), "10.65.1.1/24");
    }

    #[test]
    fn a_router_keeps_its_address_or_takes_the_first() {
        let cidr = |text: &str| Cidr::parse(text).unwrap();
        let held = [cidr("192.168.7.9/24"), cidr("fd99::1/64")];
        let router = |text: &str| router_of(cidr(text), &held).to_string();
        assert_eq!(router("192.168.7.0/24"), "192.168.7.9/24");
        assert_eq!(router("192.168.8.0/24"), "192.168.8.1/24");
        assert_eq!(router("fd99:7::/64"), "fd99:7::1/64");
    }
}
