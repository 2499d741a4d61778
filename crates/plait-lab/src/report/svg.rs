//! Line plots, mostly over time, as inline SVG. Colours come from the page's style sheet, so that a
//! plot is readable on light and dark backgrounds.

use std::fmt::Write as _;

use super::words;

/// Width of a plot in its own units.
pub(super) const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 185.0;
/// Room around the plotted area for the axis labels.
const LEFT: f64 = 40.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;
/// Height of a plot for each number of its vertical axis.
const TICK_HEIGHT: f64 = 37.0;
/// More points than this would be closer than a screen can show.
const POINTS_MAX: usize = 320;
/// Colours of the style sheet: classes `c0` and on.
pub(crate) const COLOURS: usize = 8;

/// One line of a plot.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Line<'a> {
    /// Which of the [`COLOURS`].
    pub(crate) colour: usize,
    pub(crate) is_dashed: bool,
    /// One sample per interval from 0 on; `None` leaves a gap.
    pub(crate) samples: &'a [Option<f64>],
}

/// A vertical line across a plot.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Mark {
    /// Where on the horizontal axis.
    pub(crate) x: f64,
    /// Which of the [`COLOURS`].
    pub(crate) colour: usize,
    pub(crate) is_dashed: bool,
}

/// The label of a time axis, in seconds.
pub(super) const TIME: &str = "time, s";

/// A line plot.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plot<'a> {
    pub(crate) title: String,
    /// Quantity and unit of the horizontal axis.
    pub(crate) x_label: &'static str,
    /// Label of the vertical axis.
    pub(crate) y_label: String,
    /// How much of the horizontal axis each sample covers.
    pub(crate) interval: f64,
    /// End of the horizontal axis.
    pub(crate) x_end: f64,
    /// Ends of the vertical axis; see [`range`].
    pub(crate) y: (f64, f64),
    pub(crate) marks: Vec<Mark>,
    pub(crate) lines: Vec<Line<'a>>,
}

impl Plot<'_> {
    /// The plot as an SVG element.
    pub(crate) fn svg(&self) -> String {
        let frame = Frame::new((0.0, self.x_end), self.y, self.x_label, &self.y_label);
        let (x, y) = (frame.x, frame.y);
        let label = format!("{}, {} over {}", self.title, self.y_label, self.x_label);
        let mut svg = frame.begin(&label);
        for mark in self.marks.iter().filter(|mark| (0.0..=self.x_end).contains(&mark.x)) {
            let (at, bottom) = (x.at(mark.x), HEIGHT - BOTTOM);
            let dashed = if mark.is_dashed { " dashed" } else { "" };
            let colour = mark.colour % COLOURS;
            let (class, path) =
                (format_args!("line c{colour}{dashed}"), format_args!("M{at:.1} {TOP}V{bottom}"));
            push(&mut svg, format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
        for line in &self.lines {
            let path = path(line.samples, self.interval, &x, &y);
            let dashed = if line.is_dashed { " dashed" } else { "" };
            let colour = line.colour % COLOURS;
            push(&mut svg, format_args!("<path class=\"line c{colour}{dashed}\" d=\"{path}\"/>"));
        }
        svg.push_str("</svg>");
        svg
    }
}

/// The frame of a plot.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Numbers on the horizontal axis, by position.
    pub(super) x_ticks: Vec<(f64, String)>,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    height: f64,
}

impl<'a> Frame<'a> {
    /// Both axes linear.
    pub(super) fn new(x: (f64, f64), y: (f64, f64), x_label: &'a str, y_label: &'a str) -> Self {
        Self::of_height(HEIGHT, x, y, x_label, y_label)
    }

    /// The same with a plotted area as high as it is wide.
    pub(super) fn square(x: (f64, f64), y: (f64, f64), x_label: &'a str, y_label: &'a str) -> Self {
        Self::of_height(WIDTH - LEFT - RIGHT + TOP + BOTTOM, x, y, x_label, y_label)
    }

    fn of_height(
        height: f64,
        x: (f64, f64),
        y: (f64, f64),
        x_label: &'a str,
        y_label: &'a str,
    ) -> Self {
        let x = Axis::new(x.0, x.1, LEFT, WIDTH - RIGHT);
        let y = Axis::new(y.0, y.1, height - BOTTOM, TOP);
        let x_ticks = x.ticks(8).into_iter().map(|tick| (tick, short(tick))).collect();
        Self { x, y, x_ticks, x_label, y_label, height }
    }

