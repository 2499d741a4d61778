//! Whether what arrives is also delivered (spec R-7).
//!
//! A sender sees that its datagrams arrive, from acknowledgements, and not that the resequencer
//! throws their packets away, late or duplicate. When nearly all are for some time, the two ends
//! number the bond's packets differently, and only another bond helps.

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
/// While it goes on it is told this often.
const TELL_INTERVAL: Duration = Duration::from_secs(1);

/// A stretch of arrivals that began with a packet thrown away.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    since: Instant,
    last: Instant,
    arrived: u32,
    discarded: u32,
}

impl Stretch {
    fn is_nearly_all(&self) -> bool {
        (self.arrived - self.discarded) * DELIVERED_PART <= self.arrived
    }

    fn is_long(&self, now: Instant) -> bool {
        now.since(self.since) >= PATIENCE && self.discarded >= DISCARDED_MIN
    }
}

/// Watches what becomes of a bond's packets.
#[derive(Debug, Default)]
pub(super) struct DeliveryWatch {
    stretch: Option<Stretch>,
    told_at: Option<Instant>,
}

impl DeliveryWatch {
    /// A data packet arrived, and was thrown away or not.
    pub(super) fn record(&mut self, now: Instant, is_discarded: bool) {
        let fresh = || Stretch { since: now, last: now, arrived: 0, discarded: 0 };
        let stretch = match self.stretch {
            Some(stretch) if !is_discarded && now.since(stretch.last) >= PAUSE => {
                self.stretch = None;
                return;
            }
            Some(stretch) => stretch,
            None if is_discarded => fresh(),
            None => return,
        };
        let stretch = Stretch {
            arrived: stretch.arrived.saturating_add(1) / halving(stretch.arrived),
            discarded: stretch.discarded.saturating_add(is_discarded.into())
                / halving(stretch.arrived),
            last: if is_discarded { now } else { stretch.last },
            ..stretch
        };
        self.stretch = stretch.is_nearly_all().then_some(stretch);
    }

    /// What is thrown away, while it is nearly all.
    pub(super) fn found(&self, now: Instant) -> Option<Discards> {
        let Stretch { arrived, discarded, .. } = self.stretch.filter(|s| s.is_long(now))?;
        Some(Discards { arrived, discarded })
    }

    /// The same, when it is time to tell of it.
    pub(super) fn tell(&mut self, now: Instant) -> Option<Discards> {
        let found = self.found(now)?;
        let is_due = self.told_at.is_none_or(|told| now.since(told) >= TELL_INTERVAL);
        is_due.then(|| self.told_at = Some(now)).map(|()| found)
    }
}

/// Old arrivals count for less, so that the counts stay small.
fn halving(arrived: u32) -> u32 {
    if arrived >= 1 << 20 { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// One packet every 100 ms; of ten, so many are delivered.
    fn found_after(seconds: u64, delivered_of_ten: u64) -> Option<Discards> {
        let mut watch = DeliveryWatch::default();
        for n in 0..seconds * 10 {
            watch.record(at(n * 100), n % 10 >= delivered_of_ten);
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

    /// Spec R-7: eight at least.
    #[test]
    fn few_packets_prove_nothing() {
        let mut watch = DeliveryWatch::default();
        for n in 0..u64::from(DISCARDED_MIN) - 1 {
            watch.record(at(n * 1000), true);
        }
        assert_eq!(watch.found(at(60_000)), None);
        watch.record(at(60_000), true);
        assert!(watch.found(at(60_000)).is_some());
        watch.record(at(60_001), false);
        watch.record(at(60_002), false);
        assert_eq!(watch.found(at(60_002)), None, "packets are delivered again");
    }

    /// A direction was cut: what had arrived was sent again, and later a fresh packet comes.
    #[test]
    fn regression_what_was_sent_again_long_ago_proves_nothing() {
        let mut watch = DeliveryWatch::default();
        for n in 0..9 {
            watch.record(at(n * 50), true);
        }
        watch.record(at(8000), false);
        assert_eq!(watch.found(at(8000)), None);
    }

    #[test]
    fn it_is_told_once_a_second() {
        let mut watch = DeliveryWatch::default();
        let told = (0..100).filter(|n| {
            watch.record(at(n * 100), true);
            watch.tell(at(n * 100)).is_some()
        });
        assert_eq!(told.collect::<Vec<_>>(), [30, 40, 50, 60, 70, 80, 90]);
    }

    #[test]
    fn counts_stay_bounded_and_keep_their_ratio() {
        let mut watch = DeliveryWatch::default();
        for n in 0..5 << 20 {
            watch.record(at(n / 100), true);
        }
        let found = watch.found(at(60_000)).unwrap();
        assert_eq!(found.arrived, found.discarded);
        assert!(found.arrived <= 1 << 20);
    }
}
