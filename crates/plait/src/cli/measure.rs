//! `plait measure`: the method of paper 003 on the user's own links.
//!
//! - [`plan`]: the steps in their order, and what they may cost; [`measurement`]: their execution
//! - [`service`]: connections to the peer's measuring service
//! - [`figures`]: ratio, benefit and bounds; [`advice`]: what they mean; [`report`]: the table and
//!   the JSON document

mod advice;
mod figures;
mod measurement;
mod plan;
mod report;
mod service;

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plait_proto::stats::{PathState, PathStatus, PeerStatus};
use plait_toml::gateway::Gateway;

use self::figures::DirectionFigures;
use self::measurement::{Measurement, Subject};
use self::plan::{Direction, MeasurementPlan};
use self::report::{Cost, Report};
use self::service::Service;
use super::Outcome;
use super::control::{self, StatusAnswer, Target};
use super::format;
use crate::advice::Advised;
use crate::measure::{Command, FLOW_TIME_MAX};
use crate::output::Style;

const AFTER_HELP: &str = "\
Examples:
  plait measure
  plait measure gateway.toml --direction both --seconds 20
  plait measure --bonded-only --max-bytes \"100 MB\"
  plait measure --json > quiet.json; plait measure --clean quiet.json

The peer's gateway must allow it: `measure = true` under its [gateway] or its [[peer]]. First the
duration and the bytes are announced, and neither is exceeded.

Exit codes:
  0  measured
  1  not begun: the question about a metered path was not answered with yes
  2  an error; it is explained on stderr";

/// Which directions are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Directions {
    /// The peer sends
    Down,
    /// This side sends
    Up,
    /// One after the other
    Both,
}

impl Directions {
    fn list(self) -> &'static [Direction] {
        match self {
            Self::Down => &[Direction::Down],
            Self::Up => &[Direction::Up],
            Self::Both => &[Direction::Down, Direction::Up],
        }
    }
}

/// Measure what each path gives alone, all at once, and the bond of them
///
/// Sends TCP between this host and the peer's gateway inside the tunnel: over each path alone, over
/// all paths at once with a flow kept on each, then one flow over the bond as it is configured.
/// Prints throughput and latency, the aggregation ratio and benefit, and a sentence of advice.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Key of the peer, or its beginning; needed when there are several
    #[arg(long, value_name = "KEY")]
    peer: Option<String>,
    /// The peer's address inside the bond
    #[arg(long, value_name = "ADDRESS")]
    to: Option<IpAddr>,
    /// Port of the peer's measuring service
    #[arg(long, value_name = "PORT", default_value_t = Gateway::MEASURE_PORT)]
    port: u16,
    /// Measure this path and not the others; may be given several times
    #[arg(long = "path", value_name = "NAME")]
    paths: Vec<String>,
    /// Which way the bytes go
    #[arg(long, value_enum, default_value_t = Directions::Down)]
    direction: Directions,
    /// Seconds of each flow, 1 to 40
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=FLOW_TIME_MAX.as_secs()))]
    seconds: u64,
    /// What it may cost over all links, framing and both directions included
    #[arg(long, value_name = "AMOUNT", default_value = "1 GB", value_parser = amount)]
    max_bytes: u64,
    /// Measure the bond alone
    #[arg(long, conflicts_with = "paths")]
    bonded_only: bool,
    /// An earlier --json document, measured without interference, for the bounds
    #[arg(long, value_name = "FILE")]
    clean: Option<PathBuf>,
    /// Do not ask before metered paths are used
    #[arg(short, long)]
    yes: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

fn amount(text: &str) -> Result<u64, String> {
    plait_toml::value::amount::parse(text).map_err(|problem| problem.to_string())
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let socket = args.target.socket()?;
    let text = control::ask(&socket).map_err(|cause| control::explain(&socket, cause))?;
    let answer = StatusAnswer::parse(&text, &socket)?;
    let peer = choose_peer(&answer, args.peer.as_deref())?;
    let clean = args.clean.as_deref().map(read_clean).transpose()?;
    let bonded_by = bonded_paths(peer);
    let subjects = choose_paths(peer, &bonded_by, args)?;
    let flow_time = Duration::from_secs(args.seconds);
    let plan =
        MeasurementPlan::new(args.direction.list(), subjects.len(), flow_time, args.max_bytes);
    announce(&answer, peer, &subjects, args, &plan);
    let metered = metered_paths(peer, &bonded_by, &subjects);
    if !metered.is_empty() && !args.yes && !is_confirmed(&metered, args.max_bytes)? {
        return Ok(Outcome::No);
    }
    let whole = subjects.len() == bonded_by.len();
    let mut report = measure(&socket, &peer.public_key, &subjects, args, &plan)?;
    report.tun.clone_from(&answer.tun);
    report.compare(whole, clean.as_deref().unwrap_or_default());
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", serde_json::to_string(&report)?)?;
    } else {
        stdout.write_all(report.text(Style::for_stdout()).as_bytes())?;
    }
    stdout.flush()?;
    Ok(Outcome::Good)
}

