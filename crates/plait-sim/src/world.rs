//! A customer, a provider, the links between them, and the applications at both ends, in virtual
//! time. The gateways are the unmodified core.
//!
//! ```text
//! host ── gateway ══ link, link … ══ (shared link) ══ gateway ── wire ── server
//! ```
//!
//! An application's packets go through the bond, through a steering node at the provider's end, or
//! over one bare link; all share the same queues. The wire between provider and server has a delay
//! and unlimited room.
//!
//! Everything that happens is an event of one queue, and all random numbers come from generators
//! seeded from one number: a scenario and a seed determine a run.

use std::collections::VecDeque;

use plait_proto::stats::PeerStatus;
use plait_proto::time::{Duration, Instant};

use crate::app::{self, App, ETHERNET_MTU_BYTES, Outbox, Span, subflow_of};
use crate::error::WorldError;
use crate::packet::{End, Packet};
use crate::prng::Prng;
use crate::scenario::app::{Direction, Via};
use crate::scenario::{Action, Scenario};
use crate::tcp::mptcp::LocalQueue;

pub mod air;
mod events;
mod gateways;
mod headers;
mod in_order;
pub mod link_config;
mod network;
mod queue;
mod steering;
mod timeline;

pub use crate::packet::Way;
pub use gateways::CipherChoice;
pub use network::{Carried, LinkView};
pub use timeline::Trace;

use gateways::{CUSTOMER, Gateways, PROVIDER};
use headers::Headers;
use network::{Load, Network};
use queue::{Alarm, Event};
use steering::{BondDida, Steering};
use timeline::Timeline;

/// Gateways have at most this long, and at least [`SETTLE_TIME`], to open all paths before a
/// scenario starts.
const BOND_UP_MAX: Duration = Duration::from_secs(30);
const SETTLE_TIME: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Slot {
    app: Box<dyn App>,
    carrier: Carrier,
    /// Which way its data travels.
    way: Way,
    alarm: Alarm,
}

/// The carrier of an application's packets.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Carrier {
    Bond,
    Steer,
    /// A bare link.
    Link(usize),
    /// The bare links of MPTCP's subflows.
    Subflows(Vec<usize>),
}

/// One direction of the wire between provider and server.
#[derive(Debug, Default)]
struct ServerWire {
    packets: VecDeque<(Instant, Packet)>,
    alarm: Alarm,
}

/// A run in progress.
#[derive(Debug)]
pub struct World {
    timeline: Timeline,
    network: Network,
    gateways: Option<Gateways>,
    /// Whether a gateway got input and has not been drained.
    undrained: [bool; 2],
    steering: Option<Steering>,
    bond_dida: Option<BondDida>,
    headers: Headers,
    /// Whether steering node or DIDA got input and have not been drained.
    unsettled: bool,
    server_delay: Duration,
    /// To the customer, to the server.
    server_wires: [ServerWire; 2],
    slots: Vec<Slot>,
    /// When the scenario starts: the bond is up.
    zero: Instant,
    /// Events of the scenario, with the number of the link that each affects.
    events: Vec<(Action, usize)>,
    /// Packets that applications have sent and that are not carried yet.
    outbox: Outbox,
    /// Packets that came out of gateways and links on their receiver's side.
    delivered: Vec<Packet>,
}

impl World {
    /// A world at the start of its scenario, with the bond up and the applications silent.
    ///
    /// # Errors
    ///
    /// The scenario needs something the simulator lacks, or the gateways do not reach each other.
    pub fn new(scenario: &Scenario, seed: u64, cipher: CipherChoice) -> Result<Self, WorldError> {
        if scenario.apps.len() > Packet::APPS_MAX {
            let (count, max) = (scenario.apps.len(), Packet::APPS_MAX);
            return Err(WorldError::Apps { count, max });
        }
        let mut prng = Prng::new(seed);
        let network = Network::new(scenario, &mut prng);
        let spec = scenario.bond.as_ref();
        let gateways = spec.map(|spec| Gateways::new(scenario, spec, cipher, &mut prng));
        let (steering, bond_dida, headers) = Self::steering_parts(scenario, &mut prng);
        let mut world = Self {
            timeline: Timeline::default(),
            network,
            gateways,
            undrained: [false; 2],
            steering,
            bond_dida,
            headers,
            unsettled: true,
            server_delay: scenario.server_rtt / 2,
            server_wires: Default::default(),
            slots: Vec::new(),
            zero: Instant::ZERO,
            events: Vec::new(),
            outbox: Outbox::new(),
            delivered: Vec::new(),
        };
        world.bring_bond_up()?;
        world.zero = world.timeline.now;
        world.network.begin(scenario, world.zero)?;
        world.add_apps(scenario, &mut prng)?;
        world.add_events(scenario);
        Ok(world)
    }

    /// When the scenario started.
    pub fn zero(&self) -> Instant {
        self.zero
    }

