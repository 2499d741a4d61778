//! What reaches a running node from outside its loop: signals and the control socket.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, SyncSender, sync_channel};
use std::thread;

use anyhow::Context as _;
use mio::Waker;
use plait_proto::steer::NodeStatus;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::config::SteerConfig;
use super::ways::Way;
use crate::daemon::{CLIENT_TIMEOUT, read_request};

/// What the answer of a steering node is known by.
pub(super) const KIND: &str = "steering-node";

/// Something the loop is asked to do.
pub(super) enum Request {
    /// End.
    Stop,
    /// Go on with another configuration.
    Reload(Box<SteerConfig>),
    /// Tell the state.
    Status(SyncSender<Report>),
}

/// The node's answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// [`KIND`].
    pub(crate) kind: String,
    /// Name of the TUN device.
    pub(crate) tun: String,
    /// Seconds since the start.
    pub(crate) uptime_s: u64,
    #[serde(flatten)]
    pub(crate) node: NodeStatus,
    /// How each attachment is reached, in the order of the file.
    pub(crate) ways: Vec<Way>,
    /// Packets that the host told everybody on the device, and the node nobody.
    pub(crate) ignored_packets: u64,
}

impl Report {
    /// Whether an answer is a steering node's.
    pub(crate) fn is_in(text: &str) -> bool {
        #[derive(Deserialize)]
        struct Kind {
            kind: String,
        }
        serde_json::from_str::<Kind>(text).is_ok_and(|answer| answer.kind == KIND)
    }

    /// Whether every attachment carries packets.
    pub(crate) fn all_up(&self) -> bool {
        use plait_proto::steer::AttachmentState::Up;
        let mut attachments = self.node.clients.iter().flat_map(|client| &client.attachments);
        attachments.all(|attachment| attachment.state == Up)
    }
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
}

/// Turns SIGTERM and SIGINT into [`Request::Stop`], and SIGHUP into [`Request::Reload`] when the
/// configuration is sound.
pub(super) fn watch_signals(requests: Requests, config: PathBuf) -> anyhow::Result<()> {
    let mut signals =
        Signals::new([SIGTERM, SIGINT, SIGHUP]).context("cannot watch for signals")?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                if signal != SIGHUP {
                    requests.send(Request::Stop);
                } else if let Some(config) = read_again(&config) {
                    requests.send(Request::Reload(Box::new(config)));
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}

/// `None` when anything is wrong, which is logged.
fn read_again(file: &Path) -> Option<SteerConfig> {
    match SteerConfig::load(file) {
        Ok(config) => Some(config),
        Err(errors) => {
            for error in errors.iter() {
                log::error!("{error} ({})", error.help());
            }
            log::error!("{}: the old configuration stays", file.display());
            None
        }
    }
}

/// Answers a client of the control socket.
pub(super) fn answer(client: UnixStream, requests: &Requests) -> io::Result<()> {
    let line = read_request(&client)?;
    if line != "status\n" {
        let error =
            format!("unknown request {:?}: a steering node knows `status`", line.trim_end());
        return writeln!(&client, "{}", serde_json::json!({ "error": error }));
    }
    let (sender, receiver) = sync_channel(1);
    if !requests.send(Request::Status(sender)) {
        return Ok(());
    }
    let Ok(report) = receiver.recv_timeout(CLIENT_TIMEOUT) else { return Ok(()) };
    let text = serde_json::to_string(&report).map_err(io::Error::other)?;
    writeln!(&client, "{text}")
}
