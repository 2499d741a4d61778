//! What a path has sent and not yet seen acknowledged: bytes in flight, round-trip samples and the
//! delivery rate.
//!
//! Numbers here count the path's datagrams through all epochs; the ingress translates packet
//! numbers, which start again with each epoch.

use std::collections::VecDeque;

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
/// Numbers left out that are remembered.
const LEFT_OUT_MAX: usize = 64;
/// How long a delivery rate counts.
const RATE_WINDOW: Duration = Duration::from_secs(1);

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

/// A run of datagram numbers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumberRange {
    /// Lowest number.
    pub low: u64,
    /// Highest number.
    pub high: u64,
}

/// What an acknowledgement showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckOutcome {
    /// Time since the highest number was sent, when it was acknowledged for the first time.
    pub elapsed: Option<Duration>,
    /// Datagrams that arrived, acknowledged for the first time.
    pub acked_datagrams: u64,
    /// Datagrams found lost.
    pub lost_datagrams: u64,
    /// Datagrams that had been found lost and arrived after all.
    pub recovered_datagrams: u64,
    /// It tells of a datagram that was sent later than all that were acknowledged before.
    pub is_news: bool,
    /// Bytes of the datagrams that arrived.
    pub acked_bytes: u64,
    /// Bytes of those found lost.
    pub lost_bytes: u64,
    /// The last-sent of those that arrived.
    pub newest: Option<Newest>,
}

/// The last-sent datagram of those that an acknowledgement showed to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newest {
    /// Its number.
    pub number: u64,
    /// What the congestion controller gave with it.
    pub packet: PacketState,
    /// Bytes delivered while it was on its way.
    delivered_bytes: u64,
    /// In what time they were.
    interval: Duration,
    /// There was too little to send when it left: the rate may be less than the path can carry.
    pub app_limited: bool,
}

impl Newest {
    /// The rate of delivery while it was on its way.
    pub fn delivery_rate(&self) -> Rate {
        Rate::from_bytes_over(self.delivered_bytes, self.interval)
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
    /// The latest numbers that were left out, ascending.
    left_out: VecDeque<u64>,
    /// Datagrams looked at one after the other because of acknowledgements, since the start: each
    /// at most twice, and one for each acknowledgement (docs/threat-model.md).
    slots_walked: u64,
}

/// The datagrams that a path would no longer carry if its MTU fell.
#[derive(Debug)]
struct LargeDatagrams {
    /// Those with more bytes count.
    above_bytes: u32,
    /// One more than the highest number of those that arrived.
    acked_below: u64,
    /// Those lost above `acked_below`.
    lost: u32,
}

impl LargeDatagrams {
    fn acked(&mut self, number: u64, bytes: u32) {
        if bytes > self.above_bytes && number >= self.acked_below {
            self.acked_below = number + 1;
            self.lost = 0;
        }
    }

    fn lost(&mut self, number: u64, bytes: u32) {
        if bytes > self.above_bytes && number >= self.acked_below {
            self.lost = self.lost.saturating_add(1);
        }
    }
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
            large: LargeDatagrams { above_bytes: u32::MAX, acked_below: 0, lost: 0 },
            left_out: VecDeque::new(),
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
        if self.left_out.len() == LEFT_OUT_MAX {
            self.left_out.pop_front();
        }
        self.left_out.push_back(self.next_number());
        self.sent_unacknowledged();
    }

    /// Whether any of these runs, from the highest down, names a number that was left out.
    pub fn names_left_out(&self, ranges: impl Iterator<Item = NumberRange>) -> bool {
        let mut left_out = self.left_out.iter().rev().copied();
        let Some(mut highest) = left_out.next() else { return false };
        for NumberRange { low, high } in ranges {
            while highest > high {
                let Some(next) = left_out.next() else { return false };
                highest = next;
            }
            if highest >= low {
                return true;
            }
        }
        false
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
        self.large.lost
    }

