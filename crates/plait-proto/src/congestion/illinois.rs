//! TCP Illinois (Liu, Basar and Srikant, "TCP-Illinois: a loss- and delay-based congestion control
//! algorithm for high-speed networks", Performance Evaluation 65, 2008) as Linux has it. Losses say
//! when the window shrinks, delay says by how much it grows and shrinks.

use super::rounds::Rounds;
use super::whole_window::WholeWindow;
use super::{
    AckSample, Controller, Loss, PacketState, Phase, Rto, Sent, SlowStart, Spurious, Start,
};
use crate::time::Duration;
use crate::time::Instant;
use crate::units::Rate;

/// Segments per round trip: without a queue, with the longest there was, and in a small window.
const ALPHA_MAX: f64 = 10.0;
const ALPHA_MIN: f64 = 0.3;
const ALPHA_BASE: f64 = 1.0;
/// Share of the window that a loss takes: without a queue, with a long one and in a small window.
const BETA_MIN: f64 = 1.0 / 8.0;
const BETA_MAX: f64 = 1.0 / 2.0;
/// A smaller window behaves as NewReno's, in segments.
const WINDOW_THRESH: u64 = 15;
/// Rounds with hardly any queue before the growth is the largest again.
const THETA: u32 = 5;
/// No sample counts as longer: 2^32 microseconds over the largest growth in its units of 1/128.
const RTT_MAX: Duration = Duration::from_micros(3_355_443);

/// `illinois`: adds up to ten segments per round trip while there is no queue, three tenths of one
/// while it is long, and takes an eighth to a half of the window at a loss.
#[derive(Clone, Debug)]
pub struct Illinois {
    window: WholeWindow,
    rounds: Rounds,
    base_rtt: Option<Duration>,
    max_rtt: Duration,
    /// Samples of this round.
    rtt_sum: Duration,
    rtt_count: u32,
    /// Segments added per window acknowledged.
    alpha: f64,
    /// Share of the window that a loss takes.
    beta: f64,
    /// There was a queue since the growth was the largest.
    rtt_above: bool,
    /// Rounds with hardly any queue since then.
    rtt_low: u32,
}

impl Illinois {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart) -> Self {
        Self {
            window: WholeWindow::new(start, slow_start, u64::MAX),
            rounds: Rounds::default(),
            base_rtt: None,
            max_rtt: Duration::ZERO,
            rtt_sum: Duration::ZERO,
            rtt_count: 0,
            alpha: ALPHA_MAX,
            beta: BETA_MAX,
            rtt_above: false,
            rtt_low: 0,
        }
    }

    fn take_sample(&mut self, rtt: Duration) {
        let rtt = rtt.min(RTT_MAX);
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |base| base.min(rtt)));
        self.max_rtt = self.max_rtt.max(rtt);
        self.rtt_sum += rtt;
        self.rtt_count += 1;
    }

    /// Decides growth and reduction for the next round.
    fn end_round(&mut self) {
        if self.window.segments() < WINDOW_THRESH {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA_MAX);
        } else if let Some(base) = self.base_rtt.filter(|_| self.rtt_count > 0) {
            let mean = (self.rtt_sum / self.rtt_count).saturating_sub(base).as_secs_f64();
            let most = (self.max_rtt - base).as_secs_f64();
            self.alpha = self.next_alpha(mean, most);
            self.beta = beta_at(mean, most);
        }
        self.begin_round();
    }

    fn begin_round(&mut self) {
        self.rounds.begin();
        (self.rtt_sum, self.rtt_count) = (Duration::ZERO, 0);
    }

    /// The growth at a mean queueing delay of `mean` where it has been `most`, in seconds.
    fn next_alpha(&mut self, mean: f64, most: f64) -> f64 {
        if mean > most / 100.0 {
            self.rtt_above = true;
            return alpha_at(mean, most);
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
}

/// The paper's f1: from the largest growth, at a hundredth of the longest delay, to the least.
pub(super) fn alpha_at(mean: f64, most: f64) -> f64 {
    let low = most / 100.0;
    let (span, above) = (most - low, mean - low);
    span * ALPHA_MAX / (span + above * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
}

/// The paper's f2: from the least share, up to a tenth of the longest delay, to the largest, from
/// four fifths of it on.
pub(super) fn beta_at(mean: f64, most: f64) -> f64 {
    let (low, high) = (most / 10.0, most * 0.8);
    if mean <= low {
        BETA_MIN
    } else if mean >= high {
        BETA_MAX
    } else {
        BETA_MIN + (BETA_MAX - BETA_MIN) * (mean - low) / (high - low)
    }
}

impl Controller for Illinois {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.rounds.on_sent(sent);
        self.window.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if let Some(rtt) = sample.rtt {
            self.take_sample(rtt);
        }
        if sample.phase == Phase::FastRecovery {
            return;
        }
        if self.rounds.is_past(sample.newest) {
            self.end_round();
        }
        if !self.window.ramp_up(sample) && !sample.app_limited {
            let acked = self.window.segments_of(sample.acked_bytes);
            self.window.grow(acked, self.alpha);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.window.on_loss(self.beta);
    }

    fn on_rto(&mut self, rto: &Rto) {
        self.window.on_rto(rto, self.beta);
        (self.alpha, self.beta) = (ALPHA_BASE, BETA_MAX);
        (self.rtt_above, self.rtt_low) = (false, 0);
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
