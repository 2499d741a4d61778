//! WhiteHaul's controller (Li, "WhiteHaul-based Spectrum Aggregation in Wi-Fi Bands", 2023,
//! appendix A): a change of Illinois that adds 50 segments per round trip up to a window of 100 and
//! stays there while there is a queue. It behaves as that code does, faults included; each fault
//! has a switch in `whitehaul/repair.rs`.
//!
//! A reproduction of published research. WO2021250377A1 / US20230239702 (University Court of the
//! University of Edinburgh) claims this way of controlling a connection of several paths;
//! whoever uses it beyond research looks into that first. It is never a default.

mod repair;

pub use repair::{Repair, Repairs, UnknownRepair};

use super::illinois::beta_at;
use super::recent::Recent;
use super::rounds::Rounds;
use super::whole_window::WholeWindow;
use super::{
    AckSample, Controller, Loss, PacketState, Phase, Rto, Sent, SlowStart, Spurious, Start,
};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Segments added per round trip below the window that is enough, and from there on.
const ALPHA_MAX: f64 = 50.0;
const ALPHA_BASE: f64 = 1.0;
/// Share of the window that a loss takes.
const BETA: f64 = 6.0 / 64.0;
/// The first slow start ends here, in segments.
const SSTHRESH: u64 = 20;
/// A smaller window behaves as NewReno's, in segments.
const WINDOW_THRESH: u64 = 10;
/// Rounds without a queue after which the growth is the largest again.
const THETA: u32 = 2;
/// Round-trip times, in microseconds: the base before the first sample, the longest that counts,
/// the same as the code's comment has it, and the longest that does not count for the base.
const BASE_US_NONE: u32 = (1 << 31) - 1;
const RTT_US_MAX: u32 = 671_088;
const RTT_US_MAX_MEANT: u32 = 3_355_443;
const RTT_US_SHORT: u32 = 100;

/// The window that is enough: up to it the growth is large, beyond it small, and a queue brings the
/// window back to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adv {
    /// So many segments.
    Segments(u32),
    /// What the path delivers in its base round-trip time: the greatest delivery rate of the last
    /// ten seconds times the least round-trip time of a controller's memory. Ten segments at least;
    /// 100 while nothing is known.
    Auto,
}

impl Adv {
    /// The code's constant.
    pub const DEFAULT_SEGMENTS: u32 = 100;
    /// Segments of [`Adv::Auto`] at least.
    const AUTO_MIN: u64 = 10;

    /// In segments of `segment_bytes`.
    pub(super) fn segments(self, known: Option<(Rate, Duration)>, segment_bytes: u64) -> u64 {
        match (self, known) {
            (Self::Segments(segments), _) => segments.into(),
            (Self::Auto, None) => Self::DEFAULT_SEGMENTS.into(),
            (Self::Auto, Some((rate, base_rtt))) => {
                (rate.bytes_in(base_rtt) / segment_bytes).max(Self::AUTO_MIN)
            }
        }
    }
}

impl Default for Adv {
    fn default() -> Self {
        Self::Segments(Self::DEFAULT_SEGMENTS)
    }
}

/// WhiteHaul's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WhiteHaulConfig {
    /// The window that is enough; the repair `adv` makes it [`Adv::Auto`].
    pub adv: Adv,
    /// With the repair `delay`: the mean queueing delay of a round above which there is a queue.
    pub delay: Duration,
    /// Which faults are repaired.
    pub repairs: Repairs,
}

impl WhiteHaulConfig {
    /// The mean queueing delay above which there is a queue.
    pub const DELAY: Duration = Duration::from_millis(50);
}

impl Default for WhiteHaulConfig {
    fn default() -> Self {
        Self { adv: Adv::default(), delay: Self::DELAY, repairs: Repairs::NONE }
    }
}

/// `whitehaul`: the window of a link whose capacity is thought to be known.
#[derive(Clone, Debug)]
pub struct WhiteHaul {
    config: WhiteHaulConfig,
    segment_bytes: u64,
    window: WholeWindow,
    rounds: Rounds,
    delay: Delay,
    /// Delivery rates that the path, not the application, set.
    rates: Recent<Rate>,
    /// The window that is enough, in segments.
    adv: u64,
    /// Segments added per window acknowledged.
    alpha: f64,
    /// Share of the window that a loss takes.
    beta: f64,
    /// There was a queue; only rounds with a window below `adv` take it back.
    rtt_above: bool,
    /// Such rounds so far.
    rtt_low: u32,
    /// There was a queue in the latest round.
    is_above: bool,
}

