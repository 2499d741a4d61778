//! The steering node: packets for a client without plait go over one of its attachments each.
//!
//! Paper 000's node beside the access network. The client has a primary address, to which the world
//! sends, and addresses on further attachments. The node sends each packet over the primary as it
//! is, or over another attachment with its destination rewritten; a rule on the client writes the
//! primary address back. The way up stays on the primary. `docs/algorithms/steering.md`.
//!
//! A packet's way to a client, stage by stage:
//! 1. read: addresses, protocol, ports, control bits (`packet`);
//! 2. look up: the flow, and with it the client (`flows`); else the client by its address;
//! 3. decide: the primary by rule, or what the policy picks (`client`, `policy`);
//! 4. learn: the policy `capacity` and DIDA see the packet as it came (`capacity`, `dida`);
//! 5. rewrite and count (`attachment`, `packet`).
//!
//! A packet from a client passes DIDA and is never rewritten.
//!
//! The node is given packets, time and answers to probes. It knows no interface and no route: the
//! owner leads a packet over the attachment that the node names. As everywhere, what `poll_*` gives
//! is drained after every batch of inputs.

mod attachment;
mod capacity;
mod client;
mod config;
mod flows;
mod packet;
mod policy;
mod probe_key;
mod prober;
mod reload;
mod status;

pub use config::{
    Addresses, AttachmentConfig, ClientConfig, Granularity, InvalidNode, NodeConfig, OtherTraffic,
    ProbeConfig, UnknownClient,
};
pub use policy::{NoPolicy, Policy};
pub use probe_key::{PROBE_BYTES, ProbeKey};
pub use status::{
    AttachmentState, AttachmentStatus, ClientCounters, ClientStatus, NodeStatus, ProbeCounters,
    SteerDrop,
};

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::dida::{self, Dida};
use crate::time::{Duration, Instant, earlier};
use crate::wire::ip::Inner;
use attachment::family;
use client::{Client, PRIMARY};
use flows::{FlowSlot, Flows};
use packet::{Payload, Steerable};

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
    /// Send it on, after everything that [`Node::poll_transmit`] gives. DIDA may have filtered its
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

/// Things that happen at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// When an attachment's next probe is due, or the wait for an answer ends.
    Probe(AttachmentId),
    /// When to forget flows that have been idle for long.
    Sweep,
}

/// A steering node: its clients, their attachments and flows.
#[derive(Debug)]
pub struct Node {
    config: NodeConfig,
    seed: u64,
    clients: Vec<Client>,
    /// Whose every address is. A client's primary addresses belong to its primary.
    places: BTreeMap<IpAddr, AttachmentId>,
    flows: Flows,
    timers: BTreeSet<(Instant, Timer)>,
    /// Whether the sweep is among the timers.
    sweep_is_set: bool,
    probes: VecDeque<Probe>,
    dida: Option<Dida>,
    /// What a DIDA that was switched off still held.
    released: VecDeque<Vec<u8>>,
    unknown: u64,
    drops: [u64; SteerDrop::ALL.len()],
}

impl Node {
    /// A node; `seed` is random and keeps strangers from choosing flows that share a place in its
    /// tables. Its first probes are due at once.
    ///
    /// # Panics
    ///
    /// When [`NodeConfig::check`] refuses the configuration: its reader is to ask first.
    pub fn new(config: NodeConfig, seed: u64) -> Self {
        reload::assert_checked(&config);
        let mut node = Self {
            flows: Flows::new(seed, config.clients.len()),
            seed,
            clients: Vec::new(),
            places: BTreeMap::new(),
            timers: BTreeSet::new(),
            sweep_is_set: false,
            probes: VecDeque::new(),
            dida: config.dida.map(Dida::new),
            released: VecDeque::new(),
            unknown: 0,
            drops: [0; SteerDrop::ALL.len()],
            config,
        };
        node.set_up(Instant::ZERO, Vec::new());
        node
    }

