//! `plait status`: what a running gateway says about itself.

mod render;

use std::io::{self, Write as _};

use super::Outcome;
use super::control::{self, Answer, Target};
use crate::output::Style;

const AFTER_HELP: &str = "\
Examples:
  plait status
  plait status gateway.toml
  plait status --json | jq '.peers[].paths[] | {name, state, srtt_us}'

Exit codes:
  0  every bond is up
  1  the gateway runs, but a bond is not up
  2  an error; it is explained on stderr";

/// Show a running gateway: peers, paths, resequencer, drops
///
/// Asks the gateway over its control socket. Without an argument the only gateway of this machine
/// is meant.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Print the gateway's answer as it is: one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let socket = args.target.socket()?;
    let text = control::ask(&socket).map_err(|cause| control::explain(&socket, cause))?;
    let answer = Answer::parse(&text, &socket)?;
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", text.trim_end())?;
    } else {
        stdout.write_all(render::text(&answer, Style::for_stdout()).as_bytes())?;
    }
    stdout.flush()?;
    Ok(if answer.all_up() { Outcome::Good } else { Outcome::No })
}
