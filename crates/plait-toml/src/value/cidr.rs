//! Addresses with a prefix length.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use plait_proto::config::Prefix;

use crate::problem::Problem;

/// An address and the length of its network's prefix; host bits may be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cidr {
    /// The address.
    pub address: IpAddr,
    /// Prefix length in bits.
    pub length: u8,
}

impl Cidr {
    /// Reads `10.0.0.1/24`; a bare address has the full prefix length.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let length_max = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            Some(text) => text.parse().ok().filter(|length| *length <= length_max)?,
            None => length_max,
        };
        Some(Self { address, length })
    }

    /// A prefix of inner addresses; a bare address has the full prefix length.
    ///
    /// # Errors
    ///
    /// It is not one.
    pub fn prefix(text: &str) -> Result<Self, Problem> {
        Self::parse(text).ok_or_else(|| Self::no_prefix(text))
    }

    fn no_prefix(text: &str) -> Problem {
        let help = "write it as in \"10.99.0.2/24\" or \"fd99::2/64\"";
        Problem::new(format!("\"{text}\" is not an IP address with a prefix length"), help)
    }

    /// An address that a device can have, with an explicit prefix length.
    ///
    /// # Errors
    ///
    /// It is not one, or no device can have it.
    pub fn of_device(text: &str) -> Result<Self, Problem> {
        let written_out = Self::parse(text).filter(|_| text.contains('/'));
        let value = written_out.ok_or_else(|| Self::no_prefix(text))?;
        let address = value.address;
        let unusable = address.is_unspecified()
            || address.is_loopback()
            || address.is_multicast()
            || address == IpAddr::V4(Ipv4Addr::BROADCAST)
            || address != address.to_canonical();
        if unusable {
            let text = format!("{value} is not an address that a device can have");
            let help =
                "write an address of a private network, as in \"10.99.0.2/24\" or \"fd99::2/64\"";
            return Err(Problem::new(text, help));
        }
        Ok(value)
    }

    /// Whether the address stands for one host: it is neither the network's first nor, in IPv4, its
    /// last, which address all hosts (RFC 919 §7).
    pub fn is_host(self) -> bool {
        let IpAddr::V4(address) = self.address else { return self.network() != self };
        let hosts = u32::MAX.checked_shr(self.length.into()).unwrap_or(0);
        ![0, hosts].contains(&(address.to_bits() & hosts))
    }

    /// Whether both have addresses in common.
    pub fn overlaps(self, other: Self) -> bool {
        let length = self.length.min(other.length);
        let at = |cidr: Self| Self { length, ..cidr }.network().address;
        self.address.is_ipv4() == other.address.is_ipv4() && at(self) == at(other)
    }

    /// Whether an address lies in the network.
    pub fn holds(self, address: IpAddr) -> bool {
        let length = if address.is_ipv4() { 32 } else { 128 };
        self.length <= length && self.overlaps(Self { address, length })
    }

    /// The network: the same prefix with all host bits zero.
    pub fn network(self) -> Self {
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4((v4.to_bits() & mask).into())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6((v6.to_bits() & mask).into())
            }
        };
        Self { address, length: self.length }
    }
}

impl From<Cidr> for Prefix {
    fn from(cidr: Cidr) -> Self {
        let Cidr { address, length } = cidr.network();
        Self { address, length }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bits_are_cleared() {
        for (text, network) in [
            ("10.99.0.2/24", "10.99.0.0/24"),
            ("10.99.0.2", "10.99.0.2/32"),
            ("1.2.3.4/0", "0.0.0.0/0"),
            ("fd99::2/64", "fd99::/64"),
            ("fd99::2/0", "::/0"),
            ("fd99::2", "fd99::2/128"),
        ] {
            assert_eq!(Cidr::parse(text).unwrap().network().to_string(), network);
        }
    }

    #[test]
    fn hosts_are_told_from_networks_and_networks_compared() {
        let cidr = |text| Cidr::parse(text).unwrap();
        for (text, host) in [
            ("10.99.0.2/24", true),
            ("10.99.0.0/24", false),
            ("10.99.0.255/24", false),
            ("10.99.1.0/16", true),
            ("fd99::1/64", true),
        ] {
            assert_eq!(cidr(text).is_host(), host, "{text}");
        }
        assert!(cidr("10.99.0.2/24").overlaps(cidr("10.99.0.128/25")));
        assert!(cidr("0.0.0.0/0").overlaps(cidr("10.99.0.128/25")));
        assert!(!cidr("10.99.0.2/24").overlaps(cidr("10.99.1.1/24")));
        assert!(!cidr("0.0.0.0/0").overlaps(cidr("::/0")));
        assert!(cidr("0.0.0.0/0").holds("192.0.2.1".parse().unwrap()));
        assert!(!cidr("128.0.0.0/1").holds("10.0.0.1".parse().unwrap()));
        assert!(!cidr("::/0").holds("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for text in ["", "10.0.0.1/33", "10.0.0/24", "::/129", "10.0.0.1/", "10.0.0.1/x"] {
            assert_eq!(Cidr::parse(text), None, "{text}");
        }
    }
}
