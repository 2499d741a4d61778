//! What every connection needs of its proxy.

use std::sync::Arc;

use crate::config::Config;
use crate::plain_servers::PlainServers;
use crate::registry::Registry;
use crate::relay::Pipes;

/// What every connection needs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) registry: Arc<Registry>,
    pub(crate) pipes: Pipes,
    pub(crate) plain_servers: Arc<PlainServers>,
    /// This proxy's name in `Via` (RFC 9110, section 7.6.3), by which it knows its own requests.
    pub(crate) pseudonym: String,
    /// For each listener, whether it accepts MPTCP.
    pub(crate) multipath: Vec<bool>,
}
