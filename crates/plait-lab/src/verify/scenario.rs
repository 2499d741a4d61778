//! Promises that are scenarios: their checks, and what each cell came to beside them.

use anyhow::Result;

use super::simulated::of_checks;
use super::{Effort, Figure};
use crate::cli::{On, RunArgs};
use crate::record::{CellFigure, Results};
use crate::run::results;

/// A scenario that a promise is held to on namespaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct OnNetns {
    pub(super) name: &'static str,
    /// Of the whole check; a quick one has one.
    pub(super) seeds: u64,
    /// Settings of a quick check.
    pub(super) quick: &'static [&'static str],
}

impl OnNetns {
    pub(super) fn check(self, effort: Effort) -> Result<Vec<Figure>> {
        let is_quick = effort.runs == 1;
        let mut args = RunArgs::of(self.name, On::Netns);
        args.seeds = Some(if is_quick { 1 } else { self.seeds });
        if is_quick {
            let settings = self.quick.iter().map(|setting| (*setting).to_owned());
            args.experiment.settings = settings.collect();
        }
        let results = results(&args)?;
        Ok(of_checks(&results).into_iter().chain(told(&results)).collect())
    }
}

/// What each cell came to: medians, with the spread of several seeds.
fn told(results: &Results) -> Vec<Figure> {
    let of_cell = |cell: &str, figure: &CellFigure| {
        let CellFigure { metric, unit, median, low, high, .. } = figure;
        let name = format!("{}: {cell}: {metric}", results.summary.name);
        let spread = if low < high { format!(" ({low:.4} to {high:.4})") } else { String::new() };
        Figure::text(name, format!("{median:.4} {unit}{spread}"))
    };
    let cells = results.cells.iter();
    cells.flat_map(|cell| cell.figures.iter().map(|figure| of_cell(&cell.cell, figure))).collect()
}
