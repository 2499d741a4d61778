//! How long acknowledgements are on their way back, from what the peer says of the way there.
//!
//! A round trip less the one-way delay there, which contains the difference of the clocks, is the
//! one-way delay back less the same difference. How far it lies above its least is the queue on the
//! way back; a controller that took it for its own would send less for the sake of the peer's
//! traffic.

use crate::time::{Duration, Instant};
use crate::wire::sealed::SendTimestamp;

const UNIT: Duration = Duration::from_nanos(SendTimestamp::UNIT_NANOS);
/// The least rises by one part in so many of the time that passes: clocks run apart by 100 ppm at
/// the most, and a way that has become longer is to be known at last.
const RISE_PART: u32 = 4000;

/// Follows the way back of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayBack {
    /// The least, modulo 2^16 units, and when it last rose.
    least: Option<(u16, Instant)>,
    excess: Duration,
}

impl WayBack {
    /// Takes a round trip whose way there took `transit`; the way back explains no more of it than
    /// `longest`.
    pub(super) fn sample(&mut self, now: Instant, rtt: Duration, transit: u16, longest: Duration) {
        let units = (rtt.as_nanos() / UNIT.as_nanos()) as u16;
        let back = units.wrapping_sub(transit);
        let (least, rose_at) = self.least.get_or_insert((back, now));
        let rise = now.since(*rose_at) / RISE_PART;
        if rise >= UNIT {
            *least = least.wrapping_add((rise.as_nanos() / UNIT.as_nanos()) as u16);
            *rose_at = now;
        }
        let above = back.wrapping_sub(*least) as i16;
        if above < 0 {
            *least = back;
        }
        self.excess = (UNIT * u32::from(above.max(0).unsigned_abs())).min(longest);
    }

    /// How much longer than at best the way back of the latest sample was.
    pub(super) const fn excess(&self) -> Duration {
        self.excess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(1);

    /// What is found of a packet sent at `sent_ms` that takes `there_ms` to a peer whose clock is
    /// `ahead` units ahead, and whose acknowledgement takes `back_ms`.
    fn excess(way: &mut WayBack, sent_ms: u64, there_ms: u64, back_ms: u64, ahead: u64) -> u128 {
        let at = |ms: u64, ahead: u64| Instant::from_nanos(ms * 1_000_000 + ahead * 64_000);
        let transit = SendTimestamp::of(at(sent_ms, 0)).transit(at(sent_ms + there_ms, ahead));
        let rtt = Duration::from_millis(there_ms + back_ms);
        way.sample(at(sent_ms + there_ms + back_ms, 0), rtt, transit, LONG);
        (way.excess() + UNIT).as_millis()
    }

    #[test]
    fn a_queue_on_the_way_back_is_told_from_one_on_the_way_there() {
        for ahead in [0, 1, 40_000, 65_535, 1 << 40] {
            let mut way = WayBack::default();
            assert_eq!(excess(&mut way, 1_000, 20, 20, ahead), 0);
            assert_eq!(excess(&mut way, 1_100, 90, 20, ahead), 0);
            assert_eq!(excess(&mut way, 1_200, 20, 90, ahead), 70);
            assert_eq!(excess(&mut way, 1_300, 50, 60, ahead), 40);
            assert_eq!(excess(&mut way, 1_400, 50, 15, ahead), 0);
            assert_eq!(excess(&mut way, 1_500, 20, 20, ahead), 5);
        }
    }

    #[test]
    fn clocks_may_run_apart() {
        let (mut slower, mut quicker) = (WayBack::default(), WayBack::default());
        for step in 0..10_000 {
            // Ten seconds of 100 ppm.
            let drift = step * 1000 / 64;
            assert!(excess(&mut slower, step * 10_000, 20, 20, (1 << 30) - drift) <= 1, "{step}");
            assert!(excess(&mut quicker, step * 10_000, 20, 20, drift) <= 1, "{step}");
        }
    }

    #[test]
    fn a_way_that_stays_longer_is_known_at_last() {
        let mut way = WayBack::default();
        let mut last = 0;
        for step in 0..2_000 {
            let back_ms = if step == 0 { 20 } else { 60 };
            last = excess(&mut way, step * 100, 20, back_ms, 7);
        }
        assert_eq!(last, 0);
    }

    #[test]
    fn it_explains_no_more_than_it_may() {
        let mut way = WayBack::default();
        way.sample(Instant::ZERO, Duration::from_millis(40), 0, LONG);
        let longest = Duration::from_millis(3);
        way.sample(Instant::ZERO, Duration::from_millis(90), 0, longest);
        assert_eq!(way.excess(), longest);
    }
}
