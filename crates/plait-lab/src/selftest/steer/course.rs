//! A download goes on whatever happens to the node and to an attachment.

use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use plait_proto::dida::DidaConfig;
use plait_proto::steer::Policy;
use plait_toml::node::NodeFile;

use super::{FILE_BYTES, LINKS, both_carried};
use crate::measure::{WebServer, download};
use crate::output::Output;
use crate::steering::{Layout, RecipeKind, SteerNode, SteerSite, node_with};
use crate::topology::LinkSpec;

/// Time after which the download is well in progress.
const UNDER_WAY: Duration = Duration::from_millis(1200);

/// Downloads, does `work` meanwhile, and returns the node. The file must arrive unchanged over one
/// connection.
fn meanwhile(
    site: &SteerSite,
    node: &mut SteerNode,
    work: impl FnOnce(&mut SteerNode) -> Result<()>,
) -> Result<()> {
    let web = WebServer::start(&site.server, FILE_BYTES)?;
    thread::scope(|scope| {
        let downloading = scope.spawn(|| download(site.target(false), &web));
        thread::sleep(UNDER_WAY);
        ensure!(!downloading.is_finished(), "the download is over before anything happened");
        let worked = work(node);
        let arrived = downloading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.and(arrived.map(drop))
    })
}

fn start(policy: Policy) -> Result<(SteerSite, NodeFile, SteerNode)> {
    let site = SteerSite::build(&LINKS, Layout::Colocated)?;
    let file = site.node_file(node_with(policy), None);
    let node = site.start_all(&file, RecipeKind::Nftables)?;
    Ok((site, file, node))
}

/// The node ends by SIGTERM and starts again; then it is killed and starts again.
pub(in super::super) fn restart(output: &Output) -> Result<()> {
    let (site, _, mut node) = start(Policy::InverseRtt)?;
    for kill in [false, true] {
        let before = site.carried();
        meanwhile(&site, &mut node, |node| {
            if kill {
                node.kill()?
            } else {
                node.stop()?
            }
            thread::sleep(Duration::from_millis(200));
            node.start_again(&site.node)?;
            node.wait_until_up(&site.node, &site.names()).map(drop)
        })?;
        let how = if kill { "killed" } else { "stopped" };
        output.line(format!("{how} and started again: the download went on"))?;
        both_carried(&site, &before, &node.status(&site.node)?, output)?;
    }
    node.stop()
}

/// A reload changes the policy under a running download.
pub(in super::super) fn reload(_output: &Output) -> Result<()> {
    let (site, file, mut node) = start(Policy::InverseRtt)?;
    meanwhile(&site, &mut node, |node| {
        let flows = node.status(&site.node)?.node.clients[0].flows;
        let mut other = file.clone();
        other.node.policy = Policy::Fixed;
        node.reload(&other.to_text())?;
        let status =
            node.wait_for(&site.node, "the new policy", |one| one.node.policy == "fixed")?;
        ensure!(status.node.clients[0].flows == flows && flows > 0, "flows are kept");
        ensure!(status.up() == site.names(), "attachments stay up");
        // A mistake changes nothing.
        node.reload(&other.to_text().replace("\"fixed\"", "\"fastest\""))?;
        thread::sleep(Duration::from_millis(300));
        ensure!(node.status(&site.node)?.node.policy == "fixed", "the old configuration stays");
        ensure!(node.log_tail().contains("\"fastest\" is not one of the choices"), "it is told");
        Ok(())
    })?;
    node.stop()
}

/// An attachment that goes silent, and one whose interface vanishes, is left out and comes back.
pub(in super::super) fn dead_attachment(output: &Output) -> Result<()> {
    let (site, _, mut node) = start(Policy::Fixed)?;
    meanwhile(&site, &mut node, |node| {
        let emulator = &site.link("wifi")?.emulator;
        emulator.set_cut(true);
        node.wait_until_up(&site.node, &["lte"])?;
        emulator.set_cut(false);
        node.wait_until_up(&site.node, &site.names()).map(drop)
    })?;
    output.line("a silent link: the download went on")?;
    meanwhile(&site, &mut node, |node| {
        site.remove_interface("wifi")?;
        let status = node.wait_until_up(&site.node, &["lte"])?;
        ensure!(!status.way("wifi")?.there, "the node sees that the interface is gone");
        site.return_interface("wifi")?;
        node.wait_until_up(&site.node, &site.names()).map(drop)
    })?;
    output.line("a vanished interface: the download went on")?;
    node.stop()
}

/// With DIDA a download over unlike links arrives intact; ACKs are held, and none for ever.
pub(in super::super) fn dida(output: &Output) -> Result<()> {
    const UNLIKE: [LinkSpec; 2] =
        [LinkSpec::new("lte", 10, 60, 60), LinkSpec::new("wifi", 14, 16, 16)];
    let site = SteerSite::build(&UNLIKE, Layout::Colocated)?;
    let file = site.node_file(node_with(Policy::Fixed), Some(DidaConfig::default()));
    let mut node = site.start_all(&file, RecipeKind::Nftables)?;
    let web = WebServer::start(&site.server, FILE_BYTES)?;
    let before = site.carried();
    download(site.target(false), &web)?;
    both_carried(&site, &before, &node.status(&site.node)?, output)?;
    let status = node.wait_for(&site.node, "nothing is held any more", |status| {
        status.node.dida.is_some_and(|dida| dida.held_now == 0 && dida.kept_now_bytes == 0)
    })?;
    let dida = status.node.dida.expect("it was looked at");
    output.line(format!("{dida:?}"))?;
    ensure!(dida.held > 0 && dida.held == dida.held_ends.total(), "held and ended: {dida:?}");
    node.stop()
}
