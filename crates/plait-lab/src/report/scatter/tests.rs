//! Four cells, two of them hollow, in two panels.

use std::path::Path;

use plait_sim::scenario::Settings;

use super::super::{html, read};
use super::*;
use crate::record::Record;

fn axis(name: &str, values: &[&str]) -> AxisValues {
    let values = values.iter().map(|value| Value::String((*value).into()));
    AxisValues { axis: name.into(), values: values.collect() }
}

fn point(way: usize, place: usize, x: f64, y: f64) -> ScatterPoint {
    let (ways, places) = (["lia", "cubic"], ["here", "there"]);
    let settings =
        Settings::from([("way".into(), ways[way].into()), ("place".into(), places[place].into())]);
    let around = |median| Spread { median, low: median - 2.0, high: median + 3.0 };
    ScatterPoint {
        cell: format!("way={},place={}", ways[way], places[place]),
        settings,
        x: around(x),
        y: around(y),
        paper: None,
        colour: way,
        panel: place,
        hollow: place == 1,
        reference: false,
    }
}

fn sample() -> ScatterRecord {
    let quantity = |label: &str, metric: &str| Quantity {
        label: label.into(),
        metrics: vec![metric.into()],
        unit: "Mbit/s".into(),
    };
    let line = GivenLine {
        name: "turns".into(),
        source: "a & b".into(),
        points: vec![(200.0, 0.0), (0.0, 200.0)],
        colour: Some(1),
        panels: vec![1],
    };
    ScatterRecord {
        scenario: "x/y".into(),
        name: "both".into(),
        title: "Both < links".into(),
        x: quantity("", "goodput_mbit.one"),
        y: quantity("WH-2", "goodput_mbit.two"),
        sums: true,
        colour: Some(axis("way", &["lia", "cubic", "bbr"])),
        panel: Some(axis("place", &["here", "there"])),
        hollow: vec![axis("place", &["there"])],
        reference: Vec::new(),
        points: vec![
            point(0, 0, 150.0, 160.0),
            point(1, 0, 190.0, 150.0),
            point(0, 1, 50.0, 20.0),
            point(1, 1, 100.0, 30.0),
        ],
        lines: vec![line],
    }
}

/// The panels' markup, the overview first.
fn figures(record: &ScatterRecord) -> Vec<String> {
    draw(record).split("<figure>").skip(1).map(str::to_owned).collect()
}

#[test]
fn there_is_an_overview_and_a_panel_for_each_value() {
    let all = figures(&sample());
    let points = |svg: &String| {
        let (dots, hollow) = (svg.matches("class=\"dot").count(), svg.matches("\"hollow").count());
        (dots, hollow, svg.matches("class=\"spread").count())
    };
    assert_eq!(all.iter().map(points).collect::<Vec<_>>(), [(2, 2, 4), (2, 0, 2), (0, 2, 2)]);
    let titles = ["WH-2 against goodput of one", "place here", "place there"];
    for (figure, title) in all.iter().zip(titles) {
        assert!(figure.starts_with(&format!("<figcaption><b>{title}</b>")), "{figure}");
    }
    let mut one = sample();
    one.points.truncate(2);
    assert_eq!(figures(&one).len(), 1, "one panel would be the overview again");
    one.points.clear();
    assert_eq!(draw(&one), "");
}

#[test]
fn a_line_is_where_its_cells_are_and_in_their_colour() {
    let all = figures(&sample());
    let has = |figure: &String| figure.contains("class=\"line dashed c1\"");
    assert_eq!(all.iter().map(has).collect::<Vec<_>>(), [true, false, true]);
    assert!(draw(&sample()).contains("turns: a &amp; b"));
    let mut cross = sample();
    cross.lines[0] =
        GivenLine { points: vec![(100.0, 30.0)], colour: None, ..cross.lines[0].clone() };
    let text = draw(&cross);
    assert!(text.contains("class=\"line ink\"") && !text.contains("dashed"), "{text}");
}

