//! What is believed of the path, and what follows for windows and rates.

use super::super::rounds::Rounds;
use super::super::{AckSample, Start};
use super::bandwidth::Bandwidth;
use super::extra_acked::ExtraAcked;
use super::loss_floor::LossFloor;
use super::meter::{Meter, Reading};
use super::min_rtt::MinRtt;
use crate::time::Duration;
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
/// Time between probes in least round-trip times, and its bounds.
const PROBE_RTTS: u32 = 8;
const PROBE_INTERVAL_MIN: Duration = Duration::from_secs(1);
const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(3);
/// Phases by which successive intervals differ, so that paths fall out of step.
const PHASES: u64 = 8;
/// The least gain with which a queue is worked off.
const RELIEF_GAIN_MIN: u64 = 75;
/// A queue of a whole round trip takes this much off the gain, in per cent.
const RELIEF_PERCENT: u128 = 25;

pub(super) const fn window_min(segment_bytes: u64) -> u64 {
    WINDOW_MIN_SEGMENTS * segment_bytes
}

pub(super) fn least(known: Option<Duration>, sample: Option<Duration>) -> Option<Duration> {
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
    pub(super) rtt_min: Option<Duration>,
    /// Its latest sample was not of a full pipe.
    pub(super) is_app_limited: bool,
}

