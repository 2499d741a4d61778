//! `[[peer]]`: a gateway to bond with.

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plait_proto::session::{PresharedKey, PublicKey};
use plait_toml::{Problem, Section};

use super::error::{KeyProblem, ValueProblem};
use super::gateway::read_key;
use super::key;
use super::located::{Located, line_of};
use super::prefix::Cidr;

/// `[[peer]]`.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The section's line.
    pub(crate) line: usize,
    /// The peer's identity.
    pub(crate) public_key: Located<PublicKey>,
    /// Symmetric key mixed into the handshake.
    pub(crate) preshared_key: Option<PresharedKey>,
    /// Where the preshared key was read.
    pub(crate) preshared_key_file: Option<Located<PathBuf>>,
    /// Where the peer listens; empty when it is the peer that calls.
    pub(crate) endpoints: Vec<Located<Endpoint>>,
    /// Inner networks behind the peer, host bits zero.
    pub(crate) allowed_ips: Vec<Located<Cidr>>,
    /// Prefixes that were written with host bits: line, as written, as taken.
    pub(crate) cleared_host_bits: Vec<(usize, Cidr, Cidr)>,
    /// An idle path sends a datagram this often.
    pub(crate) keepalive: Duration,
    /// Whether the peer may measure the bond, when its section says so.
    pub(crate) measure: Option<bool>,
}

/// Where a peer listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Endpoint {
    /// An address and a port.
    Address(SocketAddr),
    /// A host name and a port; what it stands for may change.
    Name(String, u16),
}

impl Endpoint {
    /// The host name and the port, when it is no address.
    pub(crate) fn name(&self) -> Option<(&str, u16)> {
        match self {
            Self::Address(_) => None,
            Self::Name(name, port) => Some((name, *port)),
        }
    }

    /// The addresses behind the endpoint; asks DNS when it is a name.
    ///
    /// # Errors
    ///
    /// The name has no address, or cannot be resolved now.
    pub(crate) fn resolve(&self) -> Result<Vec<SocketAddr>, ValueProblem> {
        let (name, port) = match self {
            Self::Address(address) => return Ok(vec![*address]),
            Self::Name(name, port) => (name, *port),
        };
        let unresolved = |cause| ValueProblem::Unresolved { name: name.clone(), cause };
        let found: Vec<_> = (name.as_str(), port).to_socket_addrs().map_err(unresolved)?.collect();
        if found.is_empty() {
            return Err(unresolved(io::Error::from(io::ErrorKind::NotFound)));
        }
        Ok(found)
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

/// Reads one `[[peer]]`; `folder` is where relative file names start.
pub(super) fn read(mut section: Section<'_>, folder: &Path) -> Option<Peer> {
    const KEEPALIVE_DEFAULT_S: u16 = 25;
    let line = line_of(section.place());
    let public_key = section.parsed("public_key", |text| {
        let key = key::parse(text).map_err(KeyProblem::Malformed)?;
        Ok(PublicKey::from_bytes(*key))
    });
    let public_key = public_key.map(|key| Located::option(&section, "public_key", key));
    if section.is_present() && !section.holds_any(&["public_key"]) {
        section.missing("public_key", "public_key = \"…\"");
    }
    let preshared_key = read_key(&mut section, "preshared_key_file", folder);
    let endpoints = Located::all(section.parsed_texts("endpoint", endpoint));
    let written = section.parsed_texts("allowed_ips", |text| {
        let problem = || ValueProblem::Address { value: text.into(), cidr: true };
        Cidr::parse(text).ok_or_else(|| problem().into())
    });
    let written = Located::all(written);
    let keepalive =
        section.integer("keepalive_s", (1, 65_535), "seconds").unwrap_or(KEEPALIVE_DEFAULT_S);
    let measure = section.boolean("measure");
    section.finish();
    let (preshared_key_file, preshared_key) = preshared_key.unzip();
    let cleared_host_bits = written
        .iter()
        .map(|prefix| (prefix.line, prefix.value, prefix.value.network()))
        .filter(|(_, written, network)| written != network)
        .collect();
    let mut allowed_ips: Vec<Located<Cidr>> = Vec::new();
    for Located { value, line } in written {
        let value = value.network();
        if allowed_ips.iter().all(|prefix| prefix.value != value) {
            allowed_ips.push(Located { value, line });
        }
    }
    Some(Peer {
        line,
        public_key: public_key?,
        preshared_key: preshared_key.map(|key| PresharedKey::from_bytes(*key)),
        preshared_key_file,
        endpoints,
        allowed_ips,
        cleared_host_bits,
        keepalive: Duration::from_secs(keepalive.into()),
        measure,
    })
}

fn endpoint(text: &str) -> Result<Endpoint, Problem> {
    let refuse = |why| Err(ValueProblem::Endpoint { value: text.into(), why }.into());
    if let Ok(address) = text.parse::<SocketAddr>() {
        let usable = address.port() != 0 && !address.ip().is_unspecified();
        return if usable { Ok(Endpoint::Address(address)) } else { refuse("not a destination") };
    }
    let Some((host, port)) = text.rsplit_once(':') else { return refuse("the port is missing") };
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
    Ok(Endpoint::Name(host.to_owned(), port))
}
