//! How much of what a path carries is lost by the link itself.
//!
//! What a full queue drops is the sender's doing and passes; it shows as a raised round-trip time.
//! Loss without it, period after period, is the link's. A slow start that overshoots into a queue
//! too short to show ends within a few round trips; a bad link goes on.

use std::collections::VecDeque;

use crate::path::rtt::RttEstimator;
use crate::path::sent::AckOutcome;
use crate::time::{Duration, Instant};

/// A period is at least so long and has at least so many outcomes.
const PERIOD_MIN: Duration = Duration::from_millis(250);
const OUTCOMES_MIN: u64 = 20;
/// Periods in a row that show the link's loss.
const PERIODS: usize = 3;
/// The link's loss in each of them, as one part in so many.
const LOSSY_PARTS: u64 = 33;
/// The same where what is lost is sent again: such a link is still worth having.
const LOSSY_PARTS_REPAIRED: u64 = 8;
/// Losses in all of them together.
const LOST_MIN: u64 = 6;
/// A period that stood open for longer tells nothing.
const PERIOD_MAX: Duration = Duration::from_secs(5);
/// Queueing delay below which a loss is not a queue's: this, or half of the empty path's time.
const UNQUEUED_MAX: Duration = Duration::from_millis(15);

#[derive(Clone, Copy, Debug, Default)]
struct Period {
    since: Instant,
    acked: u64,
    lost: u64,
    /// Of those lost, the ones without a queue.
    lost_unqueued: u64,
}

impl Period {
    fn outcomes(&self) -> u64 {
        self.acked + self.lost
    }

    fn is_lossy(&self, parts: u64) -> bool {
        self.lost_unqueued * parts >= self.outcomes()
    }
}

/// The outcomes of the last periods.
#[derive(Debug, Default)]
pub(super) struct Loss {
    closed: VecDeque<Period>,
    open: Period,
    /// Shortest round trip ever. A queue that never empties hides from a minimum that ages; should
    /// the path have become longer for good, no loss counts as the link's, which does less harm.
    shortest_rtt: Option<Duration>,
}

impl Loss {
    /// Whether the path's queue is short, going by its latest round trip.
    fn is_unqueued(&mut self, rtt: &RttEstimator) -> bool {
        let (Some(latest), Some(min)) = (rtt.latest(), rtt.min()) else { return false };
        let shortest = self.shortest_rtt.map_or(min, |shortest| shortest.min(min));
        self.shortest_rtt = Some(shortest);
        latest <= shortest + UNQUEUED_MAX.max(shortest / 2)
    }

    /// Takes what an acknowledgement showed.
    pub(super) fn record(&mut self, now: Instant, rtt: &RttEstimator, outcome: &AckOutcome) {
        let unqueued = self.is_unqueued(rtt);
        if self.open.outcomes() == 0 || now >= self.open.since + PERIOD_MAX {
            self.open = Period { since: now, ..Period::default() };
        }
        let open = &mut self.open;
        open.acked += outcome.acked_datagrams + outcome.recovered_datagrams;
        open.lost += outcome.lost_datagrams;
        open.lost = open.lost.saturating_sub(outcome.recovered_datagrams);
        if unqueued {
            open.lost_unqueued += outcome.lost_datagrams;
        }
        open.lost_unqueued = open.lost_unqueued.min(open.lost);
        if now >= open.since + PERIOD_MIN && open.outcomes() >= OUTCOMES_MIN {
            if self.closed.len() == PERIODS {
                self.closed.pop_front();
            }
            self.closed.push_back(*open);
            self.open = Period::default();
        }
    }

    /// Whether the link loses too much to be of use beside another.
    pub(super) fn is_lossy(&self, repaired: bool) -> bool {
        let parts = if repaired { LOSSY_PARTS_REPAIRED } else { LOSSY_PARTS };
        let lost: u64 = self.closed.iter().map(|period| period.lost_unqueued).sum();
        self.closed.len() == PERIODS
            && lost >= LOST_MIN
            && self.closed.iter().all(|period| period.is_lossy(parts))
    }

    /// Share of datagrams lost in the last periods, 0 to 1.
    pub(super) fn ratio(&self) -> f64 {
        let lost: u64 = self.closed.iter().map(|period| period.lost).sum();
        let outcomes: u64 = self.closed.iter().map(Period::outcomes).sum();
        if outcomes == 0 { 0.0 } else { lost as f64 / outcomes as f64 }
    }

    /// Begins anew: what was seen is of another time.
    pub(super) fn forget(&mut self) {
        *self = Self { shortest_rtt: self.shortest_rtt, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 outcomes each 50 ms for a second and a half, `lost` of each hundred lost.
    fn fed(lost: u64, queue_ms: u64) -> Loss {
        let mut loss = Loss::default();
        let mut rtt = RttEstimator::default();
        rtt.sample(Instant::ZERO, Duration::from_millis(20));
        rtt.sample(Instant::ZERO, Duration::from_millis(20 + queue_ms));
        for n in 0..30 {
            let outcome = AckOutcome {
                acked_datagrams: 100 - lost,
                lost_datagrams: lost,
                ..AckOutcome::default()
            };
            loss.record(Instant::from_millis(50 * n), &rtt, &outcome);
        }
        loss
    }

    #[test]
    fn a_bad_link_shows_and_a_good_one_does_not() {
        assert!(fed(20, 0).is_lossy(false));
        assert!(fed(4, 0).is_lossy(false));
        assert!(!fed(1, 0).is_lossy(false));
        assert!((fed(20, 0).ratio() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn what_a_full_queue_drops_is_not_the_links_loss() {
        assert!(!fed(20, 40).is_lossy(false));
    }

    #[test]
    fn a_short_burst_of_losses_is_forgiven() {
        let mut loss = fed(0, 0);
        let rtt = RttEstimator::default();
        let burst = AckOutcome { lost_datagrams: 500, ..AckOutcome::default() };
        loss.record(Instant::from_millis(1600), &rtt, &burst);
        assert!(!loss.is_lossy(false));
    }

    #[test]
    fn what_was_only_overtaken_is_not_lost() {
        let mut loss = Loss::default();
        let mut rtt = RttEstimator::default();
        rtt.sample(Instant::ZERO, Duration::from_millis(20));
        for n in 0..100 {
            let (lost_datagrams, recovered_datagrams) = if n % 2 == 0 { (20, 0) } else { (0, 20) };
            let outcome = AckOutcome {
                acked_datagrams: 50,
                lost_datagrams,
                recovered_datagrams,
                ..AckOutcome::default()
            };
            loss.record(Instant::from_millis(20 * n), &rtt, &outcome);
        }
        assert!(!loss.is_lossy(false));
    }
}
