//! Where a peer listens.

use std::fmt;
use std::net::SocketAddr;

use crate::problem::Problem;

/// The longest label of a host's name, and the longest name (RFC 1035 section 2.3.4; a name of 255
/// bytes on the wire has at most 253 in writing).
const LABEL_BYTES_MAX: usize = 63;
const NAME_BYTES_MAX: usize = 253;

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
        let looks_like_ipv4 = host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        if looks_like_ipv4 || !is_host_name(host) {
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

/// Whether a resolver takes it for a host's name (RFC 1123 section 2.1, and underscores, which
/// names in use have). The dot of the root may end it.
fn is_host_name(name: &str) -> bool {
    let label_byte = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(label_byte)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= NAME_BYTES_MAX && name.split('.').all(is_label)
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_resolver_takes_is_no_endpoint() {
        let long = "a".repeat(LABEL_BYTES_MAX);
        let longest = format!("{long}.{long}.{long}.{}", &long[2..]);
        for name in ["gw", "gw.example", "gw.example.", "_plait.gw.example", "4g.example", "a-b"] {
            let endpoint = Endpoint::parse(&format!("{name}:7788")).unwrap();
            assert_eq!(endpoint, Endpoint::Name(name.into(), 7788));
        }
        assert!(Endpoint::parse(&format!("{longest}:7788")).is_ok());
        let too_long = [format!("{longest}a"), format!("{long}a.example")];
        for name in ["", ".", "gw..example", ".example", "-gw.example", "gw-.example", "g w"]
            .into_iter()
            .chain(too_long.iter().map(String::as_str))
        {
            let said = Endpoint::parse(&format!("{name}:7788")).unwrap_err();
            assert!(
                said.to_string().contains("neither an IP address nor a name"),
                "{name}: {said}"
            );
        }
    }
}
