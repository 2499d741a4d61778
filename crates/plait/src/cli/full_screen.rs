//! The terminal while a command draws on all of it.

use std::io;

use anyhow::Context as _;
use plait_net::terminal::Terminal;

use crate::control::end_with;

/// The terminal while it is ours: raw, on its second screen. Gives it back when dropped; a panic
/// gives it back before its message is printed.
pub(super) struct FullScreen {
    pub(super) terminal: ratatui::DefaultTerminal,
}

impl FullScreen {
    pub(super) fn open() -> io::Result<Self> {
        ratatui::try_init().map(|terminal| Self { terminal })
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // Restoring again after a panic would put the cursor onto its message.
        if !std::thread::panicking() {
            ratatui::restore();
        }
    }
}

/// A terminal that is gone returns end-of-file for ever, and reading keys never returns then.
/// Nothing is left to restore.
pub(super) fn end_with_terminal() -> anyhow::Result<()> {
    let terminal = Terminal::of_this_program().context("cannot look at the terminal")?;
    terminal.map_or(Ok(()), |terminal| end_with(terminal, || std::process::exit(0)))
}
