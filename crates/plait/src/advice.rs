//! An error that also says what to do.
//!
//! `main` prints the message, its chain of causes and then the advice, on a line of its own that
//! begins with `help:`.

use std::fmt;
use std::io;

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

/// What to do about a file that cannot be written, where the cause alone tells.
pub(crate) fn help_to_write(cause: &io::Error) -> Option<&'static str> {
    Some(match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on its disk",
        io::ErrorKind::ReadOnlyFilesystem => "its file system is read-only: mount it for writing",
        _ => return None,
    })
}
