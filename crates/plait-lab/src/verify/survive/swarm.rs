//! survive.3: a day of faults, and ten thousand seeds of the swarm.

use anyhow::Result;

use super::super::{Effort, Figure};
use crate::output;
use crate::swarm::{Company, Soak, figures, run_seeds, soak_figures};

const JOBS: usize = 2;

pub(crate) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let (hours, count) = if effort.is_quick() { (1, 300) } else { (24, 10_000) };
    output::note(format!("survive.3: {hours} virtual hours"));
    let mut all = soak_figures(&Soak::run(1, hours));
    output::note(format!("survive.3: {count} seeds"));
    let mut failed = Vec::new();
    let seeds = run_seeds(1, count, Company::Nobody, JOBS, |result| {
        let violation = result.violation.as_deref().unwrap_or_default();
        failed.push(Figure::text(result.command.clone(), violation));
        Ok(())
    })?;
    all.extend(figures(&seeds));
    all.extend(failed);
    Ok(all)
}
