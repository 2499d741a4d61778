//! A real `plait steer` process with one client, which has nothing but the recipe.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use plait_net::netns::NetNs;
use serde::{Deserialize, Serialize};

use super::{COMMAND_LIMIT, LOG_TAIL_LINES, STOP_LIMIT, plait_program};
use crate::process::{self, Finished, Service, wait_until};
use crate::scratch::Scratch;

const UP_LIMIT: Duration = Duration::from_secs(15);

/// A node's configuration file. What is `None` is left out, so that the node's default holds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct NodeFile {
    pub(crate) node: NodeSection,
    pub(crate) client: Vec<ClientSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dida: Option<DidaSection>,
}

/// `[node]`.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct NodeSection {
    pub(crate) tun: String,
    pub(crate) state_file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) per: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_packets: Option<u32>,
}

/// `[[client]]`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ClientSection {
    pub(crate) name: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) attachment: Vec<AttachmentSection>,
}

/// `[[client.attachment]]`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AttachmentSection {
    pub(crate) name: String,
    /// Of all but the primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) interface: String,
    pub(crate) weight: u16,
    pub(crate) price: u8,
}

/// `[dida]`.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct DidaSection {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hold: Option<Hold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sack: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gap_filled: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) released_until: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hold_max_ms: Option<f64>,
}

/// A policy's name, or a number of milliseconds.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Hold {
    Millis(f64),
    Policy(&'static str),
}

impl NodeFile {
    /// A node of one client with the defaults of everything else.
    pub(crate) fn of(client: ClientSection) -> Self {
        let node = NodeSection { tun: "steer0".into(), ..NodeSection::default() };
        Self { node, client: vec![client], dida: None }
    }
}

/// What `plait status --json` says of a node, as far as the lab reads it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeView {
    pub(crate) clients: Vec<ClientView>,
    #[serde(default)]
    pub(crate) dida: Option<plait_proto::dida::DidaStats>,
}

/// A client of a node.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ClientView {
    pub(crate) attachments: Vec<AttachmentView>,
}

/// An attachment of a client.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AttachmentView {
    pub(crate) state: String,
}

impl NodeView {
    /// Whether every attachment of every client carries packets.
    fn is_up(&self) -> bool {
        let attachments = || self.clients.iter().flat_map(|client| &client.attachments);
        attachments().next().is_some() && attachments().all(|one| one.state == "up")
    }
}

/// A running `plait steer`.
#[derive(Debug)]
pub(crate) struct SteerNode<'a> {
    netns: &'a NetNs,
    config: PathBuf,
    service: Service,
    scratch: Scratch,
}

impl<'a> SteerNode<'a> {
    /// Starts a node in `netns`, gives the client in `client` the rules that the node prints for
    /// it, and waits until all attachments carry packets.
    pub(crate) fn start(netns: &'a NetNs, client: &NetNs, file: &NodeFile) -> Result<Self> {
        let scratch = Scratch::in_memory("steer")?;
        let mut file = file.clone();
        let state_file = scratch.path().join("node.json");
        file.node.state_file = state_file.to_string_lossy().into_owned();
        let config = scratch.path().join("node.toml");
        fs::write(&config, toml::to_string(&file).context("a node's file can be written")?)?;
        give_rules(client, &config)?;
        let mut command = netns.command(plait_program()?);
        let service =
            Service::start(command.arg("steer").arg(&config), &scratch.path().join("node.log"))?;
        let mut node = Self { netns, config, service, scratch };
        let up = wait_until("a node with all attachments up", UP_LIMIT, || {
            Ok(node.status()?.filter(NodeView::is_up).map(drop))
        });
        up.with_context(|| format!("the node's log ends:\n{}", node.log_tail()))?;
        Ok(node)
    }

    /// Processor time that its process has taken.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(&self.service.pid().to_string())
    }

    /// Whether the node has not ended by itself.
    pub(crate) fn ensure_runs(&mut self) -> Result<()> {
        ensure!(self.service.runs(), "the node has ended; its log:\n{}", self.log_tail());
        Ok(())
    }

    /// What the node says of itself; `None` while it is not ready to say anything.
    pub(crate) fn status(&mut self) -> Result<Option<NodeView>> {
        self.ensure_runs()?;
        let mut command = self.netns.command(plait_program()?);
        command.args(["status", "--json"]).arg(&self.config);
        let Finished { status, stdout, .. } = process::run_any(&mut command, "", COMMAND_LIMIT)?;
        if !status.success() {
            return Ok(None);
        }
        let view = serde_json::from_str(&stdout);
        view.map(Some).with_context(|| format!("unknown form of status: {stdout}"))
    }

    /// Stops the node by SIGTERM; it must end by itself and with status 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        match self.service.stop(STOP_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the node ended with {status}; its log:\n{}", self.log_tail()),
            None => bail!("the node did not end on SIGTERM; its log:\n{}", self.log_tail()),
        }
    }

    fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.scratch.path().join("node.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

/// Runs the recipe that the node prints in the client's namespace.
fn give_rules(client: &NetNs, config: &std::path::Path) -> Result<()> {
    let mut command = Command::new(plait_program()?);
    let recipe = process::run(
        command.args(["steer", "--client-rules", "--for", "nftables"]).arg(config),
        "",
        COMMAND_LIMIT,
    )?;
    let mut shell = client.command("sh");
    process::run(shell.arg("-e"), &recipe, COMMAND_LIMIT).context("the client's recipe")?;
    Ok(())
}
