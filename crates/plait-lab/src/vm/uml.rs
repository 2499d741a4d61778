//! User-mode Linux: a kernel that is a program itself. It sees this machine's files, read-only, and
//! has a network of its own without a way out.
//!
//! Its time is virtual: what is computed takes none, and while all sleep the clock goes on to the
//! next timer. So what is measured inside does not depend on how busy this machine is.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::error::{UML_ENV, VmError};
use super::init::{GUEST_FOLDER, quoted};

const MEMORY: &str = "mem=512M";

/// The kernel to boot, of the folder of tools.
///
/// # Errors
///
/// [`VmError::NoProgram`].
pub(super) fn kernel(tools: &Path) -> Result<PathBuf> {
    let path = env::var_os(UML_ENV).map_or_else(|| tools.join("linux-6.1"), PathBuf::from);
    if path.is_file() {
        return Ok(path);
    }
    Err(VmError::NoProgram { place: path.display().to_string() }.into())
}

/// What the first script does here.
pub(super) fn prelude(folder: &Path) -> String {
    let folder = quoted(&folder.display().to_string());
    format!("mount -t hostfs none {GUEST_FOLDER} -o {folder}\n")
}

/// How it ends.
pub(super) const END: &str = "halt -f";

/// The kernel with its first script. `folder` is the only place of this machine where it writes.
pub(super) fn command(kernel: &Path, name: &str, folder: &Path, init: &Path) -> Command {
    let mut command = Command::new(kernel);
    command.args([MEMORY, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"]);
    command.args(["con=null", "con0=fd:0,fd:1", "time-travel=inf-cpu"]);
    command.arg(format!("umid={name}")).arg(format!("uml_dir={}/", folder.display()));
    // Nothing on the lab's /run may be executed.
    command.args(["init=/bin/sh", "--"]).arg(init);
    command
}
