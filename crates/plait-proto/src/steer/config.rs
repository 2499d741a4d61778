//! What the owner of a [`Node`](super::Node) decides, and what of it cannot be.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use std::collections::BTreeSet;

use super::Policy;
use crate::dida::DidaConfig;
use crate::time::Duration;

/// An address of each family, or of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Addresses {
    /// IPv4.
    pub v4: Option<Ipv4Addr>,
    /// IPv6.
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// No address.
    pub const NONE: Self = Self { v4: None, v6: None };

    /// Those that are there, IPv4 first.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + use<> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.v4.is_none() && self.v6.is_none()
    }

    /// The address of the same family as `other`.
    pub fn like(&self, other: IpAddr) -> Option<IpAddr> {
        match other {
            IpAddr::V4(_) => self.v4.map(IpAddr::V4),
            IpAddr::V6(_) => self.v6.map(IpAddr::V6),
        }
    }
}

impl From<IpAddr> for Addresses {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self { v4: Some(v4), v6: None },
            IpAddr::V6(v6) => Self { v4: None, v6: Some(v6) },
        }
    }
}

/// One way to a client: an access network, as its owner describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachmentConfig {
    /// A name for status and logs, unique within the client.
    pub name: String,
    /// The client's addresses on it, to which the destination of a packet is rewritten. None at
    /// all: packets go as they are, and the owner leads them over the attachment by its id. An
    /// address of one family only: the attachment carries only that family.
    pub address: Addresses,
    /// Static weight for the policy `fixed`, and for `capacity` while nothing is known.
    pub weight: u16,
    /// Price class for the policy `cheapest-first`; cheapest first.
    pub price: u8,
}

impl AttachmentConfig {
    /// An attachment that carries packets as they are: the primary.
    pub fn primary(name: impl Into<String>) -> Self {
        Self { name: name.into(), address: Addresses::NONE, weight: 1, price: 0 }
    }

    /// An attachment on which the client has this address.
    pub fn at(name: impl Into<String>, address: IpAddr) -> Self {
        Self { address: address.into(), ..Self::primary(name) }
    }

    /// The same with another weight.
    #[must_use]
    pub fn with_weight(self, weight: u16) -> Self {
        Self { weight, ..self }
    }
}

/// A client: a host without plait behind several attachments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientConfig {
    /// A name for status and logs, unique within the node.
    pub name: String,
    /// The primary addresses: those the world sends to.
    pub address: Addresses,
    /// The attachments. The first is the primary: it carries packets as they are, the uplink, and
    /// everything while no other can.
    pub attachments: Vec<AttachmentConfig>,
}

/// What is steered as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Granularity {
    /// Each packet of a TCP flow by itself, as in 000.
    #[default]
    Packet,
    /// All packets of a flow.
    Flow,
}

impl Granularity {
    /// The name in configuration and status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Flow => "flow",
        }
    }
}

/// What happens to packets that are not TCP. Their receivers have no use for packets out of order,
/// so they are not steered one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OtherTraffic {
    /// A flow goes over one attachment, which the policy picks. Fragments and what cannot be
    /// rewritten stay on the primary.
    #[default]
    Flow,
    /// Everything stays on the primary.
    Primary,
}

/// What happens to packets of no known client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UnknownClient {
    /// They go on as they are.
    #[default]
    Forward,
    /// They are dropped.
    Drop,
}

/// Probes: an ICMP echo over each attachment, which tells its round-trip time and whether the
/// client is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProbeConfig {
    /// Time between two probes of an attachment while the client is sent packets.
    pub interval: Duration,
    /// The same while it is not.
    pub idle_interval: Duration,
    /// A probe without an answer for so long is unanswered.
    pub timeout: Duration,
    /// So many unanswered probes in a row take an attachment out of use.
    pub unanswered_max: u32,
    /// So many answered probes in a row bring it back.
    pub answered_min: u32,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(50),
            idle_interval: Duration::from_secs(5),
            timeout: Duration::from_secs(1),
            unanswered_max: 3,
            answered_min: 2,
        }
    }
}

