//! What every connection needs of its proxy.

use std::sync::{Arc, PoisonError, RwLock};

use crate::config::Config;
use crate::plain_servers::PlainServers;
use crate::registry::Registry;
use crate::relay::Pipes;

/// What every connection needs. It keeps what it began with.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) registry: Arc<Registry>,
    pub(crate) pipes: Arc<Pipes>,
    pub(crate) plain_servers: Arc<PlainServers>,
    /// This proxy's name in `Via` (RFC 9110, section 7.6.3), by which it knows its own requests.
    pub(crate) pseudonym: String,
    /// For each listener, whether it accepts MPTCP.
    pub(crate) multipath: Vec<bool>,
}

/// What connections that begin now get.
#[derive(Clone, Debug)]
pub(crate) struct Current(Arc<RwLock<Arc<Shared>>>);

impl Current {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(shared))))
    }

    pub(crate) fn get(&self) -> Arc<Shared> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on another configuration; all else goes on.
    pub(crate) fn follow(&self, config: Config) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(Shared { config, ..Shared::clone(&current) });
    }
}
