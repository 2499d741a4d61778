//! dida.5: the downloads of `000/downloads`: how long they take over each link alone, over a
//! steering node with and without DIDA, and over the kernel's MPTCP. paper.5: the same for a node
//! that steers by capacity, and whether the machine was quiet meanwhile. The scenarios have the
//! claims and their bounds; this module has the checks that no scenario can express: each file
//! arrives whole, and nothing is held afterwards.

mod fetch;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plait_proto::dida::DidaStats;
use plait_sim::scenario::app::Traffic;
use plait_sim::scenario::{Cell, CellResult};

use super::super::{Effort, Figure, LATENESS};
use crate::cli::{On, RunArgs};
use crate::emulator::Lateness;
use crate::machine::{self, Machine, Watch};
use crate::measure::{FETCH_CONGESTION, SenderView};
use crate::output::{self, Progress};
use crate::run::PreparedRun;
use crate::set::figures_of;
use fetch::File;

/// A machine may be too busy for a moment.
const TRIES: usize = 2;
/// Estimated mean time of a file, including its share of building a network, for the progress
/// display.
const FILE_S: u64 = 4;
/// On fluctuating links a download depends on its start time, so there are more start times: so
/// many for each run elsewhere.
const STARTS: usize = 2;
/// Where a figure decides over a policy that is plait's own: at least ten.
const STARTS_BY_CAPACITY: usize = 4;
/// Without SACK and without DIDA larger files take a minute.
const WITHOUT_SACK_BYTES_MAX: u64 = 4_000_000;

/// What was measured, and whether the machine kept up.
#[derive(Debug, Default)]
struct Measured {
    /// By cell.
    files: BTreeMap<String, Vec<File>>,
    results: Vec<CellResult>,
    lateness: Lateness,
    busy_runs: u64,
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    measure("000/downloads", "dida.5", effort, STARTS)
}

pub(in super::super) fn check_by_capacity(effort: Effort) -> Result<Vec<Figure>> {
    let (before, watch) = (machine::load(), Watch::start());
    let scenario = "000/downloads-by-capacity";
    let mut figures = measure(scenario, "paper.5", effort, STARTS_BY_CAPACITY)?;
    let (seen, after) = (watch.end(), machine::load());
    let text = format!("{seen}; load {before} before, {after} after");
    figures.push(Figure::text("the machine meanwhile", text));
    Ok(figures)
}

fn measure(
    scenario: &str,
    promise: &'static str,
    effort: Effort,
    starts: usize,
) -> Result<Vec<Figure>> {
    let started = Instant::now();
    let plan = PreparedRun::new(&RunArgs::of(scenario, On::Netns))?;
    let cells: Vec<&Cell> = plan.cells().iter().filter(|cell| is_measured(cell)).collect();
    // On steady links the files of one carrier follow each other over one network.
    let same_network = |one: &&Cell, next: &&Cell| {
        !fluctuates(one) && !fluctuates(next) && one.settings["way"] == next.settings["way"]
    };
    let mut measured = Measured::default();
    // The carriers alternate, so that a machine that is busy for some minutes affects all of them
    // equally.
    let turns = (0..starts * effort.runs())
        .flat_map(|run| cells.chunk_by(same_network).map(move |cells| (run, cells)));
    let runs = |cell| effort.runs() * if fluctuates(cell) { starts } else { 1 };
    let turns: Vec<_> = turns.filter(|(run, cells)| *run < runs(cells[0])).collect();
    let time = |cells: &[&Cell]| Duration::from_secs(FILE_S * cells.len() as u64);
    let total = turns.iter().map(|(_, cells)| time(cells)).sum();
    let mut progress = Progress::new(turns.len(), total);
    for (run, cells) in turns {
        let name = &cells[0].name;
        let _step = progress.step(name, time(cells));
        measured.fetch(cells, run as u64 + 1).with_context(|| format!("from {name} on"))?;
    }
    let kernel = Machine::detect().kernel;
    let sender = format!("Linux {kernel}, {FETCH_CONGESTION}, RACK-TLP; no SACK: RFC 6582");
    let mut figures = vec![Figure::text("the sender", sender)];
    figures.extend(figures_of(&plan.results(measured.results.clone(), started)));
    figures.extend(measured.figures(promise));
    Ok(figures)
}

/// Bytes of the file, and whether its sender has SACK.
fn transfer(cell: &Cell) -> (u64, bool) {
    match &cell.scenario.apps[0].traffic {
        Traffic::Tcp(tcp) => (tcp.transfer_bytes.unwrap_or(0), tcp.tcp.sack),
        _ => (0, true),
    }
}

fn fluctuates(cell: &Cell) -> bool {
    cell.settings.get("condition").and_then(|label| label.as_str()) == Some("fluctuating")
}

/// A sender without SACK is measured only on steady links.
fn is_measured(cell: &Cell) -> bool {
    let (bytes, has_sack) = transfer(cell);
    has_sack || (!fluctuates(cell) && bytes <= WITHOUT_SACK_BYTES_MAX)
}

impl Measured {
    fn fetch(&mut self, cells: &[&Cell], run: u64) -> Result<()> {
        for left in (0..TRIES).rev() {
            let (files, lateness) = fetch::run(cells, run)?;
            if lateness.is_too_late() && left > 0 {
                output::note("the machine was too busy; once more");
                continue;
            }
            self.busy_runs += u64::from(lateness.is_too_late());
            self.lateness.add(&lateness);
            for (cell, file) in cells.iter().zip(files) {
                let (name, settings) = (cell.name.clone(), cell.settings.clone());
                let (metrics, series) = (file.metrics(), BTreeMap::new());
                self.files.entry(name.clone()).or_default().push(file);
                self.results.push(CellResult { cell: name, settings, seed: run, metrics, series });
            }
            break;
        }
        Ok(())
    }

