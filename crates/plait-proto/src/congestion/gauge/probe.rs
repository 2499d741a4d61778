//! The two ways to ask the path: for more bandwidth, and for its least round-trip time.

use super::super::AckSample;
use super::model::{Model, least, permille};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// draft-ietf-ccwg-bbr-06 section 5.3.3.1, and how it rises while more is found.
const UP_GAIN: u64 = 125;
const UP_GAIN_MAX: u64 = 200;
const UP_GAIN_STEP_PERCENT: u64 = 150;
/// Growth at the second verdict after which the estimate was far too low, in per cent.
const FAR_GROWTH_PERCENT: u64 = 150;
/// Growth in a round that says that there is more.
const GROWTH_PERCENT: u64 = 10;
/// Loss above the path's own that says, without growth, that there is not; and segments of it.
/// The lower share where the round trip has become longer as well (section 5.5.10.2 has 2 %).
const LOSS_PERMILLE: u64 = 50;
const LOSS_WITH_QUEUE_PERMILLE: u64 = 20;
const LOST_SEGMENTS: u64 = 6;
/// Section 5.3.4.3, `ProbeRTTDuration`.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Open,
    Done,
    /// The path's queue overran with so many bytes in flight.
    Overran(u64),
    /// There is far more.
    FarMore,
}

/// A probe for bandwidth.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeUp {
    gain: u64,
    /// The estimate at the latest verdict.
    bandwidth: Rate,
    /// Round trips since it began.
    rounds: u32,
    /// Enough is in flight to tell: more would only lengthen the queue.
    is_holding: bool,
    /// It was so at some time.
    has_held: bool,
    acked_bytes: u64,
    lost_bytes: u64,
    /// In flight when a packet left that arrived next to the first that was lost.
    in_flight_at_loss: Option<u64>,
}

impl ProbeUp {
    /// `is_small` when hardly more than the least window is in flight.
    pub(super) fn new(bandwidth: Rate, is_small: bool) -> Self {
        Self {
            gain: if is_small { UP_GAIN_MAX } else { UP_GAIN },
            bandwidth,
            rounds: 0,
            is_holding: false,
            has_held: false,
            acked_bytes: 0,
            lost_bytes: 0,
            in_flight_at_loss: None,
        }
    }

    /// Whether it had as much in flight as was allowed, and lost nothing.
    pub(super) fn was_clean(&self) -> bool {
        self.is_holding && self.lost_bytes == 0
    }

    /// Whether too little was sent to find anything.
    pub(super) fn was_starved(&self) -> bool {
        !self.has_held
    }

    pub(super) fn gain(&self) -> u64 {
        if self.is_holding { 100 } else { self.gain }
    }

    /// The packets of the first round show up in the second, and its last ones show the whole gain.
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        model: &Model,
        segment_bytes: u64,
        round_over: bool,
    ) -> Verdict {
        self.rounds += u32::from(round_over);
        let all = model.gain_bytes(self.gain - 100);
        // Once more was found, more is looked for.
        let excess = if self.gain <= UP_GAIN { model.cautious(all) } else { all };
        let enough = model.base_bytes() + excess + 2 * segment_bytes;
        let was_in_flight = sample.in_flight_bytes + sample.acked_bytes + sample.lost_bytes;
        self.is_holding |= sample.in_flight_bytes >= enough
            || model.bound_now().is_some_and(|bound| was_in_flight + segment_bytes > bound);
        self.has_held |= self.is_holding;
        if self.rounds > 0 {
            self.acked_bytes += sample.acked_bytes;
            self.lost_bytes += sample.lost_bytes;
            if sample.lost_bytes > 0 {
                self.in_flight_at_loss.get_or_insert(sample.newest.in_flight_bytes);
            }
        }
        let bandwidth = model.rate();
        let bits = self.bandwidth.bits_per_second();
        // In proportion to what was added.
        let grown_permille = 10 * GROWTH_PERCENT * excess / all.max(1);
        let grown = bits.saturating_add(bits / 1000 * grown_permille);
        let has_grown = bandwidth.bits_per_second() >= grown;
        let excess = sample.rtt.map_or(Duration::ZERO, |rtt| model.min_rtt.queue_of(rtt));
        let has_queue = excess > model.relief.unexplained();
        let allowed = if has_queue { LOSS_WITH_QUEUE_PERMILLE } else { LOSS_PERMILLE };
        let limit = model.loss_floor_permille() + allowed;
        let is_lossy = self.lost_bytes >= LOST_SEGMENTS * segment_bytes
            && permille(self.lost_bytes, self.acked_bytes) > limit;
        // So much loss is an answer, however little was in flight.
        self.has_held |= is_lossy;
        let is_due = round_over && self.rounds >= 3;
        if is_lossy && !has_grown && has_queue {
            return Verdict::Overran(self.in_flight_at_loss.unwrap_or(sample.in_flight_bytes));
        }
        if !has_grown && (is_lossy || is_due) {
            return Verdict::Done;
        }
        if !is_due {
            return Verdict::Open;
        }
        let far = self.bandwidth.bits_per_second().saturating_mul(FAR_GROWTH_PERCENT) / 100;
        if self.gain > UP_GAIN
            && bandwidth.bits_per_second() >= far
            && self.lost_bytes == 0
            && !has_queue
        {
            return Verdict::FarMore;
        }
        self.bandwidth = bandwidth;
        self.gain = (self.gain * UP_GAIN_STEP_PERCENT / 100).min(UP_GAIN_MAX);
        self.is_holding = false;
        (self.acked_bytes, self.lost_bytes) = (0, 0);
        Verdict::Open
    }
}

/// A probe for the least round-trip time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When the pipe became half empty, and round trips since then.
    low_since: Option<Instant>,
    rounds: u32,
    rtt_min: Option<Duration>,
}

impl ProbeRtt {
    /// The result once there is one: the least of what was sent into a half-empty pipe.
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        target_bytes: u64,
        round_over: bool,
    ) -> Option<Option<Duration>> {
        let Some(since) = self.low_since else {
            if sample.in_flight_bytes <= target_bytes {
                self.low_since = Some(sample.now);
            }
            return None;
        };
        self.rounds += u32::from(round_over);
        if self.rounds > 0 {
            self.rtt_min = least(self.rtt_min, sample.rtt);
        }
        let is_over = self.rounds > 1 && sample.now.since(since) >= PROBE_RTT_DURATION;
        is_over.then_some(self.rtt_min)
    }
}
