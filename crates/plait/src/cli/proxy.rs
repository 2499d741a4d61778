//! `plait proxy`: MPTCP on the access side, TCP towards servers.

use std::io::{self, Write as _};
use std::path::PathBuf;

use super::control::{self, Target};
use super::{Outcome, up};
use crate::proxy;
use crate::proxy::config::ProxyConfig;

const AFTER_HELP: &str = "\
Examples:
  plait proxy run proxy.toml               run it in the foreground
  plait status proxy.toml                  what it does: connections, bytes, accesses, refusals
  plait proxy metrics proxy.toml           the same for Prometheus

Exit codes:
  0  ended by a signal, or printed
  2  an error; it is explained on stderr, and nothing is left half set up";

/// Turn MPTCP into TCP and back: a bond for TCP without a tunnel
///
/// Clients come in by HTTP (CONNECT and plain), SOCKS 5, the 0-RTT TCP Convert Protocol, or without
/// knowing it, where the kernel leads them here. Between two proxies connections run over MPTCP, and
/// so over all links; servers need to know nothing of it. docs/guide/proxy.md shows how.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Run a proxy in the foreground
    ///
    /// The first Ctrl-C or SIGTERM lets open connections finish, for `drain_s` at most; the second
    /// one ends it at once.
    Run {
        /// The proxy's configuration file
        config: PathBuf,
        /// Log more: -v adds each connection and refusal
        #[arg(short, long, action = clap::ArgAction::Count)]
        verbose: u8,
    },
    /// Print a running proxy's counts in Prometheus' text format
    Metrics {
        #[command(flatten)]
        target: Target,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    match &args.action {
        Action::Run { config, verbose } => {
            up::start_log(*verbose);
            up::keep_memory_private();
            proxy::run(ProxyConfig::load(config)?)?;
        }
        Action::Metrics { target } => {
            let socket = target.socket()?;
            let text = control::ask_for(&socket, "metrics");
            let text = text.map_err(|cause| control::explain(&socket, cause))?;
            let mut stdout = io::stdout().lock();
            stdout.write_all(text.as_bytes())?;
            stdout.flush()?;
        }
    }
    Ok(Outcome::Good)
}
