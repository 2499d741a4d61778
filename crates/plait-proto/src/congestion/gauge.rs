//! Gauge: a controller that models the path by the most it delivers and the least it delays. It
//! descends from BBR, whose machine of states is here; what it measures is in `gauge/`, one
//! estimator per file. What follows which draft and what is its own: `docs/algorithms/gauge.md`.

mod bandwidth;
mod extra_acked;
mod full_pipe;
mod loss_floor;
mod meter;
mod min_rtt;
mod model;
mod overload;
mod policer;
mod probe;
mod relief;
mod startup_gain;

use super::{AckSample, Controller, Loss, PacketState, Rto, Sent, Spurious, Start};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use full_pipe::FullPipe;
use meter::Reading;
use model::Model;
use probe::{ProbeRtt, ProbeUp, Verdict};
use startup_gain::StartupGain;

/// Section 5.3.2.
const DRAIN_GAIN: u64 = 50;
/// Of BBRv1, so that the queue of a probe is gone within a round trip; the draft has 0.9.
const DOWN_GAIN: u64 = 75;
const CRUISE_GAIN: u64 = 100;
/// Section 5.3.4.3.
const PROBE_RTT_WINDOW_GAIN: u64 = 50;
/// Section 5.6.2: pacing stays so much below the estimate, in per cent.
const PACING_MARGIN: u64 = 1;
/// A drain that takes longer was begun with a wrong idea of the path.
const DRAIN_ROUNDS_MAX: u32 = 3;
/// What a probe left behind is gone after one; the rest is no queue, or cruise works it off.
const DOWN_ROUNDS_MAX: u32 = 1;

/// Where the machine stands.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Doubles the rate each round trip until the pipe is full.
    Startup,
    /// Empties the queue that startup, or a fall of the path's rate, left behind.
    Drain { rounds: u32 },
    /// Sends at the estimated rate.
    Cruise { rounds: u32 },
    /// Sends more than the estimated rate, to see whether it is delivered.
    Up(ProbeUp),
    /// Empties the queue that this left behind.
    Down { rounds: u32 },
    /// Leaves the pipe half empty for a moment, to see the round-trip time without a queue.
    ProbeRtt(ProbeRtt),
}

/// `gauge`: sends at the rate at which data arrives, and probes for more.
#[derive(Clone, Debug)]
pub struct Gauge {
    start: Start,
    state: State,
    model: Model,
    full_pipe: FullPipe,
    startup_gain: StartupGain,
    window_bytes: u64,
    /// The window before the latest timeout, until it is reached again or taken back.
    window_before_rto: u64,
    /// When the latest probe for bandwidth began.
    probed_at: Instant,
    /// Probes begun, from which each takes its phase.
    probes: u64,
    /// The latest of them had too little to send.
    was_starved: bool,
    /// When the path was last seen to carry less than believed.
    declined_at: Option<Instant>,
}

impl Gauge {
    /// Before the first packet.
    pub fn new(start: Start) -> Self {
        Self {
            start,
            state: State::Startup,
            model: Model::default(),
            full_pipe: FullPipe::default(),
            startup_gain: StartupGain::default(),
            window_bytes: start.initial_window_bytes.max(model::window_min(start.segment_bytes)),
            window_before_rto: 0,
            probed_at: Instant::ZERO,
            probes: 0,
            was_starved: false,
            declined_at: None,
        }
    }

    /// The measured interval may show a path that carries less than believed, or a stale idea of
    /// its least round-trip time.
    fn judge(&mut self, sample: &AckSample<'_>, reading: Option<&Reading>) {
        let overload = self.model.find_overload(sample);
        if matches!(self.state, State::Startup | State::ProbeRtt(_)) {
            self.model.forget_decline();
            return;
        }
        let segment_bytes = self.start.segment_bytes;
        let decline = |reading: &Reading| self.model.find_decline(sample, reading, segment_bytes);
        let Some(rate) = overload.or_else(|| reading.and_then(decline)) else { return };
        if self.declined_at.is_some_and(|at| !self.model.min_rtt.was_low_after(at)) {
            // Less in flight did not shorten the round trip: it is longer than believed.
            self.enter_probe_rtt();
            return;
        }
        self.decline(sample.now, rate);
    }

    fn decline(&mut self, now: Instant, rate: Rate) {
        self.declined_at = Some(now);
        self.model.decline_to(now, rate);
        self.state = State::Drain { rounds: 0 };
    }

