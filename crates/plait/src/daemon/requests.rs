//! Requests to a running gateway from outside its loop, by signals and over the control socket.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use plait_proto::ingress::PinError;
use plait_proto::seq::PathId;
use plait_proto::stats::EndpointStatus;
use plait_proto::wire::ip::Inner;
use serde::Serialize;

use super::beside::{self, BesideStatus, ResolvedDomains};
use super::dns::DnsStatus;
use super::hooks::HookStatus;
use super::lan::LanStatus;
use super::links::LinkStatus;
use super::measure::{MeasurementStatus, Registry};
use super::outage::OutageStatus;
use super::ports::{SocketStatus, TunStatus};
use super::quota::QuotaStatus;
use super::reach::{ContactStatus, ResolvedName};
use super::reload;
use super::runtime::{self, Wanted};
use crate::advice::Advised;
use crate::config::Config;
use crate::control::message::{self, Answer, Told};
use crate::control::{self, ControlSocket, Ends, read_request};
use crate::measure::{Command, Flow};

/// Something the loop is asked to do.
pub(super) enum Request {
    /// End.
    Stop,
    /// End, and leave what was set up at the host to a successor.
    Leave,
    /// Go on with another configuration.
    Reload(Box<Config>),
    /// Change a part of what is in force, or tell of it.
    Change(Box<Wanted>, SyncSender<Result<Told, Advised>>),
    /// A name of an endpoint was resolved, or failed to.
    Resolved(ResolvedName),
    /// The names of what goes beside the bond were.
    Domains(ResolvedDomains),
    /// Report the state.
    Status(SyncSender<Snapshot>),
    /// Pin a flow to a path.
    Pin(PathId, Inner, SyncSender<Result<(), PinError>>),
    /// Unpin a flow: the scheduler decides again.
    Unpin(Inner),
}

/// The part of the gateway's state that the loop knows.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Snapshot {
    /// Seconds since the start.
    pub(super) uptime_s: u64,
    #[serde(flatten)]
    pub(super) endpoint: EndpointStatus,
    /// Peers that this gateway tries to reach.
    pub(super) contacts: Vec<ContactStatus>,
    /// The configured paths.
    pub(super) links: Vec<LinkStatus>,
    /// What becomes of the host's traffic while the bond is down.
    pub(super) outage: OutageStatus,
    /// The networks whose hosts use this gateway as their router.
    pub(super) lans: Vec<LanStatus>,
    /// Which servers the host's resolver asks.
    pub(super) dns: Option<DnsStatus>,
    /// What goes beside the bond, rule by rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) beside: Vec<BesideStatus>,
    /// The socket for peers that call.
    pub(super) listening: Option<SocketStatus>,
    /// The paths that have a quota.
    pub(super) quotas: Vec<QuotaStatus>,
    /// The TUN device.
    pub(super) device: TunStatus,
    /// What each hook has done.
    pub(super) hooks: Vec<HookStatus>,
}

/// Sends requests to the gateway's loop.
pub(super) type Requests = control::Requests<Request>;

impl Requests {
    /// Pins a flow to a path; `None` when the loop does not answer.
    pub(super) fn pin(&self, path: PathId, flow: Flow) -> Option<Result<(), PinError>> {
        self.ask(|answer| Request::Pin(path, flow.inner(), answer))
    }

    /// Unpins a flow.
    pub(super) fn unpin(&self, flow: Flow) {
        // A loop that has ended has no pins.
        self.send(Request::Unpin(flow.inner()));
    }
}

/// On a signal stops the gateway, or makes it apply another configuration if that is valid. DNS may
/// take its time.
pub(super) fn watch_signals(requests: Requests, config: PathBuf) -> anyhow::Result<()> {
    let ends = Ends { stop: || Request::Stop, leave: || Request::Leave };
    control::watch_signals(requests, ends, move || read_again(&config))
}

/// # Errors
/// Everything that is wrong, which was logged.
fn read_again(config: &Path) -> Result<Request, String> {
    Ok(Request::Reload(Box::new(reload::read(config)?)))
}

/// Answers the gateway's clients. Dropping the returned value removes the socket's file.
pub(super) fn serve(
    socket: ControlSocket,
    identity: Identity,
    config: PathBuf,
    requests: Requests,
    measurements: Registry,
) -> anyhow::Result<ControlSocket> {
    socket.answer_with(move |client| {
        let line = read_request(&client)?;
        if let Some(asked) = message::Request::read(&line) {
            let answer = Answer::from(asked.and_then(|asked| change(asked, &requests)));
            let text = serde_json::to_string(&answer).map_err(io::Error::other)?;
            return writeln!(&client, "{text}");
        }
        if line == "reload\n" {
            let done = control::reload_for_client(&requests, || read_again(&config));
            return writeln!(&client, "{done}");
        }
        answer(client, &line, &identity, &requests, &measurements)
    })
}

/// Has the loop carry out a versioned request.
fn change(asked: message::Request, requests: &Requests) -> Result<Told, Advised> {
    let wanted = Box::new(runtime::wanted(asked)?);
    requests.ask(|reply| Request::Change(wanted, reply)).unwrap_or_else(|| {
        let help = "look with `plait peer list` or `plait path list` whether it was done";
        Err(Advised::new("the gateway is too busy to answer, or ends", help))
    })
}

/// The constant part of a running gateway's status.
#[derive(Serialize)]
pub(super) struct Identity {
    pub(super) tun: String,
    /// The parts of the sandbox in force.
    pub(super) sandbox: Vec<&'static str>,
    /// The file to which the keys of sessions are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key_log: Option<String>,
}

#[derive(Serialize)]
struct StatusAnswer<'a> {
    #[serde(flatten)]
    identity: &'a Identity,
    #[serde(flatten)]
    snapshot: Snapshot,
    measurements: Vec<MeasurementStatus>,
}

fn answer(
    client: UnixStream,
    line: &str,
    identity: &Identity,
    requests: &Requests,
    measurements: &Registry,
) -> io::Result<()> {
    if line != "status\n" {
        let answer = match line.parse() {
            Ok(command) => obey(command, requests, measurements),
            Err(unknown) => Err(crate::measure::UnknownCommand::to_string(&unknown)),
        };
        let answer = answer.unwrap_or_else(|error| serde_json::json!({ "error": error }));
        return writeln!(&client, "{answer}");
    }
    let Some(mut snapshot) = requests.ask(Request::Status) else { return Ok(()) };
    beside::count(&identity.tun, &mut snapshot.beside);
    let answer = StatusAnswer { identity, snapshot, measurements: measurements.status() };
    let text = serde_json::to_string(&answer).map_err(io::Error::other)?;
    writeln!(&client, "{text}")
}

/// Carries out a command. Returns the answer, or what is wrong.
fn obey(
    command: Command,
    requests: &Requests,
    measurements: &Registry,
) -> Result<serde_json::Value, String> {
    let done = serde_json::json!({ "ok": true });
    match command {
        Command::Begin { peer, seconds } => {
            let addresses = measurements.begin(&peer, seconds);
            let addresses = addresses.ok_or_else(|| format!("no peer has the key {peer}"))?;
            Ok(serde_json::json!({ "ok": true, "addresses": addresses }))
        }
        Command::End { peer } => {
            measurements.end(&peer);
            Ok(done)
        }
        Command::Pin { path, flow } => {
            let result = requests.pin(PathId(path), flow);
            result.ok_or("the gateway is too busy")?.map_err(|error| error.to_string())?;
            Ok(done)
        }
        Command::Unpin { flow } => {
            requests.unpin(flow);
            Ok(done)
        }
    }
}
