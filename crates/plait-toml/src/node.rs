//! Reads and writes a steering node's file: its sections `[node]`, `[[client]]` and
//! `[[client.attachment]]`. `[dida]` is in [`crate::dida`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use plait_proto::dida::DidaConfig;
use plait_proto::steer::{
    Addresses, Granularity, NodeConfig, OtherTraffic, Policy, ProbeConfig, UnknownClient,
};

use crate::common;
use crate::form::{Flag, List, Maybe, Parsed, Time, Whole, Words};
use crate::option::{self, Field, Only, Options};
use crate::problem::Problem;
use crate::section::Section;
use crate::value::names;

/// A whole file, to be written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeFile {
    /// `[node]`.
    pub node: Node,
    /// Each `[[client]]`.
    pub clients: Vec<Client>,
    /// `[dida]`.
    pub dida: Option<DidaConfig>,
}

impl NodeFile {
    /// The file's text.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        option::write(&mut out, "[node]", NODE, &self.node);
        for client in &self.clients {
            option::write(&mut out, "[[client]]", CLIENT, client);
            for attachment in &client.attachments {
                let header = "[[client.attachment]]";
                option::write(&mut out, header, ATTACHMENT, attachment);
            }
        }
        if let Some(dida) = &self.dida {
            option::write(&mut out, "[dida]", crate::dida::DIDA, dida);
        }
        out
    }
}

/// `[node]`: the node itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// How packets are shared out over attachments.
    pub policy: Policy,
    /// Whether packets or flows are steered.
    pub granularity: Granularity,
    /// How many packets of a flow stay on the primary at first.
    pub first_packets: u32,
    /// What happens to packets that are not TCP.
    pub other: OtherTraffic,
    /// What happens to packets that belong to no known client.
    pub unknown: UnknownClient,
    /// Whether attachments are probed.
    pub probes: bool,
    /// How attachments are probed.
    pub probe: ProbeConfig,
    /// How many flows of a client are remembered.
    pub flows_per_client_max: u32,
    /// A flow that has no packets for this long is forgotten.
    pub flow_idle: Duration,
    /// Name of the TUN device.
    pub tun: String,
    /// First of three routing tables and of ten priorities of rules.
    pub table: u32,
    /// The TUN device's MTU in bytes.
    pub mtu: Option<u16>,
    /// Whether the host is made to forward packets while the node runs.
    pub forward: bool,
    /// The user that the node becomes once all is set up.
    pub user: Option<String>,
    /// Whether the daemon enters a sandbox without access to what it does not need.
    pub sandbox: bool,
    /// Unix socket that answers `plait status`.
    pub control_socket: Option<String>,
    /// File with the changes to undo after a crash.
    pub state_file: Option<String>,
}

impl Default for Node {
    fn default() -> Self {
        let config = NodeConfig::default();
        Self {
            policy: config.policy,
            granularity: config.granularity,
            first_packets: config.first_packets,
            other: config.other,
            unknown: config.unknown,
            probes: config.probe.is_some(),
            probe: config.probe.unwrap_or_default(),
            flows_per_client_max: config.flows_per_client_max,
            flow_idle: config.flow_idle,
            tun: "steer0".into(),
            table: 5200,
            mtu: None,
            forward: false,
            user: None,
            sandbox: true,
            control_socket: None,
            state_file: None,
        }
    }
}

const TUN: Field<Node, Parsed<String>> = common::tun(|node| &mut node.tun);
const CONTROL_SOCKET: Field<Node, Maybe<Parsed<String>>> =
    common::control_socket(|node| &mut node.control_socket);

/// The options that determine the control socket.
pub const SOCKET: Options<Node> = &[&TUN, &CONTROL_SOCKET];

