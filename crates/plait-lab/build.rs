//! Tells the lab which commit it is built from, so that its records can name it: the last one that
//! changed what runs, not the documentation. Outside of a checkout, or without git, the commit is
//! unknown and the build goes on. And how it is compiled. And takes in the page of `plait-lab qoe`,
//! where scripts/qoe-app has built it.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What makes a difference to what is measured.
const WHAT_RUNS: [&str; 4] = ["crates", "scenarios", "Cargo.toml", "Cargo.lock"];
const COMMIT_DIGITS: usize = 12;
/// The folder in the target folder that scripts/qoe-app fills.
const PAGE: &str = "qoe-app";

fn main() -> io::Result<()> {
    // Of the checkout that is built: this program may have been compiled for another one, with
    // which it shares a target folder.
    let lab = env::var_os("CARGO_MANIFEST_DIR").ok_or_else(|| io::Error::other("not cargo"))?;
    let root = Path::new(&lab).join("../..");
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
    take_page()
}

/// Writes `qoe_app.rs`, a table of the page's files: empty where it has not been built.
fn take_page() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let page = page_folder(&out);
    // A folder that is there is looked at again only when it changes.
    fs::create_dir_all(&page)?;
    println!("cargo::rerun-if-changed={}", page.display());
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(&page)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut table = String::from("pub(crate) static FILES: &[(&str, &[u8])] = &[\n");
    for name in &names {
        let path = page.join(name);
        // Writing to a string cannot fail.
        let _infallible = writeln!(table, "    ({name:?}, include_bytes!({path:?})),");
    }
    table.push_str("];\n");
    let has_page = names.iter().any(|name| name == "index.html");
    println!("cargo::rustc-env=PLAIT_QOE_APP={}", if has_page { "yes" } else { "no" });
    fs::write(out.join("qoe_app.rs"), table)
}

/// `target/qoe-app`, seen from `target/…/build/plait-lab-…/out`; with a target triple the way is a
/// folder longer.
fn page_folder(out: &Path) -> PathBuf {
    let build = out.ancestors().find(|folder| folder.ends_with("build"));
    let profile = build.and_then(Path::parent);
    let target = profile.and_then(Path::parent).unwrap_or(out);
    let is_triple = target.parent().is_some_and(|above| above.join("CACHEDIR.TAG").is_file());
    if is_triple { target.parent().unwrap_or(target).join(PAGE) } else { target.join(PAGE) }
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
