//! kernel.4: two subflows of one MPTCP connection run two different controllers.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::ProcessIdentity;

use super::super::{Effort, Figure};
use super::loaded::{self, InKernel, cc, cc_in};
use super::site::{Seen, Site, seen};
use crate::topology::{VETH_LINKS, link_v4};

const SOURCE: &str = "kernel.4";

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    loaded::mount_bpffs()?;
    loaded::ensure_can_load()?;
    let site = Site::build()?;
    site.allow_multipath()?;
    cc_in(site.sender(), &["use", "reno"])?;
    let before = InKernel::now()?;
    let seconds = if effort.is_quick() { 3 } else { 10 };
    let (sockets, rate_bps) = {
        let cgroup = Cgroup::enter()?;
        let sockets = send(&site, &cgroup, Duration::from_secs(seconds));
        // Also after an error.
        let removed = cc(&["unload", "--all", "--force"]);
        let sockets = sockets?;
        removed?;
        sockets
    };
    let left = before.new_since()?;
    let has = |address: String, controller: &str| {
        let is_it = |socket: &&Seen| socket.address == address && socket.controller == controller;
        sockets.iter().filter(is_it).count() as u64
    };
    let told: Vec<_> =
        sockets.iter().map(|it| format!("{} {}", it.address, it.controller)).collect();
    let (first, second) = (link_v4(1, 1).to_string(), link_v4(2, 1).to_string());
    Ok(vec![
        Figure::text("subflows and their controllers", told.join(", ")),
        Figure::mbit("both links", rate_bps),
        Figure::count("subflows", sockets.len() as u64).exactly(2.0, SOURCE),
        Figure::count("edinburgh on the first link", has(first, "bpf_edinburgh"))
            .exactly(1.0, SOURCE),
        Figure::count("lia on the second link", has(second, "bpf_lia")).exactly(1.0, SOURCE),
        Figure::none("programs, maps and links left", left.len() as u64, SOURCE),
    ])
}

/// A rule by interface and one by address, then a connection.
fn send(site: &Site, cgroup: &Cgroup, time: Duration) -> Result<(Vec<Seen>, u64)> {
    let path = cgroup.path.to_str().context("a path in UTF-8")?;
    cc(&["load", "edinburgh", "lia"])?;
    cc_in(site.sender(), &["use", "edinburgh", "--on", VETH_LINKS[0], "--cgroup", path])?;
    let second = link_v4(2, 1).to_string();
    cc(&["use", "lia", "--on-address", &second, "--cgroup", path])?;
    let transfer = site.transfer(true)?;
    std::thread::sleep(time);
    let sockets = seen(site.sender())?;
    Ok((sockets, transfer.stop()))
}

/// A cgroup with this process in it, until it is dropped.
struct Cgroup {
    path: PathBuf,
    home: PathBuf,
}

impl Cgroup {
    fn enter() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let root = root_of(&mounts).context("no cgroup file system of version 2 is mounted")?;
        let home = fs::read_to_string("/proc/self/cgroup")?;
        let home = home.lines().find_map(|line| line.strip_prefix("0::/"));
        let home = Path::new(root).join(home.context("this process is in no such cgroup")?);
        // Inside, every lab is process 1.
        let outside = ProcessIdentity::outside().context("the lab is in namespaces of its own")?;
        let ProcessIdentity { pid, start_ticks } = outside;
        let path = Path::new(root).join(format!("plait-lab-{pid}-{start_ticks}"));
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let cgroup = Self { path, home };
        move_to(&cgroup.path)?;
        Ok(cgroup)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // An empty cgroup that stays does no harm.
        let _stays = move_to(&self.home).and_then(|()| Ok(fs::remove_dir(&self.path)?));
    }
}

/// Moves this process.
fn move_to(cgroup: &Path) -> Result<()> {
    let file = cgroup.join("cgroup.procs");
    fs::write(&file, "0").with_context(|| format!("cannot write {}", file.display()))
}

/// Where the unified hierarchy is mounted.
fn root_of(mounts: &str) -> Option<&str> {
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unified_hierarchy_is_found() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup none rw,cpu\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 none rw\n";
        assert_eq!(root_of(mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(root_of(""), None);
    }
}
