//! sim.5: how much faster than real time the simulator is.

use anyhow::Result;

use super::{Effort, Figure};
use crate::bench::sim::{SimPlan, figures, measure_all};

pub(super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    Ok(figures(&measure_all(SimPlan::of(effort.runs == 1))?))
}
