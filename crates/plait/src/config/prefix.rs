//! Addresses with a prefix length.

use std::fmt;
use std::net::IpAddr;

/// An address and the length of its network's prefix; host bits may be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cidr {
    /// The address.
    pub(crate) address: IpAddr,
    /// Prefix length in bits.
    pub(crate) length: u8,
}

impl Cidr {
    /// Reads `10.0.0.1/24`; a bare address stands for itself alone.
    pub(crate) fn parse(text: &str) -> Option<Self> {
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

    /// The network: the same prefix with all host bits zero.
    pub(crate) fn network(self) -> Self {
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
    fn what_is_no_prefix_is_refused() {
        for text in ["", "10.0.0.1/33", "10.0.0/24", "::/129", "10.0.0.1/", "10.0.0.1/x"] {
            assert_eq!(Cidr::parse(text), None, "{text}");
        }
    }
}