impl Round {
    pub(super) fn loss_permille(&self) -> u64 {
        permille(self.lost_bytes, self.acked_bytes)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Model {
    pub(super) bandwidth: Bandwidth,
    pub(super) min_rtt: MinRtt,
    pub(super) rounds: Rounds,
    pub(super) round: Round,
    extra: ExtraAcked,
    loss: LossFloor,
    meter: Meter,
    /// The queue that stood through the latest interval.
    queue: Duration,
    /// The rate of the latest interval if it was far too low.
    low_rate: Option<Rate>,
    /// After a decline: samples of packets sent up to here reach back before it.
    stale_until: u64,
}

impl Model {
    /// Takes what an acknowledgement shows; true when it is the first of a new round trip.
    pub(super) fn on_ack(&mut self, sample: &AckSample<'_>) -> bool {
        let round_over = self.rounds.is_past(sample.newest);
        if let Some(rtt) = sample.rtt {
            self.min_rtt.on_sample(sample.now, rtt);
        }
        // Before the estimate learns from it, which would hide the bunch.
        let (bandwidth, most_bytes) = (self.bandwidth.get(), self.gain_bytes(100).max(1) * 4);
        self.extra.on_ack(sample.now, sample.acked_bytes, bandwidth, most_bytes);
        self.take_rate(sample);
        self.round.acked_bytes += sample.acked_bytes;
        self.round.lost_bytes += sample.lost_bytes;
        self.round.rtt_min = least(self.round.rtt_min, sample.rtt);
        self.round.is_app_limited = sample.rate_is_app_limited;
        round_over
    }

    fn take_rate(&mut self, sample: &AckSample<'_>) {
        if sample.delivery_rate == Rate::ZERO || self.is_stale(sample) {
            return;
        }
        let enough = self.bdp_bytes().saturating_mul(FULL_PERCENT) / 100;
        let is_full = !sample.rate_is_app_limited && sample.newest.in_flight_bytes >= enough;
        self.bandwidth.update(sample.delivery_rate, is_full);
    }

    fn is_stale(&self, sample: &AckSample<'_>) -> bool {
        sample.newest.sent_bytes_total <= self.stale_until
    }

    pub(super) fn begin_round(&mut self) {
        self.rounds.begin();
        self.round = Round::default();
        self.extra.on_round();
    }

    pub(super) fn read_meter(&mut self, sample: &AckSample<'_>) -> Option<Reading> {
        let reading = self.meter.on_ack(sample, self.min_rtt.get())?;
        if let Some(rtt) = reading.rtt_min {
            self.queue = self.min_rtt.queue_of(rtt);
        }
        if self.is_stale(sample) {
            // Nothing better is known of the path until packets sent since then return.
            self.bandwidth.update(reading.rate, true);
        }
        Some(reading)
    }

    /// The path's rate, if two intervals in a row show that it is far below the estimate: too
    /// little arrives although enough is in flight, and a queue stands or much is lost.
    pub(super) fn find_decline(
        &mut self,
        sample: &AckSample<'_>,
        reading: &Reading,
    ) -> Option<Rate> {
        let enough = self.bdp_bytes().saturating_mul(FULL_PERCENT) / 100;
        let low = self.bandwidth.get().bits_per_second() / 100 * DECLINE_PERCENT;
        let is_low = reading.rate.bits_per_second() < low
            && sample.in_flight_bytes >= enough
            && !sample.rate_is_app_limited
            && (reading.rtt_min.is_some_and(|rtt| self.min_rtt.has_queue(rtt))
                || reading.loss_permille >= DECLINE_LOSS_PERMILLE);
        if !is_low {
            self.low_rate = None;
            return None;
        }
        match self.low_rate.replace(reading.rate) {
            Some(before) => Some(before.max(reading.rate)).filter(|rate| *rate > Rate::ZERO),
            None => None,
        }
    }

    pub(super) fn forget_decline(&mut self) {
        self.low_rate = None;
    }

    pub(super) fn decline_to(&mut self, rate: Rate) {
        self.low_rate = None;
        self.bandwidth.reset(rate);
        self.stale_until = self.rounds.sent_bytes_total();
    }

    /// A round in which no more was sent than the path carries: its losses are the path's own.
    pub(super) fn learn_loss(&mut self) {
        if self.queue == Duration::ZERO {
            self.loss.on_round(self.round.acked_bytes, self.round.lost_bytes);
        }
    }

    pub(super) fn loss_floor_permille(&self) -> u64 {
        self.loss.permille()
    }

    pub(super) fn on_idle_restart(&mut self) {
        self.extra.restart();
        self.meter.restart();
        self.low_rate = None;
        self.queue = Duration::ZERO;
    }

    /// What must be sent for `amount` to arrive.
    pub(super) fn with_losses(&self, amount: u64) -> u64 {
        amount.saturating_mul(1000) / (1000 - self.loss.permille())
    }

    /// In flight when the pipe is full and no queue stands.
    pub(super) fn bdp_bytes(&self) -> u64 {
        let min_rtt = self.min_rtt.get().unwrap_or_default();
        self.with_losses(self.bandwidth.get().bytes_in(min_rtt))
    }

    /// So many hundredths of that.
    pub(super) fn gain_bytes(&self, gain: u64) -> u64 {
        self.bdp_bytes().saturating_mul(gain) / 100
    }

    /// What acknowledgements that come late and in bunches keep in flight beside.
    pub(super) fn allowance_bytes(&self) -> u64 {
        self.extra.get().max(self.bandwidth.get().bytes_in(ACK_DELAY))
    }

    /// The rate of an initial window per round trip.
    pub(super) fn initial_rate(&self, start: &Start) -> Rate {
        let rtt = self.min_rtt.get().unwrap_or_default();
        Rate::from_bytes_over(start.initial_window_bytes, rtt)
    }

    /// The gain that works off a standing queue of which nobody has any use, in hundredths.
    pub(super) fn relief_gain(&self) -> u64 {
        let rtt = self.min_rtt.get().unwrap_or_default().as_nanos().max(1);
        let off = self.queue.as_nanos().saturating_mul(RELIEF_PERCENT) / rtt;
        let off = u64::try_from(off).unwrap_or(u64::MAX);
        100_u64.saturating_sub(off).max(RELIEF_GAIN_MIN)
    }

    /// Time from one probe to the next.
    pub(super) fn probe_interval(&self, probes: u64) -> Duration {
        let rtt = self.min_rtt.get().unwrap_or_default();
        let base = (rtt * PROBE_RTTS).clamp(PROBE_INTERVAL_MIN, PROBE_INTERVAL_MAX);
        let phase = (probes % PHASES) * 5 % PHASES;
        base + base * u32::try_from(phase).expect("a phase is below eight") / 32
    }
}
