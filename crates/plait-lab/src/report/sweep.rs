//! The figures of a sweep in plots: each metric against the axis, medians with their spread over
//! the seeds, and the paper's values as marks.

use plait_sim::scenario::metric::unit_of;
use toml::Value;

use super::bars::{Bar, bars};
use super::panel::{Drawn, Form, Key};
use super::points::{Curve, Point, Points, Range};
use super::svg::COLOURS;
use super::words;
use crate::record::{CellFigure, CellRecord, Results};

/// Most lines of one plot: more would need further colours, and go into further plots.
const LINES_MAX: usize = COLOURS;
/// More lines than this in one plot hide each other.
const LINES_TOGETHER: usize = 4;
const PLOTS_MAX: usize = 24;
const BARS_MAX: usize = 40;

/// The plots of an experiment's figures; for a single cell, of those with a value to compare with.
pub(super) fn draw(results: &Results) -> Vec<Drawn> {
    let (cells, axes) = (&results.cells, &results.summary.axes);
    let rings = match words::heads(&results.summary) {
        [_, "paper", _] => "the paper",
        [_, other, _] => other,
    };
    if let [cell] = cells.as_slice() {
        return of_cell(cell, rings);
    }
    let axis = numeric_axis(axes, cells);
    let of_metric = |metric: &&str| match &axis {
        Some(axis) => curves(metric, axis, axes, cells, rings),
        None => in_bars(metric, axes, cells, rings).into_iter().collect(),
    };
    words::metrics(results).iter().flat_map(of_metric).take(PLOTS_MAX).collect()
}

/// The axis along which the curves go.
struct Axis<'a> {
    name: &'a str,
    /// The unit after the numbers where values are words such as `16-MB`.
    unit: &'a str,
}

/// The numeric axis with the most values.
fn numeric_axis<'a>(axes: &'a [String], cells: &'a [CellRecord]) -> Option<Axis<'a>> {
    let count = |axis: &'a str| {
        let mut values: Vec<f64> = Vec::new();
        let mut unit = None;
        for cell in cells {
            let (value, own) = cell.settings.get(axis).and_then(number)?;
            if *unit.get_or_insert(own) != own {
                return None;
            }
            if !values.contains(&value) {
                values.push(value);
            }
        }
        (values.len() > 1).then_some((values.len(), Axis { name: axis, unit: unit? }))
    };
    // The first of equal ones.
    let counted = axes.iter().rev().filter_map(|axis| count(axis));
    counted.max_by_key(|(values, _)| *values).map(|(_, axis)| axis)
}

/// A number, and the unit behind it.
fn number(value: &Value) -> Option<(f64, &str)> {
    match value {
        Value::Integer(number) => Some((*number as f64, "")),
        Value::Float(number) => Some((*number, "")),
        Value::String(text) => {
            let is_part = |c: char| c.is_ascii_digit() || c == '.';
            let (digits, rest) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
            let unit = rest.trim_start_matches(['-', ' ']);
            // `4k` is a name.
            let is_apart = rest.is_empty() || unit.len() < rest.len();
            is_apart.then_some((digits.parse().ok()?, unit))
        }
        _ => None,
    }
}

fn figure_of<'a>(cell: &'a CellRecord, metric: &str) -> Option<&'a CellFigure> {
    cell.figures.iter().find(|figure| figure.metric == metric)
}

/// A line of a plot, and which plot it belongs to.
struct Placed {
    facet: String,
    curve: Curve,
}