/// Everything a node is told at its start.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeConfig {
    /// The clients.
    pub clients: Vec<ClientConfig>,
    /// Which attachment gets how much.
    pub policy: Policy,
    /// Whether packets or flows are steered.
    pub granularity: Granularity,
    /// So many packets of a flow stay on the primary at first. The default is the initial window
    /// of TCP (RFC 6928); the code of 000's authors has 100.
    pub first_packets: u32,
    /// What happens to packets that are not TCP.
    pub other: OtherTraffic,
    /// What happens to packets of no known client.
    pub unknown: UnknownClient,
    /// Probes; `None`: every attachment counts as in use until the owner says otherwise, and its
    /// round-trip time is unknown.
    pub probe: Option<ProbeConfig>,
    /// So many flows of a client are remembered; the one idle longest goes first.
    pub flows_per_client_max: u32,
    /// A flow without packets for so long is forgotten.
    pub flow_idle: Duration,
    /// Holding of duplicate ACKs; `None`: packets from clients pass as they are.
    pub dida: Option<DidaConfig>,
}

impl Default for NodeConfig {
    /// A node without clients.
    fn default() -> Self {
        Self {
            clients: Vec::new(),
            policy: Policy::default(),
            granularity: Granularity::default(),
            first_packets: 10,
            other: OtherTraffic::default(),
            unknown: UnknownClient::default(),
            probe: Some(ProbeConfig::default()),
            flows_per_client_max: 4096,
            flow_idle: Duration::from_secs(300),
            dida: None,
        }
    }
}

/// Why a [`NodeConfig`] cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidNode {
    /// There is nobody to steer for.
    #[error("a steering node needs at least one client")]
    NoClients,
    /// Ids count clients with 16 bits.
    #[error("{0} clients are too many: a steering node has at most 65535")]
    TooManyClients(usize),
    /// Two clients share a name.
    #[error("two clients are called `{0}`: names must differ")]
    RepeatedClient(String),
    /// A client without an address cannot be sent anything.
    #[error("client `{0}`: no primary address; give it an IPv4 or an IPv6 address, or both")]
    NoAddress(String),
    /// One address leads to two places.
    #[error("client `{client}`: the address {address} is used twice; each must be used once")]
    RepeatedAddress {
        /// Where it was found the second time.
        client: String,
        /// The address.
        address: IpAddr,
    },
    /// The unspecified address, a multicast or a broadcast one.
    #[error("client `{client}`: {address} is not the address of one host")]
    NotAHost {
        /// The client.
        client: String,
        /// The address.
        address: IpAddr,
    },
    /// The primary is missing.
    #[error("client `{0}`: no attachment; the first one is the primary")]
    NoAttachments(String),
    /// Ids count attachments with 8 bits.
    #[error("client `{client}`: {count} attachments are too many; use at most 16")]
    TooManyAttachments {
        /// The client.
        client: String,
        /// How many there are.
        count: usize,
    },
    /// Two attachments of a client share a name.
    #[error("client `{client}`: two attachments are called `{attachment}`: names must differ")]
    RepeatedAttachment {
        /// The client.
        client: String,
        /// The name.
        attachment: String,
    },
    /// The primary carries packets as they are.
    #[error(
        "client `{client}`: attachment `{attachment}` is the first, so the primary: it takes \
         packets as they are and must not have an address of its own"
    )]
    PrimaryRewritten {
        /// The client.
        client: String,
        /// The attachment.
        attachment: String,
    },
    /// An attachment has only addresses to which no packet of the client can be rewritten.
    #[error(
        "client `{client}`: attachment `{attachment}` has an {family} address, but the client has \
         no primary address of that family"
    )]
    NoSuchFamily {
        /// The client.
        client: String,
        /// The attachment.
        attachment: String,
        /// `IPv4` or `IPv6`.
        family: &'static str,
    },
    /// Round-trip times come from probes.
    #[error("the policy `{0}` needs round-trip times, so `probe` must not be off")]
    PolicyNeedsProbes(Policy),
    /// A number with which nothing would work, or state would grow without need.
    #[error("`{option}` is {value}; use {range}")]
    OutOfRange {
        /// The option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        range: &'static str,
    },
}

