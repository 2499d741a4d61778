//! What a path has sent and not yet seen acknowledged: bytes in flight, round-trip samples and the
//! delivery rate.
//!
//! Numbers here count the path's datagrams through all epochs; the ingress translates packet
//! numbers, which start again with each epoch.

mod large;
mod left_out;
mod outcome;
#[cfg(test)]
mod tests;
mod windowed_max;

pub use outcome::{AckOutcome, Newest, NumberRange};

use std::collections::VecDeque;

use large::LargeDatagrams;
use left_out::LeftOut;
use windowed_max::WindowedMax;

use super::kept::{Keeper, KeptPacket, KeptSlot};
use crate::congestion::PacketState;
use crate::seq::PathId;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::window_set::WindowSet;
use crate::wire::sealed::DataPrefix;

/// Most datagrams remembered; older ones count as lost.
const OUTSTANDING_MAX: usize = 1 << 16;
/// A datagram is lost when this many later ones arrived (RFC 9002 §6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// A datagram found lost is remembered so long after it was sent, in case it only was overtaken.
const LOST_REMEMBERED: Duration = Duration::from_millis(100);
/// The same where lost packets are sent again: whether one only was overtaken is worth knowing.
const LOST_REMEMBERED_TO_LEARN: Duration = Duration::from_millis(500);
/// A packet that was lost so often is not sent again.
const SENDS_MAX: u8 = 4;
/// A path that reorders by more is taken to lose.
const REORDERING_MAX: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Outstanding,
    Acked,
    Lost,
}

#[derive(Debug)]
struct Sent {
    at: Instant,
    bytes: u32,
    state: State,
    /// The packet itself, for as long as it is on its way.
    kept: Option<KeptSlot>,
    /// Bytes delivered, and when, at the time of sending (the estimator of BBR,
    /// draft-cheng-iccrg-delivery-rate-estimation-02 §3).
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// There was too little to send when it left.
    app_limited: bool,
    /// What the congestion controller wants to see again, field by field: so that this is no
    /// longer than a cache line.
    sent_bytes_total: u64,
    in_flight_bytes: u64,
    is_restrained: bool,
}

impl Sent {
    const fn packet(&self) -> PacketState {
        let Self { sent_bytes_total, in_flight_bytes, is_restrained, .. } = *self;
        PacketState { sent_bytes_total, in_flight_bytes, is_restrained }
    }
}

/// The datagrams of a path that are on their way.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct SentDatagrams {
    /// Number of the front of `outstanding`.
    base: u64,
    outstanding: VecDeque<Sent>,
    in_flight_bytes: u64,
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Datagrams below this number left, or were on their way, while there was too little to send.
    app_limited_below: u64,
    /// Numbers on their way.
    in_flight: WindowSet,
    /// Numbers on their way or lost: acknowledgements of others say nothing.
    unacknowledged: WindowSet,
    keeper: Keeper,
    /// Highest number that was ever acknowledged, and one more.
    acked_below: u64,
    /// Packets found lost, when they are to be sent again; `None` when they are not.
    lost: Option<Vec<KeptPacket>>,
    /// How long before the newest arrival a datagram must have been sent to count as lost: those
    /// that were found lost and came after all had been overtaken by so much.
    reordering: Duration,
    /// When the last-sent datagram of all that arrived was sent.
    newest_sent_at: Instant,
    rate: WindowedMax,
    large: LargeDatagrams,
    left_out: LeftOut,
    /// Datagrams looked at one after the other because of acknowledgements, since the start: each
    /// at most twice, and one for each acknowledgement (docs/threat-model.md).
    slots_walked: u64,
}

impl Default for SentDatagrams {
    fn default() -> Self {
        Self {
            base: 0,
            outstanding: VecDeque::new(),
            in_flight: WindowSet::default(),
            unacknowledged: WindowSet::default(),
            in_flight_bytes: 0,
            delivered_bytes: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            acked_below: 0,
            app_limited_below: 0,
            keeper: Keeper::default(),
            lost: None,
            reordering: Duration::ZERO,
            newest_sent_at: Instant::ZERO,
            rate: WindowedMax::default(),
            large: LargeDatagrams::above(u32::MAX, 0),
            left_out: LeftOut::default(),
            slots_walked: 0,
        }
    }
}

impl SentDatagrams {
    /// The number that the next datagram gets.
    pub fn next_number(&self) -> u64 {
        self.base + self.outstanding.len() as u64
    }

