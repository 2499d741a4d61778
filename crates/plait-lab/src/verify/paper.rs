//! paper.4: the simulator's TCP beside that of Linux 6.1, which still counts duplicate ACKs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Effort, Figure, back_ends};
use crate::cli::vm::Guest;
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::compare::{self, Rule};
use crate::output::{self, Meter};
use crate::record::{Middle, Record, Results, RunRecord, Samples};
use crate::run::PreparedRun;
use crate::set::of_checks;
use crate::vm;
use crate::vm::timer::TimerErrors;
use crate::worker::pool;

const SCENARIO: &str = "000/kernel";
/// This machine's kernel may be too new for the scenario, so that it names the simulator alone.
const KERNEL_ONLY: &str = "backends=[\"netns\"]";
const METRIC: &str = "transfer_mbit.file";
const SHARE: f64 = 0.15;
/// Seeds in simulation, where they cost little: half of a scattered row's runs lie a third apart.
const SEEDS_SIM: u64 = 100;
/// On the kernel.
const SEEDS_KERNEL: u64 = 5;
/// So many where those leave the median open, by guests that make `SEEDS_KERNEL` each.
const SEEDS_MANY: u64 = 20;
const TIMER_P99_MAX_US: f64 = 2000.0;
const BOOT_LIMIT: Duration = Duration::from_secs(120);
/// Of this machine's time for one run on a core to itself; it took 25 s.
const RUN_LIMIT: Duration = Duration::from_secs(180);

pub(super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    vm::check(Guest::Uml)?;
    let timer = timer()?;
    let us = |name: &str, us| Figure::number(name, us as f64, "us");
    let mut figures = vec![
        Figure::text("kernel", timer.kernel),
        us("sleeps of 10 ms, 99th percentile too long by", timer.sleep_p99_us)
            .at_most(TIMER_P99_MAX_US, "on the kernel"),
        us("steps of 1 ms, 99th percentile late by", timer.pace_p99_us)
            .at_most(TIMER_P99_MAX_US, "on the kernel"),
    ];
    let guests = Guests::new()?;
    let (kernel, open) = guests.results(effort)?;
    let sim = RunArgs { seeds: Some(SEEDS_SIM), ..RunArgs::of(SCENARIO, On::Sim) };
    let pair = [crate::run::results(&sim)?, kernel];
    let rule = |metric: &str, _: &Results| (metric == METRIC).then_some(Rule::Share(SHARE));
    let compared = compare::results(&pair, Middle::Median, rule);
    let checks = &compared.summary.checks;
    figures.push(
        Figure::count("rows with a figure in simulation and on the kernel", checks.len() as u64)
            .exactly(guests.plan.cells().len() as f64, "all rows of the scenario"),
    );
    figures.extend(open.into_iter().map(|row| {
        let name = format!("{row}: runs on the kernel, as its first {SEEDS_KERNEL} lie far apart");
        Figure::count(name, pair[1].runs.iter().filter(|run| run.cell == row).count() as u64)
    }));
    figures.extend(back_ends::told(checks));
    figures.extend(of_checks(&compared));
    Ok(figures)
}

fn timer() -> Result<TimerErrors> {
    let said =
        vm::run(Guest::Uml, "timer", &["timer", "--json"].map(ToOwned::to_owned), BOOT_LIMIT)?;
    serde_json::from_str(&said).with_context(|| format!("no timer's errors: {said}"))
}

/// What one guest makes: runs of a cell, from a seed on.
struct Job {
    cell: usize,
    first_seed: u64,
    seeds: u64,
}

/// Guests of the kernel that run the scenario, as many at once as there are cores.
struct Guests {
    plan: PreparedRun,
    started: Instant,
}

impl Guests {
    fn new() -> Result<Self> {
        let args = RunArgs {
            seeds: Some(SEEDS_KERNEL),
            experiment: ExperimentArgs {
                settings: vec![KERNEL_ONLY.to_owned()],
                ..ExperimentArgs::of(SCENARIO)
            },
            ..RunArgs::of(SCENARIO, On::Netns)
        };
        Ok(Self { plan: PreparedRun::read(&args)?, started: Instant::now() })
    }