/// A metric over the axis, with a line for each combination of the others. If there are many, a
/// plot for each value of the first other axis; all plots of a metric have the same axes.
fn curves(
    metric: &str,
    axis: &Axis<'_>,
    axes: &[String],
    cells: &[CellRecord],
    rings: &str,
) -> Vec<Drawn> {
    let Axis { name: axis, unit: axis_unit } = *axis;
    // An axis with one value does not distinguish lines.
    let varies = |other: &&String| {
        cells.iter().any(|cell| cell.settings.get(*other) != cells[0].settings.get(*other))
    };
    let others: Vec<&String> = axes.iter().filter(|other| *other != axis).filter(varies).collect();
    let axis_unit = if axis_unit.is_empty() { unit_of(axis) } else { axis_unit };
    let x_label = with_unit(words::without_unit(axis), axis_unit);
    let mut placed = place(metric, axis, &[], &others, cells);
    if placed.len() > LINES_TOGETHER && others.len() > 1 {
        placed = place(metric, axis, &others[..1], &others[1..], cells);
    }
    let unit = cells.iter().find_map(|cell| Some(figure_of(cell, metric)?.unit.as_str()));
    let y_label = unit.unwrap_or_default();
    let over =
        format!("{} over {}", words::capital(&words::metric(metric)), words::without_unit(axis));
    let range = Range::of(placed.iter().flat_map(|placed| &placed.curve.points));
    let mut facets: Vec<(String, Vec<Curve>)> = Vec::new();
    for Placed { facet, curve } in placed {
        match facets.iter_mut().find(|(known, _)| *known == facet) {
            Some((_, curves)) => curves.push(curve),
            None => facets.push((facet, vec![curve])),
        }
    }
    let of_facet = |(facet, curves): &(String, Vec<Curve>)| -> Vec<Drawn> {
        let title = match facet.as_str() {
            "" => over.clone(),
            facet => format!("{over}, {facet}"),
        };
        let draw = |curves: &[Curve]| {
            let plot = Points { title: &title, x_label: &x_label, y_label, range: &range, curves };
            draw_curves(&plot, rings)
        };
        curves.chunks(LINES_MAX).map(draw).collect()
    };
    facets.iter().flat_map(of_facet).collect()
}

/// The lines, named by the values of `named`, in plots named by those of `faceted`.
fn place(
    metric: &str,
    axis: &str,
    faceted: &[&String],
    named: &[&String],
    cells: &[CellRecord],
) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    for cell in cells {
        let x = cell.settings.get(axis).and_then(number);
        let (Some(figure), Some((x, _))) = (figure_of(cell, metric), x) else { continue };
        let of = |axes: &[&String]| words::place(axes.iter().copied(), &cell.settings);
        let (facet, name) = (of(faceted), of(named));
        let CellFigure { median, low, high, paper, .. } = *figure;
        let point = Point { x, y: median, low, high, mark: paper };
        let known = |placed: &&mut Placed| placed.facet == facet && placed.curve.name == name;
        match all.iter_mut().find(known) {
            Some(placed) => placed.curve.points.push(point),
            None => all.push(Placed { facet, curve: Curve { name, points: vec![point] } }),
        }
    }
    for placed in &mut all {
        placed.curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    all
}

fn draw_curves(plot: &Points<'_>, rings: &str) -> Drawn {
    let named = plot.curves.iter().enumerate().filter(|(_, curve)| !curve.name.is_empty());
    let key = |(colour, curve): (usize, &Curve)| Key {
        name: curve.name.clone(),
        colour,
        form: Form::Line,
    };
    let mut keys: Vec<Key> = named.map(key).collect();
    if plot.curves.iter().flat_map(|curve| &curve.points).any(|point| point.mark.is_some()) {
        keys.push(ring_key(rings));
    }
    Drawn { svg: plot.svg(), title: plot.title.to_owned(), keys, samples_per_point: 1 }
}

fn ring_key(rings: &str) -> Key {
    Key { name: rings.to_owned(), colour: 0, form: Form::Ring }
}

fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.to_owned() } else { format!("{name}, {unit}") }
}

fn bar(name: String, figure: &CellFigure) -> Bar {
    let CellFigure { median, low, high, paper, .. } = *figure;
    Bar { name, value: median, low, high, mark: paper, colour: 0 }
}