    /// Notes a datagram of `bytes` at the IP layer.
    pub fn sent(&mut self, now: Instant, bytes: u32) {
        if self.in_flight_bytes == 0 {
            self.delivered_at = now;
            self.first_sent_at = now;
        }
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.forget_front();
        }
        let number = self.next_number();
        for numbers in [&mut self.in_flight, &mut self.unacknowledged] {
            numbers.ensure(self.base, number + 1 - self.base);
            numbers.insert(number);
        }
        self.outstanding.push_back(Sent {
            at: now,
            bytes,
            state: State::Outstanding,
            kept: None,
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.acked_below < self.app_limited_below,
            sent_bytes_total: 0,
            in_flight_bytes: 0,
            is_restrained: false,
        });
        self.in_flight_bytes += u64::from(bytes);
    }

    /// Keeps the packet of the datagram sent last, so that it can be sent again.
    pub fn keep(&mut self, prefix: DataPrefix, taken_at: Instant, packet: &[u8]) {
        if let Some(sent) = self.outstanding.back_mut() {
            sent.kept = Some(self.keeper.keep(prefix, taken_at, packet));
        }
    }

    /// The packet of the datagram sent last has been sent so often.
    pub fn note_sends(&mut self, sends: u8) {
        if let Some(kept) = self.last_kept() {
            kept.sends = sends;
        }
    }

    /// The packet of the datagram sent last may be sent again over this path only.
    pub fn pin(&mut self, path: PathId) {
        if let Some(kept) = self.last_kept() {
            kept.pin = Some(path);
        }
    }

    fn last_kept(&mut self) -> Option<&mut KeptPacket> {
        let slot = self.outstanding.back()?.kept.as_ref()?;
        Some(self.keeper.get_mut(slot))
    }

    /// Bytes of the packets that are kept.
    pub const fn kept_bytes(&self) -> u64 {
        self.keeper.bytes()
    }

    /// Notes a number that is left out: nobody ever receives it.
    pub fn leave_out(&mut self) {
        self.left_out.add(self.next_number());
        self.sent_unacknowledged();
    }

    /// Whether any of these runs, from the highest down, names a number that was left out.
    pub fn names_left_out(&self, ranges: impl Iterator<Item = NumberRange>) -> bool {
        self.left_out.is_named(ranges)
    }

    /// Notes a datagram that asks for no acknowledgement: it uses up a number and nothing else.
    pub fn sent_unacknowledged(&mut self) {
        if self.outstanding.is_empty() {
            self.base += 1;
            return;
        }
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.forget_front();
        }
        self.outstanding.push_back(Sent {
            at: Instant::ZERO,
            bytes: 0,
            state: State::Acked,
            kept: None,
            delivered_bytes: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            app_limited: false,
            sent_bytes_total: 0,
            in_flight_bytes: 0,
            is_restrained: false,
        });
    }

    /// What the congestion controller wants to see again with the datagram sent last.
    pub fn note_packet_state(&mut self, packet: PacketState) {
        if let Some(sent) = self.outstanding.back_mut() {
            let PacketState { sent_bytes_total, in_flight_bytes, is_restrained } = packet;
            sent.sent_bytes_total = sent_bytes_total;
            sent.in_flight_bytes = in_flight_bytes;
            sent.is_restrained = is_restrained;
        }
    }

    /// There is less to send than the path would take: what it delivers until all that is on its
    /// way now has arrived may be less than it can carry.
    pub fn note_app_limited(&mut self) {
        self.app_limited_below = self.next_number();
    }

    /// From now on packets that are found lost are to be sent again: [`Self::take_lost`].
    pub fn collect_lost(&mut self) {
        self.lost.get_or_insert_default();
    }

    /// From now on packets that are found lost are forgotten.
    pub fn leave_lost(&mut self) {
        self.lost = None;
    }

    /// The packets found lost since the last call, the oldest first.
    pub fn take_lost(&mut self) -> Vec<KeptPacket> {
        self.lost.as_mut().map(core::mem::take).unwrap_or_default()
    }

    fn forget_front(&mut self) {
        if let Some(front) = self.outstanding.pop_front() {
            if front.state == State::Outstanding {
                self.in_flight.remove(self.base);
                self.in_flight_bytes -= u64::from(front.bytes);
                self.large.lost(self.base, front.bytes);
            }
            if front.state != State::Acked {
                self.unacknowledged.remove(self.base);
            }
            if let Some(kept) = front.kept {
                self.keeper.let_go(kept);
            }
            self.base += 1;
        }
    }

    /// Forgets those at the front that have arrived, or were found lost long ago; none of them has
    /// its packet any more.
    fn forget_settled(&mut self, now: Instant, remembered: Duration) {
        let is_settled = |sent: &Sent| match sent.state {
            State::Outstanding => false,
            State::Acked => true,
            State::Lost => sent.at + remembered < now,
        };
        if !self.outstanding.front().is_some_and(is_settled) {
            return;
        }
        let next = self.next_number();
        let mut end = self.in_flight.next(self.base, next).unwrap_or(next);
        // Of those that were lost the later ones were sent later.
        let is_old = |number| is_settled(&self.outstanding[(number - self.base) as usize]);
        let mut from = self.base;
        while let Some(mut lost) = self.unacknowledged.run(from, end) {
            if lost.highest().is_some_and(is_old) {
                self.unacknowledged.remove_run(lost);
                from = lost.end();
            } else if let Some(young) = lost.find(|number| !is_old(*number)) {
                end = young;
            }
        }
        self.outstanding.drain(..(end - self.base) as usize);
        self.base = end;
    }

    /// Notes an acknowledgement that took so much longer than at best on its way (`late_by`): runs
    /// from the highest down. Runs that name what was never sent are ignored.
    pub fn acked(
        &mut self,
        now: Instant,
        late_by: Duration,
        ranges: impl Iterator<Item = NumberRange>,
    ) -> AckOutcome {
        // Acknowledgements that waited together come together: of the rate of delivery they say
        // nothing.
        self.delivered_at = self.delivered_at.max(now.saturating_sub(late_by));
        let mut outcome = AckOutcome::default();
        let mut highest = None;
        for range in ranges {
            if range.high >= self.next_number() {
                return outcome;
            }
            let first = highest.is_none();
            highest.get_or_insert(range.high);
            if range.high >= self.acked_below {
                self.acked_below = range.high + 1;
                outcome.is_news = true;
            }
            if range.high < self.base {
                break;
            }
            if first {
                outcome.elapsed = self.elapsed_of(now, range.high);
                self.note_newest(range.high);
            }
            let mut from = range.low.max(self.base);
            if self.unacknowledged.has_plainly_none(from, range.high + 1) {
                continue;
            }
            while let Some(run) = self.unacknowledged.take_run(from, range.high + 1) {
                self.slots_walked += u64::from(run.len());
                self.in_flight.remove_run(run);
                for number in run {
                    self.ack_one(now, number, &mut outcome);
                }
                from = run.end();
            }
        }
        if let Some(highest) = highest {
            self.find_lost(highest, &mut outcome);
        }
        let remembered =
            if self.lost.is_some() { LOST_REMEMBERED_TO_LEARN } else { LOST_REMEMBERED };
        self.forget_settled(now, remembered);
        outcome
    }

    /// Time since a datagram was sent that is not yet known to have arrived.
    pub fn elapsed_of(&self, now: Instant, number: u64) -> Option<Duration> {
        let sent = self.outstanding.get(usize::try_from(number.checked_sub(self.base)?).ok()?)?;
        (sent.state == State::Outstanding).then(|| now.since(sent.at))
    }

    /// Takes note of when the last-sent of all that arrived was sent.
    fn note_newest(&mut self, number: u64) {
        let sent = number.checked_sub(self.base).and_then(|at| self.outstanding.get(at as usize));
        if let Some(sent) = sent {
            self.newest_sent_at = self.newest_sent_at.max(sent.at);
        }
    }

    fn ack_one(&mut self, now: Instant, number: u64, outcome: &mut AckOutcome) {
        let Some(sent) = self.outstanding.get_mut((number - self.base) as usize) else { return };
        match sent.state {
            State::Acked => return,
            State::Outstanding => {
                self.in_flight_bytes -= u64::from(sent.bytes);
                outcome.acked_datagrams += 1;
            }
            State::Lost => {
                outcome.recovered_datagrams += 1;
                let overtaken = self.newest_sent_at.since(sent.at);
                self.reordering =
                    self.reordering.max(overtaken + overtaken / 4).min(REORDERING_MAX);
            }
        }
        outcome.acked_bytes += u64::from(sent.bytes);
        if let Some(kept) = sent.kept.take() {
            self.keeper.let_go(kept);
        }
        sent.state = State::Acked;
        self.large.acked(number, sent.bytes);
        self.delivered_bytes += u64::from(sent.bytes);
        self.first_sent_at = sent.at;
        let delivered_bytes = self.delivered_bytes - sent.delivered_bytes;
        // The longer of the two intervals: a burst of acknowledgements must not pass for speed.
        let interval =
            self.delivered_at.since(sent.delivered_at).max(sent.at.since(sent.first_sent_at));
        self.rate.update(now, delivered_bytes, interval);
        if outcome.newest.is_none_or(|newest| newest.number < number) {
            let (packet, app_limited) = (sent.packet(), sent.app_limited);
            outcome.newest =
                Some(Newest { number, packet, delivered_bytes, interval, app_limited });
        }
    }

    /// Whatever is still out three numbers below the highest that arrived is lost; where packets
    /// were seen to overtake each other, only when it is late by more than they ever were.
    fn find_lost(&mut self, highest: u64, outcome: &mut AckOutcome) {
        let Some(limit) = (highest + 1).checked_sub(PACKET_THRESHOLD + self.base) else { return };
        let sent_before = match self.lost {
            Some(_) => self.newest_sent_at.saturating_sub(self.reordering),
            None => Instant::FAR_FUTURE,
        };
        let mut from = self.base;
        while let Some(run) = self.in_flight.run(from, self.base + limit) {
            let is_young =
                |number: &u64| self.outstanding[(number - self.base) as usize].at > sent_before;
            // Whatever comes after a young one was sent later.
            let young = run.highest().filter(is_young).and_then(|_| { run }.find(is_young));
            let late = young.map_or(run, |young| run.below(young));
            self.slots_walked += u64::from(late.len()) + u64::from(young.is_some());
            self.in_flight.remove_run(late);
            late.for_each(|number| self.lose_one(number, outcome));
            if young.is_some() {
                break;
            }
            from = run.end();
        }
    }

    fn lose_one(&mut self, number: u64, outcome: &mut AckOutcome) {
        let Some(sent) = self.outstanding.get_mut((number - self.base) as usize) else { return };
        sent.state = State::Lost;
        self.in_flight_bytes -= u64::from(sent.bytes);
        self.large.lost(number, sent.bytes);
        outcome.lost_datagrams += 1;
        outcome.lost_bytes += u64::from(sent.bytes);
        let Some(kept) = sent.kept.take() else { return };
        match &mut self.lost {
            Some(lost) if self.keeper.get(&kept).sends < SENDS_MAX => {
                lost.push(self.keeper.hand_over(kept))
            }
            // The peer counts it lost as well, and waits for it no longer.
            _ => self.keeper.let_go(kept),
        }
    }

    /// Datagrams that acknowledgements made this side look at, since the start.
    pub const fn slots_walked(&self) -> u64 {
        self.slots_walked
    }

    /// Large datagrams lost since the last one that arrived.
    pub const fn large_lost(&self) -> u32 {
        self.large.count_lost()
    }

    /// Counts large ones anew; they are those of more than `bytes`.
    pub fn count_large_above(&mut self, bytes: u32) {
        self.large = LargeDatagrams::above(bytes, self.next_number());
    }

    /// Bytes on their way.
    pub const fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Bytes known to have arrived, since the start.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Highest delivery rate of the last second; zero before the first sample.
    pub fn delivery_rate(&self) -> Rate {
        self.rate.get()
    }

    /// When the oldest datagram that is still remembered was sent, at the latest.
    pub fn oldest_at(&self) -> Option<Instant> {
        self.outstanding.front().map(|front| front.at)
    }

    /// Forgets what was sent before `limit` and never acknowledged: what is lost last has no later
    /// datagram that shows its loss. Gives the bytes that were on their way.
    pub fn expire(&mut self, limit: Instant) -> u64 {
        let before = self.in_flight_bytes;
        while self.outstanding.front().is_some_and(|front| front.at < limit) {
            if let Some(lost) = &mut self.lost
                && let Some(kept) =
                    self.outstanding[0].kept.take_if(|kept| self.keeper.get(kept).sends < SENDS_MAX)
            {
                lost.push(self.keeper.hand_over(kept));
            }
            self.forget_front();
        }
        before - self.in_flight_bytes
    }

    /// Up to `bytes_max` of the packets that were sent before `limit` and are still on their way,
    /// to be sent again over another path; the oldest first. The datagrams stay on their way. No
    /// packet is overdue twice, and none that is pinned is.
    pub fn take_overdue(&mut self, limit: Instant, bytes_max: u64) -> Vec<KeptPacket> {
        let mut packets = Vec::new();
        let mut bytes = 0;
        let (mut from, end) = (self.base, self.next_number());
        while let Some(number) = self.in_flight.next(from, end) {
            from = number + 1;
            let Some(sent) = self.outstanding.get_mut((number - self.base) as usize) else { break };
            if sent.at >= limit {
                break;
            }
            if let Some(kept) = sent.kept.take_if(|kept| {
                let kept = self.keeper.get(kept);
                let may_go = kept.sends == 1 && kept.pin.is_none();
                may_go && bytes + kept.len() <= bytes_max
            }) {
                let kept = self.keeper.hand_over(kept);
                bytes += kept.len();
                packets.push(kept);
            }
        }
        packets
    }

    /// Forgets what is on its way, since the path was found dead. Gives the packets that were
    /// kept of it, the oldest first.
    pub fn forget_all(&mut self) -> Vec<KeptPacket> {
        self.app_limited_below = self.next_number();
        let mut packets = self.take_lost();
        for sent in &mut self.outstanding {
            packets.extend(sent.kept.take().map(|kept| self.keeper.hand_over(kept)));
        }
        while !self.outstanding.is_empty() {
            self.forget_front();
        }
        packets
    }
}
