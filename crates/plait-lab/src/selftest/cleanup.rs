//! Tests of what a gateway leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use plait_net::netns::NetNs;

use crate::gateway::{Bond, customer_file, endpoint_v4, make_key, path_over, plait_program};
use crate::output::Output;
use crate::process;
use crate::scratch::Scratch;
use crate::topology::{LinkSpec, Topology, ip_output};

/// Traces that a gateway can leave: devices, addresses, routes, rules, and files below `/run`.
pub(super) fn traces(netns: &NetNs) -> Result<Vec<String>> {
    let mut traces = Vec::new();
    for arguments in [
        &["-o", "addr"][..],
        &["-4", "route", "show", "table", "all"],
        &["-6", "route", "show", "table", "all"],
        &["-4", "rule"],
        &["-6", "rule"],
    ] {
        let text = ip_output(netns, arguments)?;
        traces.extend(text.lines().map(str::to_owned));
    }
    let mut files = Vec::new();
    list_files(Path::new("/run"), &mut files)?;
    traces.extend(files.iter().map(|path| path.display().to_string()));
    traces.sort();
    Ok(traces)
}

/// Files and sockets below `folder`, without the lab's own.
fn list_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.starts_with("/run/plait-lab") || path.starts_with("/run/netns") {
            continue;
        }
        if path.is_dir() {
            list_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

pub(super) fn ensure_unchanged(before: &[String], after: &[String]) -> Result<()> {
    let new: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
    let gone: Vec<_> = before.iter().filter(|line| !after.contains(line)).collect();
    ensure!(new.is_empty() && gone.is_empty(), "left behind: {new:#?}; taken away: {gone:#?}");
    Ok(())
}

/// SIGTERM ends a gateway with status 0 and removes its device, routes and socket.
pub(super) fn sigterm_leaves_nothing(_output: &Output) -> Result<()> {
    let topology = Topology::build(&[LinkSpec::DSL, LinkSpec::LTE])?;
    let customer = &topology.customer().netns;
    let before = [traces(customer)?, traces(&topology.provider)?];
    let mut bond = Bond::over(&topology)?;
    let during = traces(customer)?;
    ensure!(during.iter().any(|line| line.contains("plait0")), "a gateway has a device");
    bond.stop()?;
    ensure_unchanged(&before[0], &traces(customer)?)?;
    ensure_unchanged(&before[1], &traces(&topology.provider)?)
}

/// A configuration with a mistake is refused with status 2 and changes nothing.
pub(super) fn bad_config_leaves_nothing(_output: &Output) -> Result<()> {
    let netns = NetNs::create("plait-customer")?;
    let scratch = Scratch::in_memory("bad-config")?;
    let public_key = make_key(&scratch.path().join("own.key"))?;
    let before = traces(&netns)?;
    let paths = [path_over("dsl")];
    let sound = customer_file("own.key", 2, &public_key, &[endpoint_v4()], &paths).to_text();
    for (mistake, right, wrong) in [
        ("unknown option", "routes = true", "colour = \"red\""),
        ("no TOML", "[gateway]", "[gateway"),
        ("missing key file", "own.key", "no.key"),
        ("bad address", "10.99.0.2/24", "10.99.0/24"),
        ("bad key", public_key.as_str(), "short"),
    ] {
        let text = sound.replacen(right, wrong, 1);
        ensure!(text != sound, "{mistake}: the file does not hold {right}");
        let config = scratch.path().join("bad.toml");
        fs::write(&config, text)?;
        let mut command = netns.command(plait_program()?);
        let finished =
            process::run_any(command.arg("up").arg(&config), "", Duration::from_secs(10))?;
        ensure!(finished.status.code() == Some(2), "{mistake}: {finished:?}");
        ensure!(finished.stderr.contains("bad.toml"), "{mistake}: the file is named: {finished:?}");
        ensure_unchanged(&before, &traces(&netns)?)?;
    }
    Ok(())
}
