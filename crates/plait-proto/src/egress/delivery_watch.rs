//! Whether what arrives is also delivered (spec R-7).
//!
//! A sender sees that its datagrams arrive, from acknowledgements, and not that the resequencer
//! throws their packets away. When nearly all are thrown away for some time, the two ends number
//! the bond's packets differently, and only another bond helps.
//!
//! A packet that comes too late and for the first time is of a number that was missing here: where
//! others are delivered meanwhile, both ends number alike, and the timer is short.

use crate::time::{Duration, Instant};
use crate::wire::control::Discards;

/// Nearly all must have been thrown away for so long.
const PATIENCE: Duration = Duration::from_secs(3);
/// So few can be duplicates of a repair, or late for a reason that passes.
const DISCARDED_MIN: u32 = 8;
/// Nearly all: at most one in so many was delivered.
const DELIVERED_PART: u32 = 10;
/// When a packet is delivered this long after the last one that was thrown away, that is over: what
/// was sent again while no acknowledgement came through arrives twice, all at once.
const PAUSE: Duration = Duration::from_secs(1);
/// In each of these it must be nearly all.
const SECOND: Duration = Duration::from_secs(1);
const COUNT_MAX: u32 = 1 << 20;
/// While it goes on it is told this often.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// What became of a packet that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It is on its way to the host, or waits.
    Kept,
    /// It was thrown away because it came too late, and for the first time.
    Late,
    /// It was thrown away: its number came before, or is too old to be remembered.
    Repeated,
}

/// Arrivals.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    arrived: u32,
    discarded: u32,
    /// Of those: late.
    late: u32,
}

impl Counts {
    fn add(&mut self, fate: Fate) {
        if self.arrived >= COUNT_MAX {
            // Old arrivals count for less.
            let Self { arrived, discarded, late } = *self;
            *self = Self { arrived: arrived / 2, discarded: discarded / 2, late: late / 2 };
        }
        self.arrived += 1;
        self.discarded += u32::from(fate != Fate::Kept);
        self.late += u32::from(fate == Fate::Late);
    }

    fn is_nearly_all(&self) -> bool {
        let is_any_kept = self.discarded < self.arrived;
        let late = if is_any_kept { self.late } else { 0 };
        (self.arrived - self.discarded + late) * DELIVERED_PART <= self.arrived
    }
}

/// A stretch of arrivals that began with a packet thrown away.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    since: Instant,
    last: Instant,
    counts: Counts,
    /// Those of the second under way, and when it began.
    second: Counts,
    second_at: Instant,
}

impl Stretch {
    fn begin(now: Instant) -> Self {
        let (counts, second) = (Counts::default(), Counts::default());
        Self { since: now, last: now, counts, second, second_at: now }
    }

    /// Whether the second under way is over and was not like the others: what came all at once
    /// before it says nothing of it.
    fn has_passed(&self, now: Instant) -> bool {
        now.since(self.second_at) >= SECOND && !self.second.is_nearly_all()
    }

    fn add(&mut self, now: Instant, fate: Fate) {
        if now.since(self.second_at) >= SECOND {
            (self.second, self.second_at) = (Counts::default(), now);
        }
        self.counts.add(fate);
        self.second.add(fate);
        if fate != Fate::Kept {
            self.last = now;
        }
    }

    fn is_long(&self, now: Instant) -> bool {
        now.since(self.since) >= PATIENCE && self.counts.discarded >= DISCARDED_MIN
    }
}

/// Watches what becomes of a bond's packets.
#[derive(Debug, Default)]
pub(super) struct DeliveryWatch {
    stretch: Option<Stretch>,
    told_at: Option<Instant>,
}

impl DeliveryWatch {
    /// A data packet arrived.
    pub(super) fn record(&mut self, now: Instant, fate: Fate) {
        let is_discarded = fate != Fate::Kept;
        let is_over = |stretch: &Stretch| {
            let pause = !is_discarded && now.since(stretch.last) >= PAUSE;
            pause || stretch.has_passed(now)
        };
        self.stretch = self.stretch.filter(|stretch| !is_over(stretch));
        if is_discarded {
            self.stretch.get_or_insert_with(|| Stretch::begin(now));
        }
        if let Some(stretch) = &mut self.stretch {
            stretch.add(now, fate);
        }
        self.stretch = self.stretch.filter(|stretch| stretch.counts.is_nearly_all());
    }

