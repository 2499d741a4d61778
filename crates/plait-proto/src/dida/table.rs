//! The flows of a node: bounded, the one longest without a packet first out.

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::flow::Flow;
use crate::time::{Duration, Instant};
use crate::wire::tcp::TcpFlow;

/// Where a flow lies in the table, until it is removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FlowId(u32);

/// A connection as the packets to its client have it; ordered by what differs most first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    ports: u32,
    client: u128,
    server: u128,
}

impl Key {
    fn of(flow: &TcpFlow) -> Self {
        // Both addresses are of one version, and no IPv6 address on a wire is a mapped one.
        let bits = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let ports = u32::from(flow.destination_port) << 16 | u32::from(flow.source_port);
        Self { ports, client: bits(flow.destination), server: bits(flow.source) }
    }
}

#[derive(Debug)]
struct Slot {
    key: Key,
    /// The client's primary address.
    client: IpAddr,
    flow: Flow,
    last_packet: Instant,
    /// Neighbours in the order of their last packets.
    older: Option<u32>,
    newer: Option<u32>,
}

/// The flows by key and by age.
#[derive(Debug, Default)]
pub(super) struct Table {
    index: BTreeMap<Key, u32>,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    oldest: Option<u32>,
    newest: Option<u32>,
    /// The flow of the packet before: flows send trains, and a search costs more than a comparison.
    latest: Option<(Key, u32)>,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// The flow of packets to the client, with its packet's time noted.
    pub(super) fn find(&mut self, now: Instant, flow: &TcpFlow) -> Option<FlowId> {
        let id = self.peek(flow)?;
        self.latest = Some((self.slot(id).key, id.0));
        self.touch(now, id.0);
        Some(id)
    }

    /// The flow of packets to the client.
    pub(super) fn peek(&self, flow: &TcpFlow) -> Option<FlowId> {
        let key = Key::of(flow);
        match self.latest {
            Some((latest, at)) if latest == key => Some(FlowId(at)),
            _ => self.index.get(&key).copied().map(FlowId),
        }
    }

    /// Adds a flow that is not there.
    pub(super) fn insert(&mut self, now: Instant, flow: &TcpFlow, state: Flow) -> FlowId {
        let key = Key::of(flow);
        let (client, older) = (flow.destination, self.newest);
        let slot = Slot { key, client, flow: state, last_packet: now, older, newer: None };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.slots.push(None);
                u32::try_from(self.slots.len() - 1).expect("fewer flows than 2^32")
            }
        };
        self.slots[at as usize] = Some(slot);
        let replaced = self.index.insert(key, at);
        assert!(replaced.is_none(), "a flow is in the table once");
        self.link_newest(at);
        FlowId(at)
    }

    pub(super) fn remove(&mut self, id: FlowId) -> Flow {
        self.unlink(id.0);
        let slot = self.slots[id.0 as usize].take().expect("an id is used while its flow is there");
        self.index.remove(&slot.key);
        self.free.push(id.0);
        self.latest = None;
        slot.flow
    }

    /// The flow longest without a packet, and when it had its last.
    pub(super) fn oldest(&self) -> Option<(FlowId, Instant)> {
        let at = self.oldest?;
        Some((FlowId(at), self.slot(FlowId(at)).last_packet))
    }

    pub(super) fn flow(&self, id: FlowId) -> &Flow {
        &self.slot(id).flow
    }

    pub(super) fn flow_mut(&mut self, id: FlowId) -> &mut Flow {
        &mut self.slot_mut(id.0).flow
    }

    /// All flows.
    pub(super) fn flows_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.slots.iter_mut().flatten().map(|slot| &mut slot.flow)
    }

    /// The primary address of a flow's client.
    pub(super) fn client(&self, id: FlowId) -> IpAddr {
        self.slot(id).client
    }

    /// When the oldest flow has been idle for this long.
    pub(super) fn idle_at(&self, idle: Duration) -> Option<Instant> {
        self.oldest().map(|(_, last_packet)| last_packet + idle)
    }

    fn slot(&self, id: FlowId) -> &Slot {
        let slot = self.slots[id.0 as usize].as_ref();
        slot.expect("an id is used while its flow is there")
    }

    fn slot_mut(&mut self, at: u32) -> &mut Slot {
        let slot = self.slots[at as usize].as_mut();
        slot.expect("an id is used while its flow is there")
    }

    fn touch(&mut self, now: Instant, at: u32) {
        if self.newest != Some(at) {
            self.unlink(at);
            self.link_newest(at);
        }
        self.slot_mut(at).last_packet = now;
    }

    fn link_newest(&mut self, at: u32) {
        let older = self.newest.replace(at);
        let slot = self.slot_mut(at);
        (slot.older, slot.newer) = (older, None);
        match older {
            Some(older) => self.slot_mut(older).newer = Some(at),
            None => self.oldest = Some(at),
        }
    }

    fn unlink(&mut self, at: u32) {
        let slot = self.slot_mut(at);
        let (older, newer) = (slot.older, slot.newer);
        match older {
            Some(older) => self.slot_mut(older).newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.slot_mut(newer).older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tcp::TcpSeq;

    fn flow(port: u16) -> TcpFlow {
        TcpFlow {
            source: IpAddr::from([10, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 0, 2]),
            source_port: 443,
            destination_port: port,
        }
    }

    fn insert(table: &mut Table, ms: u64, port: u16) -> FlowId {
        let now = Instant::from_millis(ms);
        table.insert(now, &flow(port), Flow::new(now, TcpSeq(port.into())))
    }

    #[test]
    fn flows_age_by_their_last_packet() {
        let mut table = Table::default();
        let ids = [1, 2, 3].map(|port| insert(&mut table, port.into(), port));
        assert_eq!(table.find(Instant::from_millis(9), &flow(1)), Some(ids[0]));
        let mut order = Vec::new();
        while let Some((id, last_packet)) = table.oldest() {
            order.push((id, last_packet));
            table.remove(id);
        }
        let at = Instant::from_millis;
        assert_eq!(order, [(ids[1], at(2)), (ids[2], at(3)), (ids[0], at(9))]);
        assert_eq!((table.len(), table.newest, table.find(at(10), &flow(1))), (0, None, None));
    }

    #[test]
    fn a_place_is_used_again() {
        let mut table = Table::default();
        let [first, second] = [1, 2].map(|port| insert(&mut table, 0, port));
        table.find(Instant::ZERO, &flow(1));
        table.remove(first);
        assert_eq!(table.peek(&flow(1)), None, "not found where it was last");
        assert_eq!(insert(&mut table, 1, 3), first);
        assert_eq!((table.peek(&flow(3)), table.peek(&flow(2))), (Some(first), Some(second)));
        assert_eq!(table.slots.len(), 2);
    }

    #[test]
    fn both_ends_and_both_versions_tell_flows_apart() {
        let mut table = Table::default();
        let one = flow(7);
        let other_server = TcpFlow { source: IpAddr::from([10, 0, 0, 3]), ..one };
        let other_port = TcpFlow { source_port: 80, ..one };
        let v6 = |last| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        let sixth = TcpFlow { source: v6(1), destination: v6(2), ..one };
        let flows = [one, other_server, other_port, sixth];
        let state = Flow::new(Instant::ZERO, TcpSeq(0));
        let ids = flows.each_ref().map(|flow| table.insert(Instant::ZERO, flow, state.clone()));
        assert_eq!(flows.each_ref().map(|flow| table.peek(flow)), ids.map(Some));
        assert_eq!(table.peek(&one.reversed()), None);
        assert_eq!(table.client(ids[3]), v6(2));
    }
}
