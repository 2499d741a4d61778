//! The retransmission timeout (RFC 6298) and the minimum round-trip time.

use plait_proto::time::{Duration, Instant};

/// RFC 6298 section 2.1.
const INITIAL: Duration = Duration::from_secs(1);
/// Linux's TCP_RTO_MIN, the minimum of the variance term: the timeout is at least srtt + 200 ms.
const VARIANCE_TERM_MIN: Duration = Duration::from_millis(200);
/// Linux's TCP_RTO_MAX.
const MAX: Duration = Duration::from_secs(120);
/// Linux's tcp_min_rtt_wlen.
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(300);

#[derive(Clone, Debug, Default)]
pub(super) struct RttEstimator {
    /// Smoothed round-trip time and its variation.
    smoothed: Option<(Duration, Duration)>,
    min_rtt: Option<(Instant, Duration)>,
    /// How often the timeout was doubled since data was last acknowledged.
    backoff: u32,
}

impl RttEstimator {
    /// Takes a sample (RFC 6298 sections 2.2 and 2.3).
    pub(super) fn on_sample(&mut self, rtt: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => ((srtt * 7 + rtt) / 8, (rttvar * 3 + srtt.abs_diff(rtt)) / 4),
        });
    }

    /// Takes a sample for the minimum, which forgets after five minutes.
    pub(super) fn on_min_sample(&mut self, now: Instant, rtt: Duration) {
        let stands =
            self.min_rtt.filter(|(at, known)| *known < rtt && now.since(*at) < MIN_RTT_LIFETIME);
        if stands.is_none() {
            self.min_rtt = Some((now, rtt));
        }
    }

    pub(super) fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    pub(super) fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|(_, rttvar)| rttvar)
    }

    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|(_, rtt)| rtt)
    }

    /// The timeout, backed off.
    pub(super) fn rto(&self) -> Duration {
        let base = self
            .smoothed
            .map_or(INITIAL, |(srtt, rttvar)| srtt + (rttvar * 4).max(VARIANCE_TERM_MIN));
        base.saturating_mul(1 << self.backoff.min(10)).min(MAX)
    }

    /// A timeout by another rule on the smoothed round-trip time and its variation, backed off.
    pub(super) fn backed_off(&self, rule: fn(Duration, Duration) -> Duration) -> Duration {
        let base = self.smoothed.map_or(INITIAL, |(srtt, rttvar)| rule(srtt, rttvar));
        base.saturating_mul(1 << self.backoff.min(10)).min(MAX)
    }

    /// The timer fired (section 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// New data was acknowledged (section 5.7, as Linux reads it).
    pub(super) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    pub(super) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn first_and_second_sample_follow_rfc_6298() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), ms(1000));
        rtt.on_sample(ms(200));
        // srtt 200, rttvar 100.
        assert_eq!(rtt.rto(), ms(200 + 400));
        rtt.on_sample(ms(120));
        // rttvar = (3*100 + 80)/4 = 95, srtt = (7*200 + 120)/8 = 190.
        assert_eq!(rtt.srtt(), Some(ms(190)));
        assert_eq!(rtt.rto(), ms(190 + 380));
    }

    #[test]
    fn the_variance_term_has_a_floor_and_the_timeout_a_ceiling() {
        let mut rtt = RttEstimator::default();
        rtt.on_sample(ms(20));
        assert_eq!(rtt.rto(), ms(220));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), ms(880));
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Duration::from_secs(120));
        rtt.end_backoff();
        assert_eq!(rtt.rto(), ms(220));
    }

    #[test]
    fn the_minimum_forgets_after_five_minutes() {
        let mut rtt = RttEstimator::default();
        rtt.on_min_sample(Instant::from_millis(0), ms(20));
        rtt.on_min_sample(Instant::from_millis(299_000), ms(30));
        assert_eq!(rtt.min_rtt(), Some(ms(20)));
        rtt.on_min_sample(Instant::from_millis(300_000), ms(40));
        assert_eq!(rtt.min_rtt(), Some(ms(40)));
    }
}
