//! 000's holding time as pure functions: how long duplicate ACKs may be held, and how long they
//! had better be. Equation numbers are 000's; `docs/algorithms/holding-time.md` derives what is
//! corrected here. Times are in seconds, windows in segments.

use super::high_speed::{alpha, beta};

/// Gain of the smoothed round-trip time (RFC 6298 §2.3), 000's γ.
pub const GAMMA: f64 = 0.125;
/// Weight of the deviation in the timeout (RFC 6298 §2.3).
pub const K: f64 = 4.0;
/// Clock granularity that a timeout adds at the least (RFC 6298 §2.3).
pub const GRANULARITY_S: f64 = 0.001;
/// Exponent of the probability that a hold of a given length is long enough (equation 2): 1/e.
pub const UPSILON: f64 = 1.0 / core::f64::consts::E;
/// No corrected optimum exceeds this share of the round-trip time, whatever the window and the
/// time since the last congestion event: Υ/(1−Υ).
pub const SUPREMUM_RTT: f64 = UPSILON / (1.0 - UPSILON);

/// What the sender's retransmission timer is made of (RFC 6298).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timeout {
    /// The timeout in force.
    pub rto_s: f64,
    /// Smoothed round-trip time.
    pub srtt_s: f64,
    /// Its mean deviation.
    pub rttvar_s: f64,
    /// The latest sample, 000's R′.
    pub sample_s: f64,
}

impl Timeout {
    /// The timeout of a sender whose timeout exceeds the smoothed round-trip time by `floor_s` at
    /// the least, as Linux's does by 200 ms.
    pub fn with_floor(srtt_s: f64, rttvar_s: f64, sample_s: f64, floor_s: f64) -> Self {
        let variance = (K * rttvar_s).max(GRANULARITY_S).max(floor_s);
        Self { rto_s: srtt_s + variance, srtt_s, rttvar_s, sample_s }
    }
}

/// T_MHT, equation 1: the delay which, added to the latest sample, makes the *next* timeout as long
/// as the present one. It bounds no hold: it may exceed the timeout itself.
pub fn max_holding_time(timeout: &Timeout) -> f64 {
    let Timeout { rto_s, srtt_s, rttvar_s, sample_s } = *timeout;
    let variance = (K * rttvar_s).max(GRANULARITY_S);
    (rto_s - variance - (1.0 - GAMMA) * srtt_s - GAMMA * sample_s) / GAMMA
}

/// The stricter bound: what is left of the timeout after a round trip, less a margin of its mean
/// deviation. An acknowledgement held no longer comes before the timer fires. May be negative.
pub fn stricter_bound(timeout: &Timeout) -> f64 {
    timeout.rto_s - timeout.sample_s - timeout.rttvar_s.max(GRANULARITY_S)
}

/// What the optimum depends on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Round-trip time.
    pub rtt_s: f64,
    /// The sender's window.
    pub w_segments: f64,
    /// T_E: time since the last congestion event.
    pub t_e_s: f64,
}

impl Conditions {
    /// A of equation 3, the failure's weight: w(1−β(w)), in segments.
    pub fn failure(&self) -> f64 {
        self.w_segments * (1.0 - beta(self.w_segments))
    }

    /// B of equation 3, the success's weight: α(w)·T_E, in segments times seconds.
    pub fn success(&self) -> f64 {
        alpha(self.w_segments) * self.t_e_s
    }

    /// ρ = B/A in seconds: the one number, beside the round-trip time, on which the optimum depends.
    pub fn rho_s(&self) -> f64 {
        self.success() / self.failure()
    }

    /// ϑ(t), equation 3, in segments: what a hold of `t_s` is expected to gain, where a hold of
    /// `t_mht_s` is surely long enough.
    pub fn gain(&self, t_s: f64, t_mht_s: f64) -> f64 {
        let long_enough = probability(t_s, t_mht_s);
        self.failure() * (1.0 - long_enough) + self.success() * long_enough / (self.rtt_s + t_s)
    }

    /// The variant with consistent increments, in segments: what a window grows when the hold is
    /// long enough, less what it loses when it is not: −P_f·w·β + P_s·α·T_E/(RTT+t).
    pub fn net_gain(&self, t_s: f64, t_mht_s: f64) -> f64 {
        let long_enough = probability(t_s, t_mht_s);
        let loss = self.w_segments * beta(self.w_segments);
        long_enough * self.success() / (self.rtt_s + t_s) - (1.0 - long_enough) * loss
    }
}

/// P_s, equation 2: the probability that a hold of `t_s` is long enough.
fn probability(t_s: f64, t_mht_s: f64) -> f64 {
    if t_mht_s > 0.0 { (t_s / t_mht_s).clamp(0.0, 1.0).powf(UPSILON) } else { 1.0 }
}

