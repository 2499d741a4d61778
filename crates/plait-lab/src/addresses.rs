//! The addresses of the lab's networks, from the ranges for documentation and private use.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The provider's gateway, reached over every link (RFC 5737).
pub(crate) const PROVIDER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The provider's gateway (RFC 3849).
pub(crate) const PROVIDER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

pub(crate) const PROVIDER_LAN_V4: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 1);
pub(crate) const PROVIDER_LAN_V6: Ipv6Addr = Ipv6Addr::new(0xfd03, 0, 0, 0, 0, 0, 0, 1);

/// The server's address over the bare links.
pub(crate) const SERVER_BARE_V4: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 2);
pub(crate) const SERVER_BARE_V6: Ipv6Addr = Ipv6Addr::new(0xfd03, 0, 0, 0, 0, 0, 0, 2);

/// The server's address through the bond (RFC 5737).
pub(crate) const SERVER_V4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 10);
pub(crate) const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x100, 0, 0, 0, 0, 0x10);

/// Addresses that the customer reaches only through the bond.
pub(crate) const BOND_ONLY_V4: &str = "198.51.100.0/24";
pub(crate) const BOND_ONLY_V6: &str = "2001:db8:100::/48";

/// A gateway's address inside the bond: 10.99.0.`host`.
pub(crate) const fn inner_v4(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 99, 0, host)
}

/// A gateway's address inside the bond: fd99::`host`.
pub(crate) const fn inner_v6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, host as u16)
}

/// Address of an end of link `number`: 1 is the customer's, 2 the provider's.
pub(crate) const fn link_v4(number: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, number, 0, host)
}

/// Address of an end of link `number`: 1 is the customer's, 2 the provider's.
pub(crate) const fn link_v6(number: u8, host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, number as u16, 0, 0, 0, 0, 0, host as u16)
}
