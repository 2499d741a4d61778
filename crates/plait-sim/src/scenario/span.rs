//! Spans of time in a run.

use plait_proto::time::Duration;
use plait_toml::{Bounds, Problem, Section};

/// A span of a run: from `start` up to, not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Since the run began.
    pub start: Duration,
    /// Since the run began; after `start`.
    pub end: Duration,
}

/// A duration in milliseconds.
pub(super) fn millis(number: f64) -> Duration {
    Duration::from_secs_f64(number / 1e3)
}

/// Spans of time in seconds, each after the one before.
pub(super) fn read_all(section: &mut Section<'_>, key: &'static str) -> Option<Vec<Span>> {
    const BOTH: (Bounds, Bounds) = (Bounds::SECONDS, Bounds::SECONDS);
    let pairs = section.pairs(key, BOTH, "a list of pairs [start, end]")?;
    let mut end_s = 0.0;
    for (start, end) in &pairs {
        if *start < end_s || end <= start {
            let text = format!("the span from {start} to {end} s is out of order");
            let help = "let each span end after its start, and start after the one before";
            section.problem(key, Problem::new(text, help));
            return None;
        }
        end_s = *end;
    }
    let span = |(start, end)| Span {
        start: Duration::from_secs_f64(start),
        end: Duration::from_secs_f64(end),
    };
    Some(pairs.into_iter().map(span).collect())
}
