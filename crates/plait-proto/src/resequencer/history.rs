//! Which of the numbers just below the floor arrived: tells a duplicate from a late packet.

/// Numbers remembered below the floor.
pub(super) const HISTORY: u64 = 65536;

/// One bit per number of the last [`HISTORY`] below the floor.
#[derive(Debug)]
pub(super) struct History {
    words: Box<[u64]>,
    /// The floor at the start; nothing below it was ever sent here.
    first: u64,
    /// The floor.
    end: u64,
}

impl History {
    pub(super) fn new(first: u64) -> Self {
        Self { words: vec![0; (HISTORY / 64) as usize].into(), first, end: first }
    }

    fn position(seq: u64) -> (usize, u64) {
        (((seq % HISTORY) / 64) as usize, 1 << (seq % 64))
    }

    /// Notes whether the number at the floor arrived, and moves on.
    pub(super) fn push(&mut self, seen: bool) {
        let (word, bit) = Self::position(self.end);
        if seen {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
        self.end += 1;
    }

    /// Moves on by `count` numbers that did not arrive.
    pub(super) fn skip(&mut self, count: u64) {
        if count >= HISTORY {
            self.words.fill(0);
            self.end += count;
            return;
        }
        for _ in 0..count {
            self.push(false);
        }
    }

    /// Whether `seq`, below the floor, arrived; `None` when that is forgotten or before the start.
    pub(super) fn seen(&self, seq: u64) -> Option<bool> {
        if seq < self.first || seq + HISTORY < self.end || seq >= self.end {
            return None;
        }
        let (word, bit) = Self::position(seq);
        Some(self.words[word] & bit != 0)
    }

    /// Notes that `seq`, below the floor, arrived late.
    pub(super) fn set_seen(&mut self, seq: u64) {
        let (word, bit) = Self::position(seq);
        self.words[word] |= bit;
    }
}