/// Runs the plan; the results are not compared yet.
fn measure(
    socket: &Path,
    peer: &str,
    paths: &[Subject],
    args: &Args,
    plan: &MeasurementPlan,
) -> anyhow::Result<Report> {
    let start = Instant::now();
    let seconds = u32::try_from(plan.duration().as_secs()).unwrap_or(u32::MAX);
    let begun = Begun::begin(socket, peer, seconds)?;
    let addresses = args.to.map_or(begun.addresses.clone(), |address| vec![address]);
    let service = Service::open(&addresses, args.port, plan.duration())?;
    let (service, deadline) = (&service, start + plan.duration());
    let measurement = Measurement { socket, peer, service, plan, paths, deadline };
    let outcome = measurement.run(&mut tell)?;
    Ok(Report {
        tun: String::new(),
        peer: peer.to_owned(),
        announced: Cost { seconds: plan.duration().as_secs_f64(), bytes: plan.bytes_max },
        used: Cost { seconds: start.elapsed().as_secs_f64(), bytes: outcome.bytes },
        cut_phases: outcome.cut_phases,
        directions: outcome.directions,
        advice: Vec::new(),
    })
}

/// Registers the measurement with this host's gateway as long as the value lives.
struct Begun<'a> {
    socket: &'a Path,
    peer: &'a str,
    addresses: Vec<IpAddr>,
}

impl<'a> Begun<'a> {
    fn begin(socket: &'a Path, peer: &'a str, seconds: u32) -> Result<Self, Advised> {
        let command = Command::Begin { peer: peer.to_owned(), seconds };
        let addresses = control::command(socket, &command)?.addresses;
        Ok(Self { socket, peer, addresses })
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        // If this fails, the gateway forgets the measurement when its time is over.
        let _ = control::command(self.socket, &Command::End { peer: self.peer.to_owned() });
    }
}

fn read_clean(file: &Path) -> anyhow::Result<Vec<DirectionFigures>> {
    let unreadable = |cause: anyhow::Error| {
        let message = format!("{} is no earlier measurement", file.display());
        Advised::new(message, "give what `plait measure --json` has printed").caused_by(cause)
    };
    let text = fs::read_to_string(file).map_err(|cause| unreadable(cause.into()))?;
    let report: Report = serde_json::from_str(&text).map_err(|cause| unreadable(cause.into()))?;
    Ok(report.directions)
}

fn choose_peer<'a>(
    answer: &'a StatusAnswer,
    wanted: Option<&str>,
) -> Result<&'a PeerStatus, Advised> {
    let named = |peer: &&PeerStatus| wanted.is_none_or(|key| peer.public_key.starts_with(key));
    let found: Vec<_> = answer.endpoint.peers.iter().filter(named).collect();
    let peer = match *found {
        [peer] => peer,
        [] => {
            let keys: Vec<_> =
                answer.endpoint.peers.iter().map(|p| p.public_key.as_str()).collect();
            let help = format!("the peers are: {}", keys.join(", "));
            return Err(Advised::new("no peer has this key", help));
        }
        _ => {
            let keys: Vec<_> = found.iter().map(|peer| peer.public_key.as_str()).collect();
            let help = format!("choose one by --peer KEY: {}", keys.join(", "));
            return Err(Advised::new("the gateway has several peers", help));
        }
    };
    if peer.state != "up" {
        let message = format!("the bond with {} is {}, not up", peer.public_key, peer.state);
        return Err(Advised::new(message, "wait until `plait status` says that it is up"));
    }
    Ok(peer)
}

