//! Programs under another release of the kernel, in a guest that sees this machine's files,
//! read-only, and has a network of its own without a way out. Its clock is virtual, so that what is
//! measured inside does not depend on how busy this machine is.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cli::vm::Guest;
use crate::process::{self, Finished};
use crate::scratch::Scratch;
use error::VmError;
use init::{CODE, Init, OUT, SAID};

pub(crate) mod command;
mod error;
mod init;
mod initramfs;
mod qemu;
pub(crate) mod timer;
mod uml;

/// Lines of what was said that an error shows.
const TAIL_LINES: usize = 20;

/// What a guest is booted for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    /// Tells guests apart that run at once.
    pub(crate) name: &'a str,
    /// A program and its arguments.
    pub(crate) command: &'a [String],
    /// In this machine's time.
    pub(crate) limit: Duration,
}

/// A command that ended in a guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    /// Its exit status.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) said: String,
}

/// Whether this machine can boot such a guest.
///
/// # Errors
///
/// [`VmError`]: what is missing.
pub(crate) fn check(guest: Guest) -> Result<()> {
    let tools = tools()?;
    match guest {
        Guest::Uml => uml::kernel(&tools).map(|_| ()),
        Guest::Qemu => qemu::kernel(&tools).map(|_| ()),
    }
}

/// The folder of what scripts build for the lab.
fn tools() -> Result<PathBuf> {
    let this = env::current_exe().context("cannot find this program's own place")?;
    let target = this.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    Ok(target.join("tools"))
}

/// Boots a kernel and runs a command in it. The guest ends with this process, which is process 1 of
/// its namespace, however it ended; so nothing is left to remove.
///
/// # Errors
///
/// [`VmError`]; the job's limit passed.
pub(crate) fn boot(guest: Guest, job: Job<'_>) -> Result<Ended> {
    let tools = tools()?;
    let scratch = Scratch::in_memory(&format!("vm-{}", job.name))?;
    let folder = scratch.path();
    let init_file = folder.join("init");
    let (prelude, end, mut command) = match guest {
        Guest::Uml => {
            let command = uml::command(&uml::kernel(&tools)?, job.name, folder, &init_file);
            (uml::prelude(folder), uml::END, command)
        }
        Guest::Qemu => {
            let image = qemu::kernel(&tools)?;
            (qemu::prelude(&image), qemu::END, qemu::command(&image, folder, &init_file)?)
        }
    };
    let this = env::current_exe()?;
    let programs = this.parent().unwrap_or(Path::new("/usr/bin"));
    let from = env::current_dir()?;
    let init = Init { prelude: &prelude, from: &from, programs, command: job.command, end };
    fs::write(&init_file, init.script())?;
    let Finished { status, stdout, stderr } = process::run_any(&mut command, "", job.limit)?;
    let read = |name: &str| read_lossy(&folder.join(name));
    let code = read(CODE).and_then(|code| code.trim().parse().ok());
    let (out, said) = (read(OUT).unwrap_or_default(), read(SAID).unwrap_or_default());
    let Some(code) = code else {
        // The guest may have ended before its command began.
        let said = tail(&format!("{stdout}{stderr}{said}"));
        let kernel = command.get_program().to_string_lossy().into_owned();
        return Err(VmError::Failed { kernel, status: status.to_string(), said }.into());
    };
    Ok(Ended { code, out, said })
}

/// Runs this program with `args` in a guest, and returns what it printed.
///
/// # Errors
///
/// [`VmError`]; the command failed; `limit` passed.
pub(crate) fn run(guest: Guest, name: &str, args: &[String], limit: Duration) -> Result<String> {
    let this = env::current_exe()?.display().to_string();
    let command: Vec<String> = [this].into_iter().chain(args.iter().cloned()).collect();
    let Ended { code, out, said } = boot(guest, Job { name, command: &command, limit })?;
    if code == 0 {
        return Ok(out);
    }
    Err(VmError::Command { command: args.join(" "), code, said: tail(&said) }.into())
}

fn read_lossy(file: &Path) -> Option<String> {
    let bytes = fs::read(file).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines.
fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_the_last_lines() {
        let text: String = (1..=30).map(|line| format!("{line}\n")).collect();
        let tail = tail(&text);
        assert!(tail.starts_with("11\n") && tail.ends_with("\n30"), "{tail}");
    }
}