/// The options of `[node]`.
pub const NODE: Options<Node> = &[
    &common::policy(|node: &mut Node| &mut node.policy),
    &common::per(|node: &mut Node| &mut node.granularity),
    &common::first_packets(|node: &mut Node| &mut node.first_packets),
    &Field::new(
        "other",
        "what is not TCP: each `flow` over one attachment, or everything on the `primary`",
        Words(&[("flow", OtherTraffic::Flow), ("primary", OtherTraffic::Primary)]),
        |node: &mut Node| &mut node.other,
    ),
    &Field::new(
        "unknown_clients",
        "what becomes of packets of no configured client",
        Words(&[("forward", UnknownClient::Forward), ("drop", UnknownClient::Drop)]),
        |node: &mut Node| &mut node.unknown,
    ),
    &Field::new(
        "probe",
        "probe the attachments; without probes those with an interface count as up, and the \
         policies that need round-trip times are refused",
        Flag,
        |node: &mut Node| &mut node.probes,
    ),
    &Field::new(
        "probe_interval_ms",
        "time between two probes of an attachment while its client is sent packets",
        PROBE_TIME,
        |node: &mut Node| &mut node.probe.interval,
    )
    .only(PROBES),
    &Field::new(
        "probe_idle_interval_ms",
        "the same while it is not",
        PROBE_TIME,
        |node: &mut Node| &mut node.probe.idle_interval,
    )
    .only(PROBES),
    &Field::new(
        "probe_timeout_ms",
        "a probe is unanswered after this",
        PROBE_TIME,
        |node: &mut Node| &mut node.probe.timeout,
    )
    .only(PROBES),
    &Field::new(
        "flows_per_client_max",
        "flows of a client that are remembered; the one idle longest goes first",
        Whole::new(1, 1_000_000, "flows"),
        |node: &mut Node| &mut node.flows_per_client_max,
    ),
    &Field::new(
        "flow_idle_s",
        "a flow without packets for so long is forgotten",
        Time::seconds(1, 86_400),
        |node: &mut Node| &mut node.flow_idle,
    ),
    &TUN,
    // Above the named tables, and below the rule that leads to the table `main`.
    &Field::new(
        "table",
        "first of three routing tables and of ten priorities of rules",
        Whole::new(256, 32_000, ""),
        |node: &mut Node| &mut node.table,
    ),
    &Field::new(
        "mtu",
        "MTU of the TUN device",
        Maybe(Whole::new(576, 9000, "bytes")),
        |node: &mut Node| &mut node.mtu,
    )
    .absent("the attachments' smallest"),
    &common::forward(|node: &mut Node| &mut node.forward),
    &common::user(|node: &mut Node| &mut node.user),
    &common::sandbox(|node: &mut Node| &mut node.sandbox),
    &CONTROL_SOCKET,
    &common::state_file("what is to be undone after a crash", |node: &mut Node| {
        &mut node.state_file
    }),
];

const PROBE_TIME: Time = Time::millis(10, 60_000);
const PROBES: Only<Node> = Only {
    decided_by: "probe",
    against: |node| (!node.probes).then(|| "`probe = false`".to_owned()),
    belongs_to: "a node that probes",
};

/// `[[client]]`: a host without plait.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Client {
    /// Name for status and logs.
    pub name: String,
    /// The primary addresses: those known to the outside.
    pub address: Addresses,
    /// The attachments; the first is the primary.
    pub attachments: Vec<Attachment>,
}

/// The options of `[[client]]`.
pub const CLIENT: Options<Client> = &[
    &Field::new("name", NAME, LABEL, |client: &mut Client| &mut client.name)
        .required("name = \"phone\""),
    &Field::new("address", "the primary address", Maybe(V4), |client: &mut Client| {
        &mut client.address.v4
    })
    .absent("this or `address6`"),
    &Field::new("address6", "the primary address of IPv6", Maybe(V6), |client: &mut Client| {
        &mut client.address.v6
    })
    .absent("this or `address`"),
];

/// `[[client.attachment]]`: a way to a client.
#[derive(Clone, PartialEq, Debug)]
pub struct Attachment {
    /// Name for status and logs.
    pub name: String,
    /// The client's addresses on it; none on the primary.
    pub address: Addresses,
    /// The node's interface through which it is reached.
    pub interface: Option<String>,
    /// The next hops over which it is reached.
    pub gateway: Vec<IpAddr>,
    /// Static weight for the policy `fixed`.
    pub weight: u16,
    /// Price class; cheapest first.
    pub price: u8,
}