    /// How many numbers the vertical axis has room for.
    fn y_ticks(&self) -> usize {
        (self.height / TICK_HEIGHT) as usize
    }

    /// Begins the element; screen readers read `label`.
    pub(super) fn begin(&self, label: &str) -> String {
        let (label, height) = (escape(label), self.height);
        let mut svg =
            format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{label}\">");
        let (left, right, bottom) = (LEFT, WIDTH - RIGHT, height - BOTTOM);
        for tick in self.y.ticks(self.y_ticks()) {
            let (at, text) = (self.y.at(tick), short(tick));
            push(&mut svg, format_args!("<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/>"));
            let (text_x, text_y) = (left - 5.0, at + 3.5);
            push(&mut svg, format_args!("<text x=\"{text_x}\" y=\"{text_y:.1}\" class=\"end\">"));
            push(&mut svg, format_args!("{text}</text>"));
        }
        for (tick, text) in &self.x_ticks {
            let (at, text_y, mark) = (self.x.at(*tick), bottom + 14.0, bottom + 4.0);
            push(&mut svg, format_args!("<path class=\"axis\" d=\"M{at:.1} {bottom}V{mark}\"/>"));
            push(&mut svg, format_args!("<text x=\"{at:.1}\" y=\"{text_y}\" class=\"middle\">"));
            push(&mut svg, format_args!("{text}</text>"));
        }
        push(&mut svg, format_args!("<path class=\"axis\" d=\"M{left} {TOP}V{bottom}H{right}\"/>"));
        let unit = escape(self.y_label);
        push(&mut svg, format_args!("<text x=\"{left}\" y=\"{}\">{unit}</text>", TOP - 8.0));
        let (middle, end) = ((left + right) / 2.0, height - 4.0);
        let label = escape(self.x_label);
        push(&mut svg, format_args!("<text x=\"{middle}\" y=\"{end}\" class=\"middle\">"));
        push(&mut svg, format_args!("{label}</text>"));
        svg
    }
}

/// A round number without the zeros at its end.
pub(super) fn short(number: f64) -> String {
    let text = words::number(number);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

pub(super) fn push(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("writing to a text does not fail");
}

/// Maps values to positions on the page.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from `low` to `high`; if both are equal it gets length 1.
    fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high.is_finite() && high > low { high } else { low + 1.0 };
        Self { low, high, from, to }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// Round numbers along the axis, about `count` of them.
    fn ticks(&self, count: usize) -> Vec<f64> {
        let step = round_step((self.high - self.low) / count as f64);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last.min(first + 4 * count as i64)).map(|n| n as f64 * step).collect()
    }
}

/// The next number of the form 1, 2 or 5 times a power of ten.
pub(super) fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let rounded = [1.0, 2.0, 5.0].map(|digit| digit * power);
    rounded.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
}

/// The vertical axis for these series: from zero, or the lowest point if that is below, to a round
/// number at or above the highest point. Never of length zero.
pub(crate) fn range<'a>(series: impl Iterator<Item = &'a [Option<f64>]>) -> (f64, f64) {
    let values = series.flat_map(points).flatten();
    let (low, high) =
        values.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low == high {
        return (0.0, 1.0);
    }
    let step = round_step((high - low) / 5.0);
    ((low / step).floor() * step, (high / step).ceil() * step)
}

