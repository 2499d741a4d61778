//! Files of a link's capacity in mahimahi's format: each line is a time in whole milliseconds at
//! which the link can carry one packet of 1500 bytes; times do not decrease, and the trace repeats
//! after its last one.

use crate::link::Trace;

/// Reads a trace.
///
/// # Errors
///
/// The first line that is wrong.
pub fn parse(text: &str) -> Result<Trace, TraceError> {
    let mut times_ms = Vec::new();
    let mut last_ms = 0;
    for (index, written) in text.lines().enumerate() {
        let wrong = |problem| TraceError { line: index + 1, problem };
        let time_ms = written
            .parse::<u32>()
            .ok()
            .filter(|time_ms| *time_ms <= TIME_MAX_MS)
            .ok_or_else(|| wrong(TraceProblem::NotATime(written.chars().take(20).collect())))?;
        if time_ms < last_ms {
            return Err(wrong(TraceProblem::OutOfOrder { time_ms, last_ms }));
        }
        last_ms = time_ms;
        times_ms.push(time_ms);
    }
    Trace::new(times_ms).map_err(|_| TraceError { line: 1, problem: TraceProblem::NoTime })
}

/// A day.
const TIME_MAX_MS: u32 = 86_400_000;

/// Why a text is not a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem}")]
pub struct TraceError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: TraceProblem,
}

impl TraceError {
    /// What was expected.
    pub fn help(&self) -> &'static str {
        match self.problem {
            TraceProblem::NotATime(_) => {
                "write one time per line, in whole milliseconds up to 86400000"
            }
            TraceProblem::OutOfOrder { .. } => "sort the times; equal ones may stand in a row",
            TraceProblem::NoTime => "write at least one time above zero: the trace's length",
        }
    }
}

/// What is wrong with a line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceProblem {
    /// Not a whole number of milliseconds.
    #[error("\"{0}\" is not a time in milliseconds")]
    NotATime(String),
    /// Earlier than the line before.
    #[error("{time_ms} ms comes after {last_ms} ms")]
    OutOfOrder {
        /// The line's time.
        time_ms: u32,
        /// The time on the line before.
        last_ms: u32,
    },
    /// No time above zero in the whole file.
    #[error("the trace has no length")]
    NoTime,
}

#[cfg(test)]
mod tests {
    use plait_proto::time::Duration;
    use plait_proto::units::Rate;

    use super::*;

    #[test]
    fn capacity_is_1500_bytes_a_line() {
        let trace = parse("0\n5\n5\n10\n").unwrap();
        assert_eq!(trace.opportunities_ms(), [0, 5, 5, 10]);
        assert_eq!(trace.period(), Duration::from_millis(10));
        assert_eq!(trace.mean_rate(), Rate::from_bits_per_second(4_800_000));
    }

    #[test]
    fn the_first_wrong_line_is_named() {
        for (text, line, words) in [
            ("1\n7\n5\n", 3, "5 ms comes after 7 ms"),
            ("1\n\n5\n", 2, "\"\" is not a time in milliseconds"),
            ("1\n-2\n", 2, "\"-2\" is not a time in milliseconds"),
            ("1.5\n", 1, "\"1.5\" is not a time in milliseconds"),
            ("99999999999\n", 1, "\"99999999999\" is not a time in milliseconds"),
            ("", 1, "the trace has no length"),
            ("0\n0\n", 1, "the trace has no length"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.line, error.to_string().as_str()), (line, words), "{text:?}");
        }
    }
}
