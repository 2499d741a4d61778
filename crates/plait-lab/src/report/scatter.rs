//! Plots of one metric against another: a point for each cell at the medians of both, with their
//! ranges as a cross, the paper's values as rings, and given lines. An overview of all, and a panel
//! for each value of an axis.

use std::collections::HashSet;

use toml::Value;

use super::html::{figure_of, key_of};
use super::svg::{COLOURS, escape};
use super::words;
use crate::record::{AxisValues, GivenLine, Quantity, ScatterPoint, ScatterRecord, Spread};
use plot::Plot;

mod plot;

/// The part of a page for one plot with its panels; empty without points.
pub(super) fn draw(record: &ScatterRecord) -> String {
    if record.points.is_empty() {
        return String::new();
    }
    let labels = [&record.x, &record.y].map(label);
    let mut figures = String::new();
    let overview = Plot {
        title: format!("{} against {}", labels[1], labels[0]),
        record,
        points: record.points.iter().collect(),
        lines: record.lines.iter().collect(),
    };
    let panels = panels(record);
    figures.push_str(&figure(&overview, &labels));
    // One panel would be the overview again.
    for panel in panels.iter().filter(|_| panels.len() > 1) {
        figures.push_str(&figure(panel, &labels));
    }
    let keys: String = keys(record).concat();
    format!(
        "<h3>{}</h3>\n<p class=\"dim\">{}</p>\n<p class=\"dim\">{keys}</p>\n\
         <div class=\"plots scatter\">\n{figures}</div>\n{}",
        escape(&record.title),
        told(record),
        sources(record),
    )
}

fn figure(plot: &Plot<'_>, labels: &[String; 2]) -> String {
    let (svg, sums) = plot.svg(labels);
    let sums = sums.map_or_else(String::new, |step| {
        let every = words::with_unit(step, &plot.record.x.unit);
        let name = format!("equal sums, every {every}");
        key_of("<path class=\"sum\" d=\"M7 0L19 10\"/>", &name)
    });
    figure_of(&plot.title, &sums, &svg)
}

/// A plot for each value of the panels' axis that has points.
fn panels(record: &ScatterRecord) -> Vec<Plot<'_>> {
    let Some(AxisValues { axis, values }) = &record.panel else { return Vec::new() };
    let of = |(at, value): (usize, &Value)| {
        let points = record.points.iter().filter(|point| point.panel == at);
        let lines = record.lines.iter().filter(|line| line.panels.contains(&at));
        let title = words::value(axis, value);
        let plot = Plot { title, record, points: points.collect(), lines: lines.collect() };
        (!plot.points.is_empty()).then_some(plot)
    };
    values.iter().enumerate().filter_map(of).collect()
}

/// What an axis is called.
fn label(quantity: &Quantity) -> String {
    if quantity.label.is_empty() {
        let metrics = quantity.metrics.iter().map(|metric| words::metric(metric));
        return metrics.collect::<Vec<_>>().join(" + ");
    }
    quantity.label.clone()
}

/// What a point is, in a sentence.
fn told(record: &ScatterRecord) -> &'static str {
    let is_range = |spread: Spread| spread.high > spread.low;
    match record.points.iter().any(|point| is_range(point.x) || is_range(point.y)) {
        true => {
            "A point for each cell: medians over the seeds; the cross goes from the smallest to \
             the largest."
        }
        false => "A point for each cell.",
    }
}

/// The legend of all panels.
fn keys(record: &ScatterRecord) -> Vec<String> {
    let mut keys = Vec::new();
    let is_coloured =
        |at: usize| record.points.iter().any(|point| point.colour == at && !point.reference);
    if let Some(AxisValues { axis, values }) = &record.colour {
        for (at, value) in values.iter().enumerate().filter(|(at, _)| is_coloured(*at)) {
            let sign = format!("<path class=\"dot c{}\" d=\"M19 5h0\"/>", at % COLOURS);
            keys.push(key_of(&sign, &words::value(axis, value)));
        }
    }
    if record.points.iter().any(|point| point.reference) {
        let sign = "<path class=\"dot ink\" d=\"M19 5h0\"/>";
        keys.push(key_of(sign, &words::values(pairs(&record.reference))));
    }
    if record.points.iter().any(|point| point.hollow) {
        let sign = "<circle class=\"hollow ink\" cx=\"19\" cy=\"5\" r=\"2.7\"/>";
        keys.push(key_of(sign, &words::values(pairs(&record.hollow))));
    }
    if record.points.iter().any(|point| point.paper.is_some()) {
        keys.push(key_of("<circle class=\"ring\" cx=\"19\" cy=\"5\" r=\"4\"/>", "the paper"));
    }
    for line in &record.lines {
        let (class, path) = match line.points.as_slice() {
            [_] => ("line", "M15 5H23M19 1V9"),
            _ => ("line dashed", "M1 5H25"),
        };
        let sign = format!("<path class=\"{class} {}\" d=\"{path}\"/>", plot::class_of(line));
        keys.push(key_of(&sign, &line.name));
    }
    // Lines for several panels may have one name.
    let mut told = HashSet::new();
    keys.retain(|key| told.insert(key.clone()));
    keys
}

fn pairs(some: &[AxisValues]) -> impl Iterator<Item = (&str, &[Value])> {
    some.iter().map(|AxisValues { axis, values }| (axis.as_str(), values.as_slice()))
}

/// Where the given lines come from; those of one name together.
fn sources(record: &ScatterRecord) -> String {
    let mut by_name: Vec<(&str, Vec<&str>)> = Vec::new();
    for GivenLine { name, source, .. } in &record.lines {
        match by_name.iter_mut().find(|(known, _)| known == name) {
            Some((_, sources)) => sources.push(source),
            None => by_name.push((name, vec![source])),
        }
    }
    let told = |(name, sources): &(&str, Vec<&str>)| {
        format!("<p class=\"dim\">{}: {}</p>\n", escape(name), escape(&sources.join("; ")))
    };
    by_name.iter().map(told).collect()
}

/// A point in words, for whoever points at it.
fn in_words(record: &ScatterRecord, labels: &[String; 2], point: &ScatterPoint) -> String {
    let mut axes: Vec<String> = point.settings.keys().cloned().collect();
    // As they stand in the cell's name.
    axes.sort_by_key(|axis| point.cell.find(&format!("{axis}=")));
    let of = |label: &str, quantity: &Quantity, spread: Spread| {
        let median = words::with_unit(spread.median, &quantity.unit);
        let (low, high) = (words::number(spread.low), words::number(spread.high));
        match spread.high > spread.low {
            true => format!("{label} {median} ({low} to {high})"),
            false => format!("{label} {median}"),
        }
    };
    format!(
        "{}: {}, {}",
        words::cell(&axes, &point.settings, &point.cell),
        of(&labels[0], &record.x, point.x),
        of(&labels[1], &record.y, point.y),
    )
}

#[cfg(test)]
mod tests;
