//! NewReno's window (RFC 5681 section 3.1, RFC 6582), counted in bytes.

use super::slow_start::{Ramp, Ramped};
use super::{
    AckSample, Controller, Episode, Loss, PacketState, Phase, Rto, Sent, SlowStart, Spurious, Start,
};
use crate::time::Instant;
use crate::units::Rate;

/// `new-reno`: one segment more per window acknowledged, half the flight after a loss.
#[derive(Clone, Debug)]
pub struct NewReno {
    segment_bytes: u64,
    window_bytes: u64,
    ssthresh_bytes: u64,
    /// Acknowledged in congestion avoidance and not yet turned into growth.
    credit_bytes: u64,
    ramp: Ramp,
    /// Window and ssthresh before the latest episode of loss.
    before: Option<(u64, u64)>,
}

impl NewReno {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart) -> Self {
        Self {
            segment_bytes: start.segment_bytes,
            window_bytes: start.initial_window_bytes,
            ssthresh_bytes: u64::MAX,
            credit_bytes: 0,
            ramp: Ramp::new(slow_start, start.segment_bytes),
            before: None,
        }
    }

    /// `cwnd += SMSS` for each window acknowledged (RFC 5681 section 3.1, RFC 3465 section 2.1).
    fn avoid_congestion(&mut self, acked_bytes: u64) {
        self.credit_bytes += acked_bytes;
        while self.credit_bytes >= self.window_bytes {
            self.credit_bytes -= self.window_bytes;
            self.window_bytes += self.segment_bytes;
        }
    }

    /// What was earned under a larger window would be many times the new one.
    fn shrink_to(&mut self, window_bytes: u64) {
        self.window_bytes = window_bytes;
        self.credit_bytes = 0;
    }

    /// RFC 5681 equation 4.
    fn back_off(&mut self, flight_bytes: u64) {
        self.before = Some((self.window_bytes, self.ssthresh_bytes));
        let flight = flight_bytes.min(self.window_bytes);
        self.ssthresh_bytes = (flight / 2).max(2 * self.segment_bytes);
        self.ramp.on_loss();
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.ramp.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.phase == Phase::FastRecovery {
            return;
        }
        let mut acked_bytes = sample.acked_bytes;
        if self.in_slow_start() {
            match self.ramp.on_ack(sample, self.window_bytes, self.ssthresh_bytes) {
                Ramped::Grown { window_bytes, left_bytes } => {
                    self.window_bytes = window_bytes;
                    acked_bytes = left_bytes;
                }
                Ramped::Full => self.ssthresh_bytes = self.window_bytes,
            }
        }
        if !sample.app_limited && !self.in_slow_start() {
            self.avoid_congestion(acked_bytes);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.back_off(loss.flight_bytes);
        self.shrink_to(self.ssthresh_bytes);
    }

    fn on_rto(&mut self, rto: &Rto) {
        if rto.episode == Episode::New {
            self.back_off(rto.flight_bytes);
        }
        self.shrink_to(rto.in_flight_bytes + self.segment_bytes);
    }

    fn on_spurious(&mut self, spurious: &Spurious) {
        if let Some((window, ssthresh)) = self.before.take() {
            self.ramp.on_spurious();
            self.window_bytes = self.window_bytes.max(window).max(spurious.window_bytes);
            self.ssthresh_bytes = self.ssthresh_bytes.max(ssthresh);
        }
    }

    fn on_penalty(&mut self, _now: Instant) {
        if !self.in_slow_start() {
            self.ssthresh_bytes = (self.ssthresh_bytes / 2).max(2 * self.segment_bytes);
        }
        self.window_bytes = (self.window_bytes / 2).max(self.segment_bytes);
    }

    fn window(&self) -> u64 {
        self.window_bytes
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh_bytes
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
