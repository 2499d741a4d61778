//! The packets captured on the links.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::super::Figure;
use super::{MARKED, MARKER};
use crate::emulator::Way;
use crate::gateway::captured::{Captured, holds, sort};
use crate::topology::Topology;

/// A datagram of a gateway.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    pub(super) to: SocketAddr,
    pub(super) payload: Vec<u8>,
}

/// Captured datagrams by kind, the shortest of each kind first.
pub(super) type ByKind = BTreeMap<u8, Vec<Datagram>>;

/// All packets on the links.
#[derive(Debug, Default)]
pub(super) struct Seen {
    total: usize,
    marked: usize,
    foreign: Vec<Box<[u8]>>,
    up: ByKind,
    down: ByKind,
}

impl Seen {
    /// Takes the captures of a topology's links.
    pub(super) fn on(topology: &Topology) -> Self {
        let mut seen = Self::default();
        topology.captured().for_each(|(way, packet)| seen.add(way, packet));
        for datagrams in seen.up.values_mut().chain(seen.down.values_mut()) {
            datagrams.sort_by_key(|datagram| datagram.payload.len());
        }
        seen
    }

    fn add(&mut self, way: Way, packet: Box<[u8]>) {
        self.total += 1;
        self.marked += usize::from(holds(&packet, MARKER));
        match sort(&packet) {
            Captured::Plait { kind, to, payload } => {
                let kinds = if way == Way::Up { &mut self.up } else { &mut self.down };
                let datagram = Datagram { to, payload: payload.to_vec() };
                kinds.entry(kind).or_default().push(datagram);
            }
            Captured::Neighbourhood => {}
            Captured::Foreign => self.foreign.push(packet),
        }
    }

    /// The datagrams of one direction.
    pub(super) fn datagrams(&self, way: Way) -> &ByKind {
        match way {
            Way::Up => &self.up,
            Way::Down => &self.down,
        }
    }

    /// The figures of the capture; `arrived` marked datagrams have come through the bond.
    pub(super) fn figures(&self, arrived: usize) -> Vec<Figure> {
        let marked = 2 * MARKED as u64;
        let mut figures = vec![
            Figure::count("marked datagrams that arrived through the bond", arrived as u64)
                .exactly(marked as f64, "the traffic was there to be seen"),
            Figure::count("captured packets", self.total as u64)
                .at_least((marked + 1) as f64, "the traffic was there to be seen"),
            Figure::count("captured packets with the marker", self.marked as u64)
                .exactly(0.0, "no clear-text mode"),
            Figure::count("captured packets that are no plait datagram", self.foreign.len() as u64)
                .exactly(0.0, "spec W-1"),
        ];
        if let Some(packet) = self.foreign.first() {
            figures.push(Figure::text("the first of them", format!("{packet:02x?}")));
        }
        figures
    }
}
