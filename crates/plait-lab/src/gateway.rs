//! Real `plait` processes: configured, started, waited for, stopped.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use plait_net::netns::NetNs;
use plait_toml::gateway::{Gateway as GatewaySection, Peer};
use plait_toml::value::{Cidr, Endpoint};

use crate::process::{self, Finished, Service};
use crate::topology::{BOND_ONLY_V4, BOND_ONLY_V6, PROVIDER_V4, PROVIDER_V6, inner_v4, inner_v6};

mod bond;
pub(crate) mod captured;
mod check;
mod config;
mod measured;
pub(crate) mod scraped;
mod status;

pub(crate) use bond::{Bond, BondSetup};
pub(crate) use check::{Finding, Level, answers, check};
pub(crate) use config::{idle_peer, path_over};
pub(crate) use measured::MeasuredView;
pub(crate) use plait_toml::gateway::{GatewayFile, Path as GatewayPath};
pub(crate) use scraped::Scrape;
pub(crate) use status::Status;

/// The port that the provider's gateway listens on.
pub(crate) const LISTEN_PORT: u16 = 7788;

const COMMAND_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Lines of a gateway's log that an error shows.
const LOG_TAIL_LINES: usize = 30;

/// The `plait` program: `PLAIT_BIN`, or the one beside this program.
pub(crate) fn plait_program() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("PLAIT_BIN") {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "PLAIT_BIN={} is no file", path.display());
        return Ok(path);
    }
    let this = std::env::current_exe().context("cannot find this program's own place")?;
    let path = this.with_file_name("plait");
    ensure!(
        path.is_file(),
        "there is no plait program at {}; build it with cargo build -p plait-cli, or name it in \
         PLAIT_BIN",
        path.display()
    );
    Ok(path)
}

/// A new identity, its private key in `file`. Returns the public key in base64.
pub(crate) fn make_key(file: &Path) -> Result<String> {
    let plait = plait_program()?;
    let private = process::run(Command::new(&plait).arg("keygen"), "", COMMAND_LIMIT)?;
    fs::write(file, &private)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    let public = process::run(Command::new(&plait).arg("pubkey"), &private, COMMAND_LIMIT)?;
    Ok(public.trim().to_owned())
}

/// A running `plait up`.
#[derive(Debug)]
pub(crate) struct Gateway {
    config: PathBuf,
    log: PathBuf,
    /// Where it writes the keys of its sessions.
    key_log: Option<PathBuf>,
    /// Another program than the lab's `plait`.
    program: Option<PathBuf>,
    service: Service,
}

impl Gateway {
    /// Writes `file` as NAME.toml into `folder` and starts a gateway with it in `netns`.
    pub(crate) fn start(
        netns: &NetNs,
        folder: &Path,
        name: &str,
        file: &GatewayFile,
    ) -> Result<Self> {
        Self::start_with(netns, folder, name, file, None, None)
    }

    /// As [`Self::start`]; the gateway writes the keys of its sessions to `key_log`.
    pub(crate) fn start_logging_keys(
        netns: &NetNs,
        folder: &Path,
        name: &str,
        file: &GatewayFile,
        key_log: &Path,
    ) -> Result<Self> {
        Self::start_with(netns, folder, name, file, Some(key_log.to_owned()), None)
    }

    /// As [`Self::start`], with another program where one is named.
    pub(crate) fn start_program(
        netns: &NetNs,
        folder: &Path,
        name: &str,
        file: &GatewayFile,
        program: Option<PathBuf>,
    ) -> Result<Self> {
        Self::start_with(netns, folder, name, file, None, program)
    }

    fn start_with(
        netns: &NetNs,
        folder: &Path,
        name: &str,
        file: &GatewayFile,
        key_log: Option<PathBuf>,
        program: Option<PathBuf>,
    ) -> Result<Self> {
        let config = folder.join(format!("{name}.toml"));
        fs::write(&config, file.to_text())?;
        let log = folder.join(format!("{name}.log"));
        let start = Start { config: &config, log: &log, key_log: &key_log, program: &program };
        let service = start.service(netns)?;
        Ok(Self { config, log, key_log, program, service })
    }

    /// Kills the gateway, so that it cannot clean up, and starts it again.
    pub(crate) fn kill_and_restart(&mut self, netns: &NetNs) -> Result<()> {
        self.service.kill()?;
        self.restart(netns)
    }

