//! Everything that is wrong with a file, each error with its place.

use std::cell::RefCell;
use std::fmt;

use crate::place::Place;
use crate::problem::Problem;

/// One thing that is wrong: place, option, problem.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{place}: {}{problem}", Label(option))]
pub struct Error {
    /// Where it stands.
    pub place: Place,
    /// The option with its section, or the section alone; empty for the file as a whole.
    pub option: String,
    /// What is wrong with it.
    pub problem: Box<Problem>,
}

impl Error {
    /// A problem at a place.
    pub fn new(place: Place, option: impl Into<String>, problem: impl Into<Problem>) -> Self {
        Self { place, option: option.into(), problem: Box::new(problem.into()) }
    }

    /// What was expected, or what to do.
    pub fn help(&self) -> String {
        self.problem.help()
    }
}

struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// Everything that is wrong, by file and line, each error once; never empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// Wraps the errors found; `None` without any.
    pub fn new(mut errors: Vec<Error>) -> Option<Self> {
        errors.sort_by(|a, b| a.place.cmp(&b.place));
        let mut once: Vec<Error> = Vec::new();
        for error in errors {
            if !once.contains(&error) {
                once.push(error);
            }
        }
        (!once.is_empty()).then_some(Self(once))
    }

    /// The errors, by file and line.
    pub fn iter(&self) -> impl Iterator<Item = &Error> {
        self.0.iter()
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let new_line = if index == 0 { "" } else { "\n" };
            write!(f, "{new_line}{error}\n  help: {}", error.help())?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// What is wrong, gathered while a file is read.
#[derive(Debug, Default)]
pub struct Problems {
    found: RefCell<Vec<Error>>,
}

impl Problems {
    /// Notes a problem.
    pub fn add(&self, place: &Place, option: impl Into<String>, problem: impl Into<Problem>) {
        self.note(Error::new(place.clone(), option, problem));
    }

    /// Notes an error that knows its place.
    pub fn note(&self, error: Error) {
        self.found.borrow_mut().push(error);
    }

    /// Whether nothing is wrong so far.
    pub fn none_found(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// What was read, if nothing was wrong.
    ///
    /// # Errors
    ///
    /// Everything that was noted.
    ///
    /// # Panics
    ///
    /// Nothing was read and nothing noted: code that cannot build a value must note why.
    pub fn finish<T>(self, read: Option<T>) -> Result<T, Errors> {
        match (Errors::new(self.found.into_inner()), read) {
            (None, Some(read)) => Ok(read),
            (Some(errors), _) => Err(errors),
            (None, None) => unreachable!("a value that cannot be built has noted why"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn line(number: usize) -> Place {
        Place::Line(Path::new("x.toml").into(), number)
    }

    #[test]
    fn errors_are_sorted_by_line_and_told_once_with_their_remedy() {
        let problems = Problems::default();
        for number in [3, 1, 3] {
            problems.add(&line(number), "[a] b", Problem::Missing { example: "b = 1" });
        }
        problems.add(&Place::File(Path::new("x.toml").into()), "", Problem::new("odd", "look"));
        assert!(!problems.none_found());
        assert_eq!(
            problems.finish(Some(())).unwrap_err().to_string(),
            "x.toml: odd\n  help: look\n\
             x.toml:1: [a] b: missing\n  help: add `b = 1`\n\
             x.toml:3: [a] b: missing\n  help: add `b = 1`"
        );
    }

    #[test]
    fn without_problems_what_was_read_is_had() {
        assert_eq!(Problems::default().finish(Some(7)), Ok(7));
    }
}