#[test]
fn the_legend_has_what_is_drawn_and_no_more() {
    let legend = |record: &ScatterRecord| {
        let keys = keys(record).into_iter();
        let name = |key: String| {
            key.rsplit_once("</svg> ").unwrap().1.trim_end_matches("</span>").to_owned()
        };
        keys.map(name).collect::<Vec<_>>()
    };
    assert_eq!(legend(&sample()), ["way lia", "way cubic", "place there", "turns"]);
    let mut record = sample();
    record.reference = vec![axis("way", &["lia", "bbr"])];
    for point in record.points.iter_mut().filter(|point| point.colour == 0) {
        point.reference = true;
    }
    record.points[0].paper = Some((140.0, 150.0));
    record.lines.clear();
    assert_eq!(legend(&record), ["way cubic", "way lia or bbr", "place there", "the paper"]);
    assert_eq!(draw(&record).matches("class=\"dot ink\"").count(), 1 + 2, "legend and two plots");
}

#[test]
fn the_papers_values_are_rings_joined_to_their_points() {
    let mut record = sample();
    record.points[1].paper = Some((300.0, 100.0));
    let all = figures(&record);
    assert_eq!(all[0].matches("<circle class=\"ring c1\"").count(), 1);
    assert_eq!(all[0].matches("class=\"to c1\"").count(), 1);
    assert!(all[0].contains(">300</text>"), "the axis reaches them: {}", all[0]);
    assert!(!all[2].contains("class=\"ring"), "{}", all[2]);
}

#[test]
fn whoever_points_at_a_point_reads_its_cell_and_both_quantities() {
    let text = draw(&sample());
    let told = "<title>way lia, place here: goodput of one 150 Mbit/s (148 to 153), WH-2 160 \
                Mbit/s (158 to 163)</title>";
    assert!(text.contains(told), "{text}");
    assert!(text.contains("<h3>Both &lt; links</h3>"));
}

#[test]
fn both_axes_of_one_unit_are_equally_long_and_others_are_not() {
    let all = figures(&sample());
    // From 50 to 200 and from 20 to 200, with the line.
    assert_eq!(all[0].matches(">200</text>").count(), 2 + 1, "two axes and a sum: {}", all[0]);
    assert!(all[0].contains("equal sums, every 50 Mbit/s"), "{}", all[0]);
    // From 148 to 193, and from 148 to 163 lengthened to both sides.
    assert_eq!(all[1].matches(">140</text>").count(), 1, "{}", all[1]);
    let mut record = sample();
    record.lines.clear();
    (record.y.unit, record.sums) = ("ms".into(), false);
    let all = figures(&record);
    assert!(all[1].contains(">WH-2, ms</text>") && !all[1].contains("equal sums"), "{}", all[1]);
    assert!(all[1].contains(">158</text>") && !all[1].contains(">140</text>"), "{}", all[1]);
}

#[test]
fn nothing_that_is_no_number_is_drawn() {
    let mut record = sample();
    record.points[0].x.median = f64::NAN;
    record.points[1].y = Spread { median: 1.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
    let text = draw(&record);
    assert!(!text.contains("NaN") && !text.contains("inf,") && !text.contains("Hinf"), "{text}");
}

#[test]
fn many_points_are_small() {
    let mut record = sample();
    record.points = (0..200).map(|at| point(at % 2, at / 100, at as f64, 9.0)).collect();
    let all = figures(&record);
    assert!(all[0].contains("class=\"dot fine c0\"") && all[0].contains("class=\"hollow fine"));
    assert!(!all[1].contains("fine"), "{}", all[1]);
}

#[test]
fn a_plot_is_read_again_as_it_was_written_and_stands_before_the_curves() {
    let written = |scenario: &str| {
        let record = ScatterRecord { scenario: scenario.into(), ..sample() };
        let line = serde_json::to_string(&Record::Scatter(record.clone())).unwrap();
        (record, format!("{line}\n{}", read::tests::SAMPLE))
    };
    let (record, text) = written("002/sample");
    let results = read::results(Path::new("r"), &text).unwrap();
    assert_eq!(results[0].scatters, [record]);
    let page = html::page(&results);
    let place = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(place("<p class=\"headline\"") < place("<h3>Both &lt; links"));
    assert!(place("<h3>Both &lt; links") < place("<h3>At a glance"));
    let (_, stranger) = written("002/other");
    assert!(read::results(Path::new("r"), &stranger).is_err());
}
