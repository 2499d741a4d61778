//! Assigns series to plots, and colours to series.

use crate::record::{IN_PAPER, RunRecord};

use super::svg::{self, Line, Plot};
use super::words;

/// Series that are compared with each other: title, unit, kinds.
type Panel = (&'static str, &'static str, &'static [&'static str]);

const PANELS: &[Panel] = &[
    ("Throughput per link", "Mbit/s", &["link_throughput"]),
    ("Offered load and goodput", "Mbit/s", &["offered", "goodput"]),
    ("Lost packets", "packets per interval", &["losses"]),
    ("What the sender takes a path's rate for", "Mbit/s", &["capacity"]),
    ("Weight", "weight", &["weight"]),
    ("Congestion window", "segments", &["cwnd"]),
    ("One-way delay", "ms", &["delay_ms"]),
    ("Round-trip time", "ms", &["rtt_ms"]),
    ("Queue", "ms", &["queue_ms"]),
    ("Packets dropped by links", "packets per interval", &["drops"]),
    ("Packets waiting to be put in order", "packets", &["waiting"]),
];

/// The sign for something in a plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Line,
    Dashes,
    Ring,
    Bar,
}

/// An entry of a legend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) form: Form,
}

/// A plot of one run with its legend.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Drawn {
    pub(crate) title: String,
    pub(crate) svg: String,
    pub(crate) keys: Vec<Key>,
    /// How many samples each point is the mean of.
    pub(crate) samples_per_point: usize,
}

/// The plots of each run. The same plot has the same axes in all runs, and a link or application
/// the same colour in all plots.
pub(super) fn draw(runs: &[&RunRecord], duration_s: f64) -> Vec<Vec<Drawn>> {
    let owners = owners(runs);
    let mut drawn = vec![Vec::new(); runs.len()];
    for panel in PANELS {
        let all = runs.iter().flat_map(|run| series_of(run, panel));
        let y = svg::range(all.map(|(_, samples)| samples));
        let is_there = |kind: &&&str| {
            runs.iter().any(|run| run.series.keys().any(|name| split(name).0 == **kind))
        };
        let kinds: Vec<&str> = panel.2.iter().filter(is_there).copied().collect();
        for (run, drawn) in runs.iter().zip(&mut drawn) {
            drawn.extend(draw_panel(run, panel, &kinds, y, duration_s, &owners));
        }
    }
    drawn
}

fn draw_panel(
    run: &RunRecord,
    panel: &Panel,
    kinds: &[&str],
    y: (f64, f64),
    duration_s: f64,
    owners: &[&str],
) -> Option<Drawn> {
    let (title, unit, _) = panel;
    let title = match kinds {
        [only] if panel.2.len() > 1 => words::capital(only),
        _ => (*title).to_owned(),
    };
    let (mut lines, mut keys) = (Vec::new(), Vec::new());
    for (name, samples) in series_of(run, panel) {
        let (kind, owner) = split(name);
        let own = owner.trim_end_matches(IN_PAPER);
        let colour = owners.iter().position(|known| *known == own).unwrap_or_default();
        // Of two kinds in one plot the first is the requested value.
        let is_dashed = own != owner || kinds.len() > 1 && kind == kinds[0];
        lines.push(Line { colour, is_dashed, samples });
        let name = if kinds.len() > 1 { format!("{owner}, {kind}") } else { owner.to_owned() };
        let form = if is_dashed { Form::Dashes } else { Form::Line };
        keys.push(Key { name, colour: colour % svg::COLOURS, form });
    }
    let longest = lines.iter().map(|line| line.samples.len()).max()?;
    let y_label = match *unit {
        "packets per interval" => format!("packets per {} ms", (run.interval_s * 1e3).round()),
        unit => unit.to_owned(),
    };
    let title_text = format!("{}: {title}", run.cell);
    let plot = Plot {
        title: title_text,
        x_label: svg::TIME,
        y_label,
        interval: run.interval_s,
        x_end: duration_s,
        y,
        marks: Vec::new(),
        lines,
    };
    let samples_per_point = svg::samples_per_point(longest);
    Some(Drawn { title, svg: plot.svg(), keys, samples_per_point })
}

