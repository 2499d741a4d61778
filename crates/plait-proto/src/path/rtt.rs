//! Round-trip time of a path (RFC 6298 §2; the minimum over ten seconds as in RFC 9002 §5.2).

use super::way_back::WayBack;
use crate::time::{Duration, Instant};

/// How long a minimum counts.
const MIN_WINDOW: Duration = Duration::from_secs(10);
/// Timeout assumed before the first sample: of the initial round-trip time of 333 ms and the
/// deviation of half of it (RFC 9002 §6.2.2).
const INITIAL_PROBE_TIMEOUT: Duration = Duration::from_millis(999);
/// Clock granularity that a timeout adds at the least (RFC 9002 §6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);

/// Estimates from round-trip samples.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    latest: Option<Duration>,
    /// Minimum of the current window, and when that window began.
    current_min: Option<(Duration, Instant)>,
    /// Minimum of the window before it.
    previous_min: Option<Duration>,
    /// What follows from the samples, and is asked for with every packet.
    probe_timeout: Duration,
    patience: Duration,
    way_back: WayBack,
}

/// Probe timeouts without an answer after which nothing is expected any more.
const PATIENCE_PROBE_TIMEOUTS: u32 = 3;

impl Default for RttEstimator {
    fn default() -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            latest: None,
            current_min: None,
            previous_min: None,
            probe_timeout: INITIAL_PROBE_TIMEOUT,
            patience: INITIAL_PROBE_TIMEOUT.saturating_mul(PATIENCE_PROBE_TIMEOUTS),
            way_back: WayBack::default(),
        }
    }
}

impl RttEstimator {
    /// Takes a sample.
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        self.latest = Some(rtt);
        let smoothed = match self.smoothed {
            None => {
                self.variation = rtt / 2;
                rtt
            }
            Some(smoothed) => {
                let deviation = smoothed.abs_diff(rtt);
                self.variation = (self.variation * 3 + deviation) / 4;
                (smoothed * 7 + rtt) / 8
            }
        };
        self.smoothed = Some(smoothed);
        self.probe_timeout = smoothed + (self.variation * 4).max(GRANULARITY);
        self.patience = self.probe_timeout * PATIENCE_PROBE_TIMEOUTS;
        match &mut self.current_min {
            Some((min, since)) if now.since(*since) < MIN_WINDOW / 2 => *min = rtt.min(*min),
            current => {
                self.previous_min = current.map(|(min, _)| min);
                *current = Some((rtt, now));
            }
        }
    }

    /// The peer's word on how long the latest sample's packet was on its way to it, as
    /// [`SendTimestamp::transit`](crate::wire::sealed::SendTimestamp::transit) has it.
    pub fn note_transit(&mut self, now: Instant, transit: u16) {
        let Some(latest) = self.latest else { return };
        let longest = latest.saturating_sub(self.min().unwrap_or_default());
        self.way_back.sample(now, latest, transit, longest);
    }

    /// How much longer than at best the way back took of late: what of the latest sample is no
    /// queue on the way there.
    pub const fn way_back_excess(&self) -> Duration {
        self.way_back.excess()
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Mean deviation of the round-trip time; `None` before the first sample.
    pub fn variation(&self) -> Option<Duration> {
        self.smoothed.map(|_| self.variation)
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
    pub const fn probe_timeout(&self) -> Duration {
        self.probe_timeout
    }

    /// Three probe timeouts: after so long without an answer none is expected any more.
    pub const fn patience(&self) -> Duration {
        self.patience
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
