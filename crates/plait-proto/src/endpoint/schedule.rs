//! When each peer has something due: the first of all is found at once, and a change of one costs
//! steps by the logarithm of how many have any.

use crate::time::Instant;

/// Not in the heap.
const NOWHERE: u32 = u32::MAX;

/// A binary heap that knows where each peer stands in it.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// The entry at `i` is no later than those at `2 * i + 1` and `2 * i + 2`.
    heap: Vec<(Instant, u32)>,
    /// Where each peer stands in the heap.
    places: Vec<u32>,
}

impl Schedule {
    /// Nothing is due for any of `count` peers.
    pub(super) fn new(count: usize) -> Self {
        Self { heap: Vec::new(), places: vec![NOWHERE; count] }
    }

    /// There is one more peer, with nothing due.
    pub(super) fn push(&mut self) {
        self.places.push(NOWHERE);
    }

    /// A peer is gone, and the last one gets its number.
    pub(super) fn swap_remove(&mut self, of: usize) {
        self.set(of, None);
        self.places.swap_remove(of);
        if let Some(moved) = self.places.get(of).filter(|at| **at != NOWHERE) {
            let moved = *moved as usize;
            self.heap[moved].1 = of as u32;
            // Of two that are due at once, the one with the lower number comes first.
            self.rise(moved);
        }
    }

    /// The first time and whose it is.
    pub(super) fn first(&self) -> Option<(Instant, usize)> {
        self.heap.first().map(|(due, of)| (*due, *of as usize))
    }

    /// The peers with something due by `now`, in no order.
    pub(super) fn until(&self, now: Instant) -> Vec<usize> {
        let (mut due, mut ahead) = (Vec::new(), vec![0]);
        while let Some(at) = ahead.pop() {
            if let Some((_, of)) = self.heap.get(at).filter(|(time, _)| *time <= now) {
                due.push(*of as usize);
                ahead.extend([2 * at + 1, 2 * at + 2]);
            }
        }
        due
    }

    /// From now on, that peer has something due then, or nothing.
    pub(super) fn set(&mut self, of: usize, due: Option<Instant>) {
        let at = self.places[of];
        match due {
            Some(due) if at == NOWHERE => {
                self.heap.push((due, of as u32));
                self.rise(self.heap.len() - 1);
            }
            Some(due) => {
                let at = at as usize;
                let known = core::mem::replace(&mut self.heap[at].0, due);
                if due < known {
                    self.rise(at);
                } else if due > known {
                    self.sink(at);
                }
            }
            None if at == NOWHERE => {}
            None => {
                self.places[of] = NOWHERE;
                self.heap.swap_remove(at as usize);
                if (at as usize) < self.heap.len() {
                    let at = self.rise(at as usize);
                    self.sink(at);
                }
            }
        }
    }

    fn put(&mut self, at: usize, entry: (Instant, u32)) {
        self.heap[at] = entry;
        self.places[entry.1 as usize] = at as u32;
    }

    /// Moves an entry up to where it belongs, and says where that is.
    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.heap[at];
        while let Some(above) = at.checked_sub(1).map(|at| at / 2)
            && entry < self.heap[above]
        {
            self.put(at, self.heap[above]);
            at = above;
        }
        self.put(at, entry);
        at
    }

    /// Moves an entry down to where it belongs.
    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let below = 2 * at + 1;
            let Some(left) = self.heap.get(below) else { break };
            let right = self.heap.get(below + 1).filter(|right| *right < left);
            let (below, least) = right.map_or((below, *left), |right| (below + 1, *right));
            if entry <= least {
                break;
            }
            self.put(at, least);
            at = below;
        }
        self.put(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a model: the least of all, and all up to a time.
        #[test]
        fn the_first_is_the_least(
            changes in vec((0..40_usize, proptest::option::of(0..50_u64)), 0..200),
            swaps: bool,
        ) {
            let mut schedule = Schedule::new(40);
            let mut model = vec![None; 40];
            for (of, due) in changes {
                let due = due.map(Instant::from_millis);
                if swaps && model.len() > 1 {
                    schedule.swap_remove(of % model.len());
                    model.swap_remove(of % model.len());
                    schedule.push();
                    model.push(due);
                    schedule.set(model.len() - 1, due);
                }
                schedule.set(of, due);
                model[of] = due;
                let first = schedule.first().map(|(due, _)| due);
                prop_assert_eq!(first, model.iter().flatten().min().copied());
                let heap = &schedule.heap;
                prop_assert!((1..heap.len()).all(|at| heap[(at - 1) / 2] <= heap[at]));
                let now = Instant::from_millis(20);
                let mut until = schedule.until(now);
                until.sort_unstable();
                let expected = (0..40).filter(|of| model[*of].is_some_and(|due| due <= now));
                prop_assert_eq!(until, expected.collect::<Vec<_>>());
                prop_assert_eq!(schedule.heap.len(), model.iter().flatten().count());
            }
        }
    }
}
