//! Checks over all scenarios of a set.

use super::score::Rung;
use crate::figure::Figure;
use crate::record::{CellFigure, CheckFigure, Middle, Results, RunRecord, Samples};

/// A check of a metric over scenarios; in each, the median over the seeds of the bond's runs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SetCheck {
    pub(super) name: String,
    pub(super) metric: String,
    pub(super) reduce: Reduce,
    /// Only scenarios for which the sum of the links is promised.
    pub(super) steady_only: bool,
    /// Only drawn scenarios, or only those from a file.
    pub(super) drawn: Option<bool>,
    /// Only scenarios whose other links, each alone, add at least this share of the best.
    pub(super) adds: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) source: String,
}

impl SetCheck {
    /// Whether it covers this scenario.
    fn is_of(&self, rung: &Rung, runs: &[RunRecord]) -> bool {
        let is_drawn = rung.rung.contains('@');
        let adds_enough = |least: f64| added(runs).is_some_and(|adds| adds >= least);
        (rung.steady || !self.steady_only)
            && self.drawn.is_none_or(|drawn| drawn == is_drawn)
            && self.adds.is_none_or(adds_enough)
    }
}

/// How the scenarios' figures become one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Reduce {
    /// The share of scenarios in which the metric lies between these.
    Share {
        low: f64,
        high: f64,
    },
    Lowest,
    Highest,
    /// The tenth percentile.
    TenthPercentile,
    Median,
    Mean,
    /// How many scenarios have the metric.
    Count,
}

