//! Downloads over both attachments, for each layout, address family and recipe.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use anyhow::{Context, Result, ensure};
use plait_net::netlink::Netlink;
use plait_proto::steer::Policy;

use super::{FILE_BYTES, LINKS, both_carried};
use crate::measure::{WebServer, download, mbit};
use crate::output::Output;
use crate::scratch::Scratch;
use crate::steering::{Layout, RecipeKind, SteerSite, node_with, print_recipe, run_lines};
use crate::topology::{ip_batch, link_v4};

/// A download over the network arrives intact over both attachments.
fn carries(
    output: &Output,
    layout: Layout,
    ipv6: bool,
    policy: Policy,
    kind: RecipeKind,
) -> Result<()> {
    let site = SteerSite::build(&LINKS, layout)?;
    let file = site.node_file(node_with(policy), None);
    let mut node = site.start_all(&file, kind)?;
    let web = WebServer::start(&site.server, FILE_BYTES)?;
    let before = site.carried();
    let figures = download(site.target(ipv6), &web)?;
    output.line(format!("a file over both: {} Mbit/s", mbit(figures.throughput_bps)))?;
    both_carried(&site, &before, &node.status(&site.node)?, output)?;
    node.stop()
}

/// The node is part of both access networks.
pub(in super::super) fn colocated(output: &Output) -> Result<()> {
    carries(output, Layout::Colocated, false, Policy::InverseRtt, RecipeKind::Nftables)
}

/// The second attachment is reached over a routed link.
pub(in super::super) fn beside(output: &Output) -> Result<()> {
    carries(output, Layout::Beside, false, Policy::Fixed, RecipeKind::Nftables)
}

/// IPv6, in both layouts.
pub(in super::super) fn ipv6(output: &Output) -> Result<()> {
    carries(output, Layout::Colocated, true, Policy::InverseRtt, RecipeKind::Nftables)?;
    carries(output, Layout::Beside, true, Policy::Fixed, RecipeKind::Nftables)
}

/// The recipe of iptables, over both address families.
pub(in super::super) fn iptables(output: &Output) -> Result<()> {
    for ipv6 in [false, true] {
        carries(output, Layout::Colocated, ipv6, Policy::Fixed, RecipeKind::Iptables)?;
    }
    Ok(())
}

/// A phone: a routing table per interface, Wi-Fi the default network, a kernel without zones of
/// connection tracking.
pub(in super::super) fn android(output: &Output) -> Result<()> {
    let site = SteerSite::build(&LINKS, Layout::Colocated)?;
    // Programs on the lab's own /run cannot be executed.
    let scratch = Scratch::on_disk("phone")?;
    let programs = scratch.path();
    let no_zones = "#!/bin/sh\ncase \"$*\" in *--zone*) exit 1 ;; esac\n";
    for (name, text) in [
        ("svc", "#!/bin/sh\n".to_owned()),
        ("settings", "#!/bin/sh\n".to_owned()),
        ("iptables", format!("{no_zones}PATH=/usr/sbin:/sbin:/usr/bin exec iptables \"$@\"\n")),
        ("ip6tables", format!("{no_zones}PATH=/usr/sbin:/sbin:/usr/bin exec ip6tables \"$@\"\n")),
    ] {
        let program = programs.join(name);
        fs::write(&program, text)?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    }
    let mut lines = vec!["route flush table main".to_owned()];
    for (at, link) in site.links.iter().enumerate() {
        let device = link.spec.name;
        let found = site.client.run_in(|| Netlink::open()?.link(device))??;
        let table = 1000 + found.context("a link has its device")?.index;
        let (router, network) = (link_v4(link.number, 2), link_v4(link.number, 0));
        lines.push(format!("route add {network}/30 dev {device} table {table}"));
        lines.push(format!("route add default via {router} dev {device} table {table}"));
        // The last is the default network, and sockets that choose another are marked.
        lines.push(format!("rule add pref {} iif lo lookup {table}", 31_000 - at));
    }
    ip_batch(&site.client, "", &lines)?;
    let file = site.node_file(node_with(Policy::Fixed), None);
    let mut node = site.start_node(&file)?;
    let recipe = print_recipe(node.config(), "phone", RecipeKind::Android)?;
    // Twice, because it may be run again.
    for _ in 0..2 {
        run_lines(&site.client, &recipe, Some(programs))?;
    }
    node.wait_until_up(&site.node, &site.names())?;
    let web = WebServer::start(&site.server, FILE_BYTES)?;
    let before = site.carried();
    download(site.target(false), &web)?;
    both_carried(&site, &before, &node.status(&site.node)?, output)?;
    node.stop()
}

/// A client without its rule gets everything over the primary, and the node says why.
pub(in super::super) fn without_rule(_output: &Output) -> Result<()> {
    let site = SteerSite::build(&LINKS, Layout::Colocated)?;
    let mut node = site.start_node(&site.node_file(node_with(Policy::Fixed), None))?;
    let status = node.wait_for(&site.node, "the missing rule is noticed", |status| {
        status.way("wifi").is_ok_and(|way| way.rule_missing)
    })?;
    ensure!(!status.up().contains(&"wifi"), "nothing is sent where it would be lost");
    // Without the recipe the client would prefer its other address.
    let via = link_v4(site.links[0].number, 2);
    ip_batch(&site.client, "", &[format!("route add default via {via} metric 1")])?;
    let web = WebServer::start(&site.server, FILE_BYTES / 4)?;
    let before = site.carried();
    download(site.target(false), &web)?;
    let over_wifi = site.carried()[1] - before[1];
    ensure!(over_wifi < 50_000, "{over_wifi} bytes over an attachment without a rule");
    site.run_recipe(&node, RecipeKind::Nftables)?;
    let status = node.wait_until_up(&site.node, &site.names())?;
    ensure!(!status.way("wifi")?.rule_missing, "the rule is there now");
    node.stop()
}
