//! video.6: the model of a player beside Chromium, each alone on ten emulated links that were drawn
//! before the model was held against them.

use anyhow::Result;

use super::super::{Effort, Figure, runs_made};
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::record::{Middle, Results, Samples};
use crate::run;

/// The links that the model is judged on.
const JUDGED: &str = "004/browser-fresh";
/// What is compared, both in seconds.
const METRICS: [(&str, &str); 2] =
    [("initial_load_s.clip", "initial load"), ("stalled_s.clip", "stalled")];
const NEAR_SHARE: f64 = 0.2;
const NEAR_S: f64 = 0.3;
const NEAR_MIN: u32 = 8;

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let runs = effort.runs() as u64;
    let args = |on| RunArgs {
        seeds: Some(runs),
        experiment: ExperimentArgs::of(JUDGED),
        ..RunArgs::of("", on)
    };
    // One at a time: browsers beside each other begin later.
    let judged = [run::results(&args(On::Sim))?, run::results(&args(On::Netns))?];
    let mut figures = judged_figures(&judged);
    figures.push(runs_made(&judged[1], runs));
    Ok(figures)
}

fn judged_figures(judged: &[Results; 2]) -> Vec<Figure> {
    let (near, links) = beside(judged);
    let name = "drawn links on which the model is within 20 % or 0.3 s of Chromium";
    let mut figures = vec![Figure::count(name, near.into()).at_least(NEAR_MIN.into(), "of ten")];
    figures.extend(links);
    figures
}

/// On how many links the model is near the browser in all that is compared, and a figure for each.
fn beside(pair: &[Results; 2]) -> (u32, Vec<Figure>) {
    let mut near = 0;
    let mut figures = Vec::new();
    for cell in &pair[0].cells {
        let middle = |results: &Results, metric| {
            Samples::of(results, &cell.cell, metric)
                .map_or(f64::NAN, |samples| samples.middle(Middle::Median))
        };
        let mut is_near_in_all = true;
        let mut words = Vec::new();
        for (metric, told) in METRICS {
            let [simulated, measured] = pair.each_ref().map(|results| middle(results, metric));
            is_near_in_all &= is_near(simulated, measured);
            words.push(format!("{told} {measured:.2} s (simulated {simulated:.2})"));
        }
        near += u32::from(is_near_in_all);
        let beside = if is_near_in_all { "" } else { "; not within the band" };
        figures.push(Figure::text(&cell.cell, format!("{}{beside}", words.join(", "))));
    }
    (near, figures)
}

/// Whether a simulated time is as good as the measured one; not if one of them is missing.
fn is_near(simulated_s: f64, measured_s: f64) -> bool {
    (simulated_s - measured_s).abs() <= (NEAR_SHARE * measured_s).max(NEAR_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_is_a_share_of_the_measured_time_or_a_moment() {
        assert!(is_near(0.3, 0.0) && is_near(0.0, 0.3) && is_near(11.9, 10.0));
        assert!(!is_near(0.31, 0.0) && !is_near(12.1, 10.0) && !is_near(7.9, 10.0));
        assert!(!is_near(f64::NAN, 1.0) && !is_near(1.0, f64::NAN));
    }
}
