//! Applies settings of the command line and of sweeps: puts a value in the place that a key names.

use plait_toml::{Entry, Node, Place, Problem, Table, Value};

/// Reads the value of a setting `KEY=VALUE`: TOML, or a text without its quotes.
pub(super) fn parse_value(written: &str, place: &Place) -> Node {
    let line = plait_toml::tree::parse_at(place, &format!("value = {written}"));
    let found = line.filter(|line| line.len() == 1).and_then(|mut line| line.remove("value"));
    found.map_or_else(
        || Node { place: place.clone(), value: Value::Text(written.to_owned()) },
        |entry| entry.node,
    )
}

/// Puts `value` in the place that a dotted key names. A section of a list is chosen by its `name`,
/// or by its number from 0; missing sections are created.
pub(super) fn set(root: &mut Table, key: &str, value: Node) -> Result<(), Problem> {
    let place = value.place.clone();
    let (parents, last) = match key.rsplit_once('.') {
        Some((parents, last)) => (parents.split('.').collect(), last),
        None => (Vec::new(), key),
    };
    if last.is_empty() || parents.iter().any(|part| part.is_empty()) {
        let help = "write it as in bond.scheduler.algorithm or app.flow.rate.mbit";
        return Err(Problem::new(format!("\"{key}\" is not a key"), help));
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
                return Err(Problem::new(text, help));
            }
        };
    }
    table.insert(last.to_owned(), Entry { key_place: place, node: value });
    Ok(())
}

pub(super) fn element<'a>(
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
            Err(Problem::new(text, help))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tree(text: &str) -> Table {
        plait_toml::tree::parse(Path::new("x.toml"), text).unwrap()
    }

    fn setting(value: &str) -> Node {
        parse_value(value, &Place::Setting("it".into()))
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
