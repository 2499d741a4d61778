//! kernel.3: 003's tables 5.1 and 5.2 with a kernel's MPTCP and plait's controllers in it, over
//! radios that share the air; and Figs. 4.9 and 4.10, drawn from what `plait trace` sees meanwhile.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plait_net::netns::ProcessIdentity;

use super::super::{Effort, Figure, runs_made};
use super::loaded::{self, LoadedControllers};
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::gateway::plait_program;
use crate::process;
use crate::record::Results;
use crate::run::{self, PreparedRun, netns};
use crate::set::of_checks;

const SCENARIO: &str = "003/kernel";
const SOURCE: &str = "003 Figs. 4.9 and 4.10";
/// What is run of it: the cells, and how many times each.
struct Part {
    name: &'static str,
    settings: &'static [&'static str],
    runs: u64,
}
/// Table 5.1 is WhiteHaul's, over what CUBIC carries on both radios at once; table 5.2 is CUBIC's.
/// What holds WhiteHaul down comes once in a while and then stays, so that its short runs are of
/// two kinds; the paper's had 200 s. What it is divided by lasts as long. The longest part comes
/// last: a machine too slow for the others fails before it.
const PARTS: [Part; 3] = [
    Part {
        name: "table 5.1, Simultaneous",
        settings: &[ROWS, "controller=cubic", "way=simultaneous", "duration_s=62"],
        runs: 3,
    },
    Part {
        name: "table 5.2",
        settings: &[
            r#"row=["5.2-clean","5.2-intf"]"#,
            "controller=cubic",
            r#"way=["simultaneous","mptcp"]"#,
        ],
        runs: 3,
    },
    Part {
        name: "WhiteHaul and Edinburgh",
        settings: &[ROWS, r#"controller=["whitehaul","edinburgh"]"#, "way=mptcp", "duration_s=62"],
        runs: 6,
    },
];
const ROWS: &str = r#"row=["5.1-clean","5.1-intf"]"#;
/// Of all flows of a run together.
const GOODPUT: &str = "goodput_mbit";
/// Of the 36 pairs of six runs each, those in which one is ahead when chance has it in at most 5 %
/// of cases (rank-sum test, one side).
const PAIRS_MIN: f64 = 29.0;
/// Controllers that are no kernel's own.
const LOADED: [&str; 2] = ["whitehaul", "edinburgh"];
/// All that the figures show of each subflow: two radios, a controller and a condition a page.
const DRAWN: [(&str, &str); 4] = [
    ("whitehaul", "5.1-clean"),
    ("whitehaul", "5.1-intf"),
    ("cubic", "5.1-clean"),
    ("cubic", "5.1-intf"),
];
/// The sender's namespace of a run, and when the trace begins: once the run has made it.
const SENDER: &str = "plait-server";
const MADE_WITHIN: Duration = Duration::from_secs(20);
const TRACED_S: u64 = 20;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    loaded::mount_bpffs()?;
    loaded::ensure_can_load()?;
    let _loaded = LoadedControllers::load(&LOADED)?;
    let drawn = drawn()?;
    let mut figures = vec![Figure::text("scheduler", "upstream Linux', not the paper's minRTT")];
    let started = Instant::now();
    let mut runs = Vec::new();
    for part in &PARTS {
        let measured = part.measure(effort)?;
        let made = runs_made(&measured, part.runs(effort));
        figures.push(Figure { name: format!("{}: {}", part.name, made.name), ..made });
        runs.extend(measured.runs);
    }
    let results = PreparedRun::new(&args(Vec::new(), 1))?.evaluate(runs, started);
    figures.extend(of_checks(&results));
    for row in ["5.1-clean", "5.1-intf"] {
        let plain = goodputs(&results, row, "simultaneous", "cubic");
        let text = format!("{} Mbit/s", listed(&plain));
        figures.push(Figure::text(format!("{row}, Simultaneous, each run"), text));
        figures.extend(ahead(&results, row, effort));
    }
    figures.extend(drawn);
    Ok(figures)
}

impl Part {
    fn runs(&self, effort: Effort) -> u64 {
        if effort.is_quick() { 1 } else { self.runs }
    }

    fn measure(&self, effort: Effort) -> Result<Results> {
        let settings = self.settings.iter().map(|&one| one.to_owned()).collect();
        run::results(&args(settings, self.runs(effort)))
    }
}

