//! Sets addresses, routes and links with `ip -batch`, and reads them.

use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netlink::Netlink;
use plait_net::netns::NetNs;

use crate::process;

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
    process::run(command.args(["-batch", "-"]), &input, Duration::from_secs(10))
        .with_context(|| format!("in:\n{input}"))?;
    Ok(())
}

/// The MTU of a device, in bytes.
pub(crate) fn mtu_of(netns: &NetNs, device: &str) -> Result<u32> {
    let link = netns.run_in(|| Netlink::open()?.link(device))??;
    Ok(link.with_context(|| format!("there is no device {device}"))?.mtu)
}
