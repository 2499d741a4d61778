//! kernel.2: plait's controllers in eBPF beside those of the simulator, on four links; and in a
//! guest the kernel's own Illinois beside plait's.

mod shape;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use self::shape::{Convergence, Shape};
use super::super::{Effort, Figure, runs_made};
use super::loaded::{self, LoadedControllers};
use crate::cli::vm::Guest;
use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::netem::beside::{ILLINOIS, Request, twins};
use crate::record::{Results, RunRecord};
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
/// What a window does first depends on the first losses, so that it is judged by more, shorter
/// runs: this many for each of the others.
const STARTS: u64 = 3;
const START: &str = "duration_s=8";
/// And of a cell where those leave the median open, this many, one after the other: where it
/// matters how many segments an acknowledgement covers, other runs must not hold up the reader.
const STARTS_MANY: u64 = 12;
/// The cell whose whole runs are made one after the other, too. Illinois remembers the longest
/// round trip for as long as a connection lasts, so that each time the machine is late by some
/// milliseconds, of 40 of queue here, all later losses come sooner.
const ALONE: [&str; 2] = ["clean", "illinois"];

const GUEST: Guest = Guest::Qemu;
const BEFORE: &str = "plait cc load illinois >&2";

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    vm::check(GUEST)?;
    loaded::mount_bpffs()?;
    loaded::ensure_can_load()?;
    let (seeds, runs) = if effort.is_quick() { (5, 1) } else { (10, 3) };
    let simulated = Runs {
        whole: run::whole_runs(&args(On::Sim, seeds, &[]))?,
        starts: run::whole_runs(&args(On::Sim, STARTS * seeds, &[START]))?,
    };
    let mut figures = vec![
        Figure::count("seeds of each cell simulated", seeds),
        Figure::text("time to converge", format!("of {STARTS} runs for each other, {START}")),
        Figure::text("runs one after the other", name(ALONE)),
    ];
    let kernel = {
        let _loaded = LoadedControllers::load(&CONTROLLERS)?;
        let whole = whole(runs, &mut figures)?;
        let starts = starts(runs, &simulated.whole, &mut figures)?;
        Runs { whole, starts }
    };
    for pair in cells() {
        figures.extend(of_cell(&name(pair), &simulated, &kernel)?);
    }
    figures.extend(illinois_twice(effort)?);
    Ok(figures)
}

fn cells() -> impl Iterator<Item = [&'static str; 2]> {
    let of = |controller| LINKS.map(|link| [link, controller]);
    CONTROLLERS.into_iter().flat_map(of)
}

fn name([link, controller]: [&str; 2]) -> String {
    format!("link={link},controller={controller}")
}

fn in_kernel(seeds: u64, settings: &[&str]) -> Result<Results> {
    let args = args(On::Netns, seeds, settings);
    AtOnce { runs: AT_ONCE, begun_apart: Duration::ZERO }.results(&args)
}

fn one_by_one(
    [link, controller]: [&str; 2],
    seeds: u64,
    settings: &[&str],
) -> Result<Vec<RunRecord>> {
    let cell_only = [format!("link={link}"), format!("controller={controller}")];
    let settings: Vec<&str> =
        settings.iter().copied().chain(cell_only.iter().map(String::as_str)).collect();
    run::whole_runs(&args(On::Netns, seeds, &settings))
}

/// Whole runs of every cell in the kernel.
fn whole(runs: u64, figures: &mut Vec<Figure>) -> Result<Vec<RunRecord>> {
    let several = in_kernel(runs, &[])?;
    figures.push(runs_made(&several, runs));
    let mut whole = several.runs;
    whole.retain(|run| run.cell != name(ALONE));
    whole.extend(one_by_one(ALONE, runs, &[])?);
    Ok(whole)
}

/// Starts of every cell in the kernel.
fn starts(runs: u64, simulated: &[RunRecord], figures: &mut Vec<Figure>) -> Result<Vec<RunRecord>> {
    let few = in_kernel(STARTS * runs, &[START])?;
    figures.push(runs_made(&few, STARTS * runs));
    let mut starts = few.runs;
    for pair in cells() {
        let cell = name(pair);
        let Some(modelled) = Shape::of_cell(simulated, &cell)? else { continue };
        let reached = Convergence::of_cell(&starts, &cell, modelled.converged())?;
        if !reached.is_some_and(|reached| reached.is_open(DIFFERENCE_MAX / 100.0)) {
            continue;
        }
        starts.retain(|run| run.cell != cell);
        starts.extend(one_by_one(pair, STARTS_MANY * runs, &[START])?);
    }
    Ok(starts)
}

