//! One panel as inline SVG.

use super::super::svg::{COLOURS, Frame, escape, push, round_step, short};
use super::super::words;
use super::in_words;
use crate::record::{GivenLine, ScatterPoint, ScatterRecord, Spread};

/// An axis whose smallest value is at most this share of its largest begins at zero.
const SHARE_FROM_ZERO: f64 = 0.5;
/// Least length of an axis as a share of its largest value: differences that are nothing are not
/// made to look large.
const LENGTH_MIN: f64 = 0.1;
/// Room beside the outermost points, as a share of the axis.
const MARGIN: f64 = 0.04;
/// At most so many lines of equal sum.
const SUMS: f64 = 14.0;
/// Room that the number of such a line takes.
const SUM_WIDTH: f64 = 26.0;
const SUM_HEIGHT: f64 = 12.0;
/// More points than this are drawn small.
const LARGE_MAX: usize = 150;

/// One panel.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Plot<'a> {
    pub(super) title: String,
    pub(super) record: &'a ScatterRecord,
    pub(super) points: Vec<&'a ScatterPoint>,
    pub(super) lines: Vec<&'a GivenLine>,
}

/// The class of a line's colour.
pub(super) fn class_of(line: &GivenLine) -> String {
    line.colour.map_or_else(|| "ink".to_owned(), |colour| format!("c{}", colour % COLOURS))
}

impl Plot<'_> {
    /// The plot as an SVG element, and the step of its lines of equal sum if it has any. `labels`
    /// are those of both axes.
    pub(super) fn svg(&self, labels: &[String; 2]) -> (String, Option<f64>) {
        let ScatterRecord { x, y, .. } = self.record;
        let with_unit = |label: &String, unit: &str| match unit {
            "" => label.clone(),
            unit => format!("{label}, {unit}"),
        };
        let (x_label, y_label) = (with_unit(&labels[0], &x.unit), with_unit(&labels[1], &y.unit));
        let ends = self.ends();
        let frame = Frame::square(ends[0], ends[1], &x_label, &y_label);
        let count = self.points.len();
        let label = format!("{}: {y_label} against {x_label}, {count} points", self.title);
        let mut svg = frame.begin(&label);
        let step = self.record.sums.then(|| sums(&mut svg, &frame));
        for line in &self.lines {
            given(&mut svg, &frame, line);
        }
        let spreads = self.points.iter().filter(|point| is_shown(point));
        spreads.for_each(|point| spread(&mut svg, &frame, point));
        for point in self.points.iter().filter(|point| is_shown(point)) {
            self.point(&mut svg, &frame, labels, point);
        }
        svg.push_str("</svg>");
        (svg, step)
    }

    /// The ends of both axes. With one unit they are equally long, so that lines of equal sum fall
    /// alike in all panels.
    fn ends(&self) -> [(f64, f64); 2] {
        let of_points = |of: fn(&ScatterPoint) -> Spread, printed: fn((f64, f64)) -> f64| {
            let values = self.points.iter().flat_map(move |point| {
                let Spread { median, low, high } = of(point);
                [Some(median), Some(low), Some(high), point.paper.map(printed)]
            });
            values.flatten().collect::<Vec<f64>>()
        };
        let mut x = of_points(|point| point.x, |(x, _)| x);
        let mut y = of_points(|point| point.y, |(_, y)| y);
        for (along, up) in self.lines.iter().flat_map(|line| &line.points) {
            x.push(*along);
            y.push(*up);
        }
        let [x, y] = [extent(&x), extent(&y)];
        let longer = (x.1 - x.0).max(y.1 - y.0);
        let is_alike = self.record.x.unit == self.record.y.unit;
        [x, y].map(|ends| if is_alike { lengthened(ends, longer) } else { ends }).map(with_margin)
    }

    fn point(
        &self,
        svg: &mut String,
        frame: &Frame<'_>,
        labels: &[String; 2],
        point: &ScatterPoint,
    ) {
        let (x, y) = (frame.x.at(point.x.median), frame.y.at(point.y.median));
        let colour = colour_of(point);
        let (fine, radius) = if self.points.len() > LARGE_MAX { (" fine", 1.6) } else { ("", 2.7) };
        let told = escape(&in_words(self.record, labels, point));
        let title = format!("<title>{told}</title>");
        if let Some((right, up)) = point.paper {
            let (ring_x, ring_y) = (frame.x.at(right), frame.y.at(up));
            let path = format_args!("M{x:.1} {y:.1}L{ring_x:.1} {ring_y:.1}");
            push(svg, format_args!("<path class=\"to {colour}\" d=\"{path}\"/>"));
            let place = format_args!("cx=\"{ring_x:.1}\" cy=\"{ring_y:.1}\" r=\"4.5\"");
            let (right, up) = (words::number(right), words::number(up));
            let told = format_args!("<title>{told}; in the paper {right} and {up}</title>");
            push(svg, format_args!("<circle class=\"ring {colour}\" {place}>{told}</circle>"));
        }
        if point.hollow {
            let place = format_args!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"");
            let class = format_args!("hollow{fine} {colour}");
            push(svg, format_args!("<circle class=\"{class}\" {place}>{title}</circle>"));
        } else {
            let class = format_args!("dot{fine} {colour}");
            let path = format_args!("M{x:.1} {y:.1}h0");
            push(svg, format_args!("<path class=\"{class}\" d=\"{path}\">{title}</path>"));
        }
    }
}