    /// Nothing comes any more of what was sent. What was suspected before is then certain.
    fn end_suspicion(&mut self, now: Instant) {
        if matches!(self.state, State::Startup | State::ProbeRtt(_)) {
            return;
        }
        if let Some(rate) = self.model.suspected_rate(now) {
            self.decline(now, rate);
        }
    }

    fn step(&mut self, sample: &AckSample<'_>, round_over: bool) {
        match &mut self.state {
            State::Startup => {
                let segment_bytes = self.start.segment_bytes;
                if self.full_pipe.on_ack(&self.model, segment_bytes, round_over) {
                    let overran = self.model.round.overran(segment_bytes);
                    if let Some(in_flight_bytes) = overran {
                        self.model.bound(in_flight_bytes);
                    }
                    self.state = State::Drain { rounds: 0 };
                }
            }
            State::Down { rounds } => {
                *rounds += u32::from(round_over);
                let is_empty = sample.in_flight_bytes <= self.model.base_bytes();
                if is_empty || *rounds > DOWN_ROUNDS_MAX {
                    self.enter_cruise(sample.now);
                }
            }
            State::Drain { rounds } => {
                *rounds += u32::from(round_over);
                if sample.in_flight_bytes <= self.model.bdp_bytes() || *rounds > DRAIN_ROUNDS_MAX {
                    self.enter_cruise(sample.now);
                }
            }
            State::Cruise { rounds } => {
                *rounds += u32::from(round_over);
                // The first two still show the losses of the state before.
                if round_over && *rounds > 2 {
                    self.model.learn_loss();
                }
                // The probe before had too little to send, and now there is enough.
                let is_asked_for = self.was_starved && round_over && !sample.rate_is_app_limited;
                self.cruise(sample.now, is_asked_for);
            }
            State::Up(probe) => {
                let segment_bytes = self.start.segment_bytes;
                let verdict = probe.on_ack(sample, &self.model, segment_bytes, round_over);
                self.was_starved = probe.was_starved();
                if probe.was_clean() && round_over {
                    self.model.raise_bound();
                }
                match verdict {
                    Verdict::Open => {}
                    Verdict::Done => self.state = State::Down { rounds: 0 },
                    Verdict::Overran(in_flight_bytes) => {
                        self.model.bound(in_flight_bytes);
                        self.state = State::Down { rounds: 0 };
                    }
                    Verdict::FarMore => {
                        self.full_pipe = FullPipe::default();
                        self.startup_gain = StartupGain::default();
                        self.state = State::Startup;
                    }
                }
            }
            State::ProbeRtt(probe) => {
                let target = self.model.gain_bytes(PROBE_RTT_WINDOW_GAIN);
                let target = target.max(model::window_min(self.start.segment_bytes));
                if let Some(rtt) = probe.on_ack(sample, target, round_over) {
                    self.model.min_rtt.adopt(sample.now, rtt);
                    self.model.relief.forget();
                    self.enter_cruise(sample.now);
                }
            }
        }
    }

    fn enter_cruise(&mut self, now: Instant) {
        if matches!(self.state, State::Drain { .. }) {
            self.probed_at = now;
        }
        self.state = State::Cruise { rounds: 0 };
    }

    /// `is_asked_for` when a probe need not wait for its time.
    fn cruise(&mut self, now: Instant, is_asked_for: bool) {
        if self.model.min_rtt.is_stale(now) {
            return self.enter_probe_rtt();
        }
        if self.model.policer.bound().is_some() {
            // It asks for more itself, and more gently.
            return;
        }
        let is_due = now.since(self.probed_at) >= self.model.probe_interval(now, self.probes)
            && self.model.may_ask_for_more();
        if is_due {
            self.model.bandwidth.advance();
        }
        if is_due || is_asked_for {
            self.probe_up(now);
        }
    }

    fn probe_up(&mut self, now: Instant) {
        self.probes += 1;
        self.probed_at = now;
        let is_small = self.model.bdp_bytes() <= 2 * model::window_min(self.start.segment_bytes);
        self.state = State::Up(ProbeUp::new(self.model.rate(), is_small));
    }

    fn enter_probe_rtt(&mut self) {
        self.declined_at = None;
        self.state = State::ProbeRtt(ProbeRtt::default());
    }

    fn pacing_gain(&self) -> u64 {
        match &self.state {
            State::Startup => self.startup_gain.percent(self.model.rate()),
            State::Drain { .. } => DRAIN_GAIN,
            State::Cruise { .. } => self.model.relief.gain(),
            State::Up(probe) => probe.gain(),
            State::Down { .. } => DOWN_GAIN,
            State::ProbeRtt(_) => CRUISE_GAIN,
        }
    }

