//! dida.5: 000's Fig. 12 with the kernel's TCP: how long files take over each link alone, over a
//! steering node with and without DIDA, and over the kernel's MPTCP.
//!
//! The paper measured a sender that counts three duplicate ACKs. Today's kernel has RACK, which
//! waits a reordering time instead; so the paper's claims are told with whether they hold, and are
//! no bars. Bars are: each file arrives whole, both attachments carry their share, and nothing is
//! held afterwards. Of a claim that one way is "no slower" than another the medians decide, with
//! two per cent of tolerance.
//!
//! Without SACK the kernel still counts duplicate ACKs (RFC 6582), so a pair of rows shows that
//! world, too.

mod cases;
mod claims;
mod course;
mod figures;

use anyhow::{Context, Result};

use super::super::{Effort, Figure};
use crate::emulator::Lateness;
use crate::output::{self, Progress};
use cases::{CASES, CONDITIONS, Case, Condition};
use course::Course;

/// Sizes of the files, in megabytes of 10^6 bytes.
const SIZES_MB: [u64; 3] = [1, 4, 16];
/// Without SACK and without DIDA larger ones take a minute.
const SIZES_WITHOUT_SACK_MB: [u64; 2] = [1, 4];
/// Claims are about files of this size on.
const CLAIMED_MB: u64 = 4;
/// A machine may be too busy for a moment.
const TRIES: usize = 2;

/// All runs of a case.
#[derive(Debug)]
struct Shown {
    condition: &'static Condition,
    case: &'static Case,
    courses: Vec<Course>,
}

/// What was measured, and whether the machine kept up.
#[derive(Debug)]
struct Measured {
    shown: Vec<Shown>,
    lateness: Lateness,
    busy_runs: u64,
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    Ok(figures::of(&measure(effort.runs)?))
}

/// The cases take turns, so that a machine that is busy for some minutes spoils none of them more
/// than the others.
fn measure(runs: usize) -> Result<Measured> {
    let mut measured = Measured { shown: Vec::new(), lateness: Lateness::default(), busy_runs: 0 };
    for condition in &CONDITIONS {
        let cases = CASES.iter().filter(|case| case.is_for(condition));
        let shown = cases.map(|case| Shown { condition, case, courses: Vec::new() });
        measured.shown.extend(shown);
    }
    let time = course::time_guess(&SIZES_MB);
    let steps: usize = measured.shown.iter().map(|shown| shown.condition.runs(runs)).sum();
    let runs_most = CONDITIONS.iter().map(|condition| condition.runs(runs)).max().unwrap_or(0);
    let mut progress = Progress::new(steps, time * u32::try_from(steps)?);
    for run in 0..runs_most {
        for at in 0..measured.shown.len() {
            let Shown { condition, case, .. } = measured.shown[at];
            if run >= condition.runs(runs) {
                continue;
            }
            let what = format!("{}: {}", condition.name, case.name);
            let _step = progress.step(&what, time);
            let course = measured.course(condition, case, run as u64 + 1);
            let course = course.with_context(|| format!("while measuring {what}"))?;
            measured.shown[at].courses.push(course);
        }
    }
    Ok(measured)
}

impl Measured {
    fn course(&mut self, condition: &Condition, case: &Case, run: u64) -> Result<Course> {
        let mut left = TRIES;
        loop {
            let (course, lateness) = course::run(condition, case, case.sizes_mb(), run)?;
            left -= 1;
            if lateness.is_too_late() && left > 0 {
                output::note(format!("{}: the machine was too busy; once more", case.name));
                continue;
            }
            self.busy_runs += u64::from(lateness.is_too_late());
            self.lateness.add(&lateness);
            return Ok(course);
        }
    }
}
