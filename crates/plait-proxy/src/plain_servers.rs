//! Servers that answered an offer of MPTCP with TCP. A connection that has fallen back still goes
//! through the kernel's MPTCP, which costs more than half of what it can carry; so they are asked
//! by TCP for a while.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A server may learn MPTCP.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// Servers that are remembered at a time.
const SERVERS_MAX: usize = 4096;

/// Servers without MPTCP, each with when it was found to have none.
#[derive(Debug, Default)]
pub(crate) struct PlainServers(Mutex<HashMap<SocketAddr, Instant>>);

impl PlainServers {
    /// Whether a server is known to have no MPTCP.
    pub(crate) fn know(&self, server: SocketAddr) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&server).is_some_and(|found| found.elapsed() < KNOWN_FOR)
    }

    /// Remembers a server. When there are too many, those are forgotten whose time is over, and all
    /// when none is.
    pub(crate) fn note(&self, server: SocketAddr) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= SERVERS_MAX {
            known.retain(|_, found| found.elapsed() < KNOWN_FOR);
            if known.len() >= SERVERS_MAX {
                known.clear();
            }
        }
        known.insert(server, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(number: u32) -> SocketAddr {
        SocketAddr::from((number.to_be_bytes(), 80))
    }

    #[test]
    fn servers_are_remembered_within_bounds() {
        let servers = PlainServers::default();
        assert!(!servers.know(server(1)));
        servers.note(server(1));
        assert!(servers.know(server(1)) && !servers.know(server(2)));
        for number in 0..3 * SERVERS_MAX as u32 {
            servers.note(server(number));
            assert!(servers.know(server(number)));
        }
        assert!(servers.0.lock().unwrap().len() <= SERVERS_MAX);
    }
}
