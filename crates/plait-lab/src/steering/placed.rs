//! A node in a network of another module.

use std::time::Duration;

use anyhow::Result;
use plait_net::netns::NetNs;
use plait_toml::node::NodeFile;

use super::client::{RecipeKind, print_recipe, run_lines};
use super::node::{SteerNode, SteerStatus};
use crate::scratch::Scratch;
use crate::topology::{TUN_QUEUE_PACKETS, ip_batch};

/// A running node and its namespace.
#[derive(Debug)]
pub(crate) struct PlacedNode<'a> {
    netns: &'a NetNs,
    node: SteerNode,
    /// Configuration and log; kept while the node uses them.
    _scratch: Scratch,
}

impl<'a> PlacedNode<'a> {
    /// Starts a node in `netns`, runs the recipe in `client`, which is the file's only client, and
    /// waits until every attachment carries packets.
    pub(crate) fn start(netns: &'a NetNs, client: &NetNs, file: &NodeFile) -> Result<Self> {
        let scratch = Scratch::in_memory("steering")?;
        let mut node = SteerNode::start(netns, scratch.path(), file)?;
        for of in &file.clients {
            let lines = print_recipe(node.config(), &of.name, RecipeKind::Nftables)?;
            run_lines(client, &lines, None)?;
            let names: Vec<&str> = of.attachments.iter().map(|one| one.name.as_str()).collect();
            node.wait_until_up(netns, &names)?;
        }
        // A whole window may come at once: links are to lose packets, not this device. Only a node
        // that carries packets is sure to have made it.
        let device = &file.node.tun;
        ip_batch(netns, "", &[format!("link set dev {device} txqueuelen {TUN_QUEUE_PACKETS}")])?;
        Ok(Self { netns, node, _scratch: scratch })
    }

    /// The node's status; it must answer.
    pub(crate) fn status(&mut self) -> Result<SteerStatus> {
        self.node.status(self.netns)
    }

    /// Checks that the node has not ended by itself.
    pub(crate) fn ensure_runs(&mut self) -> Result<()> {
        self.node.ensure_runs()
    }

    /// Processor time that the node's process has taken.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        self.node.cpu_time()
    }

    /// Stops the node by SIGTERM; it must end by itself and with status 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        self.node.stop()
    }
}
