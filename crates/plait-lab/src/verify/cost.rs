//! bond.4: the bench table.

use anyhow::Result;

use super::{Effort, Figure};
use crate::bench::{BenchPlan, measure_all};
use crate::measure::mbit;

pub(super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let rows = measure_all(BenchPlan::of(effort.runs == 1))?;
    let figure = |row: &crate::bench::BenchRow| {
        let value = format!("TCP {}, UDP {}", mbit(row.tcp_bps), mbit(row.udp_bps));
        Figure::info(format!("{}, Mbit/s", row.setup), value)
    };
    Ok(rows.iter().map(figure).collect())
}
