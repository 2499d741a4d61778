//! What `plait check --json` says of a configuration, and whether `plait up` answers.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;
use serde::Deserialize;

use super::plait_program;
use crate::process;

const LIMIT: Duration = Duration::from_secs(20);

/// Effect of a finding on the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    Warning,
    Error,
}

/// A line of `plait check --json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) help: Option<String>,
}

impl Finding {
    /// Whether it is about the lab's machine, independent of the configuration.
    pub(crate) fn is_of_the_machine(&self) -> bool {
        self.subject == "kernel" || self.subject.starts_with("net.core.")
    }

    pub(crate) fn describe(&self) -> String {
        format!("{:?} {}: {}", self.level, self.subject, self.text)
    }
}

/// Runs `plait check`, whose program is `command`, and reads what it finds.
pub(crate) fn check(mut command: Command, file: &Path) -> Result<Vec<Finding>> {
    command.args(["check", "--json"]).arg(file);
    let finished = process::run_any(&mut command, "", LIMIT)?;
    let is_finding = |line: &&str| line.contains("\"type\":\"finding\"");
    let lines = finished.stdout.lines().filter(is_finding);
    let findings: Vec<Finding> =
        lines.map(serde_json::from_str).collect::<Result<_, _>>().context("check --json")?;
    let any_error = findings.iter().any(|finding| finding.level == Level::Error);
    ensure!(
        finished.status.code() == Some(if any_error { 2 } else { 0 }),
        "check ended with {} and said: {}{}",
        finished.status,
        finished.stdout,
        finished.stderr
    );
    Ok(findings)
}

/// Whether the gateway of a configuration answers on its control socket, with or without a bond.
pub(crate) fn answers(netns: &NetNs, file: &Path) -> Result<bool> {
    let mut status = netns.command(plait_program()?);
    status.args(["status", "--json"]).arg(file);
    Ok(process::run_any(&mut status, "", LIMIT)?.stdout.contains("\"uptime_s\""))
}
