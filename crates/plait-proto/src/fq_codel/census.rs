//! How many flows fill the queue, and whether they heed its drops: counted second by second.

use crate::scheduler::BulkLoad;
use crate::time::{Duration, Instant};

/// What is counted over this and the span before it counts as now. Flows over the longest paths
/// send in bursts a round trip apart.
const SPAN: Duration = Duration::from_secs(1);
/// Where the queue drops so many of a thousand bytes, two spans in a row, no congestion controller
/// answers: one that did would have slowed down within a round trip.
const UNHEEDED_PERMILLE: u64 = 30;

/// The counts of one span.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    flows: u16,
    bytes: u64,
    dropped_bytes: u64,
    /// A flow of this span has been told to slow down since it began.
    is_any_told: bool,
}

impl Span {
    fn is_unheeded(&self) -> bool {
        self.dropped_bytes * 1000 > self.bytes * UNHEEDED_PERMILLE
    }
}

/// What is remembered of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    /// In which span it was last counted.
    span: u64,
    /// Something of it was dropped or marked since it began.
    pub(super) is_told: bool,
}

/// The counts of the last three spans.
#[derive(Clone, Copy, Debug)]
pub(super) struct Census {
    /// Number of the open span; a flow remembers in which it was counted.
    span: u64,
    open: Span,
    closed: [Span; 2],
}

impl Default for Census {
    /// Span 0 is that of flows never counted.
    fn default() -> Self {
        Self { span: 1, open: Span::default(), closed: [Span::default(); 2] }
    }
}

impl Census {
    fn follow(&mut self, now: Instant) {
        let span = now.as_nanos() / SPAN.as_nanos() as u64 + 1;
        match span.saturating_sub(self.span) {
            0 => return,
            1 => self.closed = [self.open, self.closed[0]],
            2 => self.closed = [Span::default(), self.open],
            _ => self.closed = [Span::default(); 2],
        }
        self.open = Span::default();
        self.span = span;
    }

    /// Takes note of a packet of a bulk flow.
    pub(super) fn record(&mut self, now: Instant, bytes: usize, flow: &mut Counted) {
        self.follow(now);
        self.open.bytes += bytes as u64;
        self.open.is_any_told |= flow.is_told;
        if flow.span != self.span {
            flow.span = self.span;
            self.open.flows = self.open.flows.saturating_add(1);
        }
    }

    /// The queue dropped so much of a flow.
    pub(super) fn on_dropped(&mut self, bytes: u64, flow: &mut Counted) {
        self.open.dropped_bytes += bytes;
        flow.is_told = true;
    }

    pub(super) fn load(&self) -> BulkLoad {
        BulkLoad {
            flows: self.open.flows.max(self.closed[0].flows).max(1),
            is_unresponsive: self.closed.iter().all(Span::is_unheeded),
            is_fresh: !self.open.is_any_told && !self.closed[0].is_any_told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_flow_counts_once_a_span_and_through_the_next() {
        let mut census = Census::default();
        let mut flows = [Counted::default(); 3];
        assert_eq!(census.load().flows, 1, "there is always one to be asked for");
        for ms in [0, 10, 20] {
            flows.iter_mut().for_each(|flow| census.record(at(ms), 1500, flow));
        }
        assert_eq!(census.load().flows, 3);
        census.record(at(1500), 1500, &mut flows[0]);
        assert_eq!(census.load().flows, 3);
        census.record(at(2500), 1500, &mut flows[0]);
        assert_eq!(census.load().flows, 1);
    }

    #[test]
    fn a_flow_is_fresh_until_something_of_it_is_dropped() {
        let mut census = Census::default();
        let (mut old, mut new) = (Counted::default(), Counted::default());
        census.record(at(0), 1500, &mut old);
        assert!(census.load().is_fresh);
        census.on_dropped(1500, &mut old);
        census.record(at(10), 1500, &mut old);
        assert!(!census.load().is_fresh);
        census.record(at(2000), 1500, &mut new);
        assert!(census.load().is_fresh, "the other one has gone");
        census.record(at(2010), 1500, &mut old);
        assert!(!census.load().is_fresh, "and is back");
    }

    #[test]
    fn drops_in_two_spans_on_end_are_not_heeded() {
        let mut census = Census::default();
        let mut flow = Counted::default();
        let mut second = |from: u64, dropped: u64| {
            for ms in 0..10 {
                census.record(at(from + ms * 100), 1000, &mut flow);
            }
            census.on_dropped(dropped, &mut flow);
            census.load().is_unresponsive
        };
        assert!(!second(0, 400));
        assert!(!second(1000, 400), "one whole span");
        assert!(second(2000, 300), "two");
        assert!(!second(3000, 400), "three in a hundred are what many flows cause");
        assert!(!second(4000, 400));
        assert!(second(5000, 400));
        assert!(!second(9000, 400), "a pause forgets");
    }
}