/// t_opt: the positive root of ϑ′ = 0 (equation 5 with its sign put right); 0 where there is none,
/// that is for ρ up to the round-trip time.
pub fn optimum(conditions: &Conditions) -> f64 {
    let Conditions { rtt_s, .. } = *conditions;
    let rho = conditions.rho_s();
    if rho <= rtt_s {
        return 0.0;
    }
    // (−L + √(L² + M)) / 2Υ with its numerator made rational: no difference of large numbers.
    let (linear, root) = parts(rho, rtt_s);
    (2.0 * rho * rtt_s / (linear + root) - rtt_s).max(0.0)
}

/// The default: [`optimum`] kept between a floor, so that it does not stay at 0 for ever, and its
/// own supremum; at most `longest_s`. The floor is half the round-trip time, or the measured delay
/// difference of the attachments if that is longer.
pub fn optimum_with_floor(
    conditions: &Conditions,
    difference_s: Option<f64>,
    longest_s: f64,
) -> f64 {
    let rtt_s = conditions.rtt_s;
    let floor_s = difference_s.unwrap_or(0.0).max(rtt_s / 2.0);
    let ceiling_s = floor_s.max(SUPREMUM_RTT * rtt_s);
    optimum(conditions).clamp(floor_s, ceiling_s).min(longest_s)
}

/// t_max: the stricter bound with the smoothed round-trip time in place of the latest sample, so
/// that one that a gap delayed does not end holding; not below 0.
pub fn longest(timeout: &Timeout) -> f64 {
    stricter_bound(&Timeout { sample_s: timeout.srtt_s, ..*timeout }).max(0.0)
}

/// Equation 5 as it is printed, with a plus where a minus belongs.
pub fn optimum_as_printed(conditions: &Conditions) -> f64 {
    let (linear, root) = parts(conditions.rho_s(), conditions.rtt_s);
    conditions.rtt_s + (linear + root) / (2.0 * UPSILON)
}

/// L = ρ(1−Υ) and √(L² + M) with M = 4Υρ·RTT: the optimum is −RTT + (−L + √(L² + M)) / 2Υ.
fn parts(rho: f64, rtt_s: f64) -> (f64, f64) {
    let linear = rho * (1.0 - UPSILON);
    (linear, (linear * linear + 4.0 * UPSILON * rho * rtt_s).sqrt())
}

/// The best hold of [`Conditions::net_gain`] up to `t_max_s`. After a recent congestion event
/// longer is always better, and that is `t_max_s`.
pub fn net_growth(conditions: &Conditions, t_max_s: f64) -> f64 {
    let Conditions { rtt_s, w_segments, .. } = *conditions;
    let loss = UPSILON * w_segments * beta(w_segments);
    let gain = conditions.success();
    // loss·t² + middle·t + last = 0 where the derivative vanishes.
    let middle = 2.0 * loss * rtt_s - gain * (1.0 - UPSILON);
    let last = loss * rtt_s * rtt_s + gain * UPSILON * rtt_s;
    let discriminant = middle * middle - 4.0 * loss * last;
    if middle >= 0.0 || discriminant <= 0.0 {
        return t_max_s;
    }
    // The smaller root is the maximum, the larger one a minimum after which it may rise above.
    let peak = 2.0 * last / (-middle + discriminant.sqrt());
    let is_peak_best = peak < t_max_s
        && conditions.net_gain(peak, t_max_s) >= conditions.net_gain(t_max_s, t_max_s);
    if is_peak_best { peak } else { t_max_s }
}

/// Holds around the optimum that serve about as well.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OperatingRange {
    /// LB.
    pub low_s: f64,
    /// UB.
    pub high_s: f64,
}

/// The operating range of a chosen width R around the optimum, shared out by the slopes of ϑ on
/// both sides: with θ = 1/S1 + 1/S2 its span is just R. `None` where there is no optimum below
/// `t_mht_s`. The ends are not clamped.
pub fn operating_range(
    conditions: &Conditions,
    t_mht_s: f64,
    width_s: f64,
) -> Option<OperatingRange> {
    let best = optimum(conditions);
    if best <= 0.0 || best >= t_mht_s {
        return None;
    }
    let slope_to = |t_s: f64| {
        let rise = conditions.gain(best, t_mht_s) - conditions.gain(t_s, t_mht_s);
        (rise / (best - t_s)).abs()
    };
    let (below, above) = (slope_to(0.0), slope_to(t_mht_s));
    let both = below + above;
    let share_below = if both > 0.0 { above / both } else { 0.5 };
    Some(OperatingRange {
        low_s: best - width_s * share_below,
        high_s: best + width_s * (1.0 - share_below),
    })
}

#[cfg(test)]
mod tests;
