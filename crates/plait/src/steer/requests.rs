//! Requests to a running node from outside its loop, by signals and over the control socket.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use plait_proto::steer::NodeStatus;
use serde::{Deserialize, Serialize};

use super::config::SteerConfig;
use super::ways::Way;
use crate::control::{self, Ends, read_request};
use crate::daemon::log_errors;

/// Marks the answer of a steering node.
pub(super) const KIND: &str = "steering-node";

/// Something the loop is asked to do.
pub(super) enum Request {
    /// End.
    Stop,
    /// Go on with another configuration.
    Reload(Box<SteerConfig>),
    /// Report the state.
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
    /// Multicast packets from the host on the device, which the node ignored.
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

/// Sends requests to the node's loop.
pub(super) type Requests = control::Requests<Request>;

/// On a signal stops the node, or makes it apply another configuration if that is valid.
pub(super) fn watch_signals(requests: Requests, config: PathBuf) -> anyhow::Result<()> {
    let stop = || Request::Stop;
    control::watch_signals(requests, Ends { stop, leave: stop }, move || read_again(&config))
}

/// # Errors
/// Everything that is wrong, which was logged.
fn read_again(file: &Path) -> Result<Request, String> {
    let config = SteerConfig::load(file).map_err(|errors| log_errors(file, &errors))?;
    Ok(Request::Reload(Box::new(config)))
}

/// Answers a client of the control socket.
pub(super) fn answer(client: UnixStream, requests: &Requests, config: &Path) -> io::Result<()> {
    let line = read_request(&client)?;
    if line == "reload\n" {
        let done = control::reload_for_client(requests, || read_again(config));
        return writeln!(&client, "{done}");
    }
    if line != "status\n" {
        let error =
            format!("unknown request {:?}: a steering node knows `status`", line.trim_end());
        return writeln!(&client, "{}", serde_json::json!({ "error": error }));
    }
    let Some(report) = requests.ask(Request::Status) else { return Ok(()) };
    let text = serde_json::to_string(&report).map_err(io::Error::other)?;
    writeln!(&client, "{text}")
}
