//! What senders with SACK are told: holes that have been there for the holding time, and nothing
//! above the first younger one.

use super::flow::{Gap, Meaning, Segment};
use super::scoreboard::Blocks;
use super::stats::End;
use super::table::FlowId;
use super::{Dida, HoldPolicy};

use crate::time::Instant;
use crate::wire::tcp::{self, TcpPacket};

impl Dida {
    /// Takes note of what the client says it has.
    pub(super) fn learn(&mut self, now: Instant, id: FlowId, segment: &Segment) {
        if segment.has_sack && self.config.hold != HoldPolicy::Off {
            let told_at = now + self.holding_time(now, id);
            self.table.flow_mut(id).learn(segment, told_at);
        }
    }

    /// Takes note that the acknowledgement number has advanced.
    pub(super) fn advance(&mut self, now: Instant, id: FlowId, segment: &Segment) {
        if !self.table.flow(id).board.is_empty() {
            let told_at = now + self.holding_time(now, id);
            self.table.flow_mut(id).board.advance(now, segment.ack, told_at);
        }
    }

    /// Whether the sender is not to know of the gap that duplicates ask for. Without SACK, only the
    /// timer of the gap tells.
    pub(super) fn hides_gap(&self, now: Instant, id: FlowId) -> bool {
        self.table.flow(id).board.hides_first(now).unwrap_or(true)
    }

    /// Leaves out of an ACK that is forwarded what its sender is not to know yet. What was left out
    /// is owed; an old ACK says nothing that a newer one has not said.
    pub(super) fn tell(
        &mut self,
        now: Instant,
        id: FlowId,
        segment: &Segment,
        meaning: Meaning,
        packet: &mut [u8],
    ) {
        let flow = self.table.flow(id);
        let told = flow.board.told_blocks(now, segment.ack, &segment.blocks);
        let hides = flow.board.tells_more_at(now).is_some();
        if hides && told.as_slice() != segment.blocks.as_slice() {
            let may_change = if meaning == Meaning::Old {
                flow.gap.is_some()
            } else {
                self.withhold(now, id, segment, packet.len())
            };
            if may_change {
                if meaning != Meaning::Old {
                    self.owe(id, packet);
                }
                let is_told = tcp::rewrite_sack(packet, told.as_slice());
                assert!(is_told, "an unsigned packet that was read with SACK can be rewritten");
                self.stats.masked += 1;
            }
        }
        self.reschedule(now, id);
    }

    /// Lets a gap's timer end when the sender is told more. A gap without SACK keeps its own, also
    /// when blocks come later: what it holds has waited since.
    pub(super) fn reschedule(&mut self, now: Instant, id: FlowId) {
        let flow = self.table.flow_mut(id);
        let (Some(gap), Some(at)) = (&mut flow.gap, flow.board.tells_more_at(now)) else { return };
        if at < gap.deadline {
            self.deadlines.remove(&(gap.deadline, id));
            self.deadlines.insert((at, id));
            gap.deadline = at;
        }
    }

    /// A hole has become old enough: what was held goes on, and what is owed, both with the blocks
    /// that may be told now. What is still hidden stays owed.
    pub(super) fn tell_ripe(&mut self, now: Instant, id: FlowId) {
        let Some(Gap { began, deadline, held, owed }) = self.take_gap(id) else { return };
        self.deadlines.remove(&(deadline, id));
        self.stats.count_end(End::Expired, held.len() as u64, true, now.since(began));
        let freshest = owed.clone().or_else(|| held.last().cloned());
        self.stats.unmasked += u64::from(owed.is_some());
        for mut packet in held.into_iter().chain(owed) {
            self.filter(now, id, &mut packet);
            self.out.push_back(packet);
        }
        let more_at = self.table.flow(id).board.tells_more_at(now);
        if let (Some(deadline), Some(owed)) = (more_at, freshest) {
            self.keep(owed.len());
            let gap = Gap { began: now, deadline, held: Vec::new(), owed: Some(owed) };
            self.table.flow_mut(id).gap = Some(gap);
            self.deadlines.insert((deadline, id));
            self.stats.gaps += 1;
        }
    }

    /// Writes the blocks that may be told now into a packet that was kept.
    fn filter(&self, now: Instant, id: FlowId, packet: &mut [u8]) {
        let Ok(read) = TcpPacket::read(packet) else { return };
        let (ack, blocks) = (read.ack(), Blocks::of(read.sack_blocks()));
        let told = self.table.flow(id).board.told_blocks(now, ack, &blocks);
        tcp::rewrite_sack(packet, told.as_slice());
    }
}
