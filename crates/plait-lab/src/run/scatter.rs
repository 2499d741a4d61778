//! The points of a scenario's scatter plots.

use plait_sim::scenario::scatter::{Quantity as Asked, ScatterLine};
use plait_sim::scenario::sweep::Selector;
use plait_sim::scenario::{Cell, CellResult, Scatter, Scenario, Settings};
use toml::Value;

use crate::record::{
    AxisValues, GivenLine, Middle, Quantity, Samples, ScatterPoint, ScatterRecord, Spread,
};

/// Every plot of the scenario, with a point for each of its cells that has both metrics.
pub(super) fn all(
    scenario: &Scenario,
    cells: &[Cell],
    results: &[CellResult],
) -> Vec<ScatterRecord> {
    scenario.scatters.iter().map(|scatter| record(scenario, scatter, cells, results)).collect()
}

fn record(
    scenario: &Scenario,
    scatter: &Scatter,
    cells: &[Cell],
    results: &[CellResult],
) -> ScatterRecord {
    let colour = scatter.colour.as_ref().map(|axis| values_of(scenario, axis));
    let panel = scatter.panel.as_ref().map(|axis| values_of(scenario, axis));
    let chosen = cells.iter().filter(|cell| scatter.cells.chooses(&cell.settings));
    let point = |cell: &Cell| {
        let of = |asked: &Asked| spread(asked, cell, results);
        let printed = |asked: &Asked| printed(asked, scenario, &cell.settings);
        let is_among = |some: &Option<Selector>| {
            some.as_ref().is_some_and(|some| some.chooses(&cell.settings))
        };
        Some(ScatterPoint {
            cell: cell.name.clone(),
            settings: cell.settings.clone(),
            x: of(&scatter.x)?,
            y: of(&scatter.y)?,
            paper: printed(&scatter.x).zip(printed(&scatter.y)),
            colour: place_in(colour.as_ref(), &cell.settings),
            panel: place_in(panel.as_ref(), &cell.settings),
            hollow: is_among(&scatter.hollow),
            reference: is_among(&scatter.reference),
        })
    };
    let points: Vec<ScatterPoint> = chosen.filter_map(point).collect();
    ScatterRecord {
        scenario: scenario.name.clone(),
        name: scatter.name.clone(),
        title: scatter.title.clone(),
        x: quantity(&scatter.x),
        y: quantity(&scatter.y),
        sums: scatter.sums,
        colour,
        panel,
        hollow: named(scatter.hollow.as_ref()),
        reference: named(scatter.reference.as_ref()),
        lines: scatter.lines.iter().map(|line| given(line, &points)).collect(),
        points,
    }
}

/// An axis' values: those of the file first, so that a run of some keeps their colours.
fn values_of(scenario: &Scenario, axis: &str) -> AxisValues {
    let known = scenario.sweep.iter().find(|known| known.name == axis);
    let mut values = known.map(|known| known.declared.clone()).unwrap_or_default();
    for value in known.into_iter().flat_map(|known| &known.values) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    AxisValues { axis: axis.to_owned(), values }
}

/// Where a cell stands among the values; first without an axis.
fn place_in(among: Option<&AxisValues>, settings: &Settings) -> usize {
    let place = |AxisValues { axis, values }: &AxisValues| {
        let own: &Value = settings.get(axis)?;
        values.iter().position(|value| value == own)
    };
    among.and_then(place).unwrap_or_default()
}

fn quantity(asked: &Asked) -> Quantity {
    let Asked { label, metrics } = asked.clone();
    Quantity { label, metrics, unit: asked.unit().to_owned() }
}

fn named(some: Option<&Selector>) -> Vec<AxisValues> {
    let axis = |(axis, values): (&str, &[Value])| AxisValues {
        axis: axis.to_owned(),
        values: values.to_vec(),
    };
    some.into_iter().flat_map(Selector::axes).map(axis).collect()
}

/// A cell's metrics, added up in each of its runs; `None` where no run has all of them.
fn spread(asked: &Asked, cell: &Cell, results: &[CellResult]) -> Option<Spread> {
    let sum = |run: &CellResult| {
        let metrics = asked.metrics.iter().map(|metric| run.metrics.get(metric));
        metrics.sum::<Option<f64>>().filter(|sum| sum.is_finite())
    };
    let runs = results.iter().filter(|run| run.cell == cell.name);
    let samples = Samples::new(runs.filter_map(sum).collect())?;
    let (median, low, high) = (samples.middle(Middle::Median), samples.low(), samples.high());
    Some(Spread { median, low, high })
}

/// The paper's values of the metrics, added up; `None` when it has none of them.
fn printed(asked: &Asked, scenario: &Scenario, settings: &Settings) -> Option<f64> {
    let of = |metric: &String| {
        let values = &scenario.paper.values;
        let printed = values.iter().find(|p| p.metric == *metric && p.at.chooses(settings))?;
        Some(printed.value)
    };
    asked.metrics.iter().filter_map(of).reduce(|sum, value| sum + value)
}

