//! How exact a machine's timers are: sleeps, and a sender that keeps a pace.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::output::{Output, Verdict};

const SLEEPS: u32 = 100;
const SLEEP: Duration = Duration::from_millis(10);
/// A segment of 1500 bytes at 12 Mbit/s.
const PACE: Duration = Duration::from_millis(1);
const PACED: u32 = 1000;

/// What [`run`] finds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct TimerErrors {
    /// The kernel's release.
    pub(crate) kernel: String,
    /// The 99th percentile by which a sleep of 10 ms is too long.
    pub(crate) sleep_p99_us: u64,
    /// The 99th percentile by which a step of a sender is late that has one each millisecond.
    pub(crate) pace_p99_us: u64,
    /// The largest of both.
    pub(crate) most_us: u64,
}

/// Prints the errors of this machine's timers as JSON.
pub(crate) fn run(output: &Output) -> Result<Verdict> {
    let sleeps = (0..SLEEPS).map(|_| {
        let start = Instant::now();
        std::thread::sleep(SLEEP);
        start.elapsed().saturating_sub(SLEEP)
    });
    let sleeps: Vec<Duration> = sleeps.collect();
    let start = Instant::now();
    let paced = (1..=PACED).map(|step| {
        let due = start + PACE * step;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due.elapsed()
    });
    let errors = TimerErrors::of(Machine::detect().kernel, sleeps, paced.collect());
    output.record("timer", &errors)?;
    Ok(Verdict::Good)
}

impl TimerErrors {
    fn of(kernel: String, mut sleeps: Vec<Duration>, mut paced: Vec<Duration>) -> Self {
        let us = |late: Duration| u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        let p99 = |late: &mut Vec<Duration>| {
            late.sort_unstable();
            (us(late[late.len() * 99 / 100]), us(late[late.len() - 1]))
        };
        let (sleep_p99_us, longest) = p99(&mut sleeps);
        let (pace_p99_us, latest) = p99(&mut paced);
        Self { kernel, sleep_p99_us, pace_p99_us, most_us: longest.max(latest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_may_be_late() {
        let mut late = vec![Duration::from_micros(5); 200];
        late[7] = Duration::from_millis(3);
        let errors = TimerErrors::of("6.1".into(), late, vec![Duration::from_micros(9); 100]);
        assert_eq!((errors.sleep_p99_us, errors.pace_p99_us, errors.most_us), (5, 9, 3000));
    }
}
