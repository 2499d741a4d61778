//! One declaration per option: its name, its meaning, the form of its values, and where they go.
//! From it come the option's reader, its writer and its row in the guide; the default comes from
//! the section's own type. A section is a list of [`Field`]s.

use crate::form::{Form, ValueOf};
use crate::section::Section;
#[cfg(test)]
use crate::testing::Random;

/// The options of a section that is read into a `C`, in the order of the guide.
pub type Options<C> = &'static [&'static dyn Declared<C>];

/// An option of a section that is read into a `C`.
#[derive(Debug)]
pub struct Field<C, F: Form> {
    name: &'static str,
    meaning: &'static str,
    form: F,
    at: fn(&mut C) -> &mut ValueOf<F>,
    required: Option<&'static str>,
    absent: Option<&'static str>,
    range: Option<&'static str>,
    only: Option<Only<C>>,
}

/// For an option that takes effect only with certain values of another.
#[derive(Debug)]
pub struct Only<C> {
    /// The option that decides.
    pub decided_by: &'static str,
    /// The setting that prevents it, as in `algorithm = "fixed"`; `None` where the option takes
    /// effect.
    pub against: fn(&C) -> Option<String>,
    /// Where the option takes effect.
    pub belongs_to: &'static str,
}

impl<C, F: Form> Field<C, F> {
    /// An option; `meaning` is Markdown, `at` the place of its value.
    pub const fn new(
        name: &'static str,
        meaning: &'static str,
        form: F,
        at: fn(&mut C) -> &mut ValueOf<F>,
    ) -> Self {
        Self { name, meaning, form, at, required: None, absent: None, range: None, only: None }
    }

    /// Makes it required; `example` is shown when it is missing.
    #[must_use]
    pub const fn required(mut self, example: &'static str) -> Self {
        self.required = Some(example);
        self.absent = Some("required");
        self
    }

    /// Describes the case that it is absent, when the default alone does not.
    #[must_use]
    pub const fn absent(mut self, told: &'static str) -> Self {
        self.absent = Some(told);
        self
    }

    /// Describes its values, when its form alone does not.
    #[must_use]
    pub const fn range(mut self, told: &'static str) -> Self {
        self.range = Some(told);
        self
    }

    /// Restricts where it takes effect; elsewhere it is an error.
    #[must_use]
    pub const fn only(mut self, only: Only<C>) -> Self {
        self.only = Some(only);
        self
    }
}

/// A [`Field`] with values of any form.
pub trait Declared<C> {
    /// Its name in the file.
    fn name(&self) -> &'static str;

    /// Where it takes effect; `None`: everywhere.
    fn only(&self) -> Option<&Only<C>>;

    /// Reads it if it stands in the file; `false` when a problem was noted.
    fn read(&self, section: &mut Section<'_>, into: &mut C) -> bool;

    /// Its value as it is written; `None` when there is nothing to write.
    fn value(&self, of: &mut C) -> Option<toml::Value>;

    /// Meaning, unit and range, and default, for the guide.
    fn told(&self, default: &mut C) -> [String; 3];

    /// Gives it a random allowed value.
    #[cfg(test)]
    fn vary(&self, of: &mut C, random: &mut Random);
}

impl<C, F: Form> Declared<C> for Field<C, F> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn only(&self) -> Option<&Only<C>> {
        self.only.as_ref()
    }

    fn read(&self, section: &mut Section<'_>, into: &mut C) -> bool {
        section.know(&[self.name]);
        if !section.holds_any(&[self.name]) {
            if let Some(example) = self.required {
                section.missing(self.name, example);
            }
            return self.required.is_none();
        }
        let found = self.form.read(section, self.name);
        let is_read = found.is_some();
        if let Some(value) = found {
            *(self.at)(into) = value;
        }
        is_read
    }

    fn value(&self, of: &mut C) -> Option<toml::Value> {
        self.form.write((self.at)(of))
    }

    fn told(&self, default: &mut C) -> [String; 3] {
        let range = self.range.map_or_else(|| self.form.told(), str::to_owned);
        let otherwise = || self.value(default).map_or("none".to_owned(), |value| shown(&value));
        [self.meaning.to_owned(), range, self.absent.map_or_else(otherwise, str::to_owned)]
    }

