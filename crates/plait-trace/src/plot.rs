//! Line plots over time as inline SVG. Colours are classes of the page's style sheet.

use std::fmt::Write as _;

const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;
/// Colours of the style sheet: classes `c0` and on.
pub const COLOURS: usize = 8;

/// A line of a plot.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Which of the [`COLOURS`].
    pub colour: usize,
    /// Whether it is dashed.
    pub is_dashed: bool,
    /// Time and value; what is not finite is a gap.
    pub points: Vec<(f64, f64)>,
}

/// A plot over time in seconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// What is drawn.
    pub title: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The lines.
    pub lines: Vec<Line>,
}

impl Plot {
    /// The plot as an SVG element.
    pub fn svg(&self) -> String {
        let all = || self.lines.iter().flat_map(|line| &line.points);
        let finite = |value: f64| if value.is_finite() { value } else { 0.0 };
        let x_end = all().map(|(at, _)| finite(*at)).fold(0.0, f64::max);
        let y_end = all().map(|(_, value)| finite(*value)).fold(0.0, f64::max);
        let x_start = all().map(|(at, _)| finite(*at)).fold(x_end, f64::min);
        let x = Axis::new(x_start, x_end, LEFT, WIDTH - RIGHT);
        let step = round_step(y_end / 4.0);
        let y = Axis::new(0.0, (y_end / step).ceil() * step, HEIGHT - BOTTOM, TOP);
        let mut svg = String::new();
        let label = escape(&format!("{}, {}, over time in seconds", self.title, self.unit));
        put(&mut svg, format_args!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" "));
        put(&mut svg, format_args!("aria-label=\"{label}\">"));
        grid(&mut svg, &x, &y);
        let unit = escape(self.unit);
        put(&mut svg, format_args!("<text x=\"{LEFT}\" y=\"{}\">{unit}</text>", TOP - 8.0));
        for line in &self.lines {
            let dashed = if line.is_dashed { " dashed" } else { "" };
            let (colour, path) = (line.colour % COLOURS, path(&line.points, &x, &y));
            put(&mut svg, format_args!("<path class=\"line c{colour}{dashed}\" d=\"{path}\"/>"));
        }
        svg.push_str("</svg>");
        svg
    }
}

fn grid(svg: &mut String, x: &Axis, y: &Axis) {
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    for tick in y.ticks(4.0) {
        let (at, text) = (y.at(tick), short(tick));
        put(svg, format_args!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/>"));
        let (text_x, text_y) = (LEFT - 5.0, at + 3.5);
        put(
            svg,
            format_args!("<text class=\"end\" x=\"{text_x}\" y=\"{text_y:.1}\">{text}</text>"),
        );
    }
    for tick in x.ticks(6.0) {
        let (at, text, text_y) = (x.at(tick), short(tick), bottom + 15.0);
        put(svg, format_args!("<path class=\"grid\" d=\"M{at:.1} {bottom}v4\"/>"));
        put(svg, format_args!("<text class=\"middle\" x=\"{at:.1}\" y=\"{text_y}\">{text}</text>"));
    }
    let (middle, end) = ((LEFT + right) / 2.0, HEIGHT - 2.0);
    put(svg, format_args!("<text class=\"middle\" x=\"{middle}\" y=\"{end}\">time, s</text>"));
    put(svg, format_args!("<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>"));
}

fn put(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("invariant: writing to a text does not fail");
}

/// Maps values to places.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    fn ticks(&self, count: f64) -> impl Iterator<Item = f64> {
        let step = round_step((self.high - self.low) / count);
        let first = (self.low / step - 1e-9).ceil();
        let end = self.high + step * 1e-9;
        (0..20).map(move |n| (first + f64::from(n)) * step).take_while(move |tick| *tick <= end)
    }
}

/// The next number of the form 1, 2 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    if !(least > 0.0 && least.is_finite()) {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// A round number in few characters.
fn short(number: f64) -> String {
    let (scaled, suffix) = match number.abs() {
        size if size >= 1e9 => (number / 1e9, "G"),
        size if size >= 1e6 => (number / 1e6, "M"),
        size if size >= 1e4 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    let text = format!("{scaled:.3}");
    format!("{}{suffix}", text.trim_end_matches('0').trim_end_matches('.'))
}

fn path(points: &[(f64, f64)], x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    let mut is_drawing = false;
    for (at, value) in points {
        if !at.is_finite() || !value.is_finite() {
            is_drawing = false;
            continue;
        }
        let command = if is_drawing { "L" } else { "M" };
        put(&mut path, format_args!("{command}{:.1} {:.1}", x.at(*at), y.at(*value)));
        if !is_drawing {
            // A stroke of length zero, which a round cap turns into a dot.
            path.push_str("h0");
        }
        is_drawing = true;
    }
    path
}

/// A text inside HTML or SVG, in an attribute or not.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[(f64, f64)]) -> String {
        let line = Line { colour: 9, is_dashed: true, points: points.to_vec() };
        Plot { title: "a < b", unit: "Mbit/s", lines: vec![line] }.svg()
    }

    #[test]
    fn odd_values_draw_no_odd_numbers() {
        let series: [&[(f64, f64)]; 4] = [
            &[],
            &[(0.0, 0.0)],
            &[(1.0, f64::NAN), (2.0, f64::INFINITY), (f64::NAN, 1.0)],
            &[(5.0, 1e30), (5.0, 1e30)],
        ];
        for points in series {
            let svg = plot(points);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}: {svg}");
            assert!(svg.contains("a &lt; b"));
        }
    }

    #[test]
    fn larger_values_stand_higher_and_a_gap_begins_a_new_stroke() {
        let (x, y) = (Axis::new(0.0, 2.0, 0.0, 100.0), Axis::new(0.0, 10.0, 100.0, 0.0));
        let points = [(0.0, 0.0), (1.0, 10.0), (1.5, f64::NAN), (2.0, 5.0)];
        assert_eq!(path(&points, &x, &y), "M0.0 100.0h0L50.0 0.0M100.0 50.0h0");
    }

    #[test]
    fn numbers_on_axes_are_short() {
        let texts = [0.5, 2000.0, 20_000.0, 1_500_000.0, 2e9].map(short);
        assert_eq!(texts, ["0.5", "2000", "20k", "1.5M", "2G"]);
        assert_eq!(
            Axis::new(0.0, 40.0, 0.0, 1.0).ticks(4.0).collect::<Vec<_>>(),
            [0.0, 10.0, 20.0, 30.0, 40.0]
        );
    }
}
