//! Talks to a running gateway over its control socket, and reads its answers.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plait_proto::stats::{EndpointStatus, PeerStatus};
use plait_toml::common;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::advice::Advised;
use crate::config::{self, Config, Kind};
use crate::control::message::{Answer, Request, Told};
use crate::daemon::{
    BesideStatus, ContactStatus, DnsStatus, HookStatus, LanStatus, LinkStatus, MeasurementStatus,
    OutageStatus, SocketStatus, TunStatus,
};
use crate::measure::Command;
use crate::proxy::Report as ProxyReport;
use crate::proxy::config::ProxyConfig;
use crate::steer::Report;
use crate::steer::config::SteerConfig;

/// Help for a gateway that does not understand the request.
const RESTART: &str = "it may be another version of plait: compare `plait --version`, restart it";
/// How long the gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which gateway is meant.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// The configuration file of the gateway, or of the steering node
    #[arg(conflicts_with = "socket")]
    config: Option<PathBuf>,
    /// The gateway's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

/// Which gateway is meant, by options.
#[derive(Debug, clap::Args)]
pub(super) struct NamedTarget {
    /// The configuration file of the gateway
    #[arg(long, value_name = "FILE", conflicts_with = "socket")]
    config: Option<PathBuf>,
    /// The gateway's control socket
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl NamedTarget {
    /// Path of the control socket; does not check whether anyone listens there.
    pub(super) fn socket(&self) -> anyhow::Result<PathBuf> {
        Target { config: self.config.clone(), socket: self.socket.clone() }.socket()
    }
}

impl Target {
    /// Path of the control socket; does not check whether anyone listens there.
    pub(super) fn socket(&self) -> anyhow::Result<PathBuf> {
        if let Some(socket) = &self.socket {
            return Ok(socket.clone());
        }
        if let Some(file) = &self.config {
            let document = config::read(file)?;
            return Ok(match Kind::of(&document) {
                Some(Kind::Node) => SteerConfig::control_socket_of(file, &document)?,
                Some(Kind::Proxy) => ProxyConfig::control_socket_of(file, &document)?,
                _ => Config::control_socket_of(file)?,
            });
        }
        only_socket(Path::new(common::SOCKETS)).map_err(Into::into)
    }
}

/// The gateway's answer.
#[derive(Debug, Deserialize)]
pub(super) struct StatusAnswer {
    /// Name of the TUN device.
    pub tun: String,
    /// The file to which the keys of sessions are written.
    #[serde(default)]
    pub key_log: Option<String>,
    /// Seconds since the gateway started.
    pub uptime_s: u64,
    #[serde(flatten)]
    pub endpoint: EndpointStatus,
    /// Peers that the gateway tries to reach.
    #[serde(default)]
    pub contacts: Vec<ContactStatus>,
    /// Each configured path's link.
    #[serde(default)]
    pub links: Vec<LinkStatus>,
    /// What becomes of the host's traffic while the bond is down.
    #[serde(default)]
    pub outage: Option<OutageStatus>,
    /// The networks whose hosts use the gateway as their router.
    #[serde(default)]
    pub lans: Vec<LanStatus>,
    /// Which servers the host's resolver asks.
    #[serde(default)]
    pub dns: Option<DnsStatus>,
    /// What goes beside the bond, rule by rule.
    #[serde(default)]
    pub beside: Vec<BesideStatus>,
    /// The socket for peers that call.
    #[serde(default)]
    pub listening: Option<SocketStatus>,
    /// The TUN device.
    #[serde(default)]
    pub device: Option<TunStatus>,
    /// Measurements that run.
    #[serde(default)]
    pub measurements: Vec<MeasurementStatus>,
    /// What each hook has done.
    #[serde(default)]
    pub hooks: Vec<HookStatus>,
}

impl StatusAnswer {
    /// Parses the answer of the gateway behind `socket`.
    pub(super) fn parse(text: &str, socket: &Path) -> Result<Self, Advised> {
        if Report::is_in(text) {
            let message = format!("a steering node answers behind {}", socket.display());
            return Err(Advised::new(message, "`plait status` shows it; choose a gateway here"));
        }
        if ProxyReport::is_in(text) {
            let message = format!("a proxy answers behind {}", socket.display());
            return Err(Advised::new(message, "`plait status` shows it; choose a gateway here"));
        }
        understand(text, socket)
    }

    /// How the gateway tries to reach a peer.
    pub(super) fn contact(&self, peer: &PeerStatus) -> Option<&ContactStatus> {
        self.contacts.iter().find(|contact| contact.public_key == peer.public_key)
    }

