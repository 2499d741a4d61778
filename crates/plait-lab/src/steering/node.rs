//! A running `plait steer`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use plait_net::netns::NetNs;
use plait_proto::steer::{AttachmentState, AttachmentStatus, NodeStatus};
use plait_toml::node::NodeFile;
use serde::Deserialize;

use crate::gateway::plait_program;
use crate::process::{self, Finished, Service, wait_until};

const COMMAND_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(5);
const UP_LIMIT: Duration = Duration::from_secs(20);
/// Lines of a node's log that an error shows.
const LOG_TAIL_LINES: usize = 30;

/// A node's status.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct SteerStatus {
    #[serde(flatten)]
    pub(crate) node: NodeStatus,
    pub(crate) ways: Vec<WayView>,
}

/// How an attachment is reached.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct WayView {
    pub(crate) attachment: String,
    pub(crate) there: bool,
    pub(crate) rule_missing: bool,
}

impl SteerStatus {
    /// An attachment of the first client.
    pub(crate) fn attachment(&self, name: &str) -> Result<&AttachmentStatus> {
        let mut attachments = self.node.clients.iter().take(1).flat_map(|one| &one.attachments);
        attachments.find(|one| one.name == name).with_context(|| format!("no attachment {name}"))
    }

    /// Names of the attachments of all clients that carry packets.
    pub(crate) fn up(&self) -> Vec<&str> {
        let attachments = self.node.clients.iter().flat_map(|client| &client.attachments);
        let up = attachments.filter(|attachment| attachment.state == AttachmentState::Up);
        up.map(|attachment| attachment.name.as_str()).collect()
    }

    /// How an attachment is reached.
    pub(crate) fn way(&self, name: &str) -> Result<&WayView> {
        let way = self.ways.iter().find(|way| way.attachment == name);
        way.with_context(|| format!("no attachment {name}"))
    }
}

/// A running `plait steer`.
#[derive(Debug)]
pub(crate) struct SteerNode {
    config: PathBuf,
    log: PathBuf,
    service: Service,
}

impl SteerNode {
    /// Writes `file` as node.toml into `folder` and starts a node with it in `netns`.
    pub(crate) fn start(netns: &NetNs, folder: &Path, file: &NodeFile) -> Result<Self> {
        let config = folder.join("node.toml");
        fs::write(&config, file.to_text())?;
        let log = folder.join("node.log");
        let service = start_service(netns, &config, &log)?;
        Ok(Self { config, log, service })
    }

    /// The configuration file.
    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    /// Starts a node that was stopped or killed again.
    pub(crate) fn start_again(&mut self, netns: &NetNs) -> Result<()> {
        self.service = start_service(netns, &self.config, &self.log)?;
        Ok(())
    }

    /// Kills the node, so that it cannot clean up.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.service.kill()
    }

    /// Asks the node to read another configuration (SIGHUP).
    pub(crate) fn reload(&self, text: &str) -> Result<()> {
        fs::write(&self.config, text)?;
        let mut command = Command::new("sh");
        command.args(["-c", "kill -HUP \"$1\"", "sh", &self.service.pid().to_string()]);
        process::run(&mut command, "", COMMAND_LIMIT).map(drop)
    }

    /// Checks that the node has not ended by itself.
    pub(crate) fn ensure_runs(&mut self) -> Result<()> {
        ensure!(self.service.runs(), "the node has ended; its log:\n{}", self.log_tail());
        Ok(())
    }

    /// Processor time that its process has taken.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(&self.service.pid().to_string())
    }

    /// The node's status; `None` while it is not ready to answer.
    pub(crate) fn try_status(&mut self, netns: &NetNs) -> Result<Option<SteerStatus>> {
        self.ensure_runs()?;
        let mut command = netns.command(plait_program()?);
        command.args(["status", "--json"]).arg(&self.config);
        let Finished { status, stdout, .. } = process::run_any(&mut command, "", COMMAND_LIMIT)?;
        // 1: an attachment is not up.
        if !matches!(status.code(), Some(0 | 1)) {
            return Ok(None);
        }
        let status = serde_json::from_str(&stdout);
        status.map(Some).with_context(|| format!("unknown form of status: {stdout}"))
    }

    /// The node's status; it must answer.
    pub(crate) fn status(&mut self, netns: &NetNs) -> Result<SteerStatus> {
        self.try_status(netns)?.context("the node says nothing")
    }

    /// Waits until exactly these attachments carry packets.
    pub(crate) fn wait_until_up(&mut self, netns: &NetNs, names: &[&str]) -> Result<SteerStatus> {
        self.wait_for(netns, &format!("attachments up: {names:?}"), |status| status.up() == names)
    }

    /// Waits until the node's status fits.
    pub(crate) fn wait_for(
        &mut self,
        netns: &NetNs,
        what: &str,
        fits: impl Fn(&SteerStatus) -> bool,
    ) -> Result<SteerStatus> {
        let mut last = None;
        let waited = wait_until(what, UP_LIMIT, || {
            last = self.try_status(netns)?;
            Ok(last.clone().filter(&fits))
        });
        waited.with_context(|| format!("{last:#?}\nthe node's log ends:\n{}", self.log_tail()))
    }

    /// Stops the node by SIGTERM; it must end by itself and with status 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        match self.service.stop(STOP_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the node ended with {status}; its log:\n{}", self.log_tail()),
            None => bail!("the node did not end on SIGTERM; its log:\n{}", self.log_tail()),
        }
    }

    /// The last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

fn start_service(netns: &NetNs, config: &Path, log: &Path) -> Result<Service> {
    let mut command = netns.command(plait_program()?);
    Service::start(command.arg("steer").arg(config), log)
}
