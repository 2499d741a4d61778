//! The sandbox of a running gateway or steering node: it allows what is still needed once all is
//! set up, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use plait_net::sandbox::{Needs, Sandbox, enter};

/// System files: host names, C libraries and their modules, facts about processes and devices.
/// Whole folders, because a rule for a file does not cover the file that replaces it.
const SYSTEM: [&str; 13] = [
    "/etc",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/nix/store",
    "/gnu/store",
    "/proc",
    "/sys",
    "/dev/urandom",
    "/run/systemd/resolve",
    "/run/nscd",
];
/// Network settings that are restored at the end; input and output of programs that are run.
const SYSTEM_WRITTEN: [&str; 2] = ["/proc/sys/net", "/dev/null"];
/// Folders of `nft`, and of the libraries and the loader that it needs.
const PROGRAMS: [&str; 10] = [
    "/usr/sbin",
    "/sbin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/nix/store",
];

/// Files that a daemon keeps using.
pub(crate) struct Files<'a> {
    /// Read again when the daemon reloads; the folder of each stays within reach.
    pub(crate) read: Vec<&'a Path>,
    /// Rewritten or removed; the folder of each stays within reach.
    pub(crate) written: Vec<&'a Path>,
    /// Whether `nft` is to be run.
    pub(crate) nft: bool,
    /// Other programs that are to be run, wherever they are.
    pub(crate) programs: Vec<&'a Path>,
}

/// Enters the sandbox, if configured. Returns the parts in force, for `plait status`.
pub(crate) fn enter_sandbox(is_wanted: bool, files: &Files<'_>) -> Vec<&'static str> {
    if !is_wanted {
        log::info!("sandbox: off, as the configuration says");
        return Vec::new();
    }
    let Sandbox { landlock, seccomp } = enter(&needs(files));
    let mut held = Vec::new();
    for (name, result) in [("landlock", landlock), ("seccomp", seccomp)] {
        match result {
            Ok(()) => held.push(name),
            Err(why) => log::warn!("sandbox: no {name}: {why}"),
        }
    }
    if !held.is_empty() {
        log::info!("sandbox: {}", held.join(", "));
    }
    held
}

fn needs(files: &Files<'_>) -> Needs {
    let owned = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    let mut needs = Needs { read: owned(&SYSTEM), write: owned(&SYSTEM_WRITTEN), run: Vec::new() };
    needs.read.extend(files.read.iter().map(|file| folder_of(file)));
    // The file with the name servers is often a link into another folder.
    let linked = fs::canonicalize("/etc/resolv.conf").ok();
    needs.read.extend(linked.as_deref().map(folder_of));
    needs.write.extend(files.written.iter().map(|file| folder_of(file)));
    if files.nft || !files.programs.is_empty() {
        needs.run = owned(&PROGRAMS);
        needs.run.extend(files.programs.iter().map(|program| folder_of(program)));
    }
    needs
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(folder) if folder.as_os_str().is_empty() => ".".into(),
        Some(folder) => folder.to_owned(),
        None => file.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stay_within_reach_and_programs_only_when_needed() {
        let read = vec![Path::new("/etc/plait/gw.toml"), Path::new("gateway.key")];
        let written = vec![Path::new("/run/plait/a.sock")];
        let files = Files { read, written, nft: false, programs: Vec::new() };
        let found = needs(&files);
        for folder in ["/etc/plait", "."] {
            assert!(found.read.contains(&folder.into()), "{folder}");
        }
        assert!(found.write.contains(&"/run/plait".into()));
        assert!(!found.write.iter().any(|path| path.starts_with("/etc")));
        assert!(found.run.is_empty());
        let hook = vec![Path::new("/opt/told/run")];
        let run =
            needs(&Files { programs: hook, nft: false, read: Vec::new(), written: Vec::new() });
        assert!(run.run.contains(&"/opt/told".into()) && run.run.contains(&"/bin".into()));
        assert!(needs(&Files { nft: true, ..files }).run.contains(&"/usr/sbin".into()));
    }
}
