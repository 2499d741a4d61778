//! `plait-lab run`: every cell of a scenario's sweep with every seed, then what they come to.

use std::time::Instant;

use anyhow::{Context, Result};
use plait_sim::scenario::{Backend, Cell, CellResult, Check, Experiment, Scenario};

use crate::cli::{On, RunArgs};
use crate::list::{self, Catalogue};
use crate::output::{Output, Progress, Verdict};
use crate::report::{PageFile, words};

mod figures;
mod naming;
mod netns;
mod pool;
mod progress;
pub(crate) mod record;
mod sim;
mod sink;

use naming::Naming;
use progress::Meter;
use record::{
    CellRecord, CheckFigure, CheckRecord, MachineRecord, Record, Results, RunRecord, SummaryRecord,
};
use sink::Sink;

/// Runs the scenario and prints its results; the verdict is that of the checks it requires.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<Verdict> {
    anyhow::ensure!(
        args.seed.checked_add(args.seeds).is_some(),
        "--seed {}: leaves no room for --seeds {}; choose a smaller one",
        args.seed,
        args.seeds,
    );
    let experiment = load(args)?;
    check_backend(args, &experiment)?;
    let mut sink = Sink::open(args.out.as_deref(), output)?;
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    let started = Instant::now();
    let naming = Naming::new(args, &experiment.scenario);
    let runs = run_cells(args, &experiment, &naming, &mut sink)?;
    let results = evaluate(args, &experiment, runs, started, &naming);
    for cell in &results.cells {
        sink.put(&Record::Cell(cell.clone()))?;
    }
    for check in results.summary.checks.clone() {
        let scenario = results.summary.name.clone();
        sink.put(&Record::Check(CheckRecord { scenario, check }))?;
    }
    for line in words::experiment(&results) {
        output.line(line)?;
    }
    sink.put(&Record::Summary(results.summary.clone()))?;
    sink.close()?;
    let ok = results.summary.ok;
    if let Some(page) = page {
        page.write(&[results])?;
    }
    Ok(Verdict::of(ok))
}

/// Whether a run on namespaces is worth making any; the errors are those of [`run`].
pub(crate) fn check(args: &RunArgs) -> Result<()> {
    check_backend(args, &load(args)?)
}

fn check_backend(args: &RunArgs, experiment: &Experiment) -> Result<()> {
    if args.on == On::Netns {
        netns::check_meant(args, &experiment.scenario)?;
        return netns::check_cells(experiment);
    }
    anyhow::ensure!(
        experiment.scenario.backends.contains(&Backend::Sim),
        "{}: the scenario is not meant for the simulator; choose --on {}, or add \"sim\" to its \
         backends",
        experiment.scenario.name,
        list::backend_names(&experiment.scenario.backends).join(" or --on "),
    );
    Ok(())
}

/// A back-end as the command line and the records name it.
fn on_name(on: On) -> &'static str {
    match on {
        On::Sim => record::SIM,
        On::Netns => record::NETNS,
    }
}

fn load(args: &RunArgs) -> Result<Experiment> {
    if args.name.ends_with(".toml") {
        return list::load_file(args.name.as_ref(), &args.settings);
    }
    Catalogue::find(args.folder.as_deref())?.load(&args.name, &args.settings)
}

/// Runs each cell with each seed; results come out in the order of cells and seeds.
fn run_cells(
    args: &RunArgs,
    experiment: &Experiment,
    naming: &Naming,
    sink: &mut Sink<'_>,
) -> Result<Vec<RunRecord>> {
    let seeds = args.seed..args.seed + args.seeds;
    let jobs: Vec<(&Cell, u64)> = experiment
        .cells
        .iter()
        .flat_map(|cell| seeds.clone().map(move |seed| (cell, seed)))
        .collect();
    let name = &experiment.scenario.name;
    let mut runs = Vec::new();
    let take = |(cell, seed): (&Cell, u64), result: Result<CellResult>| -> Result<()> {
        let result = result.with_context(|| format!("{name}, {}, seed {seed}", cell.name))?;
        let command = naming.command(cell, seed);
        let mut record = RunRecord::new(name, &cell.scenario, result, command);
        sink.put(&Record::Run(record.clone()))?;
        if seed != args.seed {
            // Only each cell's first run is plotted; the others' series would fill the memory.
            record.series.clear();
        }
        runs.push(record);
        Ok(())
    };
    match args.on {
        On::Sim => simulate(name, &jobs, take)?,
        On::Netns => run_in_namespaces(name, &jobs, take)?,
    }
    Ok(runs)
}

