//! Where samples go: the screen or stdout, files, and a page at the end.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plait_trace::course::Courses;
use plait_trace::page;
use plait_trace::sample::Sample;
use serde::Serialize;

use super::LiveArgs;
use super::choice::Head;
use super::live::Live;
use super::rotate::Rotating;
use super::words::{self, Summary};
use crate::advice::{Advised, help_to_write};

/// How often what was printed reaches its reader.
const FLUSH: Duration = Duration::from_millis(500);
/// A socket that tells nothing for so long leaves the live screen.
const QUIET_S: f64 = 10.0;

/// What is shown while it runs.
enum Shown {
    Live(Box<Live>),
    Text(BufWriter<Stdout>),
    Json(BufWriter<Stdout>),
    /// Stdout is silent, as a file or a page takes the samples.
    Nothing,
}

/// Everything that takes samples.
pub(super) struct Sinks {
    shown: Shown,
    file: Option<Rotating>,
    page: Option<PathBuf>,
    courses: Courses,
    begun: Instant,
    flushed: Instant,
}

/// A record of JSON Lines.
#[derive(Serialize)]
struct Record<'a, T> {
    r#type: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

fn record<T: Serialize>(kind: &'static str, content: &T) -> String {
    let text = serde_json::to_string(&Record { r#type: kind, content });
    text.expect("invariant: records have no maps with odd keys") + "\n"
}

impl Sinks {
    /// Opens all of them, and writes the first line.
    pub(super) fn open(args: &LiveArgs, head: &Head, begun: Instant) -> anyhow::Result<Self> {
        let first = record("trace", head);
        let bytes_max = args.megabytes.saturating_mul(1_000_000);
        let file = match &args.output {
            Some(path) => Some(Rotating::create(path, bytes_max, first.clone())?),
            None => None,
        };
        if let Some(path) = &args.html {
            // A page that cannot be written is told now, and not at the end.
            open_page(path).map_err(|cause| cannot_write(path, cause))?;
        }
        let is_silent = args.output.is_some() || args.html.is_some();
        let mut stdout = BufWriter::new(io::stdout());
        let shown = if args.json {
            stdout.write_all(first.as_bytes())?;
            stdout.flush()?;
            Shown::Json(stdout)
        } else if is_screen() {
            Shown::Live(Box::new(Live::open(head.sentence())?))
        } else {
            writeln!(stdout, "{}", head.sentence())?;
            stdout.flush()?;
            if is_silent { Shown::Nothing } else { Shown::Text(stdout) }
        };
        let (courses, page) = (Courses::default(), args.html.clone());
        Ok(Self { shown, file, page, courses, begun, flushed: begun })
    }

    /// Takes a sample.
    pub(super) fn take(&mut self, sample: Sample) -> anyhow::Result<()> {
        let text = match (&self.shown, &self.file) {
            (Shown::Json(_), _) | (_, Some(_)) => record("sample", &sample),
            _ => String::new(),
        };
        match &mut self.shown {
            Shown::Json(stdout) => stdout.write_all(text.as_bytes())?,
            Shown::Text(stdout) => stdout.write_all(words::line(&sample).as_bytes())?,
            Shown::Live(_) | Shown::Nothing => {}
        }
        if let Some(file) = &mut self.file {
            let written = file.write(&text);
            self.file_went(written)?;
        }
        if self.page.is_some() || matches!(self.shown, Shown::Live(_)) {
            self.courses.take(sample);
        }
        Ok(())
    }

    /// What is to be done now and then; breaks when the user has ended it.
    pub(super) fn tick(&mut self) -> anyhow::Result<ControlFlow<()>> {
        if let Shown::Live(live) = &mut self.shown {
            if self.page.is_none() {
                self.courses.forget(self.begun.elapsed().as_secs_f64(), QUIET_S);
            }
            if live.show(&self.courses)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if self.flushed.elapsed() >= FLUSH {
            self.flushed = Instant::now();
            self.flush()?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if let Shown::Text(stdout) | Shown::Json(stdout) = &mut self.shown {
            stdout.flush()?;
        }
        let written = self.file.as_mut().map_or(Ok(()), Rotating::flush);
        self.file_went(written)
    }

    /// A file that takes no more is told once; the trace goes on while something else is left.
    fn file_went(&mut self, result: io::Result<()>) -> anyhow::Result<()> {
        let Err(cause) = result else { return Ok(()) };
        self.file = None;
        let help = help_to_write(&cause).unwrap_or("look at its disk");
        let told = Advised::new("the trace's file takes no more", help).caused_by(cause);
        if matches!(self.shown, Shown::Nothing) && self.page.is_none() {
            return Err(told.into());
        }
        match &mut self.shown {
            Shown::Live(live) => live.note(format!("{:#}", anyhow::Error::from(told))),
            _ => log_warning(&told),
        }
        Ok(())
    }

    /// Writes the last lines and the page.
    pub(super) fn end(mut self, head: &Head, summary: &Summary) -> anyhow::Result<()> {
        let last = record("summary", summary);
        match &mut self.shown {
            Shown::Json(stdout) => stdout.write_all(last.as_bytes())?,
            Shown::Text(stdout) => writeln!(stdout, "{}", summary.sentence())?,
            Shown::Live(_) | Shown::Nothing => {}
        }
        if let Some(file) = &mut self.file {
            let written = file.write(&last);
            self.file_went(written)?;
        }
        self.flush()?;
        let was_silent = matches!(self.shown, Shown::Live(_) | Shown::Nothing);
        // Gives the terminal back.
        self.shown = Shown::Nothing;
        if was_silent {
            println_checked(&summary.sentence())?;
        }
        let Some(path) = &self.page else { return Ok(()) };
        let words = [head.sentence(), summary.sentence()];
        let text = page::trace(&words, &self.courses);
        fs::write(path, text).map_err(|cause| cannot_write(path, cause))?;
        Ok(())
    }
}

fn println_checked(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).context("cannot print")
}

fn log_warning(told: &Advised) {
    let cause = std::error::Error::source(told);
    let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
    // With stderr closed the warning cannot be told.
    let _ = writeln!(io::stderr(), "plait: warning: {told}{cause}; the trace goes on without it");
}

fn open_page(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map(|_| ())
}

/// Why a page is not there.
pub(super) fn cannot_write(path: &Path, cause: io::Error) -> Advised {
    let help = help_to_write(&cause).unwrap_or("give a file that can be written, by --html");
    Advised::new(format!("{} cannot be written", path.display()), help).caused_by(cause)
}

/// A terminal that can move its cursor.
fn is_screen() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    !is_dumb && io::stdout().is_terminal()
}
