//! What can be wrong with an option, and what to do about it.

use crate::nearest::nearest;

/// What is wrong with an option: its text says it, [`Problem::help`] says what to do.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Problem {
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
    /// A number that is out of range.
    #[error("{value} is out of range")]
    Range {
        /// The number.
        value: String,
        /// The numbers that are allowed.
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
    /// An option that has no effect because of another.
    #[error("has no effect with {setting}")]
    NoEffect {
        /// The other option.
        setting: String,
        /// Where the option would have an effect.
        belongs_to: &'static str,
    },
    /// What only the reader of this kind of file can tell, such as options that contradict each
    /// other.
    #[error("{text}")]
    Special {
        /// What is wrong.
        text: String,
        /// What to do.
        help: String,
    },
}

impl Problem {
    /// What only the reader of this kind of file can tell: what is wrong, and what to do.
    pub fn new(text: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Special { text: text.into(), help: help.into() }
    }

    /// A word that is not one of the choices.
    pub fn choice<'a>(value: &str, choices: impl Iterator<Item = &'a str> + Clone) -> Self {
        Self::Choice {
            value: value.into(),
            near: nearest(value, choices.clone()),
            known: choices.map(str::to_owned).collect(),
        }
    }

    /// What was expected, or what to do.
    pub fn help(&self) -> String {
        match self {
            Self::Syntax(what) if what.contains("duplicate") => "keep one of the two".into(),
            Self::Syntax(_) => "text goes in double quotes, lists in square brackets".into(),
            Self::Unknown { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Unknown { known, .. } => format!("known here: {}", known.join(", ")),
            Self::Missing { example } => format!("add `{example}`"),
            Self::WrongType { expected, .. } => format!("write {expected}"),
            Self::Range { expected, .. } => format!("write {expected}"),
            Self::Choice { near: Some(near), .. } => format!("did you mean \"{near}\"?"),
            Self::Choice { known, .. } => format!("choose one of: {}", known.join(", ")),
            Self::NoEffect { belongs_to, .. } => format!("remove it; it belongs to {belongs_to}"),
            Self::Special { help, .. } => help.clone(),
        }
    }
}
