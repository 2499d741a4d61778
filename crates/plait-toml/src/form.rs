//! The form of an option's values: how they are read, written and described.

use std::fmt::Display;
use std::time::Duration;

use toml::Value as Toml;

use crate::bounds::Bounds;
use crate::problem::Problem;
use crate::section::Section;
use crate::tree::Value;

#[cfg(test)]
use crate::testing::Random;

/// The form of an option's values.
pub trait Form {
    /// The program's type for a value.
    type Value;

    /// Reads an option that stands in the file; `None` when a problem was noted.
    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Self::Value>;

    /// A value as it stands in a file; `None` when it is left out.
    fn write(&self, value: &Self::Value) -> Option<Toml>;

    /// Unit and range, for the guide.
    fn told(&self) -> String;

    /// A random value, for the option of this name.
    #[cfg(test)]
    fn any(&self, name: &str, random: &mut Random) -> Self::Value;
}

/// The program's type for a form's values.
pub type ValueOf<F> = <F as Form>::Value;

/// `true` or `false`.
#[derive(Debug)]
pub struct Flag;

impl Form for Flag {
    type Value = bool;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<bool> {
        section.boolean(name)
    }

    fn write(&self, value: &bool) -> Option<Toml> {
        Some(Toml::Boolean(*value))
    }

    fn told(&self) -> String {
        "true or false".into()
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> bool {
        random.up_to(1) == 1
    }
}

/// A whole number.
#[derive(Debug)]
pub struct Whole<T> {
    low: i64,
    high: i64,
    unit: &'static str,
    kind: std::marker::PhantomData<T>,
}

impl<T> Whole<T> {
    /// From `low` to `high`, both included, of `unit`, which may be empty.
    pub const fn new(low: i64, high: i64, unit: &'static str) -> Self {
        Self { low, high, unit, kind: std::marker::PhantomData }
    }
}

impl<T: TryFrom<i64> + TryInto<i64> + Copy> Form for Whole<T> {
    type Value = T;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<T> {
        section.integer(name, (self.low, self.high), self.unit)
    }

    fn write(&self, value: &T) -> Option<Toml> {
        // What is above 2^63 is out of every option's range.
        Some(Toml::Integer((*value).try_into().unwrap_or(i64::MAX)))
    }

    fn told(&self) -> String {
        with_unit(self.unit, format!("{} to {}", self.low, self.high))
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> T {
        T::try_from(random.between(self.low, self.high)).ok().expect("the range fits the type")
    }
}

/// A whole number, or a word in place of one: then the value is `None`.
#[derive(Debug)]
pub struct WholeOr<T> {
    /// The numbers.
    pub whole: Whole<T>,
    /// The word.
    pub word: &'static str,
}

impl<T: TryFrom<i64> + TryInto<i64> + Copy> Form for WholeOr<T> {
    type Value = Option<T>;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Option<T>> {
        let problem = match &section.get(name)?.value {
            Value::Text(text) if text == self.word => return Some(None),
            Value::Text(text) => Problem::new(
                format!("\"{text}\" is neither a number nor \"{}\"", self.word),
                format!("write {}", self.told()),
            ),
            _ => return self.whole.read(section, name).map(Some),
        };
        section.problem(name, problem);
        None
    }

    fn write(&self, value: &Option<T>) -> Option<Toml> {
        match value {
            Some(number) => self.whole.write(number),
            None => Some(Toml::String(self.word.to_owned())),
        }
    }

    fn told(&self) -> String {
        format!("{}, or `{}`", self.whole.told(), self.word)
    }

    #[cfg(test)]
    fn any(&self, name: &str, random: &mut Random) -> Option<T> {
        (random.up_to(2) > 0).then(|| self.whole.any(name, random))
    }
}

/// A number, with or without a fraction.
#[derive(Debug)]
pub struct Number(pub Bounds);

impl Form for Number {
    type Value = f64;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<f64> {
        section.number(name, self.0)
    }

