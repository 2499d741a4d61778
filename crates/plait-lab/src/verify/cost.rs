//! bond.4, sim.5, dida.6 and road.2: the tables of `plait-lab bench`.

use anyhow::Result;

use super::{Effort, Figure};
use crate::bench::{self, BenchPlan, BenchRow, beside, node, sim};

pub(super) fn check_bond(effort: Effort) -> Result<Vec<Figure>> {
    let rows = bench::measure_all(BenchPlan::of(effort.is_quick()))?;
    Ok(rows.iter().flat_map(BenchRow::figures).collect())
}

/// Checks how much faster than real time the simulator is.
pub(super) fn check_simulator(effort: Effort) -> Result<Vec<Figure>> {
    Ok(sim::figures(&sim::measure_all(sim::SimPlan::of(effort.is_quick()))?))
}

/// Checks the cost of steering.
pub(super) fn check_steering(effort: Effort) -> Result<Vec<Figure>> {
    Ok(node::measure_all(node::NodePlan::of(effort.is_quick()))?.figures())
}

/// Checks plait beside wireguard-go.
pub(super) fn check_beside(effort: Effort) -> Result<Vec<Figure>> {
    Ok(beside::figures(&beside::measure_all(BenchPlan::of(effort.is_quick()))?))
}
