//! Output for people: colour, errors, and a quiet end when the reader goes away.

use std::io::{self, IsTerminal};

use crate::advice::Advised;
use crate::config::ConfigErrors;

/// Whether to colour one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// For stdout: colour on a terminal, unless NO_COLOR is set and not empty.
    pub(crate) fn for_stdout() -> Self {
        Self { colour: io::stdout().is_terminal() && !no_color() }
    }

    /// For stderr, by the same rule.
    pub(crate) fn for_stderr() -> Self {
        Self { colour: io::stderr().is_terminal() && !no_color() }
    }

    /// No colour at all.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colour: false };

    pub(crate) fn has_colour(self) -> bool {
        self.colour
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Whether the failure only means that the reader of the output has gone, as in
/// `plait status | head`.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// The text of a failure: `plait: error: …` with its causes, then `help:` lines.
pub(crate) fn render_error(error: &anyhow::Error, style: Style) -> String {
    if let Some(errors) = error.downcast_ref::<ConfigErrors>() {
        return errors
            .iter()
            .map(|one| paragraph(&one.to_string(), Some(&one.help()), style))
            .collect();
    }
    let help = error.chain().find_map(|cause| cause.downcast_ref::<Advised>()).map(Advised::help);
    paragraph(&format!("{error:#}"), help, style)
}

fn paragraph(message: &str, help: Option<&str>, style: Style) -> String {
    let mut text = format!("plait: {} {message}\n", style.red("error:"));
    if let Some(help) = help {
        text.push_str(&format!("  {} {help}\n", style.bold("help:")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_carries_its_causes_and_its_remedy() {
        let cause = io::Error::new(io::ErrorKind::NotFound, "no such file");
        let error = anyhow::Error::new(
            Advised::new("cannot reach the gateway", "start it with `plait up`").caused_by(cause),
        );
        assert_eq!(
            render_error(&error, Style::PLAIN),
            "plait: error: cannot reach the gateway: no such file\n  \
             help: start it with `plait up`\n"
        );
    }

    #[test]
    fn colour_marks_the_word_alone() {
        let style = Style { colour: true };
        assert_eq!(
            render_error(&anyhow::anyhow!("odd"), style),
            "plait: \x1b[31merror:\x1b[0m odd\n"
        );
    }

    #[test]
    fn a_broken_pipe_is_found_beneath_other_causes() {
        let pipe = anyhow::Error::new(io::Error::from(io::ErrorKind::BrokenPipe)).context("status");
        assert!(is_broken_pipe(&pipe));
        assert!(!is_broken_pipe(&anyhow::anyhow!("odd")));
    }
}