/// Runs on all cores.
fn simulate(
    name: &str,
    jobs: &[(&Cell, u64)],
    mut take: impl FnMut((&Cell, u64), Result<CellResult>) -> Result<()>,
) -> Result<()> {
    let mut meter = Meter::new(name, jobs.len(), pool::workers(jobs.len()));
    let work = |index: usize| {
        let (cell, seed) = jobs[index];
        sim::run(cell, seed)
    };
    let mut taken = 0;
    pool::in_order(jobs.len(), work, |result: Option<Result<CellResult>>| -> Result<()> {
        let Some(result) = result else {
            meter.finished_one();
            return Ok(());
        };
        taken += 1;
        take(jobs[taken - 1], result)
    })?;
    meter.close();
    Ok(())
}

/// Runs one after the other: side by side they would measure each other.
fn run_in_namespaces(
    name: &str,
    jobs: &[(&Cell, u64)],
    mut take: impl FnMut((&Cell, u64), Result<CellResult>) -> Result<()>,
) -> Result<()> {
    let total = jobs.iter().map(|(cell, _)| netns::run_time(cell)).sum();
    let mut progress = Progress::new(jobs.len(), total);
    for &(cell, seed) in jobs {
        let what = format!("{name}, {}, seed {seed}", cell.name);
        let step = progress.step(&what, netns::run_time(cell));
        let result = netns::run(cell, seed);
        drop(step);
        take((cell, seed), result)?;
    }
    Ok(())
}

fn evaluate(
    args: &RunArgs,
    experiment: &Experiment,
    runs: Vec<RunRecord>,
    started: Instant,
    naming: &Naming,
) -> Results {
    let scenario = &experiment.scenario;
    let mut found: Vec<CellResult> = runs.iter().map(RunRecord::result).collect();
    scenario.compare(&mut found);
    let evaluated =
        |check: &Check| CheckFigure::new(check, check.evaluate(&found, &scenario.paper));
    let checks = scenario.checks.iter().map(evaluated).collect();
    let cells: Vec<CellRecord> = experiment
        .cells
        .iter()
        .map(|cell| CellRecord {
            scenario: scenario.name.clone(),
            cell: cell.name.clone(),
            settings: cell.settings.clone(),
            seeds: runs.iter().filter(|run| run.cell == cell.name).map(|run| run.seed).collect(),
            figures: figures::of_cell(scenario, cell, &found),
        })
        .collect();
    let summary = summary(args, scenario, checks, started, naming);
    Results { runs, cells, summary }
}

fn summary(
    args: &RunArgs,
    scenario: &Scenario,
    checks: Vec<CheckFigure>,
    started: Instant,
    naming: &Naming,
) -> SummaryRecord {
    SummaryRecord {
        name: scenario.name.clone(),
        ok: checks.iter().all(|check| check.ok || !check.required || !check.expected),
        checks,
        title: scenario.title.clone(),
        source: scenario.source.clone(),
        on: on_name(args.on).to_owned(),
        duration_s: scenario.duration.as_secs_f64(),
        axes: scenario.sweep.iter().map(|axis| axis.name.clone()).collect(),
        seed: args.seed,
        seeds: args.seeds,
        elapsed_s: started.elapsed().as_secs_f64(),
        command: naming.whole(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: MachineRecord::detect(),
    }
}
