//! The networks of one address family: searched fast, and changed in place.

use std::collections::BTreeMap;

/// An address as a number.
pub(super) trait Address: Copy + Ord {
    /// The lowest address.
    const MIN: Self;
    /// Longest prefix in bits.
    const BITS: u8;

    /// The first address of the network of this length that holds it.
    fn first_of(self, length: u8) -> Self;
    /// The last address of that network.
    fn last_of(self, length: u8) -> Self;
    /// The address behind it.
    fn next(self) -> Option<Self>;
}

macro_rules! address {
    ($type:ty) => {
        impl Address for $type {
            const MIN: Self = 0;
            const BITS: u8 = <$type>::BITS as u8;

            fn first_of(self, length: u8) -> Self {
                self & !<$type>::MAX.checked_shr(u32::from(length)).unwrap_or(0)
            }

            fn last_of(self, length: u8) -> Self {
                self | <$type>::MAX.checked_shr(u32::from(length)).unwrap_or(0)
            }

            fn next(self) -> Option<Self> {
                self.checked_add(1)
            }
        }
    };
}

address!(u32);
address!(u128);

/// All addresses of a family, cut into runs with one owner or none. A search among ten thousand
/// peers' takes fifteen comparisons, without a branch; down a trie it was five hundred
/// instructions. A change moves what is behind it in two lists of numbers, and looks at no network
/// but those around it and in it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Family<A, P> {
    /// Owners by first address and length: the outer network before those in it.
    networks: BTreeMap<(A, u8), P>,
    /// Where each run begins, in order. Neighbours have different owners; before the first of them
    /// there is none.
    firsts: Vec<A>,
    owners: Vec<Option<P>>,
}

impl<A, P> Default for Family<A, P> {
    fn default() -> Self {
        Self { networks: BTreeMap::new(), firsts: Vec::new(), owners: Vec::new() }
    }
}

/// A network around the address that is looked at: its last address and its owner.
type Around<A, P> = Vec<(A, P)>;

impl<A: Address, P: Copy + PartialEq> Family<A, P> {
    /// Of two networks that are the same, the one given first counts.
    pub(super) fn of(given: Vec<(A, u8, P)>) -> Self {
        let mut family = Self::default();
        for (address, length, owner) in given {
            family.networks.entry(key(address, length)).or_insert(owner);
        }
        family.follow(A::MIN, 0);
        family
    }

    /// One more network, unless it is there already.
    pub(super) fn add(&mut self, address: A, length: u8, owner: P) {
        let (first, length) = key(address, length);
        if let std::collections::btree_map::Entry::Vacant(free) =
            self.networks.entry((first, length))
        {
            free.insert(owner);
            self.follow(first, length);
        }
    }

    /// The network, if it is `from`'s, gets another owner, or is gone.
    pub(super) fn pass_on(&mut self, address: A, length: u8, from: P, to: Option<P>) {
        let (first, length) = key(address, length);
        if self.networks.get(&(first, length)) != Some(&from) {
            return;
        }
        match to {
            Some(to) => self.networks.insert((first, length), to),
            None => self.networks.remove(&(first, length)),
        };
        self.follow(first, length);
    }

    #[inline]
    pub(super) fn owner(&self, address: A) -> Option<P> {
        let runs = self.firsts.partition_point(|first| *first <= address);
        self.owner_of_run(runs)
    }

    /// The owner of the last of so many runs.
    #[inline]
    fn owner_of_run(&self, runs: usize) -> Option<P> {
        self.owners.get(runs.checked_sub(1)?).copied().flatten()
    }

    /// The runs within a network, anew.
    fn follow(&mut self, first: A, length: u8) {
        let last = first.last_of(length);
        let from = self.firsts.partition_point(|run| *run < first);
        let mut to = self.firsts.partition_point(|run| *run <= last);
        let (before, at_the_end) = (self.owner_of_run(from), self.owner_of_run(to));
        let mut runs = self.runs_within(first, length);
        if runs[0].1 == before {
            runs.remove(0);
        }
        let now_at_the_end = runs.last().map_or(before, |run| run.1);
        if let Some(after) = last.next() {
            if self.firsts.get(to) == Some(&after) {
                // Whoever comes behind it may now be the same.
                to += usize::from(self.owners[to] == now_at_the_end);
            } else if at_the_end != now_at_the_end {
                runs.push((after, at_the_end));
            }
        }
        self.firsts.splice(from..to, runs.iter().map(|run| run.0));
        self.owners.splice(from..to, runs.iter().map(|run| run.1));
    }

    /// The runs from the first to the last address of a network.
    fn runs_within(&self, first: A, length: u8) -> Vec<(A, Option<P>)> {
        let (last, outer) = (first.last_of(length), self.owner_around(first, length));
        let mut runs = vec![(first, outer)];
        let mut around: Around<A, P> = Vec::new();
        for ((begin, length), owner) in self.networks.range((first, length)..=(last, A::BITS)) {
            leave(&mut runs, &mut around, outer, |ended| ended < *begin);
            begin_run(&mut runs, *begin, Some(*owner));
            around.push((begin.last_of(*length), *owner));
        }
        leave(&mut runs, &mut around, outer, |_| true);
        runs.retain(|run| run.0 <= last);
        runs
    }

    /// The owner of the smallest network around another.
    fn owner_around(&self, first: A, length: u8) -> Option<P> {
        let around = |length| self.networks.get(&(first.first_of(length), length));
        (0..length).rev().find_map(around).copied()
    }
}

/// How a network is found.
fn key<A: Address>(address: A, length: u8) -> (A, u8) {
    let length = length.min(A::BITS);
    (address.first_of(length), length)
}

/// Ends networks, the innermost first, as long as their last address `has_ended`.
fn leave<A: Address, P: Copy + PartialEq>(
    runs: &mut Vec<(A, Option<P>)>,
    around: &mut Around<A, P>,
    outer: Option<P>,
    has_ended: impl Fn(A) -> bool,
) {
    while let Some((last, _)) = around.last().copied()
        && has_ended(last)
    {
        around.pop();
        if let Some(after) = last.next() {
            begin_run(runs, after, around.last().map(|inner| inner.1).or(outer));
        }
    }
}

/// A run from `first` on, in place of one that began there.
fn begin_run<A: Copy + Ord, P: Copy + PartialEq>(
    runs: &mut Vec<(A, Option<P>)>,
    first: A,
    owner: Option<P>,
) {
    if runs.last().is_some_and(|run| run.0 == first) {
        runs.pop();
    }
    if runs.last().is_none_or(|run| run.1 != owner) {
        runs.push((first, owner));
    }
}
