//! What happens next: events by time, and by the order in which they were put in among equals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plait_proto::time::Instant;

/// What is to happen. Indices are those of the world's lists.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Event {
    /// One direction of a link has something to give, or thinks so.
    Link(usize),
    /// One way of the wire between provider and server has something to give.
    ServerWire(usize),
    /// A gateway's timer.
    Gateway(usize),
    /// An application's timer.
    App(usize),
}

/// Events that have not happened yet.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    inserted: u64,
}

impl EventQueue {
    pub(super) fn push(&mut self, at: Instant, event: Event) {
        self.heap.push(Reverse((at, self.inserted, event)));
        self.inserted += 1;
    }

    /// The next event that happens at `end` or before.
    pub(super) fn pop_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > end {
            return None;
        }
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}

/// When the owner of a timer is next in the queue. A timer that moves to a later time keeps its
/// place, and moves on when that comes: most timers are put off many times before they fire.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alarm {
    queued_at: Option<Instant>,
}

impl Alarm {
    /// Queues `event` for `at`, unless it stands there earlier already.
    pub(super) fn set(&mut self, at: Option<Instant>, event: Event, queue: &mut EventQueue) {
        let Some(at) = at else { return };
        if self.queued_at.is_none_or(|queued_at| at < queued_at) {
            self.queued_at = Some(at);
            queue.push(at, event);
        }
    }

    /// Whether an event of this time is the one that was queued last; earlier ones that were
    /// replaced are stale.
    pub(super) fn rings(&mut self, at: Instant) -> bool {
        let rings = self.queued_at == Some(at);
        if rings {
            self.queued_at = None;
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_of_insertion() {
        let mut queue = EventQueue::default();
        let ms = Instant::from_millis;
        queue.push(ms(2), Event::App(9));
        queue.push(ms(1), Event::App(5));
        queue.push(ms(1), Event::App(3));
        queue.push(ms(3), Event::App(1));
        let order: Vec<_> = core::iter::from_fn(|| queue.pop_until(ms(2))).collect();
        let expected = [(ms(1), Event::App(5)), (ms(1), Event::App(3)), (ms(2), Event::App(9))];
        assert_eq!(order, expected);
    }

    #[test]
    fn an_alarm_rings_at_its_earliest_time_once() {
        let (mut queue, mut alarm) = (EventQueue::default(), Alarm::default());
        let ms = Instant::from_millis;
        for at in [5, 3, 4] {
            alarm.set(Some(ms(at)), Event::App(0), &mut queue);
        }
        let rings: Vec<_> = core::iter::from_fn(|| queue.pop_until(ms(9)))
            .map(|(at, _)| (at, alarm.rings(at)))
            .collect();
        assert_eq!(rings, [(ms(3), true), (ms(5), false)]);
    }
}
