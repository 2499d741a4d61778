//! `[[forward]]` of a gateway's file: services behind the bond that others reach at this host.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::form::{Maybe, Parsed, Words};
use crate::option::{Field, Options};
use crate::problem::Problem;
use crate::proxy::Ports;
use crate::section::Section;

/// Which protocols have the ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocols {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// TCP and UDP.
    #[default]
    Both,
}

impl Protocols {
    const WORDS: &[(&str, Self)] = &[("tcp", Self::Tcp), ("udp", Self::Udp), ("both", Self::Both)];

    /// Whether some protocol is one of both.
    pub fn meets(self, other: Self) -> bool {
        self == other || self == Self::Both || other == Self::Both
    }
}

/// A host behind the bond, and its port where that differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct To {
    /// The host.
    pub address: IpAddr,
    /// Its port; without one the port stays.
    pub port: Option<u16>,
}

impl Default for To {
    /// Nobody, until the file names a host.
    fn default() -> Self {
        Self { address: Ipv4Addr::UNSPECIFIED.into(), port: None }
    }
}

impl To {
    /// Reads `192.168.7.20`, `192.168.7.20:8443`, `fd99:7::20` or `[fd99:7::20]:8443`.
    ///
    /// # Errors
    ///
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let bare = text.parse().ok().map(|address| Self { address, port: None });
        let with_port = || {
            let socket: SocketAddr = text.parse().ok()?;
            let port = Some(socket.port()).filter(|port| *port > 0)?;
            Some(Self { address: socket.ip(), port: Some(port) })
        };
        let to = bare.or_else(with_port).filter(|to| {
            let address = to.address;
            !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
        });
        to.ok_or_else(|| {
            let help = "write it as in \"192.168.7.20\", \"192.168.7.20:8443\" or \
                        \"[fd99:7::20]:8443\"";
            Problem::new(format!("\"{text}\" is no host, with or without a port"), help)
        })
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.address, port).fmt(f),
            None => self.address.fmt(f),
        }
    }
}

/// `[[forward]]`: what is led to a host behind the bond.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Forward {
    /// Which protocols have the ports; both unless the file says otherwise.
    pub protocol: Option<Protocols>,
    /// The ports; without them a whole address.
    pub ports: Option<Ports>,
    /// The host.
    pub to: To,
    /// The address of this host; all unless the file says otherwise.
    pub address: Option<IpAddr>,
}

/// The options of `[[forward]]`.
pub const FORWARD: Options<Forward> = &[
    &Field::new(
        "to",
        "the host behind the bond, and its port where it differs: `192.168.7.20`, \
         `[fd99:7::20]:8443`; it must lie in a peer's `allowed_ips`",
        Parsed { told: "text", read: To::parse },
        |forward: &mut Forward| &mut forward.to,
    )
    .required("to = \"192.168.7.20\""),
    &Field::new(
        "ports",
        "the ports of this host, as in `443` or `8000-8010`",
        Maybe(Parsed { told: "text", read: Ports::parse }),
        |forward: &mut Forward| &mut forward.ports,
    )
    .absent("everything for `address`"),
    &Field::new(
        "protocol",
        "whose ports they are",
        Maybe(Words(Protocols::WORDS)),
        |forward: &mut Forward| &mut forward.protocol,
    )
    .absent("`both`"),
    &Field::new(
        "address",
        "the address of this host",
        Maybe(Parsed { told: "IP address", read: crate::gateway::address }),
        |forward: &mut Forward| &mut forward.address,
    )
    .absent("all of `to`'s family"),
];

/// Notes options that contradict each other.
pub fn check_forward(section: &Section<'_>, forward: &Forward) {
    let note = |option: &str, text: &str, help: &str| {
        section.problem(option, Problem::new(text.to_owned(), help));
    };
    let to = forward.to;
    if forward.address.is_some_and(|address| address.is_ipv4() != to.address.is_ipv4()) {
        let help = "write one of `to`'s family: addresses are translated, families are not";
        note("address", "it is of another family than `to`", help);
    }
    if section.holds_any(&["ports"]) {
        let is_range = forward.ports.as_ref().is_some_and(|Ports(range)| range.len() > 1);
        if is_range && to.port.is_some() {
            note("to", "a range keeps its ports", "write `to` without a port");
        }
        return;
    }
    if !section.holds_any(&["address"]) {
        let help = "add `ports = \"443\"`, or the `address` of which all is led there";
        note("", "neither ports nor an address", help);
    }
    if to.port.is_some() {
        note("to", "a whole address keeps its ports", "add `ports`, or write `to` without a port");
    }
    if section.holds_any(&["protocol"]) {
        let help = "add `ports`, or remove it: without ports every protocol is led there";
        note("protocol", "has no effect without ports", help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, FORWARD, Forward::default());
        }
    }

    #[test]
    fn hosts_with_and_without_ports_are_read() {
        let of = |text| To::parse(text).ok().map(|to| (to.address.to_string(), to.port));
        assert_eq!(of("192.168.7.20"), Some(("192.168.7.20".into(), None)));
        assert_eq!(of("fd99::1"), Some(("fd99::1".into(), None)));
        assert_eq!(of("[fd99::1]:8443"), Some(("fd99::1".into(), Some(8443))));
        for text in ["", "0.0.0.0", "127.0.0.1:80", "192.168.7.20:0", "a:80", "[fd99::1]"] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