    /// Whether every bond is up.
    pub(super) fn all_up(&self) -> bool {
        self.endpoint.peers.iter().all(|peer| peer.state == "up")
    }
}

/// Parses the answer of the proxy behind `socket`.
pub(super) fn proxy_report(text: &str, socket: &Path) -> Result<ProxyReport, Advised> {
    understand(text, socket)
}

/// Parses the answer of the steering node behind `socket`.
pub(super) fn report(text: &str, socket: &Path) -> Result<Report, Advised> {
    understand(text, socket)
}

fn understand<T: DeserializeOwned>(text: &str, socket: &Path) -> Result<T, Advised> {
    serde_json::from_str(text).map_err(|cause| {
        let message = format!("the gateway behind {} answers oddly", socket.display());
        Advised::new(message, RESTART).caused_by(cause)
    })
}

/// The only control socket of a folder.
fn only_socket(folder: &Path) -> Result<PathBuf, Advised> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "sock");
    let mut sockets: Vec<_> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    sockets.sort();
    match sockets.len() {
        1 => Ok(sockets.remove(0)),
        0 => Err(Advised::new(
            format!("no gateway runs here: {} holds no control socket", folder.display()),
            "start one with `plait up CONFIG`, or give its configuration file as the argument",
        )),
        _ => {
            let names: Vec<_> = sockets.iter().map(|path| path.display().to_string()).collect();
            Err(Advised::new(
                format!("several gateways run here: {}", names.join(", ")),
                "choose one: give its configuration file as the argument, or `--socket PATH`",
            ))
        }
    }
}

/// Asks a proxy for something.
pub(super) fn ask_for(socket: &Path, request: &str) -> io::Result<String> {
    exchange(socket, request)
}

/// Asks for the gateway's status.
pub(super) fn ask(socket: &Path) -> io::Result<String> {
    exchange(socket, "status")
}

/// The gateway's answer to a command.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Obeyed {
    error: Option<String>,
    /// Addresses at which a measurement's peer may answer.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
}

/// Makes the gateway carry out a command.
pub(super) fn command(socket: &Path, command: &Command) -> Result<Obeyed, Advised> {
    let text = exchange(socket, &command.to_string()).map_err(|cause| explain(socket, cause))?;
    let obeyed: Obeyed = serde_json::from_str(&text).map_err(|cause| {
        Advised::new(format!("the gateway behind {} answers oddly", socket.display()), RESTART)
            .caused_by(cause)
    })?;
    let Some(error) = obeyed.error else { return Ok(obeyed) };
    let help = match error.starts_with("unknown request") {
        true => RESTART,
        false => "look at `plait status`, then try again",
    };
    Err(Advised::new(format!("the gateway refuses: {error}"), help))
}

/// Makes a gateway change something, or tell.
///
/// # Errors
/// It cannot be reached, or refuses.
pub(super) fn request(socket: &Path, request: &Request) -> Result<Told, Advised> {
    let text = exchange(socket, &request.line()).map_err(|cause| explain(socket, cause))?;
    match serde_json::from_str::<Answer>(&text) {
        Ok(answer) => answer.into(),
        // What knows no versioned requests says so without a version.
        Err(cause) => {
            let message = format!("the gateway behind {} answers oddly", socket.display());
            Err(Advised::new(message, RESTART).caused_by(cause))
        }
    }
}

/// Makes the gateway or steering node read its configuration again.
///
/// # Errors
/// It cannot be reached, or the configuration is wrong; then the old one stays.
pub(super) fn reload(socket: &Path) -> Result<(), Advised> {
    let text = exchange(socket, "reload").map_err(|cause| explain(socket, cause))?;
    let obeyed: Obeyed = understand(&text, socket)?;
    match obeyed.error {
        None => Ok(()),
        Some(error) if error.starts_with("unknown request") => {
            Err(Advised::new(format!("the gateway refuses: {error}"), RESTART))
        }
        Some(error) => Err(Advised::new(
            format!("the old configuration stays: {error}"),
            "`plait check CONFIG`, or `plait proxy check CONFIG`, shows all that is wrong",
        )),
    }
}

/// Sends a request and reads the answer to its end.
fn exchange(socket: &Path, request: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match stream.write_all(format!("{request}\n").as_bytes()) {
        // Whoever refuses before it has read all has said why.
        Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => return Err(cause),
        _ => {}
    }
    let mut text = String::new();
    match stream.read_to_string(&mut text) {
        Err(cause) if cause.kind() == io::ErrorKind::WouldBlock => {
            let message = format!("no answer within {} s", PATIENCE.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Err(cause) if cause.kind() != io::ErrorKind::ConnectionReset => return Err(cause),
        _ => {}
    }
    if text.trim_end().is_empty() {
        // The gateway ended between request and answer.
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hung up without an answer"));
    }
    Ok(text)
}

/// Explains a failed [`ask`], and says what to do.
pub(super) fn explain(socket: &Path, cause: io::Error) -> Advised {
    let help = match cause.kind() {
        io::ErrorKind::PermissionDenied => "run this as root, or as the gateway's user",
        io::ErrorKind::TimedOut => "the gateway is too busy to answer, or hangs; look at its log",
        _ => "is the gateway running? start it with `plait up CONFIG`",
    };
    Advised::new(format!("cannot ask the gateway behind {}", socket.display()), help)
        .caused_by(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_socket_is_taken_and_several_are_named() {
        let folder = std::env::temp_dir().join(format!("plait-sockets-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let error = only_socket(&folder).unwrap_err();
        assert!(error.to_string().starts_with("no gateway runs here: "));
        fs::write(folder.join("a.sock"), "").unwrap();
        fs::write(folder.join("a.pid"), "").unwrap();
        assert_eq!(only_socket(&folder).unwrap(), folder.join("a.sock"));
        fs::write(folder.join("b.sock"), "").unwrap();
        let error = only_socket(&folder).unwrap_err();
        assert!(error.to_string().ends_with("/b.sock"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
