//! The steering node: packets for a client without plait go over one of its attachments each.
//!
//! Paper 000's node beside the access network. The client has a primary address, to which the world
//! sends, and addresses on further attachments. The node sends each packet over the primary as it
//! is, or over another attachment with its destination rewritten; a rule on the client writes the
//! primary address back. The way up stays on the primary. `docs/algorithms/steering.md`.
//!
//! The node is given packets, time and answers to probes. It knows no interface and no route: the
//! owner leads a packet over the attachment that the node names.

mod config;
mod packet;
mod policy;
mod status;

pub use config::{
    Addresses, AttachmentConfig, ClientConfig, Granularity, InvalidNode, NodeConfig, OtherTraffic,
    ProbeConfig, UnknownClient,
};
pub use policy::{NoPolicy, Policy};
pub use status::{
    AttachmentState, AttachmentStatus, ClientCounters, ClientStatus, NodeStatus, ProbeCounters,
    SteerDrop,
};

use core::net::IpAddr;
use std::collections::BTreeMap;

use crate::time::Instant;
use packet::{Rewrite, Steerable};

/// An attachment of a client, by the places of both in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttachmentId {
    /// Place of the client in [`NodeConfig::clients`].
    pub client: u16,
    /// Place of the attachment in [`ClientConfig::attachments`]; 0 is the primary.
    pub attachment: u8,
}

/// What becomes of a packet towards a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Downstream {
    /// Send it over this attachment; its destination has been rewritten if need be.
    Forward(AttachmentId),
    /// It is for no client: send it on untouched.
    Unknown,
    /// Drop it. It has been counted.
    Drop(SteerDrop),
}

/// What becomes of a packet from a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Upstream {
    /// Send it on, after everything that [`Node::poll_transmit`] gives. DIDA may have masked its
    /// SACK option.
    Forward,
    /// DIDA keeps a copy or has discarded it: send nothing.
    Held,
    /// Drop it. It has been counted.
    Drop(SteerDrop),
}

/// An ICMP echo request that the owner is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The attachment over which it goes.
    pub attachment: AttachmentId,
    /// Where to.
    pub address: IpAddr,
    /// The echo's sequence number, by which the answer is known again.
    pub number: u16,
}

/// A steering node: its clients, their attachments and flows.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    places: BTreeMap<IpAddr, AttachmentId>,
    turns: u64,
}

impl Node {
    /// A node; `seed` is random and keeps strangers from choosing flows that share a place in its
    /// tables.
    ///
    /// # Panics
    ///
    /// When [`NodeConfig::check`] was not asked and would have refused the configuration.
    pub fn new(config: NodeConfig, _seed: u64) -> Self {
        config.check().expect("the owner has checked the configuration");
        let mut places = BTreeMap::new();
        for (client, of) in (0..).zip(&config.clients) {
            let primary = AttachmentId { client, attachment: 0 };
            places.extend(of.address.iter().map(|address| (address, primary)));
        }
        Self { config, places, turns: 0 }
    }

    /// The configuration in use.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Takes a packet towards a client: picks the attachment and rewrites the destination in place.
    pub fn handle_downstream(&mut self, _now: Instant, packet: &mut [u8]) -> Downstream {
        let Some(steerable) = Steerable::read(packet) else {
            return Downstream::Drop(SteerDrop::Malformed);
        };
        let destination = steerable.inner.destination;
        let Some(&primary) = self.places.get(&destination) else { return Downstream::Unknown };
        let attachments = &self.config.clients[usize::from(primary.client)].attachments;
        self.turns += 1;
        let at = self.turns as usize % attachments.len();
        if let Some(address) = attachments[at].address.like(destination) {
            let rewrite = Rewrite::new(destination, address).expect("one family");
            rewrite.apply(&steerable, packet);
        }
        Downstream::Forward(AttachmentId { attachment: at as u8, ..primary })
    }

    /// Takes a packet from a client. Drain [`Self::poll_transmit`] before sending it on.
    pub fn handle_upstream(&mut self, _now: Instant, _packet: &mut [u8]) -> Upstream {
        Upstream::Forward
    }

    /// The next packet that DIDA has released, towards its server.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// The next probe to send.
    pub fn poll_probe(&mut self) -> Option<Probe> {
        None
    }

    /// Takes the answer to a probe.
    pub fn handle_probe_reply(&mut self, _now: Instant, _attachment: AttachmentId, _number: u16) {}

    /// Takes note that an attachment's interface or route has gone, or is back.
    pub fn set_attachment_up(&mut self, _now: Instant, _attachment: AttachmentId, _up: bool) {}

    /// Does what is due.
    pub fn handle_timeout(&mut self, _now: Instant) {}

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Makes everything held transmittable: the node is about to stop.
    pub fn release_all(&mut self) {}

    /// What the node tells about itself.
    pub fn status(&self, _now: Instant) -> NodeStatus {
        NodeStatus {
            policy: self.config.policy.to_string(),
            granularity: String::new(),
            clients: Vec::new(),
            unknown: 0,
            drops: BTreeMap::new(),
        }
    }

    /// Goes on with another configuration; clients and flows that stay are kept.
    ///
    /// # Panics
    ///
    /// As [`Self::new`].
    pub fn reconfigure(&mut self, _now: Instant, config: NodeConfig) {
        *self = Self::new(config, 0);
    }
}
