//! What a running gateway is asked from outside its loop, by signals and over the control socket.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use plait_proto::ingress::PinError;
use plait_proto::seq::PathId;
use plait_proto::stats::EndpointStatus;
use plait_proto::wire::ip::Inner;
use serde::Serialize;

use super::links::LinkStatus;
use super::measure::{MeasurementStatus, Registry};
use super::ports::{SocketStatus, TunStatus};
use super::reach::{Answer, ContactStatus};
use super::reload;
use crate::config::Config;
use crate::control::{self, ControlSocket, read_request};
use crate::measure::{Command, Flow};

/// Something the loop is asked to do.
pub(super) enum Request {
    /// End.
    Stop,
    /// Go on with another configuration.
    Reload(Box<Config>),
    /// A name of an endpoint was asked for.
    Resolved(Answer),
    /// Tell the state.
    Status(SyncSender<Snapshot>),
    /// Keep a flow on a path.
    Pin(PathId, Inner, SyncSender<Result<(), PinError>>),
    /// Let a flow go the bond's way.
    Unpin(Inner),
}

/// What the loop knows of the gateway's state.
#[derive(Debug, Serialize)]
pub(super) struct Snapshot {
    /// Seconds since the start.
    pub(super) uptime_s: u64,
    #[serde(flatten)]
    pub(super) endpoint: EndpointStatus,
    /// Peers that this gateway looks for.
    pub(super) contacts: Vec<ContactStatus>,
    /// The configured paths.
    pub(super) links: Vec<LinkStatus>,
    /// The socket for peers that call.
    pub(super) listening: Option<SocketStatus>,
    /// The TUN device.
    pub(super) device: TunStatus,
}

/// A way to the gateway's loop.
pub(super) type Requests = control::Requests<Request>;

impl Requests {
    /// Keeps a flow on a path; `None` when the loop does not answer.
    pub(super) fn pin(&self, path: PathId, flow: Flow) -> Option<Result<(), PinError>> {
        self.ask(|answer| Request::Pin(path, flow.inner(), answer))
    }

    /// Lets a flow go the bond's way.
    pub(super) fn unpin(&self, flow: Flow) {
        // A loop that has ended has no pins.
        self.send(Request::Unpin(flow.inner()));
    }
}

/// Stops the gateway, or has it go on with another configuration when that is sound. DNS may take
/// its time.
pub(super) fn watch_signals(requests: Requests, config: PathBuf) -> anyhow::Result<()> {
    control::watch_signals(requests, || Request::Stop, move || read_again(&config))
}

/// # Errors
/// Everything that is wrong, which was logged.
fn read_again(config: &Path) -> Result<Request, String> {
    Ok(Request::Reload(Box::new(reload::read(config)?)))
}

/// Answers the gateway's clients. What is returned removes the socket's file.
pub(super) fn serve(
    socket: ControlSocket,
    identity: Identity,
    config: PathBuf,
    requests: Requests,
    measurements: Registry,
) -> anyhow::Result<ControlSocket> {
    socket.answer_with(move |client| {
        let line = read_request(&client)?;
        if line == "reload\n" {
            let done = control::reload_for_client(&requests, || read_again(&config));
            return writeln!(&client, "{done}");
        }
        answer(client, &line, &identity, &requests, &measurements)
    })
}

/// What a running gateway says of itself and never changes.
#[derive(Serialize)]
pub(super) struct Identity {
    pub(super) tun: String,
    /// The parts of the sandbox that hold.
    pub(super) sandbox: Vec<&'static str>,
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
    let Some(snapshot) = requests.ask(Request::Status) else { return Ok(()) };
    let answer = StatusAnswer { identity, snapshot, measurements: measurements.status() };
    let text = serde_json::to_string(&answer).map_err(io::Error::other)?;
    writeln!(&client, "{text}")
}

/// Carries a command out. Gives the answer, or what is wrong.
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