impl Reduce {
    pub(super) const CHOICES: [(&'static str, Self); 6] = [
        ("count", Self::Count),
        ("lowest", Self::Lowest),
        ("highest", Self::Highest),
        ("tenth-percentile", Self::TenthPercentile),
        ("median", Self::Median),
        ("mean", Self::Mean),
    ];

    fn of(self, values: &[f64]) -> Option<f64> {
        let samples = Samples::new(values.to_vec())?;
        Some(match self {
            Self::Share { low, high } => {
                let good = values.iter().filter(|value| (low..=high).contains(*value)).count();
                good as f64 / values.len() as f64
            }
            Self::Lowest => samples.low(),
            Self::Highest => samples.high(),
            Self::TenthPercentile => samples.quantile(0.1),
            Self::Median => samples.middle(Middle::Median),
            Self::Mean => samples.middle(Middle::Mean),
            Self::Count => values.len() as f64,
        })
    }
}

/// Each check as a figure; with several policies, over the scenarios with all of them.
pub(super) fn figures(checks: &[SetCheck], rungs: &[Rung], results: &[Results]) -> Vec<Figure> {
    let runs = results.iter().map(|results| &*results.runs);
    let all: Vec<(&Rung, &[RunRecord])> = rungs.iter().cycle().zip(runs).collect();
    checks.iter().map(|check| figure(check, &all)).collect()
}

fn figure(check: &SetCheck, all: &[(&Rung, &[RunRecord])]) -> Figure {
    let mut named = Vec::new();
    for (rung, runs) in all.iter().filter(|(rung, runs)| check.is_of(rung, runs)) {
        let of_bond = runs.iter().filter_map(|run| run.metrics.get(&check.metric).copied());
        named.extend(Samples::median(of_bond).map(|median| (median, rung.rung.as_str())));
    }
    let values: Vec<f64> = named.iter().map(|(value, _)| *value).collect();
    let extreme = match check.reduce {
        Reduce::Lowest => named.iter().min_by(|a, b| a.0.total_cmp(&b.0)),
        Reduce::Highest => named.iter().max_by(|a, b| a.0.total_cmp(&b.0)),
        _ => None,
    };
    let of_rung = extreme.map_or(String::new(), |(_, rung)| format!(": {rung}"));
    let name = format!("{}, of {}{of_rung}", check.name, values.len());
    let unit = if check.reduce == Reduce::Count { "" } else { "ratio" };
    let figure = match check.reduce.of(&values) {
        Some(value) => Figure::number(name, value, unit),
        None => Figure::text(name, "not measured"),
    };
    if check.low.is_none() && check.high.is_none() {
        return figure;
    }
    figure.within(check.low, check.high, check.source.clone())
}

/// What the other links would add to the best one, as a share of it: the sum of all links alone
/// over the best of them, minus one.
fn added(runs: &[RunRecord]) -> Option<f64> {
    let of_run = |run: &RunRecord| {
        let of = |metric: &str| run.metrics.get(metric).copied().filter(|share| *share > 0.0);
        Some(of("of_best_alone")? / of("of_sum_alone")? - 1.0)
    };
    Samples::median(runs.iter().filter_map(of_run))
}

/// A scenario's checks: required ones as checks, the others as figures that only inform.
pub(crate) fn of_checks(results: &Results) -> Vec<Figure> {
    let name = &results.summary.name;
    results.summary.checks.iter().map(|check| of_check(name, check)).collect()
}

fn of_check(scenario: &str, check: &CheckFigure) -> Figure {
    let name = format!("{scenario}: {}", check.name);
    // A figure without a unit is a quotient; counts have a unit.
    let unit = if check.unit.is_empty() { "ratio" } else { &check.unit };
    let figure = match check.value {
        Some(value) => Figure::number(name, value, unit.to_owned()),
        None => Figure::text(name, "not measured"),
    };
    if !check.required || !check.expected {
        return figure;
    }
    Figure { ok: check.ok, ..figure.within(check.low, check.high, check.source.clone()) }
}

/// A scenario's checks, and the figures of each of its cells.
pub(crate) fn figures_of(results: &Results) -> Vec<Figure> {
    [of_checks(results), of_cells(results)].concat()
}

/// The figures of each cell: medians, with the spread of several seeds.
fn of_cells(results: &Results) -> Vec<Figure> {
    let of_cell = |cell: &str, figure: &CellFigure| {
        let CellFigure { metric, unit, median, low, high, paper, .. } = figure;
        let name = format!("{}: {cell}: {metric}", results.summary.name);
        let spread = if low < high { format!(" ({low:.4} to {high:.4})") } else { String::new() };
        let paper = paper.map_or_else(String::new, |paper| format!("; paper {paper}"));
        Figure::text(name, format!("{median:.4} {unit}{spread}{paper}"))
    };
    let cells = results.cells.iter();
    cells.flat_map(|cell| cell.figures.iter().map(|figure| of_cell(&cell.cell, figure))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::score::tests::{run, rung};
    use super::*;

    /// One link alone has 30 Mbit/s, the other `other`.
    fn bond(mbit: f64, other: f64) -> Vec<RunRecord> {
        let shares = [("of_best_alone", mbit / 30.0), ("of_sum_alone", mbit / (30.0 + other))];
        vec![run("bond", &shares), run("alone:dsl", &[("load_mbit", 30.0)])]
    }

    fn told(check: &SetCheck, all: &[(Rung, Vec<RunRecord>)]) -> String {
        let all: Vec<(&Rung, &[RunRecord])> =
            all.iter().map(|(rung, runs)| (rung, &**runs)).collect();
        let figure = figure(check, &all);
        format!("{} {:?}", figure.name, figure.ok)
    }

    #[test]
    fn a_check_is_about_the_scenarios_that_it_names() {
        let all = [
            (rung("rates/both", true), bond(40.0, 15.0)),
            (rung("rates/tenth", true), bond(31.0, 3.0)),
            (rung("loss/little", false), bond(29.0, 1.0)),
            (rung("drawn/lossy@7", false), bond(36.0, 12.0)),
            (rung("drawn/not-measured@8", false), vec![run("bond", &[])]),
        ];
        let check = SetCheck {
            name: "share".into(),
            metric: "of_best_alone".into(),
            reduce: Reduce::Share { low: 1.0, high: f64::MAX },
            steady_only: false,
            drawn: None,
            adds: None,
            low: Some(0.9),
            high: None,
            source: "s".into(),
        };
        let of = |check: SetCheck| told(&check, &all);
        assert_eq!(of(check.clone()), "share, of 4 false", "the one that adds little has less");
        assert_eq!(of(SetCheck { adds: Some(0.09), ..check.clone() }), "share, of 3 true");
        assert_eq!(of(SetCheck { adds: Some(0.11), ..check.clone() }), "share, of 2 true");
        assert_eq!(of(SetCheck { steady_only: true, ..check.clone() }), "share, of 2 true");
        assert_eq!(of(SetCheck { drawn: Some(true), ..check.clone() }), "share, of 1 true");
        assert_eq!(of(SetCheck { drawn: Some(false), ..check }), "share, of 3 false");
    }

    #[test]
    fn scenarios_are_reduced_to_one_figure() {
        let values: Vec<f64> = (1..=20).map(|number| f64::from(number) / 20.0).collect();
        let of = |reduce: Reduce| reduce.of(&values).unwrap();
        assert_eq!(of(Reduce::Share { low: 0.9, high: f64::MAX }), 0.15);
        assert_eq!(of(Reduce::Share { low: f64::MIN, high: 0.5 }), 0.5);
        assert_eq!(of(Reduce::Lowest), 0.05);
        assert_eq!(of(Reduce::Highest), 1.0);
        assert_eq!(of(Reduce::TenthPercentile), 0.1);
        assert_eq!(of(Reduce::Median), 0.525);
        assert_eq!(of(Reduce::Count), 20.0);
        assert_eq!(Reduce::Mean.of(&[]), None);
    }
}
