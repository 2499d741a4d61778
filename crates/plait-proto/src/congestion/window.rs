//! The window of a controller that adds and multiplies: in bytes, with slow start before, a credit
//! that grows it segment by segment, and what a mistaken reduction restores. How fast it grows and
//! how far it shrinks is the controller's to say.

use super::slow_start::{Ramp, Ramped};
use super::{AckSample, Episode, PacketState, Phase, Rto, Sent, SlowStart, Start};

/// Segments that a reduction leaves at least.
const LEFT_MIN: u64 = 2;

/// A window in bytes.
#[derive(Clone, Debug)]
pub(super) struct Window {
    segment_bytes: u64,
    bytes: u64,
    /// `u64::MAX` while unknown.
    ssthresh_bytes: u64,
    /// Acknowledged in congestion avoidance, times the gain, and not yet turned into growth.
    credit_bytes: f64,
    ramp: Ramp,
    /// Window and ssthresh before the latest episode of loss.
    before: Option<(u64, u64)>,
}

impl Window {
    /// A window in slow start.
    pub(super) fn new(start: Start, slow_start: SlowStart) -> Self {
        Self {
            segment_bytes: start.segment_bytes,
            bytes: start.initial_window_bytes,
            ssthresh_bytes: u64::MAX,
            credit_bytes: 0.0,
            ramp: Ramp::new(slow_start, start.segment_bytes),
            before: None,
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.ramp.on_sent(sent)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn ssthresh(&self) -> u64 {
        self.ssthresh_bytes
    }

    pub(super) const fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    pub(super) const fn in_slow_start(&self) -> bool {
        self.bytes < self.ssthresh_bytes
    }

    /// Grows by slow start where that applies. Gives the bytes that congestion avoidance is to
    /// count; `None` when it is to stand still.
    pub(super) fn ramp_up(&mut self, sample: &AckSample<'_>) -> Option<u64> {
        if sample.phase == Phase::FastRecovery {
            return None;
        }
        let mut acked_bytes = sample.acked_bytes;
        if self.in_slow_start() {
            match self.ramp.on_ack(sample, self.bytes, self.ssthresh_bytes) {
                Ramped::Grown { window_bytes, left_bytes } => {
                    self.bytes = window_bytes;
                    acked_bytes = left_bytes;
                }
                Ramped::Full => self.ssthresh_bytes = self.bytes,
            }
        }
        (!sample.app_limited && !self.in_slow_start()).then_some(acked_bytes)
    }

    /// Grows by `gain` segments for each window acknowledged: 1 is RFC 5681's growth. Shrinks where
    /// it is negative, to two segments at least, and does not fall back into slow start by that.
    pub(super) fn grow(&mut self, acked_bytes: u64, gain: f64) {
        self.credit_bytes += acked_bytes as f64 * gain;
        while self.credit_bytes >= self.bytes as f64 {
            self.credit_bytes -= self.bytes as f64;
            self.bytes += self.segment_bytes;
        }
        while self.credit_bytes <= -(self.bytes as f64) {
            let less = self.bytes.saturating_sub(self.segment_bytes);
            if less < LEFT_MIN * self.segment_bytes {
                self.credit_bytes = 0.0;
                return;
            }
            self.credit_bytes += self.bytes as f64;
            self.bytes = less;
            self.ssthresh_bytes = self.ssthresh_bytes.min(less);
        }
    }

    /// What was earned under a larger window would be many times the new one.
    fn shrink_to(&mut self, bytes: u64) {
        self.bytes = bytes;
        self.credit_bytes = 0.0;
    }

    /// Sets window and ssthresh to `bytes`, without an episode of loss.
    pub(super) fn settle(&mut self, bytes: u64) {
        self.shrink_to(bytes);
        self.ssthresh_bytes = bytes;
    }

    /// An episode begins; it leaves `ssthresh_bytes`, two segments at least.
    fn back_off(&mut self, ssthresh_bytes: u64) {
        self.before = Some((self.bytes, self.ssthresh_bytes));
        self.ssthresh_bytes = ssthresh_bytes.max(LEFT_MIN * self.segment_bytes);
        self.ramp.on_loss();
    }

    /// Losses were found; of the window `ssthresh_bytes` are to be left.
    pub(super) fn on_loss(&mut self, ssthresh_bytes: u64) {
        self.back_off(ssthresh_bytes);
        self.shrink_to(self.ssthresh_bytes);
    }

    /// The timer fired; in an episode that is new ssthresh becomes `ssthresh_bytes`.
    pub(super) fn on_rto(&mut self, rto: &Rto, ssthresh_bytes: u64) {
        if rto.episode == Episode::New {
            self.back_off(ssthresh_bytes);
        }
        self.shrink_to(rto.in_flight_bytes + self.segment_bytes);
    }

    /// The connection suffers from this flow: half of the window and, after slow start, of
    /// ssthresh.
    pub(super) fn penalise(&mut self) {
        if !self.in_slow_start() {
            let half = self.ssthresh_bytes / 2;
            self.ssthresh_bytes = half.max(LEFT_MIN * self.segment_bytes);
        }
        self.shrink_to((self.bytes / 2).max(self.segment_bytes));
    }

    /// The latest episode was a mistake. `used_bytes` is the window that was in use.
    pub(super) fn undo(&mut self, used_bytes: u64) {
        if let Some((bytes, ssthresh_bytes)) = self.before.take() {
            self.ramp.on_spurious();
            self.bytes = self.bytes.max(bytes).max(used_bytes);
            self.ssthresh_bytes = self.ssthresh_bytes.max(ssthresh_bytes);
        }
    }
}
