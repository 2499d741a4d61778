//! Steering by capacity (`capacity`): each packet goes over the attachment by which it arrives
//! first, as far as the acknowledgements that pass the node tell.
//!
//! The node remembers which segment it sent over which attachment, and the client's ACKs and SACK
//! blocks tell when it arrived (`ledger`). From that follow what an attachment delivers and what
//! waits in it (`delivery`). Nothing here knows of packets' other headers, of probes' addresses or
//! of other clients. `docs/algorithms/capacity.md`.

mod delivery;
mod ledger;

use std::collections::BTreeMap;

use delivery::{Delivery, Service};
use ledger::{Answer, Ledger};

use super::config::ATTACHMENTS_MAX;
use crate::scheduler::PathView;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::wire::tcp::{TcpFlags, TcpFlow, TcpPacket};

/// Flows of a client that are followed at the same time; others are steered by what these teach.
const FLOWS_MAX: usize = 256;
/// Segments of a client that are remembered at the same time, of all its flows.
const SEGMENTS_MAX: usize = 32_768;
/// A flow makes room for another one after so long without a packet.
const IDLE: Duration = Duration::from_secs(2);
/// What was learned counts for so long without anything new.
const FRESH: Duration = Duration::from_secs(5);

/// What is known of one client's attachments, and of the flows that teach it.
#[derive(Debug)]
pub(super) struct Capacity {
    attachments: Vec<Delivery>,
    flows: BTreeMap<TcpFlow, Ledger>,
    /// Segments in all ledgers.
    segments: usize,
    /// When an acknowledgement last taught something.
    taught_at: Option<Instant>,
}

impl Capacity {
    /// Nothing is known of so many attachments.
    pub(super) fn new(attachments: usize) -> Self {
        Self {
            attachments: (0..attachments).map(|_| Delivery::default()).collect(),
            flows: BTreeMap::new(),
            segments: 0,
            taught_at: None,
        }
    }

    /// The attachment by which a packet of so many bytes arrives first; `None` when too little is
    /// known for this one: nobody has taught anything lately, and it has no flow that will.
    pub(super) fn pick(
        &self,
        now: Instant,
        view: &[PathView],
        flow: Option<&TcpFlow>,
        bytes: u64,
    ) -> Option<u8> {
        let teaches = flow.is_some_and(|flow| self.flows.get(flow).is_none_or(Ledger::teaches));
        let is_fresh = self.taught_at.is_some_and(|at| now.since(at) < FRESH);
        if !teaches && !is_fresh {
            return None;
        }
        let expected = |path: &&PathView| {
            let probed = path.min_rtt;
            self.attachments[usize::from(path.id.0)].expected(now, bytes, probed)
        };
        view.iter().min_by_key(expected).map(|path| path.id.0)
    }

    /// Takes note of a packet that goes over an attachment, with the client's primary address as
    /// its destination.
    pub(super) fn sent(&mut self, now: Instant, attachment: u8, packet: &[u8]) {
        let bytes = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        let tcp = TcpPacket::read(packet);
        let is_told = tcp.is_ok_and(|tcp| self.note(now, attachment, &tcp, bytes));
        self.attachments[usize::from(attachment)].sent(now, bytes.into(), is_told);
    }

    /// Writes a segment into its flow's ledger. Returns whether its arrival will be seen.
    fn note(&mut self, now: Instant, attachment: u8, tcp: &TcpPacket<'_>, bytes: u32) -> bool {
        let flow = tcp.flow();
        if tcp.flags().any(TcpFlags::SYN | TcpFlags::RST) {
            self.forget(&flow);
            return false;
        }
        if tcp.payload_bytes() == 0 {
            return false;
        }
        if !self.flows.contains_key(&flow) && !self.make_room(now) {
            return false;
        }
        let room = SEGMENTS_MAX - self.segments;
        let ledger = self.flows.entry(flow).or_insert_with(|| Ledger::new(tcp.seq()));
        let before = ledger.len();
        let is_noted = ledger.sent(now, attachment, tcp, bytes, room);
        self.segments = self.segments + ledger.len() - before;
        is_noted
    }

    fn forget(&mut self, flow: &TcpFlow) {
        if let Some(ledger) = self.flows.remove(flow) {
            self.segments -= ledger.len();
        }
    }

    /// Whether another flow can be followed; the idle ones have to go first.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.flows.len() >= FLOWS_MAX {
            self.flows.retain(|_, ledger| now.since(ledger.last_at()) < IDLE);
            self.segments = self.flows.values().map(Ledger::len).sum();
        }
        self.flows.len() < FLOWS_MAX
    }

    /// Learns from a packet of the client, as the client sent it.
    pub(super) fn answered(&mut self, now: Instant, packet: &[u8]) {
        let Ok(tcp) = TcpPacket::read(packet) else { return };
        let flow = tcp.flow().reversed();
        if tcp.flags().any(TcpFlags::RST) {
            return self.forget(&flow);
        }
        let Some(ledger) = self.flows.get_mut(&flow) else { return };
        if tcp.flags().any(TcpFlags::SYN) || !tcp.flags().any(TcpFlags::ACK) {
            return;
        }
        let mut services = [Service::default(); ATTACHMENTS_MAX];
        let before = ledger.len();
        ledger.answered(&Answer::of(&tcp), |segment| {
            services[usize::from(segment.attachment)].add(segment.sent_at, segment.bytes);
        });
        self.segments = self.segments + ledger.len() - before;
        for (attachment, service) in self.attachments.iter_mut().zip(&services) {
            if !service.is_empty() {
                attachment.arrived(now, service);
                self.taught_at = Some(now);
            }
        }
    }

    /// Learns from the answer to a probe over an attachment: what was sent before it has arrived,
    /// or never will.
    pub(super) fn probed(&mut self, now: Instant, attachment: u8, rtt: Duration) {
        self.attachments[usize::from(attachment)].passed(now, rtt);
    }

    /// What an attachment delivers, as far as is known.
    pub(super) fn rate(&self, attachment: u8) -> Option<Rate> {
        self.attachments[usize::from(attachment)].rate()
    }
}

#[cfg(test)]
mod tests;
