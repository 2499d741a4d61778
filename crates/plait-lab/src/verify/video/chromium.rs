//! video.4: 004's table III in Chromium, on the links that were frozen before anything was run over
//! both; and beside it the same over plait's bond (video.5's table, which has no band).

use std::time::Duration;

use anyhow::Result;

use super::super::{Effort, Figure, runs_made};
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::record::{Results, RunRecord};
use crate::run::AtOnce;

const SCENARIO: &str = "004/in-chromium";
const RUNS: u64 = 10;
/// A run of 4K takes a third of two processors, most of it Chromium's.
const AT_ONCE: usize = 2;
/// A browser's start takes some seconds of a processor; begun together, three play later than one.
const BEGUN_APART: Duration = Duration::from_secs(10);
const SOURCE: &str = "004 table III";

/// A clip, its bound on stalls, and what the paper has: mean stalls over Wi-Fi, LTE and both.
struct Clip {
    name: &'static str,
    stalls_max: f64,
    paper: [f64; 3],
}

const CLIPS: [Clip; 2] = [
    Clip { name: "4k", stalls_max: 0.6, paper: [5.32, 6.44, 2.38] },
    Clip { name: "2k", stalls_max: 0.4, paper: [3.67, 4.26, 0.88] },
];
/// What carries it, in the paper's order, then plait's bond.
const CARRIERS: [(&str, &str); 4] = [
    ("bare:wifi", "Wi-Fi"),
    ("bare:lte", "LTE"),
    ("mptcp", "both by MPTCP proxies"),
    ("bond", "both by the bond"),
];

/// Means over a cell's runs.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Means {
    stalls: f64,
    stall_s: f64,
    initial_load_s: f64,
    /// Of the runs' scores.
    score: f64,
    buffered_s: f64,
    /// The share of bytes that the emulator carried over Wi-Fi, per cent; none without Wi-Fi.
    on_wifi: f64,
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let runs = if effort.is_quick() { 1 } else { RUNS };
    let experiment = ExperimentArgs::of(SCENARIO);
    let args = RunArgs { seeds: Some(runs), experiment, ..RunArgs::of("", On::Netns) };
    let results = AtOnce { runs: AT_ONCE, begun_apart: BEGUN_APART }.results(&args)?;
    let mut figures = vec![runs_made(&results, runs)];
    for clip in &CLIPS {
        let means = CARRIERS.map(|(carrier, _)| means(&results, clip.name, carrier));
        figures.extend(told(clip, &means));
        figures.extend(judged(clip, &means, runs));
    }
    Ok(figures)
}

fn means(results: &Results, clip: &str, carrier: &str) -> Means {
    let cell = format!("carrier={carrier},clip={clip}");
    let runs: Vec<&RunRecord> = results.runs.iter().filter(|run| run.cell == cell).collect();
    let mean = |metric: &str| {
        let values: Vec<f64> =
            runs.iter().filter_map(|run| run.metrics.get(metric).copied()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    // The paper's mean length is over all stalls, not over runs.
    let (stalls, stalled_s) = (mean("stalls.clip"), mean("stalled_s.clip"));
    Means {
        stalls,
        stall_s: if stalls > 0.0 { stalled_s / stalls } else { 0.0 },
        initial_load_s: mean("initial_load_s.clip"),
        score: mean("viewer_score.clip"),
        buffered_s: mean("buffered_s.clip"),
        on_wifi: mean("link_share_percent.wifi"),
    }
}

/// Table III's rows in words, beside the paper's.
fn told(clip: &Clip, means: &[Means; 4]) -> Vec<Figure> {
    let paper = clip.paper.iter().map(Some).chain([None]);
    let rows = CARRIERS.iter().zip(means).zip(paper);
    let told = rows.map(|(((_, carrier), means), paper)| {
        let Means { stalls, stall_s, initial_load_s, score, buffered_s, on_wifi } = means;
        let paper = paper.map_or(String::new(), |paper| format!(" (paper {paper})"));
        let split = if carrier.starts_with("both") {
            format!(", {on_wifi:.0} % on Wi-Fi")
        } else {
            String::new()
        };
        let text = format!(
            "stalls {stalls:.2}{paper} of {stall_s:.2} s, initial load {initial_load_s:.2} s, all \
             buffered {buffered_s:.1} s, score {score:.2}{split}"
        );
        Figure::text(format!("{}, {carrier}", clip.name), text)
    });
    told.collect()
}

/// What the paper claims of both accesses, by MPTCP.
fn judged(clip: &Clip, [wifi, lte, both, _]: &[Means; 4], runs: u64) -> Vec<Figure> {
    let name = |what: &str| format!("{}: {what}", clip.name);
    // Of no stall at all nothing is a share: it counts as one in all runs.
    let stalls = both.stalls / wifi.stalls.max(1.0 / runs as f64);
    let sooner = |other: &Means| 100.0 * (1.0 - both.initial_load_s / other.initial_load_s);
    let load = |carrier: &str, other: &Means| {
        let what = format!("initial load with both, less than over {carrier}");
        Figure::number(name(&what), sooner(other), "%").within(Some(20.0), Some(55.0), "004")
    };
    let first = both.buffered_s / wifi.buffered_s.min(lte.buffered_s);
    let gain = |carrier: &str, other: &Means, paper: &str| {
        let gain = 100.0 * (both.score / other.score - 1.0);
        let told = format!("{gain:+.1} % (paper: {paper})");
        Figure::text(name(&format!("score with both over {carrier}'s")), told)
    };
    let paper = if clip.name == "4k" { ["+20.4 %", "+34.4 %"] } else { ["minimal"; 2] };
    vec![
        Figure::number(name("stalls with both, of Wi-Fi's"), stalls, "ratio")
            .at_most(clip.stalls_max, SOURCE),
        load("Wi-Fi", wifi),
        load("LTE", lte),
        Figure::number(name("all buffered with both, of the sooner access's time"), first, "ratio")
            .at_most(1.0, "004"),
        Figure::number(name("bytes on Wi-Fi, with both"), both.on_wifi, "%")
            .at_least(50.0, "004 Fig. 5"),
        gain("Wi-Fi", wifi, paper[0]),
        gain("LTE", lte, paper[1]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_own_table_passes_and_no_gain_fails() {
        let row = |stalls, initial_load_s, buffered_s, on_wifi| Means {
            stalls,
            stall_s: 3.0,
            initial_load_s,
            score: 2.5,
            buffered_s,
            on_wifi,
        };
        let (wifi, lte) = (row(5.32, 2.0, 90.0, 100.0), row(6.44, 2.2, 100.0, f64::NAN));
        let both = row(2.38, 1.3, 80.0, 60.0);
        let ok = |both| {
            let figures = judged(&CLIPS[0], &[wifi, lte, both, both], 10);
            figures.iter().filter(|figure| figure.is_check()).map(|it| it.ok).collect::<Vec<_>>()
        };
        assert_eq!(ok(both), [true; 5]);
        assert_eq!(ok(row(5.0, 2.0, 101.0, 40.0)), [false; 5]);
        let silent = judged(&CLIPS[1], &[row(0.0, 2.0, 90.0, 100.0), lte, both, both], 10);
        assert!(!silent[0].ok, "{:?}", silent[0]);
    }
}
