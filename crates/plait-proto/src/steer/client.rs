//! One client: its attachments, and the choice among them.

use super::Policy;
use super::attachment::{Attachment, Carriage, FAMILIES, family};
use super::capacity::Capacity;
use super::config::{ClientConfig, Granularity, NodeConfig};
use super::packet::Steerable;
use super::status::{ClientCounters, ClientStatus};
use crate::scheduler::{BulkLoad, Decision, FlowClass, PacketInfo, PathView, Scheduler, View};
use crate::time::{Duration, Instant};
use crate::wire::tcp::TcpFlow;

/// A client is busy, and its attachments are probed often, for so long after a packet.
const BUSY_FOR: Duration = Duration::from_secs(3);
/// The disorder of packets over several attachments lasts so long after only one is left.
const DISORDER_LASTS: Duration = Duration::from_secs(2);

/// The primary's place among the attachments.
pub(super) const PRIMARY: u8 = 0;

/// Packets of one family: what schedulers see, and a scheduler for each kind of choice. Choices for
/// whole flows are kept apart, so that they do not disturb the shares of single packets.
#[derive(Debug)]
struct Way {
    packets: Box<dyn Scheduler>,
    flows: Box<dyn Scheduler>,
    /// The attachments in use that carry the family, cheapest first.
    view: Vec<PathView>,
}

impl Way {
    fn new(policy: Policy) -> Self {
        Self { packets: policy.build(), flows: policy.build(), view: Vec::new() }
    }
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    config: ClientConfig,
    policy: Policy,
    granularity: Granularity,
    pub(super) attachments: Vec<Attachment>,
    ways: [Way; FAMILIES],
    /// With the policy `capacity`: what its acknowledgements have taught.
    pub(super) capacity: Option<Capacity>,
    last_packet_at: Option<Instant>,
    /// Until when its packets may arrive in disorder.
    disorder_until: Instant,
    delay_difference: Option<Duration>,
    pub(super) counters: ClientCounters,
    pub(super) flows_evicted: u64,
    pub(super) flows_expired: u64,
}

impl Client {
    /// The client at this place of the configuration; probes are numbered from `first_number` on.
    pub(super) fn new(node: &NodeConfig, place: usize, first_number: u16) -> Self {
        let config = node.clients[place].clone();
        let number = |at: usize| node.probe.map(|_| first_number.wrapping_add((at as u16) << 8));
        let attachments: Vec<_> = (0..config.attachments.len())
            .map(|at| Attachment::new(&config, at, number(at)))
            .collect();
        let capacity = Capacity::new(attachments.len());
        Self {
            config,
            policy: node.policy,
            granularity: node.granularity,
            attachments,
            ways: [Way::new(node.policy), Way::new(node.policy)],
            capacity: (node.policy == Policy::Capacity).then_some(capacity),
            last_packet_at: None,
            disorder_until: Instant::ZERO,
            delay_difference: None,
            counters: ClientCounters::default(),
            flows_evicted: 0,
            flows_expired: 0,
        }
    }

