//! install.3: the last release and this code work together; a download lives through the upgrade of
//! one end, then of the other, and through a restart.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::debian::{Debian, Sources};
use super::machine::set_up;
use super::package::Network;
use crate::emulator::Way;
use crate::figure::Figure;
use crate::measure::{Stream, Target, Transport};
use crate::output::Progress;
use crate::process::wait_until;
use crate::scratch::Scratch;
use crate::topology::SERVER_V4;
use crate::verify::Effort;

const SOURCE: &str = "install.3";
const GAP_MAX_S: f64 = 2.0;
const STEP_LIMIT: Duration = Duration::from_secs(60);
/// How long the download is watched before an upgrade, and after it.
const BEFORE: Duration = Duration::from_secs(4);
const AFTER: Duration = Duration::from_secs(8);
const UP_WITHIN: Duration = Duration::from_secs(20);
/// A run, for the progress display.
const RUN: Duration = Duration::from_secs(60);
/// Where a system has the package of this code.
const UPGRADE: &str = "/opt/plait-new.deb";

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let (previous, new) = (Sources::find_in("previous/package")?, Sources::find()?);
    let runs = effort.runs();
    let mut progress = Progress::new(2 * runs, RUN * 2 * runs as u32);
    let mut figures = Vec::new();
    // The provider first, as an operator would; and the other way round.
    for (name, order) in [("provider first", [0, 1]), ("customer first", [1, 0])] {
        let mut gaps: [Vec<f64>; 3] = Default::default();
        let mut breaks = 0;
        for _ in 0..runs {
            let _step = progress.step(name, RUN);
            let seen = upgrade(&previous, &new, order).with_context(|| name.to_owned())?;
            breaks += u64::from(seen.death.is_some());
            figures.extend(seen.death.map(|why| Figure::text(format!("{name}: broke"), why)));
            for (at, step) in seen.steps.into_iter().enumerate() {
                gaps[at].push(step.gap.as_secs_f64());
                if gaps[at].len() == 1 {
                    figures.push(Figure::text(format!("{name}: {}", step.end), step.told));
                }
            }
        }
        for (at, gaps) in gaps.iter().enumerate() {
            let longest = gaps.iter().copied().fold(0.0, f64::max);
            let what = ["one end is upgraded", "the other is", "the provider is restarted"][at];
            let name = format!("{name}: longest gap while {what}");
            figures.push(Figure::number(name, longest, "s").at_most(GAP_MAX_S, SOURCE));
        }
        let name = format!("{name}: connections that broke");
        figures.push(Figure::none(name, breaks, SOURCE));
    }
    Ok(figures)
}

/// The upgrade of one end.
struct Step {
    end: &'static str,
    gap: Duration,
    /// Versions before and after, and what the two ends speak then.
    told: String,
}

struct Seen {
    steps: Vec<Step>,
    /// Why the download ended, if it did.
    death: Option<String>,
}

/// Two ends of the last release carry a download of a LAN host while both are upgraded in turn.
fn upgrade(previous: &Sources, new: &Sources, order: [usize; 2]) -> Result<Seen> {
    let scratch = Scratch::on_disk("upgrade")?;
    let network = Network::build()?;
    let folder = |name: &str| scratch.path().join(name);
    let provider = Debian::make(previous, &folder("provider"), "plait-provider")?;
    let customer = set_up(previous, scratch.path(), &provider, "--lan 192.168.7.0/24")?;
    let ends = [("the provider", &provider), ("the customer", &customer)];
    for (_, end) in ends {
        new.copy_into(end, UPGRADE)?;
    }
    wait_until_up(&provider)?;
    let target = Target { client: network.lan(), server: SERVER_V4.into(), bind: None };
    let stream = Stream::start_to(target, &network.topology.server, Transport::Tcp, Way::Down)?;
    let mut steps = Vec::new();
    for at in order {
        let (end, system) = ends[at];
        let before = version(system)?;
        let line = format!("apt-get install --yes {UPGRADE}");
        let (gap, rate) = disturb(&stream, system, &line)?;
        let after = version(system)?;
        ensure!(before != after, "the package of this code is of the last release's version");
        let wire = wait_until_up(&customer)?;
        let told = format!("{before} to {after}, wire {wire}, then {rate:.0} Mbit/s");
        steps.push(Step { end, gap, told });
    }
    let (gap, rate) = disturb(&stream, &provider, "systemctl restart plait@plait0")?;
    let told = format!("then {rate:.0} Mbit/s");
    steps.push(Step { end: "the provider's restart", gap, told });
    Ok(Seen { steps, death: stream.death() })
}

/// Runs a command at an end while the download goes on: its longest gap, and its rate at last in
/// Mbit/s.
fn disturb(stream: &Stream, system: &Debian, line: &str) -> Result<(Duration, f64)> {
    std::thread::sleep(BEFORE);
    let from = Instant::now();
    system.run(line, STEP_LIMIT)?;
    std::thread::sleep(AFTER);
    let until = Instant::now();
    let deliveries = stream.deliveries();
    let rate = deliveries.rate_bps(until - Duration::from_secs(2), until) as f64 / 1e6;
    Ok((deliveries.longest_gap(from, until), rate))
}

fn version(system: &Debian) -> Result<String> {
    let line = "dpkg-query --show --showformat '${Version}' plait";
    Ok(system.run(line, STEP_LIMIT)?.trim().to_owned())
}

/// Waits until the bond carries; gives the protocol's version and revision that it has.
fn wait_until_up(system: &Debian) -> Result<String> {
    wait_until("a bond of two versions", UP_WITHIN, || {
        let said = system.run_any("plait status --json", STEP_LIMIT)?;
        if !said.status.success() {
            return Ok(None);
        }
        let status: serde_json::Value = serde_json::from_str(&said.stdout)?;
        Ok(Some(status["peers"][0]["wire"].as_str().unwrap_or("1.0").to_owned()))
    })
}
