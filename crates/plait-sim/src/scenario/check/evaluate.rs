//! Turns the cells' results into verdicts in words. Independent of the back-end.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Check, CheckKind, PaperValue};
use crate::scenario::metric::unit_of;
use crate::scenario::sweep::{Selector, Settings, as_number, display};

mod predict;
#[cfg(test)]
mod tests;

/// The result of one run of one cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct CellResult {
    /// The cell's name.
    pub cell: String,
    /// The cell's settings.
    pub settings: Settings,
    /// The seed, or the number of the run.
    pub seed: u64,
    /// Metrics by full name, the scenario's measures among them.
    pub metrics: BTreeMap<String, f64>,
    /// Captured series by full name, one sample per interval.
    pub series: BTreeMap<String, Vec<f64>>,
}

/// A check's verdict.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CheckOutcome {
    /// The check's name.
    pub name: String,
    /// The figure; `None` when no cell has the metrics it needs.
    pub value: Option<f64>,
    /// The figure's unit; empty for a plain number.
    pub unit: String,
    /// Least accepted figure.
    pub low: Option<f64>,
    /// Greatest accepted figure.
    pub high: Option<f64>,
    /// Whether the run shows what is expected. Never true without a figure.
    pub ok: bool,
    /// Whether the run fails when this is not `ok`.
    pub required: bool,
    /// Where the expectation comes from.
    pub source: String,
    /// The verdict for people: what was compared and where it is worst.
    pub words: String,
}

/// A figure, whether it is as expected apart from its band, and words about it.
struct Finding {
    value: f64,
    as_expected: bool,
    words: String,
}

impl Finding {
    fn new(value: f64, words: String) -> Option<Self> {
        Some(Self { value, as_expected: true, words })
    }
}

/// A cell's settings and the median of one metric over its seeds.
struct Point<'a> {
    settings: &'a Settings,
    value: f64,
}

