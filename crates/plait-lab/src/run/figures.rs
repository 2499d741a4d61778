//! The figures of a cell that the report shows: those that the paper or a check mentions.

use plait_sim::scenario::check::CheckKind;
use plait_sim::scenario::metric::unit_of;
use plait_sim::scenario::{Cell, CellResult, Scenario};

use crate::record::{CellFigure, Middle, Samples};

/// Shown when neither the paper nor a check names a metric.
const USUAL: [&str; 3] = ["offered_mbit", "goodput_mbit", "loss_percent"];

/// The cell's figures, each the median over its runs, without metrics that no run has.
pub(super) fn of_cell(scenario: &Scenario, cell: &Cell, runs: &[CellResult]) -> Vec<CellFigure> {
    metrics(scenario)
        .into_iter()
        .filter_map(|metric| figure(scenario, cell, runs, metric))
        .collect()
}

fn figure(
    scenario: &Scenario,
    cell: &Cell,
    runs: &[CellResult],
    metric: &str,
) -> Option<CellFigure> {
    let runs = runs.iter().filter(|run| run.cell == cell.name);
    let values = runs.filter_map(|run| run.metrics.get(metric).copied()).collect();
    let samples = Samples::new(values)?;
    let printed =
        scenario.paper.values.iter().find(|p| p.metric == metric && p.at.chooses(&cell.settings));
    Some(CellFigure {
        metric: metric.to_owned(),
        unit: unit_of(metric).to_owned(),
        median: samples.middle(Middle::Median),
        low: samples.low(),
        high: samples.high(),
        paper: printed.map(|printed| printed.value),
        paper_source: printed.map(|printed| printed.source.clone()).unwrap_or_default(),
    })
}

/// The metrics to show, each once: the paper's first, then the checks'.
fn metrics(scenario: &Scenario) -> Vec<&str> {
    let paper = scenario.paper.values.iter().map(|value| value.metric.as_str());
    let checks = scenario.checks.iter().flat_map(|check| {
        let other = match &check.kind {
            CheckKind::Ratio { to_metric, .. } => Some(to_metric.as_str()),
            _ => None,
        };
        [Some(check.metric.as_str()), other].into_iter().flatten()
    });
    let mut metrics: Vec<&str> = Vec::new();
    for metric in paper.chain(checks) {
        if !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    if metrics.is_empty() { USUAL.to_vec() } else { metrics }
}