    /// The figures that no scenario has: senders, nodes, the checks of each file, and the links'
    /// lateness.
    fn figures(&self, promise: &'static str) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (cell, files) in &self.files {
            let mut files: Vec<&File> = files.iter().collect();
            files.sort_by_key(|file| file.fetched.time);
            let middle = files[files.len() / 2];
            let sender = middle.fetched.sender.as_ref().map(sender_text);
            let node = middle.dida().map(node_text);
            for (what, text) in [("sender", sender), ("node", node)] {
                figures.extend(text.map(|text| Figure::text(format!("{cell}: {what}"), text)));
            }
        }
        let files = || self.files.values().flatten();
        let incomplete = files().filter(|file| !file.fetched.is_complete()).count();
        let changed = files().filter(|file| !file.fetched.is_intact).count();
        let held: u64 = files().filter_map(File::dida).map(|stats| stats.held_now).sum();
        let whole = format!("downloads that did not complete, of {}", files().count());
        figures.extend([
            Figure::none(whole, incomplete as u64, promise),
            Figure::none("downloads that did not arrive byte for byte", changed as u64, promise),
            Figure::none("duplicate ACKs held when all downloads had ended", held, promise),
            Figure::text(LATENESS, self.lateness.summary().describe()),
            Figure::count("runs on a machine that was too busy", self.busy_runs),
        ]);
        figures
    }
}

fn sender_text(sender: &SenderView) -> String {
    let SenderView { info, counters } = sender;
    let percent = f64::from(info.total_retrans) * 1e2 / f64::from(info.data_segs_out.max(1));
    format!(
        "{} segments sent again ({percent:.1} %), {} of them in vain; {} recoveries, {} taken \
         back; {} timeouts; slow start ended by delay {} times; reordering seen {} times, up to {} \
         segments; window {} segments and round trip {} ms at the end",
        info.total_retrans,
        counters.dsacks,
        counters.recoveries,
        counters.undone,
        counters.timeouts,
        counters.slow_start_ends,
        info.reord_seen,
        info.reordering,
        info.snd_cwnd,
        info.srtt_us / 1000,
    )
}

fn node_text(stats: &DidaStats) -> String {
    let DidaStats { forwarded, held_ends: ends, masked, .. } = stats;
    let at_once =
        forwarded.early_duplicate + forwarded.released_duplicate + forwarded.unheld_duplicate;
    format!(
        "{} duplicate ACKs reached the sender, {} were held and discarded, {} held and sent when \
         the hold ended; SACK blocks of {masked} ACKs kept back",
        at_once + ends.total() - ends.discarded,
        ends.discarded,
        ends.expired,
    )
}

#[cfg(test)]
mod tests {
    use plait_proto::dida::HoldPolicy;
    use plait_proto::steer::Policy;
    use plait_sim::scenario::app::Via;
    use plait_sim::scenario::link::Capacity;

    use super::*;
    use crate::list::Catalogue;

    #[test]
    fn every_way_is_what_its_name_says() {
        let experiment =
            Catalogue::find(None).unwrap().load("000/downloads", &[]).unwrap().experiment;
        assert_eq!(experiment.cells.iter().filter(|cell| is_measured(cell)).count(), 46);
        for cell in &experiment.cells {
            let way = cell.settings["way"].as_str().unwrap().to_owned();
            let (steer, app) = (cell.scenario.steer.as_ref().unwrap(), &cell.scenario.apps[0]);
            let (bytes, has_sack) = transfer(cell);
            let size = cell.settings["size"].as_str().unwrap();
            assert_eq!(format!("{}-MB", bytes / 1_000_000), size, "{}", cell.name);
            assert_eq!(has_sack, !way.contains("no-sack"), "{}", cell.name);
            let lte = &cell.scenario.links["lte"].down.capacity;
            let has_trace = matches!(lte, Capacity::Trace(_));
            assert_eq!(fluctuates(cell), has_trace, "{}", cell.name);
            if app.via != Via::Steer {
                assert!(["lte", "wifi", "mptcp"].contains(&way.as_str()), "{way}");
                continue;
            }
            let hold = if way.contains("dida") { HoldPolicy::Optimum } else { HoldPolicy::Off };
            let by_half = way.starts_with("half");
            let policy = if by_half { Policy::Fixed } else { Policy::InverseRtt };
            let dida = steer.dida.as_ref().unwrap();
            assert_eq!((dida.hold, steer.policy), (hold, policy), "{}", cell.name);
            assert_eq!(steer.first_packets, if by_half { 10 } else { 100 });
            assert_eq!(steer.links, ["lte", "wifi"]);
        }
    }

    #[test]
    fn by_capacity_is_the_node_s_policy_where_the_way_says_so() {
        let scenario = "000/downloads-by-capacity";
        let experiment = Catalogue::find(None).unwrap().load(scenario, &[]).unwrap().experiment;
        assert!(experiment.cells.iter().all(is_measured));
        for cell in &experiment.cells {
            let way = cell.settings["way"].as_str().unwrap();
            let steer = cell.scenario.steer.as_ref().unwrap();
            let is_steered = cell.scenario.apps[0].via == Via::Steer;
            let is_by_capacity = is_steered && steer.policy == Policy::Capacity;
            assert_eq!(is_by_capacity, way.starts_with("capacity"), "{}", cell.name);
            let holds = steer.dida.as_ref().unwrap().hold == HoldPolicy::Optimum;
            assert_eq!(is_steered && holds, way.ends_with("dida"), "{}", cell.name);
        }
    }
}
