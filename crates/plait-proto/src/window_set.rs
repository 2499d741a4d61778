//! A set of numbers from a window that slides upwards, which finds the next member at once.
//!
//! Where one datagram may move a window by all it holds, or name all of it, walking it number by
//! number would let a peer choose how much work a byte makes. The set skips what it does not hold:
//! a search looks at no more words than the window has groups of 4096 numbers, and two more.

/// Numbers in a word of members.
const WORD: u64 = 64;
/// The narrowest window.
const SPAN_MIN: u64 = WORD;

/// Members by number modulo the span, which grows as need be.
#[derive(Debug)]
pub(crate) struct WindowSet {
    /// A bit per number.
    members: Vec<u64>,
    /// A bit per word of `members` that is not zero.
    groups: Vec<u64>,
}

/// Up to 64 numbers that lie close together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// A multiple of 64.
    at: u64,
    /// Bit `n` is the number `at + n`.
    bits: u64,
}

impl Run {
    /// The first number that lies beyond.
    pub(crate) const fn end(self) -> u64 {
        self.at + WORD
    }

    pub(crate) const fn len(self) -> u32 {
        self.bits.count_ones()
    }

    /// Those below `number`, which is one of them.
    pub(crate) const fn below(self, number: u64) -> Self {
        Self { bits: self.bits & ((1 << (number - self.at)) - 1), ..self }
    }

    /// The highest number.
    pub(crate) fn highest(self) -> Option<u64> {
        Some(self.at + u64::from(self.bits.checked_ilog2()?))
    }
}

impl Iterator for Run {
    type Item = u64;

    /// The lowest number, which is taken out.
    fn next(&mut self) -> Option<u64> {
        if self.bits == 0 {
            return None;
        }
        let number = self.at + u64::from(self.bits.trailing_zeros());
        self.bits &= self.bits - 1;
        Some(number)
    }
}

impl Default for WindowSet {
    fn default() -> Self {
        Self::with_span(SPAN_MIN)
    }
}

impl WindowSet {
    fn with_span(span: u64) -> Self {
        let words = (span / WORD) as usize;
        Self { members: vec![0; words], groups: vec![0; words.div_ceil(WORD as usize)] }
    }

    fn span(&self) -> u64 {
        self.members.len() as u64 * WORD
    }

    /// Makes room for `span` numbers from `floor` on, which are all that it holds.
    pub(crate) fn ensure(&mut self, floor: u64, span: u64) {
        let old = self.span();
        if span <= old {
            return;
        }
        let larger = Self::with_span(span.next_power_of_two());
        let smaller = core::mem::replace(self, larger);
        let mut from = floor;
        while let Some(number) = smaller.next(from, floor + old) {
            self.insert(number);
            from = number + 1;
        }
    }

    fn place(&self, number: u64) -> (usize, u64) {
        let index = number & (self.span() - 1);
        ((index / WORD) as usize, 1 << (index % WORD))
    }

    /// Adds a number of the window.
    pub(crate) fn insert(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        self.members[word] |= bit;
        self.groups[word / WORD as usize] |= 1 << (word as u64 % WORD);
    }

    /// Takes a number out.
    pub(crate) fn remove(&mut self, number: u64) {
        let (word, bit) = self.place(number);
        self.members[word] &= !bit;
        if self.members[word] == 0 {
            self.groups[word / WORD as usize] &= !(1 << (word as u64 % WORD));
        }
    }