fn args(on: On, seeds: u64, settings: &[&str]) -> RunArgs {
    let settings = settings.iter().map(ToString::to_string).collect();
    let experiment = ExperimentArgs { settings, ..ExperimentArgs::of(SCENARIO) };
    RunArgs { seeds: Some(seeds), experiment, ..RunArgs::of("", on) }
}

/// Runs of every cell.
struct Runs {
    whole: Vec<RunRecord>,
    starts: Vec<RunRecord>,
}

/// The figures of one cell.
fn of_cell(cell: &str, simulated: &Runs, kernel: &Runs) -> Result<Vec<Figure>> {
    let Some(modelled) = Shape::of_cell(&simulated.whole, cell)? else {
        bail!("{cell}: not simulated")
    };
    let reached = |runs: &Runs| Convergence::of_cell(&runs.starts, cell, modelled.converged());
    let (Some(shape), Some(starts)) = (Shape::of_cell(&kernel.whole, cell)?, reached(kernel)?)
    else {
        // A text lies in no band; what was seen of other cells stands.
        let why = Figure::text(cell, "the machine kept up with none of its runs");
        return Ok(vec![why.exactly(0.0, SOURCE)]);
    };
    let modelled_starts = reached(simulated)?.with_context(|| format!("{cell}: not simulated"))?;
    Ok(beside(cell, (modelled, modelled_starts), (shape, starts)).into())
}

fn beside(
    cell: &str,
    simulated: (Shape, Convergence),
    kernel: (Shape, Convergence),
) -> [Figure; 2] {
    let starts = ("time to converge", kernel.1.difference(simulated.1));
    let (what, most) = kernel
        .0
        .differences(&simulated.0)
        .into_iter()
        .chain([starts])
        .max_by(|(_, one), (_, other)| one.total_cmp(other))
        .expect("there are six");
    let words = |(shape, starts): (Shape, Convergence)| {
        format!("{}, converged after {}", shape.words(), starts.words())
    };
    let text = format!("simulated {}; in eBPF {}", words(simulated), words(kernel));
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
        runs: crate::netem::Runs::alike(runs),
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
        mean: 20.0,
        most: 40.0,
        reductions_per_minute: 4.0,
    };

    fn after(median_s: f64) -> Convergence {
        Convergence { median_s, middle_half_s: [median_s; 2], runs: 1, interval_s: 0.02 }
    }

    fn farthest(kernel: Shape, median_s: f64) -> (String, bool) {
        let [_, check] = beside("cell", (SHAPE, after(0.2)), (kernel, after(median_s)));
        (check.name, check.ok)
    }

    #[test]
    fn the_farthest_figure_decides() {
        assert!(farthest(SHAPE, 0.2).1);
        let few = farthest(Shape { reductions_per_minute: 3.0, ..SHAPE }, 0.2);
        assert_eq!(few, ("cell: farthest, reductions".into(), false));
        let wide = farthest(Shape { quartiles: [10.0, 20.0, 34.0], ..SHAPE }, 0.2);
        assert_eq!(wide, ("cell: farthest, window p75".into(), true));
        assert!(farthest(SHAPE, 0.24).1, "a sample and ten per cent");
        assert_eq!(farthest(SHAPE, 0.26), ("cell: farthest, time to converge".into(), false));
        let never = Shape { reductions_per_minute: 0.0, ..SHAPE };
        let check = |simulated: Shape, kernel: Shape| {
            let [_, check] = beside("cell", (simulated, after(0.2)), (kernel, after(0.2)));
            check.ok
        };
        assert!(!check(never, SHAPE), "reductions where the simulator has none");
        assert!(check(never, never));
    }

    #[test]
    fn a_cell_that_the_machine_did_not_keep_up_with_fails() {
        let text = r#"{"scenario":"x","cell":"c","settings":{},"seed":1,"command":"","version":"",
            "interval_s":0.02,"metrics":{"goodput_mbit.flow":9.0,"fast_recoveries.flow":1.0,
            "timeouts.flow":2.0},"series":{}}"#;
        let mut run: RunRecord = serde_json::from_str(text).unwrap();
        run.series.insert("cwnd.flow".into(), vec![Some(10.0); 300]);
        let runs = |whole: &[&RunRecord], starts: &[&RunRecord]| Runs {
            whole: whole.iter().map(|run| (*run).clone()).collect(),
            starts: starts.iter().map(|run| (*run).clone()).collect(),
        };
        let simulated = runs(&[&run], &[&run]);
        let figures = |kernel: Runs| of_cell("c", &simulated, &kernel).unwrap();
        assert!(figures(runs(&[&run], &[&run])).iter().all(|figure| figure.ok));
        assert!(figures(runs(&[&run], &[])).iter().any(|figure| !figure.ok));
        assert!(figures(runs(&[], &[&run])).iter().any(|figure| !figure.ok));
        assert!(of_cell("other", &simulated, &runs(&[&run], &[&run])).is_err());
    }
}
