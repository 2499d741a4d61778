//! CUBIC as Linux computes it, in whole segments and clock ticks: the sender to compare a kernel
//! with. What it computes is RFC 8312's rule; `docs/algorithms/cubic-linux.md` lists where the
//! arithmetic matters.

use super::cubic::cube_root;
use super::slow_start::{Ramp, Ramped};
use super::{
    AckSample, Controller, Episode, Loss, PacketState, Phase, Rto, Sent, SlowStart, Spurious, Start,
};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// RFC 8312 section 5, in segments per second cubed.
const C: f64 = 0.4;
/// A loss leaves 717 of 1024 parts, nearly seven tenths.
const BETA: u64 = 717;
const BETA_UNIT: u64 = 1024;
/// Acknowledged segments per eighth of the window for which NewReno's estimate grows by one: 8/15
/// of a segment per round trip, RFC 8312 section 4.2's 9/17 in whole numbers.
const RENO_EIGHTHS: u64 = 15;
/// The estimate is renewed when the window has changed, or after a thirty-second of a second in
/// ticks of 4 ms.
const RENEWAL: Duration = Duration::from_millis(28);
/// The window grows by half a segment per acknowledged one at most.
const ACKS_PER_SEGMENT_MIN: u64 = 2;
/// Before the first loss it grows by a twentieth at least.
const ACKS_PER_SEGMENT_FIRST: u64 = 20;
const WINDOW_MIN: u64 = 2;

/// `cubic-linux`: CUBIC in Linux's arithmetic.
#[derive(Clone, Debug)]
pub struct CubicLinux {
    segment_bytes: u64,
    ramp: Ramp,
    state: State,
    /// The window and its ssthresh before the latest episode of loss.
    before: Option<(u64, u64)>,
}

/// Windows in segments.
#[derive(Clone, Copy, Debug)]
struct State {
    window: u64,
    /// `u64::MAX` while unknown.
    ssthresh: u64,
    /// Acknowledged segments that have not grown the window yet.
    credit: u64,
    /// What slow start has grown by beyond whole segments, in bytes.
    rest_bytes: u64,
    /// The window before the latest reduction, or less after fast convergence; 0 before the first.
    last_max: u64,
    epoch: Option<Epoch>,
}

/// One congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    latest: Instant,
    /// Time from `start` to `origin`, in seconds.
    k_s: f64,
    origin: u64,
    /// Acknowledged segments that grow the window by one.
    acks_per_segment: u64,
    renewed_at: Instant,
    renewed_for: u64,
    /// Acknowledged segments that have not grown `reno` yet.
    reno_credit: u64,
    /// NewReno's window.
    reno: u64,
}

impl Epoch {
    fn new(now: Instant, window: u64, last_max: u64) -> Self {
        let gap = last_max.saturating_sub(window);
        Self {
            start: now,
            latest: now,
            k_s: cube_root(gap as f64 / C),
            origin: last_max.max(window),
            acks_per_segment: 1,
            renewed_at: now,
            // No window: the first acknowledgement renews.
            renewed_for: 0,
            reno_credit: 0,
            reno: window,
        }
    }

    /// Takes acknowledged segments and tells how many of them grow the window by one.
    fn on_ack(&mut self, sample: &AckSample<'_>, acked: u64, window: u64, is_first: bool) -> u64 {
        self.reno_credit += acked;
        let is_fresh = sample.now.since(self.renewed_at) <= RENEWAL;
        if self.renewed_for == window && is_fresh {
            return self.acks_per_segment;
        }
        (self.renewed_at, self.renewed_for) = (sample.now, window);
        let ahead = sample.min_rtt.unwrap_or_default();
        let time = (sample.now.since(self.start) + ahead).as_secs_f64() - self.k_s;
        // Linux rounds the distance from the origin, not the target: before K it is short of the
        // origin by whole segments only.
        let away = (C * time.abs() * time * time) as u64;
        let target = if time < 0.0 {
            self.origin.saturating_sub(away)
        } else {
            self.origin.saturating_add(away)
        };
        let mut acks = match target.checked_sub(window) {
            Some(gap @ 1..) => window / gap,
            _ => 100 * window,
        };
        if is_first {
            acks = acks.min(ACKS_PER_SEGMENT_FIRST);
        }
        let per_reno_segment = (window * RENO_EIGHTHS / 8).max(1);
        self.reno += self.reno_credit / per_reno_segment;
        self.reno_credit %= per_reno_segment;
        if let Some(gap @ 1..) = self.reno.checked_sub(window) {
            acks = acks.min(window / gap);
        }
        self.acks_per_segment = acks.max(ACKS_PER_SEGMENT_MIN);
        self.acks_per_segment
    }
}