    /// The configuration in use.
    pub const fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Takes a packet towards a client: picks the attachment and rewrites the destination in place.
    pub fn handle_downstream(&mut self, now: Instant, packet: &mut [u8]) -> Downstream {
        let Some(steerable) = Steerable::read(packet) else {
            return Downstream::Drop(self.drop(SteerDrop::Malformed));
        };
        let (client, flow) = match self.find_flow(now, &steerable) {
            Some((client, slot)) => (client, Some(slot)),
            None => match self.places.get(&steerable.inner.destination) {
                None => return self.unknown_downstream(),
                Some(place) if place.attachment != PRIMARY => {
                    return self.direct(*place, packet.len());
                }
                Some(place) => (place.client, self.new_flow(now, &steerable, place.client)),
            },
        };
        if self.clients[usize::from(client)].wake(now) {
            self.arm_client(now, client);
        }
        let attachment = self.decide(now, client, flow, &steerable, packet.len());
        let of = &mut self.clients[usize::from(client)];
        if let Some(dida) = &mut self.dida
            && of.is_in_disorder(now)
        {
            dida.handle_downstream(now, packet);
        }
        of.learn_sent(now, attachment, packet);
        of.dispatch(attachment, &steerable, packet);
        Downstream::Forward(AttachmentId { client, attachment })
    }

    /// Whether the packet belongs to a flow that is followed.
    fn has_flow(&self, steerable: &Steerable) -> bool {
        match steerable.payload {
            Payload::Tcp { .. } => true,
            Payload::Other => self.config.other == OtherTraffic::Flow,
            Payload::Fragment | Payload::Opaque => false,
        }
    }

    #[inline]
    fn find_flow(&mut self, now: Instant, steerable: &Steerable) -> Option<(u16, FlowSlot)> {
        if !self.has_flow(steerable) {
            return None;
        }
        let slot = self.flows.find(now, &steerable.inner)?;
        Some((self.flows.get(slot).client, slot))
    }

    /// Begins to follow a flow that is not known, if it is to be followed.
    fn new_flow(&mut self, now: Instant, steerable: &Steerable, client: u16) -> Option<FlowSlot> {
        if !self.has_flow(steerable) {
            return None;
        }
        let flows_max = self.config.flows_per_client_max;
        let (slot, evicted) = self.flows.insert(now, &steerable.inner, client, flows_max);
        self.clients[usize::from(client)].flows_evicted += u64::from(evicted);
        if !self.sweep_is_set {
            self.timers.insert((now + self.sweep_interval(), Timer::Sweep));
            self.sweep_is_set = true;
        }
        Some(slot)
    }

    fn unknown_downstream(&mut self) -> Downstream {
        match self.config.unknown {
            UnknownClient::Drop => Downstream::Drop(self.drop(SteerDrop::UnknownClient)),
            UnknownClient::Forward => {
                self.unknown += 1;
                Downstream::Unknown
            }
        }
    }

    /// A packet for the client's address on an attachment needs no steering.
    fn direct(&mut self, place: AttachmentId, bytes: usize) -> Downstream {
        let client = &mut self.clients[usize::from(place.client)];
        client.counters.direct += 1;
        client.attachments[usize::from(place.attachment)].count(bytes);
        Downstream::Forward(place)
    }

    /// The attachment for a packet, which is counted by the reason for the choice.
    fn decide(
        &mut self,
        now: Instant,
        client: u16,
        flow: Option<FlowSlot>,
        steerable: &Steerable,
        bytes: usize,
    ) -> u8 {
        let of = &mut self.clients[usize::from(client)];
        let family = family(steerable.inner.destination);
        let counters = &mut of.counters;
        let flow = flow.map(|slot| self.flows.get(slot));
        let Some(flow) = flow else {
            let rewritable = match steerable.payload {
                Payload::Fragment => {
                    counters.fragments += 1;
                    false
                }
                Payload::Opaque => {
                    counters.opaque += 1;
                    false
                }
                Payload::Tcp { .. } | Payload::Other => {
                    counters.other += 1;
                    true
                }
            };
            return of.primary_for(family, rewritable);
        };
        if let Payload::Tcp { flags } = steerable.payload
            && flags & (packet::SYN | packet::FIN | packet::RST) != 0
        {
            counters.control += 1;
            if flags & packet::SYN != 0 {
                (flow.packets, flow.attachment) = (0, None);
            }
            return of.primary_for(family, true);
        }
        if flow.packets < self.config.first_packets {
            flow.packets += 1;
            counters.first += 1;
            return of.primary_for(family, true);
        }
        let whole = self.config.granularity == Granularity::Flow
            || !matches!(steerable.payload, Payload::Tcp { .. });
        let picked = match flow.attachment {
            Some(attachment) if whole && of.is_usable(attachment, family) => Some(attachment),
            _ if whole => of.pick(now, family, bytes, Granularity::Flow, None),
            _ => of.pick(now, family, bytes, Granularity::Packet, steerable.flow()),
        };
        let Some(attachment) = picked else {
            of.counters.last_resort += 1;
            return PRIMARY;
        };
        if whole {
            flow.attachment = Some(attachment);
        }
        of.counters.steered += 1;
        attachment
    }

