//! TCP Edinburgh (Li, "WhiteHaul-based Spectrum Aggregation in Wi-Fi Bands", 2023, chapter 5), of
//! which the thesis gives an outline: WhiteHaul's growth with HyStart++ in front, and a window that
//! may grow again after a queue. What the outline leaves open is decided in
//! `docs/algorithms/edinburgh.md`.

use super::illinois::beta_at;
use super::recent::Recent;
use super::rounds::Rounds;
use super::whitehaul::{Adv, WhiteHaulConfig};
use super::window::Window;
use super::{
    AckSample, Controller, Loss, PacketState, Phase, Rto, Sent, SlowStart, Spurious, Start,
};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Segments added per round trip from the window that is enough on.
const ALPHA_BASE: f64 = 1.0;
/// Of [`Backoff::Delay`] in a small window: NewReno's share.
const BETA_SMALL: f64 = 0.5;

/// How much of the window a loss takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backoff {
    /// `constant`: always [`EdinburghConfig::beta_64ths`].
    #[default]
    Constant,
    /// `delay`: an eighth to a half, by the queueing delay, as Illinois.
    Delay,
}

/// Edinburgh's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdinburghConfig {
    /// The window that is enough.
    pub adv: Adv,
    /// The mean queueing delay of a round above which there is a queue.
    pub delay: Duration,
    /// Segments added per round trip below the window that is enough, at least 1.
    pub alpha_max: u32,
    /// Rounds without a queue after which the growth is the largest again, at least 1.
    pub theta: u32,
    /// A smaller window grows as NewReno's, in segments.
    pub win_thresh: u32,
    /// How much a loss takes.
    pub backoff: Backoff,
    /// Of [`Backoff::Constant`]: the share of the window that a loss takes, in 64ths; below 64.
    pub beta_64ths: u32,
}

impl Default for EdinburghConfig {
    fn default() -> Self {
        Self {
            adv: Adv::default(),
            delay: WhiteHaulConfig::DELAY,
            alpha_max: 50,
            theta: 2,
            win_thresh: 10,
            backoff: Backoff::default(),
            beta_64ths: 6,
        }
    }
}

/// `edinburgh`: WhiteHaul mended.
#[derive(Clone, Debug)]
pub struct Edinburgh {
    config: EdinburghConfig,
    window: Window,
    rounds: Rounds,
    /// Samples of this round.
    rtt_sum: Duration,
    rtt_count: u32,
    rtts: Recent<Duration>,
    /// Delivery rates that the path, not the application, set.
    rates: Recent<Rate>,
    /// Segments added per window acknowledged.
    alpha: f64,
    /// Share of the window that a loss takes.
    beta: f64,
    /// There was a queue, and not yet enough rounds without one since.
    above: bool,
    /// Such rounds so far.
    low: u32,
}

impl Edinburgh {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart, config: EdinburghConfig) -> Self {
        Self {
            window: Window::new(start, slow_start),
            rounds: Rounds::default(),
            rtt_sum: Duration::ZERO,
            rtt_count: 0,
            rtts: Recent::default(),
            rates: Recent::default(),
            alpha: ALPHA_BASE,
            beta: base_beta(&config),
            above: false,
            low: 0,
            config,
        }
    }

    fn take_sample(&mut self, sample: &AckSample<'_>) {
        if let Some(rtt) = sample.rtt {
            self.rtts.add(sample.now, rtt);
            self.rtt_sum += rtt;
            self.rtt_count += 1;
        }
        if sample.delivery_rate > Rate::ZERO && !sample.rate_is_app_limited {
            self.rates.add(sample.now, sample.delivery_rate);
        }
    }

    fn begin_round(&mut self) {
        self.rounds.begin();
        (self.rtt_sum, self.rtt_count) = (Duration::ZERO, 0);
    }

    /// Decides growth and reduction for the next round, and brings the window back to what is
    /// enough when there was a queue in this one.
    fn end_round(&mut self, sample: &AckSample<'_>) {
        let is_measured = self.rtt_count > 0;
        let Some(base) = self.rtts.least(sample.now).filter(|_| is_measured) else { return };
        let queued = (self.rtt_sum / self.rtt_count).saturating_sub(base);
        let enough = self.enough_bytes(sample.now, base);
        self.alpha = self.next_alpha(queued, enough);
        if queued > self.config.delay
            && sample.phase == Phase::Open
            && !sample.app_limited
            && !self.window.in_slow_start()
            && self.window.bytes() > enough
        {
            self.window.settle(enough);
        }
        self.beta = base_beta(&self.config);
        if self.is_small() {
            self.alpha = ALPHA_BASE;
        } else if self.config.backoff == Backoff::Delay {
            let most = self.rtts.most(sample.now).unwrap_or(base).saturating_sub(base);
            self.beta = beta_at(queued.as_secs_f64(), most.as_secs_f64());
        }
    }

    /// The growth after a round whose packets queued for `queued` on average.
    fn next_alpha(&mut self, queued: Duration, enough_bytes: u64) -> f64 {
        if queued > self.config.delay {
            (self.above, self.low) = (true, 0);
        } else if self.above {
            self.low += 1;
            if self.low >= self.config.theta {
                (self.above, self.low) = (false, 0);
            }
        }
        let is_enough = self.window.bytes() >= enough_bytes;
        if self.above || is_enough { ALPHA_BASE } else { self.config.alpha_max.into() }
    }

    fn enough_bytes(&self, now: Instant, base: Duration) -> u64 {
        let segment_bytes = self.window.segment_bytes();
        let known = self.rates.most(now).map(|rate| (rate, base));
        self.config.adv.segments(known, segment_bytes).saturating_mul(segment_bytes)
    }

    fn is_small(&self) -> bool {
        self.window.bytes() < u64::from(self.config.win_thresh) * self.window.segment_bytes()
    }

    /// What a loss leaves, in bytes.
    fn left_bytes(&self) -> u64 {
        let bytes = self.window.bytes();
        bytes - (bytes as f64 * self.beta) as u64
    }
}

fn base_beta(config: &EdinburghConfig) -> f64 {
    match config.backoff {
        Backoff::Constant => f64::from(config.beta_64ths.min(63)) / 64.0,
        Backoff::Delay => BETA_SMALL,
    }
}

impl Controller for Edinburgh {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.rounds.on_sent(sent);
        self.window.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.take_sample(sample);
        if sample.phase == Phase::FastRecovery {
            return;
        }
        if self.rounds.is_past(sample.newest) {
            self.end_round(sample);
            self.begin_round();
        }
        if let Some(acked_bytes) = self.window.ramp_up(sample) {
            self.window.grow(acked_bytes, self.alpha);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.on_loss(self.left_bytes());
    }

    fn on_rto(&mut self, rto: &Rto) {
        self.window.on_rto(rto, self.left_bytes());
        (self.alpha, self.beta) = (ALPHA_BASE, base_beta(&self.config));
        (self.above, self.low) = (false, 0);
        self.begin_round();
    }

    fn on_spurious(&mut self, spurious: &Spurious) {
        self.window.undo(spurious.window_bytes);
    }

    fn on_penalty(&mut self, _now: Instant) {
        self.window.penalise();
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
