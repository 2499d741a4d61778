//! Horizontal bars, each below its name, as inline SVG.

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
    /// Smallest and largest of the values whose median `value` is.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Position of a ring: the value to compare with.
    pub(crate) mark: Option<f64>,
    /// Which of the [`COLOURS`].
    pub(crate) colour: usize,
}

/// The whole of which bars are shares.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Whole {
    /// Position of a line across them.
    pub(crate) at: f64,
    /// The largest value of several drawings with a common scale.
    pub(crate) longest: f64,
}

/// The bars as an SVG element. They begin at zero; smaller values are drawn as zero. A bar without
/// a name is placed close to the one above.
pub(crate) fn bars(title: &str, all: &[Bar], whole: Option<Whole>) -> String {
    let ends = all.iter().flat_map(|bar| [bar.value, bar.high, bar.mark.unwrap_or_default()]);
    let given = whole.into_iter().flat_map(|whole| [whole.at, whole.longest]);
    let longest = ends.chain(given).filter(|end| end.is_finite()).fold(0.0, f64::max);
    let line = whole.map_or(0.0, |whole| whole.at);
    let scale = if longest > 0.0 { (WIDTH - VALUE) / longest } else { 0.0 };
    let at = |value: f64| if value.is_finite() { value.max(0.0) * scale } else { 0.0 };
    let title = escape(title);
    let mut svg = String::new();
    let mut bottom = 0.0;
    for bar in all {
        let top = if bar.name.is_empty() { bottom - NAME } else { bottom };
        bottom = top + ROW;
        let (middle, end) = (top + NAME + 3.0 + THICKNESS / 2.0, at(bar.value));
        let colour = bar.colour % COLOURS;
        if !bar.name.is_empty() {
            let (name, y) = (escape(&bar.name), top + NAME - 2.0);
            let text = format_args!("<text x=\"0\" y=\"{y}\" class=\"name\">{name}</text>");
            push(&mut svg, text);
        }
        let path = format_args!("M0 {middle}H{end:.1}");
        push(&mut svg, format_args!("<path class=\"level c{colour}\" d=\"{path}\"/>"));
        if bar.high > bar.low {
            let path = format_args!("M{:.1} {middle}H{:.1}", at(bar.low), at(bar.high));
            push(&mut svg, format_args!("<path class=\"spread\" d=\"{path}\"/>"));
        }
        if let Some(x) = bar.mark.map(at) {
            let place = format_args!("cx=\"{x:.1}\" cy=\"{middle}\"");
            push(&mut svg, format_args!("<circle class=\"ring\" {place} r=\"3.5\"/>"));
        }
        // Otherwise the line would cross a value in front of it.
        let end = bar.value.max(bar.high).max(bar.mark.unwrap_or_default()).max(line);
        let (x, y, value) = (at(end) + 8.0, middle + 4.0, words::number(bar.value));
        push(&mut svg, format_args!("<text x=\"{x:.1}\" y=\"{y}\">{value}</text>"));
    }
    let height = bottom + 4.0;
    let line = match whole {
        Some(whole) => {
            format!("<path class=\"axis\" d=\"M{:.1} 0V{height}\"/>", at(whole.at))
        }
        None => String::new(),
    };
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">{line}{svg}\
         </svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, value: f64) -> Bar {
        Bar { name: name.into(), value, low: value, high: value, mark: None, colour: 0 }
    }

    #[test]
    fn the_longest_bar_leaves_room_for_its_value() {
        let svg = bars("t", &[bar("a < b", 50.0), bar("b", 100.0)], None);
        assert!(svg.contains("a &lt; b") && svg.contains("H134.0") && svg.contains("H268.0"));
    }

    #[test]
    fn nothing_and_no_number_are_drawn_as_nothing() {
        let svg = bars("t", &[bar("a", 0.0), bar("b", f64::NAN), bar("c", -1.0)], None);
        assert!(!svg.contains("NaN") || svg.matches("NaN").count() == 1, "{svg}");
        assert_eq!(svg.matches("H0.0").count(), 3);
    }

    #[test]
    fn shares_stand_before_the_line_of_the_whole_and_nameless_bars_close_to_others() {
        let whole = |longest| Some(Whole { at: 1.0, longest });
        let svg = bars("t", &[bar("a", 0.5), bar("", 0.25)], whole(1.0));
        assert!(svg.contains("class=\"axis\" d=\"M268.0 0V58\""), "{svg}");
        assert!(svg.contains("M0 22.5H134.0") && svg.contains("M0 42.5H67.0"), "{svg}");
        assert_eq!(svg.matches("<text x=\"276.0\"").count(), 2, "no value is crossed: {svg}");
        for (value, longest) in [(2.0, 1.0), (0.5, 2.0)] {
            let scaled = bars("t", &[bar("a", value)], whole(longest));
            assert!(scaled.contains("M134.0 0V"), "{scaled}");
        }
    }
}
