//! kernel.3: 003's tables 5.1 and 5.2 with a kernel's MPTCP and plait's controllers in it, over
//! radios that share the air; and Figs. 4.9 and 4.10, drawn from what `plait trace` sees meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::ProcessIdentity;

use super::super::{Effort, Figure};
use super::loaded::{self, LoadedControllers};
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::gateway::plait_program;
use crate::process;
use crate::run;
use crate::set::of_checks;

const SCENARIO: &str = "003/kernel";
const SOURCE: &str = "003 Figs. 4.9 and 4.10";
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
    // The short part first: a machine too slow for it fails before the long one.
    let drawn = drawn()?;
    // The ways that no check needs are for whoever reads the tables.
    let (settings, seeds) = if effort.is_quick() {
        (vec![r#"way=["simultaneous","mptcp"]"#.to_owned()], 1)
    } else {
        (Vec::new(), 3)
    };
    let results = run::results(&args(settings, seeds))?;
    let mut figures = vec![Figure::count("runs of each cell", seeds)];
    figures.push(Figure::text("scheduler", "upstream Linux', not the paper's minRTT"));
    figures.extend(of_checks(&results));
    figures.extend(drawn);
    Ok(figures)
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
        let settings = ["way=mptcp".to_owned(), format!("controller={controller}")];
        let settings = settings.into_iter().chain([format!("row={row}")]).collect();
        let trace = std::thread::spawn({
            let page = page.clone();
            move || trace(&page)
        });
        run::results(&args(settings, 1))?;
        trace.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
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

/// Traces the sender of the run that begins now.
fn trace(page: &PathBuf) -> Result<()> {
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
