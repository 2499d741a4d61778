//! All files over one carrier, one after the other, each over a connection of its own.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_proto::time::Instant;
use plait_sim::prng::Prng;
use plait_sim::scenario::Scenario;

use super::cases::{Carrier, Case, Condition, FLUCTUATING, LINKS, SCENARIO};
use crate::emulator::{Emulator, Lateness, Way};
use crate::list::Catalogue;
use crate::measure::{Fetched, FileServer, Target, Transport};
use crate::run::netns::{self, Site};
use crate::steering::{PlacedNode, SteerStatus};
use crate::topology::{SERVER_BARE_V4, enable_mptcp};

pub(super) const BYTES_PER_MB: u64 = 1_000_000;
/// Building a network, starting a node, waiting for its probes, and taking all down.
const SET_UP: Duration = Duration::from_secs(2);
/// Age of a network at which a file begins, and by how much it grows from run to run: the traces
/// repeat after 4 and 5.4 s, and six runs should begin at six different places of each.
const AGE: Duration = Duration::from_millis(2500);
const AGE_STEP: Duration = Duration::from_millis(1700);
/// A rate for the guess of how long files take.
const GUESS_MBIT: u64 = 20;
/// What was held when a download ends has been released after this.
const HOLD_END: Duration = Duration::from_millis(700);

/// One file.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub(super) size_mb: u64,
    pub(super) fetched: Fetched,
    /// What each link delivered to the client meanwhile, in bytes.
    pub(super) link_bytes: [u64; 2],
}

impl File {
    /// The primary's part of what the links delivered, in per cent.
    pub(super) fn primary_percent(&self) -> f64 {
        let [primary, other] = self.link_bytes;
        primary as f64 * 1e2 / (primary + other).max(1) as f64
    }
}

/// All files of one run.
#[derive(Debug)]
pub(super) struct Course {
    pub(super) files: Vec<File>,
    /// What each node said when its files were over.
    pub(super) nodes: Vec<SteerStatus>,
}

/// How long the files of a course may take, for people.
pub(super) fn time_guess(sizes_mb: &[u64]) -> Duration {
    SET_UP + Duration::from_secs(sizes_mb.iter().sum::<u64>() * 8 / GUESS_MBIT)
}

/// Fetches all files; how late the links were comes with them.
///
/// A trace begins when its link is made. So that every carrier meets the same course of things, a
/// file over links with a trace has a fresh network of its own, and begins when this has a certain
/// age, which differs from run to run.
pub(super) fn run(
    condition: &Condition,
    case: &Case,
    sizes_mb: &[u64],
    run: u64,
) -> Result<(Course, Lateness)> {
    let mut course = Course { files: Vec::new(), nodes: Vec::new() };
    let mut lateness = Lateness::default();
    if *condition == FLUCTUATING {
        let age = AGE + AGE_STEP * u32::try_from(run)?;
        for size in sizes_mb.chunks(1) {
            run_once((condition, case), size, (run, Some(age)), (&mut course, &mut lateness))?;
        }
    } else {
        run_once((condition, case), sizes_mb, (run, None), (&mut course, &mut lateness))?;
    }
    Ok((course, lateness))
}