    /// Runs all events up to and including `end`.
    pub fn run_until(&mut self, end: Instant) {
        while let Some((at, event)) = self.timeline.step(end) {
            self.handle(at, event);
            self.settle();
        }
        self.timeline.now = self.timeline.now.max(end);
    }

    /// The digest of all that has happened.
    pub fn trace(&self) -> Trace {
        self.timeline.trace
    }

    /// The application of this number.
    pub fn app(&self, at: usize) -> &dyn App {
        &*self.slots[at].app
    }

    pub(crate) fn link(&self, link: usize, way: Way) -> LinkView {
        self.network.observe(link, way)
    }

    /// Status of the gateway that sends in this direction; `None` without a bond.
    pub(crate) fn bond_sender(&mut self, way: Way) -> Option<PeerStatus> {
        let side = if way == Way::Down { PROVIDER } else { CUSTOMER };
        Some(self.gateways.as_mut()?.status(self.timeline.now, side))
    }

    /// Packets that both gateways dropped, for any reason.
    pub(crate) fn gateway_drops(&self) -> u64 {
        self.gateways.iter().map(|gateways| gateways.drops(0) + gateways.drops(1)).sum()
    }

    fn bring_bond_up(&mut self) -> Result<(), WorldError> {
        let Some(gateways) = &mut self.gateways else { return Ok(()) };
        gateways.start(self.timeline.now);
        self.undrained[CUSTOMER] = true;
        self.settle();
        let mut waited = SETTLE_TIME;
        loop {
            self.run_until(Instant::ZERO + waited);
            let now = self.timeline.now;
            if self.gateways.as_mut().is_some_and(|gateways| gateways.are_up(now)) {
                return Ok(());
            }
            if waited >= BOND_UP_MAX {
                return Err(WorldError::NoBond { waited_s: BOND_UP_MAX.as_secs() });
            }
            waited += SETTLE_TIME;
        }
    }

    fn add_apps(&mut self, scenario: &Scenario, prng: &mut Prng) -> Result<(), WorldError> {
        let span = measured_span(scenario, self.zero);
        for (at, spec) in scenario.apps.iter().enumerate() {
            let app = app::build(scenario, at, self.zero, span, prng.next_u64())?;
            let number = |name: &String| {
                let known = scenario.links.keys().position(|known| known == name);
                known.expect("a checked scenario's application names a link of the scenario")
            };
            let carrier = match &spec.via {
                Via::Bond => Carrier::Bond,
                Via::Steer => Carrier::Steer,
                Via::Link(name) => Carrier::Link(number(name)),
                Via::Mptcp => Carrier::Subflows(spec.subflow_links().map(number).collect()),
            };
            let way = if spec.direction == Direction::Down { Way::Down } else { Way::Up };
            let mut alarm = Alarm::default();
            alarm.set(app.poll_timeout(), Event::App(at), &mut self.timeline.queue);
            self.slots.push(Slot { app, carrier, way, alarm });
        }
        Ok(())
    }

    fn handle(&mut self, at: Instant, event: Event) {
        match event {
            Event::Link(direction) => {
                if self.network.rings(direction, at) {
                    self.empty_link(direction);
                }
            }
            Event::Air(medium) => self.network.empty_air(&mut self.timeline, medium, at),
            Event::ServerWire(wire) => {
                if self.server_wires[wire].alarm.rings(at) {
                    self.empty_server_wire(wire);
                }
            }
            Event::Gateway(side) => {
                if let Some(gateways) = &mut self.gateways {
                    let rings = gateways.handle_timeout(self.timeline.now, at, side);
                    self.undrained[side] |= rings;
                }
            }
            Event::Steering(timer) => self.ring_steering(at, timer),
            Event::Scenario(number) => self.happen(number),
            Event::App(number) => {
                self.show_links(number);
                let Slot { app, alarm, .. } = &mut self.slots[number];
                if alarm.rings(at) {
                    if app.poll_timeout().is_some_and(|due| due <= self.timeline.now) {
                        app.handle_timeout(self.timeline.now, &mut self.outbox);
                    }
                    alarm.set(app.poll_timeout(), Event::App(number), &mut self.timeline.queue);
                }
            }
        }
    }

    /// Runs until nothing is left to do at this moment.
    fn settle(&mut self) {
        loop {
            // `leave` adds nothing to the outbox, and `approach` nothing to `delivered`.
            for at in 0..self.outbox.len() {
                self.leave(self.outbox[at]);
            }
            self.outbox.clear();
            for side in [CUSTOMER, PROVIDER] {
                if core::mem::take(&mut self.undrained[side])
                    && let Some(gateways) = &mut self.gateways
                {
                    let (timeline, network) = (&mut self.timeline, &mut self.network);
                    gateways.drain(timeline, side, network, &mut self.delivered);
                }
            }
            for at in 0..self.delivered.len() {
                self.approach(self.delivered[at]);
            }
            self.delivered.clear();
            self.drain_steering();
            if self.outbox.is_empty() {
                return;
            }
        }
    }

