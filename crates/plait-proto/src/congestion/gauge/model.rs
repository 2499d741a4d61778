//! What is believed of the path, and what follows for windows and rates.

use super::super::rounds::Rounds;
use super::super::{AckSample, PacketState, Sent, Start};
use super::bandwidth::Bandwidth;
use super::extra_acked::ExtraAcked;
use super::loss_floor::LossFloor;
use super::meter::{Meter, Reading};
use super::min_rtt::MinRtt;
use super::overload::Overload;
use super::policer::{Finding, Policer, Settled};
use super::relief::{Relief, Seen};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// draft-ietf-ccwg-bbr-06 section 5.6.4.3.
const WINDOW_MIN_SEGMENTS: u64 = 4;
/// The window allows for acknowledgements that are held back so long, before any were seen to be.
const ACK_DELAY: Duration = Duration::from_millis(5);
/// A sample is of a full pipe if at least this part of it, in per cent, was in flight.
const FULL_PERCENT: u64 = 70;
/// Less than this part of the estimate, in per cent, is far below it.
const DECLINE_PERCENT: u64 = 75;
/// Loss that makes a case without a queue: what a short one does not hold.
const DECLINE_LOSS_PERMILLE: u64 = 300;
/// Section 5.6.1: the window in round trips' worth of data, in per cent.
const WINDOW_GAIN: u64 = 200;
/// Time between probes in least round-trip times, and its bounds.
const PROBE_RTTS: u32 = 8;
const PROBE_INTERVAL_MIN: Duration = Duration::from_secs(1);
const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(6);
/// Phases by which successive intervals differ, so that paths fall out of step.
const PHASES: u64 = 8;
/// A decline is seen for so long at least: processes that were late and what follows are shorter.
const DECLINE_TIME: Duration = Duration::from_millis(150);
/// A round trip that stays above the least by this part of it and this much shows a path that is
/// never empty, and so its rate, however little is in flight ...
const BUSY_PART: u32 = 2;
const BUSY_MIN: Duration = Duration::from_millis(20);
/// ... if it is less than this part of the estimate, in per cent, for so long. A round trip that is
/// longer for another reason looks alike; the rate of a sender with little to send is below that of
/// its path by any factor.
const BUSY_DECLINE_PERCENT: u64 = 33;
const BUSY_DECLINE_TIME: Duration = Duration::from_millis(300);
/// After a decline the path is asked more often, until this part of what it was is back, in per
/// cent.
const RETURN_PERCENT: u64 = 90;
const RETURN_INTERVAL: Duration = Duration::from_millis(500);
const RETURN_WITHIN: Duration = Duration::from_secs(30);
/// Outside probes so much of the bound that losses showed is used, in per cent
/// (draft-ietf-ccwg-bbr-06 section 5.5.10.2, headroom).
const BOUND_PERCENT: u64 = 85;
/// Losses in a round of startup that show an overrun.
const OVERRUN_SEGMENTS: u64 = 6;
const OVERRUN_PERMILLE: u64 = 100;
/// Losses of an interval above the path's own that say, where the round trip is longer, that a
/// queue overran.
const LOSSY_PERMILLE: u64 = 20;
/// By so much the bound rises with a probe that found no loss at it, in per cent.
const BOUND_GROWTH_PERCENT: u64 = 25;
/// On a path with a longer round trip a probe adds no more than on one with this: a quarter of it
/// is a queue of 25 ms.
const NEAR_RTT: Duration = Duration::from_millis(100);
/// Every queue takes so much, and a slow path would not be asked at all with less.
const CAUTIOUS_BYTES_MIN: u64 = 64_000;

pub(super) const fn window_min(segment_bytes: u64) -> u64 {
    WINDOW_MIN_SEGMENTS * segment_bytes
}

pub(super) fn least<T: Ord>(known: Option<T>, sample: Option<T>) -> Option<T> {
    match (known, sample) {
        (Some(known), Some(sample)) => Some(known.min(sample)),
        (one, other) => one.or(other),
    }
}

pub(super) fn permille(lost_bytes: u64, acked_bytes: u64) -> u64 {
    lost_bytes.saturating_mul(1000) / (lost_bytes + acked_bytes).max(1)
}

