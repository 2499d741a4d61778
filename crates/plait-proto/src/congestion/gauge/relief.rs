//! How a standing queue is worked off, and when what looks like one is none.

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The gain with which a queue is worked off at most, in hundredths.
const GAIN_MIN: u64 = 75;
/// A queue of a whole round trip takes this much off the gain, in per cent.
const PERCENT: u128 = 25;
/// So much more is taken off while the queue does not become shorter.
const STEP: u64 = 4;
/// A queue that stands is in all intervals of so long at least, and of twice as long at most.
/// Longer would tell a wandering delay better, and let the queue of a slower path grow longer.
const STANDS_FOR: Duration = Duration::from_millis(100);
/// Round trips after which a gain must show: one to act, one to be seen.
const TRIAL_RTTS: u32 = 2;
const TRIAL_EXTRA: Duration = Duration::from_millis(20);
/// What no gain took away is forgotten by this part with each reading that shows less.
const FORGET_PART: u32 = 256;
/// Part of the least round-trip time by which a later excess must be longer to be tried again.
const MARGIN_PART: u32 = 4;
/// For so long after it overran an excess is a queue, and nothing of it the path's own.
const OVERRUN_COUNTS_FOR: Duration = Duration::from_secs(5);

/// What arrives, of what is sent, while no queue becomes longer or shorter, in per cent: less is a
/// path that carries less, more is a queue being worked off.
const BALANCE: core::ops::RangeInclusive<u64> = 92..=107;

/// The least excess of the latest time: a delay that wanders comes back within it, a queue that
/// stands does not.
#[derive(Clone, Copy, Debug, Default)]
struct LeastExcess {
    since: Instant,
    latest: Option<Duration>,
    before: Option<Duration>,
}

impl LeastExcess {
    /// Takes an interval's excess and tells the least.
    fn on_reading(&mut self, now: Instant, excess: Duration) -> Duration {
        if now.since(self.since) >= STANDS_FOR {
            (self.since, self.before, self.latest) = (now, self.latest, None);
        }
        self.latest = super::model::least(self.latest, Some(excess));
        super::model::least(self.before, self.latest).unwrap_or(excess)
    }
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    since: Instant,
    queue: Duration,
    gain: u64,
    arrived_bytes: u64,
}

/// An interval, as the meter saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) now: Instant,
    /// When it began.
    pub(super) since: Instant,
    /// What arrived in it.
    pub(super) rate: Rate,
    /// Its least round-trip time over the least of all.
    pub(super) excess: Duration,
    /// More was lost than the path loses of itself.
    pub(super) is_lossy: bool,
    pub(super) min_rtt: Duration,
    /// What the path is believed to carry.
    pub(super) bandwidth: Rate,
}

/// Sends less while a queue stands. If the round trip does not become shorter for it, its length
/// is the path's own, as with radio links, and is borne; unless packets are lost with it, since a
/// queue that others keep full, as CUBIC does, does not become shorter either.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Relief {
    /// Excess of the round-trip time that sending less did not take away.
    unexplained: Duration,
    /// The rest of it.
    queue: Duration,
    least: LeastExcess,
    trial: Option<Trial>,
    /// Until when it is known to be a queue.
    overran_until: Instant,
}

impl Relief {
    /// The queue that stood through the latest interval, as far as known.
    pub(super) const fn queue(&self) -> Duration {
        self.queue
    }

    pub(super) const fn unexplained(&self) -> Duration {
        self.unexplained
    }

    /// In hundredths.
    pub(super) fn gain(&self) -> u64 {
        self.trial.map_or(100, |trial| trial.gain)
    }

    /// Takes an interval; `acts` while the gain is the one in force.
    pub(super) fn on_reading(&mut self, seen: &Seen, acts: bool) {
        let Seen { now, min_rtt, .. } = *seen;
        let excess = self.least.on_reading(now, seen.excess);
        if acts && seen.is_lossy && excess > Duration::ZERO {
            self.unexplained = Duration::ZERO;
            self.overran_until = now + OVERRUN_COUNTS_FOR;
        }
        let spare = self.unexplained.saturating_sub(excess);
        self.unexplained = self.unexplained.saturating_sub(spare / FORGET_PART);
        self.queue = excess.saturating_sub(self.unexplained);
        if !acts || self.queue == Duration::ZERO {
            self.trial = None;
            return;
        }
        let by_queue = gain_for(self.queue, min_rtt);
        let Some(trial) = &mut self.trial else {
            let (queue, gain) = (self.queue, by_queue);
            self.trial = Some(Trial { since: now, queue, gain, arrived_bytes: 0 });
            return;
        };
        trial.arrived_bytes += seen.rate.bytes_in(now.since(seen.since));
        trial.gain = trial.gain.min(by_queue);
        let elapsed = now.since(trial.since);
        if elapsed < min_rtt * TRIAL_RTTS + TRIAL_EXTRA {
            return;
        }
        let expected = elapsed * u32::try_from(100 - trial.gain).unwrap_or(0) / 100;
        let is_shorter = self.queue + (expected / 4).min(trial.queue / 4) <= trial.queue;
        let sent_bytes = seen.bandwidth.bytes_in(elapsed) * trial.gain / 100;
        let is_balanced = BALANCE.contains(&(trial.arrived_bytes * 100 / sent_bytes.max(1)));
        let is_own = is_balanced && now >= self.overran_until;
        if !is_shorter && trial.gain == GAIN_MIN && is_own {
            let borne = self.unexplained + self.queue + min_rtt / MARGIN_PART;
            self.unexplained = borne.min(min_rtt);
            return self.find_none();
        }
        trial.gain =
            if is_shorter { by_queue } else { trial.gain.saturating_sub(STEP).max(GAIN_MIN) };
        (trial.since, trial.queue, trial.arrived_bytes) = (now, self.queue, 0);
    }

