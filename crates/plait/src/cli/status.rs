//! `plait status`: shows the state of a running gateway, steering node or proxy.

mod node;
mod proxy;
mod render;

use std::io::{self, Write as _};

use super::Outcome;
use super::control::{self, StatusAnswer, Target};
use crate::output::Style;
use crate::proxy::Report as ProxyReport;
use crate::steer::Report;

const AFTER_HELP: &str = "\
Examples:
  plait status
  plait status gateway.toml
  plait status --json | jq '.peers[].paths[] | {name, state, srtt_us}'
  plait status node.toml --json | jq '.clients[].attachments[] | {name, state, share}'

Exit codes:
  0  every bond, or every attachment of a steering node, is up; or a proxy runs
  1  the gateway or node runs, but one of them is not up
  2  an error; it is explained on stderr";

/// Show a running gateway: peers, paths, resequencer, drops; or a steering node, or a proxy
///
/// Asks it over its control socket. Without an argument the only one of this machine is meant.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Print the answer as it is: one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let socket = args.target.socket()?;
    let text = control::ask(&socket).map_err(|cause| control::explain(&socket, cause))?;
    let style = Style::for_stdout();
    let (shown, all_up) = if ProxyReport::is_in(&text) {
        (proxy::text(&control::proxy_report(&text, &socket)?, style), true)
    } else if Report::is_in(&text) {
        let report = control::report(&text, &socket)?;
        (node::text(&report, style), report.all_up())
    } else {
        let answer = StatusAnswer::parse(&text, &socket)?;
        (render::text(&answer, style), answer.all_up())
    };
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", text.trim_end())?;
    } else {
        stdout.write_all(shown.as_bytes())?;
    }
    stdout.flush()?;
    Ok(if all_up { Outcome::Good } else { Outcome::No })
}