/// What the present round trip has shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    pub(super) acked_bytes: u64,
    pub(super) lost_bytes: u64,
    /// Lost while the round trip showed a queue: the queue overran.
    pub(super) overrun_bytes: u64,
    /// Acknowledged by samples of a queue, while there was enough in flight to be its cause.
    pub(super) queued_bytes: u64,
    pub(super) rtt_min: Option<Duration>,
    pub(super) in_flight_min: Option<u64>,
    /// What was in flight when a packet left that arrived next to the first that was lost.
    pub(super) in_flight_at_loss: Option<u64>,
    /// Its latest sample was not of a full pipe.
    pub(super) is_app_limited: bool,
    /// At some time in it there was too little to send.
    pub(super) wanted_packets: bool,
}

impl Round {
    pub(super) fn loss_permille(&self) -> u64 {
        permille(self.lost_bytes, self.acked_bytes)
    }

    /// What was in flight when the path's queue overran, if it did.
    pub(super) fn overran(&self, segment_bytes: u64) -> Option<u64> {
        let is_lossy = self.lost_bytes >= OVERRUN_SEGMENTS * segment_bytes
            && self.loss_permille() >= OVERRUN_PERMILLE;
        self.in_flight_at_loss.filter(|_| is_lossy)
    }
}

/// Intervals in a row that were far too slow.
#[derive(Clone, Copy, Debug)]
struct LowRate {
    since: Instant,
    intervals: u32,
    highest: Rate,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Model {
    pub(super) bandwidth: Bandwidth,
    pub(super) min_rtt: MinRtt,
    /// Mean time that acknowledgements spend in queues on their way back.
    way_back: Duration,
    pub(super) rounds: Rounds,
    pub(super) round: Round,
    /// Throughout the latest whole round trip there was enough to send.
    is_in_demand: bool,
    extra: ExtraAcked,
    loss: LossFloor,
    pub(super) policer: Policer,
    meter: Meter,
    pub(super) relief: Relief,
    low_rate: Option<LowRate>,
    overload: Overload,
    /// The estimate before a decline, and when that was.
    before_decline: Option<(Rate, Instant)>,
    /// What may be in flight, since more overran the path's queue.
    bound_bytes: Option<u64>,
    /// Place in the order of sending of the newest packet that arrived, and of the last that left
    /// while the rate was held down.
    newest_acked: u64,
    restrained_until: u64,
    /// After a decline: samples of packets sent up to here reach back before it.
    stale_until: u64,
}

impl Model {
    /// What the path is believed to carry: the most that it delivered lately, and no more than a
    /// policer lets pass.
    pub(super) fn rate(&self) -> Rate {
        let most = self.bandwidth.get();
        match self.policer.bound() {
            Some(bound) if self.policer.is_known() => bound,
            bound => bound.map_or(most, |bound| bound.min(most)),
        }
    }

    /// A packet leaves at a gain of so many hundredths.
    pub(super) fn on_sent(&mut self, sent: &Sent, gain: u64) -> PacketState {
        let state = self.rounds.on_sent(sent);
        if gain < 100 {
            self.restrained_until = state.sent_bytes_total;
        }
        PacketState { is_restrained: self.newest_acked < self.restrained_until, ..state }
    }

    /// What acknowledgements wait on their way back counts as length of the pipe.
    pub(super) fn note_way_back(&mut self, sample: &AckSample<'_>) {
        if sample.rtt.is_some() {
            let excess = sample.way_back_excess.unwrap_or_default();
            self.way_back = (self.way_back * 7 + excess) / 8;
        }
    }

    /// Takes what an acknowledgement shows; true when it is the first of a new round trip.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>) -> bool {
        let round_over = self.rounds.is_past(sample.newest);
        if let Some(rtt) = sample.rtt {
            self.min_rtt.on_sample(sample.now, rtt);
        }
        // Before the estimate learns from it, which would hide the bunch.
        let (bandwidth, most_bytes) = (self.rate(), self.gain_bytes(100).max(1) * 4);
        self.extra.on_ack(sample.now, sample.acked_bytes, bandwidth, most_bytes);
        self.take_rate(sample);
        self.newest_acked = self.newest_acked.max(sample.newest.sent_bytes_total);
        if sample.lost_bytes > 0 {
            self.round.in_flight_at_loss.get_or_insert(sample.newest.in_flight_bytes);
        }
        self.round.acked_bytes += sample.acked_bytes;
        self.round.lost_bytes += sample.lost_bytes;
        if sample.rtt.is_some_and(|rtt| self.min_rtt.queue_of(rtt) > Duration::ZERO) {
            self.round.overrun_bytes += sample.lost_bytes;
        }
        if sample.rtt.is_some_and(|rtt| self.min_rtt.has_queue(rtt))
            && sample.newest.in_flight_bytes >= self.bdp_bytes()
        {
            self.round.queued_bytes += sample.acked_bytes;
        }
        self.round.rtt_min = least(self.round.rtt_min, sample.rtt);
        self.round.in_flight_min = least(self.round.in_flight_min, Some(sample.in_flight_bytes));
        self.round.is_app_limited = sample.rate_is_app_limited;
        self.round.wanted_packets |= sample.rate_is_app_limited;
        round_over
    }

