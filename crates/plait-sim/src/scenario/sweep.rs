//! `[[sweep]]`: one scenario, many cells; and the cells that a paper's value or a check covers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plait_toml::{Entry, Node, Place, Problem, Section, Table, Value};
use toml::Value as Toml;

use super::Scenario;
use super::error::no_such;
use super::settings;

/// The settings of a cell: for each axis of the sweep its value, or its label.
pub type Settings = BTreeMap<String, Toml>;

/// One combination of a sweep's values.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// `NAME=VALUE` of each axis in the file's order, joined by commas; `base` without a sweep.
    pub name: String,
    /// The same as values.
    pub settings: Settings,
    /// The scenario with these values.
    pub scenario: Scenario,
}

/// One dimension of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// Names the dimension in cells, checks and the paper's values.
    pub name: String,
    /// The option that it sets, dotted; empty when each value is a section of settings.
    pub key: String,
    /// Its values, or their labels.
    pub values: Vec<Toml>,
    /// The values in the file; after a setting of the command line `values` may hold fewer or
    /// others.
    pub declared: Vec<Toml>,
}

/// An axis and the values to put into the tree.
pub(super) struct Dimension {
    pub(super) axis: Axis,
    place: Place,
    nodes: Vec<Node>,
}

/// Cells that one scenario may have.
const CELLS_MAX: usize = 4096;

/// Reads the sweep; `declared` gives an axis' values in the file, by name.
pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    declared: &BTreeMap<String, Vec<Toml>>,
) -> Vec<Dimension> {
    let mut dimensions: Vec<Dimension> = Vec::new();
    let mut cells: usize = 1;
    for mut section in sections {
        let Some(dimension) = read(&mut section, declared) else {
            section.finish();
            continue;
        };
        let axis = &dimension.axis;
        let same = |other: &Dimension| {
            let same_key = !axis.key.is_empty() && other.axis.key == axis.key;
            other.axis.name == axis.name || same_key
        };
        if dimensions.iter().any(same) {
            let text = format!("another [[sweep]] has the name \"{}\" or the same key", axis.name);
            let problem = Problem::new(text, "sweep each key once; give another `name`");
            section.problem("key", problem);
        }
        cells = cells.saturating_mul(dimension.nodes.len());
        if cells > CELLS_MAX {
            let text = format!("the sweep has {cells} cells");
            let help = format!("keep at most {CELLS_MAX}, or make two scenarios of it");
            section.problem("values", Problem::new(text, help));
        }
        section.finish();
        dimensions.push(dimension);
    }
    dimensions
}

fn read(section: &mut Section<'_>, declared: &BTreeMap<String, Vec<Toml>>) -> Option<Dimension> {
    let key = if holds_settings(section) {
        Some(String::new())
    } else {
        section.required_text("key", "key = \"bond.scheduler.algorithm\"")
    };
    let name = section.text("name").or(key.as_deref().map(|key| last_part(key).to_owned()));
    if !section.holds_any(&["values"]) {
        section.missing("values", "values = [0.1, 0.5, 1.0]");
    }
    let values = section.get("values");
    let labels: Vec<String> = section.texts("labels").into_iter().map(|(text, _)| text).collect();
    let nodes = match &values?.value {
        Value::List(nodes) if !nodes.is_empty() => nodes.clone(),
        _ => {
            let problem = Problem::new("no list of values", "write values = [first, second]");
            section.problem("values", problem);
            return None;
        }
    };
    let settings: Vec<Toml> = if labels.is_empty() {
        nodes.iter().map(Node::to_toml).collect()
    } else {
        labels.into_iter().map(Toml::String).collect()
    };
    if settings.len() != nodes.len() {
        let text = format!("{} labels for {} values", settings.len(), nodes.len());
        section.problem("labels", Problem::new(text, "write one label for each value"));
        return None;
    }
    if settings.iter().any(|value| matches!(value, Toml::Table(_) | Toml::Array(_))) {
        let problem = Problem::new("lists and tables need labels", "add labels = [\"…\", …]");
        section.problem("values", problem);
        return None;
    }
    let repeated = (1..settings.len()).find(|i| holds(&settings[..*i], &settings[*i]));
    if let Some(i) = repeated {
        let text = format!("{} stands here twice", display(&settings[i]));
        section.problem("values", Problem::new(text, "keep one of the two"));
    }
    let (name, key) = name.zip(key)?;
    let declared = declared.get(&name).cloned().unwrap_or_else(|| settings.clone());
    let axis = Axis { name, key, values: settings, declared };
    Some(Dimension { axis, place: section.place_of("key"), nodes })
}

