//! `[paper]`: what the paper printed or drew.

use plait_proto::time::Duration;
use plait_toml::{Bounds, Problem, Section};

use super::{ANY, Around};
use crate::scenario::measure::{self, Capture};
use crate::scenario::metric;
use crate::scenario::sweep::{Selector, Settings, read_selector};

/// What the paper has for a scenario.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Paper {
    /// Its printed figures.
    pub values: Vec<PaperValue>,
    /// What it draws over time.
    pub lines: Vec<PaperLine>,
}

/// A figure that the paper printed.
#[derive(Clone, PartialEq, Debug)]
pub struct PaperValue {
    /// The metric.
    pub metric: String,
    /// The cells that it belongs to.
    pub at: Selector,
    /// The figure, in the metric's unit.
    pub value: f64,
    /// Its place in the paper; may be empty.
    pub source: String,
}

/// A line of the paper over time, for the plot of a series.
#[derive(Clone, PartialEq, Debug)]
pub struct PaperLine {
    /// The series, with its owner.
    pub series: String,
    /// The cells that it belongs to.
    pub at: Selector,
    /// Pairs of seconds since the start, which do not decrease, and the series' unit. Straight
    /// between two; two at one time are a step.
    pub points: Vec<(f64, f64)>,
}

impl PaperLine {
    /// The line in a cell of these settings, one sample for the middle of each interval; `None`
    /// before its first point and after its last. No samples where it is not the cell's.
    pub fn samples(
        &self,
        settings: &Settings,
        interval: Duration,
        duration: Duration,
    ) -> Vec<Option<f64>> {
        if !self.at.chooses(settings) {
            return Vec::new();
        }
        let count = (duration.as_secs_f64() / interval.as_secs_f64()).ceil() as usize;
        (0..count).map(|n| self.value((n as f64 + 0.5) * interval.as_secs_f64())).collect()
    }

    fn value(&self, time_s: f64) -> Option<f64> {
        let around =
            self.points.windows(2).find(|pair| (pair[0].0..pair[1].0).contains(&time_s))?;
        let [(start, from), (end, to)] = *around else { return None };
        Some(from + (to - from) * (time_s - start) / (end - start))
    }
}

/// Reads `[paper]`; what is wrong in it is left out.
pub(in crate::scenario) fn read(
    mut paper: Section<'_>,
    around: Around<'_>,
    capture: &Capture,
) -> Paper {
    let values = paper.many("value").into_iter().filter_map(|one| read_value(one, around));
    let values = values.collect();
    let lines = paper.many("line").into_iter().filter_map(|one| read_line(one, around, capture));
    let lines = lines.collect();
    paper.finish();
    Paper { values, lines }
}

fn read_value(mut section: Section<'_>, around: Around<'_>) -> Option<PaperValue> {
    let metric = metric::read(&mut section, "metric", around.owners);
    let at = read_selector(&mut section, "at", around.axes);
    if !section.holds_any(&["value"]) {
        section.missing("value", "value = 6.25");
    }
    let value = section.number("value", ANY);
    let source = section.text("source").unwrap_or_default();
    section.finish();
    Some(PaperValue { metric: metric?, at, value: value?, source })
}

fn read_line(mut section: Section<'_>, around: Around<'_>, capture: &Capture) -> Option<PaperLine> {
    let series = measure::read_series(&mut section, "series", capture, around.owners);
    let at = read_selector(&mut section, "at", around.axes);
    let example = "points = [[0, 63], [15, 64]]";
    if !section.holds_any(&["points"]) {
        section.know(&["points"]);
        section.missing("points", example);
    }
    let points = section.pairs("points", (Bounds::SECONDS, ANY), example).unwrap_or_default();
    let source = section.required_text("source", "source = \"002 section 5.2\"");
    if points.len() < 2 || !points.is_sorted_by(|a, b| a.0 <= b.0) {
        let help =
            "write pairs [seconds, value], at least two, each no earlier than the one before";
        let problem = Problem::new("no line, or not in order of time", help);
        section.problem("points", problem);
    }
    section.finish();
    let series = series?.into_iter().next()?;
    source.map(|_| PaperLine { series, at, points })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_straight_between_its_points_and_steps_where_two_have_one_time() {
        let points = vec![(0.1, 1.0), (0.3, 3.0), (0.3, 7.0), (0.4, 7.0)];
        let at = Selector::choosing([("k".to_owned(), vec![1.into()])]);
        let line = PaperLine { series: "losses".into(), at, points };
        let of = |k: i64| {
            let settings = Settings::from([("k".to_owned(), k.into())]);
            line.samples(&settings, Duration::from_millis(100), Duration::from_millis(450))
        };
        let close = |a: &Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9,
            (a, b) => *a == b,
        };
        let expected = [None, Some(1.5), Some(2.5), Some(7.0), None];
        let samples = of(1);
        assert!(samples.iter().zip(expected).all(|(a, b)| close(a, b)), "{samples:?}");
        assert_eq!((samples.len(), of(2).len()), (5, 0));
    }
}
