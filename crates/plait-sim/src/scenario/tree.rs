//! A scenario's TOML as an owned tree in which each value knows where it comes from, so that
//! settings of the command line and of a sweep can replace values before anything is checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, Problem, ScenarioError};

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// What TOML can say.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date or time, or a number that does not fit; no option of a scenario is one.
    Other(String),
    List(Vec<Node>),
    Table(Table),
}

/// Values by name, each with the place of its key.
pub(super) type Table = BTreeMap<String, Entry>;

/// One line of a table.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key_place: Place,
    pub(super) node: Node,
}

impl Node {
    /// For error messages.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text \"{text}\""),
            Value::Integer(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::Boolean(value) => value.to_string(),
            Value::Other(text) => text.clone(),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a section".into(),
        }
    }

    /// The value without places.
    pub(super) fn to_toml(&self) -> toml::Value {
        match &self.value {
            Value::Text(text) | Value::Other(text) => toml::Value::String(text.clone()),
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
pub(super) fn parse(file: &Path, text: &str) -> Result<Table, ScenarioError> {
    let file: Arc<Path> = file.into();
    let line_at = |offset: usize| {
        let before = &text.as_bytes()[..offset.min(text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let place = |offset| Place::Line(file.clone(), line_at(offset));
    match DeTable::parse(text) {
        Ok(document) => Ok(table(document.get_ref(), &place)),
        Err(error) => Err(ScenarioError {
            place: place(error.span().map_or(0, |span| span.start)),
            option: String::new(),
            problem: Box::new(Problem::Syntax(error.message().into())),
        }),
    }
}

/// Reads the value of a setting `KEY=VALUE`: TOML, or a text without its quotes.
pub(super) fn parse_setting_value(written: &str, place: &Place) -> Node {
    let line = format!("value = {written}");
    let at_setting = |_| place.clone();
    let parsed = DeTable::parse(&line).ok().filter(|document| document.get_ref().len() == 1);
    let found = parsed.and_then(|document| table(document.get_ref(), &at_setting).remove("value"));
    found.map_or_else(
        || Node { place: place.clone(), value: Value::Text(written.to_owned()) },
        |entry| entry.node,
    )
}

fn table(from: &DeTable<'_>, place: &impl Fn(usize) -> Place) -> Table {
    let entry = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let key_place = place(key.span().start);
        (key.get_ref().to_string(), Entry { key_place, node: node(value, place) })
    };
    from.iter().map(entry).collect()
}

fn node(from: &Spanned<DeValue<'_>>, place: &impl Fn(usize) -> Place) -> Node {
    let value = match from.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map_or_else(|_| Value::Other(format!("the number {digits}")), Value::Integer),
        DeValue::Float(digits) => digits
            .as_str()
            .parse()
            .map_or_else(|_| Value::Other(format!("the number {digits}")), Value::Float),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(time) => Value::Other(format!("the time {time}")),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(item, place)).collect()),
        DeValue::Table(entries) => Value::Table(table(entries, place)),
    };
    Node { place: place(from.span().start), value }
}

/// Puts `value` in the place that a dotted key names. A list of sections is entered by the `name`
/// of one of them, or by its number from 0; sections that are missing are made.
pub(super) fn set(root: &mut Table, key: &str, value: Node) -> Result<(), Problem> {
    let place = value.place.clone();
    let (parents, last) = match key.rsplit_once('.') {
        Some((parents, last)) => (parents.split('.').collect(), last),
        None => (Vec::new(), key),
    };
    if last.is_empty() || parents.iter().any(|part| part.is_empty()) {
        let help = "write it as in bond.scheduler.algorithm or app.flow.rate.mbit";
        return Err(Problem::conflict(format!("\"{key}\" is not a key"), help));
    }
    let mut table = root;
    let mut parts = parents.into_iter();
    while let Some(part) = parts.next() {
        let entry = table.entry(part.to_owned()).or_insert_with(|| Entry {
            key_place: place.clone(),
            node: Node { place: place.clone(), value: Value::Table(Table::new()) },
        });
        table = match &mut entry.node.value {
            Value::Table(inner) => inner,
            Value::List(items) => element(part, items, parts.next())?,
            _ => {
                let text = format!("`{part}` holds a value, not a section");
                let help = format!("set the whole of it, as in {part}={{…}}, or another key");
                return Err(Problem::conflict(text, help));
            }
        };
    }
    table.insert(last.to_owned(), Entry { key_place: place, node: value });
    Ok(())
}

fn element<'a>(
    list: &str,
    items: &'a mut [Node],
    selector: Option<&str>,
) -> Result<&'a mut Table, Problem> {
    let name_of = |node: &Node| match &node.value {
        Value::Table(table) => match table.get("name").map(|entry| &entry.node.value) {
            Some(Value::Text(name)) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    };
    let known: Vec<String> = items.iter().filter_map(name_of).collect();
    let wanted = selector.unwrap_or_default();
    let by_name = items.iter().position(|item| name_of(item).as_deref() == Some(wanted));
    let index = by_name.or_else(|| wanted.parse().ok().filter(|index| *index < items.len()));
    match index.map(|index| &mut items[index].value) {
        Some(Value::Table(table)) => Ok(table),
        _ => {
            let text = format!("no [[{list}]] is called \"{wanted}\"");
            let help = if known.is_empty() {
                "give its number, counted from 0".into()
            } else {
                format!("choose one of: {}", known.join(", "))
            };
            Err(Problem::conflict(text, help))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Table {
        parse(Path::new("x.toml"), text).unwrap()
    }

    fn setting(value: &str) -> Node {
        parse_setting_value(value, &Place::Setting("it".into()))
    }

    #[test]
    fn a_setting_needs_no_quotes() {
        let kinds =
            ["3", "0.5", "true", "min-rtt", "\"a b\"", "[1, 2]", "{ a = 1 }", "", "1 \n b = 2"];
        let expected = [
            "the number 3",
            "the number 0.5",
            "true",
            "the text \"min-rtt\"",
            "the text \"a b\"",
            "a list",
            "a section",
            "the text \"\"",
            "the text \"1 \n b = 2\"",
        ];
        assert_eq!(kinds.map(|kind| setting(kind).describe()), expected);
    }

    #[test]
    fn keys_reach_sections_and_named_elements() {
        let mut root = tree("[a]\nb = 1\n[[app]]\nname = \"x\"\n[[app]]\nname = \"y\"\n");
        for key in ["a.b", "a.c.d", "app.y.rate", "app.0.rate", "new.one"] {
            set(&mut root, key, setting("7")).unwrap();
        }
        let text = toml::to_string(
            &Node { place: Place::Setting("".into()), value: Value::Table(root) }.to_toml(),
        )
        .unwrap();
        let expected = tree(
            "[a]\nb = 7\nc.d = 7\n[[app]]\nname = \"x\"\nrate = 7\n[[app]]\nname = \"y\"\n\
             rate = 7\n[new]\none = 7\n",
        );
        let expected = Node { place: Place::Setting("".into()), value: Value::Table(expected) };
        assert_eq!(text, toml::to_string(&expected.to_toml()).unwrap());
    }

    #[test]
    fn a_key_that_leads_nowhere_is_refused() {
        let mut root = tree("a = 1\n[[app]]\nname = \"x\"\n");
        for (key, words) in [
            ("", "\"\" is not a key"),
            ("a..b", "\"a..b\" is not a key"),
            ("a.b", "`a` holds a value, not a section"),
            ("app.z.rate", "no [[app]] is called \"z\""),
            ("app.1.rate", "no [[app]] is called \"1\""),
            ("app.rate", "no [[app]] is called \"\""),
        ] {
            assert_eq!(set(&mut root, key, setting("7")).unwrap_err().to_string(), words, "{key}");
        }
    }
}
