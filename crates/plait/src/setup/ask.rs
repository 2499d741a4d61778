//! Questions to the person at the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::advice::Advised;

/// Asks, unless nobody is there or everything is to be taken as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Questions {
    can_ask: bool,
}

impl Questions {
    /// `takes_defaults` says that no question is to be asked.
    pub(crate) fn new(takes_defaults: bool) -> Self {
        let both = io::stdin().is_terminal() && io::stderr().is_terminal();
        Self { can_ask: both && !takes_defaults }
    }

    /// A text; an empty answer, or nobody to ask, means `default`.
    ///
    /// # Errors
    /// There is no default and no answer: `option` is what would have given it.
    pub(crate) fn text(
        self,
        question: &str,
        default: Option<&str>,
        option: &str,
    ) -> anyhow::Result<String> {
        let shown = default.map(|default| format!(" [{default}]")).unwrap_or_default();
        let answer = if self.can_ask { line(&format!("{question}{shown}: "))? } else { None };
        let answer = answer.filter(|answer| !answer.is_empty());
        answer.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
            let message = format!("not known: {}", question.to_lowercase());
            Advised::new(message, format!("give it with {option}")).into()
        })
    }

    /// Yes or no; yes where nobody is there to be asked.
    ///
    /// # Errors
    /// The terminal's.
    pub(crate) fn agrees(self, question: &str) -> io::Result<bool> {
        if !self.can_ask {
            return Ok(true);
        }
        let answer = line(&format!("{question} [Y/n]: "))?.unwrap_or_else(|| "n".into());
        Ok(answer.is_empty() || answer.eq_ignore_ascii_case("y") || answer == "yes")
    }
}

/// Asks on stderr, so that stdout can be redirected; `None` at the end of the input.
fn line(question: &str) -> io::Result<Option<String>> {
    let mut out = io::stderr().lock();
    out.write_all(question.as_bytes())?;
    out.flush()?;
    let mut text = String::new();
    let read = io::stdin().lock().read_line(&mut text)?;
    Ok((read > 0).then(|| text.trim().to_owned()))
}
