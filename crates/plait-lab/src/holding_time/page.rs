//! The answer as one self-contained HTML page with plots.

use plait_proto::dida::holding_time::{Conditions, net_growth, optimum};

use super::{HoldingTimes, Point, SECOND_MS};
use crate::figure::Figure;
use crate::report::{Drawn, Form, Key, Line, Mark, Plot, document, escape, figure, range};

/// Points of a curve: as many as a screen shows.
const POINTS: usize = 300;
/// End of a plot's axis of the time since the last congestion event.
const T_E_END_S: f64 = 60.0;
/// Windows shown beside the requested one.
const WINDOWS: [f64; 3] = [38.0, 100.0, 500.0];
const OPTIMUM_COLOUR: usize = 1;
const DEFAULT_COLOUR: usize = 2;
const RANGE_COLOUR: usize = 7;

pub(super) fn html(answer: &HoldingTimes, figures: &[Figure], command: &str) -> String {
    let row = |figure: &Figure| {
        let (name, value) = (escape(&figure.name), escape(&figure.value_text()));
        format!("<tr><td class=\"name\">{name}</td><td class=\"number\">{value}</td></tr>\n")
    };
    let rows: String = figures.iter().map(row).collect();
    let range = match answer.range {
        Some(_) => "",
        None => answer.no_range(),
    };
    let body = format!(
        "<section>\n\
         <p><span class=\"badge\">Computed from formulas; nothing was measured</span></p>\n\
         <p>{}</p>\n<h3>Figures</h3>\n<div class=\"scroll\"><table>\n\
         <tr><th>what</th><th class=\"number\">value</th></tr>\n{rows}</table></div>\n\
         <p>{range}</p>\n\
         <h3>Curves</h3>\n<div class=\"plots\">\n{}</div>\n\
         <p>Repeat: <code>{}</code></p>\n</section>\n",
        escape(&answer.sentence()),
        plots(answer),
        escape(command),
    );
    document("plait: DIDA's holding time", &body)
}

fn plots(answer: &HoldingTimes) -> String {
    let mut drawn = Vec::new();
    if answer.curve_end_s() > 0.0 {
        let best_s = optimum(&answer.conditions);
        drawn.push(over_hold(answer, "Gain over the hold", best_s, |point| point.gain_segments));
        let best_s = net_growth(&answer.conditions, answer.longest_s);
        drawn.push(over_hold(answer, "Net gain over the hold", best_s, |point| {
            point.net_gain_segments
        }));
    }
    drawn.push(over_time(answer));
    drawn.iter().map(figure).collect()
}

/// A curve over the hold, with its optimum, the default and the operating range marked.
fn over_hold(
    answer: &HoldingTimes,
    title: &'static str,
    best_s: f64,
    gain: impl Fn(Point) -> f64,
) -> Drawn {
    let end_s = answer.curve_end_s();
    let interval_s = end_s / POINTS as f64;
    let samples: Vec<Option<f64>> =
        (0..POINTS).map(|n| Some(gain(answer.point((n as f64 + 0.5) * interval_s)))).collect();
    let ends = answer.range.map(|range| [range.low_s, range.high_s]);
    let mark = |seconds: f64, colour, is_dashed| Mark { x: seconds * SECOND_MS, colour, is_dashed };
    let mut marks: Vec<Mark> =
        ends.into_iter().flatten().map(|end_s| mark(end_s, RANGE_COLOUR, true)).collect();
    marks.push(mark(best_s, OPTIMUM_COLOUR, false));
    marks.push(mark(answer.default_s, DEFAULT_COLOUR, true));
    let key = |name: &str, colour, form| Key { name: name.to_owned(), colour, form };
    let mut keys = vec![
        key("gain", 0, Form::Line),
        key("optimum", OPTIMUM_COLOUR, Form::Line),
        key("default", DEFAULT_COLOUR, Form::Dashes),
    ];
    if ends.is_some() {
        keys.push(key("operating range", RANGE_COLOUR, Form::Dashes));
    }
    let plot = Plot {
        title: title.to_owned(),
        x_label: "hold, ms",
        y_label: "segments".to_owned(),
        interval: interval_s * SECOND_MS,
        x_end: end_s * SECOND_MS,
        y: range([samples.as_slice()].into_iter()),
        marks,
        lines: vec![Line { colour: 0, is_dashed: false, samples: &samples }],
    };
    Drawn { title: title.to_owned(), svg: plot.svg(), keys, samples_per_point: 1 }
}

/// The optimum over the time since the last congestion event, for some windows.
fn over_time(answer: &HoldingTimes) -> Drawn {
    let title = "Optimum over the time since the last congestion event";
    let asked = answer.conditions.w_segments;
    let mut windows = vec![asked];
    windows.extend(WINDOWS.into_iter().filter(|window| *window != asked));
    let interval_s = T_E_END_S / POINTS as f64;
    let optima = |window: &f64| -> Vec<Option<f64>> {
        let at = |n: usize| {
            let t_e_s = (n as f64 + 0.5) * interval_s;
            let conditions = Conditions { w_segments: *window, t_e_s, ..answer.conditions };
            Some(optimum(&conditions) * SECOND_MS)
        };
        (0..POINTS).map(at).collect()
    };
    let curves: Vec<Vec<Option<f64>>> = windows.iter().map(optima).collect();
    let lines = curves.iter().enumerate();
    let plot = Plot {
        title: title.to_owned(),
        x_label: "time since the last congestion event, s",
        y_label: "ms".to_owned(),
        interval: interval_s,
        x_end: T_E_END_S,
        y: range(curves.iter().map(Vec::as_slice)),
        marks: Vec::new(),
        lines: lines
            .map(|(colour, samples)| Line { colour, is_dashed: colour > 0, samples })
            .collect(),
    };
    let key = |(colour, window): (usize, &f64)| Key {
        name: format!("window {window} segments"),
        colour,
        form: if colour > 0 { Form::Dashes } else { Form::Line },
    };
    let keys = windows.iter().enumerate().map(key).collect();
    Drawn { title: title.to_owned(), svg: plot.svg(), keys, samples_per_point: 1 }
}
