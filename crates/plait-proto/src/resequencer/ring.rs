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

/// The state, and the head of the chain of waiting packets that name this number as their
/// predecessor. As numbers, of which zero is empty: a ring of zeroes costs no memory until it is
/// used, and a peer that jumps far ahead in a new bond asks for a long one.
type Slot = [u32; 2];

const EMPTY: Slot = [0, 0];
const STATE: usize = 0;
const FIRST_WAITER: usize = 1;
const SPAN_MIN: u32 = 64;

impl State {
    const fn to_number(self) -> u32 {
        match self {
            Self::Missing => 0,
            Self::Delivered => 1,
            Self::Waiting(id) => id + 2,
        }
    }

    const fn of_number(number: u32) -> Self {
        match number {
            0 => Self::Missing,
            1 => Self::Delivered,
            waiting => Self::Waiting(waiting - 2),
        }
    }
}

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
        State::of_number(self.slots[self.index(seq)][STATE])
    }

    pub(super) fn set_state(&mut self, seq: u64, state: State) {
        let index = self.index(seq);
        self.slots[index][STATE] = state.to_number();
        self.filled.insert(seq);
        match state {
            State::Waiting(_) => self.waiting.insert(seq),
            State::Missing | State::Delivered => self.waiting.remove(seq),
        }
    }

    pub(super) fn first_waiter(&self, seq: u64) -> Option<u32> {
        self.slots[self.index(seq)][FIRST_WAITER].checked_sub(1)
    }

    pub(super) fn set_first_waiter(&mut self, seq: u64, id: u32) {
        let index = self.index(seq);
        self.slots[index][FIRST_WAITER] = id + 1;
        self.filled.insert(seq);
    }

    pub(super) fn take_waiters(&mut self, seq: u64) -> Option<u32> {
        let index = self.index(seq);
        core::mem::take(&mut self.slots[index][FIRST_WAITER]).checked_sub(1)
    }

    /// Frees the slot of a number that the floor passes.
    pub(super) fn clear(&mut self, seq: u64) {
        let index = self.index(seq);
        debug_assert!(self.slots[index][FIRST_WAITER] == 0, "waiters are collected first");
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
