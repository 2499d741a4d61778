//! What is known of each sequence number from the floor on.

use crate::window_set::WindowSet;

/// What is known of a sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Not arrived.
    Missing,
    /// Arrived; the packet is in the store under this id.
    Waiting(u32),
    /// Handed on.
    Delivered,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    state: State,
    /// Head of the chain of waiting packets that name this number as their predecessor.
    first_waiter: Option<u32>,
}

const EMPTY: Slot = Slot { state: State::Missing, first_waiter: None };
const SPAN_MIN: u32 = 64;

/// Slots by sequence number modulo the span, which grows to its bound as need be.
#[derive(Debug)]
pub(super) struct Ring {
    slots: Vec<Slot>,
    span_max: u32,
    /// Slots that are not empty: those of packets that arrived, and of predecessors that packets
    /// name.
    filled: WindowSet,
    /// Those of packets that wait.
    waiting: WindowSet,
}

impl Ring {
    pub(super) fn new(span_max: u32) -> Self {
        Self {
            slots: vec![EMPTY; SPAN_MIN.min(span_max) as usize],
            span_max,
            filled: WindowSet::default(),
            waiting: WindowSet::default(),
        }
    }

    pub(super) fn span_max(&self) -> u64 {
        u64::from(self.span_max)
    }

    fn index(&self, seq: u64) -> usize {
        (seq & (self.slots.len() as u64 - 1)) as usize
    }

    /// Makes room for `span` numbers from `floor` on.
    pub(super) fn ensure(&mut self, floor: u64, span: u64) {
        assert!(span <= self.span_max(), "the caller keeps the span within its bound");
        let old = self.slots.len() as u64;
        if span <= old {
            return;
        }
        let larger = vec![EMPTY; span.next_power_of_two() as usize];
        let smaller = core::mem::replace(&mut self.slots, larger);
        let mut from = floor;
        while let Some(seq) = self.filled.next(from, floor + old) {
            let index = self.index(seq);
            self.slots[index] = smaller[(seq & (old - 1)) as usize];
            from = seq + 1;
        }
        self.filled.ensure(floor, span);
        self.waiting.ensure(floor, span);
    }

    /// The state of `seq`, which is not below the floor; beyond the span nothing has arrived.
    pub(super) fn state(&self, seq: u64) -> State {
        self.slots[self.index(seq)].state
    }

    pub(super) fn set_state(&mut self, seq: u64, state: State) {
        let index = self.index(seq);
        self.slots[index].state = state;
        self.filled.insert(seq);
        match state {
            State::Waiting(_) => self.waiting.insert(seq),
            State::Missing | State::Delivered => self.waiting.remove(seq),
        }
    }

    pub(super) fn first_waiter(&self, seq: u64) -> Option<u32> {
        self.slots[self.index(seq)].first_waiter
    }

    pub(super) fn set_first_waiter(&mut self, seq: u64, id: u32) {
        let index = self.index(seq);
        self.slots[index].first_waiter = Some(id);
        self.filled.insert(seq);
    }

    pub(super) fn take_waiters(&mut self, seq: u64) -> Option<u32> {
        let index = self.index(seq);
        self.slots[index].first_waiter.take()
    }

    /// Frees the slot of a number that the floor passes.
    pub(super) fn clear(&mut self, seq: u64) {
        let index = self.index(seq);
        debug_assert!(self.slots[index].first_waiter.is_none(), "waiters are collected first");
        self.slots[index] = EMPTY;
        self.filled.remove(seq);
        self.waiting.remove(seq);
    }

    /// The lowest number from `from` to `to` of which there is anything to know: nothing arrived,
    /// and nobody waits for, those before it.
    pub(super) fn next_filled(&self, from: u64, to: u64) -> Option<u64> {
        self.filled.next(from, to)
    }

    /// The lowest waiting number from `from` to `to`.
    pub(super) fn next_waiting(&self, from: u64, to: u64) -> Option<u64> {
        self.waiting.next(from, to)
    }
}
