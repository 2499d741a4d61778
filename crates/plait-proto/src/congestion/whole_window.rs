//! The window of a controller that follows a kernel's arithmetic: in whole segments.

use super::slow_start::{Ramp, Ramped};
use super::{AckSample, Episode, PacketState, Rto, Sent, SlowStart, Start};

/// Segments that a reduction leaves at least.
const LEFT_MIN: u64 = 2;

/// A window in whole segments.
#[derive(Clone, Debug)]
pub(super) struct WholeWindow {
    segment_bytes: u64,
    segments: u64,
    /// In segments; `u64::MAX` while unknown.
    ssthresh: u64,
    /// Acknowledged segments that have not grown the window yet.
    credit: u64,
    /// The same times the growth, where nothing is forgotten.
    earned: f64,
    /// What slow start has grown by beyond whole segments, in bytes.
    rest_bytes: u64,
    ramp: Ramp,
    /// Window and ssthresh before the latest episode of loss.
    before: Option<(u64, u64)>,
}

impl WholeWindow {
    /// A window in slow start up to `ssthresh` segments.
    pub(super) fn new(start: Start, slow_start: SlowStart, ssthresh: u64) -> Self {
        Self {
            segment_bytes: start.segment_bytes,
            segments: start.initial_window_bytes / start.segment_bytes,
            ssthresh,
            credit: 0,
            earned: 0.0,
            rest_bytes: 0,
            ramp: Ramp::new(slow_start, start.segment_bytes),
            before: None,
        }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.ramp.on_sent(sent)
    }

    pub(super) const fn segments(&self) -> u64 {
        self.segments
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.segments.saturating_mul(self.segment_bytes)
    }

    pub(super) const fn ssthresh_bytes(&self) -> u64 {
        self.ssthresh.saturating_mul(self.segment_bytes)
    }

    pub(super) const fn in_slow_start(&self) -> bool {
        self.segments < self.ssthresh
    }

    /// `bytes` in segments, rounded up.
    pub(super) const fn segments_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.segment_bytes)
    }

    /// Grows by slow start, if that applies. Says whether it did: what an acknowledgement brings
    /// beyond the end of slow start does not count.
    pub(super) fn ramp_up(&mut self, sample: &AckSample<'_>) -> bool {
        if !self.in_slow_start() {
            return false;
        }
        let acked_bytes = self.segments_of(sample.acked_bytes) * self.segment_bytes;
        let whole = AckSample { acked_bytes, ..*sample };
        let grown_from = self.bytes() + self.rest_bytes;
        match self.ramp.on_ack(&whole, grown_from, self.ssthresh_bytes()) {
            Ramped::Grown { window_bytes, .. } => {
                self.segments = window_bytes / self.segment_bytes;
                self.rest_bytes = window_bytes % self.segment_bytes;
            }
            Ramped::Full => self.ssthresh = self.segments,
        }
        true
    }

    /// Grows by `alpha` segments for each window acknowledged, as Illinois does in Linux: what is
    /// not worth a whole segment more is forgotten with each growth.
    pub(super) fn grow(&mut self, acked_segments: u64, alpha: f64) {
        self.credit += acked_segments;
        let grown = (self.credit as f64 * alpha) as u64 / self.segments;
        if grown > 0 {
            self.segments += grown;
            self.credit = 0;
        }
    }

    /// The same, and nothing is forgotten.
    pub(super) fn grow_exactly(&mut self, acked_segments: u64, alpha: f64) {
        self.earned += acked_segments as f64 * alpha;
        let grown = self.earned as u64 / self.segments;
        self.earned -= (grown * self.segments) as f64;
        self.segments += grown;
    }

    /// Sets window and ssthresh, without an episode of loss.
    pub(super) const fn settle(&mut self, segments: u64) {
        self.segments = segments;
        self.ssthresh = segments;
    }

    /// An episode begins that takes `beta` of the window, rounded down.
    fn back_off(&mut self, beta: f64) {
        self.before = Some((self.segments, self.ssthresh));
        let taken = (self.segments as f64 * beta) as u64;
        self.ssthresh = (self.segments - taken).max(LEFT_MIN);
        self.rest_bytes = 0;
        self.ramp.on_loss();
    }

    /// Losses were found; they take `beta` of the window.
    pub(super) fn on_loss(&mut self, beta: f64) {
        self.back_off(beta);
        self.segments = self.ssthresh;
        (self.credit, self.earned) = (0, 0.0);
    }

    /// The timer fired; an episode that is new takes `beta` of ssthresh's window.
    pub(super) fn on_rto(&mut self, rto: &Rto, beta: f64) {
        if rto.episode == Episode::New {
            self.back_off(beta);
        }
        self.segments = self.segments_of(rto.in_flight_bytes) + 1;
        (self.credit, self.earned) = (0, 0.0);
    }

    /// The connection suffers from this flow: half of the window and, after slow start, of
    /// ssthresh.
    pub(super) fn penalise(&mut self) {
        if !self.in_slow_start() {
            self.ssthresh = (self.ssthresh / 2).max(LEFT_MIN);
        }
        self.segments = (self.segments / 2).max(1);
        self.rest_bytes = 0;
        (self.credit, self.earned) = (0, 0.0);
    }

    /// The latest episode was a mistake. `used_bytes` is the window that was in use.
    pub(super) fn undo(&mut self, used_bytes: u64) {
        if let Some((segments, ssthresh)) = self.before.take() {
            self.ramp.on_spurious();
            self.segments = self.segments.max(segments).max(used_bytes / self.segment_bytes);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }
}
