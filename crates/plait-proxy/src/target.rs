//! Where a client wants to go.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A server's host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// To be looked up.
    Name(String),
    /// Given by the client.
    Address(IpAddr),
}

/// A server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Its host.
    pub host: Host,
    /// Its TCP port.
    pub port: u16,
}

/// The longest name of a host (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 253;

impl Target {
    /// Reads `host:port`, or `host` with this port where there is a default; IPv6 addresses stand
    /// in brackets (RFC 3986, section 3.2).
    pub fn parse(authority: &str, default_port: Option<u16>) -> Option<Self> {
        let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (Host::Address(address.parse::<Ipv6Addr>().ok()?.into()), port)
        } else {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            (Host::parse(host)?, port)
        };
        let port = match port {
            // Without the sign that `parse` would take.
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            Some(_) => return None,
            None => default_port?,
        };
        (port != 0).then_some(Self { host, port })
    }
}

impl Host {
    /// Reads a name or an IPv4 address.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Some(Self::Address(address));
        }
        let is_name = (1..=NAME_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            && !text.starts_with(['.', '-']);
        is_name.then(|| Self::Name(text.to_ascii_lowercase()))
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self { host: Host::Address(address.ip().to_canonical()), port: address.port() }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => SocketAddr::new(*address, self.port).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn authorities_are_read() {
        let read = |text, port| Target::parse(text, port).map(|target| target.to_string());
        assert_eq!(read("Example.org:443", None).as_deref(), Some("example.org:443"));
        assert_eq!(read("example.org", Some(80)).as_deref(), Some("example.org:80"));
        assert_eq!(read("192.0.2.1:8080", None).as_deref(), Some("192.0.2.1:8080"));
        assert_eq!(read("[2001:db8::1]:443", None).as_deref(), Some("[2001:db8::1]:443"));
        assert_eq!(read("[2001:db8::1]", Some(80)).as_deref(), Some("[2001:db8::1]:80"));
        for wrong in [
            "example.org",
            ":443",
            "example.org:",
            "example.org:0",
            "example.org:65536",
            "example.org:+80",
            "2001:db8::1:443",
            "[2001:db8::1]443",
            "[192.0.2.1]:80",
            "user@example.org:80",
            "a b:80",
            "-x:80",
            ".x:80",
            "ex\u{e4}mple.org:80",
        ] {
            assert_eq!(read(wrong, None), None, "{wrong}");
        }
        assert_eq!(read(&format!("{}:80", "x".repeat(254)), None), None);
    }

    proptest! {
        #[test]
        fn what_was_read_is_written_as_it_is_read(text in "\\PC{0,40}") {
            if let Some(target) = Target::parse(&text, Some(80)) {
                prop_assert_eq!(Target::parse(&target.to_string(), None), Some(target));
            }
        }
    }
}
