//! What this machine's network offers a new end: links that reach the other one, an address at
//! which it can be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use plait_net::netlink::{Interface, Netlink, NetlinkError, Packet};

/// The interfaces over which one of the addresses can be reached, in the machine's order.
///
/// # Errors
/// The kernel's.
pub(crate) fn links_to(endpoints: &[SocketAddr]) -> Result<Vec<String>, NetlinkError> {
    let mut netlink = Netlink::open()?;
    let mut links = Vec::new();
    for interface in netlink.interfaces()? {
        if !interface.running || interface.addresses.iter().any(IpAddr::is_loopback) {
            continue;
        }
        for endpoint in endpoints {
            if has_family(&interface, endpoint.ip()) && leads(&mut netlink, &interface, endpoint)? {
                links.push(interface.name.clone());
                break;
            }
        }
    }
    Ok(links)
}

fn has_family(interface: &Interface, address: IpAddr) -> bool {
    interface.addresses.iter().any(|own| own.is_ipv4() == address.is_ipv4())
}

fn leads(
    netlink: &mut Netlink,
    interface: &Interface,
    endpoint: &SocketAddr,
) -> Result<bool, NetlinkError> {
    let interface = Some(interface.index);
    Ok(netlink.way(&Packet { destination: endpoint.ip(), source: None, interface })?.is_some())
}

/// An address of this machine that others on the internet can reach, if it has one itself: of the
/// interface that leads out, IPv4 first.
///
/// # Errors
/// The kernel's.
pub(crate) fn public_address() -> Result<Option<IpAddr>, NetlinkError> {
    // Documentation prefixes: a way to them is the default route.
    const OUT: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(203, 0, 113, 1)),
        IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
    ];
    let mut netlink = Netlink::open()?;
    let interfaces = netlink.interfaces()?;
    for destination in OUT {
        let way = netlink.way(&Packet { destination, source: None, interface: None })?;
        let out = way.and_then(|way| way.index);
        let own = interfaces.iter().filter(|interface| Some(interface.index) == out);
        let mut own = own.flat_map(|interface| &interface.addresses);
        if let Some(found) =
            own.find(|own| own.is_ipv4() == destination.is_ipv4() && is_public(own))
        {
            return Ok(Some(*found));
        }
    }
    Ok(None)
}

/// Whether an address is none of those that only a private or local network knows (RFC 6890).
fn is_public(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            !(v4.is_private() || v4.is_loopback() || v4.is_link_local() || shared)
        }
        IpAddr::V6(v6) => v6.segments()[0] & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_private_networks_are_not_public() {
        for private in ["10.0.0.1", "192.168.7.1", "172.16.0.1", "100.64.0.1", "fd99::1", "fe80::1"]
        {
            assert!(!is_public(&private.parse().unwrap()), "{private}");
        }
        for public in ["192.0.2.1", "100.128.0.1", "2001:db8::1"] {
            assert!(is_public(&public.parse().unwrap()), "{public}");
        }
    }
}
