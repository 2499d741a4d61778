//! `plait-lab run`: runs every cell of a scenario's sweep with every seed, then evaluates them.
//!
//! - [`PreparedRun`]: a scenario that can run; [`engine`]: all runs of one or many of them, on
//!   either back-end; [`known`]: earlier runs.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use plait_sim::scenario::{Backend, Cell, CellResult, Check, Experiment, Scenario};

use crate::cli::{On, RunArgs};
use crate::list::{self, Catalogue, Loaded};
use crate::machine::Machine;
use crate::output::{self, Output, Verdict};
use crate::record::{
    CellRecord, CheckFigure, Origin, Record, Results, RunRecord, Sink, SummaryRecord,
};
use crate::report::{PageFile, words};

mod at_once;
mod engine;
mod figures;
mod known;
mod naming;
pub(crate) mod netns;
mod scatter;
mod shared;
mod sim;

pub(crate) use at_once::AtOnce;
pub(crate) use engine::Engine;
pub(crate) use known::Known;
use naming::Naming;

/// Runs a scenario and prints the results; the verdict is that of the checks that are required.
pub(crate) fn run(args: &RunArgs, output: &Output) -> Result<Verdict> {
    args.refuse_what_only_sets_have()?;
    let plan = PreparedRun::new(args)?;
    let mut known = Known::open(&args.resume, std::slice::from_ref(&plan))?;
    let mut sink = Sink::open(args.experiment.out.as_deref(), output)?;
    let page = args.experiment.html.as_deref().map(PageFile::create).transpose()?;
    let results = plan.carry_out(&mut known, |run| sink.put(&Record::Run(run.clone())))?;
    if let Some(shard) = args.shard {
        output::note(shard.told(results.runs.len()));
        sink.close()?;
        return Ok(Verdict::Good);
    }
    output.lines(words::experiment(&results))?;
    sink.put_findings(&results)?;
    sink.close()?;
    let ok = results.summary.ok;
    if let Some(page) = page {
        page.write(&[results])?;
    }
    Ok(Verdict::of(ok))
}

/// Runs the scenario and returns its results; of a cell's runs only the first has its series.
pub(crate) fn results(args: &RunArgs) -> Result<Results> {
    PreparedRun::new(args)?.carry_out(&mut Known::default(), |_| Ok(()))
}

/// Runs the scenario and returns all runs with their series, which [`results`] has of a cell's
/// first run only.
pub(crate) fn whole_runs(args: &RunArgs) -> Result<Vec<RunRecord>> {
    let mut runs = Vec::new();
    PreparedRun::new(args)?.carry_out(&mut Known::default(), |run| {
        runs.push(run.clone());
        Ok(())
    })?;
    Ok(runs)
}

/// Whether the run is possible, checked before namespaces are made; the errors are those of
/// [`run`].
pub(crate) fn check(args: &RunArgs) -> Result<()> {
    PreparedRun::new(args).map(drop)
}

fn load(args: &RunArgs) -> Result<Loaded> {
    if args.experiment.name.ends_with(".toml") {
        return list::load_file(args.experiment.name.as_ref(), &args.experiment.settings);
    }
    Catalogue::find(args.experiment.folder.as_deref())?
        .load(&args.experiment.name, &args.experiment.settings)
}

/// An experiment that can run.
#[derive(Debug)]
pub(crate) struct PreparedRun {
    args: RunArgs,
    experiment: Experiment,
    origin: Origin,
    naming: Naming,
}

impl PreparedRun {
    /// Reads the scenario, and checks whether its back-end can run it.
    pub(crate) fn new(args: &RunArgs) -> Result<Self> {
        let plan = Self::read(args)?;
        check_backend(args, &plan.experiment)?;
        Ok(plan)
    }

    /// Reads the scenario.
    pub(crate) fn read(args: &RunArgs) -> Result<Self> {
        anyhow::ensure!(
            args.experiment.seed.checked_add(args.seeds()).is_some(),
            "--seed {}: leaves no room for --seeds {}; choose a smaller one",
            args.experiment.seed,
            args.seeds(),
        );
        let Loaded { experiment, digest } = load(args)?;
        let naming = Naming::new(args, &experiment.scenario);
        Ok(Self { args: args.clone(), experiment, origin: Origin::new(digest), naming })
    }

    pub(crate) fn name(&self) -> &str {
        &self.experiment.scenario.name
    }