    fn target_bytes(&self) -> u64 {
        match &self.state {
            State::Startup | State::Up(_) => self.model.window_max(true),
            State::Cruise { .. } | State::Down { .. } => self.model.window_max(false),
            State::Drain { .. } => self.model.bdp_bytes() + self.model.allowance_bytes(),
            State::ProbeRtt(_) => self.model.gain_bytes(PROBE_RTT_WINDOW_GAIN),
        }
    }

    /// Section 5.6.4.6: grows by what is acknowledged, at most to the target; in startup nothing is
    /// taken away.
    fn set_window(&mut self, acked_bytes: u64) {
        let target = self.target_bytes();
        let grown = self.window_bytes.saturating_add(acked_bytes);
        self.window_bytes = match self.state {
            State::Startup if self.window_bytes >= target => self.window_bytes,
            State::Startup => grown,
            _ => grown.min(target),
        }
        .max(model::window_min(self.start.segment_bytes));
    }
}

impl Controller for Gauge {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        if sent.in_flight_bytes <= sent.bytes {
            // After idle time: the known rate, and no verdict on what was going on before
            // (section 5.4.1). A probe goes on, since with little in flight a process that was late
            // looks like idle time.
            self.model.on_idle_restart();
            if !matches!(self.state, State::Startup | State::Up(_)) {
                self.state = State::Cruise { rounds: 0 };
            }
        }
        self.startup_gain.on_sent(sent.now, sent.bytes, self.model.rate());
        let gain = self.pacing_gain();
        self.model.on_sent(sent, gain)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.model.note_way_back(sample);
        let way_back_excess = sample.way_back_excess.unwrap_or_default();
        let there = |rtt: Duration| rtt.saturating_sub(way_back_excess);
        let sample = &AckSample { rtt: sample.rtt.map(there), ..*sample };
        let round_over = self.model.on_ack(sample);
        let relieves = matches!(self.state, State::Cruise { .. });
        let reading = self.model.read_meter(sample, relieves);
        self.judge(sample, reading.as_ref());
        let is_steady = matches!(self.state, State::Cruise { rounds } if rounds > 2);
        self.model.watch_policer(sample, is_steady, self.start.segment_bytes);
        self.step(sample, round_over);
        if round_over {
            self.startup_gain.on_round(&self.model.round);
            self.model.begin_round();
        }
        self.set_window(sample.acked_bytes);
        if self.window_bytes >= self.window_before_rto {
            self.window_before_rto = 0;
        }
    }

    /// Losses are counted with the acknowledgements that show them; one alone says nothing.
    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, rto: &Rto) {
        self.window_before_rto = self.window_before_rto.max(self.window_bytes);
        let window = rto.in_flight_bytes + self.start.segment_bytes;
        self.window_bytes = window.min(self.window_bytes);
        self.model.on_idle_restart();
    }

    fn on_silence(&mut self, now: Instant) {
        self.end_suspicion(now);
    }

    /// Probes at once, unless it does so already. What looked like a policer may have been those
    /// that have left.
    fn on_relief(&mut self, now: Instant) {
        if matches!(self.state, State::Cruise { .. } | State::Down { .. }) {
            self.model.policer.forget();
            self.probe_up(now);
        }
    }

    fn on_spurious(&mut self, _spurious: &Spurious) {
        self.window_bytes = self.window_bytes.max(core::mem::take(&mut self.window_before_rto));
    }

    fn window(&self) -> u64 {
        self.window_bytes
    }

    fn ssthresh(&self) -> u64 {
        u64::MAX
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let bandwidth = self.model.rate();
        if bandwidth == Rate::ZERO {
            return None;
        }
        let base = match self.state {
            // The first acknowledgements show the rate of a few packets (section 5.6.2).
            State::Startup => bandwidth.max(self.model.initial_rate(&self.start)),
            _ => bandwidth,
        };
        let sent = self.model.with_losses(base.bits_per_second());
        let bits = sent.saturating_mul(self.pacing_gain() * (100 - PACING_MARGIN)) / 10_000;
        let least = self.model.rate_min(self.start.segment_bytes).bits_per_second();
        Some(Rate::from_bits_per_second(bits.max(least).max(1)))
    }

    fn bandwidth(&self) -> Option<Rate> {
        Some(self.model.rate()).filter(|rate| *rate > Rate::ZERO)
    }

    fn in_slow_start(&self) -> bool {
        matches!(self.state, State::Startup)
    }

    fn meters_recovery(&self) -> bool {
        true
    }
}
