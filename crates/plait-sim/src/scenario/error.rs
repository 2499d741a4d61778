//! Errors of a scenario beyond the form of its options.

use std::path::{Path, PathBuf};

use plait_toml::{Error, Place, Problem, Problems, Section};

use super::trace::TraceError;

/// An unknown name: what was looked for, the name as written, the names that exist.
pub(super) fn no_such(kind: &str, name: &str, known: Vec<String>) -> Problem {
    let help = if known.is_empty() {
        format!("the scenario has no {kind}; add one")
    } else {
        format!("choose one of: {}", known.join(", "))
    };
    Problem::new(format!("no {kind} is called \"{name}\""), help)
}

/// A file cannot be read; `cause` is the system's message.
pub(super) fn unreadable(file: &Path, cause: &str) -> Problem {
    Problem::new(
        format!("cannot read {}: {cause}", file.display()),
        "name an existing file; relative names start at the folder of the file that names them",
    )
}

impl From<TraceError> for Problem {
    fn from(error: TraceError) -> Self {
        Self::new(error.to_string(), error.help())
    }
}

/// Why a file that an option names cannot be used.
#[derive(Clone, Debug)]
pub(super) enum FileError {
    /// It cannot be read, named at this place.
    Unreadable(Place, PathBuf, String),
    /// One of its lines is wrong.
    Content(Error),
}

impl FileError {
    /// Notes it: at the option `key` when the file cannot be read, else at the file's own line.
    pub(super) fn note(self, section: &Section<'_>, key: &str, problems: &Problems) {
        match self {
            Self::Unreadable(place, file, cause) => {
                section.problem_at(&place, key, unreadable(&file, &cause));
            }
            Self::Content(error) => problems.note(error),
        }
    }
}
