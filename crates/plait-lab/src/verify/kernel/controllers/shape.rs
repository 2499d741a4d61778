//! How a flow went, by the windows that were sampled.

use anyhow::{Context, Result};

use crate::record::{Middle, RunRecord, Samples};

/// Left out of the window's quartiles, as of the goodput: the scenario's `warmup_s`.
const WARMUP_S: f64 = 3.0;
/// A window has converged at this share of the simulated flow's later mean.
const CONVERGED_SHARE: f64 = 0.9;

/// Medians over the runs of one cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Shape {
    pub(super) goodput_mbit: f64,
    /// Of the window in segments, after the warm-up: its quartiles, mean and largest.
    pub(super) quartiles: [f64; 3],
    pub(super) mean: f64,
    pub(super) most: f64,
    /// Fast recoveries and timeouts, of the whole flow.
    pub(super) reductions_per_minute: f64,
}

impl Shape {
    /// Of the runs of `cell`; `None` when there is none.
    ///
    /// # Errors
    ///
    /// A run has no window, or no counts of what reduced it.
    pub(super) fn of_cell(runs: &[RunRecord], cell: &str) -> Result<Option<Self>> {
        let runs = runs.iter().filter(|run| run.cell == cell);
        let shapes: Vec<Self> = runs
            .map(|run| Self::of_run(run).with_context(|| format!("{cell}: no window in a run")))
            .collect::<Result<_>>()?;
        if shapes.is_empty() {
            return Ok(None);
        }
        let median = |of: &dyn Fn(&Self) -> f64| {
            Samples::median(shapes.iter().map(of)).expect("there is a run")
        };
        Ok(Some(Self {
            goodput_mbit: median(&|shape| shape.goodput_mbit),
            quartiles: [0, 1, 2].map(|at| median(&|shape| shape.quartiles[at])),
            mean: median(&|shape| shape.mean),
            most: median(&|shape| shape.most),
            reductions_per_minute: median(&|shape| shape.reductions_per_minute),
        }))
    }

    fn of_run(run: &RunRecord) -> Option<Self> {
        let metric = |name: &str| run.metrics.get(name).copied();
        let windows = windows(run)?;
        let minutes = windows.len() as f64 * run.interval_s / 60.0;
        let warmup = (WARMUP_S / run.interval_s).round() as usize;
        let later = windows.get(warmup..)?;
        let mean = later.iter().sum::<f64>() / later.len() as f64;
        let later = Samples::new(later.to_vec())?;
        Some(Self {
            goodput_mbit: metric("goodput_mbit.flow")?,
            quartiles: [0.25, 0.5, 0.75].map(|share| later.quantile(share)),
            mean,
            most: later.quantile(1.0),
            reductions_per_minute: (metric("fast_recoveries.flow")? + metric("timeouts.flow")?)
                / minutes,
        })
    }

    /// By what each figure differs from `other`'s, in per cent of that.
    pub(super) fn differences(&self, other: &Self) -> [(&'static str, f64); 5] {
        let share = |of: fn(&Self) -> f64| 100.0 * relative(of(self), of(other));
        [
            ("goodput", share(|shape| shape.goodput_mbit)),
            ("window p25", share(|shape| shape.quartiles[0])),
            ("window p50", share(|shape| shape.quartiles[1])),
            ("window p75", share(|shape| shape.quartiles[2])),
            ("reductions", share(|shape| shape.reductions_per_minute)),
        ]
    }

    /// What a window has to reach to have converged, in segments: whole ones, as windows are.
    pub(super) fn converged(&self) -> f64 {
        (CONVERGED_SHARE * self.mean).floor()
    }

    pub(super) fn words(&self) -> String {
        let Self { goodput_mbit, quartiles: [p25, p50, p75], most, .. } = self;
        format!(
            "{goodput_mbit:.2} Mbit/s, window {p25:.0}, {p50:.0}, {p75:.0}, at most {most:.0}, \
             {:.1} reductions a minute",
            self.reductions_per_minute
        )
    }
}

/// The difference of two figures as a share of the second.
fn relative(value: f64, of: f64) -> f64 {
    if value == of { 0.0 } else { (value - of).abs() / of }
}

fn windows(run: &RunRecord) -> Option<Vec<f64>> {
    Some(run.series.get("cwnd.flow")?.iter().copied().flatten().collect())
}

/// From the start until the window first has a given number of segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Convergence {
    pub(super) median_s: f64,
    /// Between which half of the runs lie.
    pub(super) middle_half_s: [f64; 2],
    /// How many there are.
    pub(super) runs: usize,
    /// How exact the time is.
    pub(super) interval_s: f64,
}

