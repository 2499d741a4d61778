//! What programs are in the kernel, as bpftool sees it, and the program `plait cc`.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use plait_net::netns::NetNs;
use serde_json::Value;

use crate::gateway::plait_program;
use crate::process::{self, Finished};

const LIMIT: Duration = Duration::from_secs(60);
/// The kernel frees programs and maps a moment after the last that held them.
const FREED_WITHIN: Duration = Duration::from_secs(5);
/// Connections that end hold their controller for a while.
const UNLOADED_WITHIN: Duration = Duration::from_secs(20);
const BPFFS: &str = "/sys/fs/bpf";

/// Gives this run a BPF file system of its own. What a run leaves in it goes with the run.
pub(super) fn mount_bpffs() -> Result<()> {
    let mut mount = Command::new("mount");
    process::run(mount.args(["-t", "bpf", "bpf", BPFFS]), "", LIMIT)
        .context("programs in the kernel take root on the machine itself")?;
    Ok(())
}

/// Programs, maps and links: kind, number and name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InKernel(BTreeSet<String>);

impl InKernel {
    pub(super) fn now() -> Result<Self> {
        let mut all = BTreeSet::new();
        for kind in ["prog", "map", "link"] {
            let mut bpftool = Command::new("bpftool");
            let text = process::run(bpftool.args(["-j", kind, "list"]), "", LIMIT)?;
            let entries: Vec<Value> = serde_json::from_str(&text).context("bpftool's list")?;
            let told = |entry: &Value| {
                let name = entry["name"].as_str().unwrap_or_default().to_owned();
                format!("{kind} {} {name}", entry["id"])
            };
            all.extend(entries.iter().map(told));
        }
        Ok(Self(all))
    }

    /// What is there now and was not then, once what was freed is gone.
    pub(super) fn new_since(&self) -> Result<Vec<String>> {
        let mut more = Vec::new();
        let settled = process::wait_until("freeing programs", FREED_WITHIN, || {
            more = Self::now()?.0.difference(&self.0).cloned().collect();
            Ok(more.is_empty().then_some(()))
        });
        // Whoever asked judges what is left.
        let _told_by_more = settled;
        Ok(more)
    }
}

/// A command `plait cc …`.
pub(super) fn command(arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(plait_program()?);
    command.arg("cc").args(arguments);
    Ok(command)
}

/// Runs `plait cc …`, which must succeed.
pub(super) fn cc(arguments: &[&str]) -> Result<String> {
    told(&process::run_any(&mut command(arguments)?, "", LIMIT)?, arguments)
}

/// The same in a network namespace.
pub(super) fn cc_in(netns: &NetNs, arguments: &[&str]) -> Result<String> {
    let mut command = netns.command(plait_program()?);
    command.arg("cc").args(arguments);
    told(&process::run_any(&mut command, "", LIMIT)?, arguments)
}

fn told(finished: &Finished, arguments: &[&str]) -> Result<String> {
    let words = arguments.join(" ");
    if !finished.status.success() {
        bail!("plait cc {words} ({}): {}", finished.status, finished.stderr.trim());
    }
    Ok(finished.stdout.clone())
}

/// What `plait cc list` says: its records.
pub(super) fn listed() -> Result<Vec<Value>> {
    // 1 says that something is left over.
    let finished = process::run_any(&mut command(&["list", "--json"])?, "", LIMIT)?;
    ensure!(finished.status.code() != Some(2), "plait cc list: {}", finished.stderr.trim());
    let lines = finished.stdout.lines().map(serde_json::from_str);
    lines.collect::<serde_json::Result<_>>().context("what plait cc list prints")
}

/// Its summary; an error when this plait or this machine cannot load controllers.
pub(super) fn ensure_can_load() -> Result<()> {
    let records = listed()?;
    let summary = records.last().context("plait cc list prints a summary")?;
    if summary["can_load"] != true {
        let why = summary["missing"].as_str().unwrap_or_default();
        bail!(
            "controllers cannot be loaded: {why}; build plait with them (cargo build -p plait-cli \
             --features bpf) and run this as root"
        );
    }
    Ok(())
}

/// plait's controllers, while it lives.
#[derive(Debug)]
pub(super) struct LoadedControllers;

impl LoadedControllers {
    pub(super) fn load(names: &[&str]) -> Result<Self> {
        let loaded = Self;
        for name in names {
            cc(&["load", name])?;
        }
        Ok(loaded)
    }
}

impl Drop for LoadedControllers {
    fn drop(&mut self) {
        // A connection that ended holds its controller for a moment more.
        let free = || Ok(cc(&["unload", "--all"]).ok());
        let _told_by_list = process::wait_until("unloading", UNLOADED_WITHIN, free);
    }
}

/// The state of a controller by `plait cc list`.
pub(super) fn state_of(records: &[Value], name: &str) -> String {
    let mut of = records.iter().filter(|record| record["type"] == "controller");
    let known = of.find(|record| record["name"] == name);
    known.and_then(|record| record["state"].as_str()).unwrap_or("absent").to_owned()
}