fn colour_of(point: &ScatterPoint) -> String {
    if point.reference { "ink".to_owned() } else { format!("c{}", point.colour % COLOURS) }
}

fn is_shown(point: &ScatterPoint) -> bool {
    point.x.median.is_finite() && point.y.median.is_finite()
}

/// The cross from the smallest to the largest of both quantities.
fn spread(svg: &mut String, frame: &Frame<'_>, point: &ScatterPoint) {
    let (x, y) = (frame.x.at(point.x.median), frame.y.at(point.y.median));
    let mut path = String::new();
    if point.x.high > point.x.low {
        let (low, high) = (frame.x.at(point.x.low), frame.x.at(point.x.high));
        push(&mut path, format_args!("M{low:.1} {y:.1}H{high:.1}"));
    }
    if point.y.high > point.y.low {
        let (low, high) = (frame.y.at(point.y.low), frame.y.at(point.y.high));
        push(&mut path, format_args!("M{x:.1} {low:.1}V{high:.1}"));
    }
    if !path.is_empty() {
        let colour = colour_of(point);
        push(svg, format_args!("<path class=\"spread {colour}\" d=\"{path}\"/>"));
    }
}

/// A line of the scenario's, or a cross.
fn given(svg: &mut String, frame: &Frame<'_>, line: &GivenLine) {
    let mut path = String::new();
    for (x, y) in line.points.iter().map(|(x, y)| (frame.x.at(*x), frame.y.at(*y))) {
        if line.points.len() == 1 {
            let (left, right, top, bottom) = (x - 4.5, x + 4.5, y - 4.5, y + 4.5);
            let (flat, upright) =
                (format!("M{left:.1} {y:.1}H{right:.1}"), format!("M{x:.1} {top:.1}V{bottom:.1}"));
            path = flat + &upright;
        } else {
            let command = if path.is_empty() { 'M' } else { 'L' };
            push(&mut path, format_args!("{command}{x:.1} {y:.1}"));
        }
    }
    let dashed = if line.points.len() > 1 { " dashed" } else { "" };
    let told = escape(&format!("{}: {}", line.name, line.source));
    let class = format_args!("line{dashed} {}", class_of(line));
    push(svg, format_args!("<path class=\"{class}\" d=\"{path}\"><title>{told}</title></path>"));
}

