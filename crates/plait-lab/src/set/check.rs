//! What all scenarios of a set must show together.

use super::score::Rung;
use crate::figure::Figure;
use crate::record::Results;
use crate::run::{Middle, Samples};

/// A check over a metric of each scenario: its median over the seeds of the bond's runs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SetCheck {
    pub(super) name: String,
    pub(super) metric: String,
    pub(super) reduce: Reduce,
    /// Only scenarios in which the sum of the links is promised.
    pub(super) steady_only: bool,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) source: String,
}

/// From the scenarios' figures to one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Reduce {
    /// The share of scenarios in which it is no less than this.
    Share {
        low: f64,
    },
    Lowest,
    /// The tenth percentile.
    TenthPercentile,
    Median,
    Mean,
}

impl Reduce {
    pub(super) const CHOICES: [(&'static str, Self); 4] = [
        ("lowest", Self::Lowest),
        ("tenth-percentile", Self::TenthPercentile),
        ("median", Self::Median),
        ("mean", Self::Mean),
    ];

    fn of(self, values: &[f64]) -> Option<f64> {
        let samples = Samples::new(values.to_vec())?;
        Some(match self {
            Self::Share { low } => {
                let good = values.iter().filter(|value| **value >= low).count();
                good as f64 / values.len() as f64
            }
            Self::Lowest => samples.low(),
            Self::TenthPercentile => samples.quantile(0.1),
            Self::Median => samples.middle(Middle::Median),
            Self::Mean => samples.middle(Middle::Mean),
        })
    }
}

/// Each check as a figure; with several policies, over the scenarios under all of them.
pub(super) fn figures(checks: &[SetCheck], rungs: &[Rung], results: &[Results]) -> Vec<Figure> {
    checks.iter().map(|check| figure(check, rungs, results)).collect()
}

fn figure(check: &SetCheck, rungs: &[Rung], results: &[Results]) -> Figure {
    let mut named = Vec::new();
    for (results, rung) in results.iter().zip(rungs.iter().cycle()) {
        if check.steady_only && !rung.steady {
            continue;
        }
        let of_bond = results.runs.iter().filter_map(|run| run.metrics.get(&check.metric).copied());
        if let Some(samples) = Samples::new(of_bond.collect()) {
            named.push((samples.middle(Middle::Median), rung.rung.as_str()));
        }
    }
    let values: Vec<f64> = named.iter().map(|(value, _)| *value).collect();
    let Some(value) = check.reduce.of(&values) else {
        return Figure::text(check.name.clone(), "not measured");
    };
    let lowest = named.iter().min_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |(_, name)| name);
    let name = match check.reduce {
        Reduce::Lowest => format!("{}, of {}: {lowest}", check.name, values.len()),
        _ => format!("{}, of {}", check.name, values.len()),
    };
    let figure = Figure::number(name, value, "ratio");
    if check.low.is_none() && check.high.is_none() {
        return figure;
    }
    figure.within(check.low, check.high, check.source.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_are_reduced_to_one_figure() {
        let values: Vec<f64> = (1..=20).map(|number| f64::from(number) / 20.0).collect();
        let of = |reduce: Reduce| reduce.of(&values).unwrap();
        assert_eq!(of(Reduce::Share { low: 0.9 }), 0.15);
        assert_eq!(of(Reduce::Lowest), 0.05);
        assert_eq!(of(Reduce::TenthPercentile), 0.1);
        assert_eq!(of(Reduce::Median), 0.525);
        assert_eq!(Reduce::Mean.of(&[]), None);
    }
}
