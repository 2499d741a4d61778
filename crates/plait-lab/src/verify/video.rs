//! video.*: the proxy at the edge, and what a viewer sees.

mod links;
pub(super) mod proxy;
pub(super) mod relays;

use std::net::SocketAddr;

use plait_toml::proxy::{Listen, Proxy, ProxyFile, WayIn};
use plait_toml::value::Cidr;

use crate::measure::FETCH_CONGESTION;

/// A proxy of the lab's: everyone may use it, and it sends like everything else that is measured.
fn proxy_file(listeners: &[(SocketAddr, WayIn)]) -> ProxyFile {
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
            congestion: Some(FETCH_CONGESTION.into()),
            connections_per_client_max: 20_000,
            ..Proxy::default()
        },
        listeners: listeners.iter().map(listen).collect(),
        ..ProxyFile::default()
    }
}