impl State {
    /// Grows the window by one for each `acks_per_segment` segments acknowledged.
    fn grow(&mut self, acks_per_segment: u64, acked: u64) {
        // What was gathered under a higher price is worth one segment at most.
        if self.credit >= acks_per_segment {
            self.credit = 0;
            self.window += 1;
        }
        self.credit += acked;
        self.window += self.credit / acks_per_segment;
        self.credit %= acks_per_segment;
    }
}

impl CubicLinux {
    /// A controller in slow start, with HyStart unless another form is asked for.
    pub fn new(start: Start, slow_start: SlowStart) -> Self {
        let window = start.initial_window_bytes / start.segment_bytes;
        Self {
            segment_bytes: start.segment_bytes,
            ramp: Ramp::new(slow_start, start.segment_bytes),
            state: State {
                window,
                ssthresh: u64::MAX,
                credit: 0,
                rest_bytes: 0,
                last_max: 0,
                epoch: None,
            },
            before: None,
        }
    }

    fn avoid_congestion(&mut self, sample: &AckSample<'_>, acked: u64) {
        let State { window, last_max, .. } = self.state;
        let make = || Epoch::new(sample.now, window, last_max);
        let epoch = self.state.epoch.get_or_insert_with(make);
        let pause = sample.now.since(epoch.latest);
        epoch.latest = sample.now;
        if sample.app_limited {
            epoch.start += pause;
            return;
        }
        let acks_per_segment = epoch.on_ack(sample, acked, window, last_max == 0);
        self.state.grow(acks_per_segment, acked);
    }

    fn back_off(&mut self) {
        let State { window, ssthresh, last_max, .. } = self.state;
        self.before = Some((window, ssthresh));
        let is_converging = window < last_max;
        self.state.last_max =
            if is_converging { window * (BETA_UNIT + BETA) / (2 * BETA_UNIT) } else { window };
        self.state.ssthresh = (window * BETA / BETA_UNIT).max(WINDOW_MIN);
        self.state.epoch = None;
        self.state.rest_bytes = 0;
        self.ramp.on_loss();
    }
}

impl Controller for CubicLinux {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.ramp.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if sample.phase == Phase::FastRecovery {
            return;
        }
        let mut acked_bytes = sample.acked_bytes;
        if self.in_slow_start() {
            acked_bytes = acked_bytes.div_ceil(self.segment_bytes) * self.segment_bytes;
            let whole = AckSample { acked_bytes, ..*sample };
            let grown_from = self.window() + self.state.rest_bytes;
            match self.ramp.on_ack(&whole, grown_from, self.ssthresh()) {
                Ramped::Grown { window_bytes, left_bytes } => {
                    self.state.window = window_bytes / self.segment_bytes;
                    self.state.rest_bytes = window_bytes % self.segment_bytes;
                    acked_bytes = left_bytes;
                }
                Ramped::Full => self.state.ssthresh = self.state.window,
            }
        }
        if !self.in_slow_start() && (acked_bytes > 0 || sample.app_limited) {
            self.avoid_congestion(sample, acked_bytes.div_ceil(self.segment_bytes));
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.back_off();
        self.state.window = self.state.ssthresh;
        self.state.credit = 0;
    }

    fn on_rto(&mut self, rto: &Rto) {
        if rto.episode == Episode::New {
            self.back_off();
        }
        self.ramp.restart();
        self.state.last_max = 0;
        self.state.epoch = None;
        self.state.credit = 0;
        self.state.window = rto.in_flight_bytes.div_ceil(self.segment_bytes) + 1;
    }

    fn on_spurious(&mut self, spurious: &Spurious) {
        if let Some((window, ssthresh)) = self.before.take() {
            self.ramp.on_spurious();
            let used = spurious.window_bytes / self.segment_bytes;
            self.state.window = self.state.window.max(window).max(used);
            self.state.ssthresh = self.state.ssthresh.max(ssthresh);
        }
    }

    fn on_penalty(&mut self, _now: Instant) {
        if !self.in_slow_start() {
            self.state.ssthresh = (self.state.ssthresh / 2).max(WINDOW_MIN);
        }
        self.state.window = (self.state.window / 2).max(1);
    }

    fn window(&self) -> u64 {
        self.state.window * self.segment_bytes
    }

    fn ssthresh(&self) -> u64 {
        self.state.ssthresh.saturating_mul(self.segment_bytes)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
