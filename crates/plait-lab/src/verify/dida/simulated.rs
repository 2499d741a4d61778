//! dida.1 to dida.4: paper 000's experiments on the simulator.

use anyhow::{Context, Result, ensure};

use super::super::{Effort, Figure};
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::record::{Results, RunRecord};
use crate::run::results;

const THROUGHPUT: &str = "transfer_mbit.flow";
const GAIN_SOURCE: &str = "000: about twice native LWIP";
const DUPLICATES: &str = "duplicate_acks.flow";

/// The runs of a scenario, or of a part of it.
struct Found {
    results: Results,
}

impl Found {
    fn of(scenario: &str, settings: &[&str], seeds: u64) -> Result<Self> {
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let experiment = ExperimentArgs { settings, ..ExperimentArgs::of(scenario) };
        Ok(Self {
            results: results(&RunArgs {
                seeds: Some(seeds),
                experiment,
                ..RunArgs::of("", On::Sim)
            })?,
        })
    }

    /// A metric's median over the seeds of the cell that has these labels; an error names a
    /// transfer that did not end.
    fn median(&self, metric: &str, labels: &[(&str, &str)]) -> Result<f64> {
        let chosen = |run: &&RunRecord| {
            labels.iter().all(|(axis, label)| {
                run.settings.get(*axis).is_some_and(|value| match value.as_str() {
                    Some(text) => text == *label,
                    None => value.to_string() == *label,
                })
            })
        };
        let runs: Vec<&RunRecord> = self.results.runs.iter().filter(chosen).collect();
        let (name, seeds) = (&self.results.summary.name, self.results.summary.seeds);
        ensure!(runs.len() as u64 == seeds, "{name}: {labels:?} is not one cell");
        // A transfer that did not end had no throughput worth speaking of.
        let mut values: Vec<f64> =
            runs.iter().map(|run| run.metrics.get(metric).copied().unwrap_or(0.0)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().context("a cell has at least one run")
    }
}

/// The labels of an axis of numbers.
fn labels(numbers: &[u32]) -> Vec<String> {
    numbers.iter().map(u32::to_string).collect()
}

/// Fig. 9 and Fig. 10.
pub(in super::super) fn check_figures(effort: Effort) -> Result<Vec<Figure>> {
    const HOLDS: [u32; 17] =
        [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 150, 200, 300, 400, 500, 600];
    const SOURCE: &str = "000 Fig. 9: 50 ms are best at a round trip of 100 ms";
    let seeds = effort.seeds();
    let found = Found::of("000/fig-9", &["split=[\"lte-50\"]"], seeds)?;
    let mut figures = Vec::new();
    for form in ["plait", "paper", "paper-no-sack"] {
        let at = |hold: &String| found.median(THROUGHPUT, &[("form", form), ("hold", hold)]);
        let rates: Vec<f64> = labels(&HOLDS).iter().map(at).collect::<Result<_>>()?;
        let best = rates.iter().copied().fold(0.0, f64::max);
        let within = |(hold, _): &(&u32, &f64)| (30..=70).contains(*hold);
        let held = HOLDS.iter().zip(&rates).filter(within).map(|(_, rate)| *rate);
        let held = held.fold(0.0, f64::max);
        let first = HOLDS.iter().zip(&rates).find(|(_, rate)| **rate == best);
        let first = first.map_or(0, |(hold, _)| *hold);
        let share = Figure::number(
            format!("Fig. 9, {form}: best of 30 to 70 ms over the best of 0 to 600 ms"),
            held / best,
            "ratio",
        );
        let zero = Figure::number(
            format!("Fig. 9, {form}: hold 0 over the best"),
            rates[0] / best,
            "ratio",
        );
        if form == "plait" {
            figures.push(share.at_least(1.0, SOURCE));
            figures.push(zero.at_most(1.0 / 1.8, "000: twice native LWIP, here 1.8 times"));
        } else {
            figures.extend([share, zero]);
        }
        figures.push(Figure::number(format!("Fig. 9, {form}: best"), best, "Mbit/s"));
        figures.push(Figure::number(
            format!("Fig. 9, {form}: the shortest hold that reaches it"),
            f64::from(first),
            "ms",
        ));
    }
    figures.extend(check_fig_10(seeds)?);
    Ok(figures)
}

/// Fig. 10: the best throughput of each split.
fn check_fig_10(seeds: u64) -> Result<Vec<Figure>> {
    const HOLDS: [u32; 16] = [0, 2, 4, 6, 8, 10, 15, 20, 30, 40, 60, 80, 100, 150, 200, 300];
    let mut figures = Vec::new();
    let settings = ["form=[\"plait\", \"paper-no-sack\"]"];
    let found = Found::of("000/fig-10", &settings, seeds)?;
    for form in ["plait", "paper-no-sack"] {
        let mut best_of = Vec::new();
        for split in ["lte-20", "lte-50", "lte-80"] {
            let at = |hold: &String| {
                found.median(THROUGHPUT, &[("split", split), ("form", form), ("hold", hold)])
            };
            let rates: Vec<f64> = labels(&HOLDS).iter().map(at).collect::<Result<_>>()?;
            let best = rates.iter().copied().fold(0.0, f64::max);
            let name = format!("Fig. 10, {form}: {split} at its best hold");
            figures.push(Figure::number(name, best, "Mbit/s"));
            best_of.push(best);
        }
        let lead = best_of[0] / best_of[1].max(best_of[2]);
        let lead =
            Figure::number(format!("Fig. 10, {form}: LTE-20 over the others"), lead, "ratio");
        let is_check = form == "plait";
        figures.push(if is_check { lead.at_least(1.0, "000 Fig. 10: LTE-20 best") } else { lead });
    }
    Ok(figures)
}

/// What DIDA gains.
pub(in super::super) fn check_gain(effort: Effort) -> Result<Vec<Figure>> {
    let found = Found::of("000/gain", &[], effort.seeds())?;
    let mut figures = Vec::new();
    for sender in ["three-dups", "no-sack", "three-dups-undo", "adaptive", "rack"] {
        let at =
            |metric: &str, node: &str| found.median(metric, &[("sender", sender), ("node", node)]);
        let native = at(THROUGHPUT, "native")?;
        figures.push(Figure::number(format!("{sender}: native LWIP"), native, "Mbit/s"));
        for node in ["dida", "paper", "in-order"] {
            let gain = at(THROUGHPUT, node)? / native;
            let gain = Figure::number(format!("{sender}: {node} over native"), gain, "ratio");
            let is_check = (sender, node) == ("three-dups", "dida");
            figures.push(if is_check { gain.at_least(1.8, GAIN_SOURCE) } else { gain });
        }
        let fewer = 100.0 * (1.0 - at(DUPLICATES, "dida")? / at(DUPLICATES, "native")?);
        let fewer = Figure::number(format!("{sender}: dida: duplicate ACKs fewer by"), fewer, "%");
        let is_check = sender == "three-dups";
        figures.push(if is_check { fewer.at_least(20.0, "000: a fifth fewer") } else { fewer });
    }
    Ok(figures)
}

/// The default holding time beside a sweep of fixed ones.
pub(in super::super) fn check_holding_time(effort: Effort) -> Result<Vec<Figure>> {
    let found = Found::of("000/holding-time", &[], effort.seeds())?;
    let mut figures = Vec::new();
    for rtt_ms in [20, 50, 100, 200] {
        let rtt = rtt_ms.to_string();
        let at = |hold: &str| found.median(THROUGHPUT, &[("rtt", &rtt), ("hold", hold)]);
        let steps: Vec<u32> = (0..=10).map(|step| rtt_ms / 10 * step).collect();
        let rates: Vec<f64> = labels(&steps).iter().map(|hold| at(hold)).collect::<Result<_>>()?;
        let best = rates.iter().copied().fold(0.0, f64::max);
        figures.push(
            Figure::number(
                format!("{rtt_ms} ms: the default over the best fixed hold"),
                at("optimum")? / best,
                "ratio",
            )
            .at_least(0.95, "steps of a tenth of the round trip, up to all of it"),
        );
        figures.push(Figure::number(format!("{rtt_ms} ms: best fixed hold"), best, "Mbit/s"));
        for policy in ["plain-optimum", "printed", "net-growth", "delay-difference"] {
            let name = format!("{rtt_ms} ms: {policy} over the best fixed hold");
            figures.push(Figure::number(name, at(policy)? / best, "ratio"));
        }
    }
    Ok(figures)
}

/// Fig. 12, on steady and on fluctuating links: the least lead at any size from 4 MB on. On links
/// that fluctuate a download depends on when it starts, which each seed draws: that takes more of
/// them.
pub(in super::super) fn check_sizes(effort: Effort) -> Result<Vec<Figure>> {
    const SIZES_MB: [u32; 5] = [4, 8, 16, 32, 64];
    const SIZES: &str = "size=[\"4-MB\", \"8-MB\", \"16-MB\", \"32-MB\", \"64-MB\"]";
    const SOURCE: &str = "000 Fig. 12: at least as good as each alone from 4 MB";
    let mut figures = Vec::new();
    for (scenario, seeds) in
        [("000/fig-12", effort.seeds()), ("000/fig-12-fluctuating", 4 * effort.seeds())]
    {
        let found = Found::of(scenario, &[SIZES], seeds)?;
        for sender in ["three-dups", "adaptive", "rack"] {
            for other in ["lte", "wifi", "lwip"] {
                let at = |size_mb: &u32, way: &str| {
                    let size = format!("{size_mb}-MB");
                    found.median(THROUGHPUT, &[("sender", sender), ("size", &size), ("way", way)])
                };
                let mut least = f64::INFINITY;
                for size_mb in &SIZES_MB {
                    // One that did not end is behind all that did; of two neither is.
                    let (dida, other) = (at(size_mb, "lwip-dida")?, at(size_mb, other)?);
                    least = least.min(if dida > 0.0 { dida / other } else { 0.0 });
                }
                let name = format!("{scenario}, {sender}: least lead over {other}, 4 to 64 MB");
                let lead = Figure::number(name, least, "ratio");
                let is_check = sender == "three-dups";
                figures.push(if is_check { lead.at_least(1.0, SOURCE) } else { lead });
            }
        }
    }
    Ok(figures)
}
