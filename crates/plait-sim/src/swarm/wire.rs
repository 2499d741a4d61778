//! Links of the swarm: the link model, plus duplicated and corrupted datagrams.

use plait_pair::Flying;
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::sealed::TAG_BYTES;

use super::draw::Draw;
use super::idle::IdlePath;
use super::plan::LinkPlan;
use crate::link::Link;
use crate::world::CipherChoice;

/// Bytes of IPv4 and UDP headers around a datagram.
const FRAMING_BYTES: u64 = 28;
/// A full packet on Ethernet.
const PACKET_BYTES_MAX: u64 = 1500;
const STRAY_DELAY_MAX_MS: u64 = 100;
const SPARE_BUFFERS_MAX: usize = 256;

/// A datagram on a link.
#[derive(Debug)]
pub(super) struct Datagram {
    /// The link it is on.
    pub(super) link: usize,
    /// 0 up, 1 down.
    pub(super) way: usize,
    /// The customer's binding that it comes from or goes to.
    pub(super) bindings: u16,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug)]
struct Way {
    link: Link<Datagram>,
    due: Option<Instant>,
    cuts: u32,
}

/// All links, both ways.
#[derive(Debug)]
pub(super) struct Wires {
    ways: Vec<[Way; 2]>,
    plans: Vec<LinkPlan>,
    bindings: Vec<u16>,
    /// Second copies on their way.
    strays: Flying<Datagram>,
    cipher: CipherChoice,
    draw: Draw,
    spare: Vec<Vec<u8>>,
}

impl Wires {
    pub(super) fn new(plans: &[LinkPlan], cipher: CipherChoice, mut draw: Draw) -> Self {
        let mut way = |config| Way { link: Link::new(config, draw.next()), due: None, cuts: 0 };
        let ways = plans.iter().map(|plan| plan.ways.map(&mut way)).collect();
        Self {
            ways,
            plans: plans.to_vec(),
            bindings: vec![0; plans.len()],
            strays: Flying::default(),
            cipher,
            draw,
            spare: Vec::new(),
        }
    }

    pub(super) fn next_event(&self) -> Option<Instant> {
        let due = self.ways.iter().flatten().filter_map(|way| way.due);
        due.chain(self.strays.next_at()).min()
    }

    /// Sends a copy of a datagram.
    pub(super) fn send(
        &mut self,
        now: Instant,
        (link, way): (usize, usize),
        bindings: u16,
        bytes: &[u8],
    ) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let datagram = Datagram { link, way, bindings, bytes: buffer };
        let way = &mut self.ways[link][way];
        way.link.send(now, bytes.len() as u64 + FRAMING_BYTES, datagram);
        way.due = way.link.next_event();
    }

    /// The next datagram that arrives at `now`.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Datagram> {
        while let Some(datagram) = self.take(now) {
            let Datagram { link, way, bindings, .. } = datagram;
            let is_down = way == 1;
            if is_down && bindings != self.bindings[link] {
                // The NAT no longer has this binding.
                self.reuse(datagram.bytes);
                continue;
            }
            return Some(datagram);
        }
        None
    }

    fn take(&mut self, now: Instant) -> Option<Datagram> {
        if let Some(stray) = self.strays.poll(now) {
            return Some(stray);
        }
        let ways = self.ways.iter_mut().flatten();
        for way in ways.filter(|way| way.due.is_some_and(|due| due <= now)) {
            let arrived = way.link.poll(now);
            way.due = way.link.next_event();
            if let Some(datagram) = arrived {
                return Some(self.spoil(now, datagram));
            }
        }
        None
    }

    /// Sometimes corrupts a datagram, or duplicates it.
    fn spoil(&mut self, now: Instant, mut datagram: Datagram) -> Datagram {
        let plan = &self.plans[datagram.link];
        if self.draw.happens(plan.duplicates) {
            let Datagram { link, way, bindings, ref bytes } = datagram;
            let bytes = bytes.clone();
            let at = now + self.draw.millis(0, STRAY_DELAY_MAX_MS);
            self.strays.send(at, Datagram { link, way, bindings, bytes });
        }
        if self.draw.happens(plan.corrupted) {
            self.corrupt(&mut datagram.bytes);
        }
        datagram
    }

    fn corrupt(&mut self, bytes: &mut Vec<u8>) {
        // Every datagram ends in a tag or in a MAC of the same length. The null cipher protects
        // only that, not the text.
        let first = match self.cipher {
            CipherChoice::Null => bytes.len().saturating_sub(TAG_BYTES),
            CipherChoice::Real if self.draw.one_in(4) => {
                let length = self.draw.index(bytes.len());
                bytes.truncate(length);
                return;
            }
            CipherChoice::Real => 0,
        };
        let at = first + self.draw.index(bytes.len() - first);
        bytes[at] ^= self.draw.between(1, 255) as u8;
    }

    /// Takes a buffer back.
    pub(super) fn reuse(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            self.spare.push(buffer);
        }
    }

    pub(super) fn bindings(&self, link: usize) -> u16 {
        self.bindings[link]
    }

    pub(super) fn rebind(&mut self, link: usize) {
        self.bindings[link] += 1;
    }

    pub(super) fn cut(&mut self, now: Instant, link: usize, way: usize) {
        let way = &mut self.ways[link][way];
        way.cuts += 1;
        way.link.set_cut(now, true);
        way.due = way.link.next_event();
    }

    pub(super) fn join(&mut self, now: Instant, link: usize, way: usize) {
        let way = &mut self.ways[link][way];
        way.cuts = way.cuts.saturating_sub(1);
        way.link.set_cut(now, way.cuts > 0);
        way.due = way.link.next_event();
    }

    pub(super) fn change(
        &mut self,
        now: Instant,
        (link, way): (usize, usize),
        config: crate::link::LinkConfig,
    ) {
        let way = &mut self.ways[link][way];
        way.link.reconfigure(now, config);
        way.due = way.link.next_event();
    }

    /// All links carry everything from now on.
    pub(super) fn heal(&mut self, now: Instant) {
        for (ways, plan) in self.ways.iter_mut().zip(&mut self.plans) {
            *plan = plan.healed();
            for (way, config) in ways.iter_mut().zip(plan.ways) {
                way.cuts = 0;
                way.link.set_cut(now, false);
                way.link.reconfigure(now, config);
                way.due = way.link.next_event();
            }
        }
    }

    /// What the gateways sent over a link, both directions together.
    pub(super) fn carried(&self, link: usize) -> IdlePath {
        let counters = self.ways[link].each_ref().map(|way| way.link.counters());
        IdlePath {
            packets: counters.iter().map(|counters| counters.in_packets).sum(),
            bytes: counters.iter().map(|counters| counters.in_bytes).sum(),
        }
    }

    /// The time that the longest full queue takes to drain, plus the longest delay.
    pub(super) fn delay_max(&self) -> Duration {
        let ways = self.plans.iter().flat_map(|plan| plan.ways);
        let delay = |way: crate::link::LinkConfig| {
            way.queue.time_at(way.rate, PACKET_BYTES_MAX) + way.delay + way.jitter
        };
        ways.map(delay).max().unwrap_or_default()
    }
}
