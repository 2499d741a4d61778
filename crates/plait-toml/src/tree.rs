//! A TOML text as an owned tree in which each value has its place, so that values from elsewhere
//! can replace the text's before anything is checked.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Error;
use crate::place::Place;
use crate::problem::Problem;

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where the value stands.
    pub place: Place,
    /// The value.
    pub value: Value,
}

/// The kinds of TOML value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A whole number that does not fit, as written.
    TooLarge(String),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Boolean(bool),
    /// A date or time, as written; no option takes one.
    Time(String),
    /// A list.
    List(Vec<Node>),
    /// A section in brackets, or a table in braces.
    Table(Table),
}

/// Values by name, each with the place of its key.
pub type Table = BTreeMap<String, Entry>;

/// One line of a table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where the key stands.
    pub key_place: Place,
    /// The value.
    pub node: Node,
}

impl Node {
    /// For error messages.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text \"{text}\""),
            Value::Boolean(value) => value.to_string(),
            Value::Time(time) => format!("the time {time}"),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a section".into(),
            Value::Integer(_) | Value::TooLarge(_) | Value::Float(_) => {
                let number = self.number_as_text().expect("these three are numbers");
                format!("the number {number}")
            }
        }
    }

    /// A number as TOML writes it: one with a fraction shows it even when it is zero.
    pub(crate) fn number_as_text(&self) -> Option<String> {
        match &self.value {
            Value::Integer(number) => Some(number.to_string()),
            Value::TooLarge(digits) => Some(digits.clone()),
            Value::Float(number) => Some(format!("{number:?}").to_lowercase()),
            _ => None,
        }
    }

    /// The value without places.
    pub fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) | Value::TooLarge(text) | Value::Time(text) => {
                toml::Value::String(text.clone())
            }
            Value::Integer(number) => toml::Value::Integer(*number),
            Value::Float(number) => toml::Value::Float(*number),
            Value::Boolean(value) => toml::Value::Boolean(*value),
            Value::List(items) => toml::Value::Array(items.iter().map(Self::to_toml).collect()),
            Value::Table(table) => {
                let entry = |(key, entry): (&String, &Entry)| (key.clone(), entry.node.to_toml());
                toml::Value::Table(table.iter().map(entry).collect())
            }
        }
    }
}

/// Reads a file's text.
///
/// # Errors
///
/// The text is not TOML: the first line that is wrong.
pub fn parse(file: &Path, text: &str) -> Result<Table, Error> {
    let file: Arc<Path> = file.into();
    let lines = Lines::of(text);
    let place = |offset| Place::Line(file.clone(), lines.line_at(offset));
    match DeTable::parse(text) {
        Ok(document) => Ok(table(document.get_ref(), &place)),
        Err(error) => {
            let place = place(error.span().map_or(0, |span| span.start));
            Err(Error::new(place, "", Problem::Syntax(error.message().into())))
        }
    }
}

/// Reads a text whose values all have one place; `None` when it is not TOML.
pub fn parse_at(place: &Place, text: &str) -> Option<Table> {
    let document = DeTable::parse(text).ok()?;
    Some(table(document.get_ref(), &|_| place.clone()))
}

/// Where a text's lines begin, in bytes.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self([0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// The line, counted from 1, of a byte offset.
    fn line_at(&self, offset: usize) -> usize {
        self.0.partition_point(|begin| *begin <= offset)
    }
}

fn table(from: &DeTable<'_>, place: &impl Fn(usize) -> Place) -> Table {
    let entry = |(key, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let key_place = place(key.span().start);
        (key.get_ref().to_string(), Entry { key_place, node: node(value, place) })
    };
    from.iter().map(entry).collect()
}

fn node(from: &Spanned<DeValue<'_>>, place: &impl Fn(usize) -> Place) -> Node {
    let value = match from.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map_or_else(|_| Value::TooLarge(digits.to_string()), Value::Integer),
        DeValue::Float(digits) => {
            let number = digits.as_str().parse();
            Value::Float(number.expect("Rust reads every number that TOML writes"))
        }
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(time) => Value::Time(time.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, place)).collect()),
        DeValue::Table(entries) => Value::Table(table(entries, place)),
    };
    Node { place: place(from.span().start), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let text = Lines::of("a\nb\n");
        let lines = [0, 1, 2, 4, 9].map(|offset| text.line_at(offset));
        assert_eq!(lines, [1, 1, 2, 3, 3]);
    }

    #[test]
    fn every_value_can_be_described() {
        let text = "a = 0x10\nb = 99999999999999999999\nc = 0.0\nd = +inf\ne = 1_000.5\n\
                    f = 2020-01-01\ng = [1]\nh = { x = 1 }\ni = \"t\"\nj = true\n";
        let table = parse(Path::new("x.toml"), text).unwrap();
        let described: Vec<_> = table.values().map(|entry| entry.node.describe()).collect();
        let expected = [
            "the number 16",
            "the number 99999999999999999999",
            "the number 0.0",
            "the number inf",
            "the number 1000.5",
            "the time 2020-01-01",
            "a list",
            "a section",
            "the text \"t\"",
            "true",
        ];
        assert_eq!(described, expected);
    }

    #[test]
    fn what_is_not_toml_is_told_with_its_line() {
        let error = parse(Path::new("x.toml"), "a = 1\na = 2\n").unwrap_err();
        assert_eq!(error.to_string(), "x.toml:2: not TOML: duplicate key");
        assert_eq!(error.help(), "keep one of the two");
        assert!(parse_at(&Place::Setting("a".into()), "a = ").is_none());
    }
}
