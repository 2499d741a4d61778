//! The file of a proxy of the lab's own.

use std::net::SocketAddr;

use plait_toml::proxy::{Listen, Proxy, ProxyFile, WayIn};
use plait_toml::value::Cidr;

/// A proxy that everyone may use, with the kernel's name of its congestion control.
pub(crate) fn open_to_all(listeners: &[(SocketAddr, WayIn)], congestion: &str) -> ProxyFile {
    let any = Cidr::parse("0.0.0.0/0").expect("every address of IPv4");
    let listen = |(address, way): &(SocketAddr, WayIn)| Listen {
        address: *address,
        way: *way,
        ..Listen::default()
    };
    ProxyFile {
        proxy: Proxy {
            allow: vec![any],
            allow_to: vec![any],
            congestion: Some(congestion.into()),
            connections_per_client_max: 20_000,
            ..Proxy::default()
        },
        listeners: listeners.iter().map(listen).collect(),
        ..ProxyFile::default()
    }
}
