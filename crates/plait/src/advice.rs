//! An error that also says what to do.
//!
//! `main` prints the message, its chain of causes and then the advice, on a line of its own that
//! begins with `help:`.

use std::fmt;

/// A failure with a remedy. Travels inside [`anyhow::Error`] until `main` prints it.
#[derive(Debug, thiserror::Error)]
pub(crate) struct Advised {
    message: String,
    help: String,
    #[source]
    cause: Option<anyhow::Error>,
}

impl Advised {
    /// `message` says what is wrong and where, in lower case; `help` says what to do.
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), cause: None }
    }

    /// Adds the cause.
    pub(crate) fn caused_by(mut self, cause: impl Into<anyhow::Error>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The remedy.
    pub(crate) fn help(&self) -> &str {
        &self.help
    }
}

impl fmt::Display for Advised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
