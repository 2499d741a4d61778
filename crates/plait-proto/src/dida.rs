//! DIDA (paper 000): hides the disorder that packet-by-packet steering causes from TCP senders, by
//! holding duplicate ACKs on their way back until the gap fills or a timer ends.
//!
//! It decides which packets from a client go on, when, and with which SACK option. It is given
//! whole IP packets of both directions and the time, and knows nothing of attachments or of who
//! forwards. It needs no SYN, so it may begin in the middle of connections. The state machine, its
//! sources and deviations: `docs/algorithms/dida.md`.

mod config;
mod estimator;
mod flow;
pub mod high_speed;
mod hold;
pub mod holding_time;
mod sack_filter;
mod scoreboard;
mod stats;
mod table;
#[cfg(test)]
mod tests;

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use config::{DidaConfig, GapFilled, HoldPolicy, ReleasedUntil, SackHandling, UnknownName};
pub use stats::{DidaStats, FlowEstimate, Forwarded, HeldEnds};

use flow::{EARLY_DUPLICATES, Flow, Gap, Meaning, Segment, Sent};
use scoreboard::Scoreboard;
use stats::End;
use table::{FlowId, Table};

use crate::time::{Duration, Instant, earlier};
use crate::wire::tcp::{self, TcpFlags, TcpFlow, TcpPacket};

/// What the owner does with a packet from a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upstream {
    /// Forward it now; SACK blocks may have been left out of it.
    Forward,
    /// Do not forward it: a copy is kept, and comes out of [`Dida::poll_transmit`] unless its gap
    /// fills.
    Held,
}

/// All flows of a node; bounded.
///
/// After every `handle_*` and before the packet in hand is forwarded, drain
/// [`poll_transmit`](Self::poll_transmit): what it gives goes first. Then ask
/// [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Dida {
    config: DidaConfig,
    table: Table,
    /// When the hold of each gap ends; the first is the oldest of a fixed holding time, and about
    /// the oldest of any.
    deadlines: BTreeSet<(Instant, FlowId)>,
    /// Bytes kept in all gaps.
    kept_bytes: usize,
    /// Released, to be forwarded.
    out: VecDeque<Vec<u8>>,
    /// By the client's primary address; as many as the owner has clients.
    delay_differences: BTreeMap<IpAddr, Duration>,
    stats: DidaStats,
}

impl Dida {
    /// Knows no flow yet.
    pub fn new(config: DidaConfig) -> Self {
        Self {
            config,
            table: Table::default(),
            deadlines: BTreeSet::new(),
            kept_bytes: 0,
            out: VecDeque::new(),
            delay_differences: BTreeMap::new(),
            stats: DidaStats::default(),
        }
    }

    /// The configuration in force.
    pub const fn config(&self) -> &DidaConfig {
        &self.config
    }

    /// Goes on under another configuration; flows and what is held keep their place as far as the
    /// new bounds allow. Gaps held back keep their timer.
    pub fn reconfigure(&mut self, now: Instant, config: DidaConfig) {
        self.config = config;
        if config.sack != SackHandling::Filter {
            self.table.flows_mut().for_each(|flow| flow.board = Scoreboard::default());
        }
        while self.table.len() > config.flows_max {
            self.evict_oldest(now);
        }
        while self.kept_bytes > config.held_bytes_max {
            self.release_first(now);
        }
    }

    /// Takes note of a packet on its way to the client, with the client's primary address as its
    /// destination: sequence numbers, round-trip times, retransmissions. It is never held.
    pub fn handle_downstream(&mut self, now: Instant, packet: &[u8]) {
        let Ok(packet) = TcpPacket::read(packet) else { return };
        let found = self.table.find(now, &packet.flow());
        if packet.flags().any(TcpFlags::SYN | TcpFlags::RST) {
            if let Some(id) = found {
                self.stats.flows_replaced += 1;
                self.forget(now, id);
            }
            return;
        }
        let sent = match found {
            Some(id) => self.table.flow_mut(id).on_downstream(now, &packet),
            None if packet.payload_bytes() > 0 => self.meet(now, &packet),
            None => return,
        };
        match sent {
            Sent::Nothing => {}
            Sent::New => self.stats.data_segments += 1,
            Sent::Retransmission => {
                self.stats.data_segments += 1;
                self.stats.retransmissions += 1;
            }
            Sent::Elsewhere => {
                self.stats.flows_replaced += 1;
                self.forget(now, found.expect("only a known flow is elsewhere"));
                if packet.payload_bytes() > 0 {
                    self.meet(now, &packet);
                    self.stats.data_segments += 1;
                }
            }
        }
    }

