//! Values that remember their line, for what is found out about them after the file was read.

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

    /// The values of a list.
    pub(crate) fn all(values: Vec<(T, Place)>) -> Vec<Self> {
        values.into_iter().map(|(value, place)| Self::at(&place, value)).collect()
    }
}

/// The line of a place in the configuration.
pub(crate) fn line_of(place: &Place) -> usize {
    place.line().expect("a configuration is one file: every option and section has a line")
}
