//! How many runs are done and how long the rest will take, on standard error.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::output;

/// A row of runs of about the same length.
#[derive(Debug)]
pub(crate) struct Meter {
    name: String,
    jobs: usize,
    done: usize,
    started: Instant,
    told: Instant,
    is_live: bool,
}

/// Without a terminal, time between two lines.
const PAUSE: Duration = Duration::from_secs(10);
const CLEAR_LINE: &str = "\r\x1b[2K";

impl Meter {
    pub(crate) fn new(name: &str, jobs: usize, workers: usize) -> Self {
        let now = Instant::now();
        let is_live = io::stderr().is_terminal();
        if !is_live {
            let runs = if jobs == 1 { "run" } else { "runs" };
            output::note(format!("{name}: {jobs} {runs}, {workers} at a time"));
        }
        let meter = Self { name: name.to_owned(), jobs, done: 0, started: now, told: now, is_live };
        meter.show();
        meter
    }

    /// Notes that one more is done.
    pub(crate) fn finished_one(&mut self) {
        self.done += 1;
        self.show();
        if !self.is_live && self.told.elapsed() >= PAUSE {
            self.told = Instant::now();
            output::note(self.text());
        }
    }

    fn show(&self) {
        if self.is_live {
            let mut stderr = io::stderr().lock();
            let written = write!(stderr, "{CLEAR_LINE}{}", self.text());
            let _closed = written.and_then(|()| stderr.flush());
        }
    }

    fn text(&self) -> String {
        let left = match time_left(self.started.elapsed(), self.done, self.jobs) {
            Some(left) => format!(", about {} s left", left.as_secs_f64().ceil()),
            None => String::new(),
        };
        format!("{}: {} of {} runs done{left}", self.name, self.done, self.jobs)
    }

    /// Wipes the line.
    pub(crate) fn close(self) {
        if self.is_live {
            let _closed = write!(io::stderr().lock(), "{CLEAR_LINE}");
        }
    }
}

/// Time for the rest at the pace so far; not known before the first is done.
fn time_left(elapsed: Duration, done: usize, jobs: usize) -> Option<Duration> {
    let left = jobs.saturating_sub(done);
    (done > 0).then(|| elapsed.mul_f64(left as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        let elapsed = Duration::from_secs(6);
        assert_eq!(time_left(elapsed, 0, 9), None);
        assert_eq!(time_left(elapsed, 3, 9), Some(Duration::from_secs(12)));
        assert_eq!(time_left(elapsed, 9, 9), Some(Duration::ZERO));
    }
}
