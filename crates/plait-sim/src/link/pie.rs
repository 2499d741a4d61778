//! Proportional integral controller enhanced (RFC 8033, section 4): drops at the tail of the queue
//! with a probability that follows the delay in the queue.

use plait_proto::time::{Duration, Instant};

use crate::prng::Prng;

/// The controller's target delay (RFC 8033, section 4: `QDELAY_REF`).
pub const PIE_TARGET: Duration = Duration::from_millis(15);
/// How often the probability is computed (`T_UPDATE`).
const UPDATE: Duration = Duration::from_millis(15);
/// How long a queue may grow before anything is dropped (`MAX_BURST`).
const BURST_MAX: Duration = Duration::from_millis(150);

/// Probability 1: probabilities are integers in units of 10^-12.
const ONE: i64 = 1_000_000_000_000;
/// 1/8 per second of distance from the target, per nanosecond.
const ALPHA_PER_NANO: i64 = 125;
/// 5/4 per second of change, per nanosecond.
const BETA_PER_NANO: i64 = 1250;
/// A small probability moves in smaller steps (section 4.2): below the first number, steps are
/// divided by the second.
const SLOWER: [(i64, i64); 6] = [
    (ONE / 1_000_000, 2048),
    (ONE / 100_000, 512),
    (ONE / 10_000, 128),
    (ONE / 1_000, 32),
    (ONE / 100, 8),
    (ONE / 10, 2),
];
/// Below this probability nothing is dropped while the delay is small.
const SPARED: i64 = ONE / 5;
/// With so few packets nothing is dropped.
const SPARED_PACKETS: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Pie {
    probability: i64,
    /// The queue's delay at the last update and at the one before.
    delay: Duration,
    delay_before: Duration,
    burst_left: Duration,
    update_next: Instant,
    prng: Prng,
}

impl Pie {
    pub(super) fn new(prng: Prng) -> Self {
        Self {
            probability: 0,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            burst_left: BURST_MAX,
            update_next: Instant::ZERO + UPDATE,
            prng,
        }
    }

    /// The state at first, at `now`.
    pub(super) fn restarted(&self, now: Instant) -> Self {
        Self { update_next: now + UPDATE, ..Self::new(self.prng.clone()) }
    }

    /// Updates the probability to `now`; `oldest` is when the packet came that has been at the head
    /// of the queue since the last call.
    pub(super) fn update_until(&mut self, now: Instant, oldest: Option<Instant>) {
        while self.update_next <= now {
            if oldest.is_none() && self.is_at_rest() {
                let behind = now.since(self.update_next).as_nanos() / UPDATE.as_nanos() + 1;
                let skipped = behind.saturating_mul(UPDATE.as_nanos());
                self.update_next +=
                    Duration::from_nanos(u64::try_from(skipped).unwrap_or(u64::MAX));
                return;
            }
            let at = self.update_next;
            self.update(oldest.map_or(Duration::ZERO, |came| at.since(came)));
            self.update_next += UPDATE;
        }
    }

    /// Whether a packet that finds so many packets waiting is dropped.
    pub(super) fn drops(&mut self, waiting_packets: usize) -> bool {
        let is_short = self.delay_before < PIE_TARGET / 2 && self.probability < SPARED;
        if is_short || waiting_packets <= SPARED_PACKETS || !self.burst_left.is_zero() {
            return false;
        }
        (self.prng.up_to(ONE.unsigned_abs() - 1)) < self.probability.unsigned_abs()
    }

    /// Whether an update with an empty queue would change nothing.
    fn is_at_rest(&self) -> bool {
        let quiet = self.delay.is_zero() && self.delay_before.is_zero();
        quiet && self.probability == 0 && self.burst_left == BURST_MAX
    }

    /// Section 4.2, and the burst allowance of section 4.4.
    fn update(&mut self, delay: Duration) {
        self.delay_before = self.delay;
        self.delay = delay;
        let distance = nanos(delay) - nanos(PIE_TARGET);
        let change = nanos(delay) - nanos(self.delay_before);
        let step = ALPHA_PER_NANO * distance + BETA_PER_NANO * change;
        let slower = SLOWER.iter().find(|(below, _)| self.probability < *below);
        self.probability += step / slower.map_or(1, |(_, divisor)| *divisor);
        if delay.is_zero() && self.delay_before.is_zero() {
            self.probability -= self.probability / 50;
        }
        self.probability = self.probability.clamp(0, ONE);
        self.burst_left = self.burst_left.saturating_sub(UPDATE);
        let short = PIE_TARGET / 2;
        if self.probability == 0 && self.delay < short && self.delay_before < short {
            self.burst_left = BURST_MAX;
        }
    }
}

/// At most an hour, so that products stay small.
fn nanos(delay: Duration) -> i64 {
    i64::try_from(delay.min(Duration::from_secs(3600)).as_nanos()).expect("an hour fits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn updated(delays_ms: &[u64]) -> Pie {
        let mut pie = Pie::new(Prng::new(1));
        for delay in delays_ms {
            pie.update(Duration::from_millis(*delay));
        }
        pie
    }

    #[test]
    fn the_first_steps_are_those_of_the_equation() {
        // (1/8 · 5 ms + 5/4 · 20 ms) / 2048, then 1/8 · 5 ms / 128 since p is above 1e-5.
        let first = (125 * 5_000_000 + 1250 * 20_000_000) / 2048;
        assert_eq!(updated(&[20]).probability, first);
        assert_eq!(updated(&[20, 20]).probability, first + 125 * 5_000_000 / 128);
    }

    #[test]
    fn a_standing_delay_raises_it_to_one_and_an_empty_queue_lowers_it_to_nothing() {
        let mut pie = updated(&[100; 400]);
        assert_eq!(pie.probability, ONE);
        pie.update_until(ms(40_000), None);
        assert!(pie.is_at_rest(), "{pie:?}");
    }

    #[test]
    fn a_burst_is_let_through_and_few_packets_always() {
        let mut pie = updated(&[100; 9]);
        assert!((0..1000).all(|_| !pie.drops(500)), "150 ms have not passed");
        let mut pie = updated(&[100; 400]);
        assert!((0..1000).all(|_| pie.drops(3)));
        assert!((0..1000).all(|_| !pie.drops(2)));
    }

    #[test]
    fn packets_are_dropped_with_the_probability() {
        let mut pie = updated(&[100; 40]);
        pie.probability = ONE / 4;
        let dropped = (0..40_000).filter(|_| pie.drops(10)).count();
        assert!((9_600..10_400).contains(&dropped), "{dropped} of 40000");
    }
}
