//! The result of all rungs with one policy, and the rungs that break the promise.

use serde::Serialize;

use super::score::Score;
use crate::record::{Middle, Samples};

/// The bond must reach this share of its best link's rate, with links alone through plait.
pub(crate) const AGAINST_BEST_MIN: f64 = 0.98;
/// Least A_r of every steady rung.
pub(crate) const STEADY_RATIO_MIN: f64 = 0.95;

/// The result of several rungs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Sum {
    pub(crate) rungs: usize,
    /// Rungs on which the bond has enough of its best link's rate.
    pub(crate) kept: usize,
    pub(crate) ratio_min: f64,
    pub(crate) ratio_median: f64,
    pub(crate) ratio_mean: f64,
    pub(crate) against_best_min: f64,
    /// Ping minus the largest round trip without a queue: median and maximum.
    pub(crate) ping_above_base_median_ms: Option<f64>,
    pub(crate) ping_above_base_max_ms: Option<f64>,
    pub(crate) standstill_max_ms: f64,
    pub(crate) steady: usize,
    pub(crate) steady_below: usize,
    /// The lowest A_r of a steady rung, and its name.
    pub(crate) steady_lowest: Option<(f64, String)>,
}

impl Sum {
    pub(crate) fn of(scores: &[&Score]) -> Self {
        let all = |value: fn(&Score) -> f64| {
            Samples::new(scores.iter().map(|score| value(score)).collect())
        };
        let ratios = all(Score::ratio);
        let pings = Samples::new(scores.iter().filter_map(|s| ping_above_base_ms(s)).collect());
        let low = |all: &Option<Samples>| all.as_ref().map_or(0.0, Samples::low);
        let high = |all: &Option<Samples>| all.as_ref().map_or(0.0, Samples::high);
        let middle =
            |all: &Option<Samples>, which| all.as_ref().map_or(0.0, |all| all.middle(which));
        let steady = || scores.iter().filter(|score| score.steady);
        let lowest = steady().min_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        Self {
            rungs: scores.len(),
            kept: scores.iter().filter(|score| keeps_best(score)).count(),
            ratio_min: low(&ratios),
            ratio_median: middle(&ratios, Middle::Median),
            ratio_mean: middle(&ratios, Middle::Mean),
            against_best_min: low(&all(Score::against_best)),
            ping_above_base_median_ms: pings.as_ref().map(|all| all.middle(Middle::Median)),
            ping_above_base_max_ms: pings.as_ref().map(Samples::high),
            standstill_max_ms: high(&all(|score| score.standstill_ms)),
            steady: steady().count(),
            steady_below: steady().filter(|score| !keeps_sum(score)).count(),
            steady_lowest: lowest.map(|score| (score.ratio(), score.rung.clone())),
        }
    }

    /// The share of rungs on which the bond has enough of its best link's rate.
    pub(crate) fn kept_share(&self) -> f64 {
        if self.rungs == 0 { 1.0 } else { self.kept as f64 / self.rungs as f64 }
    }
}

/// Rungs that break the promise, with the part that they break.
pub(crate) fn broken<'a>(scores: &[&'a Score]) -> Vec<(&'a Score, String)> {
    let mut broken = Vec::new();
    for score in scores {
        let mut what = Vec::new();
        if !keeps_best(score) {
            what.push(format!("{:.3} of the best link", score.against_best()));
        }
        if !keeps_sum(score) {
            what.push(format!("A_r {:.3} on a steady rung", score.ratio()));
        }
        if !what.is_empty() {
            broken.push((*score, what.join(", ")));
        }
    }
    broken
}

fn keeps_best(score: &Score) -> bool {
    score.against_best() >= AGAINST_BEST_MIN
}

fn keeps_sum(score: &Score) -> bool {
    !score.steady || score.ratio() >= STEADY_RATIO_MIN
}

fn ping_above_base_ms(score: &Score) -> Option<f64> {
    Some(score.ping_ms? - f64::from(score.base_rtt_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::score::tests::{rung, score};

    #[test]
    fn a_sum_counts_what_keeps_the_promise() {
        let (steady, lossy) = (rung("rates/x", true), rung("rates/x", false));
        let scores = [score(&steady, 39.0), score(&steady, 36.0), score(&lossy, 29.1)];
        let scores: Vec<&Score> = scores.iter().collect();
        let sum = Sum::of(&scores);
        assert_eq!((sum.rungs, sum.kept, sum.steady, sum.steady_below), (3, 2, 2, 1));
        assert_eq!(sum.steady_lowest, Some((0.9, "rates/x".into())));
        assert!((sum.against_best_min - 0.97).abs() < 1e-9, "{sum:?}");
        assert_eq!(sum.ratio_min, 0.727);
        let broken: Vec<String> = broken(&scores).into_iter().map(|(_, what)| what).collect();
        assert_eq!(broken, ["A_r 0.900 on a steady rung", "0.970 of the best link"]);
    }
}