    fn take_rate(&mut self, sample: &AckSample<'_>) {
        if sample.delivery_rate == Rate::ZERO || self.is_stale(sample) {
            return;
        }
        let enough = self.bdp_bytes().saturating_mul(FULL_PERCENT) / 100;
        let is_full = !sample.rate_is_app_limited
            && !sample.newest.is_restrained
            && sample.newest.in_flight_bytes >= enough;
        self.bandwidth.update(sample.delivery_rate, is_full);
    }

    fn is_stale(&self, sample: &AckSample<'_>) -> bool {
        sample.newest.sent_bytes_total <= self.stale_until
    }

    pub(super) fn begin_round(&mut self) {
        self.is_in_demand = !self.round.wanted_packets;
        self.rounds.begin();
        self.round = Round::default();
        self.extra.on_round();
    }

    /// `relieves` while a standing queue is being worked off.
    pub(super) fn read_meter(&mut self, sample: &AckSample<'_>, relieves: bool) -> Option<Reading> {
        let reading = self.meter.on_ack(sample, self.min_rtt.get())?;
        if let Some(rtt) = reading.rtt_min {
            let min_rtt = self.min_rtt.get().unwrap_or_default();
            let seen = Seen {
                now: sample.now,
                since: reading.since,
                rate: reading.rate,
                excess: self.min_rtt.queue_of(rtt),
                is_lossy: reading.loss_permille > self.loss.permille() + LOSSY_PERMILLE,
                min_rtt,
                bandwidth: self.rate(),
            };
            self.relief.on_reading(&seen, relieves);
        }
        if self.is_stale(sample) {
            // Nothing better is known of the path until packets sent since then return.
            self.bandwidth.update(reading.rate, true);
        }
        Some(reading)
    }

    /// The path's rate, if intervals in a row show that it is far below the estimate: too little
    /// arrives although enough is in flight, and a queue stands to the end or much is lost.
    pub(super) fn find_decline(
        &mut self,
        sample: &AckSample<'_>,
        reading: &Reading,
        segment_bytes: u64,
    ) -> Option<Rate> {
        let Some(time) = self.low_for(sample, reading, segment_bytes) else {
            self.low_rate = None;
            return None;
        };
        let low = self.low_rate.get_or_insert(LowRate {
            since: reading.since,
            intervals: 0,
            highest: Rate::ZERO,
        });
        low.intervals += 1;
        low.highest = low.highest.max(reading.rate);
        let is_certain = low.intervals >= 2 && sample.now.since(low.since) >= time;
        Some(low.highest).filter(|rate| is_certain && *rate > Rate::ZERO)
    }

    /// The path's rate, if it delivers far less than it is sent. Intervals of a third of a round
    /// trip tell that only where acknowledgements say how long they took: those that a queue held
    /// and let go together look like a path that stood still.
    pub(super) fn find_overload(&mut self, sample: &AckSample<'_>) -> Option<Rate> {
        sample.way_back_excess?;
        let reading = self.overload.read(sample, self.min_rtt.get())?;
        let may_count = self.may_be_overloaded(&reading);
        self.overload.on_reading(sample.now, &reading, may_count)
    }

    /// Nothing comes any more: what the path delivered when it was last seen to deliver far less
    /// than it was sent.
    pub(super) fn suspected_rate(&mut self, now: Instant) -> Option<Rate> {
        if let Some(reading) = self.overload.finish() {
            let may_count = self.may_be_overloaded(&reading);
            self.overload.on_reading(now, &reading, may_count);
        }
        self.overload.suspected_rate(now)
    }

    /// Whether an interval delivered far less than believed, and a queue stood or packets were
    /// lost.
    fn may_be_overloaded(&self, reading: &Reading) -> bool {
        let has_queue = reading.rtt_min.is_some_and(|rtt| self.min_rtt.has_queue(rtt));
        let is_lossy = reading.loss_permille >= DECLINE_LOSS_PERMILLE;
        let believed = self.rate().bits_per_second() / 100 * DECLINE_PERCENT;
        (has_queue || is_lossy) && reading.rate.bits_per_second() < believed
    }

