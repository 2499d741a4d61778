//! What a steering node leaves behind.

use std::fs;
use std::time::Duration;

use anyhow::{Result, ensure};
use plait_proto::steer::Policy;
use plait_toml::node::NodeFile;

use super::LINKS;
use crate::gateway::plait_program;
use crate::output::Output;
use crate::process;
use crate::selftest::cleanup::{ensure_unchanged, traces};
use crate::steering::{Layout, SteerSite, node_with};

const LIMIT: Duration = Duration::from_secs(10);

/// SIGTERM removes device, rules, routes and socket; so does the next start after a kill.
pub(in super::super) fn leaves_nothing(_output: &Output) -> Result<()> {
    let site = SteerSite::build(&LINKS, Layout::Colocated)?;
    let before = traces(&site.node)?;
    let file = site.node_file(node_with(Policy::Fixed), None);
    let mut node = site.start_node(&file)?;
    node.wait_for(&site.node, "the node says something", |_| true)?;
    let during = traces(&site.node)?;
    ensure!(during.iter().any(|line| line.contains("steer0")), "a node has a device and rules");
    node.stop()?;
    ensure_unchanged(&before, &traces(&site.node)?)?;

    node.start_again(&site.node)?;
    node.wait_for(&site.node, "the node says something", |_| true)?;
    node.kill()?;
    let killed = traces(&site.node)?;
    ensure!(killed.iter().any(|line| line.starts_with("5203:")), "a killed node leaves its rules");
    // No rule of a client that is no longer configured may remain either.
    let mut other = file.clone();
    other.clients[0].address.v6 = None;
    other.clients[0].attachments[1].address.v6 = None;
    let mut node = site.start_node(&other)?;
    node.wait_for(&site.node, "the node says something", |_| true)?;
    let again = traces(&site.node)?;
    ensure!(!again.iter().any(|line| line.contains("from fd00:1::1")), "{again:#?}");
    node.stop()?;
    ensure_unchanged(&before, &traces(&site.node)?)
}

/// A configuration with a mistake, or a host that forwards nothing, is refused with status 2 and
/// changes nothing.
pub(in super::super) fn bad_config_leaves_nothing(_output: &Output) -> Result<()> {
    let site = SteerSite::build(&LINKS, Layout::Colocated)?;
    let good = site.node_file(node_with(Policy::Fixed), None);
    let with = |change: fn(&mut NodeFile)| {
        let mut file = good.clone();
        change(&mut file);
        file.to_text()
    };
    for (text, said) in [
        ("[node\n".to_owned(), "not TOML"),
        (good.to_text().replace("\"fixed\"", "\"fastest\""), "[node] policy"),
        (with(|file| file.clients[0].address.v4 = None), "no IPv4 primary address"),
        (with(|file| file.clients[0].attachments.clear()), "the client has no attachment"),
    ] {
        refuse(&site, &text, said)?;
    }
    site.node.set_sysctl("net.ipv4.ip_forward", "0")?;
    refuse(&site, &good.to_text(), "net.ipv4.ip_forward is 0")?;
    let mut forwarding = good.clone();
    forwarding.node.forward = true;
    let mut node = site.start_node(&forwarding)?;
    node.wait_for(&site.node, "the node says something", |_| true)?;
    ensure!(forwards(&site)?, "`forward = true` makes the host forward");
    node.stop()?;
    ensure!(!forwards(&site)?, "the host is left as it was found");
    Ok(())
}

fn forwards(site: &SteerSite) -> Result<bool> {
    let value = site.node.run_in(|| fs::read_to_string("/proc/sys/net/ipv4/ip_forward"))??;
    Ok(value.trim() == "1")
}

fn refuse(site: &SteerSite, text: &str, said: &str) -> Result<()> {
    let before = traces(&site.node)?;
    let config = site.scratch.path().join("bad.toml");
    fs::write(&config, text)?;
    let mut command = site.node.command(plait_program()?);
    let finished = process::run_any(command.arg("steer").arg(&config), "", LIMIT)?;
    ensure!(finished.status.code() == Some(2), "{said}: {finished:?}");
    ensure!(finished.stderr.contains(said), "{said}: {finished:?}");
    ensure_unchanged(&before, &traces(&site.node)?)
}
