//! Programs under another release of the kernel: user-mode Linux, a kernel that is a program
//! itself. It sees this machine's files, read-only, and has a network of its own without a way
//! out.
//!
//! Its time is virtual: what is computed takes none, and while all sleep the clock goes on to the
//! next timer. So what is measured inside does not depend on how busy this machine is.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use thiserror::Error;

use crate::process::{self, Finished};
use crate::scratch::Scratch;

pub(crate) mod timer;

/// Names another kernel than the one that `scripts/linux-6.1` builds.
const KERNEL_ENV: &str = "PLAIT_LINUX_6_1";
const MEMORY: &str = "mem=512M";
/// What the guest leaves in its folder: the command's output, what else it said, and, if it
/// succeeded, that it did. Files, because a kernel that halts may lose the end of its console.
const OUT: &str = "out";
const SAID: &str = "said";
const DONE: &str = "done";
/// Lines of what was said that an error shows.
const TAIL_LINES: usize = 20;

/// Why nothing can be run under another kernel.
#[derive(Debug, Error)]
pub(crate) enum VmError {
    /// There is no kernel.
    #[error(
        "there is no Linux 6.1 to boot at {place}; build it with scripts/linux-6.1, which says \
         which packages it needs, or name one in {KERNEL_ENV}"
    )]
    Missing { place: String },
    /// It ended without having done its work.
    #[error(
        "the guest ended early ({status}); boot it by hand to see more: {kernel} --help. The \
         last it said:\n{said}"
    )]
    Failed { kernel: String, status: String, said: String },
}

/// The kernel to boot.
///
/// # Errors
///
/// [`VmError::Missing`].
pub(crate) fn kernel() -> Result<PathBuf> {
    let built = || -> Result<PathBuf> {
        let this = env::current_exe().context("cannot find this program's own place")?;
        let target = this.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        Ok(target.join("tools/linux-6.1"))
    };
    let path = env::var_os(KERNEL_ENV).map_or_else(built, |path| Ok(path.into()))?;
    if path.is_file() {
        return Ok(path);
    }
    Err(VmError::Missing { place: path.display().to_string() }.into())
}

/// Boots a kernel, runs this program in it with `args`, and returns what it printed. `name` tells
/// guests apart that run at once; `limit` is in this machine's time.
///
/// The guest ends with this process, which is process 1 of its namespace, however it ended; so
/// nothing is left to remove.
///
/// # Errors
///
/// [`VmError`]; the command failed; `limit` passed.
pub(crate) fn run(name: &str, args: &[String], limit: Duration) -> Result<String> {
    let kernel = kernel()?;
    let scratch = Scratch::in_memory(&format!("vm-{name}"))?;
    let init = scratch.path().join("init");
    let this = env::current_exe()?;
    fs::write(&init, init_script(scratch.path(), &env::current_dir()?, &this, args))?;
    let mut command = Command::new(&kernel);
    command.args([MEMORY, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"]);
    command.args(["con=null", "con0=fd:0,fd:1", "time-travel=inf-cpu"]);
    command.arg(format!("umid={name}")).arg(format!("uml_dir={}/", scratch.path().display()));
    // Nothing on the lab's /run may be executed.
    command.args(["init=/bin/sh", "--"]).arg(&init);
    let Finished { status, stdout, stderr } = process::run_any(&mut command, "", limit)?;
    if !scratch.path().join(DONE).exists() {
        // The guest may have ended before its command began.
        let by_command = fs::read_to_string(scratch.path().join(SAID)).unwrap_or_default();
        let all = format!("{stdout}{stderr}{by_command}");
        let lines: Vec<&str> = all.lines().collect();
        let said = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n");
        let (kernel, status) = (kernel.display().to_string(), status.to_string());
        return Err(VmError::Failed { kernel, status, said }.into());
    }
    let out = scratch.path().join(OUT);
    fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))
}

/// The guest's first program. `folder` is the only place of this machine where the guest writes;
/// inside it is at another path, because /run is the guest's own.
fn init_script(folder: &Path, from: &Path, program: &Path, args: &[String]) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let path = |path: &Path| quote(&path.display().to_string());
    let words: Vec<String> = args.iter().map(|word| quote(word)).collect();
    format!(
        "#!/bin/sh\n\
         export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ TMPDIR=/run/tmp\n\
         mount -t proc proc /proc\n\
         mount -t sysfs sysfs /sys\n\
         mount -t devtmpfs devtmpfs /dev\n\
         mount -t tmpfs tmpfs /run\n\
         mkdir -p /run/tmp /run/netns /run/folder\n\
         mount -t hostfs none /run/folder -o {folder}\n\
         ip link set lo up\n\
         cd {from}\n\
         {program} {words} >/run/folder/{OUT} 2>/run/folder/{SAID} && : >/run/folder/{DONE}\n\
         halt -f\n",
        folder = path(folder),
        from = path(from),
        program = path(program),
        words = words.join(" "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_runs_the_command_word_by_word() {
        let args = ["run", "a b", "it's"].map(ToOwned::to_owned);
        let (folder, from, program) = (Path::new("/f"), Path::new("/w"), Path::new("/p"));
        let script = init_script(folder, from, program, &args);
        let expected = "'/p' 'run' 'a b' 'it'\\''s' >/run/folder/out 2>/run/folder/said && :";
        assert!(script.contains(expected), "{script}");
    }

    #[test]
    fn a_missing_kernel_is_told_with_its_script() {
        let error = VmError::Missing { place: "/none".into() }.to_string();
        assert!(error.contains("scripts/linux-6.1") && error.contains(KERNEL_ENV), "{error}");
    }
}
