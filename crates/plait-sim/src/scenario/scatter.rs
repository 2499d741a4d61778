//! `[[scatter]]`: one metric against another, a point for each cell; for the page of results.

use plait_toml::{Problem, Section};

use super::check::ANY;
use super::error::no_such;
use super::metric::{self, METRICS, Owners, unit_of};
use super::sweep::{Axis, Selector, read_selector};

/// A plot of one metric against another.
#[derive(Clone, PartialEq, Debug)]
pub struct Scatter {
    /// Its name among the scenario's plots.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// What goes to the right.
    pub x: Quantity,
    /// What goes up.
    pub y: Quantity,
    /// The cells that are drawn.
    pub cells: Selector,
    /// The axis of the sweep whose values have colours of their own.
    pub colour: Option<String>,
    /// The cells whose points are hollow.
    pub hollow: Option<Selector>,
    /// The cells that the others are compared with: they have the colour of the text.
    pub reference: Option<Selector>,
    /// The axis of the sweep with a panel for each value, beside the overview.
    pub panel: Option<String>,
    /// Whether there are lines of equal sum.
    pub sums: bool,
    /// Lines that are given.
    pub lines: Vec<ScatterLine>,
}

/// What an axis of the plot shows.
#[derive(Clone, PartialEq, Debug)]
pub struct Quantity {
    /// What the axis is called; empty for the words of its metrics.
    pub label: String,
    /// One metric or several, which are added up; all have one unit.
    pub metrics: Vec<String>,
}

impl Quantity {
    /// The unit of its metrics; empty for a plain number.
    pub fn unit(&self) -> &'static str {
        self.metrics.first().map_or("", |metric| unit_of(metric))
    }
}

/// A line that is given, such as a law's or the paper's.
#[derive(Clone, PartialEq, Debug)]
pub struct ScatterLine {
    /// Its name in the legend.
    pub name: String,
    /// Pairs in the units of both axes, straight between two; a single one is a cross.
    pub points: Vec<(f64, f64)>,
    /// The cells that it is for: it is drawn in their panels, and in their colour if they have one.
    pub cells: Selector,
    /// Where it comes from.
    pub source: String,
}

/// As many colours as a plot has.
const COLOURS_MAX: usize = 8;
/// More panels would hide the overview.
const PANELS_MAX: usize = 24;

/// Reads every plot; those that are wrong are left out.
pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    axes: &[Axis],
    owners: Owners<'_>,
) -> Vec<Scatter> {
    let (mut scatters, mut names) = (Vec::new(), Vec::new());
    for mut section in sections {
        let name = section.text("name").unwrap_or_default();
        if !name.is_empty() && names.contains(&name) {
            let text = format!("another [[scatter]] is called \"{name}\" too");
            section.problem("name", Problem::new(text, "give each its own name"));
        }
        names.push(name);
        scatters.extend(read(section, axes, owners));
    }
    scatters
}

fn read(mut section: Section<'_>, axes: &[Axis], owners: Owners<'_>) -> Option<Scatter> {
    let name = section.required_text("name", "name = \"feasible-region\"");
    let title = section.required_text("title", "title = \"One link against the other\"");
    let x = read_metrics(&mut section, "x", "x = \"goodput_mbit.one\"", owners);
    let y = read_metrics(&mut section, "y", "y = \"goodput_mbit.two\"", owners);
    let x = Quantity { label: section.text("x_label").unwrap_or_default(), metrics: x };
    let y = Quantity { label: section.text("y_label").unwrap_or_default(), metrics: y };
    let cells = read_selector(&mut section, "where", axes);
    let colour = read_axis(&mut section, "colour", axes, COLOURS_MAX, "colours");
    let hollow = read_some(&mut section, "hollow", axes);
    let reference = read_some(&mut section, "reference", axes);
    let panel = read_axis(&mut section, "panel", axes, PANELS_MAX, "panels");
    let sums = section.boolean("sums").unwrap_or(false);
    let is_known = !x.metrics.is_empty() && !y.metrics.is_empty();
    if sums && is_known && x.unit() != y.unit() {
        let text = format!("x has {}, y has {}", in_words(x.unit()), in_words(y.unit()));
        section.problem("sums", Problem::new(text, "leave it out; sums need one unit"));
    }
    let lines = section.many("line");
    let lines = lines.into_iter().filter_map(|line| read_line(line, axes)).collect();
    section.finish();
    let (name, title) = (name?, title?);
    let scatter =
        Scatter { name, title, x, y, cells, colour, hollow, reference, panel, sums, lines };
    is_known.then_some(scatter)
}

/// A metric, or several of one unit to add up; none when there is a problem.
fn read_metrics(
    section: &mut Section<'_>,
    key: &'static str,
    example: &'static str,
    owners: Owners<'_>,
) -> Vec<String> {
    let named = section.texts(key);
    if !section.holds_any(&[key]) {
        section.missing(key, example);
    }
    let mut metrics: Vec<String> = Vec::new();
    for (name, place) in named {
        let unit = unit_of(&name);
        if !owners.measures.contains(&name)
            && let Err(problem) = metric::check(&name, METRICS, owners)
        {
            section.problem_at(&place, key, problem);
        } else if let Some(first) = metrics.first().filter(|first| unit_of(first) != unit) {
            let (first, unit) = (in_words(unit_of(first)), in_words(unit));
            let text = format!("\"{name}\" has {unit}, the first one {first}");
            section.problem_at(&place, key, Problem::new(text, "add up metrics of one unit"));
        } else {
            metrics.push(name);
        }
    }
    metrics
}

fn in_words(unit: &str) -> String {
    if unit.is_empty() { "no unit".to_owned() } else { format!("the unit {unit}") }
}

/// An axis of the sweep with at most so many values.
fn read_axis(
    section: &mut Section<'_>,
    key: &'static str,
    axes: &[Axis],
    values_max: usize,
    what: &str,
) -> Option<String> {
    let name = section.text(key)?;
    let Some(axis) = axes.iter().find(|axis| axis.name == name) else {
        let known = axes.iter().map(|axis| axis.name.clone()).collect();
        section.problem(key, no_such("axis of a [[sweep]]", &name, known));
        return None;
    };
    if axis.declared.len() > values_max {
        let count = axis.declared.len();
        let text = format!("{name} has {count} values, a plot at most {values_max} {what}");
        section.problem(key, Problem::new(text, "name an axis with fewer values"));
    }
    Some(name)
}

/// Some of the cells; `None` without the option.
fn read_some(section: &mut Section<'_>, key: &'static str, axes: &[Axis]) -> Option<Selector> {
    let is_given = section.holds_any(&[key]);
    let cells = read_selector(section, key, axes);
    is_given.then_some(cells)
}

fn read_line(mut section: Section<'_>, axes: &[Axis]) -> Option<ScatterLine> {
    let name = section.required_text("name", "name = \"turns in time\"");
    let source = section.required_text("source", "source = \"003 Fig. 5.4\"");
    let cells = read_selector(&mut section, "where", axes);
    let example = "points = [[229, 0], [0, 261]]";
    let points = section.pairs("points", (ANY, ANY), "pairs [x, y]");
    if !section.holds_any(&["points"]) {
        section.missing("points", example);
    } else if points.as_ref().is_some_and(Vec::is_empty) {
        let help = "write pairs [x, y]: several make a line, one a cross";
        section.problem("points", Problem::new("no points", help));
    }
    section.finish();
    Some(ScatterLine { name: name?, points: points?, cells, source: source? })
}
