//! The links between customer and provider, and their traffic.

use plait_proto::steer::Probe;
use plait_proto::time::Instant;
use plait_proto::units::Rate;

use super::air::{Air, AirView};
use super::link_config;
use super::queue::{Alarm, Event};
use super::timeline::Timeline;
use crate::air::AirCounters;
use crate::error::WorldError;
use crate::link::{Link, LinkConfig, LinkCounters, Loss, Verdict};
use crate::packet::{Packet, Way};
use crate::prng::Prng;
use crate::ratio::Ratio;
use crate::scenario::{Action, Scenario};

/// IPv4 and UDP headers around a datagram of the gateways.
const DATAGRAM_HEADERS_BYTES: u64 = 28;
/// An ICMP echo as `ping` sends it: 56 bytes of content.
const PROBE_BYTES: u64 = 84;
/// Buffers kept for reuse.
const SPARE_BUFFERS_MAX: usize = 1024;

/// What a link carries.
#[derive(Debug)]
pub(super) enum Load {
    /// A datagram between the gateways.
    Datagram(Vec<u8>),
    /// A packet outside the bond.
    Plain(Packet),
    /// The same for a steering node's client that reorders packets, with its number.
    Numbered(Packet, u16, u64),
    /// A steering node's probe, or its answer.
    Probe(Probe),
}

impl Load {
    /// Length at the IP layer.
    fn bytes(&self) -> u64 {
        match self {
            Self::Datagram(bytes) => datagram_bytes(bytes),
            Self::Plain(packet) | Self::Numbered(packet, ..) => packet.bytes.into(),
            Self::Probe(_) => PROBE_BYTES,
        }
    }
}

#[derive(Debug)]
struct Cargo {
    /// The link that it uses between the customer and the provider or a shared link.
    link: usize,
    load: Load,
}

/// Bytes that one direction of a link has carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Bytes of the bond's datagrams that came out.
    pub bond_bytes: u64,
    /// Bytes of packets outside the bond that came out.
    pub plain_bytes: u64,
}

#[derive(Debug)]
struct Direction {
    link: Link<Cargo>,
    mean_rate: Rate,
    carried: Carried,
    alarm: Alarm,
    /// The medium before it, and its radio there.
    on_air: Option<(usize, usize)>,
}

#[derive(Debug)]
struct OnAir {
    air: Air<Cargo>,
    alarm: Alarm,
}

/// All links, each with its two directions.
#[derive(Debug)]
pub(super) struct Network {
    /// Two for each link, in the order of [`Way`].
    directions: Vec<Direction>,
    media: Vec<OnAir>,
    /// For each link, the one behind it on the provider's side.
    through: Vec<Option<usize>>,
    spare: Vec<Vec<u8>>,
}

impl Network {
    /// The scenario's links, in the order of their names.
    pub(super) fn new(scenario: &Scenario, prng: &mut Prng) -> Self {
        let mut directions = Vec::new();
        for link in scenario.links.values() {
            for spec in [&link.down, &link.up] {
                directions.push(Direction {
                    link: link_config::of_way(link, spec, prng.next_u64()),
                    mean_rate: spec.mean_rate(),
                    carried: Carried::default(),
                    alarm: Alarm::default(),
                    on_air: None,
                });
            }
        }
        let media = Air::all(scenario, prng);
        for (medium, air) in media.iter().enumerate() {
            for link in 0..scenario.links.len() {
                let place = air.radio_of(link).map(|radio| (medium, radio));
                if place.is_some() {
                    for way in Way::BOTH {
                        directions[index(link, way)].on_air = place;
                    }
                }
            }
        }
        let media = media.into_iter().map(|air| OnAir { air, alarm: Alarm::default() });
        let at = |name: &String| scenario.links.keys().position(|known| known == name);
        let through = scenario.links.values().map(|link| link.through.as_ref().and_then(at));
        Self { directions, media: media.collect(), through: through.collect(), spare: Vec::new() }
    }

    /// An empty buffer for a datagram.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Sends a copy of a datagram of the gateways over a link.
    pub(super) fn send_datagram(
        &mut self,
        timeline: &mut Timeline,
        link: usize,
        way: Way,
        datagram: &[u8],
    ) {
        let mut buffer = self.buffer();
        buffer.extend_from_slice(datagram);
        self.send(timeline, link, way, Load::Datagram(buffer));
    }

    /// Sends a load over a link, and over the link behind it if there is one.
    pub(super) fn send(&mut self, timeline: &mut Timeline, link: usize, way: Way, load: Load) {
        let first = match (way, self.through[link]) {
            (Way::Down, Some(through)) => through,
            _ => link,
        };
        self.enter(timeline, index(first, way), Cargo { link, load });
    }

