//! The peers by their places, and which of them have something to send, to deliver, or due: found
//! without a look at all the others.
//!
//! Whoever changes a peer gets it from here, which notes its place; so neither a packet nor a timer
//! costs more with ten thousand peers than with one.

use core::cell::{Cell, RefCell};
use core::ops::{Index, IndexMut};

use super::peer::Peer;
use super::schedule::Schedule;
use crate::bond::Bond;
use crate::time::Instant;

/// So many peers are all looked at, each time: that costs less than to note which were changed.
const FEW: usize = 8;

/// Marks of a peer: where it is noted.
const TO_TRANSMIT: u8 = 1;
const TO_DELIVER: u8 = 2;
const CHANGED: u8 = 4;
const NOTED: u8 = TO_TRANSMIT | TO_DELIVER | CHANGED;

/// Places that were noted, each once; of few peers all of them, always. Each peer has marks that
/// say where it is noted, beside what else is looked at of it.
#[derive(Debug, Default)]
struct Places {
    noted: Vec<u32>,
    /// The bit in a peer's marks; none for few peers.
    mark: u8,
    is_sorted: bool,
    /// How many of them were gone through.
    passed: usize,
}

impl Places {
    /// All are noted: their marks have the bit.
    fn new(count: usize, mark: u8) -> Self {
        let mark = if count > FEW { mark } else { 0 };
        Self { noted: (0..count as u32).collect(), mark, is_sorted: true, passed: 0 }
    }

    fn note(&mut self, at: usize, marks: &Cell<u8>) {
        if marks.get() & self.mark != self.mark {
            marks.set(marks.get() | self.mark);
            self.noted.push(at as u32);
            self.is_sorted = false;
        }
    }

    /// The place to look at now, in the order of the configuration.
    fn current(&mut self) -> Option<usize> {
        if self.passed == 0 && !self.is_sorted {
            self.noted.sort_unstable();
            self.is_sorted = true;
        }
        self.noted.get(self.passed).map(|at| *at as usize)
    }

    /// There is nothing more at that place.
    fn pass(&mut self, marks: &Cell<u8>) {
        marks.set(marks.get() & !self.mark);
        self.passed += 1;
    }

    /// The peer at `at` is gone, and the one that stood at `last` stands there.
    fn swap_remove(&mut self, at: usize, last: usize) {
        self.rewind();
        self.noted.retain(|noted| *noted as usize != at);
        let moved = self.noted.iter_mut().find(|noted| **noted as usize == last);
        if let Some(moved) = moved {
            *moved = at as u32;
            self.is_sorted = false;
        }
    }

    /// All were passed: the next round begins.
    fn rewind(&mut self) {
        if self.mark != 0 && self.passed == self.noted.len() {
            self.noted.clear();
        } else if self.mark != 0 {
            self.noted.drain(..self.passed);
        }
        self.passed = 0;
    }
}

/// When each peer has something due.
#[derive(Debug, Default)]
struct Timers {
    /// Changed since they were last asked.
    changed: Places,
    by_time: Schedule,
}

/// A gateway's peers.
#[derive(Debug, Default)]
pub(super) struct Peers {
    all: Vec<Peer>,
    to_transmit: Places,
    to_deliver: Places,
    timers: RefCell<Timers>,
}

impl Peers {
    pub(super) fn new(all: Vec<Peer>) -> Self {
        let count = all.len();
        let changed = Places::new(count, CHANGED);
        let timers = Timers { changed, by_time: Schedule::new(count) };
        let (to_transmit, to_deliver) =
            (Places::new(count, TO_TRANSMIT), Places::new(count, TO_DELIVER));
        all.iter().for_each(|peer| peer.marks.set(NOTED));
        Self { all, to_transmit, to_deliver, timers: RefCell::new(timers) }
    }

    /// One more peer, behind all others. Call it with all outputs drained.
    pub(super) fn push(&mut self, peer: Peer) {
        if self.all.len() <= FEW {
            let mut all = core::mem::take(self).into_all();
            all.push(peer);
            *self = Self::new(all);
            return;
        }
        self.all.push(peer);
        self.timers.get_mut().by_time.push();
        self.note_of_many(self.all.len() - 1);
    }

    /// Takes a peer out, and puts the last one in its place. Call it with all outputs drained.
    pub(super) fn swap_remove(&mut self, at: usize) -> Peer {
        let last = self.all.len() - 1;
        if last <= FEW {
            let mut all = core::mem::take(self).into_all();
            let peer = all.swap_remove(at);
            *self = Self::new(all);
            return peer;
        }
        self.to_transmit.swap_remove(at, last);
        self.to_deliver.swap_remove(at, last);
        let timers = self.timers.get_mut();
        timers.changed.swap_remove(at, last);
        timers.by_time.swap_remove(at);
        self.all.swap_remove(at)
    }

    #[inline]
    fn note(&mut self, at: usize) {
        if self.all.len() > FEW {
            self.note_of_many(at);
        }
    }

