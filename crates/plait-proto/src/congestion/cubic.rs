//! CUBIC (RFC 9438). Windows are counted in segments here, as in the RFC's formulas.

use super::slow_start::{Ramp, Ramped};
use super::{
    AckSample, Controller, Episode, Loss, PacketState, Phase, Rto, Sent, SlowStart, Spurious, Start,
};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// RFC 9438 section 5.1, in segments per second cubed.
const C: f64 = 0.4;
/// Section 4.6.
const BETA: f64 = 0.7;
/// Section 4.3, figure 4: the growth that takes NewReno's share when backing off to `BETA`.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Section 4.2: the target is at most so many times the window.
const TARGET_MAX: f64 = 1.5;
/// Section 4.6: the window after a loss, in segments.
const WINDOW_MIN: f64 = 2.0;

/// `cubic`: grows by a cubic function of the time since the last loss.
#[derive(Clone, Debug)]
pub struct Cubic {
    segment_bytes: u64,
    ramp: Ramp,
    state: State,
    /// The state before the latest episode of loss (section 4.9).
    before: Option<State>,
}

/// What a spurious loss restores.
#[derive(Clone, Copy, Debug)]
struct State {
    /// In segments.
    window: f64,
    /// `f64::INFINITY` while unknown.
    ssthresh: f64,
    /// The window before the latest reduction, or less after fast convergence; `None` before the
    /// first and after a timeout.
    w_max: Option<f64>,
    /// The window before the latest reduction.
    window_prior: f64,
    /// The current congestion avoidance stage; `None` until its first acknowledgement.
    epoch: Option<Epoch>,
}

/// One congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// The latest acknowledgement.
    latest: Instant,
    /// Time from `start` to `w_max`, in seconds.
    k_s: f64,
    w_max: f64,
    /// What NewReno's window would be.
    w_est: f64,
}

impl Epoch {
    fn new(now: Instant, window: f64, w_max: Option<f64>) -> Self {
        // Sections 4.8 and 4.10: without a known `w_max` the stage starts on the plateau.
        let w_max = w_max.unwrap_or(window).max(window);
        let k_s = cube_root((w_max - window) / C);
        Self { start: now, latest: now, k_s, w_max, w_est: window }
    }

    /// Figure 1: W_cubic at `elapsed` after the start.
    fn w_cubic(&self, elapsed: Duration) -> f64 {
        let time = elapsed.as_secs_f64() - self.k_s;
        C * time * time * time + self.w_max
    }

    /// Section 4.3, figure 4.
    fn grow_reno_estimate(&mut self, acked: f64, window: f64, window_prior: f64) {
        let alpha = if self.w_est < window_prior { ALPHA } else { 1.0 };
        self.w_est += alpha * acked / window;
    }
}

impl Cubic {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart) -> Self {
        Self {
            segment_bytes: start.segment_bytes,
            ramp: Ramp::new(slow_start, start.segment_bytes),
            state: State {
                window: start.initial_window_bytes as f64 / start.segment_bytes as f64,
                ssthresh: f64::INFINITY,
                w_max: None,
                window_prior: 0.0,
                epoch: None,
            },
            before: None,
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.segment_bytes as f64
    }

    fn bytes(&self, segments: f64) -> u64 {
        // Rounded, so that counting in segments and back gives the same number of bytes.
        (segments * self.segment_bytes as f64).round() as u64
    }

    /// Section 4.2 to 4.5: the concave, convex and Reno-friendly regions.
    fn avoid_congestion(&mut self, sample: &AckSample<'_>, acked: f64) {
        let state = &mut self.state;
        let (window, w_max) = (state.window, state.w_max);
        let epoch = state.epoch.get_or_insert_with(|| Epoch::new(sample.now, window, w_max));
        let pause = sample.now.since(epoch.latest);
        epoch.latest = sample.now;
        if sample.app_limited {
            // Section 5.8: time in which the window was not used does not grow it.
            epoch.start += pause;
            return;
        }
        let elapsed = sample.now.since(epoch.start);
        let rtt = sample.srtt.unwrap_or_default();
        let target = epoch.w_cubic(elapsed + rtt).clamp(window, TARGET_MAX * window);
        epoch.grow_reno_estimate(acked, window, state.window_prior);
        state.window = (window + (target - window) / window * acked).min(target);
        if epoch.w_cubic(elapsed) < epoch.w_est {
            state.window = state.window.max(epoch.w_est);
        }
    }

    /// Section 4.6, with fast convergence (section 4.7).
    fn back_off(&mut self, flight_bytes: u64) {
        self.before = Some(self.state);
        let flight = self.segments(flight_bytes);
        let state = &mut self.state;
        let converging = state.w_max.is_some_and(|w_max| state.window < w_max);
        let share = if converging { (1.0 + BETA) / 2.0 } else { 1.0 };
        state.w_max = Some(state.window * share);
        state.window_prior = state.window;
        state.ssthresh = (flight.min(state.window) * BETA).max(WINDOW_MIN);
        state.epoch = None;
        self.ramp.on_loss();
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.ramp.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.phase == Phase::FastRecovery {
            return;
        }
        let mut acked_bytes = sample.acked_bytes;
        if self.in_slow_start() {
            match self.ramp.on_ack(sample, self.window(), self.ssthresh()) {
                Ramped::Grown { window_bytes, left_bytes } => {
                    self.state.window = self.segments(window_bytes);
                    acked_bytes = left_bytes;
                }
                Ramped::Full => self.state.ssthresh = self.state.window,
            }
        }
        if !self.in_slow_start() && (acked_bytes > 0 || sample.app_limited) {
            self.avoid_congestion(sample, self.segments(acked_bytes));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.back_off(loss.flight_bytes);
        self.state.window = self.state.ssthresh;
    }

    fn on_rto(&mut self, rto: &Rto) {
        if rto.episode == Episode::New {
            self.back_off(rto.flight_bytes);
        }
        self.state.w_max = None;
        self.state.epoch = None;
        self.state.window = self.segments(rto.in_flight_bytes) + 1.0;
    }

    fn on_spurious(&mut self, spurious: &Spurious) {
        let Some(before) = self.before.take() else { return };
        self.ramp.on_spurious();
        if before.window > self.state.window {
            self.state = before;
        }
        self.state.window = self.state.window.max(self.segments(spurious.window_bytes));
    }

    fn on_penalty(&mut self, _now: Instant) {
        if !self.in_slow_start() {
            self.state.ssthresh = (self.state.ssthresh / 2.0).max(WINDOW_MIN);
        }
        self.state.window = (self.state.window / 2.0).max(1.0);
    }

    fn window(&self) -> u64 {
        self.bytes(self.state.window)
    }

    fn ssthresh(&self) -> u64 {
        if self.state.ssthresh.is_finite() { self.bytes(self.state.ssthresh) } else { u64::MAX }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}

/// The cube root of a number that is not negative, by Newton's method. Only operations that IEEE
/// 754 rounds exactly: the same bits on every machine, which a library's root does not promise.
pub(super) fn cube_root(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let mut root = value.max(1.0);
    // From above, each step takes off a third at least until the root is near, then converges.
    for _ in 0..200 {
        let next = (2.0 * root + value / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::cube_root;

    #[test]
    fn cube_root_is_the_inverse_of_the_cube() {
        assert_eq!(cube_root(0.0), 0.0);
        for cube in [0.001_f64, 0.5, 1.0, 27.0, 1e6, 123_456_789.0] {
            let root = cube_root(cube);
            assert!((root * root * root / cube - 1.0).abs() < 1e-12, "{cube}: {root}");
        }
    }
}
