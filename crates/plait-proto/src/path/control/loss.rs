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
/// The same where what is lost is sent again. A run of losses slows its path down, so that one run
/// spans several periods of few outcomes; it does not span so many.
const PERIODS_REPAIRED: usize = 8;
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
pub(crate) struct Loss {
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
    pub(crate) fn record(&mut self, now: Instant, rtt: &RttEstimator, outcome: &AckOutcome) {
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
            if self.closed.len() == PERIODS_REPAIRED {
                self.closed.pop_front();
            }
            self.closed.push_back(*open);
            self.open = Period::default();
        }
    }

    /// Whether the link loses too much to be of use beside another.
    pub(crate) fn is_lossy(&self, repaired: bool) -> bool {
        let (parts, periods) = match repaired {
            true => (LOSSY_PARTS_REPAIRED, PERIODS_REPAIRED),
            false => (LOSSY_PARTS, PERIODS),
        };
        let lost: u64 = self.latest(periods).map(|period| period.lost_unqueued).sum();
        self.closed.len() >= periods
            && lost >= LOST_MIN
            && self.latest(periods).all(|period| period.is_lossy(parts))
    }

    fn latest(&self, periods: usize) -> impl Iterator<Item = &Period> {
        self.closed.iter().rev().take(periods)
    }

    /// Share of datagrams lost in the last periods, 0 to 1.
    pub(crate) fn ratio(&self) -> f64 {
        let lost: u64 = self.latest(PERIODS).map(|period| period.lost).sum();
        let outcomes: u64 = self.latest(PERIODS).map(Period::outcomes).sum();
        if outcomes == 0 { 0.0 } else { lost as f64 / outcomes as f64 }
    }

    /// Begins anew: what was seen is of another time.
    pub(crate) fn forget(&mut self) {
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

    /// Spec P-5b: a thirty-third.
    #[test]
    fn a_bad_link_shows_and_a_good_one_does_not() {
        assert!(fed(20, 0).is_lossy(false));
        assert!(fed(4, 0).is_lossy(false));
        assert!(!fed(1, 0).is_lossy(false));
        assert!((fed(20, 0).ratio() - 0.2).abs() < 1e-9);
    }

    /// Spec P-5b: while the round-trip time shows no queue.
    #[test]
    fn what_a_full_queue_drops_is_not_the_links_loss() {
        assert!(!fed(20, 40).is_lossy(false));
    }

    /// Spec P-5b: in each of three periods.
    #[test]
    fn a_short_burst_of_losses_is_forgiven() {
        let mut loss = fed(0, 0);
        let rtt = RttEstimator::default();
        let burst = AckOutcome { lost_datagrams: 500, ..AckOutcome::default() };
        loss.record(Instant::from_millis(1600), &rtt, &burst);
        assert!(!loss.is_lossy(false));
    }

    /// 20 outcomes each 250 ms, as on a path slowed down by a run of losses.
    fn lossy_after(lost: &[u64], repaired: bool) -> bool {
        let mut loss = Loss::default();
        let mut rtt = RttEstimator::default();
        rtt.sample(Instant::ZERO, Duration::from_millis(40));
        for (half, lost) in (0_u64..).zip(lost.iter().flat_map(|lost| [0, *lost])) {
            let outcome = AckOutcome {
                acked_datagrams: 10 - lost.min(10),
                lost_datagrams: lost,
                ..AckOutcome::default()
            };
            loss.record(Instant::from_millis(250 * half), &rtt, &outcome);
        }
        loss.is_lossy(repaired)
    }

    #[test]
    fn a_run_of_losses_that_slowed_its_path_is_no_bad_link_where_it_is_repaired() {
        let run = [10, 10, 10];
        assert!(lossy_after(&run, false));
        assert!(!lossy_after(&run, true));
        assert!(!lossy_after(&[10; 7], true));
        assert!(lossy_after(&[3; 8], true));
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
