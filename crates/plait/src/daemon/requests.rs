//! What reaches a running gateway from outside its loop: signals and the control socket. Each has a
//! thread of its own, so that no slow client ever holds up a packet.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use mio::Waker;
use plait_proto::ingress::PinError;
use plait_proto::seq::PathId;
use plait_proto::stats::EndpointStatus;
use plait_proto::wire::ip::Inner;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::links::LinkStatus;
use super::measure::{MeasurementStatus, Registry};
use super::reload::{self, Reload};
use crate::advice::Advised;
use crate::measure::{Command, Flow};

/// How long a client may take to ask, and to take its answer.
pub(crate) const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest request in bytes.
const REQUEST_BYTES_MAX: u64 = 256;

/// Something the loop is asked to do.
pub(super) enum Request {
    /// End.
    Stop,
    /// Go on with another configuration.
    Reload(Box<Reload>),
    /// Tell the state, the time since the start, and which links there are.
    Status(SyncSender<(EndpointStatus, Duration, Vec<LinkStatus>)>),
    /// Keep a flow on a path.
    Pin(PathId, Inner, SyncSender<Result<(), PinError>>),
    /// Let a flow go the bond's way.
    Unpin(Inner),
}

/// A way to the loop.
#[derive(Clone)]
pub(super) struct Requests {
    sender: Sender<Request>,
    waker: Arc<Waker>,
}

impl Requests {
    pub(super) fn new(sender: Sender<Request>, waker: Waker) -> Self {
        Self { sender, waker: Arc::new(waker) }
    }

    /// Says whether the loop still listens.
    fn send(&self, request: Request) -> bool {
        self.sender.send(request).is_ok() && self.waker.wake().is_ok()
    }

    /// Keeps a flow on a path; `None` when the loop does not answer.
    pub(super) fn pin(&self, path: PathId, flow: Flow) -> Option<Result<(), PinError>> {
        let (sender, receiver) = sync_channel(1);
        let was_sent = self.send(Request::Pin(path, flow.inner(), sender));
        was_sent.then(|| receiver.recv_timeout(CLIENT_TIMEOUT).ok()).flatten()
    }

    /// Lets a flow go the bond's way.
    pub(super) fn unpin(&self, flow: Flow) {
        // A loop that has ended has no pins.
        self.send(Request::Unpin(flow.inner()));
    }
}

/// Turns SIGTERM and SIGINT into [`Request::Stop`], and SIGHUP into [`Request::Reload`] when the
/// configuration is sound. It is read on the thread of the signals: DNS may take its time.
pub(super) fn watch_signals(requests: Requests, config: PathBuf) -> anyhow::Result<()> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).context("cannot watch for signals")?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if signal != SIGHUP {
                    requests.send(Request::Stop);
                } else if let Some(reload) = reload::read(&config) {
                    requests.send(Request::Reload(Box::new(reload)));
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}

/// The control socket; its file goes with it.
pub(crate) struct ControlSocket {
    path: PathBuf,
    listener: UnixListener,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl ControlSocket {
    /// Opens the socket, for its owner only. A socket file that nobody listens on is replaced.
    /// `section` is where its path can be set, such as `[gateway]`.
    pub(crate) fn open(path: &Path, section: &str) -> anyhow::Result<Self> {
        if UnixStream::connect(path).is_ok() {
            let message = format!("{} belongs to another running plait", path.display());
            let help = format!("stop that one, or set another `control_socket` under {section}");
            return Err(Advised::new(message, help).into());
        }
        let unusable = |cause: io::Error| {
            let message = format!("cannot open the control socket {}", path.display());
            let help = format!(
                "run as root, or set `control_socket` under {section} to a path in a folder this \
                 user may write"
            );
            Advised::new(message, help).caused_by(cause)
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(unusable)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(unusable(error).into());
            }
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(unusable)?;
        let socket = Self { path: path.to_owned(), listener };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(unusable)?;
        Ok(socket)
    }

    /// Answers the gateway's clients. What is returned removes the file.
    pub(super) fn serve(
        self,
        tun: String,
        requests: Requests,
        measurements: Registry,
    ) -> anyhow::Result<Self> {
        self.answer_with(move |client| answer(client, &tun, &requests, &measurements))
    }

    /// Answers clients, one after the other, on a thread of its own. What is returned removes the
    /// file.
    pub(crate) fn answer_with(
        self,
        answer: impl Fn(UnixStream) -> io::Result<()> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let listener = self.listener.try_clone().context("cannot share the control socket")?;
        thread::Builder::new()
            .name("control".into())
            .spawn(move || {
                for client in listener.incoming().flatten() {
                    if let Err(error) = answer(client) {
                        log::debug!("a client of the control socket: {error}");
                    }
                }
            })
            .context("cannot start a thread")?;
        Ok(self)
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    tun: &'a str,
    uptime_s: u64,
    #[serde(flatten)]
    endpoint: EndpointStatus,
    links: Vec<LinkStatus>,
    measurements: Vec<MeasurementStatus>,
}

/// Reads what a client asks.
pub(crate) fn read_request(client: &UnixStream) -> io::Result<String> {
    client.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    client.set_write_timeout(Some(CLIENT_TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(io::Read::take(client, REQUEST_BYTES_MAX)).read_line(&mut line)?;
    Ok(line)
}

fn answer(
    client: UnixStream,
    tun: &str,
    requests: &Requests,
    measurements: &Registry,
) -> io::Result<()> {
    let line = read_request(&client)?;
    if line != "status\n" {
        let answer = match line.parse() {
            Ok(command) => obey(command, requests, measurements),
            Err(unknown) => Err(crate::measure::UnknownCommand::to_string(&unknown)),
        };
        let answer = answer.unwrap_or_else(|error| serde_json::json!({ "error": error }));
        return writeln!(&client, "{answer}");
    }
    let (sender, receiver) = sync_channel(1);
    if !requests.send(Request::Status(sender)) {
        return Ok(());
    }
    let Ok((endpoint, uptime, links)) = receiver.recv_timeout(CLIENT_TIMEOUT) else {
        return Ok(());
    };
    let measurements = measurements.status();
    let answer = Answer { tun, uptime_s: uptime.as_secs(), endpoint, links, measurements };
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
