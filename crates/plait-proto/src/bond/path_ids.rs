//! Which path ids this side may give out, and which ones it takes from the peer (spec K-5): no id
//! is used twice in an epoch, because its key, and with it every nonce, would be used twice.

use super::{PATHS_MAX, PathIdParity};
use crate::scheduler::PathSet;
use crate::seq::PathId;

/// Ids of one parity.
const OWN_IDS: u8 = 128;

/// The ids of the epoch under which this side sends.
#[derive(Debug)]
pub(super) struct PathIds {
    parity: PathIdParity,
    /// The next own id, counted among those of this side's parity. It goes round: an id rests as
    /// long as possible, so that what is left of its last path has died away.
    next: u8,
    used: PathSet,
    /// Used in the epoch before: datagrams of it may still arrive.
    used_before: PathSet,
}

impl PathIds {
    pub(super) fn new(parity: PathIdParity) -> Self {
        Self { parity, next: 0, used: PathSet::default(), used_before: PathSet::default() }
    }

    fn own(&self, number: u8) -> PathId {
        PathId(2 * number + u8::from(self.parity == PathIdParity::Odd))
    }

    /// An id for a path that this side opens; `None` when all were used.
    pub(super) fn allocate(&mut self) -> Option<PathId> {
        let numbers = (0..OWN_IDS).map(|step| (self.next + step) % OWN_IDS);
        let number = numbers.into_iter().find(|number| !self.used.contains(self.own(*number)))?;
        self.next = (number + 1) % OWN_IDS;
        let id = self.own(number);
        self.used.insert(id);
        Some(id)
    }

    /// Whether this side's ids may run out before the session is renewed in its time: there are
    /// fewer than a bond has paths.
    pub(super) fn run_short(&self) -> bool {
        let free = (0..OWN_IDS).filter(|number| !self.used.contains(self.own(*number)));
        free.take(PATHS_MAX).count() < PATHS_MAX
    }

    /// Whether a datagram of a path that is not there may open one. What arrives late of a path
    /// that is gone may not, and the peer does not give out this side's ids.
    pub(super) fn may_join(&self, id: PathId, in_epoch: bool) -> bool {
        let is_own = id.0 % 2 == self.own(0).0;
        !is_own && !self.used.contains(id) && (in_epoch || !self.used_before.contains(id))
    }

    /// The peer opened a path.
    pub(super) fn note(&mut self, id: PathId) {
        self.used.insert(id);
    }

    /// This side goes on under other keys; the paths that there are keep their ids.
    pub(super) fn enter_epoch(&mut self, in_use: impl Iterator<Item = PathId>) {
        self.used_before = core::mem::take(&mut self.used);
        for id in in_use {
            self.used.insert(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec K-5: no path id twice in an epoch.
    #[test]
    fn an_epoch_has_each_id_of_a_parity_once() {
        for (parity, first) in [(PathIdParity::Even, 0), (PathIdParity::Odd, 1)] {
            let mut ids = PathIds::new(parity);
            let all: Vec<u8> = std::iter::from_fn(|| ids.allocate()).map(|id| id.0).collect();
            assert_eq!(all, (first..=255).step_by(2).collect::<Vec<u8>>());
            ids.enter_epoch([PathId(first)].into_iter());
            assert_eq!(ids.allocate(), Some(PathId(first + 2)), "the id that is in use stays so");
        }
    }

    /// Spec P-10.
    #[test]
    fn ids_run_short_while_a_bond_can_still_be_filled() {
        let mut ids = PathIds::new(PathIdParity::Even);
        for _ in 0..usize::from(OWN_IDS) - PATHS_MAX {
            assert!(!ids.run_short());
            ids.allocate();
        }
        assert!(!ids.run_short(), "a whole bond fits");
        ids.allocate();
        assert!(ids.run_short());
    }

    /// Spec P-8.
    #[test]
    fn an_id_joins_once() {
        let mut ids = PathIds::new(PathIdParity::Even);
        assert!(ids.may_join(PathId(1), true));
        assert!(!ids.may_join(PathId(2), true), "it is this side's to give out");
        ids.note(PathId(1));
        assert!(!ids.may_join(PathId(1), true));
        ids.enter_epoch(core::iter::empty());
        assert!(ids.may_join(PathId(1), true));
        assert!(!ids.may_join(PathId(1), false), "a straggler of the epoch before opens nothing");
    }
}
