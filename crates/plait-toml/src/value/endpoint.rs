//! Where a peer listens.

use std::fmt;
use std::net::SocketAddr;

use crate::problem::Problem;

/// Where a peer listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// An address and a port.
    Address(SocketAddr),
    /// A host name and a port; its addresses may change.
    Name(String, u16),
}

impl Endpoint {
    /// Reads `192.0.2.1:7788`, `[2001:db8::1]:7788` or `gw.example.net:7788`.
    ///
    /// # Errors
    ///
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let refuse = |why| {
            let help =
                "write \"192.0.2.1:7788\", \"[2001:db8::1]:7788\" or \"gw.example.net:7788\"";
            Err(Problem::new(format!("\"{text}\" is not an endpoint: {why}"), help))
        };
        if let Ok(address) = text.parse::<SocketAddr>() {
            let usable = address.port() != 0 && !address.ip().is_unspecified();
            return if usable { Ok(Self::Address(address)) } else { refuse("not a destination") };
        }
        let Some((host, port)) = text.rsplit_once(':') else {
            return refuse("the port is missing");
        };
        if host.contains(':') {
            return refuse("an IPv6 address stands in square brackets before its port");
        }
        let Some(port) = port.parse().ok().filter(|port| *port != 0) else {
            return refuse("the port is not a number from 1 to 65535");
        };
        let host_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b == b'_';
        let is_name = !host.is_empty() && host.bytes().all(host_byte);
        let looks_like_ipv4 = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if !is_name || looks_like_ipv4 {
            return refuse("the host is neither an IP address nor a name");
        }
        Ok(Self::Name(host.to_owned(), port))
    }

    /// The port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name(_, port) => *port,
        }
    }

    /// The host name and the port; `None` for an address.
    pub fn name(&self) -> Option<(&str, u16)> {
        match self {
            Self::Address(_) => None,
            Self::Name(name, port) => Some((name, *port)),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}