    /// Decides on a packet from a client, with the client's primary address as its source.
    pub fn handle_upstream(&mut self, now: Instant, packet: &mut [u8]) -> Upstream {
        let Ok(read) = TcpPacket::read(packet) else {
            self.stats.forwarded.not_tcp += 1;
            return Upstream::Forward;
        };
        let Some(id) = self.table.find(now, &read.flow().reversed()) else {
            self.stats.forwarded.unknown_flow += 1;
            return Upstream::Forward;
        };
        let segment = Segment::of(&read);
        let (meaning, has_advanced) = self.table.flow_mut(id).on_upstream(now, &segment);
        if has_advanced {
            self.advance(now, id, &segment);
        }
        let is_filtered = self.config.sack == SackHandling::Filter && meaning.is_of_pure_ack();
        if is_filtered {
            self.learn(now, id, &segment);
        }
        if has_advanced {
            self.end_gap(now, id, End::Filled);
        } else if self.table.flow(id).gap.as_ref().is_some_and(|gap| gap.deadline <= now) {
            self.give_up(now, id, End::Expired);
        }
        let upstream = match meaning {
            Meaning::Duplicate(number)
                if self.hides_gap(now, id)
                    && (number > EARLY_DUPLICATES || is_filtered && segment.has_sack) =>
            {
                self.hold(now, id, &segment, packet)
            }
            _ if is_filtered => {
                self.tell(now, id, &segment, meaning, packet);
                Upstream::Forward
            }
            Meaning::Advancing | Meaning::WindowUpdate | Meaning::Duplicate(_) => {
                self.mask(now, id, &segment, packet);
                Upstream::Forward
            }
            _ => Upstream::Forward,
        };
        if upstream == Upstream::Forward {
            let is_released = self.table.flow(id).is_released();
            self.stats.forwarded.count(meaning, is_released);
            if has_advanced || meaning == Meaning::Data {
                let data = (segment.payload_bytes > 0).then_some(segment.seq_end);
                self.table.flow_mut(id).estimator.on_forwarded(now, segment.timestamp, data);
            }
        }
        upstream
    }

    /// Takes the measured one-way delay difference between the slowest and the quickest attachment
    /// of a client with this primary address, plus jitter. It bounds the holding time from below,
    /// or is the holding time ([`HoldPolicy::DelayDifference`]).
    pub fn set_delay_difference(&mut self, client: IpAddr, difference: Duration) {
        self.delay_differences.insert(client, difference);
    }

    /// Forgets the delay difference of a client that is no more.
    pub fn forget_client(&mut self, client: IpAddr) {
        self.delay_differences.remove(&client);
    }

    /// Does what is due at `now`: ends holds, forgets idle flows.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(deadline, id)) = self.deadlines.first()
            && deadline <= now
        {
            self.give_up(now, id, End::Expired);
        }
        while let Some((id, last_packet)) = self.table.oldest()
            && last_packet + self.config.idle <= now
        {
            self.stats.flows_idle += 1;
            self.forget(now, id);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let hold = self.deadlines.first().map(|&(deadline, _)| deadline);
        earlier(hold, self.table.idle_at(self.config.idle))
    }

    /// The next packet to forward towards its server, in order.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// Releases everything held, and leaves the flows concerned alone: the node is stopping. The
    /// gaps count without the time that they took.
    pub fn release_all(&mut self) {
        while let Some(&(_, id)) = self.deadlines.first() {
            self.give_up(Instant::ZERO, id, End::Stopped);
        }
    }