/// A run's series of a panel, by kind and owner.
fn series_of<'a>(
    run: &'a RunRecord,
    panel: &'a Panel,
) -> impl Iterator<Item = (&'a str, &'a [Option<f64>])> {
    panel.2.iter().flat_map(|kind| {
        let of_kind = |(name, _): &(&String, &Vec<Option<f64>>)| split(name).0 == *kind;
        run.series.iter().filter(of_kind).map(|(name, samples)| (name.as_str(), samples.as_slice()))
    })
}

/// Kind and owner of a series; series of the run as a whole belong to the bond.
fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, "bond"))
}

/// Everything that owns a series, in the order of the panels.
fn owners<'a>(runs: &[&'a RunRecord]) -> Vec<&'a str> {
    let mut owners = Vec::new();
    for panel in PANELS {
        for run in runs {
            let names = run.series.keys().map(|name| split(name));
            for (_, owner) in names.filter(|(kind, _)| panel.2.contains(kind)) {
                let owner = owner.trim_end_matches(IN_PAPER);
                if !owners.contains(&owner) {
                    owners.push(owner);
                }
            }
        }
    }
    owners
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::read;
    use super::*;
    use crate::record::Results;

    fn sample() -> Results {
        read::results(Path::new("r"), read::tests::SAMPLE).unwrap().remove(0)
    }

    #[test]
    fn an_owner_keeps_its_colour_and_what_was_offered_is_dashed() {
        let results = sample();
        let runs: Vec<&RunRecord> = results.runs.iter().collect();
        let drawn = draw(&runs, 0.3);
        assert_eq!(drawn.len(), 2);
        let keys = |title: &str| -> Vec<(String, usize, bool)> {
            let panel = drawn[0].iter().find(|panel| panel.title.starts_with(title)).unwrap();
            let dashed = |key: &Key| key.form == Form::Dashes;
            panel.keys.iter().map(|key| (key.name.clone(), key.colour, dashed(key))).collect()
        };
        assert_eq!(keys("Throughput"), [("dsl".into(), 0, false), ("lte".into(), 1, false)]);
        assert_eq!(
            keys("Offered"),
            [("flow, offered".into(), 2, true), ("flow, goodput".into(), 2, false)]
        );
        assert_eq!(keys("Lost"), [("bond".into(), 3, false)]);
        assert_eq!(drawn[0].len(), 4, "series that were not captured have no plot");
    }

    #[test]
    fn the_papers_line_is_dashed_in_the_colour_of_what_it_is_for() {
        let mut results = sample();
        let line = vec![Some(60.0); 3];
        results.runs[0].series.insert(format!("link_throughput.lte{IN_PAPER}"), line);
        let runs: Vec<&RunRecord> = results.runs.iter().collect();
        let drawn = draw(&runs, 0.3).remove(0).remove(0);
        let keys = drawn.keys.iter().map(|key| (key.name.as_str(), key.colour, key.form));
        let keys: Vec<_> = keys.collect();
        let printed = ("lte, in the paper", 1, Form::Dashes);
        assert_eq!(keys, [("dsl", 0, Form::Line), ("lte", 1, Form::Line), printed]);
        assert_eq!(drawn.svg.matches("dashed").count(), 1);
    }

    #[test]
    fn cells_share_their_axes() {
        let results = sample();
        let runs: Vec<&RunRecord> = results.runs.iter().collect();
        let drawn = draw(&runs, 0.3);
        let labels = |svg: &str| svg.matches(">60</text>").count();
        assert_eq!(labels(&drawn[0][0].svg), 1);
        assert_eq!(labels(&drawn[1][0].svg), 1);
    }

    #[test]
    fn a_plot_of_two_kinds_is_named_after_the_one_that_was_captured() {
        let mut results = sample();
        for run in &mut results.runs {
            run.series.retain(|name, _| !name.starts_with("offered"));
        }
        let runs: Vec<&RunRecord> = results.runs.iter().collect();
        let drawn = draw(&runs, 0.3).remove(0);
        let goodput = drawn.iter().find(|drawn| drawn.title == "Goodput").unwrap();
        assert_eq!(goodput.keys[0].name, "flow");
    }
}