    /// The scenario as a self-contained text.
    pub(crate) fn text(&self, catalogue: &Catalogue) -> Result<String> {
        catalogue.text(&self.args.experiment.name, &self.args.experiment.settings)
    }

    pub(crate) fn scenario(&self) -> &Scenario {
        &self.experiment.scenario
    }

    /// Whether the namespaces can run every cell.
    pub(crate) fn check_netns(&self) -> Result<()> {
        netns::check_cells(&self.experiment)
    }

    fn digest(&self) -> &str {
        &self.origin.scenario_digest
    }

    /// Evaluates runs that were not made by the back-end.
    pub(crate) fn results(&self, found: Vec<CellResult>, started: Instant) -> Results {
        let record = |found: CellResult| {
            let cell = self.place_of(&found.cell).expect("a run is one of the scenario's cells");
            self.record(cell, found.seed, found)
        };
        self.evaluate(found.into_iter().map(record).collect(), started)
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.experiment.cells
    }

    fn seeds(&self) -> Range<u64> {
        self.first_seed()..self.first_seed() + self.args.seeds()
    }

    fn first_seed(&self) -> u64 {
        self.args.experiment.seed
    }

    fn place_of(&self, cell: &str) -> Option<usize> {
        self.cells().iter().position(|known| known.name == cell)
    }

    fn command(&self, cell: usize, seed: u64) -> String {
        self.naming.command(&self.cells()[cell], seed)
    }

    fn record(&self, cell: usize, seed: u64, result: CellResult) -> RunRecord {
        let scenario = &self.cells()[cell].scenario;
        let command = self.command(cell, seed);
        RunRecord::new(self.name(), scenario, result, command, self.origin.clone())
    }

    /// Makes the runs that are not known yet, and passes each to `take`.
    fn carry_out(
        self,
        known: &mut Known,
        take: impl FnMut(&RunRecord) -> Result<()>,
    ) -> Result<Results> {
        let started = Instant::now();
        let plans = [self];
        let [plan] = &plans;
        let engine = Engine {
            name: plan.name(),
            on: plan.args.on,
            plans: &plans,
            shard: plan.args.shard,
            leaves_out: false,
        };
        let runs = engine.carry_out(known, take)?.remove(0);
        Ok(plan.evaluate(runs, started))
    }

    /// Evaluates the runs; adds metrics that compare cells to them.
    pub(crate) fn evaluate(&self, mut runs: Vec<RunRecord>, started: Instant) -> Results {
        let scenario = &self.experiment.scenario;
        let mut found: Vec<CellResult> = runs.iter().map(RunRecord::result).collect();
        scenario.compare(&mut found);
        for (run, found) in runs.iter_mut().zip(&found) {
            run.metrics.clone_from(&found.metrics);
        }
        let evaluated =
            |check: &Check| CheckFigure::new(check, check.evaluate(&found, &scenario.paper.values));
        let checks = scenario.checks.iter().map(evaluated).collect();
        let cells = self.experiment.cells.iter().map(|cell| CellRecord {
            scenario: scenario.name.clone(),
            cell: cell.name.clone(),
            settings: cell.settings.clone(),
            seeds: runs.iter().filter(|run| run.cell == cell.name).map(|run| run.seed).collect(),
            figures: figures::of_cell(scenario, cell, &found),
        });
        Results {
            cells: cells.collect(),
            scatters: scatter::all(scenario, self.cells(), &found),
            summary: self.summary(checks, started),
            runs,
        }
    }

    fn summary(&self, checks: Vec<CheckFigure>, started: Instant) -> SummaryRecord {
        let (args, scenario) = (&self.args, &self.experiment.scenario);
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
            seeds: args.seeds(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ExperimentArgs;

    /// kernel.2 looked for the windows of runs whose series had been left out.
    #[test]
    fn regression_whole_runs_all_have_their_series() {
        let settings = ["duration_s=4", r#"link="clean""#, r#"controller="lia""#];
        let settings = settings.map(ToOwned::to_owned).to_vec();
        let experiment = ExperimentArgs { settings, ..ExperimentArgs::of("kernel/controllers") };
        let args = RunArgs { seeds: Some(2), experiment, ..RunArgs::of("", On::Sim) };
        let runs = whole_runs(&args).unwrap();
        let windows = runs.iter().map(|run| run.series["cwnd.flow"].len());
        assert_eq!(windows.collect::<Vec<_>>(), [200, 200]);
    }
}