    /// What is thrown away, while it is nearly all.
    pub(super) fn found(&self, now: Instant) -> Option<Discards> {
        let Counts { arrived, discarded, .. } = self.stretch.filter(|s| s.is_long(now))?.counts;
        Some(Discards { arrived, discarded })
    }

    /// The same, when it is time to tell of it.
    pub(super) fn tell(&mut self, now: Instant) -> Option<Discards> {
        let found = self.found(now)?;
        let is_due = self.told_at.is_none_or(|told| now.since(told) >= TELL_INTERVAL);
        is_due.then(|| self.told_at = Some(now)).map(|()| found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn fate(is_discarded: bool) -> Fate {
        if is_discarded { Fate::Repeated } else { Fate::Kept }
    }

    /// One packet every 100 ms; of ten, so many are delivered.
    fn found_after(seconds: u64, delivered_of_ten: u64) -> Option<Discards> {
        let mut watch = DeliveryWatch::default();
        for n in 0..seconds * 10 {
            watch.record(at(n * 100), fate(n % 10 >= delivered_of_ten));
        }
        watch.found(at(seconds * 1000))
    }

    /// Spec R-7: nine tenths, for 3 s.
    #[test]
    fn nearly_all_for_three_seconds_is_found() {
        assert_eq!(found_after(2, 0), None);
        assert_eq!(found_after(3, 0), Some(Discards { arrived: 30, discarded: 30 }));
        assert!(found_after(10, 1).is_some_and(|found| found.discarded == 90));
        assert_eq!(found_after(10, 2), None);
        assert_eq!(found_after(10, 5), None);
    }

    /// Spec R-7: what came too late counts while nothing else comes.
    #[test]
    fn regression_a_timer_that_gives_up_nearly_all_is_no_other_numbering() {
        let mut watch = DeliveryWatch::default();
        for n in 0..100 {
            watch.record(at(n * 100), if n % 20 == 0 { Fate::Kept } else { Fate::Late });
            assert_eq!(watch.found(at(n * 100)), None);
        }
        for n in 100..140 {
            watch.record(at(n * 100), Fate::Late);
        }
        assert!(watch.found(at(14_000)).is_some(), "nothing is delivered any more");
    }

    /// What a slow path still held of a redundant bond came at once, and then little was sent.
    #[test]
    fn regression_duplicates_that_came_all_at_once_are_over_a_second_later() {
        let mut watch = DeliveryWatch::default();
        (0..2000).for_each(|n| watch.record(at(n / 10), Fate::Repeated));
        for n in 0..80 {
            watch.record(at(250 + n * 50), if n % 4 == 0 { Fate::Kept } else { Fate::Repeated });
            assert_eq!(watch.found(at(250 + n * 50)), None, "{n}");
        }
    }

    /// Spec R-7: eight at least.
    #[test]
    fn few_packets_prove_nothing() {
        let mut watch = DeliveryWatch::default();
        for n in 0..u64::from(DISCARDED_MIN) - 1 {
            watch.record(at(n * 1000), Fate::Repeated);
        }
        assert_eq!(watch.found(at(60_000)), None);
        watch.record(at(60_000), Fate::Repeated);
        assert!(watch.found(at(60_000)).is_some());
        watch.record(at(60_001), Fate::Kept);
        watch.record(at(60_002), Fate::Kept);
        assert_eq!(watch.found(at(60_002)), None, "packets are delivered again");
    }

    /// A direction was cut: what had arrived was sent again, and later a fresh packet comes.
    #[test]
    fn regression_what_was_sent_again_long_ago_proves_nothing() {
        let mut watch = DeliveryWatch::default();
        for n in 0..9 {
            watch.record(at(n * 50), Fate::Repeated);
        }
        watch.record(at(8000), Fate::Kept);
        assert_eq!(watch.found(at(8000)), None);
    }

    #[test]
    fn it_is_told_once_a_second() {
        let mut watch = DeliveryWatch::default();
        let told = (0..100).filter(|n| {
            watch.record(at(n * 100), Fate::Repeated);
            watch.tell(at(n * 100)).is_some()
        });
        assert_eq!(told.collect::<Vec<_>>(), [30, 40, 50, 60, 70, 80, 90]);
    }

    #[test]
    fn counts_stay_bounded_and_keep_their_ratio() {
        let mut watch = DeliveryWatch::default();
        for n in 0..5 << 20 {
            watch.record(at(n / 100), Fate::Repeated);
        }
        let found = watch.found(at(60_000)).unwrap();
        assert_eq!(found.arrived, found.discarded);
        assert!(found.arrived <= 1 << 20);
    }
}
