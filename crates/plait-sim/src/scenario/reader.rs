//! Takes options out of a scenario's tree, one by one, and notes every problem with its place.
//!
//! A [`Section`] knows the options that it was asked for; whatever else stands there is an unknown
//! option. It does not know what the options mean.

use std::cell::RefCell;

use plait_proto::time::Duration;

use super::error::{Place, Problem, ScenarioError};
use super::tree::{Node, Table, Value};

/// What is wrong with one scenario, gathered while it is read.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: RefCell<Vec<ScenarioError>>,
}

impl Problems {
    /// Notes a problem.
    pub(super) fn add(&self, place: &Place, option: impl Into<String>, problem: Problem) {
        let (place, option, problem) = (place.clone(), option.into(), Box::new(problem));
        self.found.borrow_mut().push(ScenarioError { place, option, problem });
    }

    /// Whether nothing is wrong so far.
    pub(super) fn none_found(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// What was found.
    pub(super) fn into_found(self) -> Vec<ScenarioError> {
        self.found.into_inner()
    }
}

/// Numbers that an option may have, with their unit (empty for none).
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) unit: &'static str,
}

impl Bounds {
    /// From `low` to `high`, both included.
    pub(super) const fn new(low: f64, high: f64, unit: &'static str) -> Self {
        Self { low, high, unit }
    }

    fn problem(self, node: &Node) -> Problem {
        let value = match &node.value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => node.describe(),
        };
        let space = if self.unit.is_empty() { "" } else { " " };
        let Self { low, high, unit } = self;
        let expected = format!("a number from {low} to {high}{space}{unit}");
        Problem::Range { value, expected }
    }
}

