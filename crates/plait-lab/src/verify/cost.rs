//! bond.4: the bench table.

use anyhow::Result;

use super::{Effort, Figure};
use crate::bench::{BenchPlan, measure_all};

pub(super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let rows = measure_all(BenchPlan::of(effort.runs == 1))?;
    Ok(rows.iter().flat_map(crate::bench::BenchRow::figures).collect())
}
