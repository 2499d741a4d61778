//! The way of a lossy path back: trains of probes, each of which must be answered.

use crate::time::{Duration, Instant};

/// Probes of a train.
const TRAIN: u32 = 20;
/// Probes of a train are this far apart.
const SPACING: Duration = Duration::from_millis(25);
/// The first check comes this long after the path was left out; the time doubles with every
/// failed check.
const INTERVAL_MIN: Duration = Duration::from_secs(2);
const INTERVAL_MAX: Duration = Duration::from_secs(16);
/// A path that is found lossy again so soon after its return begins with a longer time.
const TRUST_TIME: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Send a probe.
    Probe,
    /// Every probe was answered: the path may carry data again.
    Healed,
}

/// Checks of one path.
#[derive(Debug)]
pub(crate) struct LossCheck {
    interval: Duration,
    next_at: Instant,
    sent: u32,
    answered: u32,
    returned_at: Option<Instant>,
}

impl Default for LossCheck {
    fn default() -> Self {
        Self {
            interval: INTERVAL_MIN,
            next_at: Instant::ZERO,
            sent: 0,
            answered: 0,
            returned_at: None,
        }
    }
}

impl LossCheck {
    /// The path was left out.
    pub(crate) fn begin(&mut self, now: Instant) {
        let soon = self.returned_at.is_some_and(|at| now < at + TRUST_TIME);
        self.interval = if soon { self.interval * 2 } else { INTERVAL_MIN }.min(INTERVAL_MAX);
        self.plan(now);
    }

    fn plan(&mut self, now: Instant) {
        self.next_at = now + self.interval;
        self.sent = 0;
        self.answered = 0;
    }

    /// A probe was answered.
    pub(crate) fn answered(&mut self) {
        self.answered += 1;
    }

    /// When [`Self::step`] has something to do.
    pub(crate) const fn poll_timeout(&self) -> Instant {
        self.next_at
    }

    /// What is to be done now; `patience` is how long the last answer of a train may take.
    pub(crate) fn step(&mut self, now: Instant, patience: Duration) -> Option<Step> {
        if now < self.next_at {
            return None;
        }
        if self.sent < TRAIN {
            self.sent += 1;
            self.next_at = now + if self.sent < TRAIN { SPACING } else { patience };
            return Some(Step::Probe);
        }
        if self.answered >= TRAIN {
            self.returned_at = Some(now);
            return Some(Step::Healed);
        }
        self.interval = (self.interval * 2).min(INTERVAL_MAX);
        self.plan(now);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs checks until the path is taken back; every `lost_every`-th probe has no answer.
    fn back_after(check: &mut LossCheck, from: Instant, lost_every: u32) -> Option<Duration> {
        check.begin(from);
        let mut probes = 0;
        for ms in 0..200_000 {
            let now = from + Duration::from_millis(ms);
            match check.step(now, Duration::from_millis(100)) {
                Some(Step::Probe) => {
                    probes += 1;
                    if lost_every == 0 || probes % lost_every != 0 {
                        check.answered();
                    }
                }
                Some(Step::Healed) => return Some(Duration::from_millis(ms)),
                None => {}
            }
        }
        None
    }

    /// Spec P-5b: after 2 s, by 20 probes that are all answered.
    #[test]
    fn a_healed_path_comes_back_within_three_seconds() {
        let back = back_after(&mut LossCheck::default(), Instant::ZERO, 0).unwrap();
        assert!(back < Duration::from_secs(3), "{back:?}");
    }

    /// Spec P-5b: used again only when all are answered.
    #[test]
    fn a_lossy_path_stays_out() {
        assert_eq!(back_after(&mut LossCheck::default(), Instant::ZERO, 7), None);
    }

    /// Spec P-5b.
    #[test]
    fn a_path_that_relapses_waits_longer() {
        let mut check = LossCheck::default();
        let first = back_after(&mut check, Instant::ZERO, 0).unwrap();
        let second = back_after(&mut check, Instant::from_millis(10_000), 0).unwrap();
        assert!(second > first + Duration::from_secs(1));
    }
}
