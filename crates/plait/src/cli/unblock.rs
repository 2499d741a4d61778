//! `plait unblock`: lifts a kill switch that a gateway left in force, and has the host ask the name
//! servers again that it asked before.

use std::io::{self, Write as _};

use anyhow::Context as _;
use plait_net::netlink::Netlink;
use serde_json::json;

use super::Outcome;
use crate::advice::Advised;
use crate::daemon::{
    HostError, block_table, blocks_in_force, lift, resolver_leftovers, restore_resolver,
};

const AFTER_HELP: &str = "\
Examples:
  plait unblock
  plait unblock plait0
  plait unblock --json

A gateway with `when_down = \"block\"` keeps everything in that would leave outside the bond, also
after it crashed or was killed. `plait up` takes over what is in force; this lifts it. One with
[dns] has the host ask name servers through the bond; this puts back what a dead one left of it.

Exit codes:
  0  lifted: traffic leaves the host again, or the old name servers are asked
  1  nothing was in force
  2  an error, such as a gateway that still runs; it is explained on stderr";

/// Undo what a dead gateway left: a kill switch (`when_down = "block"`), name servers (`[dns]`)
///
/// Needs the right to change the packet filter, so run it as root. A running gateway keeps its
/// kill switch: stop it, or change its configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The TUN device of the gateway; without it those of all gateways that do not run are meant
    tun: Option<String>,
    /// Print JSON Lines: one `restored` or `lifted` for each, then a `summary`
    #[arg(long)]
    json: bool,
}

/// Has the host ask the name servers again that it asked before dead gateways; tells for which, and
/// by which way.
fn restore(
    wanted: Option<&str>,
    exists: impl Fn(&str) -> bool,
    running: &mut Vec<String>,
) -> Result<Vec<(String, &'static str)>, Advised> {
    let mut restored = Vec::new();
    let left = resolver_leftovers().into_iter();
    for (tun, way) in left.filter(|(tun, _)| wanted.is_none_or(|wanted| wanted == tun)) {
        if exists(&tun) {
            running.push(tun);
            continue;
        }
        restore_resolver(&tun, way).map_err(|error| {
            Advised::new(format!("the name servers of {tun} stay: {error}"), "run it as root")
        })?;
        restored.push((tun, way.told()));
    }
    Ok(restored)
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let blocks = match blocks_in_force() {
        // Without it there is no kill switch.
        Err(HostError::NftMissing) => Vec::new(),
        result => result.map_err(|error| {
            Advised::new(format!("cannot look for what is in force: {error}"), "run it as root")
        })?,
    };
    let wanted = args.tun.as_deref().map(block_table);
    let is_meant = |table: &&String| wanted.as_ref().is_none_or(|wanted| *table == wanted);
    let links = Netlink::open()?.links().context("cannot look at the interfaces")?;
    let device = |table: &str| links.iter().find(|link| block_table(&link.name) == table);
    let (mut lifted, mut running) = (Vec::new(), Vec::new());
    for table in blocks.iter().filter(is_meant) {
        match device(table) {
            Some(link) => running.push(link.name.clone()),
            None => {
                lift(table).map_err(|error| {
                    Advised::new(format!("{table} is not lifted: {error}"), "run it as root")
                })?;
                lifted.push(table);
            }
        }
    }
    let exists = |tun: &str| links.iter().any(|link| link.name == tun);
    let restored = restore(args.tun.as_deref(), exists, &mut running)?;
    running.dedup();
    let mut stdout = io::stdout().lock();
    for (tun, way) in &restored {
        let told = json!({ "type": "restored", "tun": tun, "way": way });
        match args.json {
            true => writeln!(stdout, "{told}")?,
            false => writeln!(stdout, "{way} is as it was before {tun}")?,
        }
    }
    for table in &lifted {
        match args.json {
            true => writeln!(stdout, "{}", json!({ "type": "lifted", "table": table }))?,
            false => writeln!(stdout, "{table} is lifted")?,
        }
    }
    if !running.is_empty() {
        let message = format!("a gateway still runs with {}", running.join(", "));
        let help = "stop it, or remove `when_down = \"block\"` and start it again";
        return Err(Advised::new(message, help).into());
    }
    match args.json {
        true => writeln!(stdout, "{}", json!({ "type": "summary", "lifted": lifted.len() }))?,
        false if lifted.is_empty() && restored.is_empty() => {
            writeln!(stdout, "nothing was in force")?
        }
        false => {}
    }
    stdout.flush()?;
    Ok(if lifted.is_empty() && restored.is_empty() { Outcome::No } else { Outcome::Good })
}
