//! What a steering node tells about itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dida::DidaStats;

/// Why a steering node dropped a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SteerDrop {
    /// Neither IPv4 nor IPv6, or a length field that does not fit.
    Malformed,
    /// Of no known client, and the rule says drop.
    UnknownClient,
}

impl SteerDrop {
    /// Every reason, in the order of the enum.
    pub const ALL: [Self; 2] = [Self::Malformed, Self::UnknownClient];

    /// The reason's name in status and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownClient => "unknown-client",
        }
    }
}

/// State of an attachment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttachmentState {
    /// No probe has been answered yet: nothing is steered over it.
    Unproven,
    /// It carries packets.
    Up,
    /// Its probes are not answered: nothing is steered over it.
    Silent,
    /// The owner has taken it out of use.
    Down,
}

impl AttachmentState {
    /// The state's name in status and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unproven => "unproven",
            Self::Up => "up",
            Self::Silent => "silent",
            Self::Down => "down",
        }
    }
}

/// The probes of an attachment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ProbeCounters {
    /// Probes sent.
    pub sent: u64,
    /// Answered in time.
    pub answered: u64,
    /// Not answered in time.
    pub unanswered: u64,
    /// Answers to no probe under way: late, repeated or forged.
    pub unexpected: u64,
}

/// One attachment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AttachmentStatus {
    /// Its name.
    pub name: String,
    /// Addresses to which destinations are rewritten; empty: packets go as they are.
    pub addresses: Vec<String>,
    /// State.
    pub state: AttachmentState,
    /// Why it is in this state, in words.
    pub reason: String,
    /// How often it was taken out of use.
    pub outages: u64,
    /// Packets sent towards the client over it.
    pub packets: u64,
    /// Bytes sent towards the client over it, at the IP layer.
    pub bytes: u64,
    /// Its part of all packets sent towards the client, 0 to 1.
    pub share: f64,
    /// The policy's weight, where it has one.
    pub weight: Option<u32>,
    /// Price class.
    pub price: u8,
    /// Smoothed round-trip time of its probes in microseconds.
    pub rtt_us: Option<u64>,
    /// Mean deviation of the round-trip time in microseconds.
    pub rtt_variation_us: Option<u64>,
    /// Smallest round-trip time of the last ten seconds in microseconds.
    pub rtt_min_us: Option<u64>,
    /// Its probes.
    pub probes: ProbeCounters,
}

/// What happened to the packets of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ClientCounters {
    /// Packets towards the client over the attachment that the policy picked.
    pub steered: u64,
    /// TCP segments with SYN, FIN or RST, on the primary.
    pub control: u64,
    /// First packets of a flow, on the primary.
    pub first: u64,
    /// Fragments, on the primary.
    pub fragments: u64,
    /// Packets that cannot be rewritten, on the primary.
    pub opaque: u64,
    /// Packets that are not TCP, on the primary by rule.
    pub other: u64,
    /// Packets on the primary because no attachment was in use.
    pub last_resort: u64,
    /// Packets sent to the address of an attachment, which went there untouched.
    pub direct: u64,
    /// Packets from the client's primary address.
    pub upstream_packets: u64,
    /// Bytes from the client's primary address.
    pub upstream_bytes: u64,
    /// Packets from the addresses of its attachments, forwarded untouched.
    pub upstream_direct: u64,
    /// Packets from the client that DIDA keeps or has discarded.
    pub held: u64,
}

/// One client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its name.
    pub name: String,
    /// Its primary addresses.
    pub addresses: Vec<String>,
    /// The attachments, the primary first.
    pub attachments: Vec<AttachmentStatus>,
    /// Flows remembered.
    pub flows: u64,
    /// Flows forgotten because there were too many.
    pub flows_evicted: u64,
    /// Flows forgotten because nothing passed for long.
    pub flows_expired: u64,
    /// How much longer the slowest attachment in use takes than the quickest, with jitter, in
    /// microseconds; `None` while fewer than two are in use and measured.
    pub delay_difference_us: Option<u64>,
    /// What happened to its packets.
    pub counters: ClientCounters,
}

/// A steering node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The policy's name.
    pub policy: String,
    /// `packet` or `flow`.
    pub granularity: String,
    /// Clients, in the order of the configuration.
    pub clients: Vec<ClientStatus>,
    /// Packets to or from no known client, forwarded as they are.
    pub unknown: u64,
    /// Drops by reason; reasons that never occurred are absent.
    pub drops: BTreeMap<String, u64>,
    /// DIDA's counters; `None` without DIDA.
    pub dida: Option<DidaStats>,
}
