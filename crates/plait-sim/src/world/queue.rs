//! The event queue: sorted by time, equal times by order of insertion.

use plait_proto::time::Instant;

/// An event. Indices are those of the world's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// One direction of a link may have output.
    Link(usize),
    /// A medium may have output.
    Air(usize),
    /// One direction of the wire between provider and server has output.
    ServerWire(usize),
    /// A gateway's timer.
    Gateway(usize),
    /// An application's timer.
    App(usize),
    /// A timer of a steering node, of DIDA beside a bond, or of a client that reorders packets.
    Steering(usize),
    /// An event of the scenario.
    Scenario(usize),
}

/// An event's place in the queue: its time, a running count, and the event, in one number from high
/// bits to low, so that one comparison orders two of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Turn(u128);

const INDEX_BITS: u32 = 18;
const EVENT_BITS: u32 = INDEX_BITS + 3;
const INSERTED_BITS: u32 = 64 - EVENT_BITS;

impl Turn {
    fn new(at: Instant, inserted: u64, event: Event) -> Self {
        let (kind, index) = match event {
            Event::Link(direction) => (0, direction),
            Event::ServerWire(wire) => (1, wire),
            Event::Gateway(side) => (2, side),
            Event::App(app) => (3, app),
            Event::Steering(timer) => (4, timer),
            Event::Scenario(number) => (5, number),
            Event::Air(medium) => (6, medium),
        };
        assert!(index >> INDEX_BITS == 0, "a scenario has fewer links and applications than 2^17");
        let low = inserted << EVENT_BITS | kind << INDEX_BITS | index as u64;
        Self(u128::from(at.as_nanos()) << (INSERTED_BITS + EVENT_BITS) | u128::from(low))
    }

    fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> (INSERTED_BITS + EVENT_BITS)) as u64)
    }

    fn event(self) -> Event {
        let index = self.0 as usize & ((1 << INDEX_BITS) - 1);
        match self.0 >> INDEX_BITS & 7 {
            0 => Event::Link(index),
            1 => Event::ServerWire(index),
            2 => Event::Gateway(index),
            3 => Event::App(index),
            4 => Event::Steering(index),
            5 => Event::Scenario(index),
            _ => Event::Air(index),
        }
    }
}

/// Events that have not happened yet.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    /// Sorted, the next one last. There are only a few per link and application: moving some of
    /// them is less work than maintaining a heap.
    turns: Vec<Turn>,
    inserted: u64,
}

impl EventQueue {
    pub(super) fn push(&mut self, at: Instant, event: Event) {
        let turn = Turn::new(at, self.inserted, event);
        let later = self.turns.iter().rposition(|other| *other > turn);
        self.turns.insert(later.map_or(0, |at| at + 1), turn);
        self.inserted += 1;
    }

    /// The next event that happens at `end` or before.
    pub(super) fn pop_until(&mut self, end: Instant) -> Option<(Instant, Event)> {
        let turn = self.turns.pop_if(|turn| turn.at() <= end)?;
        Some((turn.at(), turn.event()))
    }
}

/// When a timer's owner is next in the queue. A timer moved to a later time keeps its entry, which
/// is moved when it comes up: most timers are postponed many times before they fire.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alarm {
    queued_at: Option<Instant>,
}

impl Alarm {
    /// Queues `event` for `at`, unless it is already queued earlier.
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
    fn a_turn_holds_what_was_put_in() {
        let latest = Instant::from_nanos(u64::MAX - 1);
        for (at, event) in [
            (latest, Event::Link((1 << INDEX_BITS) - 1)),
            (Instant::ZERO, Event::ServerWire(1)),
            (latest, Event::Gateway(0)),
            (Instant::from_nanos(1), Event::App(4095)),
            (Instant::from_nanos(1), Event::Steering(1)),
        ] {
            let turn = Turn::new(at, (1 << INSERTED_BITS) - 1, event);
            assert_eq!((turn.at(), turn.event()), (at, event));
        }
    }

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