    /// Kills the gateway, so that it cannot clean up.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.service.kill()
    }

    /// Starts the gateway after it was killed.
    pub(crate) fn restart(&mut self, netns: &NetNs) -> Result<()> {
        let Self { config, log, key_log, program, .. } = self;
        self.service = Start { config, log, key_log, program }.service(netns)?;
        Ok(())
    }

    /// Asks the gateway to read its configuration again (SIGHUP).
    pub(crate) fn reload(&self) -> Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", "kill -HUP \"$1\"", "sh", &self.service.pid().to_string()]);
        process::run(&mut command, "", COMMAND_LIMIT).map(drop)
    }

    /// Asks the gateway to go on with `file`.
    pub(crate) fn reload_with(&self, file: &GatewayFile) -> Result<()> {
        fs::write(&self.config, file.to_text())?;
        self.reload()
    }

    /// Its configuration file.
    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    /// Runs a command about the gateway, such as `path down dsl`; gives its output.
    pub(crate) fn command(&self, netns: &NetNs, arguments: &[&str]) -> Result<String> {
        let mut command = netns.command(plait_program()?);
        command.args(arguments);
        // The commands that change a gateway take arguments of their own.
        if matches!(arguments.first(), Some(&("peer" | "path"))) {
            command.arg("--config");
        }
        process::run(command.arg(&self.config), "", COMMAND_LIMIT * 2)
    }

    /// Memory of the gateway: `VmRSS` of proc_pid_status(5).
    pub(crate) fn memory_mib(&self) -> Result<f64> {
        process::memory_mib(&self.service.pid().to_string(), process::RESIDENT)
    }

    /// Processor time that the gateway has taken.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(&self.service.pid().to_string())
    }

    /// Peak memory of the gateway.
    pub(crate) fn peak_memory_mib(&self) -> Result<f64> {
        process::memory_mib(&self.service.pid().to_string(), process::RESIDENT_PEAK)
    }

    /// Checks that the gateway has not ended by itself.
    pub(crate) fn ensure_runs(&mut self) -> Result<()> {
        ensure!(self.service.runs(), "the gateway has ended; its log:\n{}", self.log_tail());
        Ok(())
    }

    /// The gateway's status; `None` while it is not ready to answer.
    pub(crate) fn status(&mut self, netns: &NetNs) -> Result<Option<Status>> {
        self.status_text(netns)?.map(|text| Status::parse(&text)).transpose()
    }

    /// The whole of what `plait status --json` prints; `None` while it is not ready to answer.
    pub(crate) fn status_json(&mut self, netns: &NetNs) -> Result<Option<serde_json::Value>> {
        let text = self.status_text(netns)?;
        text.map(|text| serde_json::from_str(&text).context("the status is no JSON")).transpose()
    }

    fn status_text(&mut self, netns: &NetNs) -> Result<Option<String>> {
        self.ensure_runs()?;
        let mut command = netns.command(plait_program()?);
        command.args(["status", "--json"]).arg(&self.config);
        // It answers with exit status 1, too, when no bond is up.
        let Finished { stdout, .. } = process::run_any(&mut command, "", COMMAND_LIMIT)?;
        Ok((!stdout.is_empty()).then_some(stdout))
    }

    /// Stops the gateway by SIGTERM; it must end by itself and with status 0.
    pub(crate) fn stop(&mut self) -> Result<()> {
        match self.service.stop(STOP_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the gateway ended with {status}; its log:\n{}", self.log_tail()),
            None => bail!("the gateway did not end on SIGTERM; its log:\n{}", self.log_tail()),
        }
    }

    /// The last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

/// What a gateway's process is started with.
struct Start<'a> {
    config: &'a Path,
    log: &'a Path,
    key_log: &'a Option<PathBuf>,
    program: &'a Option<PathBuf>,
}

impl Start<'_> {
    fn service(&self, netns: &NetNs) -> Result<Service> {
        let mut command = match self.program {
            Some(program) => netns.command(program),
            None => netns.command(plait_program()?),
        };
        if let Some(key_log) = self.key_log {
            command.env("PLAIT_KEYLOG", key_log);
        }
        Service::start(command.arg("up").arg(self.config), self.log)
    }
}

/// The customer's gateway: it opens `paths` to the provider. `host` is its number inside the bond.
pub(crate) fn customer_file(
    key_file: &str,
    host: u8,
    provider_key: &str,
    endpoints: &[SocketAddr],
    paths: &[GatewayPath],
) -> GatewayFile {
    let behind = [BOND_ONLY_V4, BOND_ONLY_V6].map(cidr);
    GatewayFile {
        gateway: gateway_section(key_file, host, "plait0"),
        paths: paths.to_vec(),
        peers: vec![Peer {
            public_key: provider_key.into(),
            endpoint: endpoints.iter().copied().map(Endpoint::Address).collect(),
            allowed_ips: addresses(1, 32, 128).into_iter().chain(behind).collect(),
            ..Peer::default()
        }],
        tuning: None,
    }
}

/// The provider's gateway: it waits for the customers with these keys and numbers.
pub(crate) fn provider_file(key_file: &str, customers: &[(String, u8)]) -> GatewayFile {
    let peer = customers.iter().map(|(public_key, host)| Peer {
        public_key: public_key.clone(),
        allowed_ips: addresses(*host, 32, 128).into(),
        ..Peer::default()
    });
    // Both gateways share a file system here, and control sockets are named after devices.
    let gateway = gateway_section(key_file, 1, "plait1");
    GatewayFile {
        gateway: GatewaySection { listen_port: Some(LISTEN_PORT), ..gateway },
        paths: Vec::new(),
        peers: peer.collect(),
        tuning: None,
    }
}

fn gateway_section(key_file: &str, host: u8, tun: &str) -> GatewaySection {
    GatewaySection {
        private_key_file: key_file.into(),
        tun: tun.into(),
        address: addresses(host, 24, 64).into(),
        routes: true,
        state_file: Some(state_file(key_file)),
        ..GatewaySection::default()
    }
}

/// A gateway's addresses inside the bond, with these prefix lengths.
fn addresses(host: u8, v4: u8, v6: u8) -> [Cidr; 2] {
    let (address_v4, address_v6) = (inner_v4(host).into(), inner_v6(host).into());
    [Cidr { address: address_v4, length: v4 }, Cidr { address: address_v6, length: v6 }]
}

/// A prefix from a constant text.
pub(crate) fn cidr(text: &str) -> Cidr {
    Cidr::parse(text).expect("the lab's prefixes are prefixes")
}

/// A state file named after its gateway's key file.
fn state_file(key_file: &str) -> String {
    Path::new(key_file).with_extension("state").to_string_lossy().into_owned()
}

/// The provider's endpoint over IPv4.
pub(crate) fn endpoint_v4() -> SocketAddr {
    SocketAddr::from((PROVIDER_V4, LISTEN_PORT))
}

/// The provider's endpoint over IPv6.
pub(crate) fn endpoint_v6() -> SocketAddr {
    SocketAddr::from((PROVIDER_V6, LISTEN_PORT))
}
