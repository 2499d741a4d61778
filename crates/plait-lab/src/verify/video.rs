//! video.*: the proxy at the edge, and what a viewer sees.

pub(super) mod chromium;
pub(super) mod cut;
mod links;
pub(super) mod model;
pub(super) mod page;
pub(super) mod proxy;
pub(super) mod relays;
pub(crate) mod shares;

use std::net::SocketAddr;

use plait_toml::proxy::{ProxyFile, WayIn};

use crate::measure::FETCH_CONGESTION;
use crate::proxy::open_to_all;

/// A proxy of the lab's that sends like everything else that is measured.
fn proxy_file(listeners: &[(SocketAddr, WayIn)]) -> ProxyFile {
    open_to_all(listeners, FETCH_CONGESTION)
}
