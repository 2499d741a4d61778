//! The terminal that a program was started from, and how to notice its end.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;

/// The terminal of this program: the first of standard input, output and error that is one.
#[derive(Debug)]
pub struct Terminal(OwnedFd);

impl Terminal {
    /// `None` when none of the three is a terminal.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of_this_program() -> io::Result<Option<Self>> {
        let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
        let terminal = if stdin.is_terminal() {
            stdin.as_fd()
        } else if stdout.is_terminal() {
            stdout.as_fd()
        } else if stderr.is_terminal() {
            stderr.as_fd()
        } else {
            return Ok(None);
        };
        Ok(Some(Self(terminal.try_clone_to_owned()?)))
    }

    /// Sleeps until the terminal is gone: its window was closed, or its connection broke.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait_for_end(&self) -> io::Result<()> {
        sys::poll::wait_for_hangup(self.0.as_fd())
    }
}