/// Whether the sweep has a name instead of a key, and sections as values.
fn holds_settings(section: &mut Section<'_>) -> bool {
    if section.holds_any(&["key"]) || !section.holds_any(&["name"]) {
        return false;
    }
    let Some(Value::List(nodes)) = section.get("values").map(|node| &node.value) else {
        return false;
    };
    !nodes.is_empty() && nodes.iter().all(|node| matches!(node.value, Value::Table(_)))
}

/// Puts a value of a sweep into the tree: in the place of its key, or without a key, each of its
/// settings in its own place.
fn put(table: &mut Table, key: &str, value: &Node) -> Result<(), Problem> {
    if key.is_empty() {
        put_settings(table, "", value)
    } else {
        settings::set(table, key, value.clone())
    }
}

fn put_settings(table: &mut Table, path: &str, value: &Node) -> Result<(), Problem> {
    let Value::Table(settings) = &value.value else {
        return settings::set(table, path, value.clone());
    };
    settings.iter().try_for_each(|(part, entry)| {
        let path = if path.is_empty() { part.clone() } else { format!("{path}.{part}") };
        put_settings(table, &path, &entry.node)
    })
}

fn last_part(key: &str) -> &str {
    key.rsplit_once('.').map_or(key, |(_, last)| last)
}

/// The `[[sweep]]` over a key, or of that name.
pub(super) fn axis_of<'a>(root: &'a mut Table, key: &str) -> Option<&'a mut Table> {
    let Value::List(sweeps) = &mut root.get_mut("sweep")?.node.value else { return None };
    let tables = sweeps.iter_mut().filter_map(|node| match &mut node.value {
        Value::Table(table) => Some(table),
        _ => None,
    });
    let mut tables = tables;
    tables.find(|table| match (text_of(table, "key"), text_of(table, "name")) {
        (Some(swept), name) => swept == key || name.unwrap_or(last_part(swept)) == key,
        (None, Some(name)) => name == key,
        (None, None) => false,
    })
}

fn text_of<'a>(table: &'a Table, option: &str) -> Option<&'a str> {
    match &table.get(option)?.node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Replaces a sweep's values: by one or a list of them, or by labels of the values to keep.
pub(super) fn narrow(axis: &mut Table, value: Node) {
    let place = value.place.clone();
    let given = match value.value {
        Value::List(nodes) => nodes,
        _ => vec![value],
    };
    let list = |axis: &Table, option: &str| match axis.get(option).map(|entry| &entry.node.value) {
        Some(Value::List(nodes)) => nodes.clone(),
        _ => Vec::new(),
    };
    let (labels, values) = (list(axis, "labels"), list(axis, "values"));
    let index_of = |node: &Node| {
        labels.iter().take(values.len()).position(|label| label.to_toml() == node.to_toml())
    };
    let kept: Option<Vec<usize>> = given.iter().map(index_of).collect();
    let mut put = |option: &str, nodes| {
        let node = Node { place: place.clone(), value: Value::List(nodes) };
        axis.insert(option.into(), Entry { key_place: place.clone(), node });
    };
    match kept {
        Some(kept) => {
            put("labels", kept.iter().map(|i| labels[*i].clone()).collect());
            put("values", kept.iter().map(|i| values[*i].clone()).collect());
        }
        None => {
            put("values", given);
            axis.remove("labels");
        }
    }
}

/// All combinations of the dimensions' values, the last dimension changing fastest: name, settings
/// and tree of each. A key that does not exist is passed to `refuse` with its place.
pub(super) fn expand(
    root: &Table,
    dimensions: &[Dimension],
    mut refuse: impl FnMut(&Place, Problem),
) -> Vec<(String, Settings, Table)> {
    let mut cells = vec![(String::new(), Settings::new(), root.clone())];
    for dimension in dimensions {
        let Axis { name: axis, key, values, .. } = &dimension.axis;
        let mut next = Vec::new();
        for (name, settings, table) in &cells {
            for (value, node) in values.iter().zip(&dimension.nodes) {
                let mut table = table.clone();
                if let Err(problem) = put(&mut table, key, node) {
                    refuse(&dimension.place, problem);
                    continue;
                }
                let mut name = name.clone();
                let comma = if name.is_empty() { "" } else { "," };
                let written = write!(name, "{comma}{axis}={}", display(value));
                written.expect("writing to a text does not fail");
                let mut settings = settings.clone();
                settings.insert(axis.clone(), value.clone());
                next.push((name, settings, table));
            }
        }
        cells = next;
    }
    if dimensions.is_empty() {
        cells[0].0 = "base".into();
    }
    cells
}