impl WhiteHaul {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart, config: WhiteHaulConfig) -> Self {
        let repairs = config.repairs;
        let ssthresh = if repairs.contains(Repair::Ssthresh) { u64::MAX } else { SSTHRESH };
        let mut this = Self {
            config,
            segment_bytes: start.segment_bytes,
            window: WholeWindow::new(start, slow_start, ssthresh),
            rounds: Rounds::default(),
            delay: Delay::default(),
            rates: Recent::default(),
            adv: 0,
            alpha: ALPHA_MAX,
            beta: BETA,
            rtt_above: false,
            rtt_low: 0,
            is_above: false,
        };
        this.adv = this.enough(Instant::ZERO);
        this
    }

    fn repairs(&self, fault: Repair) -> bool {
        self.config.repairs.contains(fault)
    }

    /// The window that is enough, in segments.
    fn enough(&self, now: Instant) -> u64 {
        let adv = if self.repairs(Repair::Adv) { Adv::Auto } else { self.config.adv };
        let base = self.delay.base_us(now, self.config.repairs);
        let known = self.rates.most(now).filter(|_| base < BASE_US_NONE);
        let base = Duration::from_micros(base.into());
        adv.segments(known.map(|rate| (rate, base)), self.segment_bytes)
    }

    /// Decides growth and reduction for the next round.
    fn end_round(&mut self, now: Instant) {
        self.is_above = false;
        if self.window.segments() < WINDOW_THRESH {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA);
        } else if let Some(queued_us) = self.delay.queued_us(now, self.config.repairs) {
            self.adv = self.enough(now);
            self.alpha = self.next_alpha(Duration::from_micros(queued_us.into()));
            if self.repairs(Repair::Beta) {
                let most = self.delay.queued_us_max(now, self.config.repairs);
                self.beta = beta_at(queued_us.into(), most.into());
            }
        }
        self.begin_round();
    }

    fn begin_round(&mut self) {
        self.rounds.begin();
        self.delay.begin_round();
    }

    /// The growth after a round whose packets queued for `queued` on average.
    fn next_alpha(&mut self, queued: Duration) -> f64 {
        let is_free = self.repairs(Repair::Delay);
        let threshold = if is_free { self.config.delay } else { WhiteHaulConfig::DELAY };
        if queued > threshold {
            (self.rtt_above, self.is_above) = (true, true);
            return ALPHA_BASE;
        }
        if self.window.segments() >= self.adv {
            return ALPHA_BASE;
        }
        if self.rtt_above {
            self.rtt_low += 1;
            if self.rtt_low < THETA {
                return self.alpha;
            }
            (self.rtt_above, self.rtt_low) = (false, 0);
        }
        ALPHA_MAX
    }

    /// Brings the window back to what is enough while there is, or was, a queue.
    fn hold_down(&mut self, sample: &AckSample<'_>) {
        let has_queue = if self.repairs(Repair::Latch) { self.is_above } else { self.rtt_above };
        let is_spared = sample.app_limited && self.repairs(Repair::UnusedWindow);
        if sample.phase == Phase::Open
            && has_queue
            && !is_spared
            && !self.window.in_slow_start()
            && self.window.segments() >= self.adv
        {
            self.window.settle(self.adv);
        }
    }
}

/// Round-trip times in the code's arithmetic: whole microseconds of 32 bits.
#[derive(Clone, Debug)]
struct Delay {
    base_us: u32,
    max_us: u32,
    /// Those that count for the base.
    recent_us: Recent<u32>,
    sum_us: u64,
    count: u64,
}

impl Default for Delay {
    fn default() -> Self {
        Self { base_us: BASE_US_NONE, max_us: 0, recent_us: Recent::default(), sum_us: 0, count: 0 }
    }
}

impl Delay {
    fn take_sample(&mut self, now: Instant, rtt: Duration, repairs: Repairs) {
        let is_meant = repairs.contains(Repair::RttMax);
        let longest = if is_meant { RTT_US_MAX_MEANT } else { RTT_US_MAX };
        let rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).min(longest);
        if rtt_us > RTT_US_SHORT || repairs.contains(Repair::ShortSamples) {
            self.base_us = self.base_us.min(rtt_us);
            self.recent_us.add(now, rtt_us);
        }
        self.max_us = self.max_us.max(rtt_us);
        self.sum_us += u64::from(rtt_us);
        self.count += 1;
    }

    fn begin_round(&mut self) {
        (self.sum_us, self.count) = (0, 0);
    }

    fn base_us(&self, now: Instant, repairs: Repairs) -> u32 {
        let recent = self.recent_us.least(now).filter(|_| repairs.contains(Repair::Ageing));
        recent.unwrap_or(self.base_us)
    }

    /// The round's mean less the base; what is below zero wraps around. `None` without a sample.
    fn queued_us(&self, now: Instant, repairs: Repairs) -> Option<u32> {
        let is_wide = repairs.contains(Repair::Count);
        let count = if is_wide { self.count } else { self.count & u64::from(u16::MAX) };
        let mean = self.sum_us.checked_div(count)?;
        Some((mean as u32).wrapping_sub(self.base_us(now, repairs)))
    }

    /// The longest queueing delay.
    fn queued_us_max(&self, now: Instant, repairs: Repairs) -> u32 {
        let recent = self.recent_us.most(now).filter(|_| repairs.contains(Repair::Ageing));
        recent.unwrap_or(self.max_us).wrapping_sub(self.base_us(now, repairs))
    }
}

impl Controller for WhiteHaul {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.rounds.on_sent(sent);
        self.window.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if let Some(rtt) = sample.rtt {
            self.delay.take_sample(sample.now, rtt, self.config.repairs);
        }
        if sample.delivery_rate > Rate::ZERO && !sample.rate_is_app_limited {
            self.rates.add(sample.now, sample.delivery_rate);
        }
        if sample.phase == Phase::FastRecovery {
            return;
        }
        if self.rounds.is_past(sample.newest) {
            self.end_round(sample.now);
        }
        self.hold_down(sample);
        if !self.window.ramp_up(sample) && !sample.app_limited {
            let acked = self.window.segments_of(sample.acked_bytes);
            if self.repairs(Repair::Remainder) {
                self.window.grow_exactly(acked, self.alpha);
            } else {
                self.window.grow(acked, self.alpha);
            }
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.on_loss(self.beta);
    }

    fn on_rto(&mut self, rto: &Rto) {
        self.window.on_rto(rto, self.beta);
        (self.alpha, self.beta) = (ALPHA_BASE, BETA);
        (self.rtt_above, self.rtt_low, self.is_above) = (false, 0, false);
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
        self.window.ssthresh_bytes()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