/// A section of a scenario: `[bond]`, one `[[app]]`, and so on.
#[derive(Debug)]
pub(super) struct Section<'a> {
    problems: &'a Problems,
    /// What stands before an option's name in messages, such as `[[app]] rate.`.
    prefix: String,
    place: Place,
    entries: Option<&'a Table>,
    asked: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The top of the file.
    pub(super) fn top(problems: &'a Problems, place: Place, entries: &'a Table) -> Self {
        Self { problems, prefix: String::new(), place, entries: Some(entries), asked: Vec::new() }
    }

    /// The same section with other content.
    pub(super) fn with_entries<'b>(&self, entries: &'b Table) -> Section<'b>
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
    pub(super) fn entries(&self) -> Option<&'a Table> {
        self.entries
    }

    /// A section in single brackets, or a table in braces; empty when it is absent.
    pub(super) fn single(&mut self, key: &'static str) -> Self {
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

    /// Sections in double brackets.
    pub(super) fn many(&mut self, key: &'static str) -> Vec<Self> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let option = match self.prefix.strip_suffix("] ") {
            Some(outer) => format!("[[{}.{key}]]", outer.trim_start_matches('[')),
            None => format!("[[{key}]]"),
        };
        let Value::List(items) = &found.value else {
            self.wrong_type::<()>(&option, found, "sections in double brackets");
            return Vec::new();
        };
        let section = |item: &'a Node| Self {
            problems: self.problems,
            prefix: format!("{option} "),
            place: item.place.clone(),
            entries: self.entries_of(&option, item),
            asked: Vec::new(),
        };
        items.iter().map(section).collect()
    }

    /// Sections whose names the file chooses, such as `[links.dsl]`.
    pub(super) fn named(&mut self, key: &'static str) -> Vec<(&'a str, Self)> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let Some(table) = self.entries_of(&format!("[{key}]"), found) else { return Vec::new() };
        let section = |(name, entry): (&'a String, &'a super::tree::Entry)| {
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

    /// Whether nothing in the whole scenario is wrong so far.
    pub(super) fn is_right_so_far(&self) -> bool {
        self.problems.none_found()
    }

    /// The section's place.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Whether the section stands in the file.
    pub(super) fn is_present(&self) -> bool {
        self.entries.is_some()
    }

    /// Whether the file holds any of the options, be its value right or wrong.
    pub(super) fn holds_any(&self, keys: &[&str]) -> bool {
        self.entries.is_some_and(|entries| keys.iter().any(|key| entries.contains_key(*key)))
    }

    /// The place of an option, or the section's when it is absent.
    pub(super) fn place_of(&self, key: &str) -> Place {
        let entry = self.entries.and_then(|entries| entries.get(key));
        entry.map_or_else(|| self.place.clone(), |entry| entry.node.place.clone())
    }

    /// A value whatever it is.
    pub(super) fn get(&mut self, key: &'static str) -> Option<&'a Node> {
        self.know(&[key]);
        self.entries.and_then(|entries| entries.get(key)).map(|entry| &entry.node)
    }

    /// Makes options known without reading them.
    pub(super) fn know(&mut self, keys: &[&'static str]) {
        for key in keys {
            if !self.asked.contains(key) {
                self.asked.push(key);
            }
        }
    }

    /// A text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let found = self.get(key)?;
        match &found.value {
            Value::Text(text) => Some(text.clone()),
            _ => self.wrong_type(&self.option(key), found, "a text in double quotes"),
        }
    }

    /// A text that must be there and not be empty.
    pub(super) fn required_text(
        &mut self,
        key: &'static str,
        example: &'static str,
    ) -> Option<String> {
        if !self.holds_any(&[key]) {
            self.know(&[key]);
            self.missing(key, example);
            return None;
        }
        let text = self.text(key)?;
        if text.is_empty() {
            let problem = Problem::conflict("empty", format!("write it as in `{example}`"));
            self.problem(key, problem);
            return None;
        }
        Some(text)
    }

    /// A text, or a list of texts, each with its place; empty when the option is absent.
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<(String, Place)> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let option = self.option(key);
        let one = |item: &'a Node| match &item.value {
            Value::Text(text) => Some((text.clone(), item.place.clone())),
            _ => self.wrong_type(&option, item, "a text or a list of texts"),
        };
        match &found.value {
            Value::List(items) => items.iter().filter_map(one).collect(),
            _ => one(found).into_iter().collect(),
        }
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(key)?;
        let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
        if chosen.is_none() {
            self.problem(key, unknown_choice(&text, choices.iter().map(|(name, _)| *name)));
        }
        chosen
    }

    /// A number, with or without a fraction.
    pub(super) fn number(&mut self, key: &'static str, bounds: Bounds) -> Option<f64> {
        let found = self.get(key)?;
        self.number_of(&self.option(key), found, bounds)
    }

    /// A whole number.
    pub(super) fn integer<T: TryFrom<i64>>(
        &mut self,
        key: &'static str,
        (low, high): (i64, i64),
        unit: &'static str,
    ) -> Option<T> {
        let found = self.get(key)?;
        let Value::Integer(number) = found.value else {
            return self.wrong_type(&self.option(key), found, "a whole number");
        };
        let in_range = Some(number).filter(|number| (low..=high).contains(number));
        let value = in_range.and_then(|number| T::try_from(number).ok());
        if value.is_none() {
            let bounds = Bounds::new(low as f64, high as f64, unit);
            self.problem(key, bounds.problem(found));
        }
        value
    }

    /// `true` or `false`.
    pub(super) fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let found = self.get(key)?;
        match found.value {
            Value::Boolean(value) => Some(value),
            _ => self.wrong_type(&self.option(key), found, "true or false"),
        }
    }

    /// A time in seconds, at most a day.
    pub(super) fn seconds(&mut self, key: &'static str) -> Option<Duration> {
        self.number(key, SECONDS).map(Duration::from_secs_f64)
    }

    /// A time in milliseconds, from zero.
    pub(super) fn millis(&mut self, key: &'static str, high: f64) -> Option<Duration> {
        self.number(key, Bounds::new(0.0, high, "milliseconds")).map(millis)
    }

    /// One number, which stands for both ends, or the two ends of a range.
    pub(super) fn range(&mut self, key: &'static str, bounds: Bounds) -> Option<(f64, f64)> {
        let found = self.get(key)?;
        let option = self.option(key);
        let Value::List(items) = &found.value else {
            return self.number_of(&option, found, bounds).map(|number| (number, number));
        };
        let [low, high] = items.as_slice() else {
            return self.wrong_type(&option, found, "a number or a pair [low, high]");
        };
        let low = self.number_of(&option, low, bounds);
        let high = self.number_of(&option, high, bounds);
        let (low, high) = low.zip(high)?;
        if low > high {
            let problem = Problem::conflict(
                format!("the range ends at {high}, before its start {low}"),
                "write the smaller number first",
            );
            self.problems.add(&found.place, option, problem);
            return None;
        }
        Some((low, high))
    }

    /// Pairs of numbers, such as the start and end of each outage.
    pub(super) fn pairs(
        &mut self,
        key: &'static str,
        bounds: (Bounds, Bounds),
        expected: &'static str,
    ) -> Option<Vec<(f64, f64)>> {
        let found = self.get(key)?;
        let option = self.option(key);
        let Value::List(items) = &found.value else {
            return self.wrong_type(&option, found, expected);
        };
        let pair = |item: &'a Node| match &item.value {
            Value::List(pair) if pair.len() == 2 => {
                let first = self.number_of(&option, &pair[0], bounds.0);
                first.zip(self.number_of(&option, &pair[1], bounds.1))
            }
            _ => self.wrong_type(&option, item, expected),
        };
        let pairs: Vec<_> = items.iter().filter_map(pair).collect();
        (pairs.len() == items.len()).then_some(pairs)
    }

    /// Spans of time in seconds, each after the one before.
    pub(super) fn spans(&mut self, key: &'static str) -> Option<Vec<Span>> {
        let pairs = self.pairs(key, (SECONDS, SECONDS), "a list of pairs [start, end]")?;
        let mut end_s = 0.0;
        for (start, end) in &pairs {
            if *start < end_s || end <= start {
                let text = format!("the span from {start} to {end} s is out of order");
                let help = "let each span end after its start, and start after the one before";
                self.problem(key, Problem::conflict(text, help));
                return None;
            }
            end_s = *end;
        }
        let span = |(start, end)| Span {
            start: Duration::from_secs_f64(start),
            end: Duration::from_secs_f64(end),
        };
        Some(pairs.into_iter().map(span).collect())
    }

    /// A table whose keys the file chooses: each key with its values, one or several.
    pub(super) fn selector(&mut self, key: &'static str) -> Vec<(&'a str, &'a Node)> {
        let Some(found) = self.get(key) else { return Vec::new() };
        let entries = self.entries_of(&self.option(key), found);
        let entry =
            |(key, entry): (&'a String, &'a super::tree::Entry)| (key.as_str(), &entry.node);
        entries.map(|table| table.iter().map(entry).collect()).unwrap_or_default()
    }

    /// Notes that an option is missing.
    pub(super) fn missing(&self, key: &'static str, example: &'static str) {
        self.problems.add(&self.place, self.option(key), Problem::Missing { example });
    }

    /// Notes a problem of one of the options, or of the section when `key` is empty.
    pub(super) fn problem(&self, key: &str, problem: Problem) {
        self.problem_at(&self.place_of(key), key, problem);
    }

    /// Notes a problem whose place is another than the option's own.
    pub(super) fn problem_at(&self, place: &Place, key: &str, problem: Problem) {
        self.problems.add(place, self.option(key), problem);
    }

    /// Notes a problem with a file that an option names: of the option when the file cannot be had,
    /// else of the file's own line.
    pub(super) fn problem_of_file(&self, key: &str, error: ScenarioError) {
        match *error.problem {
            problem @ Problem::Unreadable { .. } => self.problem_at(&error.place, key, problem),
            problem => self.problems.add(&error.place, error.option, problem),
        }
    }

    /// Notes the options that were given but cannot act under `setting`.
    pub(super) fn no_effect(
        &mut self,
        keys: &[&'static str],
        setting: &str,
        belongs_to: &'static str,
    ) {
        for key in keys {
            if self.get(key).is_some() {
                let setting = setting.to_owned();
                self.problem(key, Problem::NoEffect { setting, belongs_to });
            }
        }
    }

    /// Notes every option that nobody asked for.
    pub(super) fn finish(self) {
        let Some(entries) = self.entries else { return };
        for (key, entry) in entries {
            if self.asked.contains(&key.as_str()) {
                continue;
            }
            let problem = Problem::Unknown {
                kind: if self.prefix.is_empty() { "option or section" } else { "option" },
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

    fn number_of(&self, option: &str, node: &Node, bounds: Bounds) -> Option<f64> {
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => return self.wrong_type(option, node, "a number"),
        };
        if (bounds.low..=bounds.high).contains(&number) {
            return Some(number);
        }
        self.problems.add(&node.place, option, bounds.problem(node));
        None
    }

    fn wrong_type<T>(&self, option: &str, node: &Node, expected: &'static str) -> Option<T> {
        let problem = Problem::WrongType { expected, found: node.describe() };
        self.problems.add(&node.place, option, problem);
        None
    }
}

/// A span of a run: from `start` up to, not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Since the run began.
    pub start: Duration,
    /// Since the run began; after `start`.
    pub end: Duration,
}

/// A day.
pub(super) const SECONDS: Bounds = Bounds::new(0.0, 86_400.0, "seconds");

/// A time of so many milliseconds.
pub(super) fn millis(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1e3)
}

/// A word that is not one of the choices.
pub(super) fn unknown_choice<'a>(
    value: &str,
    choices: impl Iterator<Item = &'a str> + Clone,
) -> Problem {
    Problem::Choice {
        value: value.into(),
        near: nearest(value, choices.clone()),
        known: choices.map(str::to_owned).collect(),
    }
}

/// The known word that a slip of the finger would turn into `word`.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let slips_max = (word.chars().count() / 3).clamp(1, 3);
    let (slips, best) =
        known.map(|word_known| (edit_distance(word, word_known), word_known)).min()?;
    (slips <= slips_max).then(|| best.to_owned())
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
    fn only_a_near_word_is_suggested() {
        let known = ["duration_s", "loss", "links"];
        let near = |word| nearest(word, known.into_iter());
        assert_eq!(near("duration").as_deref(), Some("duration_s"));
        assert_eq!(near("link").as_deref(), Some("links"));
        assert_eq!(near("colour"), None);
    }
}