/// A value without quotes; whole numbers without a fraction, however written.
pub fn display(value: &Toml) -> String {
    match value {
        Toml::String(text) => text.clone(),
        Toml::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

fn holds(values: &[Toml], wanted: &Toml) -> bool {
    values.iter().any(|value| same_value(value, wanted))
}

fn same_value(a: &Toml, b: &Toml) -> bool {
    match (as_number(a), as_number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// A number, whole or not.
pub(super) fn as_number(value: &Toml) -> Option<f64> {
    match value {
        Toml::Integer(number) => Some(*number as f64),
        Toml::Float(number) => Some(*number),
        _ => None,
    }
}

/// Chooses cells by their settings: for each axis named, the accepted values. Without any axis,
/// every cell.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Selector(BTreeMap<String, Vec<Toml>>);

impl Selector {
    /// Chooses the cells in which each of these axes has one of the values.
    pub fn choosing(axes: impl IntoIterator<Item = (String, Vec<Toml>)>) -> Self {
        Self(axes.into_iter().collect())
    }

    /// Whether a cell with these settings is chosen.
    pub fn chooses(&self, settings: &Settings) -> bool {
        let fits = |(axis, values): (&String, &Vec<Toml>)| {
            settings.get(axis).is_some_and(|value| holds(values, value))
        };
        self.0.iter().all(fits)
    }

    /// The settings without the axes named here: those that the cells it distinguishes have in
    /// common.
    pub(super) fn others(&self, settings: &Settings) -> Settings {
        let mut others = settings.clone();
        others.retain(|axis, _| !self.0.contains_key(axis));
        others
    }

    /// The axes that it chooses by, each with the accepted values.
    pub fn axes(&self) -> impl Iterator<Item = (&str, &[Toml])> {
        self.0.iter().map(|(axis, values)| (axis.as_str(), values.as_slice()))
    }

    /// Whether it chooses by this axis.
    pub(super) fn names(&self, axis: &str) -> bool {
        self.0.contains_key(axis)
    }

    /// Chooses of its cells only those with this value of an axis, unless it chooses by that axis
    /// already.
    pub(super) fn also(&mut self, axis: &str, value: &Toml) {
        self.0.entry(axis.to_owned()).or_insert_with(|| vec![value.clone()]);
    }

    /// For people: `k=0.5|1, t_dwd_ms=50`; empty when every cell is chosen.
    pub fn describe(&self) -> String {
        let axis = |(axis, values): (&String, &Vec<Toml>)| {
            let values: Vec<String> = values.iter().map(display).collect();
            format!("{axis}={}", values.join("|"))
        };
        self.0.iter().map(axis).collect::<Vec<_>>().join(", ")
    }
}

/// Reads a selector, such as `where = { k = [0.5, 1.0] }`.
pub(super) fn read_selector(
    section: &mut Section<'_>,
    key: &'static str,
    axes: &[Axis],
) -> Selector {
    let mut selector = Selector::default();
    for (name, node) in section.free_table(key) {
        let option = format!("{key}.{name}");
        let Some(axis) = axes.iter().find(|axis| axis.name == name) else {
            let known = axes.iter().map(|axis| axis.name.clone()).collect();
            let problem = no_such("axis of a [[sweep]]", name, known);
            section.problem_at(&node.place, &option, problem);
            continue;
        };
        let nodes = match &node.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let values: Vec<Toml> = nodes.iter().map(Node::to_toml).collect();
        for (value, node) in values.iter().zip(nodes) {
            if !holds(&axis.declared, value) && !holds(&axis.values, value) {
                let known = axis.declared.iter().map(display).collect();
                let kind = "value of the [[sweep]]";
                let problem = no_such(kind, &display(value), known);
                section.problem_at(&node.place, &option, problem);
            }
        }
        selector.0.insert(name.to_owned(), values);
    }
    selector
}
