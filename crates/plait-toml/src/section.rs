//! Takes options out of a table, one by one, and notes every problem with its place.
//!
//! A [`Section`] records the options that it was asked for; every other one in the file is unknown.
//! It does not know what the options mean.

use crate::error::Problems;
use crate::nearest::nearest;
use crate::place::Place;
use crate::problem::Problem;
use crate::tree::{Entry, Node, Table, Value};

#[cfg(test)]
mod tests;
mod values;

/// A section of a file: `[bond]`, one `[[app]]`, and so on.
#[derive(Debug)]
pub struct Section<'a> {
    problems: &'a Problems,
    /// The prefix of an option's name in messages, such as `[[app]] rate.`.
    prefix: String,
    place: Place,
    entries: Option<&'a Table>,
    asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The top of the file.
    pub fn top(problems: &'a Problems, place: Place, entries: &'a Table) -> Self {
        Self { problems, prefix: String::new(), place, entries: Some(entries), asked: Vec::new() }
    }

    /// The same section with other content.
    pub fn with_entries<'b>(&self, entries: &'b Table) -> Section<'b>
    where
        'a: 'b,
    {
        Section {
            problems: self.problems,
            prefix: self.prefix.clone(),
            place: self.place.clone(),
            entries: Some(entries),
            asked: Vec::new(),
        }
    }

    /// The section's content; `None` when it is absent.
    pub fn entries(&self) -> Option<&'a Table> {
        self.entries
    }

    /// A section in single brackets, or a table in braces; empty when it is absent.
    pub fn single(&mut self, key: &'static str) -> Self {
        let found = self.get(key);
        let prefix = match self.prefix.strip_suffix("] ") {
            Some(outer) if !outer.starts_with("[[") => format!("{outer}.{key}] "),
            Some(_) => format!("{}{key}.", self.prefix),
            None if self.prefix.is_empty() => format!("[{key}] "),
            None => format!("{}{key}.", self.prefix),
        };
        let place = found.map_or_else(|| self.place.clone(), |node| node.place.clone());
        let option = self.option(key);
        let entries = found.and_then(|node| self.entries_of(&option, node));
        Self { problems: self.problems, prefix, place, entries, asked: Vec::new() }
    }

    /// Sections in double brackets; an item that is not a section is noted and left out.
    pub fn many(&mut self, key: &'static str) -> Vec<Self> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let option = match self.prefix.strip_suffix("] ") {
            Some(outer) => format!("[[{}.{key}]]", outer.trim_matches(['[', ']'])),
            None => format!("[[{key}]]"),
        };
        let Value::List(items) = &found.value else {
            self.wrong_type::<()>(&option, found, "a section in double brackets");
            return Vec::new();
        };
        let section = |item: &'a Node| {
            let entries = self.entries_of(&option, item)?;
            Some(Self {
                problems: self.problems,
                prefix: format!("{option} "),
                place: item.place.clone(),
                entries: Some(entries),
                asked: Vec::new(),
            })
        };
        items.iter().filter_map(section).collect()
    }

    /// Sections whose names the file chooses, such as `[links.dsl]`.
    pub fn named(&mut self, key: &'static str) -> Vec<(&'a str, Self)> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let Some(table) = self.entries_of(&format!("[{key}]"), found) else { return Vec::new() };
        let section = |(name, entry): (&'a String, &'a Entry)| {
            let label = format!("[{key}.{name}]");
            let section = Self {
                problems: self.problems,
                prefix: format!("{label} "),
                place: entry.node.place.clone(),
                entries: self.entries_of(&label, &entry.node),
                asked: Vec::new(),
            };
            (name.as_str(), section)
        };
        table.iter().map(section).collect()
    }

    /// Whether no problem was noted so far, here or elsewhere.
    pub fn is_right_so_far(&self) -> bool {
        self.problems.none_found()
    }

    /// The section's place.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether the section stands in the file.
    pub fn is_present(&self) -> bool {
        self.entries.is_some()
    }

    /// Whether the file holds any of the options, with a right or wrong value.
    pub fn holds_any(&self, keys: &[&str]) -> bool {
        self.entries.is_some_and(|entries| keys.iter().any(|key| entries.contains_key(*key)))
    }

    /// The place of an option, or the section's when it is absent.
    pub fn place_of(&self, key: &str) -> Place {
        let entry = self.entries.and_then(|entries| entries.get(key));
        entry.map_or_else(|| self.place.clone(), |entry| entry.node.place.clone())
    }

    /// A value of any type.
    pub fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.know(&[key]);
        self.entries.and_then(|entries| entries.get(key)).map(|entry| &entry.node)
    }

    /// Makes options known without reading them.
    pub fn know(&mut self, keys: &[&'static str]) {
        for key in keys {
            if !self.asked.contains(key) {
                self.asked.push(key);
            }
        }
    }

    /// A table whose keys the file chooses: each key with its value.
    pub fn free_table(&mut self, key: &'static str) -> Vec<(&'a str, &'a Node)> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let entries = self.entries_of(&self.option(key), found);
        let entry = |(key, entry): (&'a String, &'a Entry)| (key.as_str(), &entry.node);
        entries.map(|table| table.iter().map(entry).collect()).unwrap_or_default()
    }

    /// Notes that an option is missing.
    pub fn missing(&self, key: &'static str, example: &'static str) {
        self.problems.add(&self.place, self.option(key), Problem::Missing { example });
    }

    /// Notes a problem of one of the options, or of the section when `key` is empty.
    pub fn problem(&self, key: &str, problem: impl Into<Problem>) {
        self.problem_at(&self.place_of(key), key, problem);
    }

    /// Notes a problem at another place than the option's own.
    pub fn problem_at(&self, place: &Place, key: &str, problem: impl Into<Problem>) {
        self.problems.add(place, self.option(key), problem);
    }

    /// Notes the options that were given but have no effect with `setting`.
    pub fn no_effect(&mut self, keys: &[&'static str], setting: &str, belongs_to: &'static str) {
        for key in keys {
            if self.get(key).is_some() {
                let setting = setting.to_owned();
                self.problem(key, Problem::NoEffect { setting, belongs_to });
            }
        }
    }

    /// Notes every option that nobody asked for, with the known one that it resembles.
    pub fn finish(self) {
        let Some(entries) = self.entries else { return };
        for (key, entry) in entries {
            if self.asked.contains(&key.as_str()) {
                continue;
            }
            let problem = Problem::Unknown {
                kind: if self.prefix.is_empty() { kind_of(&entry.node) } else { "option" },
                near: nearest(key, self.asked.iter().copied()),
                known: self.asked.iter().map(|known| (*known).to_owned()).collect(),
            };
            self.problems.add(&entry.key_place, self.option(key), problem);
        }
    }

    fn option(&self, key: &str) -> String {
        let whole = format!("{}{key}", self.prefix);
        if key.is_empty() { whole.trim_end_matches([' ', '.']).to_owned() } else { whole }
    }

    fn entries_of(&self, option: &str, node: &'a Node) -> Option<&'a Table> {
        match &node.value {
            Value::Table(table) => Some(table),
            _ => self.wrong_type(option, node, "a section in brackets, or a table in braces"),
        }
    }

    fn wrong_type<T>(&self, option: &str, node: &Node, expected: &'static str) -> Option<T> {
        let problem = Problem::WrongType { expected, found: node.describe() };
        self.problems.add(&node.place, option, problem);
        None
    }
}

/// Whether an unknown word at a file's top is an option or a section.
fn kind_of(node: &Node) -> &'static str {
    match &node.value {
        Value::Table(_) => "section",
        Value::List(items) if items.iter().any(|item| matches!(item.value, Value::Table(_))) => {
            "section"
        }
        _ => "option",
    }
}
