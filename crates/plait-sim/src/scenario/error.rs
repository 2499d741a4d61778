//! What can be wrong with a scenario, where, and what was expected.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::trace::TraceError;

/// Everything that is wrong with a scenario, in the order of its lines; never empty.
#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioErrors(Vec<ScenarioError>);

impl ScenarioErrors {
    /// Wraps what was found, each finding once; `None` when nothing was.
    pub(super) fn new(mut errors: Vec<ScenarioError>) -> Option<Self> {
        errors.sort_by(|a, b| a.place.cmp(&b.place));
        let mut once: Vec<ScenarioError> = Vec::new();
        for error in errors {
            if !once.contains(&error) {
                once.push(error);
            }
        }
        (!once.is_empty()).then_some(Self(once))
    }

    /// The errors, by file and line.
    pub fn iter(&self) -> impl Iterator<Item = &ScenarioError> {
        self.0.iter()
    }
}

impl fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in the scenario", self.0.len())
    }
}

impl std::error::Error for ScenarioErrors {}

/// One thing that is wrong: place, option, problem.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{place}: {}{problem}", Label(option))]
pub struct ScenarioError {
    /// Where it stands.
    pub place: Place,
    /// The option with its section, or the section alone; empty for the file as a whole.
    pub option: String,
    /// What is wrong with it.
    pub problem: Box<Problem>,
}

impl ScenarioError {
    /// What was expected, or what to do.
    pub fn help(&self) -> String {
        self.problem.help()
    }
}

/// Where a value of a scenario comes from.
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
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) | Self::Line(file, _) => Some(file),
            Self::Setting(_) => None,
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

struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// What is wrong with an option.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Problem {
    /// A file cannot be read.
    #[error("cannot read {}: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's words.
        cause: String,
    },
    /// The text is not TOML.
    #[error("not TOML: {0}")]
    Syntax(String),
    /// No such option or section.
    #[error("unknown {kind}")]
    Unknown {
        /// What is unknown: an option or a section.
        kind: &'static str,
        /// The known word that it resembles.
        near: Option<String>,
        /// All known words.
        known: Vec<String>,
    },
    /// An option that must be there is not.
    #[error("missing")]
    Missing {
        /// What to add.
        example: &'static str,
    },
    /// A value of another kind than the option's.
    #[error("expected {expected}, found {found}")]
    WrongType {
        /// The option's kind.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A number that cannot be.
    #[error("{value} is out of range")]
    Range {
        /// The number as written.
        value: String,
        /// Which numbers can be.
        expected: String,
    },
    /// A word that is not one of the few.
    #[error("\"{value}\" is not one of the choices")]
    Choice {
        /// The word as written.
        value: String,
        /// The known word that it resembles.
        near: Option<String>,
        /// The choices.
        known: Vec<String>,
    },
    /// A name that nothing bears.
    #[error("no {kind} is called \"{name}\"")]
    NoSuch {
        /// What was looked for.
        kind: &'static str,
        /// The name as written.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// An option without effect beside another.
    #[error("has no effect with {setting}")]
    NoEffect {
        /// The other option.
        setting: String,
        /// Where the option would have an effect.
        belongs_to: &'static str,
    },
    /// A trace file is malformed; the error's place is the line in that file.
    #[error("{0}")]
    Trace(TraceError),
    /// Options that do not go together.
    #[error("{text}")]
    Conflict {
        /// What does not go together.
        text: String,
        /// What to do.
        help: String,
    },
}

impl Problem {
    /// Options that do not go together.
    pub(super) fn conflict(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Conflict { text: text.into(), help: help.into() }
    }

    fn help(&self) -> String {
        match self {
            Self::Unreadable { .. } => {
                "name an existing file; relative names start at the folder of the file that names \
                 them"
                    .into()
            }
            Self::Syntax(what) if what.contains("duplicate") => "keep one of the two".into(),
            Self::Syntax(_) => "text goes in double quotes, lists in square brackets".into(),
            Self::Unknown { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Unknown { known, .. } => format!("known here: {}", known.join(", ")),
            Self::Missing { example } => format!("add `{example}`"),
            Self::WrongType { expected, .. } => format!("write {expected}"),
            Self::Range { expected, .. } => format!("write {expected}"),
            Self::Choice { near: Some(near), .. } => format!("did you mean \"{near}\"?"),
            Self::Choice { known, .. } => format!("choose one of: {}", known.join(", ")),
            Self::NoSuch { kind, known, .. } if known.is_empty() => {
                format!("the scenario has no {kind}; add one")
            }
            Self::NoSuch { known, .. } => format!("choose one of: {}", known.join(", ")),
            Self::NoEffect { belongs_to, .. } => format!("remove it; it belongs to {belongs_to}"),
            Self::Trace(problem) => problem.help().into(),
            Self::Conflict { help, .. } => help.clone(),
        }
    }
}
