//! `[node]`: the node itself.

use std::path::{Path, PathBuf};

use plait_proto::steer::{Granularity, OtherTraffic, Policy, ProbeConfig, UnknownClient};
use plait_proto::time::Duration;
use plait_toml::node::{self as file, NODE, SOCKET};
use plait_toml::{Problem, Section, common, option};

use crate::config::{Located, line_of};

/// `[node]`.
#[derive(Clone, Debug)]
pub(crate) struct NodeSection {
    /// The section's line.
    pub(crate) line: usize,
    /// Name of the TUN device.
    pub(crate) tun: String,
    /// The TUN device's MTU in bytes, when the file says so.
    pub(crate) mtu: Option<u16>,
    /// First of three routing tables and of ten priorities of rules.
    pub(crate) table: u32,
    /// Unix socket that answers `plait status`.
    pub(crate) control_socket: PathBuf,
    /// File with the changes to undo after a crash.
    pub(crate) state_file: PathBuf,
    /// The user that the node becomes once all is set up.
    pub(crate) user: Option<Located<String>>,
    /// Whether the daemon enters a sandbox without the files and system calls that it does not
    /// need.
    pub(crate) sandbox: bool,
    /// Whether the host is made to forward packets while the node runs.
    pub(crate) forward: bool,
    /// How packets are shared out over attachments.
    pub(crate) policy: Policy,
    /// Whether packets or flows are steered.
    pub(crate) granularity: Granularity,
    /// How many packets of a flow stay on the primary at first.
    pub(crate) first_packets: u32,
    /// What happens to packets that are not TCP.
    pub(crate) other: OtherTraffic,
    /// What happens to packets that belong to no known client.
    pub(crate) unknown: UnknownClient,
    /// Probes; `None` when they are off.
    pub(crate) probe: Option<ProbeConfig>,
    /// How many flows of a client are remembered.
    pub(crate) flows_per_client_max: u32,
    /// A flow that has no packets for this long is forgotten.
    pub(crate) flow_idle: Duration,
}

/// Reads `[node]`; `folder` is where relative file names start.
pub(super) fn read(mut section: Section<'_>, folder: &Path) -> NodeSection {
    let mut said = file::Node::default();
    option::read(NODE, &mut section, &mut said);
    if !section.is_present() {
        section.problem("", Problem::Missing { example: "[node]" });
    }
    let node = NodeSection {
        line: line_of(section.place()),
        mtu: said.mtu,
        table: said.table,
        control_socket: folder.join(control_socket(&said)),
        state_file: folder.join(common::state_file_of(said.state_file.as_deref(), &said.tun)),
        user: Located::maybe(&section, "user", said.user),
        tun: said.tun,
        sandbox: said.sandbox,
        forward: said.forward,
        policy: said.policy,
        granularity: said.granularity,
        first_packets: said.first_packets,
        other: said.other,
        unknown: said.unknown,
        probe: said.probes.then_some(said.probe),
        flows_per_client_max: said.flows_per_client_max,
        flow_idle: said.flow_idle,
    };
    section.finish();
    node
}

fn control_socket(said: &file::Node) -> PathBuf {
    common::control_socket_of(said.control_socket.as_deref(), &said.tun).into()
}

/// The control socket's path, from a `[node]` whose other options may be wrong; `folder` is where
/// relative file names start.
pub(super) fn read_control_socket(mut section: Section<'_>, folder: &Path) -> PathBuf {
    let mut said = file::Node::default();
    option::read(SOCKET, &mut section, &mut said);
    folder.join(control_socket(&said))
}