    fn write(&self, value: &f64) -> Option<Toml> {
        Some(Toml::Float(*value))
    }

    fn told(&self) -> String {
        let Bounds { low, low_is_included, high, unit } = self.0;
        match low_is_included {
            true => with_unit(unit, format!("{low} to {high}")),
            false => format!("above {low}, to {high}"),
        }
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> f64 {
        let share = (random.up_to(999) + 1) as f64 / 1000.0;
        self.0.low + share * (self.0.high - self.0.low)
    }
}

/// A time as a whole number of milliseconds or seconds.
#[derive(Debug)]
pub struct Time {
    unit: Duration,
    name: &'static str,
    low: u32,
    high: u32,
}

impl Time {
    /// Milliseconds.
    pub const fn millis(low: u32, high: u32) -> Self {
        Self { unit: Duration::from_millis(1), name: "milliseconds", low, high }
    }

    /// Seconds.
    pub const fn seconds(low: u32, high: u32) -> Self {
        Self { unit: Duration::from_secs(1), name: "seconds", low, high }
    }
}

impl Form for Time {
    type Value = Duration;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Duration> {
        let range = (self.low.into(), self.high.into());
        section.integer::<u32>(name, range, self.name).map(|number| self.unit * number)
    }

    fn write(&self, value: &Duration) -> Option<Toml> {
        let number = value.as_nanos() / self.unit.as_nanos();
        Some(Toml::Integer(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    fn told(&self) -> String {
        with_unit(self.name, format!("{} to {}", self.low, self.high))
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> Duration {
        let number = random.between(self.low.into(), self.high.into());
        self.unit * u32::try_from(number).expect("the range is one of 32 bits")
    }
}

/// A time in milliseconds from zero, with or without a fraction.
#[derive(Debug)]
pub struct FineMillis {
    /// The longest.
    pub high: u32,
}

impl FineMillis {
    /// A time as it is written: a whole number where it is one.
    pub(crate) fn written(time: Duration) -> Toml {
        let nanos = time.as_nanos();
        match i64::try_from(nanos / 1_000_000) {
            Ok(millis) if nanos.is_multiple_of(1_000_000) => Toml::Integer(millis),
            _ => Toml::Float(time.as_secs_f64() * 1e3),
        }
    }
}

impl Form for FineMillis {
    type Value = Duration;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Duration> {
        section.millis(name, self.high.into())
    }

    fn write(&self, value: &Duration) -> Option<Toml> {
        Some(Self::written(*value))
    }

    fn told(&self) -> String {
        with_unit("milliseconds", format!("0 to {}", self.high))
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> Duration {
        let nanos = random.between(0, i64::from(self.high) * 1_000_000);
        Duration::from_nanos(u64::try_from(nanos).expect("it is not negative"))
    }
}

/// One of a few words, each with its value.
#[derive(Debug)]
pub struct Words<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: Copy + PartialEq> Form for Words<T> {
    type Value = T;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<T> {
        section.choice(name, self.0)
    }

    fn write(&self, value: &T) -> Option<Toml> {
        let word = self.0.iter().find(|(_, known)| known == value);
        let (word, _) = word.expect("every value of the type has a word");
        Some(Toml::String((*word).to_owned()))
    }

    fn told(&self) -> String {
        alternatives(self.0.iter().map(|(word, _)| *word))
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> T {
        self.0[random.up_to(self.0.len() as u64 - 1) as usize].1
    }
}

/// One of a few values that have a name.
#[derive(Debug)]
pub struct Named<T: 'static> {
    /// All values.
    pub all: &'static [T],
    /// Their names.
    pub name: fn(T) -> &'static str,
}

impl<T: Copy> Form for Named<T> {
    type Value = T;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<T> {
        let pairs: Vec<_> = self.all.iter().map(|value| ((self.name)(*value), *value)).collect();
        section.choice(name, &pairs)
    }

    fn write(&self, value: &T) -> Option<Toml> {
        Some(Toml::String((self.name)(*value).to_owned()))
    }

    fn told(&self) -> String {
        alternatives(self.all.iter().map(|value| (self.name)(*value)))
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> T {
        self.all[random.up_to(self.all.len() as u64 - 1) as usize]
    }
}

/// A text that is parsed into a `T`.
#[derive(Debug)]
pub struct Parsed<T> {
    /// Its form, for the guide.
    pub told: &'static str,
    /// Parses it.
    pub read: fn(&str) -> Result<T, Problem>,
}

/// Any text, such as a file's name.
pub const fn text(told: &'static str) -> Parsed<String> {
    Parsed { told, read: |text| Ok(text.to_owned()) }
}

impl<T: Display> Form for Parsed<T> {
    type Value = T;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<T> {
        section.parsed(name, self.read)
    }

    fn write(&self, value: &T) -> Option<Toml> {
        Some(Toml::String(value.to_string()))
    }

    fn told(&self) -> String {
        self.told.to_owned()
    }

    #[cfg(test)]
    fn any(&self, name: &str, random: &mut Random) -> T {
        random.text_of(name, self.read)
    }
}

/// A text or a list of texts, each of which is parsed into a `T`.
#[derive(Debug)]
pub struct List<T> {
    /// Its form, for the guide.
    pub told: &'static str,
    /// Parses one.
    pub read: fn(&str) -> Result<T, Problem>,
}

impl<T: Display> Form for List<T> {
    type Value = Vec<T>;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Vec<T>> {
        let found = section.parsed_texts(name, self.read);
        Some(found.into_iter().map(|(value, _)| value).collect())
    }

    fn write(&self, value: &Vec<T>) -> Option<Toml> {
        let texts: Vec<_> = value.iter().map(|one| Toml::String(one.to_string())).collect();
        (!texts.is_empty()).then_some(Toml::Array(texts))
    }

    fn told(&self) -> String {
        self.told.to_owned()
    }

    #[cfg(test)]
    fn any(&self, name: &str, random: &mut Random) -> Vec<T> {
        (0..random.up_to(3)).map(|_| random.text_of(name, self.read)).collect()
    }
}

/// Whole numbers in a list.
#[derive(Debug)]
pub struct WholeList {
    /// The smallest of them.
    pub low: u16,
    /// The largest of them.
    pub high: u16,
}

impl Form for WholeList {
    type Value = Vec<u16>;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Vec<u16>> {
        section.integers(name, Bounds::new(self.low.into(), self.high.into(), ""))
    }

    fn write(&self, value: &Vec<u16>) -> Option<Toml> {
        Some(Toml::Array(value.iter().map(|number| Toml::Integer((*number).into())).collect()))
    }

    fn told(&self) -> String {
        format!("list, {} to {}", self.low, self.high)
    }

    #[cfg(test)]
    fn any(&self, _: &str, random: &mut Random) -> Vec<u16> {
        let more = random.up_to(u64::from(self.high - self.low));
        vec![self.low, self.high, u16::try_from(more).expect("within the bounds") + self.low]
    }
}

/// An option that may be left out, and then has no value.
#[derive(Debug)]
pub struct Maybe<F>(pub F);

impl<F: Form> Form for Maybe<F> {
    type Value = Option<F::Value>;

    fn read(&self, section: &mut Section<'_>, name: &'static str) -> Option<Option<F::Value>> {
        self.0.read(section, name).map(Some)
    }

    fn write(&self, value: &Option<F::Value>) -> Option<Toml> {
        value.as_ref().and_then(|value| self.0.write(value))
    }

    fn told(&self) -> String {
        self.0.told()
    }

    #[cfg(test)]
    fn any(&self, name: &str, random: &mut Random) -> Option<F::Value> {
        (random.up_to(2) > 0).then(|| self.0.any(name, random))
    }
}

fn with_unit(unit: &str, range: String) -> String {
    if unit.is_empty() { range } else { format!("{unit}, {range}") }
}

/// Words as code, the last one after an `or`.
pub(crate) fn alternatives<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}
