//! Who may come in, and where they may go.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use ipnet::IpNet;

use crate::config::{Clients, Listener, Reach};
use crate::refusal::Refusal;

impl Clients {
    /// Whether a client at this address may use the proxy at all.
    pub(crate) fn admit(&self, client: IpAddr) -> Result<(), Refusal> {
        if holds(&self.allow, client) { Ok(()) } else { Err(Refusal::ClientNotAllowed) }
    }
}

impl Reach {
    /// Whether a port may be connected to, whoever's it is.
    pub(crate) fn permit_port(&self, port: u16) -> Result<(), Refusal> {
        let permitted =
            self.ports.is_empty() || self.ports.iter().any(|range| range.contains(&port));
        if permitted { Ok(()) } else { Err(Refusal::TargetForbidden) }
    }

    /// Whether an address may be connected to.
    pub(crate) fn permit(&self, server: SocketAddr) -> Result<(), Refusal> {
        self.permit_port(server.port())?;
        let address = server.ip().to_canonical();
        let denied = is_never_a_server(address) || holds(&self.deny, address);
        if denied && !holds(&self.allow, address) { Err(Refusal::TargetForbidden) } else { Ok(()) }
    }
}

fn holds(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// Addresses that mean this machine, its link or many machines: a client that reaches them through
/// the proxy is where it was not meant to be.
fn is_never_a_server(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_link_local()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unicast_link_local()
        }
    }
}

/// Whether a connection to `server` would come in here again.
pub(crate) fn leads_back(listeners: &[Listener], server: SocketAddr) -> bool {
    let of_port = listeners.iter().filter(|listener| listener.address.port() == server.port());
    let mut addresses = of_port.map(|listener| listener.address.ip().to_canonical());
    let server = server.ip().to_canonical();
    addresses.any(|address| address == server || (address.is_unspecified() && is_local(server)))
}

/// Whether an address is one of this machine's: only those can be bound.
fn is_local(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::WayIn;

    fn networks(all: &[&str]) -> Vec<IpNet> {
        all.iter().map(|text| text.parse().expect("a network")).collect()
    }

    #[test]
    fn nobody_may_come_in_unless_said() {
        let client = "192.0.2.7".parse().unwrap();
        let refused = Err(Refusal::ClientNotAllowed);
        assert_eq!(Clients::default().admit(client), refused);
        let clients = Clients { allow: networks(&["192.0.2.0/24"]), users: None };
        assert_eq!(clients.admit(client), Ok(()));
        // A listener of both families sees IPv4 clients so.
        assert_eq!(clients.admit("::ffff:192.0.2.7".parse().unwrap()), Ok(()));
        assert_eq!(clients.admit("192.0.3.7".parse().unwrap()), refused);
    }

    #[test]
    fn own_networks_are_out_of_reach_unless_said() {
        let reach = Reach {
            deny: networks(&["10.0.0.0/8"]),
            allow: networks(&["10.1.0.0/16"]),
            ports: vec![80..=80, 400..=500],
        };
        let permit = |text: &str| reach.permit(text.parse().expect("a socket address")).is_ok();
        assert!(permit("192.0.2.1:443") && permit("10.1.0.1:80") && permit("[2001:db8::1]:400"));
        for wrong in [
            "192.0.2.1:81",
            "10.2.0.1:80",
            "127.0.0.1:80",
            "[::1]:80",
            "0.0.0.0:80",
            "169.254.169.254:80",
            "[fe80::1]:80",
            "224.0.0.1:80",
            "[::ffff:127.0.0.1]:80",
            "[::ffff:10.2.0.1]:80",
        ] {
            assert!(!permit(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_way_back_is_seen() {
        let listener = |address: &str| Listener {
            address: address.parse().expect("a socket address"),
            way: WayIn::Http,
            multipath: true,
        };
        let listeners = [listener("192.0.2.1:3128"), listener("[::]:1080")];
        let leads_back =
            |text: &str| super::leads_back(&listeners, text.parse().expect("a socket address"));
        assert!(leads_back("192.0.2.1:3128") && leads_back("[::ffff:192.0.2.1]:3128"));
        assert!(leads_back("127.0.0.1:1080") && !leads_back("127.0.0.1:3128"));
        assert!(!leads_back("198.51.100.1:1080"));
    }
}