    /// Reuses the buffer of a datagram that has arrived.
    pub(super) fn reuse(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Whether an event of this direction is not stale.
    pub(super) fn rings(&mut self, direction: usize, at: Instant) -> bool {
        self.directions[direction].alarm.rings(at)
    }

    /// The next load that has arrived over this direction, and its link; loads with another link
    /// ahead go there. Call it until it returns `None`.
    pub(super) fn poll(
        &mut self,
        timeline: &mut Timeline,
        direction: usize,
    ) -> Option<(usize, Way, Load)> {
        loop {
            let this = &mut self.directions[direction];
            let Some(cargo) = this.link.poll(timeline.now) else {
                this.alarm.set(this.link.next_event(), Event::Link(direction), &mut timeline.queue);
                return None;
            };
            let carried = match &cargo.load {
                Load::Datagram(_) => &mut this.carried.bond_bytes,
                Load::Plain(_) | Load::Numbered(..) | Load::Probe(_) => {
                    &mut this.carried.plain_bytes
                }
            };
            *carried += cargo.load.bytes();
            let way = Way::BOTH[direction % 2];
            let at_own_link = direction / 2 == cargo.link;
            let next = match way {
                Way::Down if !at_own_link => Some(cargo.link),
                Way::Up if at_own_link => self.through[cargo.link],
                _ => None,
            };
            match next {
                Some(link) => self.enter(timeline, index(link, way), cargo),
                None => return Some((cargo.link, way, cargo.load)),
            }
        }
    }

    /// Starts the links' timelines of a scenario that starts at `zero`.
    pub(super) fn begin(&mut self, scenario: &Scenario, zero: Instant) -> Result<(), WorldError> {
        let specs = scenario.links.iter();
        let specs = specs.flat_map(|(name, spec)| [(name, &spec.down), (name, &spec.up)]);
        for (this, (name, spec)) in self.directions.iter_mut().zip(specs) {
            link_config::LinkSchedule::new(name, spec, zero)?.begin(zero, &mut this.link);
        }
        Ok(())
    }

    /// From now on a link loses each packet with this probability, in both directions.
    pub(super) fn lose(&mut self, now: Instant, link: usize, share: Ratio) {
        for way in Way::BOTH {
            let link = &mut self.directions[index(link, way)].link;
            let loss = Loss::Bernoulli(share);
            link.reconfigure(now, LinkConfig { loss, ..link.config() });
        }
    }

    /// Traffic, counters and queue of one direction of a link.
    pub(super) fn observe(&self, link: usize, way: Way) -> LinkView {
        let this = &self.directions[index(link, way)];
        let air = this.on_air.map(|(medium, radio)| self.media[medium].air.view(radio, way));
        LinkView {
            carried: this.carried,
            counters: this.link.counters(),
            queue_bytes: this.link.waiting_bytes(),
            mean_rate: this.mean_rate,
            air: None,
        }
        .behind(air)
    }

    /// Lets an event happen to the medium that it concerns.
    pub(super) fn happen_on_air(&mut self, timeline: &mut Timeline, action: &Action) {
        for (medium, OnAir { air, alarm }) in self.media.iter_mut().enumerate() {
            air.happen(timeline.now, action);
            alarm.set(air.next_event(), Event::Air(medium), &mut timeline.queue);
        }
    }

    /// Takes what has crossed the air out of a medium, if an event of it is not stale.
    pub(super) fn empty_air(&mut self, timeline: &mut Timeline, medium: usize, at: Instant) {
        let OnAir { air, alarm } = &mut self.media[medium];
        if !alarm.rings(at) {
            return;
        }
        for way in Way::BOTH {
            while let Some(arrival) = air.poll(timeline.now, way) {
                let direction = index(air.link_of(arrival.radio), way);
                let this = &mut self.directions[direction];
                this.link.send(timeline.now, arrival.bytes, arrival.payload);
                this.alarm.set(this.link.next_event(), Event::Link(direction), &mut timeline.queue);
            }
        }
        alarm.set(air.next_event(), Event::Air(medium), &mut timeline.queue);
    }

    fn enter(&mut self, timeline: &mut Timeline, direction: usize, cargo: Cargo) {
        let this = &mut self.directions[direction];
        let bytes = cargo.load.bytes();
        let taken = match this.on_air {
            Some((medium, radio)) => {
                let OnAir { air, alarm } = &mut self.media[medium];
                let way = Way::BOTH[direction % 2];
                let taken = air.send(timeline.now, radio, way, bytes, cargo);
                alarm.set(air.next_event(), Event::Air(medium), &mut timeline.queue);
                taken
            }
            None => {
                let verdict = this.link.send(timeline.now, bytes, cargo);
                this.alarm.set(this.link.next_event(), Event::Link(direction), &mut timeline.queue);
                verdict == Verdict::Accepted
            }
        };
        timeline.trace.note(timeline.now, [direction as u64, bytes, u64::from(taken)]);
    }
}

/// One direction of a link, seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct LinkView {
    /// Bytes that came out, by owner.
    pub carried: Carried,
    /// The link's counters.
    pub counters: LinkCounters,
    /// Bytes that wait for the transmitter.
    pub queue_bytes: u64,
    /// The transmitter's rate, or its mean.
    pub mean_rate: Rate,
    /// What the link's radio did, if it has one.
    pub air: Option<AirCounters>,
}

impl LinkView {
    /// The link as a whole, when a medium lies before what this shows.
    pub fn behind(mut self, air: Option<AirView>) -> Self {
        let Some(AirView { sender, waiting_bytes, radio }) = air else { return self };
        self.counters.in_packets = sender.in_packets;
        self.counters.in_bytes = sender.in_bytes;
        self.counters.dropped_queue_packets += sender.dropped_queue_packets;
        self.counters.dropped_loss_packets += sender.given_up_packets;
        self.counters.dropped_bytes += sender.dropped_bytes;
        self.queue_bytes += waiting_bytes;
        self.air = Some(radio);
        self
    }
}

fn index(link: usize, way: Way) -> usize {
    2 * link + usize::from(way == Way::Up)
}

fn datagram_bytes(datagram: &[u8]) -> u64 {
    datagram.len() as u64 + DATAGRAM_HEADERS_BYTES
}