/// The series as drawn: means of neighbouring samples, `None` for a gap.
fn points(samples: &[Option<f64>]) -> impl Iterator<Item = Option<f64>> {
    samples.chunks(samples_per_point(samples.len())).map(|group| {
        let values: Vec<f64> = group.iter().flatten().copied().filter(|v| v.is_finite()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then_some(mean)
    })
}

/// How many samples are drawn as one point, their mean.
pub(super) fn samples_per_point(samples: usize) -> usize {
    samples.div_ceil(POINTS_MAX).max(1)
}

/// The samples as an SVG path; a gap begins a new stroke.
fn path(samples: &[Option<f64>], interval: f64, x: &Axis, y: &Axis) -> String {
    let together = samples_per_point(samples.len());
    let mut path = String::new();
    let mut is_drawing = false;
    for (index, value) in points(samples).enumerate() {
        let Some(value) = value else {
            is_drawing = false;
            continue;
        };
        let first = index * together;
        let end = (first + together).min(samples.len());
        let middle = (first + end) as f64 / 2.0 * interval;
        let command = if is_drawing { 'L' } else { 'M' };
        push(&mut path, format_args!("{command}{:.1} {:.1}", x.at(middle), y.at(value)));
        if !is_drawing {
            // A single point is a stroke of length zero, which a round cap turns into a dot.
            path.push_str("h0");
        }
        is_drawing = true;
    }
    path
}

/// A text inside HTML or SVG, in an attribute or not.
pub(crate) fn escape(text: &str) -> String {
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

    fn plot(samples: &[Option<f64>], duration_s: f64) -> String {
        let line = Line { colour: 9, is_dashed: true, samples };
        let y = range([samples].into_iter());
        let (title, y_label) = ("a < b".to_owned(), "Mbit/s".to_owned());
        let marks = vec![Mark { x: 0.5, colour: 1, is_dashed: false }];
        let (x_label, x_end) = (TIME, duration_s);
        Plot { title, x_label, y_label, interval: 0.1, x_end, y, marks, lines: vec![line] }.svg()
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape(r#"<a b="c">&'"#), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
        assert!(plot(&[Some(1.0)], 1.0).contains("a &lt; b"));
    }

    #[test]
    fn empty_constant_and_endless_series_have_no_division_by_zero() {
        let series: [&[Option<f64>]; 5] = [
            &[],
            &[None],
            &[Some(0.0); 3],
            &[Some(7.0); 3],
            &[Some(f64::NAN), Some(f64::INFINITY)],
        ];
        for samples in series {
            for duration_s in [0.0, 1.0, f64::NAN, f64::INFINITY] {
                let svg = plot(samples, duration_s);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{samples:?}: {svg}");
            }
        }
    }

    #[test]
    fn marks_beyond_the_axis_are_left_out() {
        let mark = "<path class=\"line c1\" d=\"M";
        assert!(plot(&[Some(1.0)], 1.0).contains(mark) && !plot(&[Some(1.0)], 0.4).contains(mark));
    }

    #[test]
    fn the_range_holds_every_value_and_zero() {
        for (values, expected) in [
            (vec![], (0.0, 1.0)),
            (vec![Some(0.0)], (0.0, 1.0)),
            (vec![Some(63.0), None, Some(12.0)], (0.0, 80.0)),
            (vec![Some(-3.0), Some(4.0)], (-4.0, 4.0)),
            (vec![Some(-3.0)], (-3.0, 0.0)),
        ] {
            assert_eq!(range([values.as_slice()].into_iter()), expected, "{values:?}");
        }
    }

    #[test]
    fn ticks_have_no_zeros_at_their_end() {
        let texts = [0.5, 1.5, 2.0, 100.0, 1e-7].map(short);
        assert_eq!(texts, ["0.5", "1.5", "2", "100", "1.0e-7"]);
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            Axis::new(0.0, 40.0, 0.0, 1.0).ticks(8),
            [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]
        );
        assert_eq!(Axis::new(-1.0, 1.0, 0.0, 1.0).ticks(4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(Axis::new(3.0, 3.0, 0.0, 1.0).ticks(2), [3.0, 3.5, 4.0]);
    }

    #[test]
    fn larger_values_stand_higher_and_later_ones_further_right() {
        let (x, y) = (Axis::new(0.0, 1.0, 0.0, 100.0), Axis::new(0.0, 10.0, 100.0, 0.0));
        let samples = [Some(0.0), Some(10.0)];
        assert_eq!(path(&samples, 0.5, &x, &y), "M25.0 100.0h0L75.0 0.0");
    }

    #[test]
    fn a_gap_begins_a_new_stroke() {
        let (x, y) = (Axis::new(0.0, 1.0, 0.0, 100.0), Axis::new(0.0, 10.0, 100.0, 0.0));
        let samples = [Some(5.0), None, Some(5.0), Some(5.0)];
        assert_eq!(path(&samples, 0.25, &x, &y), "M12.5 50.0h0M62.5 50.0h0L87.5 50.0");
    }

    #[test]
    fn more_samples_than_a_screen_shows_are_averaged() {
        let (x, y) = (Axis::new(0.0, 1.0, 0.0, 100.0), Axis::new(0.0, 10.0, 100.0, 0.0));
        let samples: Vec<Option<f64>> = (0..1000).map(|i| Some(f64::from(i % 2) * 10.0)).collect();
        assert_eq!(samples_per_point(samples.len()), 4);
        let path = path(&samples, 0.001, &x, &y);
        assert_eq!(path.matches(['M', 'L']).count(), 250);
        assert!(path.starts_with("M0.2 50.0"), "{path}");
        assert_eq!(range([samples.as_slice()].into_iter()), (0.0, 5.0));
    }
}