impl Convergence {
    /// Of the runs of `cell`, to `segments`; `None` when there is none. A run that never gets there
    /// counts with its length.
    ///
    /// # Errors
    ///
    /// A run has no window.
    pub(super) fn of_cell(runs: &[RunRecord], cell: &str, segments: f64) -> Result<Option<Self>> {
        let mut times = Vec::new();
        let mut interval_s = 0.0;
        for run in runs.iter().filter(|run| run.cell == cell) {
            let windows = windows(run).with_context(|| format!("{cell}: no window in a run"))?;
            let reached = windows.iter().position(|window| *window >= segments);
            interval_s = run.interval_s;
            times.push(reached.unwrap_or(windows.len()) as f64 * interval_s);
        }
        let of_times = |times: Samples| Self {
            median_s: times.middle(Middle::Median),
            middle_half_s: [0.25, 0.75].map(|share| times.quantile(share)),
            runs: times.len(),
            interval_s,
        };
        Ok(Samples::new(times).map(of_times))
    }

    /// Whether the runs lie so far apart that few of them tell nothing of a difference of `share`.
    pub(super) fn is_open(self, share: f64) -> bool {
        let [low, high] = self.middle_half_s;
        high - low > self.interval_s + share * self.median_s
    }

    pub(super) fn words(self) -> String {
        let [low, high] = self.middle_half_s;
        format!("{:.2} s ({low:.2} to {high:.2}; {} runs)", self.median_s, self.runs)
    }

    /// By what it differs from `other`, in per cent of that; what one sample explains is nothing.
    pub(super) fn difference(self, other: Self) -> f64 {
        let later_s = (self.median_s - other.median_s).abs() - self.interval_s;
        if later_s <= 0.0 { 0.0 } else { 100.0 * later_s / other.median_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(windows: &[Option<f64>]) -> RunRecord {
        let text = r#"{"scenario":"x","cell":"c","settings":{},"seed":1,"command":"","version":"",
            "interval_s":0.02,"metrics":{"goodput_mbit.flow":9.0,"fast_recoveries.flow":1.0,
            "timeouts.flow":2.0},"series":{}}"#;
        let mut run: RunRecord = serde_json::from_str(text).unwrap();
        if !windows.is_empty() {
            run.series.insert("cwnd.flow".into(), windows.to_vec());
        }
        run
    }

    #[test]
    fn a_runs_shape_is_read_from_its_window() {
        assert!(Shape::of_cell(&[run(&[])], "c").is_err(), "a run without its window");
        assert_eq!(Shape::of_cell(&[], "c").unwrap(), None);
        let mut windows = vec![Some(10.0); 10];
        windows.extend([Some(100.0); 290]);
        let shape = Shape::of_cell(&[run(&windows)], "c").unwrap().unwrap();
        assert_eq!((shape.quartiles, shape.reductions_per_minute), ([100.0; 3], 30.0));
        assert_eq!((shape.mean, shape.most, shape.converged()), (100.0, 100.0, 90.0));
        assert_eq!(Shape { mean: 99.0, ..shape }.converged(), 89.0, "of 89.1");
    }

    #[test]
    fn a_window_converges_where_it_first_has_the_segments() {
        let runs = [2, 10, 12].map(|at| {
            let mut windows = vec![Some(10.0); at];
            windows.extend([Some(100.0); 20]);
            run(&windows)
        });
        let reached = Convergence::of_cell(&runs, "c", 90.0).unwrap().unwrap();
        assert_eq!(reached.words(), "0.20 s (0.04 to 0.24; 3 runs)");
        assert!(reached.is_open(0.15), "half of the runs lie 0.2 s apart");
        assert!(!reached.is_open(0.95));
        let of = |segments| Convergence::of_cell(&runs, "c", segments).unwrap().unwrap().median_s;
        assert!((of(90.0) - 0.2).abs() < 1e-9);
        assert!((of(200.0) - 0.6).abs() < 1e-9, "never: the length of the run");
        assert_eq!(Convergence::of_cell(&runs, "other", 90.0).unwrap(), None);
    }

    /// Of 36 starts in a kernel only the first had its series, and its time was taken for theirs.
    #[test]
    fn regression_a_start_without_its_window_is_not_left_out() {
        let runs = [run(&[Some(10.0), Some(100.0)]), run(&[])];
        assert!(Convergence::of_cell(&runs, "c", 90.0).is_err());
    }

    #[test]
    fn a_difference_of_one_sample_is_none() {
        let after = |median_s| Convergence {
            median_s,
            middle_half_s: [median_s; 2],
            runs: 1,
            interval_s: 0.02,
        };
        assert!(after(0.22).difference(after(0.2)).abs() < 1e-9);
        assert!((after(0.24).difference(after(0.2)) - 10.0).abs() < 1e-6);
        assert!((after(0.15).difference(after(0.2)) - 15.0).abs() < 1e-6);
    }
}