    fn note_of_many(&mut self, at: usize) {
        let marks = &self.all[at].marks;
        if marks.get() != NOTED {
            self.to_transmit.note(at, marks);
            self.to_deliver.note(at, marks);
            self.timers.get_mut().changed.note(at, marks);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> core::slice::Iter<'_, Peer> {
        self.all.iter()
    }

    pub(super) fn iter_mut(&mut self) -> core::slice::IterMut<'_, Peer> {
        (0..self.all.len()).for_each(|at| self.note(at));
        self.all.iter_mut()
    }

    pub(super) fn into_all(self) -> Vec<Peer> {
        self.all
    }

    /// Whether a bond has something to send: then [`Self::transmitting`] is it. When none has, that
    /// stays so until [`Self::rewind_transmitting`].
    pub(super) fn has_transmit(&mut self) -> bool {
        while let Some(at) = self.to_transmit.current() {
            if self.all[at].used_bond().is_some_and(Bond::has_transmit) {
                return true;
            }
            self.to_transmit.pass(&self.all[at].marks);
        }
        false
    }

    /// The bond that was found to have something to send.
    pub(super) fn transmitting(&mut self) -> Option<&mut Bond> {
        let at = self.to_transmit.current()?;
        self.all[at].used_bond_mut()
    }

    /// Whatever there was to send has been given out.
    pub(super) fn rewind_transmitting(&mut self) {
        self.to_transmit.rewind();
    }

    /// Whether a bond has something to deliver: then [`Self::delivering`] is it.
    pub(super) fn has_delivery(&mut self) -> bool {
        while let Some(at) = self.to_deliver.current() {
            if self.all[at].used_bond().is_some_and(Bond::has_delivery) {
                return true;
            }
            if let Some(bond) = self.all[at].used_bond_mut() {
                let none = bond.poll_deliver();
                debug_assert!(none.is_none(), "the bond said it has nothing to deliver");
            }
            self.to_deliver.pass(&self.all[at].marks);
        }
        self.to_deliver.rewind();
        false
    }

    /// The bond that was found to have something to deliver.
    pub(super) fn delivering(&mut self) -> Option<&mut Bond> {
        let at = self.to_deliver.current()?;
        self.all[at].used_bond_mut()
    }

    /// When the first of them has something due, as `due_of` says of each. A time to come may be
    /// too early: asked then, the answer is a later one.
    pub(super) fn poll_timeout(
        &self,
        now: Instant,
        due_of: impl Fn(&Peer) -> Option<Instant>,
    ) -> Option<Instant> {
        if self.all.len() <= FEW {
            return self.all.iter().filter_map(due_of).min();
        }
        self.follow_changes(&due_of);
        let mut timers = self.timers.borrow_mut();
        loop {
            let (due, at) = timers.by_time.first()?;
            if due > now {
                return Some(due);
            }
            let found = due_of(&self.all[at]);
            if found == Some(due) {
                return found;
            }
            timers.by_time.set(at, found);
        }
    }

    fn follow_changes(&self, due_of: impl Fn(&Peer) -> Option<Instant>) {
        let mut timers = self.timers.borrow_mut();
        while let Some(at) = timers.changed.current() {
            timers.changed.pass(&self.all[at].marks);
            timers.by_time.set(at, due_of(&self.all[at]));
        }
        timers.changed.rewind();
    }

    /// The places of those that may have something due, in the order of the configuration.
    pub(super) fn due(
        &self,
        now: Instant,
        due_of: impl Fn(&Peer) -> Option<Instant>,
    ) -> Vec<usize> {
        if self.all.len() <= FEW {
            return (0..self.all.len()).collect();
        }
        self.follow_changes(due_of);
        let mut due = self.timers.borrow().by_time.until(now);
        due.sort_unstable();
        due
    }
}

impl Index<usize> for Peers {
    type Output = Peer;

    fn index(&self, at: usize) -> &Peer {
        &self.all[at]
    }
}

impl IndexMut<usize> for Peers {
    fn index_mut(&mut self, at: usize) -> &mut Peer {
        self.note(at);
        &mut self.all[at]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a model: a set of places, gone through in order.
        #[test]
        fn each_place_that_was_noted_is_passed_once(
            rounds in vec(vec(0..FEW + 3, 0..12), 0..12),
            count in proptest::sample::select(vec![FEW, FEW + 3]),
        ) {
            let mut places = Places::new(count, CHANGED);
            let marks = vec![Cell::new(NOTED); count];
            let mut expected: BTreeSet<usize> = (0..count).collect();
            for round in rounds {
                expected.extend(round.iter().filter(|at| **at < count));
                round.iter().filter(|at| **at < count).for_each(|at| places.note(*at, &marks[*at]));
                let mut seen = Vec::new();
                while let Some(at) = places.current() {
                    places.pass(&marks[at]);
                    seen.push(at);
                }
                places.rewind();
                prop_assert_eq!(&seen, &expected.iter().copied().collect::<Vec<_>>());
                if count > FEW {
                    expected.clear();
                }
            }
        }
    }
}