/// Draws lines of equal sum with their numbers; gives their step.
fn sums(svg: &mut String, frame: &Frame<'_>) -> f64 {
    let (x, y) = (&frame.x, &frame.y);
    let (low, high) = (x.low + y.low, x.high + y.high);
    let step = round_step((high - low) / SUMS);
    let mut numbers: Vec<(f64, f64)> = Vec::new();
    let first = (low / step).floor() as i64 + 1;
    for sum in (first..).map(|count| count as f64 * step).take_while(|sum| *sum < high) {
        let (from, to) = (x.low.max(sum - y.high), x.high.min(sum - y.low));
        let ((left, top), (right, bottom)) =
            ((x.at(from), y.at(sum - from)), (x.at(to), y.at(sum - to)));
        let path = format_args!("M{left:.1} {top:.1}L{right:.1} {bottom:.1}");
        push(svg, format_args!("<path class=\"sum\" d=\"{path}\"/>"));
        // To the right of the line's upper end.
        let (at_x, at_y) = (left + 13.0, top + 11.0);
        let is_inside = at_x + SUM_WIDTH < x.at(x.high) && at_y < y.at(y.low) - 2.0;
        let is_free = |(other_x, other_y): &(f64, f64)| {
            (at_x - other_x).abs() >= SUM_WIDTH || (at_y - other_y).abs() >= SUM_HEIGHT
        };
        if is_inside && numbers.iter().all(is_free) {
            numbers.push((at_x, at_y));
            let text = short(sum);
            push(svg, format_args!("<text x=\"{at_x:.1}\" y=\"{at_y:.1}\">{text}</text>"));
        }
    }
    step
}

/// From the smallest to the largest value, or from zero.
fn extent(values: &[f64]) -> (f64, f64) {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let Some(low) = finite().reduce(f64::min) else { return (0.0, 1.0) };
    let high = finite().fold(low, f64::max);
    let is_from_zero = low >= 0.0 && low <= high * SHARE_FROM_ZERO;
    let low = if is_from_zero { 0.0 } else { low };
    let least = (low.abs().max(high.abs()) * LENGTH_MIN).max(f64::MIN_POSITIVE);
    lengthened((low, if low == high && low == 0.0 { 1.0 } else { high }), least)
}

/// The same made so long at least: on both sides of it, but above what begins at zero.
fn lengthened((low, high): (f64, f64), length: f64) -> (f64, f64) {
    let missing = (length - (high - low)).max(0.0);
    let below = if low >= 0.0 { (missing / 2.0).min(low) } else { missing / 2.0 };
    (low - below, high + missing - below)
}

/// Room for the outermost points; none below zero.
fn with_margin((low, high): (f64, f64)) -> (f64, f64) {
    let room = (high - low) * MARGIN;
    (if low == 0.0 { 0.0 } else { low - room }, high + room)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_at_zero_unless_all_is_far_from_it() {
        for (values, expected) in [
            (&[][..], (0.0, 1.0)),
            (&[0.0], (0.0, 1.0)),
            (&[10.0, 100.0], (0.0, 100.0)),
            (&[60.0, 100.0], (60.0, 100.0)),
            (&[100.0], (95.0, 105.0)),
            (&[-1.0, 1.0, f64::NAN], (-1.0, 1.0)),
        ] {
            assert_eq!(extent(values), expected, "{values:?}");
        }
        assert_eq!(lengthened((0.0, 10.0), 30.0), (0.0, 30.0));
        assert_eq!(lengthened((5.0, 10.0), 25.0), (0.0, 25.0));
        assert_eq!(with_margin((0.0, 100.0)), (0.0, 104.0));
        assert_eq!(with_margin((100.0, 200.0)), (96.0, 204.0));
    }

    #[test]
    fn sums_fall_from_edge_to_edge_and_their_numbers_stand_apart() {
        let frame = Frame::square((0.0, 100.0), (0.0, 100.0), "x", "y");
        let mut svg = String::new();
        assert_eq!(sums(&mut svg, &frame), 20.0);
        assert_eq!(svg.matches("class=\"sum\"").count(), 9);
        // From the middle of the left edge to the middle of the lower one: 40 to 320, 22 to 302.
        assert!(svg.contains("M40.0 246.0L96.0 302.0"), "{svg}");
        assert!(svg.contains("M264.0 22.0L320.0 78.0"), "{svg}");
        assert!(svg.contains(">20</text>") && svg.contains(">160</text>"), "{svg}");
        assert!(svg.contains(">180</text>"), "{svg}");
        let (mut svg, frame) = (String::new(), Frame::square((0.0, 105.0), (0.0, 105.0), "x", "y"));
        sums(&mut svg, &frame);
        assert_eq!(svg.matches("class=\"sum\"").count(), 10);
        assert!(!svg.contains(">200</text>"), "it would reach beyond the frame: {svg}");
    }
}
