//! The holding time of a gap: the policy applied to what is known of the flow.

use crate::time::{Duration, Instant};

use super::config::{DidaConfig, HoldPolicy};
use super::estimator::Estimator;
use super::holding_time::{self, Conditions};

/// T_hold for a gap that begins now, with `outstanding_bytes` on their way to the client; zero when
/// nothing is to be held. `difference` is the measured delay difference of the attachments.
pub(super) fn holding_time(
    config: &DidaConfig,
    estimator: &Estimator,
    now: Instant,
    outstanding_bytes: u32,
    difference: Option<Duration>,
) -> Duration {
    if let HoldPolicy::Fixed(hold) = config.hold {
        return hold.min(config.hold_max);
    }
    if config.hold == HoldPolicy::Off {
        return Duration::ZERO;
    }
    let rtt_s = estimator.rtt().as_secs_f64();
    let difference_s = difference.map(|difference| difference.as_secs_f64());
    let timeout = estimator.timeout(config.rto_floor);
    let longest_s = holding_time::longest(&timeout).min(config.hold_max.as_secs_f64());
    let conditions = || Conditions {
        rtt_s,
        w_segments: estimator.window_segments(outstanding_bytes),
        t_e_s: estimator.since_congestion(now).as_secs_f64(),
    };
    let hold_s = match config.hold {
        HoldPolicy::Off | HoldPolicy::Fixed(_) => 0.0,
        HoldPolicy::Optimum => {
            holding_time::optimum_with_floor(&conditions(), difference_s, longest_s)
        }
        HoldPolicy::PlainOptimum => holding_time::optimum(&conditions()).min(longest_s),
        HoldPolicy::Printed => {
            let bound = holding_time::max_holding_time(&timeout).max(0.0);
            holding_time::optimum_as_printed(&conditions()).min(bound)
        }
        HoldPolicy::NetGrowth => holding_time::net_growth(&conditions(), longest_s),
        HoldPolicy::DelayDifference => difference_s.unwrap_or(rtt_s / 2.0).min(longest_s),
    };
    Duration::from_secs_f64(hold_s.clamp(0.0, config.hold_max.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tcp::TcpSeq;

    const MS: Duration = Duration::from_millis(1);

    /// A flow with this round-trip time, half of it on each leg, whose epoch began at 0.
    fn estimator(rtt: Duration) -> Estimator {
        let mut estimator = Estimator::new(Instant::ZERO);
        let samples = 40;
        for n in 1..=samples {
            estimator.on_new_data(Instant::ZERO, TcpSeq(n * 1000), 1000);
            estimator.on_acknowledged(Instant::ZERO + rtt / 2, TcpSeq(n * 1000));
        }
        assert_eq!(estimator.rtt(), rtt);
        estimator
    }

    /// The hold with 19 segments on the client's leg, so 38 in all, after `t_e`.
    fn hold(policy: HoldPolicy, rtt: Duration, t_e_s: u64, difference: Option<Duration>) -> u64 {
        let config = DidaConfig { hold: policy, ..DidaConfig::default() };
        let now = Instant::from_millis(t_e_s * 1000);
        let hold = holding_time(&config, &estimator(rtt), now, 19_000, difference);
        u64::try_from((hold + MS / 2).as_millis()).expect("below hold_max")
    }

    #[test]
    fn each_policy_follows_its_formula() {
        let rtt = 100 * MS;
        let cases = [
            (HoldPolicy::Off, 30, None, 0),
            (HoldPolicy::Fixed(70 * MS), 30, None, 70),
            (HoldPolicy::Fixed(600 * MS), 30, None, 600),
            (HoldPolicy::Fixed(9000 * MS), 30, None, 1000),
            (HoldPolicy::Optimum, 0, None, 50),
            (HoldPolicy::Optimum, 30, None, 50),
            (HoldPolicy::Optimum, 60, None, 54),
            (HoldPolicy::Optimum, 60, Some(30 * MS), 54),
            (HoldPolicy::Optimum, 60, Some(80 * MS), 80),
            (HoldPolicy::PlainOptimum, 0, None, 0),
            (HoldPolicy::PlainOptimum, 5, Some(80 * MS), 24),
            (HoldPolicy::PlainOptimum, 30, None, 50),
            (HoldPolicy::Printed, 0, None, 100),
            (HoldPolicy::Printed, 30, None, 1000),
            (HoldPolicy::NetGrowth, 30, None, 69),
            (HoldPolicy::DelayDifference, 30, None, 50),
            (HoldPolicy::DelayDifference, 30, Some(17 * MS), 17),
        ];
        for (policy, t_e_s, difference, expected) in cases {
            let found = hold(policy, rtt, t_e_s, difference);
            assert_eq!(found, expected, "{policy} after {t_e_s} s, difference {difference:?}");
        }
    }

    /// The floor breaks the deadlock at any round-trip time, and leaves room before the timeout.
    #[test]
    fn the_default_is_never_zero() {
        for rtt_ms in [20, 50, 100, 200, 300] {
            let rtt = rtt_ms * MS;
            let found = hold(HoldPolicy::Optimum, rtt, 0, None);
            assert_eq!(found, u64::from(rtt_ms) / 2, "round trip of {rtt_ms} ms");
        }
    }

    /// A late sample makes the timer longer, and the bound with it.
    #[test]
    fn a_late_sample_does_not_end_holding() {
        let mut late = estimator(100 * MS);
        late.on_new_data(Instant::ZERO, TcpSeq(50_000), 1000);
        late.on_acknowledged(Instant::from_millis(400), TcpSeq(50_000));
        let hold = holding_time(&DidaConfig::default(), &late, Instant::ZERO, 19_000, None);
        assert_eq!(hold, late.rtt() / 2);
    }

    /// A hold does not reach the sender's timeout, however far apart the attachments are.
    #[test]
    fn the_timeout_bounds_what_is_not_fixed() {
        for policy in [HoldPolicy::Optimum, HoldPolicy::DelayDifference, HoldPolicy::NetGrowth] {
            let found = hold(policy, 100 * MS, 0, Some(900 * MS));
            assert!((190..200).contains(&found), "{policy}: {found}");
        }
    }
}
