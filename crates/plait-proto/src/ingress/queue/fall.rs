//! How far the bond's rate has fallen lately. Behind a radio it comes back within seconds, and
//! finds only those flows at their pace that were not told to slow down meanwhile.

use crate::scheduler::PathView;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The highest rate of this time and the one before counts.
const REMEMBERED: Duration = Duration::from_secs(5);
/// A fall counts up to so many times.
const TIMES_MAX: u64 = 8;

/// The highest rate lately, and the rate now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fall {
    began: Instant,
    highest: [Rate; 2],
    now: Rate,
}

impl Fall {
    /// Follows what the paths together carry.
    pub(super) fn follow(&mut self, now: Instant, view: &[PathView]) {
        let bits = view.iter().map(|path| path.capacity.bits_per_second());
        self.now = Rate::from_bits_per_second(bits.fold(0, u64::saturating_add));
        if now.since(self.began) >= REMEMBERED {
            self.highest = [Rate::ZERO, self.highest[0]];
            self.began = now;
        }
        self.highest[0] = self.highest[0].max(self.now);
    }

    /// `time` at the highest rate in what it takes now.
    pub(super) fn stretched(&self, time: Duration) -> Duration {
        let highest = self.highest[0].max(self.highest[1]).bits_per_second();
        let now = self.now.bits_per_second().max(1);
        let percent = (highest.saturating_mul(100) / now).clamp(100, 100 * TIMES_MAX);
        time.saturating_mul(u32::try_from(percent).unwrap_or(100)) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::path;

    /// 30 ms after each of the rates, which last for so many seconds each.
    fn targets(mbit: &[u64], seconds: u64) -> Vec<u128> {
        let mut fall = Fall::default();
        let mut tenth = 0;
        mbit.iter()
            .map(|mbit| {
                for _ in 0..10 * seconds {
                    let view =
                        [path(0).closed(mbit / 2, 0).build(), path(1).closed(mbit / 2, 0).build()];
                    fall.follow(Instant::from_millis(100 * tenth), &view);
                    tenth += 1;
                }
                fall.stretched(Duration::from_millis(30)).as_millis()
            })
            .collect()
    }

    #[test]
    fn a_fall_stretches_the_target_for_five_to_ten_seconds() {
        assert_eq!(targets(&[80, 20, 80, 40], 3), [30, 120, 30, 60]);
        assert_eq!(targets(&[80, 20, 20, 20], 3), [30, 120, 120, 30]);
        assert_eq!(targets(&[80, 2], 3), [30, 240], "eight times at most");
    }

    #[test]
    fn no_rate_is_no_fall() {
        assert_eq!(targets(&[0, 0, 20], 1), [30; 3]);
    }
}
