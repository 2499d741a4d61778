//! Takes options out of a parsed file, one by one, and notes every problem with its line.
//!
//! A [`Section`] knows the options that it was asked for; whatever else stands in the file is an
//! unknown option. It does not know what the options mean.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, FormProblem, Problem, ValueProblem};

/// What is wrong with one file, gathered while it is read.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    file: &'a Path,
    text: &'a str,
    found: RefCell<Vec<ConfigError>>,
}

impl<'a> Problems<'a> {
    /// Nothing found yet.
    pub(super) fn new(file: &'a Path, text: &'a str) -> Self {
        Self { file, text, found: RefCell::default() }
    }

    /// The line, counted from 1, of a byte offset.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Notes a problem.
    pub(super) fn add(&self, line: usize, option: impl Display, problem: impl Into<Problem>) {
        self.found.borrow_mut().push(ConfigError {
            file: self.file.to_owned(),
            line: Some(line),
            option: option.to_string(),
            problem: problem.into(),
        });
    }

    /// Whether nothing is wrong so far.
    pub(super) fn none_found(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// What was found.
    pub(super) fn into_found(self) -> Vec<ConfigError> {
        self.found.into_inner()
    }
}

/// A value and the line where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located<T> {
    /// The value.
    pub(crate) value: T,
    /// Its line, counted from 1.
    pub(crate) line: usize,
}

/// One section of the file: `[gateway]`, one `[[path]]`, and so on.
#[derive(Debug)]
pub(super) struct Section<'a> {
    problems: &'a Problems<'a>,
    /// The section's name with its brackets; empty for the file's top.
    label: &'static str,
    line: usize,
    entries: Option<&'a DeTable<'a>>,
    asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The top of the file.
    pub(super) fn top(problems: &'a Problems<'a>, document: &'a DeTable<'a>) -> Self {
        Self { problems, label: "", line: 1, entries: Some(document), asked: Vec::new() }
    }

    /// A section that the file may hold once; empty when it is absent.
    pub(super) fn single(&mut self, key: &'static str, label: &'static str) -> Self {
        let found = self.get(key);
        let line = found.map_or(self.line, |value| self.line_of(value));
        let entries = found.and_then(|value| self.table(label, value));
        Self { problems: self.problems, label, line, entries, asked: Vec::new() }
    }

    /// Sections that the file may hold many times.
    pub(super) fn many(&mut self, key: &'static str, label: &'static str) -> Vec<Self> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let DeValue::Array(items) = found.get_ref() else {
            return self
                .wrong_type(label, found, "a section in double brackets")
                .unwrap_or_default();
        };
        let section = |item| Self {
            problems: self.problems,
            label,
            line: self.line_of(item),
            entries: self.table(label, item),
            asked: Vec::new(),
        };
        items.iter().map(section).collect()
    }

    /// The section's first line.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Whether the section stands in the file.
    pub(super) fn is_present(&self) -> bool {
        self.entries.is_some()
    }

    /// A text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<Located<String>> {
        let found = self.get(key)?;
        match found.get_ref() {
            DeValue::String(text) => {
                Some(Located { value: text.clone().into_owned(), line: self.line_of(found) })
            }
            _ => self.wrong_type(&self.option(key), found, "a text in double quotes"),
        }
    }

    /// A text, or a list of texts; empty when the option is absent.
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<Located<String>> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let option = self.option(key);
        let one = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::String(text) => {
                Some(Located { value: text.clone().into_owned(), line: self.line_of(item) })
            }
            _ => self.wrong_type(&option, item, "a text or a list of texts"),
        };
        match found.get_ref() {
            DeValue::Array(items) => items.iter().filter_map(one).collect(),
            _ => one(found).into_iter().collect(),
        }
    }

    /// Texts that `read` understands; what it refuses is noted.
    pub(super) fn parsed_texts<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, Problem>,
    ) -> Vec<Located<T>> {
        let texts = self.texts(key);
        texts.into_iter().filter_map(|text| self.parse(key, text, &read)).collect()
    }

    /// A text that `read` understands; what it refuses is noted.
    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, Problem>,
    ) -> Option<Located<T>> {
        let text = self.text(key)?;
        self.parse(key, text, &read)
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<Located<T>> {
        self.parsed(key, |text| {
            let known = || choices.iter().map(|(name, _)| *name).collect();
            let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
            chosen.ok_or_else(|| ValueProblem::Choice { value: text.into(), known: known() }.into())
        })
    }

    /// A whole number from `low` to `high`, in `unit` (empty for none).
    pub(super) fn integer<T: TryFrom<i64>>(
        &mut self,
        key: &'static str,
        (low, high): (i64, i64),
        unit: &'static str,
    ) -> Option<Located<T>> {
        let found = self.get(key)?;
        let line = self.line_of(found);
        let DeValue::Integer(digits) = found.get_ref() else {
            return self.wrong_type(&self.option(key), found, "a whole number");
        };
        let number = i64::from_str_radix(digits.as_str(), digits.radix()).ok();
        let in_range = number.filter(|number| (low..=high).contains(number));
        match in_range.and_then(|number| T::try_from(number).ok()) {
            Some(value) => Some(Located { value, line }),
            None => {
                let problem = ValueProblem::Range { value: digits.to_string(), low, high, unit };
                self.problems.add(line, self.option(key), problem);
                None
            }
        }
    }

    /// A number above zero and at most `high`, with or without a fraction.
    pub(super) fn positive(&mut self, key: &'static str, high: i64) -> Option<Located<f64>> {
        let found = self.get(key)?;
        let line = self.line_of(found);
        let written = match found.get_ref() {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str(),
            DeValue::Float(digits) => digits.as_str(),
            _ => return self.wrong_type(&self.option(key), found, "a number"),
        };
        let in_range = |number: &f64| *number > 0.0 && *number <= high as f64;
        let number = written.parse().ok().filter(in_range);
        if number.is_none() {
            let problem = ValueProblem::Range {
                value: written.into(),
                low: 0,
                high,
                unit: "(a fraction will do, zero will not)",
            };
            self.problems.add(line, self.option(key), problem);
        }
        number.map(|value| Located { value, line })
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let found = self.get(key)?;
        match found.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => self.wrong_type(&self.option(key), found, "true or false"),
        }
    }

    /// Whether the file holds the option, be its value right or wrong.
    pub(super) fn holds(&self, key: &str) -> bool {
        self.entries.is_some_and(|entries| entries.contains_key(key))
    }

    /// Notes that an option is missing.
    pub(super) fn missing(&self, key: &'static str, example: &'static str) {
        self.problems.add(self.line, self.option(key), FormProblem::Missing { example });
    }

    /// Notes a problem of the section, or of one of its options.
    pub(super) fn problem(&self, line: usize, key: &str, problem: impl Into<Problem>) {
        self.problems.add(line, self.option(key), problem);
    }

    /// Notes the options that were given but cannot act under `setting`.
    pub(super) fn no_effect(
        &mut self,
        keys: &[&'static str],
        setting: &str,
        belongs_to: &'static str,
    ) {
        for key in keys {
            if let Some(found) = self.get(key) {
                let problem = ValueProblem::NoEffect { setting: setting.into(), belongs_to };
                self.problems.add(self.line_of(found), self.option(key), problem);
            }
        }
    }

    /// Notes every option that nobody asked for.
    pub(super) fn finish(self) {
        let Some(entries) = self.entries else { return };
        for (key, _) in entries.iter() {
            let name = key.get_ref().as_ref();
            if self.asked.contains(&name) {
                continue;
            }
            let problem = FormProblem::Unknown {
                kind: if self.label.is_empty() { "section" } else { "option" },
                near: nearest(name, &self.asked),
                known: self.asked.clone(),
            };
            self.problems.add(self.problems.line_at(key.span().start), self.option(name), problem);
        }
    }

    fn get(&mut self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.entries.and_then(|entries| entries.get(key))
    }

    fn option(&self, key: &str) -> String {
        match (self.label, key) {
            ("", key) => key.into(),
            (label, "") => label.into(),
            (label, key) => format!("{label} {key}"),
        }
    }

    fn line_of(&self, value: &Spanned<DeValue<'_>>) -> usize {
        self.problems.line_at(value.span().start)
    }

    fn table(&self, label: &str, value: &'a Spanned<DeValue<'a>>) -> Option<&'a DeTable<'a>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => self.wrong_type(label, value, "a section in brackets"),
        }
    }

    fn parse<T>(
        &self,
        key: &str,
        text: Located<String>,
        read: &impl Fn(&str) -> Result<T, Problem>,
    ) -> Option<Located<T>> {
        match read(&text.value) {
            Ok(value) => Some(Located { value, line: text.line }),
            Err(problem) => {
                self.problems.add(text.line, self.option(key), problem);
                None
            }
        }
    }

    fn wrong_type<T>(
        &self,
        option: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &'static str,
    ) -> Option<T> {
        let problem = FormProblem::WrongType { expected, found: describe(value.get_ref()) };
        self.problems.add(self.line_of(value), option, problem);
        None
    }
}

fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{text}\""),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => format!("{value}"),
        DeValue::Datetime(time) => format!("the time {time}"),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a section".into(),
    }
}

/// The known word that a slip of the finger would turn into `word`.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let distance = |candidate: &&&'static str| edit_distance(word, candidate);
    let best = known.iter().min_by_key(distance)?;
    let slips_max = (word.chars().count() / 3).clamp(1, 3);
    (edit_distance(word, best) <= slips_max).then_some(*best)
}

/// Levenshtein's distance: insertions, deletions and substitutions.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_slips() {
        for (from, to, slips) in
            [("", "abc", 3), ("mtu", "mtu", 0), ("mtu", "mut", 2), ("prise", "price", 1)]
        {
            assert_eq!(edit_distance(from, to), slips, "{from} {to}");
        }
    }

    #[test]
    fn only_a_near_word_is_suggested() {
        let known = ["listen_port", "mtu", "routes"];
        assert_eq!(nearest("listenport", &known), Some("listen_port"));
        assert_eq!(nearest("route", &known), Some("routes"));
        assert_eq!(nearest("colour", &known), None);
    }

    #[test]
    fn lines_are_counted_from_one() {
        let problems = Problems::new(Path::new("x"), "a\nb\n");
        assert_eq!([0, 1, 2, 4, 9].map(|offset| problems.line_at(offset)), [1, 1, 2, 3, 3]);
    }
}
