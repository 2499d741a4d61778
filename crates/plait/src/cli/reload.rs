//! `plait reload`: a running gateway or steering node reads its configuration again.

use std::io::{self, Write as _};

use super::Outcome;
use super::control::{self, Target};

const AFTER_HELP: &str = "\
Examples:
  plait reload
  plait reload gateway.toml
  plait reload --socket /run/plait/plait0.sock

A service manager may send SIGHUP instead. A gateway that was started from a terminal ends at
SIGHUP, so this is the way to reload it. The log says what needs a restart.

Exit codes:
  0  the configuration is sound and acts now
  2  it is not, and the old one stays; or the gateway does not answer";

/// Have a running gateway, steering node or proxy read its configuration again
///
/// Asks it over its control socket. Without an argument the only one of this machine is meant. It
/// reads the file that it was started with. Bonds whose peers did not change go on, and so do a
/// proxy's open connections.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    control::reload(&args.target.socket()?)?;
    writeln!(io::stdout(), "reloaded; the log says if anything needs a restart")?;
    Ok(Outcome::Good)
}
