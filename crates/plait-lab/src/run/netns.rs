//! The namespaces as a back-end of scenarios: real gateways, the kernel's TCP, real time.
//!
//! - [`plan`]: checks which scenarios can be run here.
//! - [`player`]: those with a player, which Chromium is here.
//! - [`site`]: links, hosts and addresses.
//! - [`bond`]: the gateways' configuration.
//! - [`steering`]: the steering node's.
//! - [`udp`], [`tcp`], [`video`]: the applications.
//! - [`events`]: events during the run.
//! - [`recoveries`]: what the kernel counts of a TCP sender's losses.
//! - [`testbed`]: the running scenario, as the interface for the shared code of metrics and series.
//! - [`health`]: whether the machine kept up.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use plait_sim::prng::Prng;
use plait_sim::run::{Found, drain_time, drive};
use plait_sim::scenario::{Cell, CellResult, Experiment, Scenario};

use crate::cli::RunArgs;
use crate::gateway::{Bond, plait_program};
use crate::output;
use crate::qoe::check_player;
use crate::steering::PlacedNode;

mod bond;
mod error;
mod events;
mod health;
mod plan;
mod player;
mod recoveries;
mod site;
mod steering;
mod tcp;
mod testbed;
mod udp;
mod video;

use error::NetnsError;
use recoveries::Recoveries;
use site::SET_UP;
pub(crate) use site::{Site, customer_address};
pub(crate) use steering::node_file;
use testbed::{Carriers, NetnsTestbed};

/// A machine may be too loaded for a moment.
const TRIES: usize = 3;
/// How long a run that is one of many waits before more such tries: a machine whose host lends
/// its processors to others may be slow for minutes, and what was measured before would be lost.
const PAUSES_S: [u64; 4] = [20, 60, 120, 300];

/// Whether the scenario is meant for namespaces, and its files are visible from them. Call it
/// before any are made.
pub(super) fn check_meant(args: &RunArgs, scenario: &Scenario) -> Result<()> {
    plan::check_meant(scenario)?;
    check_files([&args.experiment.out, &args.experiment.html].into_iter().flatten())
}

/// Whether files to be written are visible from namespaces. Call it before any are made.
pub(crate) fn check_files<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    files.into_iter().try_for_each(|file| Ok(plan::check_file(file)?))
}

/// Whether the namespaces can run a scenario, whatever back-ends it names.
pub(crate) fn check(scenario: &Scenario) -> Result<()> {
    Ok(plan::check(scenario)?)
}

/// Whether the namespaces can run every cell. Call it before the first is run.
pub(super) fn check_cells(experiment: &Experiment) -> Result<()> {
    experiment.cells.iter().try_for_each(|cell| check(&cell.scenario))?;
    let needs_plait = |cell: &Cell| cell.scenario.bond.is_some() || cell.scenario.steer.is_some();
    if experiment.cells.iter().any(needs_plait) {
        plait_program()?;
    }
    if experiment.cells.iter().any(|cell| player::videos(&cell.scenario).next().is_some()) {
        check_player()?;
    }
    Ok(())
}

/// How long a run takes.
pub(crate) fn run_time(scenario: &Scenario) -> Duration {
    let played = player::play_time(scenario).unwrap_or(scenario.duration);
    SET_UP + played.min(scenario.duration) + drain_time(scenario)
}

/// Runs a cell and adds the scenario's own measures.
pub(super) fn run(cell: &Cell, seed: u64) -> Result<CellResult> {
    let (metrics, series) = run_scenario(&cell.scenario, seed)?;
    let (name, settings) = (cell.name.clone(), cell.settings.clone());
    let mut result = CellResult { cell: name, settings, seed, metrics, series };
    cell.scenario.measure(&mut result);
    Ok(result)
}

/// As [`run`], for one of many cells.
pub(super) fn run_patiently(cell: &Cell, seed: u64) -> Result<CellResult> {
    patiently(|| run(cell, seed))
}

/// Repeats what failed because the machine did not keep up, with pauses of up to five minutes.
pub(crate) fn patiently<T>(run: impl FnMut() -> Result<T>) -> Result<T> {
    with_pauses(thread::sleep, run)
}

