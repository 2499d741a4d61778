//! What is known of each sequence number from the floor on.

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
}

impl Ring {
    pub(super) fn new(span_max: u32) -> Self {
        Self { slots: vec![EMPTY; SPAN_MIN.min(span_max) as usize], span_max }
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
        for seq in floor..floor + old {
            let index = self.index(seq);
            self.slots[index] = smaller[(seq & (old - 1)) as usize];
        }
    }

    /// The state of `seq`, which is not below the floor; beyond the span nothing has arrived.
    pub(super) fn state(&self, seq: u64) -> State {
        self.slots[self.index(seq)].state
    }

    pub(super) fn set_state(&mut self, seq: u64, state: State) {
        let index = self.index(seq);
        self.slots[index].state = state;
    }

    pub(super) fn first_waiter(&self, seq: u64) -> Option<u32> {
        self.slots[self.index(seq)].first_waiter
    }

    pub(super) fn set_first_waiter(&mut self, seq: u64, id: u32) {
        let index = self.index(seq);
        self.slots[index].first_waiter = Some(id);
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
    }

    /// The lowest waiting number from `floor` to `next`.
    pub(super) fn first_waiting(&self, floor: u64, next: u64) -> Option<u64> {
        (floor..next).find(|&seq| matches!(self.state(seq), State::Waiting(_)))
    }
}
