//! kernel.2: plait's controllers in eBPF beside those of the simulator, on four links; and in a
//! guest the kernel's own Illinois beside plait's.

use anyhow::{Context, Result, ensure};

use super::super::{Effort, Figure, runs_made};
use super::loaded::{self, LoadedControllers};
use crate::cli::vm::Guest;
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::netem::beside::{ILLINOIS, Request, twins};
use crate::record::{RunRecord, Samples};
use crate::run::{self, AtOnce};
use crate::vm;

const SCENARIO: &str = "kernel/controllers";
const LINKS: [&str; 4] = ["clean", "lossy", "deep", "air"];
const CONTROLLERS: [&str; 6] = ["whitehaul", "edinburgh", "lia", "olia", "balia", "illinois"];
/// What every figure may differ by, in per cent.
const DIFFERENCE_MAX: f64 = 15.0;
const SOURCE: &str = "kernel.2: each figure within 15 % of the simulator's";
/// A run is one flow of at most 40 Mbit/s, and another of 15.
const AT_ONCE: usize = 6;
/// Left out of the window's quartiles, as of the goodput: the scenario's `warmup_s`.
const WARMUP_S: f64 = 3.0;
/// A window has converged at this share of its later mean.
const CONVERGED_SHARE: f64 = 0.9;

const GUEST: Guest = Guest::Qemu;
const BEFORE: &str = "plait cc load illinois >&2";

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    vm::check(GUEST)?;
    loaded::mount_bpffs()?;
    loaded::ensure_can_load()?;
    let (seeds, runs) = if effort.is_quick() { (5, 1) } else { (10, 3) };
    let simulated = run::whole_runs(&args(On::Sim, seeds))?;
    let kernel = {
        let _loaded = LoadedControllers::load(&CONTROLLERS)?;
        AtOnce { runs: AT_ONCE }.results(&args(On::Netns, runs))?
    };
    let mut figures =
        vec![Figure::count("seeds of each cell simulated", seeds), runs_made(&kernel, runs)];
    for controller in CONTROLLERS {
        for link in LINKS {
            let cell = format!("link={link},controller={controller}");
            let shape = |runs: &[RunRecord]| Shape::of_cell(runs, &cell);
            let simulated = shape(&simulated)?.with_context(|| format!("{cell}: not simulated"))?;
            match shape(&kernel.runs)? {
                Some(kernel) => figures.extend(beside(&cell, simulated, kernel)),
                // A text lies in no band; what was seen of other cells stands.
                None => {
                    let why = Figure::text(cell, "the machine kept up with none of its runs");
                    figures.push(why.exactly(0.0, SOURCE));
                }
            }
        }
    }
    figures.extend(illinois_twice(effort)?);
    Ok(figures)
}

fn args(on: On, seeds: u64) -> RunArgs {
    RunArgs { seeds: Some(seeds), experiment: ExperimentArgs::of(SCENARIO), ..RunArgs::of("", on) }
}

/// How a flow went.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Shape {
    goodput_mbit: f64,
    /// Of the window in segments, after the warm-up.
    quartiles: [f64; 3],
    /// Fast recoveries and timeouts, of the whole flow.
    reductions_per_minute: f64,
    /// From the start until the window first has [`CONVERGED_SHARE`] of its later mean.
    converged_s: f64,
    /// How exact that is.
    interval_s: f64,
}

impl Shape {
    /// Medians over a cell's runs; `None` when there is none.
    fn of_cell(runs: &[RunRecord], cell: &str) -> Result<Option<Self>> {
        let runs = runs.iter().filter(|run| run.cell == cell);
        let shapes: Vec<Self> = runs
            .map(|run| Self::of_run(run).with_context(|| format!("{cell}: no window in a run")))
            .collect::<Result<_>>()?;
        let Some(first) = shapes.first() else { return Ok(None) };
        let median = |of: &dyn Fn(&Self) -> f64| {
            Samples::median(shapes.iter().map(of)).expect("there is a run")
        };
        Ok(Some(Self {
            goodput_mbit: median(&|shape| shape.goodput_mbit),
            quartiles: [0, 1, 2].map(|at| median(&|shape| shape.quartiles[at])),
            reductions_per_minute: median(&|shape| shape.reductions_per_minute),
            converged_s: median(&|shape| shape.converged_s),
            interval_s: first.interval_s,
        }))
    }

    fn of_run(run: &RunRecord) -> Option<Self> {
        let metric = |name: &str| run.metrics.get(name).copied();
        let windows: Vec<f64> = run.series.get("cwnd.flow")?.iter().copied().flatten().collect();
        let minutes = windows.len() as f64 * run.interval_s / 60.0;
        let warmup = (WARMUP_S / run.interval_s).round() as usize;
        let later = windows.get(warmup..)?;
        let mean = later.iter().sum::<f64>() / later.len() as f64;
        let converged = windows.iter().position(|window| *window >= CONVERGED_SHARE * mean)?;
        let later = Samples::new(later.to_vec())?;
        Some(Self {
            goodput_mbit: metric("goodput_mbit.flow")?,
            quartiles: [0.25, 0.5, 0.75].map(|share| later.quantile(share)),
            reductions_per_minute: (metric("fast_recoveries.flow")? + metric("timeouts.flow")?)
                / minutes,
            converged_s: converged as f64 * run.interval_s,
            interval_s: run.interval_s,
        })
    }