/// The working paths that a bond uses.
fn bonded_paths(peer: &PeerStatus) -> Vec<&PathStatus> {
    let works = |path: &&PathStatus| matches!(path.state, PathState::Up | PathState::Asleep);
    let (standby, in_use): (Vec<_>, Vec<_>) =
        peer.paths.iter().filter(works).partition(|path| path.standby);
    if in_use.is_empty() { standby } else { in_use }
}

/// The paths to be measured one by one.
fn choose_paths(
    peer: &PeerStatus,
    bonded_by: &[&PathStatus],
    args: &Args,
) -> Result<Vec<Subject>, Advised> {
    let subject = |path: &PathStatus| Subject { id: path.id, name: path.name.clone() };
    if args.bonded_only {
        return Ok(Vec::new());
    }
    if args.paths.is_empty() {
        return Ok(bonded_by.iter().map(|path| subject(path)).collect());
    }
    let mut subjects = Vec::new();
    for name in &args.paths {
        let path = peer.paths.iter().find(|path| path.name == *name).ok_or_else(|| {
            let names: Vec<_> = peer.paths.iter().map(|path| path.name.as_str()).collect();
            let help = format!("the bond's paths are: {}", names.join(", "));
            Advised::new(format!("there is no path {name}"), help)
        })?;
        if !matches!(path.state, PathState::Up | PathState::Asleep) {
            let message = format!("path {name} is {}: {}", path.state.name(), path.reason);
            return Err(Advised::new(message, "measure it when it is up"));
        }
        if !subjects.contains(&subject(path)) {
            subjects.push(subject(path));
        }
    }
    Ok(subjects)
}

/// Names of the metered paths that a measurement would use.
fn metered_paths<'a>(
    peer: &'a PeerStatus,
    bonded_by: &[&PathStatus],
    subjects: &[Subject],
) -> Vec<&'a str> {
    let is_used = |path: &&PathStatus| {
        let is_bonded = bonded_by.iter().any(|bonded| bonded.id == path.id);
        is_bonded || subjects.iter().any(|subject| subject.id == path.id)
    };
    let metered = peer.paths.iter().filter(is_used).filter(|path| path.metered);
    metered.map(|path| path.name.as_str()).collect()
}

/// Announces what will be done, and what it costs at most.
fn announce(
    answer: &StatusAnswer,
    peer: &PeerStatus,
    paths: &[Subject],
    args: &Args,
    plan: &MeasurementPlan,
) {
    let names: Vec<_> = paths.iter().map(|path| path.name.as_str()).collect();
    let what = match names.len() {
        0 => "the bond".to_owned(),
        1 => format!("{} alone, then the bond", names[0]),
        _ => format!("{} each alone, all at once, then the bond", names.join(" and ")),
    };
    let directions: Vec<_> = args.direction.list().iter().map(|one| one.name()).collect();
    tell(&format!(
        "{} with peer {}: {what}; {}",
        answer.tun,
        peer.public_key,
        directions.join(", ")
    ));
    tell(&format!(
        "takes {} and up to {} over all links, at most",
        format::duration(plan.duration().as_secs()),
        format::bytes(plan.bytes_max)
    ));
    let left_out = peer.paths.iter().filter(|path| !names.contains(&path.name.as_str()));
    if args.paths.is_empty() && !args.bonded_only {
        for path in left_out {
            let why = if path.standby { "it stands by" } else { path.state.name() };
            tell(&format!("path {} is left out: {why}", path.name));
        }
    }
}

/// Asks a person.
fn is_confirmed(metered: &[&str], bytes_max: u64) -> anyhow::Result<bool> {
    let what = match metered {
        [one] => format!("path {one} is metered"),
        several => format!("paths {} are metered", several.join(" and ")),
    };
    if !io::stdin().is_terminal() {
        let help = "add --yes, or leave it out: --path NAME --path NAME";
        return Err(Advised::new(format!("{what}, and nobody can be asked"), help).into());
    }
    eprint!("{what}: up to {} may go over it. Go on? [y/N] ", format::bytes(bytes_max));
    let mut reply = String::new();
    io::stdin().read_line(&mut reply)?;
    Ok(matches!(reply.trim(), "y" | "Y" | "yes"))
}

/// Reports progress on stderr, apart from the result.
fn tell(text: &str) {
    // With stderr closed there is no one to tell.
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_those_of_quotas() {
        assert_eq!(amount("250 MB"), Ok(250_000_000));
        assert!(amount("much").unwrap_err().contains("not an amount of data"));
    }
}
