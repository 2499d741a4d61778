//! A `plait proxy` that was configured, started and waited for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use plait_toml::proxy::ProxyFile;

use crate::gateway::plait_program;
use crate::process::{self, RESIDENT_PEAK, Service, wait_until};

const LIMIT: Duration = Duration::from_secs(10);

/// A running proxy.
#[derive(Debug)]
pub(crate) struct ProxyProcess {
    service: Service,
    config: PathBuf,
}

impl ProxyProcess {
    /// Starts one in a namespace; its files are in `folder`, under `name`.
    pub(crate) fn start(
        netns: &NetNs,
        folder: &Path,
        name: &str,
        file: &ProxyFile,
    ) -> Result<Self> {
        let socket = folder.join(format!("{name}.sock"));
        let mut file = file.clone();
        file.proxy.name = name.into();
        file.proxy.control_socket = Some(socket.display().to_string());
        let config = folder.join(format!("{name}.toml"));
        fs::write(&config, file.to_text())?;
        let mut command = netns.command(plait_program()?);
        command.args(["proxy", "run"]).arg(&config);
        let log = folder.join(format!("{name}.log"));
        let mut service = Service::start(&mut command, &log)?;
        wait_until("an answer of the proxy", LIMIT, || {
            let ended = !service.runs();
            let is_up = std::os::unix::net::UnixStream::connect(&socket).is_ok();
            anyhow::ensure!(!ended, "it ended: {}", fs::read_to_string(&log).unwrap_or_default());
            Ok(is_up.then_some(()))
        })
        .with_context(|| format!("proxy {name}"))?;
        Ok(Self { service, config })
    }

    /// What `plait status --json` says of it.
    pub(crate) fn status(&self) -> Result<serde_json::Value> {
        let text = self.ask(&["status", "--json"])?;
        serde_json::from_str(&text).context("a proxy's status is JSON")
    }

    /// What `plait proxy metrics` says of it.
    pub(crate) fn metrics(&self) -> Result<String> {
        self.ask(&["proxy", "metrics"])
    }

    fn ask(&self, words: &[&str]) -> Result<String> {
        let mut command = Command::new(plait_program()?);
        process::run(command.args(words).arg(&self.config), "", LIMIT)
    }

    fn entry(&self) -> String {
        self.service.pid().to_string()
    }

    /// Processor time so far.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(&self.entry())
    }

    /// The most memory that it had, MiB.
    pub(crate) fn peak_memory_mib(&self) -> Result<f64> {
        process::memory_mib(&self.entry(), RESIDENT_PEAK)
    }
}

/// Rules in force; they are undone when it is dropped.
#[derive(Debug)]
pub(crate) struct HeldRules(Service);

impl Drop for HeldRules {
    fn drop(&mut self) {
        // Only a program that ends by itself undoes what it did.
        let _ = self.0.stop(LIMIT);
    }
}

/// Leads clients' connections to a transparent proxy's listeners; `name` is the proxy's, in the
/// same folder.
pub(crate) fn hold_rules(netns: &NetNs, folder: &Path, name: &str) -> Result<HeldRules> {
    let mut command = netns.command(plait_program()?);
    command.args(["proxy", "rules", "--apply"]).arg(folder.join(format!("{name}.toml")));
    let log = folder.join(format!("{name}-rules.log"));
    let mut service = Service::start(&mut command, &log)?;
    wait_until("the rules", LIMIT, || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        anyhow::ensure!(service.runs(), "plait proxy rules ended: {said}");
        Ok(said.contains("connections are led").then_some(()))
    })?;
    Ok(HeldRules(service))
}
