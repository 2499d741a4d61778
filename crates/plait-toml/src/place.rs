//! Where a value comes from.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Where a value comes from; places order by file and line, settings last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A file as a whole.
    File(Arc<Path>),
    /// A line of a file, counted from 1.
    Line(Arc<Path>, usize),
    /// A setting of the command line, as it was given.
    Setting(Arc<str>),
}

impl Place {
    /// The file, unless the value came from the command line.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) | Self::Line(file, _) => Some(file),
            Self::Setting(_) => None,
        }
    }

    /// The line, counted from 1.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Line(_, line) => Some(*line),
            Self::File(_) | Self::Setting(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Line(file, line) => write!(f, "{}:{line}", file.display()),
            Self::Setting(setting) => write!(f, "--set {setting}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_written_as_a_compiler_writes_it() {
        let file: Arc<Path> = Path::new("a/x.toml").into();
        let places =
            [Place::File(file.clone()), Place::Line(file, 7), Place::Setting("k=0.5".into())];
        let written = places.clone().map(|place| place.to_string());
        assert_eq!(written, ["a/x.toml", "a/x.toml:7", "--set k=0.5"]);
        assert_eq!(places.map(|place| place.line()), [None, Some(7), None]);
    }
}
