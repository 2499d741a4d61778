//! sim.1: paper 002's table of losses on the simulator.

use anyhow::Result;

use super::{Effort, Figure};
use crate::cli::{On, RunArgs};
use crate::record::Results;
use crate::run::results;
use crate::set::of_checks;

/// A whole table of losses, one seed, in seconds.
const TABLE_TIME_MAX_S: f64 = 60.0;

/// Runs a scenario with the seeds 1, 2, ….
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
