//! Plots of measured points against the varied setting, as inline SVG: medians joined by a line,
//! their spread as a stroke, and rings for other values, such as a paper's.

use super::svg::{COLOURS, Frame, push, range};
use super::words;

/// An axis whose largest value is this many times its smallest is logarithmic.
const RATIO_FOR_LOG: f64 = 30.0;
/// Least distance of two numbers on the horizontal axis.
const TICK_DISTANCE: f64 = 30.0;
/// Values passed together for the vertical axis: few enough that none are averaged.
const TOGETHER: usize = 100;

/// One measured point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Point {
    pub(super) x: f64,
    /// The median, and the ends of its spread.
    pub(super) y: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Position of a ring.
    pub(super) mark: Option<f64>,
}

/// Points joined by a line.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    /// In the order of the horizontal axis.
    pub(super) points: Vec<Point>,
}

/// A plot of curves; the n-th has the n-th colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Points<'a> {
    pub(super) title: &'a str,
    pub(super) x_label: &'a str,
    pub(super) y_label: &'a str,
    pub(super) range: &'a Range,
    pub(super) curves: &'a [Curve],
}

/// The common ends of the axes of plots shown side by side.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Range {
    scale: Scale,
    /// Every value of the horizontal axis, ascending.
    x: Vec<f64>,
    y: (f64, f64),
}

impl Range {
    pub(super) fn of<'a>(points: impl Iterator<Item = &'a Point> + Clone) -> Self {
        let mut x: Vec<f64> = points.clone().map(|point| point.x).collect();
        x.sort_by(f64::total_cmp);
        x.dedup();
        let of = |point: &Point| [Some(point.low), Some(point.high), Some(point.y), point.mark];
        let values: Vec<Option<f64>> = points.flat_map(of).collect();
        Self { scale: Scale::of(&x), x, y: range(values.chunks(TOGETHER)) }
    }
}

impl Points<'_> {
    /// The plot as an SVG element.
    pub(super) fn svg(&self) -> String {
        let (scale, frame) = (self.range.scale, self.frame());
        let mut svg = frame.begin(&format!("{}, {}", self.title, self.y_label));
        for (colour, curve) in self.curves.iter().enumerate() {
            let [mut path, mut dots, mut spreads, mut rings] = [const { String::new() }; 4];
            let colour = colour % COLOURS;
            for point in curve.points.iter().filter(|point| point.y.is_finite()) {
                let (x, y) = (frame.x.at(scale.place(point.x)), frame.y.at(point.y));
                let command = if path.is_empty() { 'M' } else { 'L' };
                push(&mut path, format_args!("{command}{x:.1} {y:.1}"));
                push(&mut dots, format_args!("M{x:.1} {y:.1}h0"));
                if point.high > point.low {
                    let (low, high) = (frame.y.at(point.low), frame.y.at(point.high));
                    let stroke = format_args!("M{x:.1} {low:.1}V{high:.1}");
                    let class = format_args!("spread c{colour}");
                    push(&mut spreads, format_args!("<path class=\"{class}\" d=\"{stroke}\"/>"));
                }
                if let Some(mark) = point.mark.map(|mark| frame.y.at(mark)) {
                    let place = format_args!("cx=\"{x:.1}\" cy=\"{mark:.1}\"");
                    let class = format_args!("ring c{colour}");
                    push(&mut rings, format_args!("<circle class=\"{class}\" {place} r=\"4\"/>"));
                }
            }
            svg.push_str(&spreads);
            push(&mut svg, format_args!("<path class=\"line c{colour}\" d=\"{path}\"/>"));
            push(&mut svg, format_args!("<path class=\"dot c{colour}\" d=\"{dots}\"/>"));
            svg.push_str(&rings);
        }
        svg.push_str("</svg>");
        svg
    }

    fn frame(&self) -> Frame<'_> {
        let Range { scale, ref x, y } = *self.range;
        let ends = (x.first().copied().unwrap_or(0.0), x.last().copied().unwrap_or(1.0));
        let ends = (scale.place(ends.0), scale.place(ends.1));
        // Room for the first and the last point.
        let margin = (ends.1 - ends.0) * 0.03;
        let ends = (ends.0 - margin, ends.1 + margin);
        let mut frame = Frame::new(ends, y, self.x_label, self.y_label);
        if scale == Scale::Ratios {
            let mut last = f64::NEG_INFINITY;
            let mut fits = |tick: &(f64, String)| {
                let at = frame.x.at(tick.0);
                let fits = at - last >= TICK_DISTANCE;
                last = if fits { at } else { last };
                fits
            };
            let ticks = x.iter().map(|value| (scale.place(*value), words::number(*value)));
            frame.x_ticks = ticks.filter(|tick| fits(tick)).collect();
        }
        frame
    }
}

/// The scale of the horizontal axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Steps,
    Ratios,
}

impl Scale {
    /// Chosen for ascending values.
    fn of(values: &[f64]) -> Self {
        match values {
            [low, .., high] if *low > 0.0 && high / low >= RATIO_FOR_LOG => Self::Ratios,
            _ => Self::Steps,
        }
    }

    fn place(self, value: f64) -> f64 {
        match self {
            Self::Steps => value,
            Self::Ratios => value.log10(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: &[(f64, f64)]) -> String {
        let point = |&(x, y): &(f64, f64)| Point { x, y, low: y, high: y, mark: None };
        let curve = Curve { name: String::new(), points: points.iter().map(point).collect() };
        let range = Range::of(curve.points.iter());
        let curves = std::slice::from_ref(&curve);
        Points { title: "a < b", x_label: "x", y_label: "y", range: &range, curves }.svg()
    }

    #[test]
    fn wide_axes_go_in_equal_ratios_and_others_in_equal_steps() {
        let wide = plot(&[(1.0, 1.0), (10.0, 1.0), (100.0, 1.0)]);
        for tick in [">1</text>", ">10</text>", ">100</text>"] {
            assert!(wide.contains(tick), "{wide}");
        }
        assert!(!plot(&[(0.0, 1.0), (100.0, 1.0)]).contains(">100.0<"));
        assert_eq!(Scale::of(&[0.0, 100.0]), Scale::Steps);
        assert_eq!(Scale::of(&[2.0, 59.0]), Scale::Steps);
    }

    #[test]
    fn points_that_are_no_numbers_leave_no_trace() {
        for points in [&[][..], &[(1.0, f64::NAN)], &[(5.0, 3.0)], &[(0.0, 0.0), (0.0, 0.0)]] {
            let svg = plot(points);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{points:?}: {svg}");
        }
        assert!(plot(&[]).contains("a &lt; b"));
    }
}