    /// Takes a packet from a client. Drain [`Self::poll_transmit`] before sending it on.
    pub fn handle_upstream(&mut self, now: Instant, packet: &mut [u8]) -> Upstream {
        let Some(inner) = Inner::read(packet) else {
            return Upstream::Drop(self.drop(SteerDrop::Malformed));
        };
        let Some(place) = self.places.get(&inner.source) else {
            if self.config.unknown == UnknownClient::Drop {
                return Upstream::Drop(self.drop(SteerDrop::UnknownClient));
            }
            self.unknown += 1;
            return Upstream::Forward;
        };
        let client = &mut self.clients[usize::from(place.client)];
        if place.attachment != PRIMARY {
            client.counters.upstream_direct += 1;
            return Upstream::Forward;
        }
        client.counters.upstream_packets += 1;
        client.counters.upstream_bytes += packet.len() as u64;
        client.learn_answered(now, packet);
        // Without disorder a duplicate ACK tells of a loss: nothing is gained by holding it.
        let Some(dida) = self.dida.as_mut().filter(|_| client.is_in_disorder(now)) else {
            return Upstream::Forward;
        };
        match dida.handle_upstream(now, packet) {
            dida::Upstream::Forward => Upstream::Forward,
            dida::Upstream::Held => {
                client.counters.held += 1;
                Upstream::Held
            }
        }
    }

