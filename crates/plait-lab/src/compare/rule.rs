//! How close a simulated figure must be to the measured one.

use plait_sim::scenario::metric::unit_of;

use crate::record::{CheckFigure, Middle, Results, Samples};
use crate::report::words;

/// UDP's throughput of a link: percentage points of the link's rate.
const LINK_POINTS: f64 = 5.0;
/// Loss: a factor, or percentage points.
const LOSS_FACTOR: f64 = 1.5;
const LOSS_POINTS: f64 = 0.1;
/// TCP's goodput: a share.
const TCP_SHARE: f64 = 0.15;

/// A bound for the distance of two figures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Rule {
    /// The simulated figure over the measured one differs from 1 by this at most.
    Share(f64),
    /// They differ by this at most.
    Points(f64),
    /// They differ by this factor at most, or by these points.
    FactorOrPoints(f64, f64),
}

impl Rule {
    /// The rule for a metric on which the two back-ends must agree. How a TCP flow splits over the
    /// links may differ: a link's throughput has a rule only if all load is UDP.
    pub(crate) fn of_pair(metric: &str, results: &Results) -> Option<Self> {
        let (name, owner) = metric.split_once('.').unwrap_or((metric, ""));
        let has = |metric: String| results.runs.iter().any(|run| run.metrics.contains_key(&metric));
        let is_tcp = |app: &str| has(format!("retransmitted_percent.{app}"));
        let any_tcp = results.runs.iter().any(|run| {
            run.metrics.keys().any(|metric| metric.starts_with("retransmitted_percent."))
        });
        match (name, owner) {
            ("utilisation_percent", _) if !any_tcp => Some(Self::Points(LINK_POINTS)),
            ("loss_percent", "") if !any_tcp => {
                Some(Self::FactorOrPoints(LOSS_FACTOR, LOSS_POINTS))
            }
            ("goodput_mbit", app) if is_tcp(app) => Some(Self::Share(TCP_SHARE)),
            _ => None,
        }
    }

    /// Compares a simulated with a measured figure.
    pub(crate) fn check(
        self,
        cell: &str,
        metric: &str,
        middle: Middle,
        [sim, netns]: [&Samples; 2],
    ) -> CheckFigure {
        let (of_sim, of_netns) = (sim.middle(middle), netns.middle(middle));
        let (ratio, difference) = (of_sim / of_netns, of_sim - of_netns);
        let unit = unit_of(metric);
        let (value, bound_unit, low, high) = match self {
            Self::Share(share) => (ratio, "", 1.0 - share, 1.0 + share),
            Self::FactorOrPoints(factor, points) if difference.abs() > points => {
                (ratio, "", factor.recip(), factor)
            }
            Self::Points(points) | Self::FactorOrPoints(_, points) => {
                (difference, unit, -points, points)
            }
        };
        let told = |samples: &Samples, figure: f64| {
            let [low, high] = [samples.low(), samples.high()].map(words::number);
            format!("{} ({low} to {high})", words::with_unit(figure, unit))
        };
        CheckFigure {
            name: if cell == "base" { metric.to_owned() } else { format!("{metric} at {cell}") },
            value: Some(value),
            unit: bound_unit.to_owned(),
            low: Some(low),
            high: Some(high),
            ok: (low..=high).contains(&value),
            source: self.source(),
            required: true,
            expected: true,
            words: format!("simulated {}, measured {}", told(sim, of_sim), told(netns, of_netns)),
        }
    }

    fn source(self) -> String {
        match self {
            Self::Share(share) => format!("within {:.0} % of each other", share * 100.0),
            Self::Points(points) => format!("within {points} points of each other"),
            Self::FactorOrPoints(factor, points) => {
                format!("within a factor of {factor} or {points} points")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: Rule, sim: f64, netns: f64) -> CheckFigure {
        let samples = |value| Samples::new(vec![value]).unwrap();
        rule.check("base", "loss_percent", Middle::Median, [&samples(sim), &samples(netns)])
    }

    #[test]
    fn a_share_is_of_the_measured_figure() {
        assert!(check(Rule::Share(0.1), 10.9, 10.0).ok);
        assert!(!check(Rule::Share(0.1), 11.1, 10.0).ok);
        assert!(!check(Rule::Share(0.1), 8.9, 10.0).ok);
        assert!(!check(Rule::Share(0.1), 1.0, 0.0).ok);
    }

    #[test]
    fn small_losses_are_compared_by_points_and_large_ones_by_factor() {
        let rule = Rule::FactorOrPoints(1.5, 0.1);
        let near = check(rule, 0.1, 0.01);
        assert!(near.ok && near.high == Some(0.1), "{near:?}");
        assert!(check(rule, 3.0, 2.1).ok);
        let far = check(rule, 3.0, 1.9);
        assert!(!far.ok && far.high == Some(1.5), "{far:?}");
    }

    #[test]
    fn points_are_those_of_the_figure() {
        assert!(check(Rule::Points(5.0), 96.0, 99.0).ok);
        let far = check(Rule::Points(5.0), 90.0, 99.0);
        assert!(!far.ok && far.words.contains("simulated 90"), "{far:?}");
    }
}
