//! Tells the lab which commit it is built from, so that its records can name it. Outside of a
//! checkout, or without git, the commit is unknown and the build goes on.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = commit(&root).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=PLAIT_COMMIT={commit}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", root.join("crates").display());
    if let Some(log) = git(&root, &["rev-parse", "--git-path", "logs/HEAD"]) {
        let log = root.join(log);
        if log.is_file() {
            println!("cargo::rerun-if-changed={}", log.display());
        }
    }
}

/// The commit's first digits, and whether the crates differ from it.
fn commit(root: &Path) -> Option<String> {
    // A copy of the project inside of another checkout has no commit of its own.
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let commit = git(root, &["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(root, &["status", "--porcelain", "--", "crates", "Cargo.lock"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}+changes") })
}

/// What git prints; `None` when it is missing or refuses.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A hook's variables would lead elsewhere; a lock would disturb a git at work beside the build.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env("GIT_OPTIONAL_LOCKS", "0");
    let output = command.arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
