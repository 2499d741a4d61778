//! `plait-lab clean`: removes what killed labs have left on this machine.
//!
//! A lab's namespaces, devices and processes vanish with it. A folder on disk can stay, and, on a
//! kernel that failed to end them, processes. Both carry the identity of the lab that made them,
//! and nothing else is touched. A running lab is left alone. Inside a lab, which has its own
//! process ids, it cannot tell whether other labs run, so it touches nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use plait_net::netns::{INSIDE_ENV, ProcessIdentity};
use serde::Serialize;

use crate::output::{Output, Verdict};
use crate::process;
use crate::scratch::{FOLDER_PREFIX, OWNER_FILE};

/// Names of a lab's namespaces; on the host these can only be another tool's copies.
const NAMESPACES: [&str; 4] =
    ["plait-customer", "plait-customer2", "plait-provider", "plait-server"];

#[derive(Debug, Default, Serialize)]
struct Summary {
    removed: Vec<String>,
    running_labs: usize,
}

pub(crate) fn run(output: &Output) -> Result<Verdict> {
    let mut summary = Summary::default();
    if ProcessIdentity::outside().is_some() {
        output.line("this is inside a lab, which removes its own; clean works outside")?;
    } else {
        clean_processes(Path::new("/proc"), &mut summary)?;
        clean_folders(&std::env::temp_dir(), &mut summary)?;
        if summary.running_labs == 0 {
            clean_namespaces(Path::new("/run/netns"), &mut summary)?;
        }
    }
    for removed in &summary.removed {
        output.line(format!("removed {removed}"))?;
    }
    if summary.removed.is_empty() {
        output.line("nothing to remove")?;
    }
    if summary.running_labs > 0 {
        output.line(format!("{} lab processes run and were left alone", summary.running_labs))?;
    }
    output.record("summary", &crate::figure::Summary::new("clean", &[], &summary))?;
    Ok(Verdict::Good)
}

fn clean_folders(parent: &Path, summary: &mut Summary) -> Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        let path = entry.path();
        let named = entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX);
        if named && owner_of(&path).is_some_and(|owner| !owner.runs()) {
            fs::remove_dir_all(&path)?;
            summary.removed.push(path.display().to_string());
        }
    }
    Ok(())
}

fn owner_of(folder: &Path) -> Option<ProcessIdentity> {
    fs::read_to_string(folder.join(OWNER_FILE)).ok()?.trim().parse().ok()
}

/// Ends processes whose environment names a lab that is gone.
fn clean_processes(proc: &Path, summary: &mut Summary) -> Result<()> {
    for entry in fs::read_dir(proc)?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // Other users' processes cannot be read, and do not belong to this user's labs.
        let Some(owner) = lab_of(&entry.path()) else { continue };
        if owner.runs() {
            summary.running_labs += 1;
        } else {
            // It may have ended meanwhile: the end of a namespace's first process ends all others.
            let mut kill = Command::new("busybox");
            kill.args(["kill", "-KILL", &pid.to_string()]);
            process::run_any(&mut kill, "", Duration::from_secs(5))?;
            summary.removed.push(format!("process {pid}"));
        }
    }
    Ok(())
}

fn lab_of(process: &Path) -> Option<ProcessIdentity> {
    let environment = fs::read(process.join("environ")).ok()?;
    lab_in_environment(&environment)
}

fn lab_in_environment(environment: &[u8]) -> Option<ProcessIdentity> {
    let mark = format!("{INSIDE_ENV}=");
    environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| std::str::from_utf8(entry).ok())
        .find_map(|entry| entry.strip_prefix(&mark)?.parse().ok())
}

/// Removes names of lab namespaces in which nothing runs.
fn clean_namespaces(folder: &Path, summary: &mut Summary) -> Result<()> {
    for name in NAMESPACES {
        let path: PathBuf = folder.join(name);
        if !path.exists() {
            continue;
        }
        let limit = Duration::from_secs(5);
        let pids = process::run(Command::new("ip").args(["netns", "pids", name]), "", limit)?;
        if pids.trim().is_empty() {
            process::run(Command::new("ip").args(["netns", "delete", name]), "", limit)?;
            summary.removed.push(format!("namespace {name}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_found_in_an_environment() {
        let environment = b"HOME=/root\0PLAIT_NETNS_INSIDE=12:3456\0X=1\0";
        let expected = ProcessIdentity { pid: 12, start_ticks: 3456 };
        assert_eq!(lab_in_environment(environment), Some(expected));
        assert_eq!(lab_in_environment(b"OTHER_PLAIT_NETNS_INSIDE=12:3456\0"), None);
        assert_eq!(lab_in_environment(b"PLAIT_NETNS_INSIDE=1\0"), None);
    }

    #[test]
    fn only_folders_of_labs_that_are_gone_are_removed() {
        let parent = std::env::temp_dir().join(format!("clean-test-{}", std::process::id()));
        let this = ProcessIdentity::of(std::process::id()).unwrap();
        let gone = ProcessIdentity { start_ticks: this.start_ticks + 1, ..this };
        for (name, owner) in [
            ("plait-lab-1-gone", Some(gone)),
            ("plait-lab-2-running", Some(this)),
            ("plait-lab-3-foreign", None),
            ("other", Some(gone)),
        ] {
            fs::create_dir_all(parent.join(name)).unwrap();
            if let Some(owner) = owner {
                fs::write(parent.join(name).join(OWNER_FILE), owner.to_string()).unwrap();
            }
        }
        let mut summary = Summary::default();
        clean_folders(&parent, &mut summary).unwrap();
        let left = fs::read_dir(&parent).unwrap().flatten().map(|entry| entry.file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        fs::remove_dir_all(&parent).unwrap();
        assert_eq!(left, ["other", "plait-lab-2-running", "plait-lab-3-foreign"]);
        assert_eq!(summary.removed.len(), 1);
    }
}
