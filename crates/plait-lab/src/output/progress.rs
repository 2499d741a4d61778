//! Live progress on standard error: what runs now and how long it will still take.

use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A row of steps of known length.
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

/// A step under way.
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
            super::note(format!("{label}: {seconds} s, then about {} s more", after.as_secs()));
            return Self { stop, ticker: None };
        }
        let ticker = std::thread::spawn(move || tick(&label, expected, after, &stopped));
        Self { stop, ticker: Some(ticker) }
    }
}

fn tick(label: &str, expected: Duration, after: Duration, stopped: &mpsc::Receiver<()>) {
    const CLEAR_LINE: &str = "\r\x1b[2K";
    let start = Instant::now();
    loop {
        let left = expected.saturating_sub(start.elapsed());
        let all = left + after;
        let mut stderr = io::stderr().lock();
        let text = format!("{label}: {} s left ({} s in all)", left.as_secs(), all.as_secs());
        let _closed = write!(stderr, "{CLEAR_LINE}{text}").and_then(|()| stderr.flush());
        drop(stderr);
        if stopped.recv_timeout(Duration::from_secs(1)) != Err(RecvTimeoutError::Timeout) {
            let _closed = write!(io::stderr().lock(), "{CLEAR_LINE}");
            return;
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
