//! Runs in namespaces, several at a time, each in a process of its own: for those that ask little
//! of the machine, such as a player's, and take long. Whether it kept up with all of them, each run
//! judges itself.

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{PreparedRun, netns};
use crate::cli::RunArgs;
use crate::output::{self, Meter};
use crate::process;
use crate::record::{Record, Results, RunRecord};
use crate::worker::pool;

/// A run that the machine did not keep up with is made again, so many times in all. Each of them
/// tries by itself, too.
const TRIES: usize = 2;
/// A run's expected time may be exceeded so many times: by its own repetitions, and by a bit.
const TIME_FACTOR: u32 = 5;

/// How to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AtOnce {
    /// How many runs.
    pub(crate) runs: usize,
    /// The least time from one run's beginning to the next one's: a browser's start, of which two
    /// fill this machine, then delays nobody else's first second.
    pub(crate) begun_apart: Duration,
}

impl AtOnce {
    /// Runs every cell with every seed. Runs with which the machine never kept up are missing.
    ///
    /// # Errors
    ///
    /// The scenario cannot run in namespaces, or a run fails for another reason.
    pub(crate) fn results(self, args: &RunArgs) -> Result<Results> {
        let plan = PreparedRun::new(args)?;
        let started = Instant::now();
        // Cells alternate, as in runs one by one.
        let jobs: Vec<(usize, u64)> = plan
            .seeds()
            .flat_map(|seed| (0..plan.cells().len()).map(move |cell| (cell, seed)))
            .collect();
        output::note(format!(
            "{} on netns: {} runs, {} at a time",
            plan.name(),
            jobs.len(),
            self.runs.min(jobs.len())
        ));
        let mut meter = Meter::new(plan.name(), "runs", jobs.len());
        let turns = Turns::new(self.begun_apart);
        let work = |at: usize| apart(&plan, &turns, jobs[at].0, jobs[at].1);
        let mut runs = Vec::new();
        pool::in_order_on(self.runs, jobs.len(), work, |result| -> Result<()> {
            match result {
                None => meter.finished_one(),
                Some(run) => runs.extend(run?),
            }
            Ok(())
        })?;
        Ok(plan.evaluate(runs, started))
    }
}

/// When runs may begin: one after the other, a while apart.
struct Turns {
    apart: Duration,
    next: Mutex<Option<Instant>>,
}

impl Turns {
    fn new(apart: Duration) -> Self {
        Self { apart, next: Mutex::new(None) }
    }

    /// Takes the next turn; how long it is away from `now`.
    fn wait_from(&self, now: Instant) -> Duration {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.map_or(now, |next| next.max(now));
        *next = Some(turn + self.apart);
        turn - now
    }
}

/// A run in a process of its own; none if the machine did not keep up.
fn apart(plan: &PreparedRun, turns: &Turns, cell: usize, seed: u64) -> Result<Option<RunRecord>> {
    let words = plan.naming.words(&plan.cells()[cell], seed);
    let limit = netns::run_time(&plan.cells()[cell].scenario) * TIME_FACTOR;
    for _ in 0..TRIES {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(&words[1..]).arg("--json");
        thread::sleep(turns.wait_from(Instant::now()));
        let finished = process::run_any(&mut command, "", limit)?;
        // A scenario's own checks are another matter.
        if finished.status.code().is_some_and(|code| code < 2) {
            return record(&finished.stdout).map(Some);
        }
        let said = finished.stderr.trim();
        if !netns::tells_of_a_slow_machine(said) {
            bail!("{}: {said}", words.join(" "));
        }
        output::note(format!("{}: the machine did not keep up", words.join(" ")));
    }
    Ok(None)
}

/// The one run in a command's output.
fn record(lines: &str) -> Result<RunRecord> {
    for line in lines.lines() {
        if let Record::Run(run) = serde_json::from_str(line)? {
            return Ok(run);
        }
    }
    Err(anyhow::anyhow!("no record of a run")).context("a run's output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_could_begin_together_take_turns() {
        let turns = Turns::new(Duration::from_secs(10));
        let now = Instant::now();
        let waits = [0, 0, 3, 50].map(|at_s| turns.wait_from(now + Duration::from_secs(at_s)));
        assert_eq!(waits.map(|wait| wait.as_secs()), [0, 10, 17, 0]);
    }

    #[test]
    fn the_record_of_a_run_is_found_among_others() {
        let run = concat!(
            r#"{"type":"run","scenario":"x/y","cell":"base","settings":{},"seed":7,"#,
            r#""command":"c","version":"0","commit":"0","scenario_digest":"d","#,
            r#""interval_s":1.0,"metrics":{"a":1.0},"series":{"b":[1.0]}}"#
        );
        let cell = concat!(
            r#"{"type":"cell","scenario":"x/y","cell":"base","settings":{},"seeds":[7],"#,
            r#""figures":[]}"#
        );
        let found = record(&format!("{cell}\n{run}\n")).unwrap();
        assert_eq!((found.seed, found.metrics["a"], found.series.len()), (7, 1.0, 1));
        assert!(record(cell).is_err());
    }
}
