//! How much a flow sent lately, and so what kind of flow it is: a count of bytes that decays with
//! time, made to follow only when the flow sends.

use crate::scheduler::FlowClass;
use crate::time::{Duration, Instant};

/// After a silence of this long half of the count is left.
const HALF_LIFE: Duration = Duration::from_millis(100);
/// Steps in which the count decays, per half life.
const STEPS: u64 = 16;
const STEP_NANOS: u64 = HALF_LIFE.as_nanos() as u64 / STEPS;

/// A flow with more than this in the count fills a queue. Ten full packets, TCP's first window (RFC
/// 6928 §2), are not more; nor is a steady 800 kbit/s.
const BULK_ABOVE_BYTES: u32 = 15_000;
/// A flow that is back at this no longer does.
const INTERACTIVE_BELOW_BYTES: u32 = BULK_ABOVE_BYTES / 2;

/// 2^16 · 2^(−n/16).
const DECAY: [u32; STEPS as usize] = [
    65536, 62757, 60097, 57549, 55109, 52773, 50535, 48393, 46341, 44376, 42495, 40693, 38968,
    37316, 35734, 34219,
];

/// What one flow sent lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Activity {
    bytes: u32,
    /// The step up to which `bytes` has decayed.
    step: u64,
    is_bulk: bool,
}

impl Activity {
    /// Takes note of a packet, and says what kind of flow it belongs to.
    pub(super) fn record(&mut self, now: Instant, bytes: usize) -> FlowClass {
        self.decay(now);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let above = if self.is_bulk { INTERACTIVE_BELOW_BYTES } else { BULK_ABOVE_BYTES };
        self.bytes = self.bytes.saturating_add(bytes);
        self.is_bulk = self.bytes > above;
        if self.is_bulk { FlowClass::Bulk } else { FlowClass::Interactive }
    }

    fn decay(&mut self, now: Instant) {
        let step = now.as_nanos() / STEP_NANOS;
        let passed = step.saturating_sub(self.step);
        if passed == 0 {
            return;
        }
        self.step = step;
        let factor = DECAY[(passed % STEPS) as usize];
        let part = (u64::from(self.bytes) * u64::from(factor)) >> 16;
        let halves = u32::try_from(passed / STEPS).unwrap_or(u32::MAX);
        self.bytes = part.checked_shr(halves).unwrap_or(0) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Classes of packets of so many bytes, one every `every`, for a second.
    fn classes(activity: &mut Activity, from: Instant, bytes: usize, every: Duration) -> Vec<bool> {
        let mut now = from;
        let mut bulk = Vec::new();
        while now.since(from) < Duration::from_secs(1) {
            bulk.push(activity.record(now, bytes) == FlowClass::Bulk);
            now += every;
        }
        bulk
    }

    fn is_ever_bulk(bytes: usize, every: Duration) -> bool {
        classes(&mut Activity::default(), Instant::ZERO, bytes, every).contains(&true)
    }

    #[test]
    fn calls_pings_and_keystrokes_are_interactive() {
        assert!(!is_ever_bulk(250, Duration::from_millis(20)), "100 kbit/s");
        assert!(!is_ever_bulk(1500, Duration::from_millis(20)), "600 kbit/s");
        assert!(is_ever_bulk(1500, Duration::from_millis(10)), "1.2 Mbit/s");
    }

    #[test]
    fn a_connection_begins_interactive_and_a_download_is_bulk() {
        let every = Duration::from_micros(100);
        let bulk = classes(&mut Activity::default(), Instant::ZERO, 1500, every);
        assert_eq!(bulk.iter().position(|bulk| *bulk), Some(10), "after ten packets");
        assert!(bulk[10..].iter().all(|bulk| *bulk), "and stays so");
    }

    #[test]
    fn the_class_has_hysteresis() {
        let between = Duration::from_millis(15);
        assert!(!is_ever_bulk(1250, between), "700 kbit/s from a rest");
        let mut activity = Activity::default();
        for _ in 0..11 {
            activity.record(Instant::ZERO, 1500);
        }
        let bulk = classes(&mut activity, Instant::ZERO, 1250, between);
        assert!(bulk.iter().all(|bulk| *bulk), "700 kbit/s after a burst");
    }

    #[test]
    fn a_flow_that_rests_is_interactive_again() {
        let mut activity = Activity::default();
        for _ in 0..100 {
            activity.record(Instant::ZERO, 1500);
        }
        // 150 kB fall to 7.5 kB in 4.3 half lives.
        assert_eq!(activity.record(Instant::from_millis(420), 0), FlowClass::Bulk);
        assert_eq!(activity.record(Instant::from_millis(440), 0), FlowClass::Interactive);
    }

    #[test]
    fn the_count_halves_with_each_half_life_in_steps_and_at_once() {
        for pieces in [1, 2, 16] {
            let mut activity = Activity::default();
            activity.record(Instant::ZERO, 1 << 20);
            for piece in 1..=pieces {
                activity.record(Instant::from_nanos(300_000_000 / pieces * piece), 0);
            }
            assert!(activity.bytes.abs_diff(1 << 17) <= 16, "{pieces}: {}", activity.bytes);
        }
        let mut activity = Activity::default();
        activity.record(Instant::ZERO, usize::MAX);
        activity.record(Instant::FAR_FUTURE, 0);
        assert_eq!(activity.bytes, 0);
    }
}