fn with_pauses<T>(pause: impl Fn(Duration), mut run: impl FnMut() -> Result<T>) -> Result<T> {
    for seconds in PAUSES_S {
        match run() {
            Err(error) if is_too_slow(&error) => {
                output::note(format!("{error:#}; once more in {seconds} s"));
            }
            result => return result,
        }
        pause(Duration::from_secs(seconds));
    }
    run()
}

/// Runs a scenario in new namespaces, and repeats it if the machine did not keep up.
fn run_scenario(scenario: &Scenario, seed: u64) -> Result<Found> {
    for _ in 1..TRIES {
        match run_once(scenario, seed) {
            Err(error) if is_too_slow(&error) => output::note(format!("{error:#}; once more")),
            result => return result,
        }
    }
    run_once(scenario, seed)
}

/// Whether an error says that the machine did not keep up.
pub(crate) fn is_too_slow(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(NetnsError::TooSlow { .. }))
}

/// Whether another lab's error says that the machine did not keep up.
pub(super) fn tells_of_a_slow_machine(said: &str) -> bool {
    said.contains("too slow or too loaded for the run")
}

fn run_once(scenario: &Scenario, seed: u64) -> Result<Found> {
    let scenario = &*scenario.drawn(seed);
    let mut prng = Prng::new(seed);
    let clip = video::prepare(scenario)?;
    let site = Site::build(scenario, &mut prng)?;
    let bond = scenario.bond.as_ref().map(|spec| {
        let setup = bond::setup(scenario, spec);
        Bond::start(&site.customer, &site.provider, &setup)
    });
    let steer = scenario.steer.as_ref().filter(|_| plan::steers(scenario));
    let node = steer
        .map(|spec| PlacedNode::start(&site.provider, &site.customer, &node_file(scenario, spec)));
    let (bond, node) = (bond.transpose()?, node.transpose()?);
    let carriers = Carriers { bond, node, killed: Vec::new(), restarted: false };
    if plan::needs_mptcp(scenario) {
        site.enable_mptcp(scenario)?;
    }
    let mut stage = clip.map(|clip| video::Stage::set(scenario, &site, &clip)).transpose()?;
    let page = stage.as_mut().and_then(video::Stage::take_page);
    let recoveries = Recoveries::begin(scenario, &site)?;
    let mut testbed = NetnsTestbed::start(scenario, &site, carriers, page, &mut prng)?;
    let (mut metrics, series) = drive(scenario, &mut testbed)?;
    if let Some(counted) = recoveries {
        counted.put(&mut metrics)?;
    }
    let health = testbed.health()?;
    for app in testbed.apps_without_timeouts() {
        metrics.remove(&format!("timeouts.{app}"));
    }
    testbed.stop()?;
    health.check()?;
    output::note(health.describe());
    Ok((metrics, series))
}

#[cfg(test)]
mod tests {
    use std::cell;

    use super::*;

    #[test]
    fn a_slow_machine_is_known_by_its_error_and_by_its_words() {
        let slow = anyhow::Error::from(NetnsError::TooSlow { seen: "all late".to_owned() });
        assert!(is_too_slow(&slow) && tells_of_a_slow_machine(&format!("{slow:#}")));
        let other = anyhow::Error::from(NetnsError::Hidden { file: "x".to_owned() });
        assert!(!is_too_slow(&other) && !tells_of_a_slow_machine(&format!("{other:#}")));
    }

    #[test]
    fn a_run_of_many_waits_for_a_slow_machine_and_for_nothing_else() {
        let [slow, good, hidden]: [fn() -> Result<u32>; 3] = [
            || Err(NetnsError::TooSlow { seen: "all late".to_owned() }.into()),
            || Ok(7),
            || Err(NetnsError::Hidden { file: "x".to_owned() }.into()),
        ];
        let waited = |outcomes: &[fn() -> Result<u32>]| {
            let (waits, mut left) = (cell::Cell::new(0), outcomes.iter());
            let pause = |time: Duration| waits.set(waits.get() + time.as_secs());
            let result = with_pauses(pause, || left.next().unwrap_or(&slow)());
            (result.ok(), waits.get(), left.len())
        };
        assert_eq!(waited(&[good, slow]), (Some(7), 0, 1));
        assert_eq!(waited(&[slow, slow, good]), (Some(7), 80, 0));
        assert_eq!(waited(&[slow, hidden, good]), (None, 20, 1));
        assert_eq!(waited(&[]), (None, 500, 0), "it gives up");
    }
}
