//! The steering node at the provider's end of some links, and DIDA beside a bond's egress: the
//! unmodified core, between hosts that do not know of it.

use plait_proto::dida::{self, Dida, DidaStats};
use plait_proto::steer::{
    self, AttachmentConfig, ClientConfig, Downstream, Node, NodeConfig, Probe,
};
use plait_proto::time::Instant;

use super::headers::{Headers, client_address, packet_of};
use super::in_order::InOrder;
use super::network::Load;
use super::queue::{Alarm, Event};
use super::{Carrier, World};
use crate::packet::{Packet, Way};
use crate::prng::Prng;
use crate::scenario::{Scenario, SteerSpec};

/// The node's timer among the steering events; then DIDA's beside a bond; then one for each client.
const NODE: usize = 0;
const BOND_DIDA: usize = 1;
const CLIENTS: usize = 2;

/// A steering node with its clients.
#[derive(Debug)]
pub(super) struct Steering {
    node: Node,
    /// Attachments, as link numbers of the network; the first is the primary.
    links: Vec<usize>,
    /// One for each client, if clients reorder packets.
    orders: Vec<(InOrder, Alarm)>,
    alarm: Alarm,
}

impl Steering {
    pub(super) fn new(scenario: &Scenario, spec: &SteerSpec, prng: &mut Prng) -> Self {
        let number = |name: &String| {
            let known = scenario.links.keys().position(|known| known == name);
            known.expect("a checked scenario's steering node names links of the scenario")
        };
        let clients = 0..spec.clients;
        let config = NodeConfig {
            clients: clients.clone().map(|client| self::client(scenario, spec, client)).collect(),
            policy: spec.policy,
            granularity: spec.granularity,
            first_packets: spec.first_packets,
            dida: spec.dida,
            ..NodeConfig::default()
        };
        let order = |time| (InOrder::new(time), Alarm::default());
        let orders = spec.t_reordering.map(|time| clients.map(|_| order(time)).collect());
        Self {
            node: Node::new(config, prng.next_u64()),
            links: spec.links.iter().map(number).collect(),
            orders: orders.unwrap_or_default(),
            alarm: Alarm::default(),
        }
    }
}

fn client(scenario: &Scenario, spec: &SteerSpec, client: u16) -> ClientConfig {
    let attachments = (0..).zip(&spec.links).zip(&spec.shares);
    let attachment = |((at, name), share): ((u8, &String), &u16)| {
        let base = match at {
            0 => AttachmentConfig::primary(name),
            _ => AttachmentConfig::at(name, client_address(client, at)),
        };
        AttachmentConfig { weight: *share, price: scenario.links[name].price, ..base }
    };
    ClientConfig {
        name: format!("client-{}", client + 1),
        address: client_address(client, 0).into(),
        attachments: attachments.map(attachment).collect(),
    }
}

/// A node that may hold acknowledgements on their way to the server.
trait Holder {
    /// Handles a client's packet; says whether it is forwarded at once.
    fn handle_upstream(&mut self, now: Instant, packet: &mut [u8]) -> bool;
    /// The next held packet to forward, before the current one.
    fn poll_transmit(&mut self) -> Option<Vec<u8>>;
}

impl Holder for Dida {
    fn handle_upstream(&mut self, now: Instant, packet: &mut [u8]) -> bool {
        Self::handle_upstream(self, now, packet) == dida::Upstream::Forward
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        Self::poll_transmit(self)
    }
}

impl Holder for Node {
    fn handle_upstream(&mut self, now: Instant, packet: &mut [u8]) -> bool {
        Self::handle_upstream(self, now, packet) == steer::Upstream::Forward
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        Self::poll_transmit(self)
    }
}

/// DIDA beside the egress of a bond at the provider's end.
#[derive(Debug)]
pub(super) struct BondDida {
    dida: Dida,
    alarm: Alarm,
}

impl BondDida {
    pub(super) fn new(config: dida::DidaConfig) -> Self {
        Self { dida: Dida::new(config), alarm: Alarm::default() }
    }
}

impl World {
    /// DIDA's counters; `None` where there is none.
    pub(crate) fn dida(&self) -> Option<DidaStats> {
        let now = self.timeline.now;
        let steering = self.steering.as_ref().and_then(|it| it.node.status(now).dida);
        steering.or_else(|| self.bond_dida.as_ref().map(|bond| bond.dida.stats()))
    }

    /// A packet for a client reaches the steering node.
    pub(super) fn steer(&mut self, packet: Packet) {
        let now = self.timeline.now;
        let segment = self.slots[packet.app].app.segment(&packet);
        let mut bytes = self.headers.write(&packet, segment.as_ref());
        let Some(steering) = &mut self.steering else { return };
        let attachment = match steering.node.handle_downstream(now, &mut bytes) {
            Downstream::Forward(attachment) => attachment,
            Downstream::Unknown => unreachable!("every application belongs to a client"),
            Downstream::Drop(_) => return,
        };
        let load = match steering.orders.get_mut(usize::from(attachment.client)) {
            Some((order, _)) => Load::Numbered(packet, attachment.client, order.number()),
            None => Load::Plain(packet),
        };
        let link = steering.links[usize::from(attachment.attachment)];
        self.network.send(&mut self.timeline, link, Way::Down, load);
        self.unsettled = true;
    }

    /// Uplink packets stay on the primary.
    pub(super) fn send_up_primary(&mut self, packet: Packet) {
        let primary = self.steering.as_ref().map(|steering| steering.links[0]);
        let link = primary.expect("a checked scenario steers only if it has a node");
        self.network.send(&mut self.timeline, link, Way::Up, Load::Plain(packet));
    }

