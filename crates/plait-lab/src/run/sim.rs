//! The simulator as a back-end of scenarios: the only place that knows its interface.

use anyhow::Result;
use plait_sim::scenario::{Cell, CellResult};

/// Runs a cell with a seed, and adds the scenario's own measures.
pub(super) fn run(cell: &Cell, seed: u64) -> Result<CellResult> {
    Ok(plait_sim::run::run_cell(cell, seed)?)
}
