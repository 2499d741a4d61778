//! Restores the order of a bond's packets at the egress.
//!
//! It decides when a packet may go on: its predecessor in its lane was delivered or given up. It is
//! given bond sequence numbers, distances to predecessors and the time, and knows neither lanes nor
//! paths' state. A packet that may go on at once is never copied. Rules, sources and deviations:
//! `docs/algorithms/resequencing.md`.

mod config;
pub mod delay_spread;
mod history;
mod ring;
mod stats;
mod store;
#[cfg(test)]
mod tests;

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub use config::{LatePolicy, ResequencerConfig, Timer};
pub use stats::{Released, ResequencerStats, WAITING_BUCKETS_MS};

use history::History;
use ring::{Ring, State};
use store::Store;

use crate::seq::{BondSeq, PathId};
use crate::time::{Duration, Instant, earlier};

/// What became of a packet at its arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inserted {
    /// Handed on before `insert` returned.
    Delivered,
    /// Copied; it waits for its predecessor.
    Waiting,
    /// Handed on although it had been given up ([`LatePolicy::Deliver`]).
    LateDelivered,
    /// Dropped: it had been given up.
    LateDropped,
    /// Dropped: it is older than the history.
    Forgotten,
    /// Dropped: it was delivered before, waits already, or arrived late before.
    Duplicate,
}

/// Losses found since the previous call of [`Resequencer::drain_lost`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NewlyLost {
    /// Sequence numbers newly lost, each counted once: when it became known lost or was given up,
    /// whichever came first.
    pub lost: u64,
    /// Packets that arrived after all, by the path that brought them; they had been in `lost` of
    /// this or an earlier call.
    pub recovered: Vec<(PathId, u64)>,
}

/// Why waiting packets are let go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reason {
    InOrder,
    KnownLost,
    Timer,
    Overflow,
}

/// Everything below `below` had been sent before a packet that arrived at `since`; it is overdue
/// one timeout later, even if nobody waits for it.
#[derive(Clone, Copy, Debug)]
struct Mark {
    below: u64,
    since: Instant,
}

/// The reorder buffer of one bond and direction.
///
/// Every sequence number below the *floor* is resolved: delivered or given up. From the floor on
/// the ring knows each number as missing, waiting or delivered.
#[derive(Debug)]
pub struct Resequencer {
    config: ResequencerConfig,
    timeout: Duration,
    /// All below are resolved.
    floor: u64,
    /// One more than the highest number seen or announced; never below `floor`.
    next: u64,
    /// Missing numbers below have been counted known lost.
    known_lost_below: u64,
    ring: Ring,
    store: Store,
    history: History,
    /// Waiting packets by arrival; entries of packets that went on are removed when they reach the
    /// front.
    arrivals: VecDeque<(Instant, u64)>,
    mark: Option<Mark>,
    /// Packets whose predecessor was just resolved, lowest number first. Empty between calls.
    ready: BinaryHeap<Reverse<(u64, u32)>>,
    lost: NewlyLost,
    stats: ResequencerStats,
    /// Slots looked at one after the other, since the start: each at most twice for each packet
    /// that arrived (docs/threat-model.md).
    slots_walked: u64,
}

impl Resequencer {
    /// A resequencer whose first sequence number is 0.
    pub fn new(config: ResequencerConfig) -> Self {
        Self::starting_at(config, BondSeq(0))
    }

    /// A resequencer whose first sequence number is `first`.
    ///
    /// # Panics
    ///
    /// When `config.packets_max` is not a power of two from 64 to 65536.
    pub fn starting_at(config: ResequencerConfig, first: BondSeq) -> Self {
        let span = config.packets_max;
        assert!(
            span.is_power_of_two() && (64..=65536).contains(&span),
            "packets_max must be a power of two from 64 to 65536, is {span}"
        );
        let mut stats = ResequencerStats::default();
        stats.note_timeout(config.timer.initial());
        Self {
            timeout: config.timer.initial(),
            floor: first.0,
            next: first.0,
            known_lost_below: first.0,
            ring: Ring::new(span),
            store: Store::default(),
            history: History::new(first.0),
            arrivals: VecDeque::new(),
            mark: None,
            ready: BinaryHeap::new(),
            lost: NewlyLost::default(),
            stats,
            slots_walked: 0,
            config,
        }
    }