    /// Counters.
    pub fn stats(&self) -> DidaStats {
        DidaStats {
            kept_now_bytes: self.kept_bytes as u64,
            flows: self.table.len() as u64,
            ..self.stats
        }
    }

    /// What is believed of a flow, as packets to its client have it; `None` for one not known.
    pub fn estimate(&self, now: Instant, flow: &TcpFlow) -> Option<FlowEstimate> {
        let id = self.table.peek(flow)?;
        let flow = self.table.flow(id);
        let outstanding = flow.outstanding_bytes();
        Some(FlowEstimate {
            rtt_us: micros(flow.estimator.rtt()),
            window_segments: flow.estimator.window_segments(outstanding),
            since_congestion_us: micros(flow.estimator.since_congestion(now)),
            hold_us: micros(self.holding_time(now, id)),
        })
    }

    /// Adds the flow of a segment with data.
    fn meet(&mut self, now: Instant, packet: &TcpPacket<'_>) -> Sent {
        if self.config.flows_max == 0 {
            return Sent::New;
        }
        while self.table.len() >= self.config.flows_max {
            self.evict_oldest(now);
        }
        let mut flow = Flow::new(now, packet.seq());
        let sent = flow.on_downstream(now, packet);
        self.table.insert(now, &packet.flow(), flow);
        self.stats.flows_total += 1;
        sent
    }

    fn evict_oldest(&mut self, now: Instant) {
        let (id, _) = self.table.oldest().expect("a table over its bound is not empty");
        self.stats.flows_evicted += 1;
        self.forget(now, id);
    }

    /// Forgets a flow; what it held goes on.
    fn forget(&mut self, now: Instant, id: FlowId) {
        self.end_gap(now, id, End::Evicted);
        self.table.remove(id);
    }

    /// Holds a duplicate if it may be held.
    fn hold(&mut self, now: Instant, id: FlowId, segment: &Segment, packet: &[u8]) -> Upstream {
        if self.config.held_packets_per_flow_max == 0
            || !self.withhold(now, id, segment, packet.len())
        {
            return Upstream::Forward;
        }
        let gap = self.table.flow_mut(id).gap.as_mut().expect("withheld: there is a gap");
        if gap.held.len() >= self.config.held_packets_per_flow_max {
            self.give_up(now, id, End::Overflowed);
            return Upstream::Forward;
        }
        if segment.has_sack
            && let Some(owed) = gap.owed.take()
        {
            self.kept_bytes -= owed.len();
        }
        gap.held.push(packet.to_vec());
        self.keep(packet.len());
        self.stats.held += 1;
        self.stats.held_now += 1;
        self.reschedule(now, id);
        Upstream::Held
    }

    /// Takes the SACK option out of an ACK that is forwarded, if it shows a gap that is to be held
    /// back.
    fn mask(&mut self, now: Instant, id: FlowId, segment: &Segment, packet: &mut [u8]) {
        let is_on = self.config.sack == SackHandling::Mask;
        if !is_on || !segment.shows_gap() || !self.withhold(now, id, segment, packet.len()) {
            return;
        }
        self.owe(id, packet);
        let is_masked = tcp::mask_sack(packet);
        assert!(is_masked, "an unsigned packet that was read with SACK can be masked");
        self.stats.masked += 1;
    }

    /// Keeps an ACK as it came, in place of the one before it.
    fn owe(&mut self, id: FlowId, packet: &[u8]) {
        let gap = self.table.flow_mut(id).gap.as_mut().expect("withheld: there is a gap");
        let owed = gap.owed.get_or_insert_default();
        self.kept_bytes -= owed.len();
        owed.clear();
        owed.extend_from_slice(packet);
        self.keep(packet.len());
    }