    /// Runs of every row, and the names of those that needed many.
    fn results(&self, effort: Effort) -> Result<(Results, Vec<&str>)> {
        let seeds = if effort.is_quick() { 1 } else { SEEDS_KERNEL };
        let cells = 0..self.plan.cells().len();
        let first: Vec<Job> = cells.map(|cell| Job { cell, first_seed: 1, seeds }).collect();
        let results = self.plan.evaluate(self.runs("Linux 6.1", &first)?, self.started);
        if effort.is_quick() {
            return Ok((results, Vec::new()));
        }
        let names = self.plan.cells().iter().map(|cell| cell.name.as_str()).enumerate();
        let open: Vec<_> = names
            .filter(|(_, cell)| is_open(Samples::of(&results, cell, METRIC).as_ref(), SEEDS_KERNEL))
            .collect();
        let more: Vec<Job> = open
            .iter()
            .flat_map(|&(cell, _)| {
                let seeds = SEEDS_KERNEL;
                let firsts = (1 + seeds..=SEEDS_MANY).step_by(seeds as usize);
                firsts.map(move |first_seed| Job { cell, first_seed, seeds })
            })
            .collect();
        let mut runs = results.runs;
        runs.extend(self.runs("Linux 6.1, rows that are open", &more)?);
        let names = open.into_iter().map(|(_, name)| name).collect();
        Ok((self.plan.evaluate(runs, self.started), names))
    }

    fn runs(&self, title: &str, jobs: &[Job]) -> Result<Vec<RunRecord>> {
        let mut meter = Meter::new(title, "guests", jobs.len());
        let mut runs = Vec::new();
        let guest = |at: usize| self.guest(&jobs[at]);
        pool::in_order(jobs.len(), guest, |said: Option<Result<String>>| -> Result<()> {
            let Some(said) = said else {
                meter.finished_one();
                return Ok(());
            };
            // A row that was rejected is missing later on.
            let said = said.unwrap_or_else(|error| {
                output::print_error(&error);
                String::new()
            });
            for line in said.lines() {
                let record = serde_json::from_str(line);
                if let Record::Run(run) = record.with_context(|| format!("no record: {line}"))? {
                    runs.push(run);
                }
            }
            Ok(())
        })?;
        Ok(runs)
    }

    fn guest(&self, job: &Job) -> Result<String> {
        let &Job { cell, first_seed, seeds } = job;
        let shard = format!("{}/{}", cell + 1, self.plan.cells().len());
        let limit = BOOT_LIMIT + RUN_LIMIT * seeds as u32;
        let (first, seeds) = (first_seed.to_string(), seeds.to_string());
        let words = ["run", SCENARIO, "--on", "netns", "--json", "--seed", &first];
        let rest = ["--seeds", &seeds, "--shard", &shard, "--set", KERNEL_ONLY];
        let words: Vec<String> = words.into_iter().chain(rest).map(ToOwned::to_owned).collect();
        vm::run(Guest::Uml, &format!("cell{cell}-{first}"), &words, limit)
    }
}

/// Whether the figures of a row's runs lie so far apart that they tell nothing of a difference of
/// `SHARE`, or some have none.
fn is_open(figures: Option<&Samples>, runs: u64) -> bool {
    let Some(figures) = figures else { return true };
    let half = figures.quantile(0.75) - figures.quantile(0.25);
    (figures.len() as u64) < runs || half > SHARE * figures.middle(Middle::Median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_open_if_half_of_its_runs_lie_farther_apart_than_the_bar_or_one_is_missing() {
        let open = |figures: &[f64]| is_open(Samples::new(figures.to_vec()).as_ref(), 5);
        assert!(open(&[]));
        assert!(!open(&[1.0, 9.0, 10.0, 10.5, 40.0]), "by a tenth and a half");
        assert!(open(&[9.0, 9.0, 10.0, 11.0, 11.0]));
        assert!(open(&[10.0; 4]));
    }
}