    /// Nothing is known of the queue.
    pub(super) fn restart(&mut self) {
        self.least = LeastExcess::default();
        self.find_none();
    }

    fn find_none(&mut self) {
        (self.queue, self.trial) = (Duration::ZERO, None);
    }

    /// The least round-trip time was measured anew.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

fn gain_for(queue: Duration, min_rtt: Duration) -> u64 {
    let off = queue.as_nanos().saturating_mul(PERCENT) / min_rtt.as_nanos().max(1);
    100_u64.saturating_sub(u64::try_from(off).unwrap_or(u64::MAX)).max(GAIN_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What 20 Mbit/s deliver `percent` of, over 30 ms before `at_ms`.
    fn seen(at_ms: u64, excess_ms: u64, percent: u64) -> Seen {
        Seen {
            now: Instant::from_millis(at_ms),
            since: Instant::from_millis(at_ms - 30),
            rate: Rate::from_bits_per_second(200_000 * percent),
            excess: Duration::from_millis(excess_ms),
            min_rtt: Duration::from_millis(30),
            bandwidth: Rate::from_mbit(20),
            is_lossy: false,
        }
    }

    #[test]
    fn what_sending_less_does_not_take_away_is_borne() {
        let mut relief = Relief::default();
        for step in 1..40 {
            relief.on_reading(&seen(30 * step, 12, relief.gain()), true);
        }
        assert_eq!((relief.gain(), relief.queue()), (100, Duration::ZERO));
        for step in 40..60 {
            relief.on_reading(&seen(30 * step, 25, 100), true);
        }
        assert!(relief.gain() < 100, "a longer one is tried again");
    }

    #[test]
    fn a_delay_that_comes_back_within_the_time_a_queue_stands_is_none() {
        let mut relief = Relief::default();
        for step in 1..100 {
            relief.on_reading(&seen(30 * step, (step + 2) % 3 * 6, 100), true);
            assert_eq!((relief.gain(), relief.queue()), (100, Duration::ZERO), "{step}");
        }
    }

    #[test]
    fn a_queue_that_overran_is_borne_by_nobody() {
        let mut relief = Relief::default();
        for step in 1..20 {
            relief.on_reading(&seen(30 * step, 12, relief.gain()), true);
        }
        assert_eq!(relief.gain(), 100);
        relief.on_reading(&Seen { is_lossy: true, ..seen(600, 12, 100) }, true);
        for step in 21..100 {
            relief.on_reading(&seen(30 * step, 12, relief.gain()), true);
        }
        assert_eq!((relief.gain(), relief.unexplained()), (GAIN_MIN, Duration::ZERO));
    }

    #[test]
    fn a_queue_that_becomes_shorter_is_worked_off() {
        let mut relief = Relief::default();
        for step in 1..12 {
            relief.on_reading(&seen(30 * step, 24 - 2 * step, 85), true);
            assert!(relief.gain() < 100, "{step}");
        }
        relief.on_reading(&seen(400, 0, 85), true);
        assert_eq!((relief.gain(), relief.unexplained()), (100, Duration::ZERO));
    }

    #[test]
    fn what_is_left_of_a_queue_sets_the_gain_as_it_becomes_shorter() {
        let mut relief = Relief::default();
        for step in 1..12 {
            relief.on_reading(&seen(30 * step, 30, 85), true);
        }
        assert_eq!(relief.gain(), GAIN_MIN);
        for step in 12..20 {
            relief.on_reading(&seen(30 * step, 30 - (step - 12) * 3, 107), true);
        }
        assert!(relief.gain() > 85, "{}: six milliseconds of thirty are left", relief.gain());
    }

    #[test]
    fn a_path_that_delivers_less_than_is_sent_has_a_queue_however_long_it_stands() {
        let mut relief = Relief::default();
        for step in 1..100 {
            relief.on_reading(&seen(30 * step, 30, 50), true);
        }
        assert_eq!((relief.gain(), relief.unexplained()), (GAIN_MIN, Duration::ZERO));
    }
}
