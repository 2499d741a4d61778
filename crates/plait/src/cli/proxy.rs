//! `plait proxy`: MPTCP on the access side, TCP towards servers.

mod check;

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::control::{self, Target};
use super::{Outcome, up};
use crate::proxy::config::{ProxyConfig, host};
use crate::proxy::{self, endpoints, rules};

const AFTER_HELP: &str = "\
Examples:
  plait proxy check proxy.toml             is the file sound, and the machine ready for it?
  plait proxy run proxy.toml               run it in the foreground
  plait status proxy.toml                  what it does: connections, bytes, accesses, refusals
  plait proxy metrics proxy.toml           the same for Prometheus
  plait proxy endpoints --dry-run c.toml   what would let the kernel's MPTCP use all links
  plait proxy endpoints client.toml        do it, for as long as this runs
  plait proxy rules proxy.toml             what leads clients here that know of no proxy
  plait proxy rules --apply proxy.toml     do it, for as long as this runs

Exit codes:
  0  ended by a signal, or printed; of `check`: `run` would start
  2  an error; it is explained on stderr, and nothing is left half set up; of `check`: `run`
     would not start, and the lines marked `error` say why";

/// Turn MPTCP into TCP and back: a bond for TCP without a tunnel
///
/// Clients come in by HTTP (CONNECT and plain), SOCKS 5, the 0-RTT TCP Convert Protocol, or without
/// knowing it, where the kernel leads them here. Between two proxies connections run over MPTCP,
/// and so over all links; servers need to know nothing of it. docs/guide/proxy.md shows how.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check a proxy's file, and the machine against it
    ///
    /// Reads the file and those that it names, and looks at listeners, congestion control, the
    /// kernel's MPTCP, open files, and what the file says of links and rules. Prints a line for
    /// each, with advice. Changes nothing; a proxy that runs goes on.
    Check {
        /// The proxy's configuration file
        config: PathBuf,
        /// Print JSON Lines: one `finding` each, then a `summary`
        #[arg(long)]
        json: bool,
    },
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
    /// Let the kernel's MPTCP use all links, for as long as this runs
    ///
    /// Sets endpoints, limits and routes by source address for the links of the file's `[[path]]`,
    /// a gateway's or a proxy's, and follows links that come and go. At its end everything is as it
    /// was found; after a crash the next start sees to that. docs/guide/proxy-links.md says more.
    Endpoints {
        /// A configuration file with `[[path]]`
        config: PathBuf,
        /// Print the commands, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Undo what a crashed run left, and do nothing else
        #[arg(long, conflicts_with = "dry_run")]
        undo: bool,
        /// Log more
        #[arg(short, long, action = clap::ArgAction::Count)]
        verbose: u8,
    },
    /// Print the rules that lead clients' connections to the listeners `redirect` and `tproxy`
    Rules {
        /// The proxy's configuration file
        config: PathBuf,
        /// Set the rules, for as long as this runs
        #[arg(long)]
        apply: bool,
        /// Undo what a crashed `--apply` left, and do nothing else
        #[arg(long, conflicts_with = "apply")]
        undo: bool,
        /// Log more
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
        Action::Check { config, json } => return check::run(config, *json),
        Action::Run { config, verbose } => {
            up::start_log(*verbose);
            up::keep_memory_private();
            proxy::run(ProxyConfig::load(config)?)?;
        }
        Action::Endpoints { config, dry_run, undo, verbose } => {
            let config = host::load_endpoints(config)?;
            if *dry_run {
                print(&endpoints::dry_run(&config)?)?;
            } else if *undo {
                endpoints::undo_leftovers(&config.state_file)?;
            } else {
                up::start_log(*verbose);
                endpoints::run(config, &signals()?)?;
            }
        }
        Action::Rules { config, apply, undo, verbose } => {
            let all = host::load_rules(config)?;
            if *apply {
                up::start_log(*verbose);
                hold(&all)?;
            } else if *undo {
                for one in &all {
                    rules::undo_leftovers(&one.state_file)?;
                }
            } else {
                print(&all.iter().map(rules::text).collect::<Vec<_>>().join("\n"))?;
            }
        }
        Action::Metrics { target } => {
            let socket = target.socket()?;
            let text = control::ask_for(&socket, "metrics");
            print(&text.map_err(|cause| control::explain(&socket, cause))?)?;
        }
    }
    Ok(Outcome::Good)
}

fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Readable once a signal says that this is to end.
fn signals() -> anyhow::Result<UnixStream> {
    let (stop, told) = UnixStream::pair().context("cannot make a pair of sockets")?;
    for signal in [SIGINT, SIGTERM] {
        let told = told.try_clone().context("cannot share a socket")?;
        signal_hook::low_level::pipe::register(signal, told).context("cannot watch for signals")?;
    }
    Ok(stop)
}

/// Keeps rules in force until a signal.
fn hold(all: &[rules::RulesConfig]) -> anyhow::Result<()> {
    let mut stop = signals()?;
    let applied = all.iter().map(rules::apply).collect::<Result<Vec<_>, _>>()?;
    stop.read(&mut [0]).context("cannot wait for a signal")?;
    drop(applied);
    Ok(())
}
