//! The lab's output: data on standard output, for people or as JSON Lines; progress and errors on
//! standard error.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

mod progress;
mod table;

pub(crate) use progress::{Meter, Progress};
pub(crate) use table::{Align, Table};

/// The verdict of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Good,
    CheckFailed,
}

impl Verdict {
    pub(crate) fn of(good: bool) -> Self {
        if good { Self::Good } else { Self::CheckFailed }
    }

    pub(crate) fn exit_code(self) -> ExitCode {
        match self {
            Self::Good => ExitCode::SUCCESS,
            Self::CheckFailed => ExitCode::from(1),
        }
    }
}

/// Standard output in one of its two forms.
#[derive(Debug)]
pub(crate) struct Output {
    json: bool,
}

#[derive(Serialize)]
struct Record<'a, T> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    body: &'a T,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints a record of type `kind` when the form is JSON Lines. `body` must be a struct or map.
    pub(crate) fn record(&self, kind: &str, body: &impl Serialize) -> Result<()> {
        if self.json {
            let line = serde_json::to_string(&Record { kind, body })?;
            writeln!(io::stdout().lock(), "{line}")?;
        }
        Ok(())
    }

    /// Prints several records of a type.
    pub(crate) fn records(&self, kind: &str, bodies: &[impl Serialize]) -> Result<()> {
        bodies.iter().try_for_each(|body| self.record(kind, body))
    }

    /// Prints lines when the form is text.
    pub(crate) fn lines(&self, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Result<()> {
        lines.into_iter().try_for_each(|line| self.line(line))
    }

    /// Prints a line when the form is text.
    pub(crate) fn line(&self, text: impl AsRef<str>) -> Result<()> {
        if !self.json {
            writeln!(io::stdout().lock(), "{}", text.as_ref())?;
        }
        Ok(())
    }
}

/// Prints an error with its causes.
pub(crate) fn print_error(error: &anyhow::Error) {
    let label = paint("error:", "31;1");
    progress::show("");
    // With standard error closed the error cannot be reported.
    let _closed = writeln!(io::stderr().lock(), "{label} {error:#}");
}

/// Prints a remark for the reader of standard error.
pub(crate) fn note(text: impl AsRef<str>) {
    progress::show("");
    let _closed = writeln!(io::stderr().lock(), "{}", text.as_ref());
}

/// Colours `text` when standard error is a terminal and `NO_COLOR` is not set.
fn paint(text: &str, code: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if plain || !io::stderr().is_terminal() {
        return text.to_owned();
    }
    format!("\x1b[{code}m{text}\x1b[0m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_begin_with_their_type() {
        #[derive(Serialize)]
        struct Body {
            rate_bps: u64,
        }
        let body = Body { rate_bps: 5 };
        let line = serde_json::to_string(&Record { kind: "summary", body: &body }).unwrap();
        assert_eq!(line, r#"{"type":"summary","rate_bps":5}"#);
    }
}