    /// The configuration in force.
    pub const fn config(&self) -> ResequencerConfig {
        self.config
    }

    /// Goes on under another configuration; what waits keeps its place. The ring keeps its span.
    pub fn reconfigure(&mut self, config: ResequencerConfig) {
        if config.timer != self.config.timer {
            self.timeout = config.timer.initial();
            self.stats.note_timeout(self.timeout);
        }
        self.config = ResequencerConfig { packets_max: self.config.packets_max, ..config };
    }

    /// Takes a packet that arrived at `now` over `path`; `prev` is the distance to its predecessor
    /// in its lane, 0 when it has none to wait for. Hands to `out`, in order, all that may go on
    /// now.
    pub fn insert(
        &mut self,
        now: Instant,
        seq: BondSeq,
        prev: u16,
        path: PathId,
        packet: &[u8],
        out: &mut impl FnMut(&[u8]),
    ) -> Inserted {
        let seq = seq.0;
        if seq < self.floor {
            return self.insert_late(seq, path, packet, out);
        }
        if seq - self.floor >= self.ring.span_max() {
            self.release_below(now, seq - self.ring.span_max() + 1, Reason::Overflow, out);
        }
        self.ring.ensure(self.floor, seq - self.floor + 1);
        if self.ring.state(seq) != State::Missing {
            self.stats.duplicates += 1;
            return Inserted::Duplicate;
        }
        if seq < self.known_lost_below {
            self.note_recovered(path);
        }
        self.next = self.next.max(seq + 1);
        let inserted = if self.must_wait(seq, prev)
            && self.make_room(now, seq, prev, packet.len() as u64, out)
        {
            self.keep(now, seq, prev, packet);
            Inserted::Waiting
        } else {
            self.deliver_at_once(now, seq, packet, out);
            Inserted::Delivered
        };
        self.settle(now);
        inserted
    }

