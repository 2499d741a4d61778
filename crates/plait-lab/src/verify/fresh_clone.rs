//! bond.6 and road.6: the README's two commands in a fresh clone. The lab's namespaces have no
//! Internet access, so it also shows that they need no network once the libraries are there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::{Effort, Figure};
use crate::output::Progress;
use crate::process;
use crate::scratch::Scratch;

const GIT_LIMIT: Duration = Duration::from_secs(60);
const MAKE_LIMIT: Duration = Duration::from_secs(3600);
/// What is expected of a target, for the progress.
const MAKE_TIME: Duration = Duration::from_secs(600);
/// The longest that `make test` may take in a fresh clone.
const TEST_MAX_S: f64 = 20.0 * 60.0;
/// Characters of a failed run that are shown.
const TAIL_CHARS: usize = 4000;

/// bond.6: the tests.
pub(super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let clone = FreshClone::make("bond.6")?;
    let mut progress = Progress::new(1, MAKE_TIME);
    let (status, time_s) = clone.run("test", &mut progress)?;
    Ok(vec![
        exit_status("test", status).exactly(0.0, "the README's second command"),
        Figure::number("time", time_s, "s"),
    ])
}

/// road.6: both commands, each in a clone of its own.
pub(super) fn check_times(_effort: Effort) -> Result<Vec<Figure>> {
    const SOURCE: &str = "road.6";
    let mut progress = Progress::new(2, 2 * MAKE_TIME);
    let mut figures = Vec::new();
    for (target, most_s) in [("demo", None), ("test", Some(TEST_MAX_S))] {
        let (status, time_s) = FreshClone::make(SOURCE)?.run(target, &mut progress)?;
        figures.push(exit_status(target, status).exactly(0.0, SOURCE));
        let time = Figure::number(format!("make {target}: time"), time_s, "s");
        figures.push(match most_s {
            Some(most_s) => time.at_most(most_s, SOURCE),
            None => time,
        });
    }
    Ok(figures)
}

fn exit_status(target: &str, status: u32) -> Figure {
    Figure::count(format!("exit status of make {target} in a fresh clone"), u64::from(status))
}

/// A clone of what is committed here.
struct FreshClone {
    folder: PathBuf,
    _scratch: Scratch,
}

impl FreshClone {
    fn make(promise: &str) -> Result<Self> {
        let root =
            process::run(Command::new("git").args(["rev-parse", "--show-toplevel"]), "", GIT_LIMIT)
                .with_context(|| format!("{promise} is checked from within a clone"))?;
        let scratch = Scratch::on_disk("clone")?;
        let folder = scratch.path().join("plait");
        let mut command = Command::new("git");
        command.args(["clone", "--quiet"]).arg(Path::new(root.trim())).arg(&folder);
        process::run(&mut command, "", GIT_LIMIT)?;
        Ok(Self { folder, _scratch: scratch })
    }

    /// Makes a target: its exit status, and the seconds that it took. What a failed run said last
    /// is shown.
    fn run(&self, target: &str, progress: &mut Progress) -> Result<(u32, f64)> {
        let _step = progress.step(&format!("make {target} in a fresh clone"), MAKE_TIME);
        let start = Instant::now();
        let mut command = Command::new("make");
        command.arg(target).current_dir(&self.folder).env("CARGO_NET_OFFLINE", "true");
        // The clone builds what it runs.
        command.env_remove("PLAIT_BIN").env_remove("CARGO_TARGET_DIR");
        let finished = process::run_any(&mut command, "", MAKE_LIMIT)?;
        let status = finished.status.code().unwrap_or(255).unsigned_abs();
        if status != 0 {
            let said = finished.stdout + &finished.stderr;
            let skip = said.chars().count().saturating_sub(TAIL_CHARS);
            crate::output::note(said.chars().skip(skip).collect::<String>());
        }
        Ok((status, start.elapsed().as_secs_f64()))
    }
}
