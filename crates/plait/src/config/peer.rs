//! `[[peer]]`: a gateway to bond with.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plait_proto::session::{PresharedKey, PublicKey};
use plait_toml::gateway::{self as file, PEER};
use plait_toml::value::{Cidr, Endpoint};
use plait_toml::{Section, option};

use super::error::{KeyProblem, Unresolved};
use super::gateway::read_key;
use super::key;
use super::located::{Located, line_of};

/// `[[peer]]`.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The section's line.
    pub(crate) line: usize,
    /// The peer's identity.
    pub(crate) public_key: Located<PublicKey>,
    /// Symmetric key mixed into the handshake.
    pub(crate) preshared_key: Option<PresharedKey>,
    /// The file that the preshared key was read from.
    pub(crate) preshared_key_file: Option<Located<PathBuf>>,
    /// Where the peer listens; empty when it is the peer that calls.
    pub(crate) endpoints: Vec<Located<Endpoint>>,
    /// More ports at which it listens there.
    pub(crate) more_ports: Vec<u16>,
    /// Inner networks behind the peer, host bits zero.
    pub(crate) allowed_ips: Vec<Located<Cidr>>,
    /// Prefixes written with host bits: line, as written, as used.
    pub(crate) cleared_host_bits: Vec<(usize, Cidr, Cidr)>,
    /// An idle path sends a datagram this often.
    pub(crate) keepalive: Duration,
    /// Whether the peer may measure the bond; `None` when its section does not say.
    pub(crate) measure: Option<bool>,
}

/// The addresses behind an endpoint; asks DNS when it is a name.
///
/// # Errors
///
/// The name has no address, or cannot be resolved now.
pub(crate) fn resolve(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Unresolved> {
    let (name, port) = match endpoint {
        Endpoint::Address(address) => return Ok(vec![*address]),
        Endpoint::Name(name, port) => (name, *port),
    };
    let unresolved = |cause| Unresolved { name: name.clone(), cause };
    let found: Vec<_> = (name.as_str(), port).to_socket_addrs().map_err(unresolved)?.collect();
    if found.is_empty() {
        return Err(unresolved(io::Error::from(io::ErrorKind::NotFound)));
    }
    Ok(found)
}

/// Reads one `[[peer]]`; `folder` is where relative file names start.
pub(super) fn read(mut section: Section<'_>, folder: &Path) -> Option<Peer> {
    let mut said = file::Peer::default();
    let wrong = option::read(PEER, &mut section, &mut said);
    let public_key =
        if wrong.contains(&"public_key") { None } else { public_key(&section, &said.public_key) };
    let preshared_key = said.preshared_key_file.as_ref().and_then(|name| {
        let (file, key) = read_key(&section, "preshared_key_file", folder, name)?;
        Some((file, PresharedKey::from_bytes(*key)))
    });
    file::check_peer(&section, &said);
    let endpoints = Located::all(&mut section, "endpoint", said.endpoint);
    let written = Located::all(&mut section, "allowed_ips", said.allowed_ips);
    let line = line_of(section.place());
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
        preshared_key,
        preshared_key_file,
        endpoints,
        more_ports: said.more_ports.unwrap_or_default(),
        allowed_ips,
        cleared_host_bits,
        keepalive: said.keepalive,
        measure: said.measure,
    })
}

fn public_key(section: &Section<'_>, text: &str) -> Option<Located<PublicKey>> {
    match key::parse(text) {
        Ok(key) => {
            let key = PublicKey::from_bytes(*key);
            if !key.can_agree() {
                section.problem("public_key", KeyProblem::OfSmallOrder);
                return None;
            }
            Some(Located::option(section, "public_key", key))
        }
        Err(malformed) => {
            section.problem("public_key", KeyProblem::Malformed(malformed));
            None
        }
    }
}