    /// When [`Self::handle_timeout`] is due; `None` while nothing is missing.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let head = self.arrivals.front().map(|&(arrival, _)| arrival);
        let mark = self.mark.map(|mark| mark.since);
        earlier(head, mark).map(|since| since + self.timeout)
    }

    /// Gives up what is overdue at `now` and hands on what waited for it.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut impl FnMut(&[u8])) {
        while let Some(&(arrival, seq)) = self.arrivals.front()
            && arrival + self.timeout <= now
        {
            self.release_below(now, seq, Reason::Timer, out);
            self.forget_gone_arrivals();
        }
        if let Some(mark) = self.mark
            && mark.since + self.timeout <= now
        {
            self.release_below(now, mark.below, Reason::Timer, out);
        }
        self.settle(now);
    }

    /// Takes note that every live path has passed everything below `all_passed`: what is missing
    /// there will not come. Counted and released as the configuration says.
    pub fn path_passed(&mut self, now: Instant, all_passed: BondSeq, out: &mut impl FnMut(&[u8])) {
        let bound = all_passed.0;
        let idle = !self.config.count_known_lost && !self.config.release_known_lost;
        if idle || bound <= self.floor {
            return;
        }
        if bound - self.floor > self.ring.span_max() {
            self.release_below(now, bound - self.ring.span_max(), Reason::Overflow, out);
        }
        self.ring.ensure(self.floor, bound.saturating_sub(self.floor));
        self.next = self.next.max(bound);
        if self.config.count_known_lost {
            self.count_known_lost(bound);
        }
        if self.config.release_known_lost && bound > self.floor {
            self.release_below(now, bound, Reason::KnownLost, out);
        }
        self.settle(now);
    }

    /// Sets the timeout of [`Timer::Adaptive`], kept within its bounds but at least `least`, which
    /// may be beyond them; waiting packets follow it too. [`Timer::Fixed`] ignores it.
    pub fn set_timeout(&mut self, timeout: Duration, least: Duration) {
        if let Timer::Adaptive { min, max } = self.config.timer {
            self.timeout = timeout.max(least).clamp(min, max.max(least));
            self.stats.note_timeout(self.timeout);
        }
    }

    /// The timeout in force.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The number after the highest one seen, for the expansion of truncated numbers.
    pub fn expected_next(&self) -> BondSeq {
        BondSeq(self.next)
    }

    /// The floor: every number below it was delivered or given up.
    pub fn floor(&self) -> BondSeq {
        BondSeq(self.floor)
    }

    /// Whether [`Self::drain_lost`] has something to tell.
    pub fn has_lost(&self) -> bool {
        self.lost.lost > 0 || !self.lost.recovered.is_empty()
    }

    /// Losses and recoveries since the previous call.
    pub fn drain_lost(&mut self) -> NewlyLost {
        core::mem::take(&mut self.lost)
    }

    /// Counters since the start, and what waits now.
    pub fn stats(&self) -> ResequencerStats {
        ResequencerStats {
            waiting_now_packets: self.store.packets(),
            waiting_now_bytes: self.store.bytes(),
            ..self.stats
        }
    }

    /// Slots that were looked at one after the other, since the start.
    pub const fn slots_walked(&self) -> u64 {
        self.slots_walked
    }

    fn insert_late(
        &mut self,
        seq: u64,
        path: PathId,
        packet: &[u8],
        out: &mut impl FnMut(&[u8]),
    ) -> Inserted {
        match self.history.seen(seq) {
            Some(true) => {
                self.stats.duplicates += 1;
                return Inserted::Duplicate;
            }
            Some(false) => {
                self.history.set_seen(seq);
                self.note_recovered(path);
                if self.config.late == LatePolicy::Deliver {
                    self.stats.late_delivered += 1;
                    out(packet);
                    return Inserted::LateDelivered;
                }
            }
            // It may have been delivered, so it never is again.
            None => {
                self.stats.late_dropped += 1;
                return Inserted::Forgotten;
            }
        }
        self.stats.late_dropped += 1;
        Inserted::LateDropped
    }

    fn note_recovered(&mut self, path: PathId) {
        match self.lost.recovered.iter_mut().find(|(id, _)| *id == path) {
            Some((_, count)) => *count += 1,
            None => self.lost.recovered.push((path, 1)),
        }
    }

    /// The predecessor of `seq` while it is not resolved.
    fn open_predecessor(&self, seq: u64, prev: u16) -> Option<u64> {
        let predecessor = seq.checked_sub(u64::from(prev))?;
        let open = prev != 0
            && predecessor >= self.floor
            && self.ring.state(predecessor) != State::Delivered;
        open.then_some(predecessor)
    }

    fn must_wait(&self, seq: u64, prev: u16) -> bool {
        self.open_predecessor(seq, prev).is_some()
    }

    /// Gives up from the floor upwards until `bytes` more fit. False when that let `seq` go on.
    fn make_room(
        &mut self,
        now: Instant,
        seq: u64,
        prev: u16,
        bytes: u64,
        out: &mut impl FnMut(&[u8]),
    ) -> bool {
        while self.store.bytes() + bytes > self.config.bytes_max && self.store.packets() > 0 {
            let lowest = self.ring.next_waiting(self.floor, self.next);
            let lowest = lowest.expect("the store holds a packet, so one in the ring waits");
            self.release_below(now, lowest.min(seq), Reason::Overflow, out);
            if !self.must_wait(seq, prev) {
                return false;
            }
        }
        true
    }

    fn keep(&mut self, now: Instant, seq: u64, prev: u16, packet: &[u8]) {
        let predecessor =
            self.open_predecessor(seq, prev).expect("only a packet with an open predecessor waits");
        let next_waiter = self.ring.first_waiter(predecessor);
        let id = self.store.insert(seq, now, next_waiter, packet);
        self.ring.set_first_waiter(predecessor, id);
        self.ring.set_state(seq, State::Waiting(id));
        self.arrivals.push_back((now, seq));
        self.stats.waited += 1;
        self.stats.peak_packets = self.stats.peak_packets.max(self.store.packets());
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.store.bytes());
    }

    fn deliver_at_once(
        &mut self,
        now: Instant,
        seq: u64,
        packet: &[u8],
        out: &mut impl FnMut(&[u8]),
    ) {
        out(packet);
        self.stats.at_once += 1;
        // Overflow may have moved the floor past a number that went on without waiting.
        assert!(seq >= self.floor, "a packet in hand is not resolved");
        self.ring.set_state(seq, State::Delivered);
        self.collect_waiters(seq, 0);
        self.release_ready(now, Reason::InOrder, out);
        self.advance_floor();
    }

    /// Resolves everything below `bound`: what is missing is given up, what waits goes on in order
    /// of sequence numbers; successors from `bound` on follow. Only numbers of which something
    /// arrived are looked at, each once, so that a jump costs no more than any packet.
    fn release_below(
        &mut self,
        now: Instant,
        bound: u64,
        reason: Reason,
        out: &mut impl FnMut(&[u8]),
    ) {
        if bound <= self.floor {
            return;
        }
        self.history.advance(bound);
        let mut missing_from = self.floor;
        while let Some(seq) = self.ring.next_filled(missing_from, bound.min(self.next)) {
            self.slots_walked += 1;
            let state = self.ring.state(seq);
            let missing_to = if state == State::Missing { seq + 1 } else { seq };
            self.count_given_up(missing_from, missing_to);
            missing_from = seq + 1;
            if let State::Waiting(id) = state {
                self.deliver_waiting(now, id, reason, out);
            }
            if state != State::Missing {
                self.history.set_seen(seq);
            }
            self.collect_waiters(seq, bound);
            self.ring.clear(seq);
        }
        self.count_given_up(missing_from, bound);
        self.next = self.next.max(bound);
        self.floor = bound;
        self.release_ready(now, reason, out);
        self.advance_floor();
    }

    fn count_given_up(&mut self, from: u64, to: u64) {
        self.stats.given_up += to.saturating_sub(from);
        self.lost.lost += to.saturating_sub(from.max(self.known_lost_below));
    }

    fn count_known_lost(&mut self, bound: u64) {
        let from = self.known_lost_below.max(self.floor);
        let mut missing = bound.saturating_sub(from);
        let mut at = from;
        while let Some(seq) = self.ring.next_filled(at, bound) {
            self.slots_walked += 1;
            missing -= u64::from(self.ring.state(seq) != State::Missing);
            at = seq + 1;
        }
        self.stats.known_lost += missing;
        self.lost.lost += missing;
        self.known_lost_below = self.known_lost_below.max(bound);
    }

    /// Makes the waiters of `seq` ready, except those below `bound`, whose turn comes anyway.
    fn collect_waiters(&mut self, seq: u64, bound: u64) {
        let mut waiter = self.ring.take_waiters(seq);
        while let Some(id) = waiter {
            let entry = self.store.get(id);
            waiter = entry.next_waiter;
            if entry.seq >= bound {
                self.ready.push(Reverse((entry.seq, id)));
            }
        }
    }

    fn release_ready(&mut self, now: Instant, reason: Reason, out: &mut impl FnMut(&[u8])) {
        while let Some(Reverse((seq, id))) = self.ready.pop() {
            self.deliver_waiting(now, id, reason, out);
            self.ring.set_state(seq, State::Delivered);
            self.collect_waiters(seq, 0);
        }
    }

    fn deliver_waiting(
        &mut self,
        now: Instant,
        id: u32,
        reason: Reason,
        out: &mut impl FnMut(&[u8]),
    ) {
        let entry = self.store.get(id);
        out(&entry.packet);
        self.stats.count_released(reason, now.since(entry.arrival));
        self.store.remove(id);
    }

    fn advance_floor(&mut self) {
        while self.floor < self.next && self.ring.state(self.floor) == State::Delivered {
            self.slots_walked += 1;
            self.history.advance(self.floor + 1);
            self.history.set_seen(self.floor);
            self.ring.clear(self.floor);
            self.floor += 1;
        }
    }

    fn forget_gone_arrivals(&mut self) {
        while let Some(&(_, seq)) = self.arrivals.front()
            && (seq < self.floor || !matches!(self.ring.state(seq), State::Waiting(_)))
        {
            self.arrivals.pop_front();
        }
    }

    /// Restores what holds between calls: a live head of `arrivals`, and a mark iff something is
    /// missing.
    fn settle(&mut self, now: Instant) {
        self.forget_gone_arrivals();
        if self.floor == self.next {
            self.mark = None;
        } else if self.mark.is_none_or(|mark| mark.below <= self.floor) {
            self.mark = Some(Mark { below: self.next, since: now });
        }
    }
}
