//! paper.4: the simulator's TCP beside that of Linux 6.1, which still counts duplicate ACKs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Effort, Figure, back_ends};
use crate::cli::vm::Guest;
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::compare::{self, Rule};
use crate::output::{self, Meter};
use crate::record::{Middle, Record, Results};
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
/// Seeds in simulation, and on the kernel.
const SEEDS_SIM: u64 = 10;
const SEEDS_KERNEL: u64 = 5;
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
    let (kernel, rows) = on_kernel(if effort.is_quick() { 1 } else { SEEDS_KERNEL })?;
    let sim = RunArgs { seeds: Some(SEEDS_SIM), ..RunArgs::of(SCENARIO, On::Sim) };
    let pair = [crate::run::results(&sim)?, kernel];
    let rule = |metric: &str, _: &Results| (metric == METRIC).then_some(Rule::Share(SHARE));
    let compared = compare::results(&pair, Middle::Median, rule);
    let checks = &compared.summary.checks;
    figures.push(
        Figure::count("rows with a figure in simulation and on the kernel", checks.len() as u64)
            .exactly(rows as f64, "all rows of the scenario"),
    );
    figures.extend(back_ends::told(checks));
    figures.extend(of_checks(&compared));
    Ok(figures)
}

fn timer() -> Result<TimerErrors> {
    let said =
        vm::run(Guest::Uml, "timer", &["timer", "--json"].map(ToOwned::to_owned), BOOT_LIMIT)?;
    serde_json::from_str(&said).with_context(|| format!("no timer's errors: {said}"))
}

/// Runs the scenario on the kernel: a guest for each cell, as many at once as there are cores.
/// Returns the number of cells, too.
fn on_kernel(seeds: u64) -> Result<(Results, usize)> {
    let args = RunArgs {
        seeds: Some(seeds),
        experiment: ExperimentArgs {
            settings: vec![KERNEL_ONLY.to_owned()],
            ..ExperimentArgs::of(SCENARIO)
        },
        ..RunArgs::of(SCENARIO, On::Netns)
    };
    let plan = PreparedRun::read(&args)?;
    let started = Instant::now();
    let cells = plan.cells().len();
    let mut meter = Meter::new("Linux 6.1", "cells", cells);
    let guest = |at: usize| -> Result<String> {
        let shard = format!("{}/{cells}", at + 1);
        let (seeds_told, limit) = (seeds.to_string(), BOOT_LIMIT + RUN_LIMIT * seeds as u32);
        let words = ["run", SCENARIO, "--on", "netns", "--json", "--seeds", &seeds_told];
        let words = words.into_iter().chain(["--shard", &shard, "--set", KERNEL_ONLY]);
        let words: Vec<String> = words.map(ToOwned::to_owned).collect();
        vm::run(Guest::Uml, &format!("cell{at}"), &words, limit)
    };
    let mut runs = Vec::new();
    pool::in_order(cells, guest, |said: Option<Result<String>>| -> Result<()> {
        let Some(said) = said else {
            meter.finished_one();
            return Ok(());
        };
        // A row that was rejected is missing below.
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
    Ok((plan.evaluate(runs, started), cells))
}