impl Default for Attachment {
    fn default() -> Self {
        let (name, address) = (String::new(), Addresses::NONE);
        Self { name, address, interface: None, gateway: Vec::new(), weight: 1, price: 0 }
    }
}

/// The options of `[[client.attachment]]`.
pub const ATTACHMENT: Options<Attachment> = &[
    &Field::new("name", NAME, LABEL, |attachment: &mut Attachment| &mut attachment.name)
        .required("name = \"wifi\""),
    &Field::new(
        "address",
        "the client's address on it; an attachment with one family's address alone carries that \
         family only",
        Maybe(V4),
        |attachment: &mut Attachment| &mut attachment.address.v4,
    )
    .absent("this or `address6`, but not on the primary"),
    &Field::new(
        "address6",
        "the client's address of IPv6 on it",
        Maybe(V6),
        |attachment: &mut Attachment| &mut attachment.address.v6,
    )
    .absent("this or `address`, but not on the primary"),
    &Field::new(
        "interface",
        "the node's interface that leads there",
        Maybe(Parsed { told: "name", read: names::interface }),
        |attachment: &mut Attachment| &mut attachment.interface,
    )
    .absent("by `gateway`, or the host's routes"),
    &Field::new(
        "gateway",
        "the next hop, or one of each family",
        List { told: "IP address or list", read: next_hop },
        |attachment: &mut Attachment| &mut attachment.gateway,
    ),
    &common::weight(|attachment: &mut Attachment| &mut attachment.weight),
    &common::price(|attachment: &mut Attachment| &mut attachment.price),
];

const NAME: &str = "name in status and logs";
const LABEL: Parsed<String> = Parsed { told: names::LABEL_RANGE, read: names::label };
const V4: Parsed<Ipv4Addr> = Parsed { told: "IPv4 address", read: v4 };
const V6: Parsed<Ipv6Addr> = Parsed { told: "IPv6 address", read: v6 };

fn v4(text: &str) -> Result<Ipv4Addr, Problem> {
    text.parse().map_err(|_| {
        let is_v6 = text.parse::<Ipv6Addr>().is_ok();
        let help = if is_v6 { "write it as `address6`" } else { "write it as in \"10.1.0.1\"" };
        Problem::new(format!("\"{text}\" is not an IPv4 address"), help)
    })
}

fn v6(text: &str) -> Result<Ipv6Addr, Problem> {
    text.parse().map_err(|_| {
        let help = "write it as in \"2001:db8::1\"";
        Problem::new(format!("\"{text}\" is not an IPv6 address"), help)
    })
}

fn next_hop(text: &str) -> Result<IpAddr, Problem> {
    text.parse().map_err(|_| {
        let help = "write the next hop as in \"10.4.0.2\"";
        Problem::new(format!("\"{text}\" is not an IP address"), help)
    })
}

/// Reads a `[[client]]` and its attachments, each of these with its section.
pub fn read_client<'a>(section: &mut Section<'a>) -> (Client, Vec<(Attachment, Section<'a>)>) {
    let mut client = Client::default();
    option::read(CLIENT, section, &mut client);
    let attachment = |mut section: Section<'a>| {
        let mut attachment = Attachment::default();
        option::read(ATTACHMENT, &mut section, &mut attachment);
        check_gateways(&mut section, &attachment);
        (attachment, section)
    };
    let attachments = section.many("attachment").into_iter().map(attachment).collect();
    (client, attachments)
}

/// One next hop of each family at most.
fn check_gateways(section: &mut Section<'_>, attachment: &Attachment) {
    let places = section.texts("gateway");
    for (at, (gateway, (_, place))) in attachment.gateway.iter().zip(&places).enumerate() {
        let is_alike = |other: &IpAddr| other.is_ipv4() == gateway.is_ipv4();
        if attachment.gateway[..at].iter().any(is_alike) {
            let help = "keep one IPv4 and one IPv6 address at most";
            section.problem_at(place, "gateway", Problem::new("a second one of its family", help));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, NODE, Node::default());
            round_trip(seed, CLIENT, Client::default());
            round_trip(seed, ATTACHMENT, Attachment::default());
        }
    }
}