/// A line, with the panels of the cells that it is for, and their colour.
fn given(line: &ScatterLine, points: &[ScatterPoint]) -> GivenLine {
    let (mut panels, mut colours) = (Vec::new(), Vec::new());
    for point in points.iter().filter(|point| line.cells.chooses(&point.settings)) {
        if !panels.contains(&point.panel) {
            panels.push(point.panel);
        }
        if !colours.contains(&point.colour) {
            colours.push(point.colour);
        }
    }
    // A line for all cells has no cells' colour, however few were run.
    let is_chosen = line.cells != Selector::default();
    let colour = match colours.as_slice() {
        [only] if is_chosen => Some(*only),
        _ => None,
    };
    let (name, source, points) = (line.name.clone(), line.source.clone(), line.points.clone());
    GivenLine { name, source, points, colour, panels }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use plait_sim::scenario::Experiment;

    use super::*;

    const TEXT: &str = r#"name = "x"
title = "X"
source = "s"
duration_s = 5
[links.a]
rate_mbit = 8
rtt_ms = 4
[[app]]
name = "one"
kind = "udp"
via = "a"
rate = { mbit = 1, layer = "wire" }
[[app]]
name = "two"
kind = "udp"
via = "a"
rate = { mbit = 1, layer = "wire" }
[[sweep]]
key = "links.a.rtt_ms"
name = "rtt_ms"
values = [4, 8, 12]
[[sweep]]
key = "links.a.loss"
values = [0, 0.5]
[paper]
value = [
    { metric = "goodput_mbit.one", at = { rtt_ms = 8 }, value = 3, source = "s" },
    { metric = "goodput_mbit.two", at = { rtt_ms = 8, loss = 0 }, value = 2, source = "s" },
]
[[scatter]]
name = "p"
title = "P"
x = ["goodput_mbit.one", "offered_mbit.one"]
y = "goodput_mbit.two"
colour = "rtt_ms"
hollow = { loss = 0.5 }
reference = { rtt_ms = 12 }
panel = "loss"
where = { rtt_ms = [8, 12] }
[[scatter.line]]
name = "all"
points = [[0, 1], [1, 0]]
source = "s"
[[scatter.line]]
name = "some"
points = [[0, 1]]
where = { rtt_ms = 12, loss = 0.5 }
source = "s"
"#;

    fn plot(settings: &[&str]) -> ScatterRecord {
        let read = |_: &Path| Ok(TEXT.to_owned());
        let experiment = Experiment::load(Path::new("x.toml"), settings, &read).unwrap();
        let of_cell = |cell: &Cell| {
            let run = |seed: u64| CellResult {
                cell: cell.name.clone(),
                settings: cell.settings.clone(),
                seed,
                metrics: BTreeMap::from([
                    ("goodput_mbit.one".into(), [0.0, 1.0, 5.0, 6.0][seed as usize]),
                    ("offered_mbit.one".into(), 10.0 - 2.0 * seed as f64),
                    ("goodput_mbit.two".into(), 7.0),
                ]),
                series: BTreeMap::new(),
            };
            [run(1), run(2), run(3)]
        };
        let mut results: Vec<CellResult> = experiment.cells.iter().flat_map(of_cell).collect();
        let last = results.last_mut().unwrap();
        last.metrics.remove("offered_mbit.one");
        all(&experiment.scenario, &experiment.cells, &results).remove(0)
    }

    #[test]
    fn a_point_has_the_medians_of_sums_with_their_range() {
        let plot = plot(&[]);
        let cells: Vec<&str> = plot.points.iter().map(|point| point.cell.as_str()).collect();
        let expected = ["rtt_ms=8,loss=0", "rtt_ms=8,loss=0.5", "rtt_ms=12,loss=0"];
        assert_eq!((&cells[..3], cells[3]), (&expected[..], "rtt_ms=12,loss=0.5"));
        // 1 + 8, 5 + 6, 6 + 4.
        assert_eq!(plot.points[0].x, Spread { median: 10.0, low: 9.0, high: 11.0 });
        assert_eq!(plot.points[0].y, Spread { median: 7.0, low: 7.0, high: 7.0 });
        assert_eq!(plot.points[3].x.median, 10.0, "a run without one of them is left out");
    }

    #[test]
    fn the_paper_needs_values_of_both_quantities() {
        let papers: Vec<_> = plot(&[]).points.iter().map(|point| point.paper).collect();
        assert_eq!(papers, [Some((3.0, 2.0)), None, None, None]);
    }

    #[test]
    fn a_point_has_colour_panel_and_form_by_its_cell() {
        let plot = plot(&[]);
        let of = |point: &ScatterPoint| {
            let ScatterPoint { colour, panel, hollow, reference, .. } = *point;
            (colour, panel, hollow, reference)
        };
        let told: Vec<_> = plot.points.iter().map(of).collect();
        let expected =
            [(1, 0, false, false), (1, 1, true, false), (2, 0, false, true), (2, 1, true, true)];
        assert_eq!(told, expected);
        assert_eq!(plot.hollow[0], AxisValues { axis: "loss".into(), values: vec![0.5.into()] });
    }

    #[test]
    fn a_line_is_in_the_panels_and_the_colour_of_its_cells() {
        let of = |line: &GivenLine| (line.panels.clone(), line.colour);
        let lines: Vec<_> = plot(&[]).lines.iter().map(of).collect();
        assert_eq!(lines, [(vec![0, 1], None), (vec![1], Some(2))]);
        let lines: Vec<_> = plot(&["rtt_ms=8"]).lines.iter().map(of).collect();
        assert_eq!(lines, [(vec![0, 1], None), (vec![], None)]);
    }

    #[test]
    fn colours_stay_when_fewer_values_are_run_and_others_come_after_them() {
        let colours = |rtt: &str| -> Vec<usize> {
            plot(&[rtt]).points.iter().map(|point| point.colour).collect()
        };
        assert_eq!(colours("rtt_ms=12"), [2, 2]);
        assert_eq!(colours("rtt_ms=[99, 8]"), [1, 1]);
        assert_eq!(plot(&["rtt_ms=99"]).colour.unwrap().values[3], 99.into());
    }
}
