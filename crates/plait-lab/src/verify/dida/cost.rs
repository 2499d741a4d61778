//! dida.6: what steering costs.

use anyhow::Result;

use super::super::{Effort, Figure};
use crate::bench::node::{NodePlan, measure_all};

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    Ok(measure_all(NodePlan::of(effort.runs == 1))?.figures())
}
