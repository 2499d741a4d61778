//! Measurements that the machine itself spoiled are made again.

use anyhow::Result;

use super::super::Figure;
use crate::machine::Watch;
use crate::output;

/// A machine may be interrupted for a moment, and for longer than one wants to wait.
const TRIES: usize = 4;

/// How often the machine stood still rather than the bond.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    repeated: u64,
    spoiled: u64,
}

impl Repeats {
    /// Does `work`, again while the machine keeps programs waiting, at most four times. What the
    /// last time gives counts in any case.
    pub(super) fn undisturbed<T>(
        &mut self,
        what: &str,
        mut work: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        for left in (0..TRIES).rev() {
            let watch = Watch::start();
            let result = work()?;
            let seen = watch.end();
            if !seen.spoils() {
                return Ok(result);
            }
            if left == 0 {
                output::note(format!("{what}: {seen}; it counts all the same"));
                self.spoiled += 1;
                return Ok(result);
            }
            output::note(format!("{what}: {seen}; once more"));
            self.repeated += 1;
        }
        unreachable!("the last of the tries gives its result");
    }

    pub(super) fn figures(&self) -> [Figure; 2] {
        [
            Figure::count("runs made again on a machine that was interrupted", self.repeated),
            Figure::count("runs that count although it was", self.spoiled),
        ]
    }
}
