//! Tells the lab which commit it is built from, so that its records can name it: the last one that
//! changed what runs, not the documentation. Outside of a checkout, or without git, the commit is
//! unknown and the build goes on. And how it is compiled.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What makes a difference to what is measured.
const WHAT_RUNS: [&str; 4] = ["crates", "scenarios", "Cargo.toml", "Cargo.lock"];
const COMMIT_DIGITS: usize = 12;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = commit(&root).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=PLAIT_COMMIT={commit}");
    println!("cargo::rustc-env=PLAIT_BUILD={}", kind_of_build());
    println!("cargo::rerun-if-changed=build.rs");
    for path in WHAT_RUNS {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    if let Some(log) = git(&root, &["rev-parse", "--git-path", "logs/HEAD"]) {
        let log = root.join(log);
        if log.is_file() {
            println!("cargo::rerun-if-changed={}", log.display());
        }
    }
}

/// How the lab is compiled: its figures depend on it.
fn kind_of_build() -> String {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if flags.contains("profile-use") {
        return "release, profile-guided".to_owned();
    }
    env::var("PROFILE").unwrap_or_else(|_| "unknown".to_owned())
}

/// The commit's first digits, and whether the crates differ from it.
fn commit(root: &Path) -> Option<String> {
    // A copy of the project inside of another checkout has no commit of its own.
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let of_code = |arguments: &[&str]| git(root, &[arguments, &["--"], &WHAT_RUNS].concat());
    let commit = of_code(&["log", "-1", "--format=%H"])?;
    let commit = commit.get(..COMMIT_DIGITS)?;
    let changes = of_code(&["status", "--porcelain"])?;
    Some(if changes.is_empty() { commit.to_owned() } else { format!("{commit}+changes") })
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