    #[cfg(test)]
    fn vary(&self, of: &mut C, random: &mut Random) {
        *(self.at)(of) = self.form.any(self.name, random);
    }
}

/// Reads the options of a section, and returns the names of those that are wrong or missing.
/// Unknown options are left to [`Section::finish`].
pub fn read<C>(options: Options<C>, section: &mut Section<'_>, into: &mut C) -> Vec<&'static str> {
    let read = |option: &&&dyn Declared<C>| !option.read(section, into);
    let wrong: Vec<_> = options.iter().filter(read).map(|option| option.name()).collect();
    for option in options {
        if let Some(only) = option.only()
            && !wrong.contains(&only.decided_by)
            && let Some(setting) = (only.against)(into)
        {
            section.no_effect(&[option.name()], &setting, only.belongs_to);
        }
    }
    wrong
}

/// Writes a section: every option that takes effect and has a value, so that it relies on no
/// default.
pub fn write<C: Clone>(out: &mut String, header: &str, options: Options<C>, of: &C) {
    let separator = if out.is_empty() { "" } else { "\n" };
    out.push_str(&format!("{separator}{header}\n"));
    let mut of = of.clone();
    for option in options {
        if option.only().is_some_and(|only| (only.against)(&of).is_some()) {
            continue;
        }
        if let Some(value) = option.value(&mut of) {
            out.push_str(&format!("{} = {value}\n", option.name()));
        }
    }
}

/// A section's table in the guide, line by line.
pub fn table<C: Default>(options: Options<C>) -> String {
    let tells_where = options.iter().any(|option| option.only().is_some());
    let of = |option: &dyn Declared<C>| match option.only().map(|only| only.belongs_to) {
        Some(setting) if setting.contains('=') => format!(" `{setting}` |"),
        Some(whose) => format!(" {whose} |"),
        None => " |".to_owned(),
    };
    let head = if tells_where { [" of |", "---|"] } else { [""; 2] };
    rows(
        options.iter().map(|option| {
            let of = if tells_where { of(*option) } else { String::new() };
            (*option, of)
        }),
        head,
    )
}

/// The table of those of a section's options that take effect only with this setting.
pub fn table_of<C: Default>(options: Options<C>, setting: &str) -> String {
    let acts =
        |option: &&&dyn Declared<C>| option.only().is_some_and(|only| only.belongs_to == setting);
    rows(options.iter().filter(acts).map(|option| (*option, String::new())), [""; 2])
}

fn rows<'a, C: Default + 'a>(
    options: impl Iterator<Item = (&'a dyn Declared<C>, String)>,
    [head, rule]: [&str; 2],
) -> String {
    let mut default = C::default();
    let mut out =
        format!("| option |{head} meaning | unit, range | default |\n|---|{rule}---|---|---|\n");
    for (option, of) in options {
        let [meaning, range, otherwise] = option.told(&mut default);
        let cell = |text: String| if text.is_empty() { text } else { format!(" {text}") };
        let (range, otherwise) = (cell(range), cell(otherwise));
        out.push_str(&format!("| `{}` |{of} {meaning} |{range} |{otherwise} |\n", option.name()));
    }
    out
}

/// A page of the guide with a section's table made from its options: it replaces the first table
/// after the line `heading`.
///
/// # Errors
///
/// The page has no such line, or no table after it.
pub fn with_table(page: &str, heading: &str, table: &str) -> Result<String, String> {
    let start = page.find(&format!("\n{heading}\n")).ok_or_else(|| format!("no `{heading}`"))?;
    let from = page[start..].find("\n| option |").map(|at| start + at + 1);
    let from = from.ok_or_else(|| format!("no table after `{heading}`"))?;
    let length = page[from..].find("\n\n").map_or(page.len() - from, |at| at + 1);
    Ok(format!("{}{table}{}", &page[..from], &page[from + length..]))
}

/// A value as the guide shows it.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("`{text}`"),
        // `{}` writes no `.0`.
        toml::Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}