    /// A packet for a client passes DIDA on its way into the bond.
    pub(super) fn show_to_bond_dida(&mut self, packet: &Packet) {
        let Some(bond) = &mut self.bond_dida else { return };
        let segment = self.slots[packet.app].app.segment(packet);
        let bytes = self.headers.write(packet, segment.as_ref());
        bond.dida.handle_downstream(self.timeline.now, &bytes);
        self.unsettled = true;
    }

    /// A client's packet reaches the provider's end, and is forwarded to the server unless held.
    pub(super) fn pass_upstream(&mut self, packet: Packet) {
        let now = self.timeline.now;
        let holder: Option<&mut dyn Holder> = match &self.slots[packet.app].carrier {
            Carrier::Steer => self.steering.as_mut().map(|it| &mut it.node as &mut dyn Holder),
            Carrier::Bond => self.bond_dida.as_mut().map(|it| &mut it.dida as &mut dyn Holder),
            Carrier::Link(_) | Carrier::Subflows(_) => None,
        };
        let Some(holder) = holder else { return self.cross_server_wire(packet) };
        let segment = self.slots[packet.app].app.segment(&packet);
        let mut bytes = self.headers.write(&packet, segment.as_ref());
        let goes_on = holder.handle_upstream(now, &mut bytes);
        let released: Vec<_> = core::iter::from_fn(|| holder.poll_transmit()).collect();
        released.iter().for_each(|bytes| self.restore(bytes));
        // A closed connection has no segments: its packets in flight are treated like UDP.
        if goes_on && segment.is_some() {
            self.restore(&bytes);
        } else if goes_on {
            self.cross_server_wire(packet);
        }
        self.unsettled = true;
    }

    /// Forwards the segment in these bytes, which may have been changed since it was sent.
    fn restore(&mut self, bytes: &[u8]) {
        let (app, stream, segment) = self.headers.read(bytes);
        let now = self.timeline.now;
        let packet = self.slots[app].app.replace(now, stream, segment);
        if let Some(packet) = packet {
            self.cross_server_wire(packet_of(&packet, bytes));
        }
    }

    /// Takes out packets that a steering node, or DIDA beside a bond, sends on its own.
    pub(super) fn drain_steering(&mut self) {
        if !core::mem::take(&mut self.unsettled) {
            return;
        }
        let mut released = Vec::new();
        if let Some(bond) = &mut self.bond_dida {
            released.extend(core::iter::from_fn(|| bond.dida.poll_transmit()));
        }
        let mut probes: Vec<Probe> = Vec::new();
        if let Some(steering) = &mut self.steering {
            released.extend(core::iter::from_fn(|| steering.node.poll_transmit()));
            probes.extend(core::iter::from_fn(|| steering.node.poll_probe()));
        }
        released.iter().for_each(|bytes| self.restore(bytes));
        for probe in probes {
            let Some(steering) = &self.steering else { return };
            let link = steering.links[usize::from(probe.attachment.attachment)];
            self.network.send(&mut self.timeline, link, Way::Down, Load::Probe(probe));
        }
        self.set_steering_alarms();
    }

    fn set_steering_alarms(&mut self) {
        let queue = &mut self.timeline.queue;
        if let Some(bond) = &mut self.bond_dida {
            bond.alarm.set(bond.dida.poll_timeout(), Event::Steering(BOND_DIDA), queue);
        }
        if let Some(steering) = &mut self.steering {
            steering.alarm.set(steering.node.poll_timeout(), Event::Steering(NODE), queue);
            for (client, (order, alarm)) in (CLIENTS..).zip(&mut steering.orders) {
                alarm.set(order.poll_timeout(), Event::Steering(client), queue);
            }
        }
    }

    /// Handles a steering event that was queued for `at`.
    pub(super) fn ring_steering(&mut self, at: Instant, event: usize) {
        let now = self.timeline.now;
        if event == BOND_DIDA {
            if let Some(bond) = &mut self.bond_dida
                && bond.alarm.rings(at)
            {
                bond.dida.handle_timeout(now);
            }
        } else if let Some(steering) = &mut self.steering {
            if event == NODE {
                if steering.alarm.rings(at) {
                    steering.node.handle_timeout(now);
                }
            } else {
                let (order, alarm) = &mut steering.orders[event - CLIENTS];
                if alarm.rings(at) {
                    order.handle_timeout(now, &mut self.delivered);
                }
            }
        }
        self.unsettled = true;
    }

    /// A numbered packet has come to its client.
    pub(super) fn put_in_order(&mut self, packet: Packet, client: u16, number: u64) {
        if let Some(steering) = &mut self.steering {
            let (order, _) = &mut steering.orders[usize::from(client)];
            order.arrive(self.timeline.now, number, packet, &mut self.delivered);
            self.unsettled = true;
        }
    }

    /// A probe has come to its client, which answers over the same link; or its answer has come
    /// back.
    pub(super) fn take_probe(&mut self, probe: Probe, link: usize, way: Way) {
        if way == Way::Down {
            self.network.send(&mut self.timeline, link, Way::Up, Load::Probe(probe));
        } else if let Some(steering) = &mut self.steering {
            steering.node.handle_probe_reply(self.timeline.now, probe.attachment, probe.number);
            self.unsettled = true;
        }
    }

    /// The writer of wire headers, for nodes that read them on the way.
    pub(super) fn steering_parts(
        scenario: &Scenario,
        prng: &mut Prng,
    ) -> (Option<Steering>, Option<BondDida>, Headers) {
        let steering = scenario.steer.as_ref().map(|spec| Steering::new(scenario, spec, prng));
        let bond = scenario.bond.as_ref().and_then(|bond| bond.dida);
        (steering, bond.map(BondDida::new), Headers::new(scenario))
    }
}