impl Check {
    /// A metric of every run of some cells; a run without it counts as [`Check::absent`] says.
    fn runs<'a>(
        &self,
        results: &'a [CellResult],
        metric: &str,
        cells: &Selector,
    ) -> Vec<Point<'a>> {
        let chosen = results.iter().filter(|result| cells.chooses(&result.settings));
        let point = |result: &'a CellResult| {
            let value = result.metrics.get(metric).copied().or(self.absent)?;
            Some(Point { settings: &result.settings, value })
        };
        chosen.filter_map(point).collect()
    }

    /// The chosen cells that have the metric, in the order of the results.
    fn points<'a>(
        &self,
        results: &'a [CellResult],
        metric: &str,
        cells: &Selector,
    ) -> Vec<Point<'a>> {
        let mut by_cell: Vec<(&Settings, Vec<f64>)> = Vec::new();
        for Point { settings, value } in self.runs(results, metric, cells) {
            match by_cell.iter_mut().find(|(known, _)| *known == settings) {
                Some((_, values)) => values.push(value),
                None => by_cell.push((settings, vec![value])),
            }
        }
        let point = |(settings, values)| Some(Point { settings, value: median(values)? });
        by_cell.into_iter().filter_map(point).collect()
    }

    /// Compares the results of all cells and seeds with what is expected.
    pub fn evaluate(&self, results: &[CellResult], paper: &[PaperValue]) -> CheckOutcome {
        let points = self.points(results, &self.metric, &self.cells);
        let finding = match &self.kind {
            CheckKind::Band => self.band(&points),
            CheckKind::Worst => self.band(&self.runs(results, &self.metric, &self.cells)),
            CheckKind::RmsLnError => {
                fit(&points, &self.metric, paper).and_then(|fit| Finding::new(fit.error, fit.words))
            }
            CheckKind::Ordering { falling, along, slack } => {
                ordering(&points, *falling, along, *slack)
            }
            CheckKind::Larger { than } => {
                self.larger(&points, &self.points(results, &self.metric, than))
            }
            CheckKind::Ratio { to_metric, to } => {
                self.ratio(&points, to_metric, &self.points(results, to_metric, to))
            }
            CheckKind::Best { to } => self.best(&points, &self.points(results, &self.metric, to)),
            CheckKind::Lead { to } => {
                self.lead(&points, to, &self.points(results, &self.metric, to))
            }
            CheckKind::Spread => self.spread(&points),
            CheckKind::Share { at_least } => self.share(&points, *at_least),
            CheckKind::BestFit { by, expected } => {
                best_fit(&points, &self.metric, by, expected, paper)
            }
            CheckKind::HoldOut { by, left_out } => {
                predict::hold_out(&points, &self.metric, by, *left_out, paper)
            }
            CheckKind::FitEnd { along, within, largest } => {
                predict::fit_end(&points, &self.metric, along, *within, *largest, paper)
            }
        };
        let absent = if points.is_empty() {
            format!("not measured: no cell has {}{}", self.metric, at(&self.cells))
        } else {
            format!("nothing to compare: {}", self.lack(results))
        };
        self.outcome(finding, absent)
    }

    /// Why there is no figure although cells have the metric.
    fn lack(&self, results: &[CellResult]) -> String {
        let no_cell = |metric: &str, cells: &Selector| format!("no cell has {metric}{}", at(cells));
        match &self.kind {
            CheckKind::Ordering { along, .. } => {
                let metric = &self.metric;
                format!("{metric} is known at one value of {along} only; run more of its values")
            }
            CheckKind::Larger { than } => no_cell(&self.metric, than),
            CheckKind::Ratio { to_metric, to } => no_cell(to_metric, to),
            CheckKind::Best { to } => no_cell(&self.metric, to),
            CheckKind::Lead { to } => {
                format!("{}, alike but for that", no_cell(&self.metric, to))
            }
            CheckKind::Spread => format!(
                "{} is known in {} only; run more cells",
                self.metric,
                self.points(results, &self.metric, &self.cells)
                    .first()
                    .map_or_else(|| "none".into(), |point| name(point.settings)),
            ),
            CheckKind::Band
            | CheckKind::Worst
            | CheckKind::RmsLnError
            | CheckKind::Share { .. }
            | CheckKind::BestFit { .. }
            | CheckKind::HoldOut { .. }
            | CheckKind::FitEnd { .. } => {
                format!("the paper has no {} for the cells that were run", self.metric)
            }
        }
    }

    fn outcome(&self, finding: Option<Finding>, absent: String) -> CheckOutcome {
        let unit = match &self.kind {
            CheckKind::Band | CheckKind::Worst => unit_of(&self.metric),
            CheckKind::FitEnd { along, .. } => unit_of(along),
            CheckKind::Ordering { .. } => "steps",
            _ => "",
        };
        let in_band = |value: f64| {
            !value.is_nan()
                && self.low.is_none_or(|low| value >= low)
                && self.high.is_none_or(|high| value <= high)
        };
        let ok = finding.as_ref().is_some_and(|found| found.as_expected && in_band(found.value));
        let value = finding.as_ref().map(|found| found.value);
        let mut words = finding.map_or(absent, |found| found.words);
        if !self.note.is_empty() {
            words = format!("{words}. {}", self.note);
        }
        CheckOutcome {
            name: self.name.clone(),
            value,
            unit: unit.into(),
            low: self.low,
            high: self.high,
            ok,
            required: self.required,
            source: self.source.clone(),
            words,
        }
    }

    /// How far a value is outside the band; negative inside, and closer to zero near a bound.
    fn excess(&self, value: f64) -> f64 {
        let below = self.low.map_or(f64::NEG_INFINITY, |low| low - value);
        below.max(self.high.map_or(f64::NEG_INFINITY, |high| value - high))
    }

    fn band(&self, points: &[Point<'_>]) -> Option<Finding> {
        let further =
            |a: &&Point<'_>, b: &&Point<'_>| self.excess(a.value).total_cmp(&self.excess(b.value));
        if self.low.is_none() && self.high.is_none() && points.len() > 1 {
            return self.informing(points);
        }
        let worst = points.iter().max_by(further)?;
        let value = figure(worst.value, unit_of(&self.metric));
        let words = match points.len() {
            1 => format!("{} is {value}", self.metric),
            cells => {
                let place = name(worst.settings);
                format!("{} of {cells} cells; furthest out at {place}: {value}", self.metric)
            }
        };
        Finding::new(worst.value, words)
    }

    /// For several cells without a band: their median, and the extremes.
    fn informing(&self, points: &[Point<'_>]) -> Option<Finding> {
        let smallest = points.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
        let largest = points.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
        let end = |point: &Point<'_>| {
            format!("{} at {}", figure(point.value, unit_of(&self.metric)), name(point.settings))
        };
        let words = format!(
            "{} of {} cells: median, from {} to {}",
            self.metric,
            points.len(),
            end(smallest),
            end(largest),
        );
        Finding::new(median(points.iter().map(|point| point.value).collect())?, words)
    }

    fn larger(&self, points: &[Point<'_>], others: &[Point<'_>]) -> Option<Finding> {
        let smallest = points.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
        let largest = others.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
        let unit = unit_of(&self.metric);
        let words = format!(
            "{}: smallest {} at {}, against largest {} at {}",
            self.metric,
            figure(smallest.value, unit),
            name(smallest.settings),
            figure(largest.value, unit),
            name(largest.settings),
        );
        Finding::new(quotient(smallest.value, largest.value), words)
    }

    fn ratio(
        &self,
        points: &[Point<'_>],
        to_metric: &str,
        others: &[Point<'_>],
    ) -> Option<Finding> {
        let of = |points: &[Point<'_>]| median(points.iter().map(|point| point.value).collect());
        let (value, other) = (of(points)?, of(others)?);
        let words = format!(
            "{} {} against {to_metric} {}",
            self.metric,
            figure(value, unit_of(&self.metric)),
            figure(other, unit_of(to_metric)),
        );
        Finding::new(quotient(value, other), words)
    }

    /// The largest of the cells over the largest of the others.
    fn best(&self, points: &[Point<'_>], others: &[Point<'_>]) -> Option<Finding> {
        let largest =
            |points: &[Point<'_>]| points.iter().map(|point| point.value).reduce(f64::max);
        let (own, other) = (largest(points)?, largest(others)?);
        let unit = unit_of(&self.metric);
        let (own_text, other_text) = (figure(own, unit), figure(other, unit));
        let words = format!("{}: largest {own_text}, against {other_text}", self.metric);
        Finding::new(quotient(own, other), words)
    }

    /// Each cell over its counterpart among the others, equal in all axes that do not choose these.
    /// A cell with value zero has no lead.
    fn lead(&self, points: &[Point<'_>], to: &Selector, others: &[Point<'_>]) -> Option<Finding> {
        let mut least: Option<(f64, &Point<'_>, f64)> = None;
        for point in points {
            let alike = to.others(point.settings);
            let Some(other) = others.iter().find(|one| to.others(one.settings) == alike) else {
                continue;
            };
            let lead = if point.value == 0.0 { 0.0 } else { quotient(point.value, other.value) };
            if least.is_none_or(|(known, ..)| lead < known) {
                least = Some((lead, point, other.value));
            }
        }
        let (lead, point, other) = least?;
        let unit = unit_of(&self.metric);
        let (own, other) = (figure(point.value, unit), figure(other, unit));
        let place = name(point.settings);
        let words = format!("{} least ahead at {place}: {own} against {other}", self.metric);
        Finding::new(lead, words)
    }

    fn spread(&self, points: &[Point<'_>]) -> Option<Finding> {
        if points.len() < 2 {
            return None;
        }
        let smallest = points.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
        let largest = points.iter().max_by(|a, b| a.value.total_cmp(&b.value))?;
        let unit = unit_of(&self.metric);
        let (low, high) = (figure(smallest.value, unit), figure(largest.value, unit));
        let words = format!("{} from {low} to {high} over {} cells", self.metric, points.len());
        Finding::new(quotient(largest.value, smallest.value), words)
    }

    fn share(&self, points: &[Point<'_>], at_least: f64) -> Option<Finding> {
        let lowest = points.iter().min_by(|a, b| a.value.total_cmp(&b.value))?;
        let reached = points.iter().filter(|point| point.value >= at_least).count();
        let unit = unit_of(&self.metric);
        let words = format!(
            "{} is at least {} in {reached} of {} cells; lowest {} at {}",
            self.metric,
            figure(at_least, unit),
            points.len(),
            figure(lowest.value, unit),
            name(lowest.settings),
        );
        Finding::new(reached as f64 / points.len() as f64, words)
    }
}

/// The middle value, or the mean of the two middle ones.
pub(in crate::scenario) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        Some(upper)
    } else {
        Some((values[values.len() / 2 - 1] + upper) / 2.0)
    }
}

/// 1 when both are zero: equal.
fn quotient(a: f64, b: f64) -> f64 {
    if a == b { 1.0 } else { a / b }
}

struct Fit {
    error: f64,
    words: String,
}

/// Root mean square of ln(run / paper) over the points that the paper has a value for.
fn fit(points: &[Point<'_>], metric: &str, paper: &[PaperValue]) -> Option<Fit> {
    let printed = |point: &Point<'_>| {
        let of_point =
            |value: &&PaperValue| value.metric == metric && value.at.chooses(point.settings);
        paper.iter().find(of_point).map(|value| value.value)
    };
    let errors: Vec<(f64, &Point<'_>, f64)> = points
        .iter()
        .filter_map(|point| printed(point).map(|value| ((point.value / value).ln(), point, value)))
        .collect();
    let (worst, at, value) = errors.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))?;
    let mean = errors.iter().map(|(error, _, _)| error * error).sum::<f64>() / errors.len() as f64;
    let unit = unit_of(metric);
    let words = format!(
        "{metric} of {} cells against the paper; furthest off at {}: {} against {}, ln {worst:+.2}",
        errors.len(),
        name(at.settings),
        figure(at.value, unit),
        figure(*value, unit),
    );
    Some(Fit { error: mean.sqrt(), words })
}

fn ordering(points: &[Point<'_>], falling: bool, along: &str, slack: f64) -> Option<Finding> {
    let mut groups: Vec<(Settings, Vec<&Point<'_>>)> = Vec::new();
    for point in points {
        let mut rest = point.settings.clone();
        rest.remove(along)?;
        match groups.iter_mut().find(|(settings, _)| *settings == rest) {
            Some((_, members)) => members.push(point),
            None => groups.push((rest, vec![point])),
        }
    }
    let (mut steps, mut wrong) = (0_u32, Vec::new());
    for (_, members) in &mut groups {
        if members.iter().all(|point| as_number(&point.settings[along]).is_some()) {
            let number = |point: &Point<'_>| as_number(&point.settings[along]).unwrap_or_default();
            members.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        for pair in members.windows(2) {
            let (before, after) = (pair[0].value, pair[1].value);
            let allowed = slack * before.abs();
            let level = before == after && slack > 0.0;
            let right = if falling { after < before + allowed } else { after > before - allowed };
            steps += 1;
            if !(right || level) {
                wrong.push(format!("{before:.3} to {after:.3} at {}", name(pair[1].settings)));
            }
        }
    }
    let course = if falling { "falls" } else { "rises" };
    let words = match wrong.as_slice() {
        _ if steps == 0 => return None,
        [] => format!("{course} along {along} in all {steps} steps"),
        wrong => format!("{course} along {along} except from {}", wrong.join(", from ")),
    };
    Finding::new(wrong.len() as f64, words)
}

/// The points by their settings of some axes.
fn readings<'a>(points: &[Point<'a>], by: &[String]) -> Vec<(Settings, Vec<Point<'a>>)> {
    let mut readings: Vec<(Settings, Vec<Point<'a>>)> = Vec::new();
    for point in points {
        let reading: Settings = by
            .iter()
            .filter_map(|axis| Some((axis.clone(), point.settings.get(axis)?.clone())))
            .collect();
        let point = Point { settings: point.settings, value: point.value };
        match readings.iter_mut().find(|(settings, _)| *settings == reading) {
            Some((_, members)) => members.push(point),
            None => readings.push((reading, vec![point])),
        }
    }
    readings
}

fn best_fit(
    points: &[Point<'_>],
    metric: &str,
    by: &[String],
    expected: &Selector,
    paper: &[PaperValue],
) -> Option<Finding> {
    let mut fits: Vec<(f64, Settings)> = readings(points, by)
        .into_iter()
        .filter_map(|(reading, members)| Some((fit(&members, metric, paper)?.error, reading)))
        .collect();
    fits.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (error, best) = fits.first()?;
    let listed: Vec<String> =
        fits.iter().map(|(error, reading)| format!("{} {error:.2}", name(reading))).collect();
    let words = format!("{} fits best; rms ln-errors: {}", name(best), listed.join("; "));
    Some(Finding { value: *error, as_expected: expected.chooses(best), words })
}

/// A cell for people.
fn name(settings: &Settings) -> String {
    if settings.is_empty() {
        return "the only cell".into();
    }
    let axis = |(axis, value): (&String, &toml::Value)| format!("{axis}={}", display(value));
    settings.iter().map(axis).collect::<Vec<_>>().join(",")
}

fn at(cells: &Selector) -> String {
    let described = cells.describe();
    if described.is_empty() { described } else { format!(" at {described}") }
}

/// A figure with its unit; three digits after the point where they matter.
fn figure(value: f64, unit: &str) -> String {
    let space = if unit.is_empty() { "" } else { " " };
    if value.abs() < 10.0 {
        format!("{value:.3}{space}{unit}")
    } else {
        format!("{value:.1}{space}{unit}")
    }
}
