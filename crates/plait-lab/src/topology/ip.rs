//! Sets addresses, routes and links with `ip -batch`, and reads them.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netlink::Netlink;
use plait_net::netns::NetNs;

use crate::process;

const LIMIT: Duration = Duration::from_secs(10);

/// Runs `ip` commands in a namespace; the first that fails ends it. `family` is empty, `-4` or
/// `-6`.
pub(crate) fn ip_batch(netns: &NetNs, family: &str, lines: &[impl AsRef<str>]) -> Result<()> {
    let mut input = String::new();
    for line in lines {
        input.push_str(line.as_ref());
        input.push('\n');
    }
    let mut command = netns.command("ip");
    if !family.is_empty() {
        command.arg(family);
    }
    process::run(command.args(["-batch", "-"]), &input, LIMIT)
        .with_context(|| format!("in:\n{input}"))?;
    Ok(())
}

/// Runs `ip` in a namespace and gives back what it prints.
pub(crate) fn ip_output(netns: &NetNs, arguments: &[&str]) -> Result<String> {
    process::run(netns.command("ip").args(arguments), "", LIMIT)
}

/// The MTU of a device, in bytes.
pub(crate) fn mtu_of(netns: &NetNs, device: &str) -> Result<u32> {
    let link = netns.run_in(|| Netlink::open()?.link(device))??;
    Ok(link.with_context(|| format!("there is no device {device}"))?.mtu)
}