    /// The lowest member from `from` up to, and without, `to`; both lie in the window or at its
    /// end.
    pub(crate) fn next(&self, from: u64, to: u64) -> Option<u64> {
        let mut at = from;
        while at < to {
            let index = at & (self.span() - 1);
            let word = self.members[(index / WORD) as usize] >> (index % WORD);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return (found < to).then_some(found);
            }
            at = (at | (WORD - 1)) + 1;
            at += self.empty_words_from(at) * WORD;
        }
        None
    }

    /// Whether it is plain that no member lies from `from` up to, and without, `to`, which is not
    /// below; false as well where that takes a search. Acknowledgements name what was acknowledged
    /// long ago again and again, and a search is costly for a branch that nothing foretells.
    pub(crate) fn has_plainly_none(&self, from: u64, to: u64) -> bool {
        let mask = self.span() - 1;
        let (first, last) = (from & mask, to.wrapping_sub(1) & mask);
        let (first_word, last_word) = (first / WORD, last / WORD);
        let group = first_word / WORD;
        if group != last_word / WORD || first_word >= last_word {
            return false;
        }
        let head = self.members[first_word as usize] >> (first % WORD);
        let tail = self.members[last_word as usize] << (WORD - 1 - last % WORD);
        let below = |word: u64| (1_u64 << (word % WORD)) - 1;
        // Words after the first one and before the last one.
        let inner = below(last_word) & !(below(first_word) << 1 | 1);
        head | tail | (self.groups[group as usize] & inner) == 0
    }

    /// Up to 64 members from `from` on, the lowest first, that lie below `to` and in one word.
    pub(crate) fn run(&self, from: u64, to: u64) -> Option<Run> {
        let first = self.next(from, to)?;
        let mut run = Run { at: first & !(WORD - 1), bits: !0 << (first % WORD) };
        if to - run.at < WORD {
            run.bits &= (1 << (to - run.at)) - 1;
        }
        let word = ((first & (self.span() - 1)) / WORD) as usize;
        run.bits &= self.members[word];
        Some(run)
    }

    /// Takes out what [`Self::run`] gives.
    pub(crate) fn take_run(&mut self, from: u64, to: u64) -> Option<Run> {
        let run = self.run(from, to)?;
        self.remove_run(run);
        Some(run)
    }

    /// Takes out all of a run of the window.
    pub(crate) fn remove_run(&mut self, run: Run) {
        let word = ((run.at & (self.span() - 1)) / WORD) as usize;
        self.members[word] &= !run.bits;
        if self.members[word] == 0 {
            self.groups[word / WORD as usize] &= !(1 << (word as u64 % WORD));
        }
    }

    /// How many words from that of `number` on, as far as its group goes, have no member.
    fn empty_words_from(&self, number: u64) -> u64 {
        let word = (number & (self.span() - 1)) / WORD;
        let group = self.groups[(word / WORD) as usize] >> (word % WORD);
        let left = (self.members.len() as u64 - word).min(WORD - word % WORD);
        u64::from(group.trailing_zeros()).min(left)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Insert(u64),
        Remove(u64),
        /// The window's floor moves up, and what lies below is taken out.
        Slide(u64),
        Widen(u64),
        /// What lies from one number up to another, as runs.
        Take(u64, u64),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            6 => (0..20_000_u64).prop_map(Op::Insert),
            2 => (0..20_000_u64).prop_map(Op::Remove),
            1 => (0..9_000_u64).prop_map(Op::Slide),
            1 => (0..20_000_u64).prop_map(Op::Widen),
            1 => (0..20_000_u64, 0..400_u64).prop_map(|(at, count)| Op::Take(at, count)),
        ];
        proptest::collection::vec(op, 1..200)
    }

    proptest! {
        #[test]
        fn agrees_with_a_set(ops in ops(), first in 0_u64..100_000, step in 1_u64..3000) {
            let (mut set, mut model) = (WindowSet::default(), BTreeSet::new());
            let (mut floor, mut span) = (first, SPAN_MIN);
            for op in ops {
                match op {
                    Op::Insert(at) => {
                        set.insert(floor + at % span);
                        model.insert(floor + at % span);
                    }
                    Op::Remove(at) => {
                        set.remove(floor + at % span);
                        model.remove(&(floor + at % span));
                    }
                    Op::Slide(by) => {
                        let mut at = floor;
                        while let Some(gone) = set.next(at, floor + by.min(span)) {
                            set.remove(gone);
                            at = gone + 1;
                        }
                        floor += by;
                        model = model.split_off(&floor);
                    }
                    Op::Widen(wanted) => {
                        span = span.max(wanted);
                        set.ensure(floor, span);
                    }
                    Op::Take(at, count) => {
                        let mut from = floor + at % span;
                        let to = (from + count).min(floor + span);
                        let expected: Vec<u64> = model.range(from..to).copied().collect();
                        let mut taken = Vec::new();
                        let is_plain = set.has_plainly_none(from, to);
                        prop_assert!(!is_plain || expected.is_empty());
                        while let Some(run) = set.take_run(from, to) {
                            prop_assert_eq!(run.len() as usize, run.count());
                            taken.extend(run);
                            from = run.end();
                        }
                        model.retain(|number| !expected.contains(number));
                        prop_assert_eq!(taken, expected);
                    }
                }
                for from in (floor..floor + span).step_by(step as usize) {
                    let expected = model.range(from..floor + span).next().copied();
                    prop_assert_eq!(set.next(from, floor + span), expected);
                }
            }
        }
    }

    #[test]
    fn an_empty_stretch_is_skipped_and_the_end_is_kept_to() {
        let mut set = WindowSet::default();
        set.ensure(0, 65_536);
        set.insert(65_535);
        set.insert(3);
        assert_eq!(set.next(0, 65_536), Some(3));
        assert_eq!(set.next(4, 65_536), Some(65_535));
        assert_eq!(set.next(4, 65_535), None);
        set.remove(65_535);
        assert_eq!(set.next(4, 65_536 + 4), Some(65_536 + 3), "the window wraps");
    }

    #[test]
    fn a_stretch_of_several_words_without_members_is_plain() {
        let mut set = WindowSet::default();
        set.ensure(0, 65_536);
        for lone in [8191, 8400, 8600, 8900] {
            set.insert(lone);
        }
        assert!(set.has_plainly_none(8401, 8600), "members beside it in the same words");
        assert!(!set.has_plainly_none(8400, 8600) && !set.has_plainly_none(8401, 8601));
        assert!(!set.has_plainly_none(8500, 8700), "one in a word between");
        assert!(!set.has_plainly_none(8192, 8200), "one word takes a search");
        assert!(!set.has_plainly_none(8100, 8300), "and so do two groups");
        let mut late = Run { at: 64, bits: 0b1011 };
        assert!(late.below(67).eq([64, 65]) && late.all(|number| number < 68));
    }
}