    /// Whether a packet of `bytes` may be withheld from its sender now, or its SACK option: its
    /// gap's hold has begun, or begins, and there is room.
    fn withhold(&mut self, now: Instant, id: FlowId, segment: &Segment, bytes: usize) -> bool {
        if self.table.flow(id).is_released() || bytes > self.config.held_bytes_max {
            return false;
        }
        let has_begun = self.table.flow(id).gap.is_some();
        let deadline = if has_begun { None } else { self.deadline(now, id) };
        if !has_begun && deadline.is_none() {
            return false;
        }
        // What is owed is replaced by what says as much.
        let owed = self.table.flow(id).gap.as_ref().and_then(|gap| gap.owed.as_ref());
        let replaced = owed.filter(|_| segment.has_sack).map_or(0, Vec::len);
        while self.kept_bytes + bytes - replaced > self.config.held_bytes_max
            && !self.table.flow(id).is_released()
        {
            self.release_first(now);
        }
        if self.table.flow(id).is_released() {
            return false;
        }
        if let Some(deadline) = deadline {
            let gap = Gap { began: now, deadline, held: Vec::new(), owed: None };
            self.table.flow_mut(id).gap = Some(gap);
            self.deadlines.insert((deadline, id));
            self.stats.gaps += 1;
            self.stats.hold_us = micros(deadline.since(now));
        }
        true
    }

    /// When the hold of a gap ends that begins now; `None` when nothing is to be held.
    fn deadline(&self, now: Instant, id: FlowId) -> Option<Instant> {
        let board = &self.table.flow(id).board;
        if !board.is_empty() {
            return board.tells_more_at(now);
        }
        let hold = self.holding_time(now, id);
        (!hold.is_zero()).then_some(now + hold)
    }

    fn keep(&mut self, bytes: usize) {
        self.kept_bytes += bytes;
        self.stats.kept_peak_bytes = self.stats.kept_peak_bytes.max(self.kept_bytes as u64);
    }

    fn holding_time(&self, now: Instant, id: FlowId) -> Duration {
        let flow = self.table.flow(id);
        let difference = self.delay_differences.get(&self.table.client(id)).copied();
        hold::holding_time(&self.config, &flow.estimator, now, flow.outstanding_bytes(), difference)
    }

    /// Gives up the gap whose hold ends first: too much is kept.
    fn release_first(&mut self, now: Instant) {
        let &(_, id) = self.deadlines.first().expect("bytes are kept for gaps, which have timers");
        self.give_up(now, id, End::Overflowed);
    }

    /// Ends the hold of a gap that is still there: what was withheld goes on, and the flow is left
    /// alone. With [`SackHandling::Filter`] a flow whose client tells what it has is told of the
    /// holes that are old enough instead.
    fn give_up(&mut self, now: Instant, id: FlowId, end: End) {
        if end == End::Expired && !self.table.flow(id).board.is_empty() {
            return self.tell_ripe(now, id);
        }
        self.end_gap(now, id, end);
        self.table.flow_mut(id).release(self.config.released_until);
    }

    /// Takes a flow's gap out; what was kept for it is the caller's.
    fn take_gap(&mut self, id: FlowId) -> Option<Gap> {
        let gap = self.table.flow_mut(id).gap.take()?;
        self.kept_bytes -= gap.bytes();
        self.stats.held_now -= gap.held.len() as u64;
        Some(gap)
    }

    /// Ends the hold of a flow's gap, if there is one, and does with what was withheld as its end
    /// asks.
    fn end_gap(&mut self, now: Instant, id: FlowId, end: End) {
        let Some(gap) = self.take_gap(id) else { return };
        self.deadlines.remove(&(gap.deadline, id));
        let held = gap.held.len() as u64;
        let is_forwarded = end != End::Filled || self.config.on_gap_filled == GapFilled::Forward;
        self.stats.count_end(end, held, is_forwarded, now.since(gap.began));
        if is_forwarded {
            self.out.extend(gap.held);
        }
        if end != End::Filled
            && let Some(owed) = gap.owed
        {
            self.stats.unmasked += 1;
            self.out.push_back(owed);
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