    /// By what each figure differs from `other`'s, in per cent of that.
    fn differences(&self, other: &Self) -> [(&'static str, f64); 6] {
        let share = |of: fn(&Self) -> f64| 100.0 * relative(of(self), of(other));
        // A difference that one sample explains is none.
        let later_s = (self.converged_s - other.converged_s).abs() - self.interval_s;
        [
            ("goodput", share(|shape| shape.goodput_mbit)),
            ("window p25", share(|shape| shape.quartiles[0])),
            ("window p50", share(|shape| shape.quartiles[1])),
            ("window p75", share(|shape| shape.quartiles[2])),
            ("reductions", share(|shape| shape.reductions_per_minute)),
            ("time to converge", 100.0 * later_s.max(0.0) / other.converged_s),
        ]
    }

    fn words(&self) -> String {
        let Self { goodput_mbit, quartiles: [p25, p50, p75], .. } = self;
        format!(
            "{goodput_mbit:.2} Mbit/s, window {p25:.0}, {p50:.0}, {p75:.0}, {:.1} reductions a \
             minute, converged after {:.2} s",
            self.reductions_per_minute, self.converged_s
        )
    }
}

/// The difference of two figures as a share of the second.
fn relative(value: f64, of: f64) -> f64 {
    if value == of { 0.0 } else { (value - of).abs() / of }
}

fn beside(cell: &str, simulated: Shape, kernel: Shape) -> [Figure; 2] {
    let differences = kernel.differences(&simulated);
    let (what, most) = differences
        .into_iter()
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .expect("there are six");
    let text = format!("simulated {}; in eBPF {}", simulated.words(), kernel.words());
    [
        Figure::text(cell, text),
        Figure::number(format!("{cell}: farthest, {what}"), most, "%")
            .at_most(DIFFERENCE_MAX, SOURCE),
    ]
}

/// The kernel's own Illinois and plait's in one boot of a guest.
fn illinois_twice(effort: Effort) -> Result<Vec<Figure>> {
    let controls = ["illinois", "bpf_illinois"].map(ToOwned::to_owned);
    let (runs, seconds) = if effort.is_quick() { (1, 30) } else { (3, 60) };
    let request = Request {
        guest: GUEST,
        scenario: ILLINOIS,
        controls: &controls,
        emulator: false,
        before: Some(BEFORE),
        runs,
        seconds,
    };
    let found = twins(&request.measure()?, &controls);
    ensure!(!found.is_empty(), "the guest had no run of both");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        goodput_mbit: 10.0,
        quartiles: [10.0, 20.0, 30.0],
        reductions_per_minute: 4.0,
        converged_s: 0.2,
        interval_s: 0.02,
    };

    fn farthest(kernel: Shape) -> (String, bool) {
        let [_, check] = beside("cell", SHAPE, kernel);
        (check.name, check.ok)
    }

    #[test]
    fn the_farthest_figure_decides() {
        assert!(farthest(SHAPE).1);
        let few = farthest(Shape { reductions_per_minute: 3.0, ..SHAPE });
        assert_eq!(few, ("cell: farthest, reductions".into(), false));
        let wide = farthest(Shape { quartiles: [10.0, 20.0, 34.0], ..SHAPE });
        assert_eq!(wide, ("cell: farthest, window p75".into(), true));
        assert!(farthest(Shape { converged_s: 0.24, ..SHAPE }).1, "a sample and ten per cent");
        assert!(!farthest(Shape { converged_s: 0.26, ..SHAPE }).1);
        let never = Shape { reductions_per_minute: 0.0, ..SHAPE };
        let [_, check] = beside("cell", never, SHAPE);
        assert!(!check.ok, "reductions where the simulator has none");
        assert!(beside("cell", never, never)[1].ok);
    }

    #[test]
    fn a_runs_shape_is_read_from_its_window() {
        let mut windows: Vec<Option<f64>> = vec![Some(10.0); 10];
        windows.extend([Some(100.0); 290]);
        let text = r#"{"scenario":"x","cell":"c","settings":{},"seed":1,"command":"","version":"",
            "interval_s":0.02,"metrics":{"goodput_mbit.flow":9.0,"fast_recoveries.flow":1.0,
            "timeouts.flow":2.0},"series":{}}"#;
        let mut run: RunRecord = serde_json::from_str(text).unwrap();
        assert_eq!(Shape::of_run(&run), None, "a run without its window");
        run.series.insert("cwnd.flow".into(), windows);
        let shape = Shape::of_run(&run).unwrap();
        assert_eq!((shape.quartiles, shape.reductions_per_minute), ([100.0; 3], 30.0));
        assert!((shape.converged_s - 0.2).abs() < 1e-9, "{shape:?}");
    }
}
