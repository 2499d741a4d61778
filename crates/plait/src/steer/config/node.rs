//! `[node]`: the node itself.

use std::path::{Path, PathBuf};

use plait_proto::steer::{
    Granularity, NoPolicy, NodeConfig, OtherTraffic, Policy, ProbeConfig, UnknownClient,
};
use plait_proto::time::Duration;
use plait_toml::{Problem, Section};

use crate::config::{Located, device_name, line_of, user_name};

/// The first of the node's routing tables and of the priorities of its rules.
const TABLE_DEFAULT: u32 = 5200;
/// Above the tables with names, and below the rule that leads to the table `main`.
const TABLE_RANGE: (i64, i64) = (256, 32_000);

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
    /// What is to be undone after a crash.
    pub(crate) state_file: PathBuf,
    /// Whom the node becomes once all is set up.
    pub(crate) user: Option<Located<String>>,
    /// Whether the daemon puts files and system calls that it does not need out of its reach.
    pub(crate) sandbox: bool,
    /// Whether the host is made to forward packets while the node runs.
    pub(crate) forward: bool,
    /// Which attachment gets how much.
    pub(crate) policy: Policy,
    /// Whether packets or flows are steered.
    pub(crate) granularity: Granularity,
    /// So many packets of a flow stay on the primary at first.
    pub(crate) first_packets: u32,
    /// What happens to packets that are not TCP.
    pub(crate) other: OtherTraffic,
    /// What happens to packets of no known client.
    pub(crate) unknown: UnknownClient,
    /// Probes; `None` when they are off.
    pub(crate) probe: Option<ProbeConfig>,
    /// So many flows of a client are remembered.
    pub(crate) flows_per_client_max: u32,
    /// A flow without packets for so long is forgotten.
    pub(crate) flow_idle: Duration,
}

/// Reads `[node]`; `folder` is where relative file names start.
pub(super) fn read(mut section: Section<'_>, folder: &Path) -> NodeSection {
    let default = NodeConfig::default();
    let tun = tun_name(&mut section);
    let user = section.parsed("user", user_name);
    let node = NodeSection {
        line: line_of(section.place()),
        mtu: section.integer("mtu", (576, 9000), "bytes"),
        table: section.integer("table", TABLE_RANGE, "").unwrap_or(TABLE_DEFAULT),
        control_socket: control_socket(&mut section, &tun),
        state_file: match section.text("state_file") {
            Some(file) => folder.join(file),
            None => Path::new("/var/lib/plait").join(format!("{tun}.json")),
        },
        user: user.map(|user| Located::option(&section, "user", user)),
        sandbox: section.boolean("sandbox").unwrap_or(true),
        forward: section.boolean("forward").unwrap_or(false),
        policy: section.parsed("policy", policy).unwrap_or_default(),
        granularity: section
            .choice("per", &[("packet", Granularity::Packet), ("flow", Granularity::Flow)])
            .unwrap_or_default(),
        first_packets: section
            .integer("first_packets", (0, 1_000_000), "packets")
            .unwrap_or(default.first_packets),
        other: section
            .choice("other", &[("flow", OtherTraffic::Flow), ("primary", OtherTraffic::Primary)])
            .unwrap_or_default(),
        unknown: section
            .choice(
                "unknown_clients",
                &[("forward", UnknownClient::Forward), ("drop", UnknownClient::Drop)],
            )
            .unwrap_or_default(),
        probe: probe(&mut section),
        flows_per_client_max: section
            .integer("flows_per_client_max", (1, 1_000_000), "flows")
            .unwrap_or(default.flows_per_client_max),
        flow_idle: section
            .integer("flow_idle_s", (1, 86_400), "seconds")
            .map_or(default.flow_idle, Duration::from_secs),
        tun,
    };
    if !section.is_present() {
        section.problem("", Problem::Missing { example: "[node]" });
    }
    section.finish();
    node
}

/// The TUN device's name.
pub(super) fn tun_name(section: &mut Section<'_>) -> String {
    section.parsed("tun", device_name).unwrap_or_else(|| "steer0".into())
}

/// The control socket's path.
pub(super) fn control_socket(section: &mut Section<'_>, tun: &str) -> PathBuf {
    match section.text("control_socket") {
        Some(path) => path.into(),
        None => Path::new("/run/plait").join(format!("{tun}.sock")),
    }
}

fn policy(text: &str) -> Result<Policy, Problem> {
    text.parse().map_err(|error| match error {
        NoPolicy::Unknown(name) => {
            Problem::choice(&name, Policy::ALL.iter().map(|policy| policy.name()))
        }
        NoPolicy::Refused { algorithm, why } => {
            let names: Vec<_> = Policy::ALL.iter().map(|policy| policy.name()).collect();
            Problem::new(
                format!("\"{algorithm}\" is no policy of a steering node: {why}"),
                format!("choose one of: {}", names.join(", ")),
            )
        }
    })
}

/// The probes' options, which make no sense without probes.
fn probe(section: &mut Section<'_>) -> Option<ProbeConfig> {
    const RANGE_MS: (i64, i64) = (10, 60_000);
    let is_on = section.boolean("probe").unwrap_or(true);
    if !is_on {
        let options = ["probe_interval_ms", "probe_idle_interval_ms", "probe_timeout_ms"];
        section.no_effect(&options, "`probe = false`", "a node that probes");
        return None;
    }
    let mut millis = |key, otherwise: Duration| {
        section.integer(key, RANGE_MS, "milliseconds").map_or(otherwise, Duration::from_millis)
    };
    let default = ProbeConfig::default();
    Some(ProbeConfig {
        interval: millis("probe_interval_ms", default.interval),
        idle_interval: millis("probe_idle_interval_ms", default.idle_interval),
        timeout: millis("probe_timeout_ms", default.timeout),
        ..default
    })
}
