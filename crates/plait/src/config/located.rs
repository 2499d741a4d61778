//! Values with their line, for problems found after the file was read.

use plait_toml::{Place, Section};

/// A value and the line where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Located<T> {
    /// The value.
    pub(crate) value: T,
    /// Its line, counted from 1.
    pub(crate) line: usize,
}

impl<T> Located<T> {
    /// A value that stands at this place.
    pub(crate) fn at(place: &Place, value: T) -> Self {
        Self { value, line: line_of(place) }
    }

    /// The value of an option of this section.
    pub(crate) fn option(section: &Section<'_>, key: &str, value: T) -> Self {
        Self::at(&section.place_of(key), value)
    }

    /// The value of an option of this section that may be absent.
    pub(crate) fn maybe(section: &Section<'_>, key: &str, value: Option<T>) -> Option<Self> {
        value.map(|value| Self::option(section, key, value))
    }

    /// The values of a list option of this section, if all of them were parsed.
    pub(crate) fn all(section: &mut Section<'_>, key: &'static str, values: Vec<T>) -> Vec<Self> {
        let texts = section.texts(key);
        values.into_iter().zip(texts).map(|(value, (_, place))| Self::at(&place, value)).collect()
    }
}

/// The line of a place in the configuration.
pub(crate) fn line_of(place: &Place) -> usize {
    place.line().expect("a configuration is one file: every option and section has a line")
}
