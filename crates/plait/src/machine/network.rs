//! The network of this machine as the kernel reports it: interfaces, addresses, routes.

use std::fs;
use std::net::IpAddr;

use plait_net::netlink::{Interface, LinkInfo, Netlink, NetlinkError, Packet, RouteInfo, Way};

use crate::config::Cidr;

/// What was found, and a way to ask for more.
#[derive(Debug)]
pub(super) struct Network {
    netlink: Netlink,
    pub(super) interfaces: Vec<Interface>,
    links: Vec<LinkInfo>,
    addresses: Vec<(u32, IpAddr, u8)>,
    /// Those of the table `main`, including unreachable ones.
    pub(super) routes: Vec<RouteInfo>,
    /// Whether this process may change anything here.
    pub(super) may_change: bool,
}

impl Network {
    pub(super) fn look() -> Result<Self, NetlinkError> {
        let mut netlink = Netlink::open()?;
        Ok(Self {
            interfaces: netlink.interfaces()?,
            links: netlink.links()?,
            addresses: netlink.addresses()?,
            routes: netlink.routes_of_any_kind()?,
            may_change: netlink.may_change()?,
            netlink,
        })
    }

    pub(super) fn interface(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    pub(super) fn name_of(&self, index: u32) -> &str {
        let known = self.interfaces.iter().find(|interface| interface.index == index);
        known.map_or("an interface that is gone", |interface| &interface.name)
    }

    /// The interfaces of default routes, but for `tun`.
    pub(super) fn defaults<'a>(&'a self, tun: &'a str) -> impl Iterator<Item = &'a str> {
        let routes = self.routes.iter().filter(|route| route.prefix == 0);
        let over = routes.filter_map(|route| route.index).map(|index| self.name_of(index));
        over.filter(move |name| *name != tun)
    }

    /// Bytes of the longest packet of an interface.
    pub(super) fn mtu(&self, index: u32) -> Option<u32> {
        self.links.iter().find(|link| link.index == index).map(|link| link.mtu)
    }

    /// The addresses that are valid beyond this machine and one wire, with their interfaces.
    pub(super) fn addresses(&self) -> impl Iterator<Item = (&Interface, Cidr)> {
        let of = |index: u32| self.interfaces.iter().find(move |known| known.index == index);
        let wide = self.addresses.iter().filter(|(_, address, _)| !is_narrow(*address));
        wide.filter_map(move |(index, address, length)| {
            Some((of(*index)?, Cidr { address: *address, length: *length }))
        })
    }

    /// The route that a packet would take. A failed look-up counts as no route.
    pub(super) fn way(&mut self, packet: &Packet) -> Option<Way> {
        self.netlink.way(packet).unwrap_or_else(|error| {
            log::debug!("{error}: {}", error.source);
            None
        })
    }
}

/// Whether an address is valid only on this machine or on one wire.
fn is_narrow(address: IpAddr) -> bool {
    let is_link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    address.is_loopback() || is_link_local
}

/// The number that a sysctl holds; `None` when there is no such sysctl.
pub(super) fn sysctl(name: &str) -> Option<u32> {
    fs::read_to_string(format!("/proc/sys/net/{name}")).ok()?.trim().parse().ok()
}
