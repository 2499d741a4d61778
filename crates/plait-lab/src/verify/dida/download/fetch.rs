//! Fetches files over one carrier, one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use plait_proto::dida::DidaStats;
use plait_proto::time::Instant;
use plait_sim::prng::Prng;
use plait_sim::scenario::app::Via;
use plait_sim::scenario::{Cell, Scenario};

use crate::emulator::{Emulator, Lateness, Way};
use crate::measure::{Fetched, FileServer, Target, Transport};
use crate::run::netns::{self, Site};
use crate::steering::{PlacedNode, SteerStatus};
use crate::topology::SERVER_BARE_V4;

/// Age of a network at which a file begins, and by how much it grows from run to run: the traces
/// repeat after 4 and 5.4 s, and six runs should begin at six different places of each.
const AGE: Duration = Duration::from_millis(2500);
const AGE_STEP: Duration = Duration::from_millis(1700);
/// After this time, ACKs held at a download's end have been released.
const HOLD_END: Duration = Duration::from_millis(700);

/// A file that was fetched.
#[derive(Debug)]
pub(super) struct File {
    pub(super) fetched: Fetched,
    /// The node's status after the last file.
    node: Option<SteerStatus>,
    /// Bytes sent into each link towards the client meanwhile. Queue drops count: the sender causes
    /// them, not the split.
    link_bytes: BTreeMap<String, u64>,
}

impl File {
    pub(super) fn dida(&self) -> Option<&DidaStats> {
        self.node.as_ref()?.node.dida.as_ref()
    }

    /// Metrics of the file; one that did not arrive has no time.
    pub(super) fn metrics(&self) -> BTreeMap<String, f64> {
        let total = self.link_bytes.values().sum::<u64>().max(1) as f64;
        let share = |(link, bytes): (&String, &u64)| {
            (format!("link_share_percent.{link}"), *bytes as f64 * 1e2 / total)
        };
        let mut metrics: BTreeMap<String, f64> = self.link_bytes.iter().map(share).collect();
        if self.fetched.is_complete() {
            let time_s = self.fetched.time.as_secs_f64();
            metrics.insert("transfer_s.file".into(), time_s);
            let bits = self.fetched.asked_bytes as f64 * 8.0;
            metrics.insert("transfer_mbit.file".into(), bits / 1e6 / time_s);
        }
        metrics
    }
}

/// Fetches the files of cells that differ in nothing else; also returns the links' lateness.
///
/// A trace begins when its link is made. So that every carrier meets the same conditions, a file
/// over links with a trace begins at a fixed age of the network, which differs from run to run.
pub(super) fn run(cells: &[&Cell], run: u64) -> Result<(Vec<File>, Lateness)> {
    let scenario = &cells[0].scenario;
    let network = Site::build(scenario, &mut Prng::new(run))?;
    let via = &scenario.apps[0].via;
    let steer = scenario.steer.as_ref().filter(|_| *via == Via::Steer);
    let mut node = match steer {
        Some(steer) => {
            let file = netns::node_file(scenario, steer);
            Some(PlacedNode::start(&network.provider, &network.customer, &file)?)
        }
        None => None,
    };
    let (transport, bind) = match via {
        Via::Mptcp => {
            network.enable_mptcp(scenario)?;
            (Transport::Mptcp, None)
        }
        Via::Link(link) => (Transport::Tcp, Some(link)),
        _ => (Transport::Tcp, steer.and_then(|steer| steer.links.first())),
    };
    let server = SERVER_BARE_V4.into();
    let sizes: Vec<u64> = cells.iter().map(|cell| super::transfer(cell).0).collect();
    let largest = sizes.iter().copied().max().unwrap_or_default();
    let from = FileServer::start(&network.server, server, transport, largest)?;
    let bind = bind.map(|link| netns::customer_address(scenario, link).into());
    let begin = Instant::ZERO + AGE + AGE_STEP * u32::try_from(run)?;
    if super::fluctuates(cells[0]) {
        std::thread::sleep(begin.since(network.epoch.now()));
    }
    let mut files = Vec::new();
    for bytes in sizes {
        let before = given(scenario, &network);
        let fetched = from.fetch(Target { client: &network.customer, server, bind }, bytes)?;
        let mut link_bytes = given(scenario, &network);
        link_bytes.iter_mut().for_each(|(link, bytes)| *bytes -= before[link]);
        files.push(File { fetched, node: None, link_bytes });
    }
    if let Some((node, file)) = node.as_mut().zip(files.last_mut()) {
        std::thread::sleep(HOLD_END);
        file.node = Some(node.status()?);
        node.stop()?;
    }
    let mut lateness = Lateness::default();
    network.emulators().map(Emulator::report).for_each(|report| lateness.add(&report.lateness));
    Ok((files, lateness))
}

/// Bytes sent into each link towards the client.
fn given(scenario: &Scenario, network: &Site) -> BTreeMap<String, u64> {
    let of_link = |(at, name): (usize, &String)| {
        (name.clone(), network.observe(at, Way::Down).counters.in_bytes)
    };
    scenario.links.keys().enumerate().map(of_link).collect()
}