    /// The next packet that DIDA has released, towards its server.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        if let Some(packet) = self.released.pop_front() {
            return Some(packet);
        }
        self.dida.as_mut()?.poll_transmit()
    }

    /// The next probe to send.
    pub fn poll_probe(&mut self) -> Option<Probe> {
        let probe = self.probes.pop_front()?;
        if let Some(prober) = &mut self.attachment(probe.attachment)?.prober {
            prober.fetched();
        }
        Some(probe)
    }

    /// Takes the answer to a probe. One that answers no probe under way is counted.
    pub fn handle_probe_reply(&mut self, now: Instant, id: AttachmentId, number: u16) {
        let Some(config) = self.config.probe else { return };
        let Some(attachment) = self.attachment(id) else { return };
        let Some(prober) = &mut attachment.prober else { return };
        let answered = prober.counters.answered;
        prober.answer(now, number, &config);
        let rtt = prober.rtt.latest().filter(|_| prober.counters.answered > answered);
        let client = &mut self.clients[usize::from(id.client)];
        if let Some((capacity, rtt)) = client.capacity.as_mut().zip(rtt) {
            capacity.probed(now, id.attachment, rtt);
        }
        self.follow_attachments(now, id.client);
        self.arm(now, id);
    }

    /// Takes note that an attachment's interface or route has gone, or is back. One that is back
    /// carries packets as soon as it has answered a probe.
    pub fn set_attachment_up(&mut self, now: Instant, id: AttachmentId, up: bool) {
        let Some(attachment) = self.attachment(id) else { return };
        attachment.set_owner_up(up);
        self.follow_attachments(now, id.client);
        self.arm(now, id);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(due, timer)) = self.timers.first() {
            if due > now {
                break;
            }
            self.timers.pop_first();
            match timer {
                Timer::Probe(id) => self.handle_probe_timer(now, id),
                Timer::Sweep => self.sweep(now),
            }
        }
        if let Some(dida) = &mut self.dida {
            dida.handle_timeout(now);
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = self.timers.first().map(|(due, _)| *due);
        earlier(own, self.dida.as_ref().and_then(Dida::poll_timeout))
    }

    /// Makes everything held transmittable: the node is about to stop.
    pub fn release_all(&mut self) {
        if let Some(dida) = &mut self.dida {
            dida.release_all();
        }
    }

    /// What the node tells about itself.
    pub fn status(&self, _now: Instant) -> NodeStatus {
        let flows = |client: u16| u64::from(self.flows.count(client));
        let drops = SteerDrop::ALL.iter().zip(self.drops).filter(|(_, count)| *count > 0);
        NodeStatus {
            policy: self.config.policy.to_string(),
            granularity: self.config.granularity.name().to_owned(),
            clients: (0..).zip(&self.clients).map(|(at, of)| of.status(flows(at))).collect(),
            unknown: self.unknown,
            drops: drops.map(|(reason, count)| (reason.name().to_owned(), count)).collect(),
            dida: self.dida.as_ref().map(Dida::stats),
        }
    }

    fn attachment(&mut self, id: AttachmentId) -> Option<&mut attachment::Attachment> {
        let client = self.clients.get_mut(usize::from(id.client))?;
        client.attachments.get_mut(usize::from(id.attachment))
    }

    fn drop(&mut self, reason: SteerDrop) -> SteerDrop {
        self.drops[reason as usize] += 1;
        reason
    }

    /// Follows what has changed at a client's attachments, and tells DIDA how far they lie apart.
    fn follow_attachments(&mut self, now: Instant, client: u16) {
        let client = &mut self.clients[usize::from(client)];
        let difference = client.follow_attachments(now);
        if let (Some(difference), Some(dida)) = (difference, &mut self.dida) {
            for address in client.config().address.iter() {
                dida.set_delay_difference(address, difference);
            }
        }
    }

    fn handle_probe_timer(&mut self, now: Instant, id: AttachmentId) {
        let Some(config) = self.config.probe else { return };
        let busy = self.clients[usize::from(id.client)].is_busy(now);
        let Some(attachment) = self.attachment(id) else { return };
        attachment.armed = None;
        let address = attachment.probe_address;
        if let Some(number) = attachment.handle_timeout(now, &config, busy) {
            self.probes.push_back(Probe { attachment: id, address, number });
        }
        self.follow_attachments(now, id.client);
        self.arm(now, id);
    }

    /// Sets an attachment's timer to what is due next.
    fn arm(&mut self, now: Instant, id: AttachmentId) {
        let config = self.config.probe;
        let busy = self.clients[usize::from(id.client)].is_busy(now);
        let Some(attachment) = self.attachment(id) else { return };
        let due = attachment.poll_timeout(config.as_ref(), busy);
        let before = core::mem::replace(&mut attachment.armed, due);
        if before == due {
            return;
        }
        if let Some(before) = before {
            self.timers.remove(&(before, Timer::Probe(id)));
        }
        if let Some(due) = due {
            self.timers.insert((due, Timer::Probe(id)));
        }
    }

    fn arm_client(&mut self, now: Instant, client: u16) {
        let attachments = self.clients[usize::from(client)].attachments.len();
        for attachment in (0..).take(attachments) {
            self.arm(now, AttachmentId { client, attachment });
        }
    }

    /// Forgets idle flows.
    fn sweep(&mut self, now: Instant) {
        for (at, client) in (0..).zip(&mut self.clients) {
            client.flows_expired += self.flows.expire(now, at, self.config.flow_idle);
        }
        self.sweep_is_set = !self.flows.is_empty();
        if self.sweep_is_set {
            self.timers.insert((now + self.sweep_interval(), Timer::Sweep));
        }
    }

    /// A flow is forgotten at most so much later than it might be.
    fn sweep_interval(&self) -> Duration {
        self.config.flow_idle / 4
    }
}

#[cfg(test)]
mod tests;
