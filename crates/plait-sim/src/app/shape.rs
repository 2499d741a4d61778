//! Schedules packets of one size so that their payload follows a load over time.

use plait_proto::time::{Duration, Instant};

use crate::scenario::rate::{Ramp, Shape};

/// Paces packets after a shape. The load is integrated over its steps, so that a change of rate
/// takes effect at once, even between two packets.
#[derive(Debug)]
pub(super) struct Pacer {
    shape: Shape,
    start: Instant,
    payload_bits: f64,
    next_at: Option<Instant>,
    /// The time between two packets where the load never changes.
    gap: Option<Duration>,
}

impl Pacer {
    /// The first packet leaves as soon as there is any load from `start` on.
    pub(super) fn new(shape: Shape, start: Instant, payload_bytes: u32) -> Self {
        let payload_bits = f64::from(payload_bytes) * 8.0;
        let mut pacer = Self { shape, start, payload_bits, next_at: None, gap: None };
        pacer.next_at = pacer.after(start, 0.0);
        if matches!(pacer.shape, Shape::Constant(_)) {
            pacer.gap = pacer.after(start, payload_bits).map(|second| second - start);
        }
        pacer
    }

    /// When the next packet leaves; `None` when the load is zero for good.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// The next packet has left.
    pub(super) fn advance(&mut self) {
        self.next_at = self.next_at.and_then(|at| match self.gap {
            Some(gap) => Some(at + gap),
            None => self.after(at, self.payload_bits),
        });
    }

    /// No packet leaves before `at`.
    pub(super) fn skip_to(&mut self, at: Instant) {
        self.next_at = self.after(at, 0.0);
    }

    /// When `bits` have been offered since `from`.
    fn after(&self, from: Instant, bits: f64) -> Option<Instant> {
        let (mut at, mut left) = (from.since(self.start), bits);
        loop {
            let rate = self.shape.at(at).bits_per_second() as f64;
            let change = next_change(&self.shape, at);
            let room = change
                .map_or(f64::INFINITY, |change| rate * change.saturating_sub(at).as_secs_f64());
            if rate > 0.0 && left <= room {
                return Some(self.start + at + Duration::from_secs_f64(left / rate));
            }
            left -= room.min(left);
            at = change?;
        }
    }
}

/// The next change of the load after this time since its start.
fn next_change(shape: &Shape, since_start: Duration) -> Option<Duration> {
    match shape {
        Shape::Constant(_) => None,
        Shape::Steps(steps) => steps.iter().map(|(from, _)| *from).find(|from| *from > since_start),
        Shape::Ramp(ramp) => next_change_of(ramp, since_start),
    }
}

fn next_change_of(ramp: &Ramp, since_start: Duration) -> Option<Duration> {
    let step_after = |start: Duration, end: Duration| {
        let steps = since_start.saturating_sub(start).as_nanos() / ramp.step.as_nanos() + 1;
        let nanos = u64::try_from(steps * ramp.step.as_nanos()).unwrap_or(u64::MAX);
        (start + Duration::from_nanos(nanos)).min(end)
    };
    let fall_start = ramp.rise + ramp.hold;
    if since_start < ramp.rise {
        Some(step_after(Duration::ZERO, ramp.rise))
    } else if since_start < fall_start {
        Some(fall_start)
    } else if since_start < ramp.length() {
        Some(step_after(fall_start, ramp.length()))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::rate::Return;

    fn times_ms(pacer: &mut Pacer, count: usize) -> Vec<u64> {
        let next = || {
            let at = pacer.next_at()?;
            pacer.advance();
            Some(at.as_nanos() / 1_000_000)
        };
        core::iter::from_fn(next).take(count).collect()
    }

    #[test]
    fn a_change_of_rate_counts_from_its_moment() {
        // 1000 bits: 10 ms at 100 kbit/s. A pause from 25 to 100 ms, with 500 bits offered before
        // it; then 1 Mbit/s.
        let ms = Duration::from_millis;
        let steps = vec![(ms(0), 100e3), (ms(25), 0.0), (ms(100), 1e6)];
        let mut pacer = Pacer::new(Shape::Steps(steps), Instant::from_millis(1000), 125);
        assert_eq!(times_ms(&mut pacer, 5), [1000, 1010, 1020, 1100, 1101]);
    }

    #[test]
    fn no_load_no_packet() {
        let shape = Shape::Steps(vec![(Duration::ZERO, 1e6), (Duration::from_millis(2), 0.0)]);
        let mut pacer = Pacer::new(shape, Instant::ZERO, 125);
        assert_eq!(times_ms(&mut pacer, 9), [0, 1, 2]);
    }

    #[test]
    fn the_ramp_offers_its_integral() {
        let s = Duration::from_secs;
        let ramp = Ramp {
            low: 1e6,
            high: 1e6 * core::f64::consts::E,
            rise: s(2),
            hold: s(1),
            fall: s(2),
            step: Duration::from_millis(1),
            course: Return::Geometric,
        };
        let mut pacer = Pacer::new(Shape::Ramp(ramp), Instant::ZERO, 125);
        let count = times_ms(&mut pacer, 30_000).into_iter().filter(|at| *at < 5_000).count();
        // Each slope: 2 (e - 1) Mbit; the hold: e Mbit.
        let expected = 1000.0 * (4.0 * (core::f64::consts::E - 1.0) + core::f64::consts::E);
        assert!((count as f64 - expected).abs() < 10.0, "{count} against {expected}");
    }
}