/// Attachments of one client, at most.
pub(super) const ATTACHMENTS_MAX: usize = 16;

impl NodeConfig {
    /// Whether a node can work so; to be called where a configuration is read.
    ///
    /// # Errors
    ///
    /// The first thing that cannot be.
    pub fn check(&self) -> Result<(), InvalidNode> {
        self.check_numbers()?;
        if self.clients.is_empty() {
            return Err(InvalidNode::NoClients);
        }
        if self.clients.len() > usize::from(u16::MAX) {
            return Err(InvalidNode::TooManyClients(self.clients.len()));
        }
        if self.probe.is_none() && self.policy.needs_round_trips() {
            return Err(InvalidNode::PolicyNeedsProbes(self.policy));
        }
        let mut names = BTreeSet::new();
        let mut addresses = BTreeSet::new();
        for client in &self.clients {
            if !names.insert(&client.name) {
                return Err(InvalidNode::RepeatedClient(client.name.clone()));
            }
            client.check()?;
            let attachments = client.attachments.iter().flat_map(|one| one.address.iter());
            for address in client.address.iter().chain(attachments) {
                if !addresses.insert(address) {
                    let client = client.name.clone();
                    return Err(InvalidNode::RepeatedAddress { client, address });
                }
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), InvalidNode> {
        let ms = Duration::from_millis;
        let time = |option, value: Duration, bounds: [Duration; 2], range| {
            if bounds[0] <= value && value <= bounds[1] {
                return Ok(());
            }
            Err(InvalidNode::OutOfRange { option, value: format!("{value:?}"), range })
        };
        let positive = |option, value: u32| match value {
            0 => Err(InvalidNode::OutOfRange { option, value: "0".into(), range: "at least 1" }),
            _ => Ok(()),
        };
        positive("flows_per_client_max", self.flows_per_client_max)?;
        let day = [ms(1000), ms(86_400_000)];
        time("flow_idle", self.flow_idle, day, "1 s to a day")?;
        let Some(probe) = &self.probe else { return Ok(()) };
        let hour = [ms(10), ms(3_600_000)];
        time("probe interval", probe.interval, hour, "10 ms to an hour")?;
        time("idle probe interval", probe.idle_interval, hour, "10 ms to an hour")?;
        time("probe timeout", probe.timeout, [ms(10), ms(10_000)], "10 ms to 10 s")?;
        positive("unanswered_max", probe.unanswered_max)?;
        positive("answered_min", probe.answered_min)
    }
}

impl ClientConfig {
    fn check(&self) -> Result<(), InvalidNode> {
        let client = || self.name.clone();
        if self.address.is_empty() {
            return Err(InvalidNode::NoAddress(client()));
        }
        let Some(primary) = self.attachments.first() else {
            return Err(InvalidNode::NoAttachments(client()));
        };
        if self.attachments.len() > ATTACHMENTS_MAX {
            let count = self.attachments.len();
            return Err(InvalidNode::TooManyAttachments { client: client(), count });
        }
        if !primary.address.is_empty() {
            let attachment = primary.name.clone();
            return Err(InvalidNode::PrimaryRewritten { client: client(), attachment });
        }
        let mut names = BTreeSet::new();
        for attachment in &self.attachments {
            let name = || attachment.name.clone();
            if !names.insert(&attachment.name) {
                return Err(InvalidNode::RepeatedAttachment {
                    client: client(),
                    attachment: name(),
                });
            }
            for address in attachment.address.iter() {
                if self.address.like(address).is_none() {
                    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
                    let (client, attachment) = (client(), name());
                    return Err(InvalidNode::NoSuchFamily { client, attachment, family });
                }
            }
        }
        let attachments = self.attachments.iter().flat_map(|one| one.address.iter());
        for address in self.address.iter().chain(attachments) {
            let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
            if address.is_unspecified() || address.is_multicast() || broadcast {
                return Err(InvalidNode::NotAHost { client: client(), address });
            }
        }
        Ok(())
    }
}