    /// How long intervals like this one must go on; `None` for one that shows no slower path.
    fn low_for(
        &self,
        sample: &AckSample<'_>,
        reading: &Reading,
        segment_bytes: u64,
    ) -> Option<Duration> {
        let has_queue = |rtt: Option<Duration>| rtt.is_some_and(|rtt| self.min_rtt.has_queue(rtt));
        // What is not sent does not arrive.
        let bandwidth = self.rate().bits_per_second() / 100;
        let sent = bandwidth * self.relief.gain() / 100;
        let is_below = |of: u64, percent| reading.rate.bits_per_second() < of * percent;
        let is_full =
            !sample.rate_is_app_limited && sample.in_flight_bytes >= self.gain_bytes(FULL_PERCENT);
        let shows_it = (has_queue(reading.rtt_min) && has_queue(sample.rtt))
            || reading.loss_permille >= DECLINE_LOSS_PERMILLE;
        if is_full && is_below(sent, DECLINE_PERCENT) && shows_it {
            return Some(DECLINE_TIME);
        }
        let min_rtt = self.min_rtt.get().unwrap_or_default();
        let busy_rtt = min_rtt + (min_rtt / BUSY_PART).max(BUSY_MIN) + self.relief.unexplained();
        let is_busy = reading.in_flight_min >= window_min(segment_bytes)
            && reading.rtt_min.is_some_and(|rtt| rtt > busy_rtt);
        (is_busy && is_below(bandwidth, BUSY_DECLINE_PERCENT)).then_some(BUSY_DECLINE_TIME)
    }

    pub(super) fn forget_decline(&mut self) {
        self.low_rate = None;
        self.overload.forget();
    }

    pub(super) fn decline_to(&mut self, now: Instant, rate: Rate) {
        self.forget_decline();
        let before = self.before_decline.map_or(Rate::ZERO, |(before, _)| before);
        self.before_decline = Some((before.max(self.rate()), now));
        self.bound_bytes = None;
        self.policer.forget();
        self.bandwidth.reset(rate);
        self.stale_until = self.rounds.sent_bytes_total();
    }

    /// A round in which no more was sent than the path carries: its losses are the path's own.
    pub(super) fn learn_loss(&mut self) {
        if self.relief.queue() == Duration::ZERO {
            let most = self.policer.teaches_permille();
            self.loss.on_round(self.round.acked_bytes, self.round.lost_bytes, most);
        }
    }

    /// `is_steady` while no more is sent than the path is believed to carry.
    pub(super) fn watch_policer(
        &mut self,
        sample: &AckSample<'_>,
        is_steady: bool,
        segment_bytes: u64,
    ) {
        let has_queue = self.relief.queue() > Duration::ZERO;
        let settled = Settled {
            now: sample.now,
            acked_bytes: sample.acked_bytes,
            lost_bytes: sample.lost_bytes,
            newest: sample.newest.sent_bytes_total,
            sent_last: self.rounds.sent_bytes_total(),
            is_steady: is_steady && !has_queue,
            has_queue,
            is_app_limited: sample.rate_is_app_limited,
            segment_bytes,
            min_rtt: self.min_rtt.get().unwrap_or_default(),
            floor_permille: self.loss.permille(),
            bandwidth: self.bandwidth.get(),
        };
        match self.policer.on_ack(&settled) {
            None => {}
            Some(Finding::Own { permille }) => self.loss.adopt(permille),
            Some(Finding::Policed { rate, permille }) => {
                self.loss.adopt(permille);
                self.bandwidth.reset(rate);
            }
            Some(Finding::Free(rate)) => self.bandwidth.reset(rate),
        }
    }

    pub(super) fn loss_floor_permille(&self) -> u64 {
        self.loss.permille()
    }

    pub(super) fn on_idle_restart(&mut self) {
        self.extra.restart();
        self.meter.restart();
        self.overload.restart();
        self.low_rate = None;
        self.relief.restart();
    }

    /// What must be sent for `amount` to arrive.
    pub(super) fn with_losses(&self, amount: u64) -> u64 {
        amount.saturating_mul(1000) / (1000 - self.loss.permille())
    }

    /// In flight when the pipe is full and no queue stands.
    pub(super) fn bdp_bytes(&self) -> u64 {
        let min_rtt = self.min_rtt.get().unwrap_or_default();
        self.with_losses(self.rate().bytes_in(min_rtt + self.way_back))
    }

    /// So many hundredths of that.
    pub(super) fn gain_bytes(&self, gain: u64) -> u64 {
        self.bdp_bytes().saturating_mul(gain) / 100
    }