/// Fetches files over one network, the first when it has this age.
fn run_once(
    (condition, case): (&Condition, &Case),
    sizes_mb: &[u64],
    (seed, age): (u64, Option<Duration>),
    (course, lateness): (&mut Course, &mut Lateness),
) -> Result<()> {
    let scenario = scenario(condition, case)?;
    let network = Site::build(&scenario, &mut Prng::new(seed))?;
    let mut node = start(case.carrier, &scenario, &network)?;
    let transport = if case.carrier == Carrier::Mptcp { Transport::Mptcp } else { Transport::Tcp };
    let largest = sizes_mb.iter().max().copied().unwrap_or_default() * BYTES_PER_MB;
    let server = SERVER_BARE_V4.into();
    let files = FileServer::start(&network.server, server, transport, largest)?;
    let bind = match case.carrier {
        Carrier::Link(name) => Some(name),
        Carrier::Node => Some(LINKS[0]),
        Carrier::Mptcp => None,
    };
    let bind = bind.map(|name| netns::customer_address(&scenario, name).into());
    let target = Target { client: &network.customer, server, bind };
    if let Some(age) = age {
        let begin = Instant::ZERO + age;
        std::thread::sleep(begin.since(network.epoch.now()));
    }
    for &size_mb in sizes_mb {
        let before = delivered(&scenario, &network);
        let fetched = files.fetch(target, size_mb * BYTES_PER_MB)?;
        let after = delivered(&scenario, &network);
        let link_bytes = [after[0] - before[0], after[1] - before[1]];
        course.files.push(File { size_mb, fetched, link_bytes });
    }
    if let Some(node) = &mut node {
        std::thread::sleep(HOLD_END);
        course.nodes.push(node.status()?);
        node.stop()?;
    }
    network.emulators().map(Emulator::report).for_each(|report| lateness.add(&report.lateness));
    Ok(())
}

/// The first cell of the scenario with the settings of a condition and of a case.
pub(super) fn scenario(condition: &Condition, case: &Case) -> Result<Scenario> {
    let settings = condition.settings.iter().chain(case.settings);
    let settings: Vec<String> = settings.map(|setting| (*setting).to_owned()).collect();
    let experiment = Catalogue::find(None)?.load(SCENARIO, &settings)?.experiment;
    let cell = experiment.cells.into_iter().next().context("an experiment has a cell")?;
    Ok(cell.scenario)
}

/// Starts what the carrier needs beside the links.
fn start<'a>(
    carrier: Carrier,
    scenario: &Scenario,
    network: &'a Site,
) -> Result<Option<PlacedNode<'a>>> {
    match carrier {
        Carrier::Link(_) => Ok(None),
        Carrier::Mptcp => {
            let device = netns::device_of(scenario, LINKS[1]);
            let address = netns::customer_address(scenario, LINKS[1]);
            enable_mptcp(&network.customer, &network.server, &[(address.into(), &device)])?;
            Ok(None)
        }
        Carrier::Node => {
            let steer = scenario.steer.as_ref().context("the scenario has a [steer]")?;
            let file = netns::node_file(scenario, steer);
            Ok(Some(PlacedNode::start(&network.provider, &network.customer, &file)?))
        }
    }
}

/// Bytes that each link has delivered to the client.
fn delivered(scenario: &Scenario, network: &Site) -> [u64; 2] {
    LINKS.map(|name| {
        let at = netns::place_of(scenario, name);
        network.observe(at, Way::Down).counters.out_bytes
    })
}

#[cfg(test)]
mod tests {
    use plait_proto::dida::HoldPolicy;
    use plait_proto::steer::Policy;
    use plait_sim::scenario::app::Traffic;

    use super::super::cases::{CASES, CONDITIONS, STEADY};
    use super::*;

    #[test]
    fn every_case_is_what_its_name_says() {
        for condition in &CONDITIONS {
            for case in CASES.iter().filter(|case| case.is_for(condition)) {
                let scenario = scenario(condition, case).unwrap();
                let steer = scenario.steer.unwrap();
                let dida = steer.dida.unwrap();
                if case.carrier != Carrier::Node {
                    continue;
                }
                let hold =
                    if case.name.contains("DIDA") { HoldPolicy::Optimum } else { HoldPolicy::Off };
                let is_half = case.name.contains("50:50");
                let policy = if is_half { Policy::Fixed } else { Policy::InverseRtt };
                assert_eq!((dida.hold, steer.policy), (hold, policy), "{}", case.name);
                let Traffic::Tcp(tcp) = &scenario.apps[0].traffic else { panic!("a TCP flow") };
                assert_eq!(tcp.tcp.sack, !case.name.contains("no SACK"), "{}", case.name);
                assert_eq!(steer.links, LINKS);
                let has_trace = matches!(
                    scenario.links[LINKS[0]].down.capacity,
                    plait_sim::scenario::link::Capacity::Trace(_)
                );
                assert_eq!(has_trace, *condition != STEADY);
            }
        }
    }
}
