//! Paths that turn bad again as soon as they are used: behind a policer whose bucket fills while
//! they rest, or with a round trip that wanders. Each time costs the flows more than such a path
//! brings, so each time it is left alone for longer.

use crate::time::{Duration, Instant};

/// Who turns bad sooner than this after coming back has had a relapse.
const SOON: Duration = Duration::from_secs(2);
/// The first relapse may be chance; after the second a path is left alone for this.
const FIRST_REST: Duration = Duration::from_secs(1);
const REST_FACTOR: u32 = 4;
const REST_MAX: Duration = Duration::from_secs(30);

/// How often a path turned bad soon after it had come back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Relapses {
    returned_at: Instant,
    relapses: u32,
    rests_until: Instant,
}

impl Relapses {
    /// Whether a path that looks well may come back.
    pub(super) fn may_return(&self, now: Instant) -> bool {
        now >= self.rests_until
    }

    /// It came back.
    pub(super) fn on_return(&mut self, now: Instant) {
        self.returned_at = now;
    }

    /// It turned bad. `is_missed` when it carries a good part of what all do: then it is worth the
    /// trouble.
    pub(super) fn on_out(&mut self, now: Instant, is_missed: bool) {
        let is_relapse = self.returned_at > Instant::ZERO && now.since(self.returned_at) < SOON;
        self.relapses = if is_relapse && !is_missed { self.relapses + 1 } else { 0 };
        let rest = match self.relapses {
            0 | 1 => Duration::ZERO,
            more => (2..more).fold(FIRST_REST, |rest, _| (rest * REST_FACTOR).min(REST_MAX)),
        };
        self.rests_until = now + rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many tenths of a second a path that turns bad 0.5 s after each return is left alone,
    /// time after time.
    fn rests(times: u32, is_missed: bool, lasts_tenths: u64) -> Vec<u64> {
        let mut relapses = Relapses::default();
        let mut tenth = 10;
        let at = |tenth: u64| Instant::from_millis(100 * tenth);
        (0..times)
            .map(|_| {
                relapses.on_return(at(tenth));
                tenth += lasts_tenths;
                relapses.on_out(at(tenth), is_missed);
                let bad_since = tenth;
                tenth = (tenth..).find(|tenth| relapses.may_return(at(*tenth))).unwrap();
                tenth - bad_since
            })
            .collect()
    }

    #[test]
    fn who_turns_bad_again_and_again_is_left_alone_for_longer_each_time() {
        assert_eq!(rests(6, false, 5), [0, 10, 40, 160, 300, 300]);
    }

    #[test]
    fn who_carries_a_good_part_or_lasts_for_two_seconds_may_return_at_once() {
        assert_eq!(rests(6, true, 5), [0; 6]);
        assert_eq!(rests(6, false, 20), [0; 6]);
    }
}
