//! What is on a system: files, devices, rules, routes, sysctls; and what differs later.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::debian::Debian;

const LIMIT: Duration = Duration::from_secs(20);
/// Folders that belong to the kernel, or to the tools that install packages.
const LEFT_OUT: [&str; 9] =
    ["proc", "sys", "dev", "run", "tmp", "var/log", "var/cache", "var/lib/apt", "var/lib/dpkg"];
/// What describes the network, without counts and times.
const NETWORK: [&str; 7] = [
    "ip -o link show",
    "ip -o address show",
    "ip rule show",
    "ip -6 rule show",
    "ip route show table all",
    "nft -s list ruleset",
    "cd /proc/sys/net && grep -r . ipv4/conf ipv6/conf ipv4/ip_forward 2>/dev/null \
     | grep -v -e stable_secret -e base_reachable_time | sort",
];

/// A system at one moment.
pub(super) struct Inventory {
    /// By path, or by command.
    entries: BTreeMap<String, String>,
}

impl Inventory {
    pub(super) fn take(system: &Debian) -> Result<Self> {
        let mut entries = BTreeMap::new();
        walk(system.root(), "", &mut entries)?;
        for command in NETWORK {
            let said = system.run(command, LIMIT)?;
            entries.extend(said.lines().map(|line| (format!("{command}: {line}"), String::new())));
        }
        let v6 = "ip -6 route show table all";
        let said = system.run(v6, LIMIT)?;
        // Neighbours that answered are no configuration.
        let lasting = said.lines().filter(|line| !line.contains("cache"));
        entries.extend(lasting.map(|line| (format!("{v6}: {line}"), String::new())));
        Ok(Self { entries })
    }

    /// What is in one of them only, or differs.
    pub(super) fn differences(&self, later: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (entry, was) in &self.entries {
            match later.entries.get(entry) {
                None => found.push(format!("gone: {entry}")),
                Some(is) if is != was => found.push(format!("changed: {entry}")),
                Some(_) => {}
            }
        }
        let new = later.entries.keys().filter(|entry| !self.entries.contains_key(*entry));
        found.extend(new.map(|entry| format!("new: {entry}")));
        found
    }
}

fn walk(root: &Path, below: &str, entries: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if LEFT_OUT.contains(&path.as_str()) {
            continue;
        }
        let meta = entry.path().symlink_metadata()?;
        let mut content = DefaultHasher::new();
        if meta.is_file() {
            fs::read(entry.path())?.hash(&mut content);
        } else if meta.is_symlink() {
            fs::read_link(entry.path())?.hash(&mut content);
        }
        let (mode, uid, gid) = (meta.mode(), meta.uid(), meta.gid());
        let said = format!("{mode:o} {uid} {gid} {:x}", content.finish());
        if meta.is_dir() {
            walk(root, &path, entries)?;
        }
        entries.insert(path, said);
    }
    Ok(())
}
