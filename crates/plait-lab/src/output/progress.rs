//! Live progress on standard error: the current step, and the remaining time.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CLEAR_LINE: &str = "\r\x1b[2K";
/// Without a terminal, time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Replaces the terminal's progress line; does nothing without a terminal.
pub(super) fn show(text: &str) {
    if io::stderr().is_terminal() {
        let mut stderr = io::stderr().lock();
        let _closed = write!(stderr, "{CLEAR_LINE}{text}").and_then(|()| stderr.flush());
    }
}

/// A sequence of steps of known length.
#[derive(Debug)]
pub(crate) struct Progress {
    steps: usize,
    started: usize,
    left: Duration,
}

impl Progress {
    /// `steps` steps that take `total` together.
    pub(crate) fn new(steps: usize, total: Duration) -> Self {
        Self { steps, started: 0, left: total }
    }

    /// Shows that a step runs until the value returned is dropped.
    pub(crate) fn step(&mut self, what: &str, expected: Duration) -> Step {
        self.started += 1;
        let label = format!("[{}/{}] {what}", self.started, self.steps);
        self.left = self.left.saturating_sub(expected);
        Step::start(label, expected, self.left)
    }
}

/// A running step.
#[derive(Debug)]
pub(crate) struct Step {
    stop: mpsc::Sender<()>,
    ticker: Option<JoinHandle<()>>,
}

impl Step {
    fn start(label: String, expected: Duration, after: Duration) -> Self {
        let (stop, stopped) = mpsc::channel();
        if !io::stderr().is_terminal() {
            let seconds = expected.as_secs();
            super::note(format!("{label}: {seconds} s, then about {} more", told(after)));
            return Self { stop, ticker: None };
        }
        let ticker = std::thread::spawn(move || tick(&label, expected, after, &stopped));
        Self { stop, ticker: Some(ticker) }
    }
}

fn tick(label: &str, expected: Duration, after: Duration, stopped: &mpsc::Receiver<()>) {
    let start = Instant::now();
    loop {
        let left = expected.saturating_sub(start.elapsed());
        show(&format!("{label}: {} left ({} in all)", told(left), told(left + after)));
        if stopped.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
            return show("");
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        let _gone = self.stop.send(());
        if let Some(ticker) = self.ticker.take() {
            let _panicked = ticker.join();
        }
    }
}

/// A sequence of jobs of about the same length, which is not known in advance.
#[derive(Debug)]
pub(crate) struct Meter {
    name: String,
    /// What is counted.
    what: &'static str,
    jobs: usize,
    done: usize,
    started: Instant,
    told: Instant,
}

impl Meter {
    pub(crate) fn new(name: impl Into<String>, what: &'static str, jobs: usize) -> Self {
        let now = Instant::now();
        let meter = Self { name: name.into(), what, jobs, done: 0, started: now, told: now };
        show(&meter.text());
        meter
    }

    /// Notes that one more is done.
    pub(crate) fn finished_one(&mut self) {
        self.reach(self.done + 1);
    }

    /// Notes how many are done.
    pub(crate) fn reach(&mut self, done: usize) {
        if done == self.done {
            return;
        }
        self.done = done;
        show(&self.text());
        if !io::stderr().is_terminal() && self.told.elapsed() >= PAUSE {
            self.told = Instant::now();
            super::note(self.text());
        }
    }

    /// The progress, and the remaining time at this pace.
    pub(crate) fn text(&self) -> String {
        let left = match time_left(self.started.elapsed(), self.done, self.jobs) {
            Some(left) => format!(", about {} left", told(left)),
            None => String::new(),
        };
        format!("{}: {} of {} {} done{left}", self.name, self.done, self.jobs, self.what)
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        show("");
    }
}

/// Remaining time at the pace so far; unknown before the first is done.
fn time_left(elapsed: Duration, done: usize, jobs: usize) -> Option<Duration> {
    let left = jobs.saturating_sub(done);
    (done > 0).then(|| elapsed.mul_f64(left as f64 / done as f64))
}

/// A time in a suitable unit.
fn told(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
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

    #[test]
    fn an_estimate_comes_with_the_first_that_is_done() {
        let mut meter = Meter::new("ladder", "runs", 4);
        assert_eq!(meter.text(), "ladder: 0 of 4 runs done");
        meter.finished_one();
        assert!(meter.text().starts_with("ladder: 1 of 4 runs done, about "));
        meter.reach(4);
        assert_eq!(meter.text(), "ladder: 4 of 4 runs done, about 0 s left");
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        let texts = [0, 119, 120, 7199, 7200].map(|seconds| told(Duration::from_secs(seconds)));
        assert_eq!(texts, ["0 s", "119 s", "2 min", "120 min", "2 h"]);
    }
}