    fn empty_link(&mut self, direction: usize) {
        while let Some((link, way, load)) = self.network.poll(&mut self.timeline, direction) {
            match load {
                Load::Plain(packet) => self.delivered.push(packet),
                Load::Numbered(packet, client, number) => {
                    self.put_in_order(packet, client, number);
                }
                Load::Probe(probe) => self.take_probe(probe, link, way),
                Load::Datagram(mut datagram) => {
                    let side = if way == Way::Down { CUSTOMER } else { PROVIDER };
                    if let Some(gateways) = &mut self.gateways {
                        gateways.handle_datagram(self.timeline.now, side, link, &mut datagram);
                        self.undrained[side] = true;
                    }
                    self.network.reuse(datagram);
                }
            }
        }
    }

    fn empty_server_wire(&mut self, wire: usize) {
        let now = self.timeline.now;
        loop {
            let packets = &mut self.server_wires[wire].packets;
            if packets.front().is_none_or(|(due, _)| *due > now) {
                break;
            }
            let Some((_, packet)) = packets.pop_front() else { break };
            match packet.to {
                End::Customer => self.enter(packet),
                End::Server => self.arrive(packet),
            }
        }
        let ServerWire { packets, alarm } = &mut self.server_wires[wire];
        let next = packets.front().map(|(due, _)| *due);
        alarm.set(next, Event::ServerWire(wire), &mut self.timeline.queue);
    }

    /// A packet leaves its host.
    fn leave(&mut self, packet: Packet) {
        self.note(&packet);
        match packet.to {
            End::Customer => self.cross_server_wire(packet),
            End::Server => self.enter(packet),
        }
    }

    /// A packet comes out of a gateway or link on its receiver's side.
    fn approach(&mut self, packet: Packet) {
        match packet.to {
            End::Customer => self.arrive(packet),
            End::Server => self.pass_upstream(packet),
        }
    }

    fn cross_server_wire(&mut self, packet: Packet) {
        if self.server_delay.is_zero() {
            return match packet.to {
                End::Customer => self.enter(packet),
                End::Server => self.arrive(packet),
            };
        }
        let wire = usize::from(packet.to == End::Server);
        let due = self.timeline.now + self.server_delay;
        let ServerWire { packets, alarm } = &mut self.server_wires[wire];
        packets.push_back((due, packet));
        alarm.set(Some(due), Event::ServerWire(wire), &mut self.timeline.queue);
    }

    /// A packet reaches the gateway or the bare link on its sender's side.
    fn enter(&mut self, packet: Packet) {
        let (side, way) = match packet.to {
            End::Customer => (PROVIDER, Way::Down),
            End::Server => (CUSTOMER, Way::Up),
        };
        match &self.slots[packet.app].carrier {
            Carrier::Link(link) => {
                self.network.send(&mut self.timeline, *link, way, Load::Plain(packet));
            }
            Carrier::Subflows(links) => {
                let link = links[subflow_of(&packet, links.len())];
                self.network.send(&mut self.timeline, link, way, Load::Plain(packet));
            }
            Carrier::Steer if way == Way::Down => self.steer(packet),
            Carrier::Steer => self.send_up_primary(packet),
            Carrier::Bond => {
                if way == Way::Down {
                    self.show_to_bond_dida(&packet);
                }
                let gateways = self.gateways.as_mut();
                let gateways = gateways.expect("a checked scenario uses a bond if there is one");
                gateways.handle_packet(self.timeline.now, side, &packet);
                self.undrained[side] = true;
            }
        }
    }

    /// A packet reaches its application.
    fn arrive(&mut self, packet: Packet) {
        self.note(&packet);
        self.show_links(packet.app);
        let Slot { app, alarm, .. } = &mut self.slots[packet.app];
        app.handle_packet(self.timeline.now, &packet, &mut self.outbox);
        alarm.set(app.poll_timeout(), Event::App(packet.app), &mut self.timeline.queue);
    }

    /// Shows an application that looks at them the queues of its subflows' links, at the sender.
    fn show_links(&mut self, number: usize) {
        let Slot { app, carrier: Carrier::Subflows(links), way, .. } = &mut self.slots[number]
        else {
            return;
        };
        if app.sees_links() {
            for (subflow, link) in links.iter().enumerate() {
                let LinkView { queue_bytes, mean_rate, .. } = self.network.observe(*link, *way);
                let packets = queue_bytes.div_ceil(ETHERNET_MTU_BYTES.into());
                app.see_link(subflow, LocalQueue { packets, rate: mean_rate });
            }
        }
    }

    fn note(&mut self, packet: &Packet) {
        let stream = (packet.app as u64) << 32 | u64::from(packet.stream);
        let words = [stream, packet.number.into(), packet.bytes.into()];
        self.timeline.trace.note(self.timeline.now, words);
    }
}

/// The time that metrics cover, in a scenario that started at `zero`.
pub fn measured_span(scenario: &Scenario, zero: Instant) -> Span {
    Span { start: zero + scenario.warmup, end: zero + scenario.duration }
}