    /// Counts large ones anew; they are those of more than `bytes`.
    pub fn count_large_above(&mut self, bytes: u32) {
        self.large =
            LargeDatagrams { above_bytes: bytes, acked_below: self.next_number(), lost: 0 };
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

/// The maximum over two half windows: cheap, and late by at most half a window.
#[derive(Debug, Default)]
struct WindowedMax {
    current: Rate,
    previous: Rate,
    since: Instant,
}

impl WindowedMax {
    /// `bytes` arrived in `interval`.
    fn update(&mut self, now: Instant, bytes: u64, interval: Duration) {
        if now.since(self.since) >= RATE_WINDOW / 2 {
            self.previous = self.current;
            self.current = Rate::ZERO;
            self.since = now;
        }
        // One of many is the highest, and a division costs more than all else here.
        if self.current.bytes_in(interval) <= bytes {
            self.current = self.current.max(Rate::from_bytes_over(bytes, interval));
        }
    }

    fn get(&self) -> Rate {
        self.current.max(self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::BondSeq;
    use crate::wire::sealed::SendTimestamp;

    fn run(low: u64, high: u64) -> core::iter::Once<NumberRange> {
        core::iter::once(NumberRange { low, high })
    }

    fn filled(count: u64) -> SentDatagrams {
        let mut sent = SentDatagrams::default();
        for n in 0..count {
            sent.sent(Instant::from_millis(n), 1000);
        }
        sent
    }

    /// An acknowledgement that comes at `at_ms` and waited nowhere on its way.
    fn acked(
        sent: &mut SentDatagrams,
        at_ms: u64,
        arrived: core::iter::Once<NumberRange>,
    ) -> AckOutcome {
        sent.acked(Instant::from_millis(at_ms), Duration::ZERO, arrived)
    }

    #[test]
    fn an_acknowledgement_takes_bytes_out_of_flight() {
        let mut sent = filled(10);
        let outcome = acked(&mut sent, 20, run(0, 3));
        assert_eq!(outcome.elapsed, Some(Duration::from_millis(17)));
        assert_eq!(sent.in_flight_bytes(), 6000);
        let again = acked(&mut sent, 21, run(0, 3));
        assert_eq!(again, AckOutcome::default(), "the same again shows nothing new");
        assert!(outcome.is_news && outcome.acked_datagrams == 4);
    }

    #[test]
    fn a_gap_is_lost_after_three_later_ones() {
        let mut sent = filled(10);
        assert_eq!(acked(&mut sent, 20, run(1, 2)).lost_datagrams, 0);
        assert_eq!(acked(&mut sent, 20, run(1, 3)).lost_datagrams, 1);
        assert_eq!(sent.in_flight_bytes(), 6000);
    }

    #[test]
    fn what_was_never_sent_has_no_effect() {
        let mut sent = filled(3);
        assert_eq!(acked(&mut sent, 5, run(0, 3)), AckOutcome::default());
        assert_eq!(sent.in_flight_bytes(), 3000);
    }

    #[test]
    fn the_rate_is_what_arrives() {
        let mut sent = SentDatagrams::default();
        // One datagram of 1000 bytes each millisecond is 8 Mbit/s; each is acknowledged 10 ms on.
        for n in 0..200_u64 {
            sent.sent(Instant::from_millis(n), 1000);
            if n >= 10 {
                acked(&mut sent, n, run(n - 10, n - 10));
            }
        }
        let rate = sent.delivery_rate().bits_per_second();
        assert!((7_000_000..=9_000_000).contains(&rate), "{rate}");
    }

    #[test]
    fn the_rate_is_that_of_arrivals_whatever_held_up_their_acknowledgements() {
        let mut sent = filled(2);
        sent.acked(Instant::from_millis(60), Duration::from_millis(30), run(0, 0));
        for _ in 0..29 {
            sent.sent(Instant::from_millis(60), 1000);
        }
        let outcome = acked(&mut sent, 120, run(1, 30));
        let rate = outcome.newest.map(|newest| newest.delivery_rate().bits_per_second());
        assert_eq!(rate, Some(30 * 8_000_000 / 90), "30 kB between 30 and 120 ms");
    }

    #[test]
    fn what_is_lost_last_does_not_stay_in_flight() {
        let mut sent = filled(10);
        acked(&mut sent, 20, run(0, 7));
        sent.expire(Instant::from_millis(9));
        assert_eq!(sent.in_flight_bytes(), 1000, "the one sent at 9 ms may still come");
        sent.expire(Instant::from_millis(10));
        assert_eq!(sent.in_flight_bytes(), 0);
    }

    #[test]
    fn what_is_kept_is_what_may_have_to_be_sent_again() {
        let mut sent = SentDatagrams::default();
        for n in 0..8_u16 {
            sent.sent(Instant::from_millis(n.into()), 1000);
            let prefix =
                DataPrefix { seq: BondSeq(n.into()).truncate(), prev: 1, sent: SendTimestamp(0) };
            sent.keep(prefix, Instant::ZERO, &[n as u8; 100]);
        }
        acked(&mut sent, 20, run(2, 5));
        assert_eq!(sent.kept_bytes(), 200, "four arrived, and three later ones show two lost");
        let packets = sent.forget_all();
        let first_bytes: Vec<u8> = packets.iter().map(|kept| kept.bytes[0]).collect();
        assert_eq!(first_bytes, [6, 7]);
        assert_eq!((sent.kept_bytes(), sent.in_flight_bytes()), (0, 0));
    }

    #[test]
    fn a_packet_found_lost_that_arrives_is_recovered() {
        let mut sent = filled(10);
        assert_eq!(acked(&mut sent, 20, run(1, 5)).lost_datagrams, 1);
        let outcome = acked(&mut sent, 21, run(0, 6));
        assert_eq!((outcome.recovered_datagrams, outcome.acked_datagrams), (1, 1));
    }

    #[test]
    fn large_losses_count_since_the_last_large_arrival() {
        let mut sent = SentDatagrams::default();
        sent.count_large_above(1280);
        for number in 0..20 {
            sent.sent(Instant::from_millis(number), if number % 2 == 0 { 1500 } else { 100 });
        }
        acked(&mut sent, 30, run(7, 7));
        assert_eq!(sent.large_lost(), 3, "0, 2 and 4");
        acked(&mut sent, 30, run(6, 6));
        assert_eq!(sent.large_lost(), 0, "a later large one arrived");
        acked(&mut sent, 30, run(17, 17));
        assert_eq!(sent.large_lost(), 4, "8, 10, 12 and 14");
        sent.expire(Instant::from_millis(100));
        assert_eq!(sent.large_lost(), 6, "16 and 18");
        sent.count_large_above(1280);
        assert_eq!(sent.large_lost(), 0);
    }

    /// Sixty acknowledgements fit a datagram; each once walked all that was on its way.
    #[test]
    fn regression_the_same_acknowledgement_again_walks_nothing() {
        let mut sent = filled(60_000);
        for _ in 0..60 {
            acked(&mut sent, 70_000, run(30_000, 59_999));
        }
        assert_eq!(sent.in_flight_bytes(), 0);
        assert!(sent.slots_walked() <= 60_000 + 60, "{}", sent.slots_walked());
        let mut overtaken = filled(60_000);
        overtaken.collect_lost();
        overtaken.reordering = REORDERING_MAX;
        for _ in 0..60 {
            acked(&mut overtaken, 60_000, run(10, 10));
        }
        assert!(overtaken.slots_walked() <= 100, "{}", overtaken.slots_walked());
    }

    #[test]
    fn memory_is_bounded() {
        assert!(size_of::<Sent>() <= 64, "docs/threat-model.md counts 64 bytes for each");
        let sent = filled(OUTSTANDING_MAX as u64 + 10);
        assert_eq!(sent.outstanding.len(), OUTSTANDING_MAX);
        assert_eq!(sent.in_flight_bytes(), OUTSTANDING_MAX as u64 * 1000);
    }
}