/// Whether Edinburgh's runs of `row` are ahead of WhiteHaul's, by more than chance explains.
fn ahead(results: &Results, row: &str, effort: Effort) -> Vec<Figure> {
    let of = |controller: &str| goodputs(results, row, "mptcp", controller);
    let (edinburgh, whitehaul) = (of("edinburgh"), of("whitehaul"));
    let (ours, theirs) = (listed(&edinburgh), listed(&whitehaul));
    let text = format!("Edinburgh {ours}; WhiteHaul {theirs} Mbit/s");
    let name = format!("{row}: pairs with Edinburgh ahead");
    let pairs = Figure::number(name, pairs_ahead(&edinburgh, &whitehaul), "");
    // One run of each tells nothing.
    let pairs = match effort.is_quick() {
        true => pairs,
        false => pairs.at_least(PAIRS_MIN, "kernel.3: ahead of WhiteHaul; rank-sum test at 5 %"),
    };
    vec![Figure::text(format!("{row}, each run"), text), pairs]
}

/// The goodput of each run of a cell, in Mbit/s.
fn goodputs(results: &Results, row: &str, way: &str, controller: &str) -> Vec<f64> {
    let cell = format!("row={row},way={way},controller={controller}");
    let runs = results.runs.iter().filter(|run| run.cell == cell);
    runs.filter_map(|run| run.metrics.get(GOODPUT).copied()).collect()
}

fn listed(runs: &[f64]) -> String {
    runs.iter().map(|run| format!("{run:.1}")).collect::<Vec<_>>().join(", ")
}

/// In how many pairs of one of `ours` with one of `others` ours is more; a tie is half a pair.
fn pairs_ahead(ours: &[f64], others: &[f64]) -> f64 {
    let of_pair = |our: f64, other: f64| match our.total_cmp(&other) {
        Ordering::Less => 0.0,
        Ordering::Equal => 0.5,
        Ordering::Greater => 1.0,
    };
    ours.iter().flat_map(|&our| others.iter().map(move |&other| of_pair(our, other))).sum()
}

fn args(settings: Vec<String>, seeds: u64) -> RunArgs {
    let experiment = ExperimentArgs { settings, ..ExperimentArgs::of(SCENARIO) };
    RunArgs { seeds: Some(seeds), experiment, ..RunArgs::of("", On::Netns) }
}

/// Pages of `plait trace`, each of one connection over both radios.
fn drawn() -> Result<Vec<Figure>> {
    let lab = ProcessIdentity::outside().context("the lab runs in its own namespaces")?;
    let folder = std::env::temp_dir().join(format!("plait-traces-{}", lab.pid));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut with_both = 0;
    for (controller, row) in DRAWN {
        let page = folder.join(format!("{controller}-{row}.html"));
        netns::patiently(|| run_traced(controller, row, &page))?;
        let text = fs::read_to_string(&page)?;
        // The customer's address on each radio.
        with_both += u64::from(["10.1.0.1", "10.2.0.1"].iter().all(|at| text.contains(at)));
    }
    let all = DRAWN.len() as f64;
    Ok(vec![
        Figure::count("pages with both subflows of a connection", with_both).exactly(all, SOURCE),
        Figure::text("pages", folder.display().to_string()),
    ])
}

/// One run over both radios, and the page of a trace of it.
fn run_traced(controller: &str, row: &str, page: &Path) -> Result<()> {
    let settings = ["way=mptcp".to_owned(), format!("controller={controller}")];
    let settings = settings.into_iter().chain([format!("row={row}")]).collect();
    let trace = std::thread::spawn({
        let page = page.to_owned();
        move || trace(&page)
    });
    let run = run::results(&args(settings, 1));
    let traced = trace.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    run?;
    traced
}

/// Traces the sender of the run that begins now.
fn trace(page: &Path) -> Result<()> {
    let place = Path::new("/run/netns").join(SENDER);
    process::wait_until("the run's namespace", MADE_WITHIN, || Ok(place.exists().then_some(())))?;
    let mut command = Command::new("ip");
    command.args(["netns", "exec", SENDER]).arg(plait_program()?);
    command.args(["trace", "--seconds"]).arg(TRACED_S.to_string()).arg("--html").arg(page);
    let limit = Duration::from_secs(TRACED_S) + MADE_WITHIN;
    let done = process::run_any(&mut command, "", limit)?;
    ensure!(done.status.success(), "plait trace: {}", done.stderr.trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tie_is_half_a_pair() {
        let pairs = pairs_ahead(&[402.0, 401.0], &[385.0, 401.0, 403.0]);
        assert_eq!(pairs, 3.5, "two, and one and a half");
        assert_eq!(pairs_ahead(&[], &[1.0]), 0.0);
    }
}
