//! Figures: measured values, and the band each must lie in. One form for people, one for machines.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

/// A measured value.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Number(f64),
    /// Several numbers in words; never checked.
    Text(String),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// One line of a report: a figure that only informs, or a check when it has a band.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: Value,
    pub(crate) unit: Cow<'static, str>,
    /// Least accepted value.
    pub(crate) low: Option<f64>,
    /// Greatest accepted value.
    pub(crate) high: Option<f64>,
    pub(crate) ok: bool,
    /// Where the band comes from; empty for a figure that only informs.
    pub(crate) source: Cow<'static, str>,
}

impl Figure {
    /// A figure in words.
    pub(crate) fn text(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(name.into(), Value::Text(text.into()), "")
    }

    /// A number with its unit; an empty unit counts things.
    pub(crate) fn number(
        name: impl Into<String>,
        value: f64,
        unit: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(name.into(), Value::Number(value), unit)
    }

    /// A throughput.
    pub(crate) fn mbit(name: impl Into<String>, bps: u64) -> Self {
        Self::number(name, bps as f64 / 1e6, "Mbit/s")
    }

    /// A share in parts per million, shown in percent.
    pub(crate) fn percent(name: impl Into<String>, ppm: u64) -> Self {
        Self::number(name, ppm as f64 / 1e4, "%")
    }

    /// A count.
    pub(crate) fn count(name: impl Into<String>, count: u64) -> Self {
        Self::number(name, count as f64, "")
    }

    /// A count that must be zero.
    pub(crate) fn none(
        name: impl Into<String>,
        count: u64,
        source: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::count(name, count).exactly(0.0, source)
    }

    fn new(name: String, value: Value, unit: impl Into<Cow<'static, str>>) -> Self {
        Self { name, value, unit: unit.into(), low: None, high: None, ok: true, source: "".into() }
    }

    /// The value must be this or more.
    pub(crate) fn at_least(self, low: f64, source: impl Into<Cow<'static, str>>) -> Self {
        self.within(Some(low), None, source)
    }

    /// The value must be this or less.
    pub(crate) fn at_most(self, high: f64, source: impl Into<Cow<'static, str>>) -> Self {
        self.within(None, Some(high), source)
    }

    /// The value must be just this.
    pub(crate) fn exactly(self, value: f64, source: impl Into<Cow<'static, str>>) -> Self {
        self.within(Some(value), Some(value), source)
    }

    /// The value must lie between these bounds, if given. A text lies in no band: it says that
    /// there is no value.
    pub(crate) fn within(
        mut self,
        low: Option<f64>,
        high: Option<f64>,
        source: impl Into<Cow<'static, str>>,
    ) -> Self {
        self.ok = match self.value {
            Value::Number(value) => {
                low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high)
            }
            Value::Text(_) => false,
        };
        Self { low, high, source: source.into(), ..self }
    }

    /// Whether the figure has a band.
    pub(crate) fn is_check(&self) -> bool {
        self.low.is_some() || self.high.is_some()
    }

    /// The value for people.
    pub(crate) fn value_text(&self) -> String {
        match &self.value {
            Value::Number(number) => self.with_unit(*number),
            Value::Text(text) => text.clone(),
        }
    }

    /// The band for people.
    pub(crate) fn band_text(&self) -> String {
        match (self.low, self.high) {
            (None, None) => String::new(),
            (Some(low), None) => format!("at least {}", self.with_unit(low)),
            (None, Some(high)) => format!("at most {}", self.with_unit(high)),
            (Some(low), Some(high)) if low == high => format!("just {}", self.with_unit(low)),
            (Some(low), Some(high)) => {
                format!("{} to {}", self.with_unit(low), self.with_unit(high))
            }
        }
    }

    /// The verdict for people; nothing for a figure that only informs.
    pub(crate) fn verdict(&self) -> &'static str {
        match (self.is_check(), self.ok) {
            (false, _) => "",
            (true, true) => "holds",
            (true, false) => "FAILS",
        }
    }

    fn with_unit(&self, number: f64) -> String {
        match self.unit.as_ref() {
            "" => format!("{number:.0}"),
            "ratio" => format!("{number:.3}"),
            "%" => format!("{number:.2} %"),
            "us" => format!("{number:.0} us"),
            unit => format!("{number:.1} {unit}"),
        }
    }
}

/// The last record of a command: its name, its checks, and whether all hold.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a, T> {
    pub(crate) name: &'a str,
    pub(crate) checks: Vec<&'a Figure>,
    pub(crate) ok: bool,
    #[serde(flatten)]
    pub(crate) more: T,
}

impl<'a, T: Serialize> Summary<'a, T> {
    /// A summary of `figures`; those with a band are the checks.
    pub(crate) fn new(name: &'a str, figures: &'a [Figure], more: T) -> Self {
        let checks: Vec<&Figure> = figures.iter().filter(|figure| figure.is_check()).collect();
        let ok = checks.iter().all(|check| check.ok);
        Self { name, checks, ok, more }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_without_a_band_has_no_verdict() {
        assert_eq!(Figure::count("a", 1).verdict(), "");
        assert_eq!(Figure::count("a", 1).at_most(0.0, "s").verdict(), "FAILS");
        assert_eq!(Figure::count("a", 0).exactly(0.0, "s").verdict(), "holds");
        assert_eq!(Figure::number("a", 0.899, "ratio").at_least(0.9, "s").verdict(), "FAILS");
    }

    #[test]
    fn bands_are_words() {
        assert_eq!(Figure::percent("a", 500).at_most(1.0, "s").band_text(), "at most 1.00 %");
        assert_eq!(Figure::count("a", 5).exactly(5.0, "s").band_text(), "just 5");
        let ratio = Figure::number("a", 1.0, "ratio").at_least(0.9, "s");
        assert_eq!(
            (ratio.value_text(), ratio.band_text()),
            ("1.000".into(), "at least 0.900".into())
        );
    }

    #[test]
    fn the_summary_has_the_form_that_machines_read() {
        let figures = [Figure::count("lost", 2).at_most(1.0, "002 §5"), Figure::text("note", "x")];
        let summary = Summary::new("verify", &figures, serde_json::json!({}));
        let text = serde_json::to_string(&summary).unwrap();
        let expected = concat!(
            r#"{"name":"verify","checks":[{"name":"lost","value":2.0,"unit":"","low":null,"#,
            r#""high":1.0,"ok":false,"source":"002 §5"}],"ok":false}"#
        );
        assert_eq!(text, expected);
    }
}
