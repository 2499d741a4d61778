//! bond.6: `make test` in a fresh clone. The lab's namespaces have no Internet access, so it also
//! shows that the tests need no network once the libraries are there.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Effort, Figure};
use crate::output::Progress;
use crate::process;
use crate::scratch::Scratch;

const GIT_LIMIT: Duration = Duration::from_secs(60);
const TEST_LIMIT: Duration = Duration::from_secs(3600);
/// Characters of a failed test run that are shown.
const TAIL_CHARS: usize = 4000;

pub(super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let root =
        process::run(Command::new("git").args(["rev-parse", "--show-toplevel"]), "", GIT_LIMIT)
            .context("bond.6 is checked from within a clone of the repository")?;
    let scratch = Scratch::on_disk("clone")?;
    let clone = scratch.path().join("plait");
    let mut command = Command::new("git");
    command.args(["clone", "--quiet", root.trim()]).arg(&clone);
    process::run(&mut command, "", GIT_LIMIT)?;
    let mut progress = Progress::new(1, Duration::from_secs(600));
    let _step = progress.step("make test in a fresh clone", Duration::from_secs(600));
    let start = Instant::now();
    let mut command = Command::new("make");
    command.arg("test").current_dir(&clone).env("CARGO_NET_OFFLINE", "true");
    // The clone builds what it tests.
    command.env_remove("PLAIT_BIN").env_remove("CARGO_TARGET_DIR");
    let finished = process::run_any(&mut command, "", TEST_LIMIT)?;
    let status = finished.status.code().unwrap_or(255).unsigned_abs();
    if status != 0 {
        let said = finished.stdout + &finished.stderr;
        let skip = said.chars().count().saturating_sub(TAIL_CHARS);
        crate::output::note(said.chars().skip(skip).collect::<String>());
    }
    Ok(vec![
        Figure::count("exit status of make test in a fresh clone", u64::from(status))
            .exactly(0.0, "the README's second command"),
        Figure::number("time", start.elapsed().as_secs_f64(), "s"),
    ])
}
