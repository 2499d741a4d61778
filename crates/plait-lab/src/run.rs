//! `plait-lab run`: every cell of a scenario's sweep with every seed, then what they come to.

use std::time::Instant;

use anyhow::{Context, Result};
use plait_sim::scenario::{Backend, Cell, CellResult, Check, Experiment};

use crate::cli::{On, RunArgs};
use crate::list::{self, Catalogue, Loaded};
use crate::machine::Machine;
use crate::output::{Output, Progress, Verdict};
use crate::report::{PageFile, words};

mod figures;
mod naming;
pub(crate) mod netns;
pub(crate) mod pool;
mod progress;

mod samples;
mod sim;
mod sink;

use crate::record::{CellRecord, CheckFigure, Origin, Record, Results, RunRecord, SummaryRecord};
use naming::Naming;
pub(crate) use netns::is_too_slow;
pub(crate) use progress::Meter;
pub(crate) use samples::{Middle, Samples};
pub(crate) use sink::Sink;

/// Runs the scenario and prints its results; the verdict is that of the checks it requires.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<Verdict> {
    let plan = Plan::new(args)?;
    let mut sink = Sink::open(args.experiment.out.as_deref(), output)?;
    let page = args.experiment.html.as_deref().map(PageFile::create).transpose()?;
    let results = plan.carry_out(|run| sink.put(&Record::Run(run.clone())))?;
    for line in words::experiment(&results) {
        output.line(line)?;
    }
    sink.put_findings(&results)?;
    sink.close()?;
    let ok = results.summary.ok;
    if let Some(page) = page {
        page.write(&[results])?;
    }
    Ok(Verdict::of(ok))
}

/// Runs the scenario and gives its results.
pub(crate) fn results(args: &RunArgs) -> Result<Results> {
    Plan::new(args)?.carry_out(|_| Ok(()))
}

/// Whether a run on namespaces is worth making any; the errors are those of [`run`].
pub(crate) fn check(args: &RunArgs) -> Result<()> {
    Plan::new(args).map(drop)
}

fn load(args: &RunArgs) -> Result<Loaded> {
    if args.experiment.name.ends_with(".toml") {
        return list::load_file(args.experiment.name.as_ref(), &args.experiment.settings);
    }
    Catalogue::find(args.experiment.folder.as_deref())?
        .load(&args.experiment.name, &args.experiment.settings)
}

/// An experiment that can run.
struct Plan<'a> {
    args: &'a RunArgs,
    experiment: Experiment,
    origin: Origin,
    naming: Naming,
}

impl<'a> Plan<'a> {
    fn new(args: &'a RunArgs) -> Result<Self> {
        anyhow::ensure!(
            args.experiment.seed.checked_add(args.seeds).is_some(),
            "--seed {}: leaves no room for --seeds {}; choose a smaller one",
            args.experiment.seed,
            args.seeds,
        );
        let Loaded { experiment, digest } = load(args)?;
        check_backend(args, &experiment)?;
        let naming = Naming::new(args, &experiment.scenario);
        Ok(Self { args, experiment, origin: Origin::new(digest), naming })
    }

    /// Runs each cell with each seed and gives each run to `take`, in the order of cells and seeds.
    fn carry_out(self, mut take: impl FnMut(&RunRecord) -> Result<()>) -> Result<Results> {
        let started = Instant::now();
        let Self { args, experiment, origin, naming } = &self;
        let seeds = args.experiment.seed..args.experiment.seed + args.seeds;
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
            let mut run = RunRecord::new(name, &cell.scenario, result, command, origin.clone());
            take(&run)?;
            if seed != args.experiment.seed {
                // Only each cell's first run is plotted; the others' series would fill the memory.
                run.series.clear();
            }
            runs.push(run);
            Ok(())
        };
        match args.on {
            On::Sim => simulate(name, &jobs, take)?,
            On::Netns => run_in_namespaces(name, &jobs, take)?,
        }
        Ok(self.evaluate(runs, started))
    }

    fn evaluate(&self, runs: Vec<RunRecord>, started: Instant) -> Results {
        let scenario = &self.experiment.scenario;
        let found: Vec<CellResult> = runs.iter().map(RunRecord::result).collect();
        let evaluated =
            |check: &Check| CheckFigure::new(check, check.evaluate(&found, &scenario.paper));
        let checks = scenario.checks.iter().map(evaluated).collect();
        let cells = self.experiment.cells.iter().map(|cell| CellRecord {
            scenario: scenario.name.clone(),
            cell: cell.name.clone(),
            settings: cell.settings.clone(),
            seeds: runs.iter().filter(|run| run.cell == cell.name).map(|run| run.seed).collect(),
            figures: figures::of_cell(scenario, cell, &found),
        });
        Results { cells: cells.collect(), summary: self.summary(checks, started), runs }
    }

    fn summary(&self, checks: Vec<CheckFigure>, started: Instant) -> SummaryRecord {
        let (args, scenario) = (self.args, &self.experiment.scenario);
        SummaryRecord {
            name: scenario.name.clone(),
            ok: checks.iter().all(|check| check.ok || !check.required || !check.expected),
            checks,
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            on: args.on.name().to_owned(),
            duration_s: scenario.duration.as_secs_f64(),
            axes: scenario.sweep.iter().map(|axis| axis.name.clone()).collect(),
            seed: args.experiment.seed,
            seeds: args.seeds,
            elapsed_s: started.elapsed().as_secs_f64(),
            command: self.naming.whole(),
            origin: self.origin.clone(),
            machine: Machine::detect(),
        }
    }
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
    let total = jobs.iter().map(|(cell, _)| netns::run_time(&cell.scenario)).sum();
    let mut progress = Progress::new(jobs.len(), total);
    for &(cell, seed) in jobs {
        let what = format!("{name}, {}, seed {seed}", cell.name);
        let step = progress.step(&what, netns::run_time(&cell.scenario));
        let result = netns::run(cell, seed);
        drop(step);
        take((cell, seed), result)?;
    }
    Ok(())
}