    /// What acknowledgements that come late and in bunches keep in flight beside.
    pub(super) fn allowance_bytes(&self) -> u64 {
        self.extra.get().max(self.rate().bytes_in(ACK_DELAY))
    }

    /// More than `in_flight_bytes` overran the path's queue.
    pub(super) fn bound(&mut self, in_flight_bytes: u64) {
        self.bound_bytes = Some(in_flight_bytes.max(self.bdp_bytes()));
    }

    /// Whether more of the path would be used. Over a far path each packet that a probe loses holds
    /// up all that were sent in a round trip, so there it must be; near by, a probe costs little,
    /// and what it finds lets the scheduler choose.
    pub(super) fn may_ask_for_more(&self) -> bool {
        self.is_in_demand || self.min_rtt.get().is_none_or(|rtt| rtt <= NEAR_RTT)
    }

    /// So much of what a probe would add may go beyond what is known to fit: queues are not longer
    /// for a longer round trip.
    pub(super) fn cautious(&self, excess_bytes: u64) -> u64 {
        let rtt = self.min_rtt.get().unwrap_or_default().max(NEAR_RTT);
        let share = u128::from(excess_bytes) * NEAR_RTT.as_micros() / rtt.as_micros();
        let share = u64::try_from(share).expect("it is no more than all of it");
        share.max(excess_bytes.min(CAUTIOUS_BYTES_MIN))
    }

    /// A probe that reached the bound found no loss.
    pub(super) fn raise_bound(&mut self) {
        let raised = self
            .bound_bytes
            .map(|bytes| bytes + self.cautious(bytes.saturating_mul(BOUND_GROWTH_PERCENT) / 100));
        self.bound_bytes = raised.filter(|bytes| *bytes < self.gain_bytes(WINDOW_GAIN));
    }

    /// The most that may be in flight; `probes` while looking for more.
    pub(super) fn window_max(&self, probes: bool) -> u64 {
        let allowance = self.allowance_bytes();
        let most = self.gain_bytes(WINDOW_GAIN) + allowance;
        let Some(bound) = self.bound_now() else { return most };
        if probes {
            return bound.min(most);
        }
        let bound = self.bound_bytes.unwrap_or(bound).saturating_mul(BOUND_PERCENT) / 100;
        bound.max(self.base_bytes() + allowance).min(most)
    }

    /// The bound on what is in flight, if there is one, while looking for more.
    pub(super) fn bound_now(&self) -> Option<u64> {
        Some(self.bound_bytes?.max(self.base_bytes() + self.allowance_bytes()))
    }

    /// In flight for a round trip that is longer than the least without a queue.
    pub(super) fn unexplained_bytes(&self) -> u64 {
        self.rate().bytes_in(self.relief.unexplained())
    }

    /// In flight when the pipe is full and nothing can be worked off.
    pub(super) fn base_bytes(&self) -> u64 {
        self.bdp_bytes() + self.unexplained_bytes()
    }

    /// The rate of the least window per round trip, while no queue says that this is too much.
    pub(super) fn rate_min(&self, segment_bytes: u64) -> Rate {
        match self.min_rtt.get() {
            Some(rtt) if self.relief.queue() == Duration::ZERO => {
                Rate::from_bytes_over(window_min(segment_bytes), rtt)
            }
            _ => Rate::ZERO,
        }
    }

    /// The rate of an initial window per round trip.
    pub(super) fn initial_rate(&self, start: &Start) -> Rate {
        let rtt = self.min_rtt.get().unwrap_or_default();
        Rate::from_bytes_over(start.initial_window_bytes, rtt)
    }

    /// Time from one probe to the next.
    pub(super) fn probe_interval(&mut self, now: Instant, probes: u64) -> Duration {
        let rtt = self.min_rtt.get().unwrap_or_default();
        let mut base = (rtt * PROBE_RTTS).clamp(PROBE_INTERVAL_MIN, PROBE_INTERVAL_MAX);
        let bits = self.rate().bits_per_second();
        self.before_decline = self.before_decline.filter(|(before, at)| {
            bits < before.bits_per_second() / 100 * RETURN_PERCENT && now.since(*at) < RETURN_WITHIN
        });
        if self.before_decline.is_some() {
            base = base.min(RETURN_INTERVAL.max(rtt * PROBE_RTTS));
        }
        let phase = (probes % PHASES) * 5 % PHASES;
        base + base * u32::try_from(phase).expect("a phase is below eight") / 32
    }
}
