//! Serves the gateway's metrics over HTTP, for Prometheus.
//!
//! What it shows is the status of `plait status --json` under other names and in base units. A
//! scrape asks the loop for it like a client of the control socket does; a text that is younger
//! than a second is given out again.

mod exposition;
mod figures;
mod labels;
mod server;

use std::io;
use std::net::{SocketAddr, TcpListener};

use anyhow::Context as _;

use super::requests::Requests;
use crate::advice::Advised;
use crate::config::Config;

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {cause}")]
pub(crate) struct CannotListen {
    pub(crate) address: SocketAddr,
    pub(crate) cause: io::Error,
}

impl CannotListen {
    /// The remedy.
    pub(crate) fn help(&self) -> String {
        let port = self.address.port();
        match self.cause.kind() {
            io::ErrorKind::AddrInUse => format!(
                "`ss -tlpn sport = :{port}` shows who does; stop that, or set another port in \
                 `metrics` under [gateway]"
            ),
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have the address: write one that it has, as in \
                 \"127.0.0.1:9788\""
                    .into()
            }
            _ => "choose a port from 1024 on, or run plait as root".into(),
        }
    }
}

/// Opens the socket, when metrics are to be served.
pub(super) fn open(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let Some(metrics) = &config.gateway.metrics else { return Ok(None) };
    let address = metrics.value;
    let listener = TcpListener::bind(address).map_err(|cause| {
        let problem = CannotListen { address, cause };
        Advised::new(problem.to_string(), problem.help())
    })?;
    listener.set_nonblocking(true).context("cannot prepare the socket for metrics")?;
    Ok(Some(listener))
}

/// Serves them on a thread of its own, until the program ends.
pub(super) fn serve(listener: TcpListener, requests: Requests) -> anyhow::Result<()> {
    server::start(listener, requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_comes_with_its_remedy() {
        let holder = TcpListener::bind("127.0.0.1:0").unwrap();
        let taken = holder.local_addr().unwrap();
        for (address, remedy) in [
            (taken, "stop that, or set another"),
            (([192, 0, 2, 77], 9788).into(), "does not have"),
        ] {
            let cause = TcpListener::bind(address).unwrap_err();
            let problem = CannotListen { address, cause };
            assert!(problem.help().contains(remedy), "{problem}: {}", problem.help());
        }
    }
}
