//! Values of options: their types, bounds and units.

use std::time::Duration;

use super::Section;
use crate::bounds::Bounds;
use crate::place::Place;
use crate::problem::Problem;
use crate::tree::{Node, Value};

impl<'a> Section<'a> {
    /// A text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        let found = self.get(key)?;
        match &found.value {
            Value::Text(text) => Some(text.clone()),
            _ => self.wrong_type(&self.option(key), found, "a text in double quotes"),
        }
    }

    /// A text that must be there and not be empty.
    pub fn required_text(&mut self, key: &'static str, example: &'static str) -> Option<String> {
        if !self.holds_any(&[key]) {
            self.know(&[key]);
            self.missing(key, example);
            return None;
        }
        let text = self.text(key)?;
        if text.is_empty() {
            let problem = Problem::new("empty", format!("write it as in `{example}`"));
            self.problem(key, problem);
            return None;
        }
        Some(text)
    }

    /// A text, or a list of texts, each with its place; empty when the option is absent.
    pub fn texts(&mut self, key: &'static str) -> Vec<(String, Place)> {
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

    /// A text that `read` parses; a refusal is noted.
    pub fn parsed<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let text = self.text(key)?;
        read(&text).map_err(|problem| self.problem(key, problem)).ok()
    }

    /// Texts that `read` parses, each with its place; refusals are noted.
    pub fn parsed_texts<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&str) -> Result<T, Problem>,
    ) -> Vec<(T, Place)> {
        let texts = self.texts(key).into_iter();
        let parse = |(text, place): (String, Place)| match read(&text) {
            Ok(value) => Some((value, place)),
            Err(problem) => {
                self.problem_at(&place, key, problem);
                None
            }
        };
        texts.filter_map(parse).collect()
    }

    /// One of a few words.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
    ) -> Option<T> {
        self.parsed(key, |text| {
            let chosen = choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
            chosen.ok_or_else(|| Problem::choice(text, choices.iter().map(|(name, _)| *name)))
        })
    }

    /// A number, with or without a fraction.
    pub fn number(&mut self, key: &'static str, bounds: Bounds) -> Option<f64> {
        let found = self.get(key)?;
        self.number_of(&self.option(key), found, bounds)
    }

    /// A whole number.
    pub fn integer<T: TryFrom<i64>>(
        &mut self,
        key: &'static str,
        (low, high): (i64, i64),
        unit: &'static str,
    ) -> Option<T> {
        let found = self.get(key)?;
        let number = match found.value {
            Value::Integer(number) => Some(number),
            Value::TooLarge(_) => None,
            _ => return self.wrong_type(&self.option(key), found, "a whole number"),
        };
        let in_range = number.filter(|number| (low..=high).contains(number));
        let value = in_range.and_then(|number| T::try_from(number).ok());
        if value.is_none() {
            let bounds = Bounds::new(low as f64, high as f64, unit);
            self.problem(key, bounds.problem_of(found));
        }
        value
    }

    /// Whole numbers in a list.
    pub fn integers<T: TryFrom<i64>>(
        &mut self,
        key: &'static str,
        bounds: Bounds,
    ) -> Option<Vec<T>> {
        let found = self.get(key)?;
        let option = self.option(key);
        let Value::List(items) = &found.value else {
            return self.wrong_type(&option, found, "a list of whole numbers");
        };
        let one = |item: &'a Node| match item.value {
            Value::Integer(number) if bounds.hold(number as f64) => T::try_from(number).ok(),
            Value::Integer(_) | Value::TooLarge(_) => {
                self.problems.add(&item.place, option.clone(), bounds.problem_of(item));
                None
            }
            _ => self.wrong_type(&option, item, "a whole number"),
        };
        let numbers: Vec<T> = items.iter().filter_map(one).collect();
        (numbers.len() == items.len()).then_some(numbers)
    }

    /// `true` or `false`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let found = self.get(key)?;
        match found.value {
            Value::Boolean(value) => Some(value),
            _ => self.wrong_type(&self.option(key), found, "true or false"),
        }
    }

    /// A time in seconds, at most a day.
    pub fn seconds(&mut self, key: &'static str) -> Option<Duration> {
        self.number(key, Bounds::SECONDS).map(Duration::from_secs_f64)
    }

    /// A time in seconds, at most a day, or the two ends of a range of times.
    pub fn seconds_range(&mut self, key: &'static str) -> Option<(Duration, Duration)> {
        let (low, high) = self.range(key, Bounds::SECONDS)?;
        Some((Duration::from_secs_f64(low), Duration::from_secs_f64(high)))
    }

    /// A time in milliseconds, from zero.
    pub fn millis(&mut self, key: &'static str, high: f64) -> Option<Duration> {
        self.number(key, Bounds::new(0.0, high, "milliseconds"))
            .map(|number| Duration::from_secs_f64(number / 1e3))
    }

    /// One number, which stands for both ends, or the two ends of a range.
    pub fn range(&mut self, key: &'static str, bounds: Bounds) -> Option<(f64, f64)> {
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
            let problem = Problem::new(
                format!("the range ends at {high}, before its start {low}"),
                "write the smaller number first",
            );
            self.problems.add(&found.place, option, problem);
            return None;
        }
        Some((low, high))
    }

    /// Pairs of numbers, such as the start and end of each outage.
    pub fn pairs(
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

    fn number_of(&self, option: &str, node: &Node, bounds: Bounds) -> Option<f64> {
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            Value::TooLarge(_) => f64::INFINITY,
            _ => return self.wrong_type(option, node, "a number"),
        };
        if bounds.hold(number) {
            return Some(number);
        }
        self.problems.add(&node.place, option, bounds.problem_of(node));
        None
    }
}
