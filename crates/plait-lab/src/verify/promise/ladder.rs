//! promise.1: the ladder of link conditions, in the simulator, with the default policy.

use anyhow::Result;

use super::super::{Effort, Figure};
use crate::ladder::{
    self, AGAINST_BEST_MIN, KEPT_MIN, STEADY_RATIO_MIN, Score, Sum, broken, climb,
};
use crate::policy::Policy;

const RUNGS_MIN: f64 = 100.0;
const SOURCE: &str = "issue 5, promise 1";

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let quick = effort.runs == 1;
    let rungs = ladder::runnable();
    let rungs = if quick { ladder::thinned(&rungs) } else { rungs };
    let effort = if quick { ladder::Effort::QUICK } else { ladder::Effort::FULL };
    let scores = climb(&rungs, &[Policy::default_policy()], effort)?;
    let scores: Vec<&Score> = scores.iter().flatten().collect();
    let mut figures = figures(&scores);
    if !quick {
        figures[0] = figures[0].clone().at_least(RUNGS_MIN, SOURCE);
    }
    Ok(figures)
}

fn figures(scores: &[&Score]) -> Vec<Figure> {
    let sum = Sum::of(scores);
    let kept = format!("rungs with at least {AGAINST_BEST_MIN} of the best link, of {}", sum.rungs);
    let mut figures = vec![
        Figure::count("rungs", sum.rungs as u64),
        Figure::count(kept, sum.kept as u64).at_least((KEPT_MIN * sum.rungs as f64).ceil(), SOURCE),
    ];
    if let Some((ratio, rung)) = sum.steady_lowest {
        let name = format!("lowest A_r of {} steady rungs: {rung}", sum.steady);
        figures.push(Figure::number(name, ratio, "ratio").at_least(STEADY_RATIO_MIN, SOURCE));
    }
    figures.push(Figure::number("A_r of all rungs, mean", sum.ratio_mean, "ratio"));
    figures.push(Figure::number("A_r of all rungs, median", sum.ratio_median, "ratio"));
    for (score, what) in broken(scores) {
        figures.push(Figure::text(score.rung, format!("{what}: {}", score.reason())));
    }
    figures
}
