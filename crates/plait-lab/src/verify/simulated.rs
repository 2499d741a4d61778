//! sim.1 and sim.2: paper 002's experiments on the simulator.

use anyhow::Result;

use super::{Effort, Figure};
use crate::cli::{On, RunArgs};
use crate::record::{CheckFigure, Results};
use crate::run::results;

/// A whole table of losses, one seed, in seconds.
const TABLE_TIME_MAX_S: f64 = 60.0;

/// A scenario with the seeds 1, 2, ….
pub(super) fn simulate(name: &str, seeds: u64) -> Result<Results> {
    results(&RunArgs { seeds: Some(seeds), ..RunArgs::of(name, On::Sim) })
}

pub(super) fn check_table(effort: Effort) -> Result<Vec<Figure>> {
    let once = simulate("002/table-loss", 1)?;
    let mut figures = vec![
        Figure::number("time for the nine cells", once.summary.elapsed_s, "s")
            .at_most(TABLE_TIME_MAX_S, "one seed, on the machine's cores"),
    ];
    let all = simulate("002/table-loss", effort.seeds())?;
    figures.extend(of_checks(&all));
    Ok(figures)
}

pub(super) fn check_flows(effort: Effort) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for name in ["002/multi-flow", "002/tcp-sharing", "002/tcp-udp"] {
        figures.extend(of_checks(&simulate(name, effort.seeds())?));
    }
    Ok(figures)
}

/// A scenario's checks: those that it requires as checks, the others as figures that inform.
pub(super) fn of_checks(results: &Results) -> Vec<Figure> {
    let name = &results.summary.name;
    results.summary.checks.iter().map(|check| of_check(name, check)).collect()
}

fn of_check(scenario: &str, check: &CheckFigure) -> Figure {
    let name = format!("{scenario}: {}", check.name);
    let Some(value) = check.value else {
        return Figure::text(name, "not measured");
    };
    // A figure without a unit is a quotient; what a check counts has one.
    let unit = if check.unit.is_empty() { "ratio" } else { &check.unit };
    let figure = Figure::number(name, value, unit.to_owned());
    if check.required && check.expected {
        figure.within(check.low, check.high, check.source.clone())
    } else {
        figure
    }
}
