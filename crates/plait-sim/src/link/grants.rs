//! Grants: a medium that is assigned in turns, like a cellular or cable uplink.

use plait_proto::time::{Duration, Instant};

use crate::prng::Prng;

/// Gaps between turns, and the rate in a turn. A turn after a gap g lasts until it has sent what
/// the link's rate gives over gap and turn: with p = peak / rate, g / (p - 1). So the mean rate is
/// the link's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grants {
    /// The shortest gap.
    pub gap_min: Duration,
    /// The longest gap; each is drawn uniformly between both.
    pub gap_max: Duration,
    /// The rate in a turn, in percent of the link's: above 100.
    pub peak_percent: u32,
}

/// A shorter gap counts as this long, so that a turn takes some time.
const GAP_LEAST: Duration = Duration::from_micros(100);
/// After a silence of so many cycles the next one begins at a random point, to bound the work.
const CYCLES_BEHIND_MAX: u64 = 64;

impl Grants {
    /// The rate in a turn, in bits per second.
    pub(super) fn peak(&self, bits_per_second: u64) -> u64 {
        let peak = u128::from(bits_per_second) * u128::from(self.percent()) / 100;
        u64::try_from(peak).unwrap_or(u64::MAX)
    }

    fn percent(&self) -> u32 {
        self.peak_percent.max(101)
    }

    fn gap(&self, prng: &mut Prng) -> Duration {
        let spread = nanos(self.gap_max).saturating_sub(nanos(self.gap_min));
        let gap = self.gap_min + Duration::from_nanos(prng.up_to(spread));
        gap.max(GAP_LEAST)
    }

    fn turn_after(&self, gap: Duration) -> Duration {
        gap * 100 / (self.percent() - 100)
    }

    fn cycle_max(&self) -> Duration {
        let gap = self.gap_max.max(GAP_LEAST);
        gap + self.turn_after(gap)
    }
}

/// A gap and the turn after it. Times given must not decrease.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    gap_end: Instant,
    turn_end: Instant,
    prng: Prng,
}

impl Cycle {
    /// A cycle with `now` at a random point in it.
    pub(super) fn new(now: Instant, grants: &Grants, mut prng: Prng) -> Self {
        let gap = grants.gap(&mut prng);
        let (turn, whole) = (grants.turn_after(gap), gap + grants.turn_after(gap));
        let end = now + Duration::from_nanos(1 + prng.up_to(nanos(whole)));
        Self { gap_end: end.saturating_sub(turn), turn_end: end, prng }
    }

    /// Whether the link may send at `now`, and until when that holds.
    pub(super) fn at(&mut self, now: Instant, grants: &Grants) -> (bool, Instant) {
        if now.since(self.turn_end) > grants.cycle_max() * CYCLES_BEHIND_MAX as u32 {
            *self = Self::new(now, grants, self.prng.clone());
        }
        while now >= self.turn_end {
            let gap = grants.gap(&mut self.prng);
            self.gap_end = self.turn_end + gap;
            self.turn_end = self.gap_end + grants.turn_after(gap);
        }
        if now < self.gap_end { (false, self.gap_end) } else { (true, self.turn_end) }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTS: Grants = Grants {
        gap_min: Duration::from_millis(10),
        gap_max: Duration::from_millis(100),
        peak_percent: 400,
    };

    #[test]
    fn gaps_lie_between_their_bounds_and_turns_make_up_for_them() {
        let mut cycle = Cycle::new(Instant::ZERO, &GRANTS, Prng::new(3));
        let (_, mut now) = cycle.at(Instant::ZERO, &GRANTS);
        let mut gaps = Vec::new();
        let mut turns = Duration::ZERO;
        while now < Instant::from_millis(60_000) {
            let (open, until) = cycle.at(now, &GRANTS);
            if open {
                turns += until - now
            } else {
                gaps.push(until - now)
            }
            now = until;
        }
        assert!(gaps.iter().all(|gap| (GRANTS.gap_min..=GRANTS.gap_max).contains(gap)));
        let (shortest, longest) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(shortest.as_millis() < 13 && longest.as_millis() > 97, "{shortest:?} {longest:?}");
        let all: Duration = gaps.iter().sum();
        let share = turns.as_secs_f64() / (turns + all).as_secs_f64();
        assert!((share - 0.25).abs() < 0.002, "a quarter of the time at four times the rate");
    }

    #[test]
    fn a_long_silence_is_passed_over() {
        let mut cycle = Cycle::new(Instant::ZERO, &GRANTS, Prng::new(3));
        let late = Instant::from_millis(86_400_000);
        let (_, until) = cycle.at(late, &GRANTS);
        assert!(until > late && until - late <= GRANTS.cycle_max());
    }
}
