//! Horizontal bars, each under its name, as inline SVG.

use super::svg::{COLOURS, WIDTH, escape, push};
use super::words;

/// Height of a bar with its name.
const ROW: f64 = 34.0;
const NAME: f64 = 14.0;
const THICKNESS: f64 = 11.0;
/// Room for the value behind the longest bar.
const VALUE: f64 = 62.0;

/// One bar.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// Smallest and largest of what the value is the median of.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Where a ring stands: what the value is compared with.
    pub(crate) mark: Option<f64>,
    /// Which of the [`COLOURS`].
    pub(crate) colour: usize,
}

/// The bars as an SVG element. They begin at zero; what is below is drawn as zero.
pub(crate) fn bars(title: &str, all: &[Bar]) -> String {
    let ends = all.iter().flat_map(|bar| [bar.value, bar.high, bar.mark.unwrap_or_default()]);
    let longest = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    let scale = if longest > 0.0 { (WIDTH - VALUE) / longest } else { 0.0 };
    let at = |value: f64| if value.is_finite() { value.max(0.0) * scale } else { 0.0 };
    let height = ROW * all.len() as f64 + 4.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(title)
    );
    for (bar, place) in all.iter().zip(0..) {
        let top = f64::from(place) * ROW;
        let (middle, end) = (top + NAME + 3.0 + THICKNESS / 2.0, at(bar.value));
        let colour = bar.colour % COLOURS;
        let name = escape(&bar.name);
        push(
            &mut svg,
            format_args!("<text x=\"0\" y=\"{}\" class=\"name\">{name}</text>", top + NAME - 2.0),
        );
        push(
            &mut svg,
            format_args!("<path class=\"level c{colour}\" d=\"M0 {middle}H{end:.1}\"/>"),
        );
        if bar.high > bar.low {
            let (low, high) = (at(bar.low), at(bar.high));
            push(
                &mut svg,
                format_args!("<path class=\"spread\" d=\"M{low:.1} {middle}H{high:.1}\"/>"),
            );
        }
        if let Some(mark) = bar.mark {
            let x = at(mark);
            push(
                &mut svg,
                format_args!("<circle class=\"ring\" cx=\"{x:.1}\" cy=\"{middle}\" r=\"3.5\"/>"),
            );
        }
        let (x, y) =
            (at(bar.value.max(bar.high).max(bar.mark.unwrap_or_default())) + 6.0, middle + 4.0);
        let value = words::number(bar.value);
        push(&mut svg, format_args!("<text x=\"{x:.1}\" y=\"{y}\">{value}</text>"));
    }
    svg.push_str("</svg>");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, value: f64) -> Bar {
        Bar { name: name.into(), value, low: value, high: value, mark: None, colour: 0 }
    }

    #[test]
    fn the_longest_bar_leaves_room_for_its_value() {
        let svg = bars("t", &[bar("a < b", 50.0), bar("b", 100.0)]);
        assert!(svg.contains("a &lt; b") && svg.contains("H134.0") && svg.contains("H268.0"));
    }

    #[test]
    fn nothing_and_no_number_are_drawn_as_nothing() {
        let svg = bars("t", &[bar("a", 0.0), bar("b", f64::NAN), bar("c", -1.0)]);
        assert!(!svg.contains("NaN") || svg.matches("NaN").count() == 1, "{svg}");
        assert_eq!(svg.matches("H0.0").count(), 3);
    }
}
