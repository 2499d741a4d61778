//! Whether more waits than the quickest path can carry, for long enough to matter. A burst is over
//! in a few milliseconds and arrives earlier the quick way; only a lasting queue is worth a longer
//! round trip, or money.

use crate::time::{Duration, Instant};

/// A queue lasts once it has stood for this: longer than the first bursts of a short transfer, and
/// well within the time that the ingress queue leaves a flow to grow.
const LASTING: Duration = Duration::from_millis(20);
/// It goes on for so long after the last queue was seen, so that the dips of a flow that was slowed
/// down do not change its round trip.
const GOES_ON: Duration = Duration::from_millis(200);

/// The queue behind the preferred paths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overflow {
    /// Since when there has been a queue without a gap.
    queue_since: Option<Instant>,
    /// When it was last looked at; a long silence is a gap too.
    seen_at: Instant,
    pub(super) lasts_until: Instant,
}

impl Overflow {
    /// Follows the queue; to be called with every bulk packet.
    pub(super) fn follow(&mut self, now: Instant, is_queue: bool) {
        if !is_queue {
            self.queue_since = None;
            return;
        }
        let since = self.queue_since.filter(|_| now.since(self.seen_at) < LASTING).unwrap_or(now);
        (self.queue_since, self.seen_at) = (Some(since), now);
        if self.is_on(now) || now.since(since) >= LASTING {
            self.lasts_until = self.lasts_until.max(now + GOES_ON);
        }
    }

    pub(super) fn is_on(&self, now: Instant) -> bool {
        now < self.lasts_until
    }
}
