//! Round-trip time of a path (RFC 6298 §2; the minimum over ten seconds as in RFC 9002 §5.2).

use crate::time::{Duration, Instant};

/// How long a minimum counts.
const MIN_WINDOW: Duration = Duration::from_secs(10);
/// Timeout assumed before the first sample (RFC 9002 §6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Clock granularity that a timeout adds at the least (RFC 9002 §6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);

/// Estimates from round-trip samples.
#[derive(Clone, Debug, Default)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Option<Duration>,
    /// Minimum of the current window, and when that window began.
    current_min: Option<(Duration, Instant)>,
    /// Minimum of the window before it.
    previous_min: Option<Duration>,
}

impl RttEstimator {
    /// Takes a sample.
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        self.latest = Some(rtt);
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                let deviation = smoothed.abs_diff(rtt);
                self.variation = (self.variation * 3 + deviation) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
        match &mut self.current_min {
            Some((min, since)) if now.since(*since) < MIN_WINDOW / 2 => *min = rtt.min(*min),
            current => {
                self.previous_min = current.map(|(min, _)| min);
                *current = Some((rtt, now));
            }
        }
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The latest sample.
    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// The smallest sample of the last five to ten seconds.
    pub fn min(&self) -> Option<Duration> {
        let (current, _) = self.current_min?;
        Some(self.previous_min.map_or(current, |previous| previous.min(current)))
    }

    /// Probe timeout (RFC 9002 §6.2.1), without the peer's acknowledgement delay.
    pub fn probe_timeout(&self) -> Duration {
        match self.smoothed {
            Some(smoothed) => smoothed + (self.variation * 4).max(GRANULARITY),
            None => INITIAL_RTT * 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn follows_rfc_6298() {
        let mut rtt = RttEstimator::default();
        rtt.sample(Instant::ZERO, ms(80));
        assert_eq!((rtt.smoothed(), rtt.variation), (Some(ms(80)), ms(40)));
        rtt.sample(Instant::ZERO, ms(160));
        assert_eq!((rtt.smoothed(), rtt.variation), (Some(ms(90)), ms(50)));
        assert_eq!(rtt.probe_timeout(), ms(290));
    }

    #[test]
    fn the_minimum_ages() {
        let mut rtt = RttEstimator::default();
        rtt.sample(Instant::ZERO, ms(10));
        for second in 1..=4 {
            rtt.sample(Instant::from_millis(second * 1000), ms(30));
        }
        assert_eq!(rtt.min(), Some(ms(10)));
        for second in 5..=11 {
            rtt.sample(Instant::from_millis(second * 1000), ms(30));
        }
        assert_eq!(rtt.min(), Some(ms(30)));
    }
}