    pub(super) const fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// Whether this is the client that `other` was.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.config.name == other.config.name && self.config.address == other.config.address
    }

    /// Where the attachment of `other` at `place` is now; `None` when it is gone.
    pub(super) fn place_of(&self, other: &Self, place: u8) -> Option<u8> {
        let old = other.attachments[usize::from(place)].config();
        let mut places = (0..).zip(&self.attachments);
        let same = places.find(|(at, one)| {
            let one = one.config();
            one.name == old.name
                && one.address == old.address
                && (*at == PRIMARY) == (place == PRIMARY)
        });
        same.map(|(at, _)| at)
    }

    /// Goes on where `old` was: the same client under another configuration.
    pub(super) fn take_over(&mut self, mut old: Self) {
        let places: Vec<_> =
            (0..).map(|at| self.place_of(&old, at)).take(old.attachments.len()).collect();
        let unmoved = places.iter().zip(0..).all(|(new, old)| *new == Some(old))
            && old.attachments.len() == self.attachments.len();
        if unmoved && old.policy == self.policy {
            self.ways = old.ways;
            self.capacity = old.capacity;
        }
        for (new, attachment) in places.iter().zip(old.attachments.drain(..)) {
            if let Some(new) = new {
                self.attachments[usize::from(*new)].take_over(attachment);
            }
        }
        self.last_packet_at = old.last_packet_at;
        self.disorder_until = old.disorder_until;
        self.delay_difference = old.delay_difference;
        self.counters = old.counters;
        (self.flows_evicted, self.flows_expired) = (old.flows_evicted, old.flows_expired);
    }

    /// Takes note of a packet towards the client. Returns whether it was at rest before.
    pub(super) fn wake(&mut self, now: Instant) -> bool {
        let was_busy = self.is_busy(now);
        self.last_packet_at = Some(now);
        !was_busy
    }

    /// Whether it was sent packets lately.
    pub(super) fn is_busy(&self, now: Instant) -> bool {
        self.last_packet_at.is_some_and(|at| now.since(at) < BUSY_FOR)
    }

    /// Follows what has changed at its attachments. Returns the delay difference when it is known.
    pub(super) fn follow_attachments(&mut self, now: Instant) -> Option<Duration> {
        for (family, way) in self.ways.iter_mut().enumerate() {
            way.view.clear();
            let usable = (0..).zip(&self.attachments).filter(|(_, attachment)| {
                attachment.is_in_use() && attachment.can_carry(family, true)
            });
            way.view.extend(usable.map(|(id, attachment)| attachment.view(now, id)));
            way.view.sort_by_key(|path| (path.price, path.order));
        }
        let several = self.ways.iter().any(|way| way.view.len() > 1);
        if several && self.granularity == Granularity::Packet {
            self.disorder_until = Instant::FAR_FUTURE;
        } else if self.disorder_until == Instant::FAR_FUTURE {
            self.disorder_until = now + DISORDER_LASTS;
        }
        self.delay_difference = self.measured_difference(now);
        self.delay_difference
    }

    /// Whether its packets may arrive in disorder.
    pub(super) fn is_in_disorder(&self, now: Instant) -> bool {
        now < self.disorder_until
    }

    /// How much longer the slowest attachment in use takes than the quickest, plus the largest mean
    /// deviation. A probe's answer may come back any way; the whole difference of round-trip times
    /// is what the way there can have at most, and has when the difference is a queue.
    fn measured_difference(&self, now: Instant) -> Option<Duration> {
        let in_use = || self.attachments.iter().filter(|one| one.is_in_use());
        let measured = || in_use().filter_map(|one| one.reckoned_rtt(now));
        if measured().count() < 2 {
            return None;
        }
        let jitter = in_use().filter_map(Attachment::rtt_variation).max();
        Some(measured().max()?.saturating_sub(measured().min()?) + jitter.unwrap_or_default())
    }

    /// The attachment that the policy picks for a packet, or for a flow; `None` when none is in
    /// use. `flow` is a TCP packet's.
    #[inline]
    pub(super) fn pick(
        &mut self,
        now: Instant,
        family: usize,
        bytes: usize,
        granularity: Granularity,
        flow: Option<TcpFlow>,
    ) -> Option<u8> {
        let way = &mut self.ways[family];
        if way.view.len() < 2 {
            return way.view.first().map(|path| path.id.0);
        }
        if let Some(capacity) = &self.capacity
            && let Some(first) = capacity.pick(now, &way.view, flow.as_ref(), bytes as u64)
        {
            return Some(first);
        }
        if self.policy.minds_load() {
            for path in &mut way.view {
                path.in_flight_bytes = self.attachments[usize::from(path.id.0)].load(now);
            }
        }
        let view = View { now, paths: &way.view };
        let bytes = bytes as u64;
        let packet = PacketInfo {
            bytes,
            class: FlowClass::Bulk,
            queued_bytes: 0,
            load: BulkLoad::default(),
        };
        let scheduler = match granularity {
            Granularity::Packet => &mut way.packets,
            Granularity::Flow => &mut way.flows,
        };
        match scheduler.pick(&view, &packet) {
            Decision::Send(path) => {
                if self.policy.minds_load() {
                    self.attachments[usize::from(path.0)].add_load(now, bytes);
                }
                Some(path.0)
            }
            other => unreachable!("without windows a policy always sends, not {other:?}"),
        }
    }

    /// Whether the policy may go on giving packets of this family to the attachment.
    pub(super) fn is_usable(&self, attachment: u8, family: usize) -> bool {
        self.ways[family].view.iter().any(|path| path.id.0 == attachment)
    }

    /// The attachment for what belongs on the primary: that, unless it is out of use and another
    /// one can carry the packet.
    pub(super) fn primary_for(&self, family: usize, rewritable: bool) -> u8 {
        if self.attachments[usize::from(PRIMARY)].is_in_use() {
            return PRIMARY;
        }
        let mut others = self.ways[family].view.iter().map(|path| path.id.0);
        let able = |at: &u8| self.attachments[usize::from(*at)].can_carry(family, rewritable);
        others.find(able).unwrap_or(PRIMARY)
    }

    /// Sends a packet over an attachment: rewrites it if need be and counts it.
    #[inline]
    pub(super) fn dispatch(&mut self, attachment: u8, steerable: &Steerable, packet: &mut [u8]) {
        let attachment = &mut self.attachments[usize::from(attachment)];
        if let Carriage::Rewritten(rewrite) =
            &attachment.carriage[family(steerable.inner.destination)]
        {
            rewrite.apply(steerable, packet);
        }
        attachment.count(packet.len());
    }

    /// Learns from a packet that is about to go over an attachment, as it came.
    #[inline]
    pub(super) fn learn_sent(&mut self, now: Instant, attachment: u8, packet: &[u8]) {
        if let Some(capacity) = &mut self.capacity {
            capacity.sent(now, attachment, packet);
        }
    }

    /// Learns from a packet of the client, as it came.
    #[inline]
    pub(super) fn learn_answered(&mut self, now: Instant, packet: &[u8]) {
        if let Some(capacity) = &mut self.capacity {
            capacity.answered(now, packet);
        }
    }

    /// What it tells about itself.
    pub(super) fn status(&self, flows: u64) -> ClientStatus {
        let way = &self.ways[usize::from(self.config.address.v4.is_none())];
        let view = View { now: Instant::ZERO, paths: &way.view };
        let weights = match self.granularity {
            Granularity::Packet => way.packets.weights(&view),
            Granularity::Flow => way.flows.weights(&view),
        };
        let learned = |at: u8| self.capacity.as_ref()?.rate(at);
        let weight_of = |at: u8| match learned(at) {
            Some(rate) => u32::try_from(rate.bits_per_second() / 1000).ok(),
            None => weights.iter().find(|(path, _)| path.0 == at).map(|(_, w)| *w),
        };
        let packets = self.attachments.iter().map(|attachment| attachment.packets).sum();
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        ClientStatus {
            name: self.config.name.clone(),
            addresses: self.config.address.iter().map(|address| address.to_string()).collect(),
            attachments: (0..)
                .zip(&self.attachments)
                .map(|(at, attachment)| attachment.status(weight_of(at), packets))
                .collect(),
            flows,
            flows_evicted: self.flows_evicted,
            flows_expired: self.flows_expired,
            delay_difference_us: self.delay_difference.map(micros),
            counters: self.counters,
        }
    }
}
