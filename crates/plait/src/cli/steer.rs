//! `plait steer`: runs a steering node, or prints what its clients need.

use std::io::{self, Write as _};
use std::path::PathBuf;

use super::{Outcome, up};
use crate::advice::Advised;
use crate::steer;
use crate::steer::config::{Client, SteerConfig};
use crate::steer::recipe::{self, Kind};

const AFTER_HELP: &str = "\
Examples:
  plait steer node.toml
  plait steer node.toml -v
  plait steer --client-rules node.toml
  plait steer --client-rules node.toml --client phone --for nftables > phone.sh
  plait status node.toml

The log goes to stderr; RUST_LOG chooses what is logged. Ctrl-C and SIGTERM end the node, release
every ACK that it holds and remove its device, rules and routes; connections go on, over the primary
attachments. `plait reload` makes it read its configuration again; so does SIGHUP, unless stdin,
stdout or stderr is a terminal: then the node ends with that.

Exit codes:
  0  ended by a signal, or printed
  2  an error; it is explained on stderr, and nothing is left half set up";

/// Run a steering node in the foreground
///
/// For clients that run no plait: takes the packets that are for them, and sends each over one of
/// their attachments. docs/guide/steering.md shows how.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The node's configuration file
    config: PathBuf,
    /// Print what the clients need, as shell lines, and run nothing
    #[arg(long)]
    client_rules: bool,
    /// Print it for this client alone
    #[arg(long, value_name = "NAME", requires = "client_rules")]
    client: Option<String>,
    /// Print it for this kind of client alone
    #[arg(long = "for", value_name = "KIND", value_enum, requires = "client_rules")]
    kind: Option<Kind>,
    /// Log more: -v adds what single sends and reads failed for
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if args.client_rules {
        return print_recipe(args);
    }
    up::start_log(args.verbose);
    up::keep_memory_private();
    steer::run(SteerConfig::load(&args.config)?)?;
    Ok(Outcome::Good)
}

fn print_recipe(args: &Args) -> anyhow::Result<Outcome> {
    let config = SteerConfig::load(&args.config)?;
    let wanted = |client: &&Client| args.client.as_ref().is_none_or(|name| *name == client.name);
    let clients: Vec<&Client> = config.clients.iter().filter(wanted).collect();
    if let Some(name) = args.client.as_ref().filter(|_| clients.is_empty()) {
        let known: Vec<&str> = config.clients.iter().map(|client| client.name.as_str()).collect();
        let message = format!("{}: no client is called \"{name}\"", config.file.display());
        return Err(Advised::new(message, format!("known: {}", known.join(", "))).into());
    }
    let kinds = args.kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
    let mut stdout = io::stdout().lock();
    stdout.write_all(recipe::text(&config, &clients, &kinds).as_bytes())?;
    stdout.flush()?;
    Ok(Outcome::Good)
}