fn draw_bars(title: &str, all: &[Bar], rings: &str) -> Drawn {
    let title = words::capital(title);
    let has_marks = all.iter().any(|bar| bar.mark.is_some());
    let keys = has_marks.then(|| ring_key(rings)).into_iter().collect();
    Drawn { svg: bars(&title, all, None), title, keys, samples_per_point: 1 }
}

/// A metric of cells without a numeric axis.
fn in_bars(metric: &str, axes: &[String], cells: &[CellRecord], rings: &str) -> Option<Drawn> {
    let mut unit = "";
    let of_cell = |cell: &'_ CellRecord| {
        let figure = figure_of(cell, metric)?;
        Some(bar(words::cell(axes, &cell.settings, &cell.cell), figure))
    };
    for figure in cells.iter().filter_map(|cell| figure_of(cell, metric)) {
        unit = &figure.unit;
    }
    let all: Vec<Bar> = cells.iter().filter_map(of_cell).take(BARS_MAX).collect();
    let title = with_unit(&words::metric(metric), unit);
    (all.len() > 1).then(|| draw_bars(&title, &all, rings))
}

/// A single cell's figures with a value to compare with, grouped by unit.
fn of_cell(cell: &CellRecord, rings: &str) -> Vec<Drawn> {
    let mut units: Vec<(&str, Vec<Bar>)> = Vec::new();
    for figure in cell.figures.iter().filter(|figure| figure.paper.is_some()) {
        let own = bar(words::metric(&figure.metric), figure);
        match units.iter_mut().find(|(unit, _)| *unit == figure.unit) {
            Some((_, bars)) => bars.push(own),
            None => units.push((&figure.unit, vec![own])),
        }
    }
    units.iter().map(|(unit, all)| draw_bars(&with_unit("figures", unit), all, rings)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read;
    use super::*;

    fn sample() -> Results {
        read::results(Path::new("r"), read::tests::SAMPLE).unwrap().remove(0)
    }

    fn with(values: &[(&str, Value)], median: f64, paper: Option<f64>) -> CellRecord {
        let settings = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let figure = CellFigure {
            metric: "goodput_mbit".into(),
            unit: "Mbit/s".into(),
            median,
            low: median - 1.0,
            high: median + 1.0,
            paper,
            paper_source: String::new(),
        };
        let mut cell = sample().cells.remove(0);
        (cell.settings, cell.figures) = (settings.collect(), vec![figure]);
        cell
    }

    fn results(axes: &[&str], cells: Vec<CellRecord>) -> Results {
        let mut results = sample();
        results.summary.axes = axes.iter().map(|axis| (*axis).to_owned()).collect();
        results.cells = cells;
        results
    }

    #[test]
    fn a_sweep_over_numbers_is_a_curve_with_the_papers_values_as_rings() {
        let cell = |hold: i64, mbit, paper| with(&[("hold_ms", hold.into())], mbit, paper);
        let cells = vec![cell(600, 3.0, None), cell(0, 1.0, Some(2.0)), cell(50, 9.0, Some(8.0))];
        let drawn = draw(&results(&["hold_ms"], cells));
        assert_eq!(drawn.len(), 1);
        assert_eq!(drawn[0].title, "Goodput over hold");
        assert!(drawn[0].svg.contains(">hold, ms</text>"), "{}", drawn[0].svg);
        assert_eq!(drawn[0].svg.matches("class=\"ring").count(), 2);
        assert_eq!(drawn[0].svg.matches("class=\"spread").count(), 3);
        assert_eq!(drawn[0].keys.len(), 1, "one line needs no name; the rings do");
    }

    #[test]
    fn the_other_axes_are_lines_and_too_many_go_to_further_plots() {
        let cell = |x: i64, k: i64| with(&[("x", x.into()), ("k", k.into())], 1.0, None);
        let cells = (0..10).flat_map(|k| (0..20).map(move |x| cell(x, k))).collect();
        let drawn = draw(&results(&["k", "x"], cells));
        assert_eq!(drawn.iter().map(|drawn| drawn.keys.len()).collect::<Vec<_>>(), [8, 2]);
        assert_eq!(drawn[0].keys[3].name, "k 3");
    }

    #[test]
    fn words_that_begin_with_numbers_of_one_unit_are_numbers() {
        let of = |values: [&str; 3]| {
            let cells = values.map(|value| with(&[("size", value.into())], 1.0, None)).to_vec();
            draw(&results(&["size"], cells)).remove(0)
        };
        let sizes = of(["1-MB", "4-MB", "16-MB"]);
        assert_eq!(sizes.title, "Goodput over size");
        assert!(sizes.svg.contains(">size, MB</text>"), "{}", sizes.svg);
        assert!(of(["1-MB", "4-kB", "x"]).svg.contains("class=\"level"));
        assert!(of(["1k", "2k", "4k"]).svg.contains("class=\"level"), "names of resolutions");
    }

    #[test]
    fn many_lines_are_spread_over_plots_with_the_same_axes() {
        let cell = |x: i64, form: &str, k: i64| {
            with(&[("x", x.into()), ("form", form.into()), ("k", k.into())], (x + k) as f64, None)
        };
        let forms = ["one", "two", "three"];
        let cells = forms
            .iter()
            .flat_map(|form| (0..2).flat_map(move |k| (0..3).map(move |x| cell(x, form, 40 * k))));
        let drawn = draw(&results(&["form", "k", "x"], cells.collect()));
        let titles: Vec<&str> = drawn.iter().map(|drawn| drawn.title.as_str()).collect();
        assert_eq!(titles[1], "Goodput over x, form two");
        assert_eq!((titles.len(), drawn[1].keys[0].name.as_str()), (3, "k 0"));
        assert!(drawn.iter().all(|drawn| drawn.svg.contains(">40</text>")), "{titles:?}");
    }

    #[test]
    fn cells_without_numbers_are_bars_and_one_cell_is_no_plot() {
        let cell = |name: &str, mbit| with(&[("scheduler", name.into())], mbit, None);
        let cells = vec![cell("blest", 1.0), cell("ecf", 2.0)];
        let drawn = draw(&results(&["scheduler"], cells.clone()));
        assert_eq!(drawn.len(), 1);
        assert_eq!(drawn[0].svg.matches("class=\"level").count(), 2);
        assert!(draw(&results(&[], cells[..1].to_vec())).is_empty());
    }

    #[test]
    fn an_axis_of_one_value_is_no_part_of_the_legend() {
        let cell = |x: i64, form: &str| {
            with(&[("x", x.into()), ("form", form.into()), ("split", "even".into())], 1.0, None)
        };
        let cells = vec![cell(0, "one"), cell(1, "one"), cell(0, "two"), cell(1, "two")];
        let drawn = draw(&results(&["split", "x", "form"], cells));
        let names: Vec<&str> = drawn[0].keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["form one", "form two"]);
    }

    #[test]
    fn a_single_cell_of_a_comparison_has_a_bar_and_a_ring_for_each_figure() {
        let mut one = results(&[], vec![with(&[], 9.0, Some(8.0))]);
        one.summary.on = crate::record::BOTH.into();
        let second =
            CellFigure { metric: "offered_mbit".into(), ..one.cells[0].figures[0].clone() };
        one.cells[0].figures.push(second);
        let drawn = draw(&one);
        assert_eq!((drawn.len(), drawn[0].title.as_str()), (1, "Figures, Mbit/s"));
        assert_eq!(drawn[0].svg.matches("class=\"level").count(), 2);
        assert_eq!(drawn[0].svg.matches("class=\"ring").count(), 2);
        assert_eq!(
            (drawn[0].keys[0].name.as_str(), drawn[0].keys[0].form),
            ("simulated", Form::Ring)
        );
    }
}
