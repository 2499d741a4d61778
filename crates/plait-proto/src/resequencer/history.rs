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

    /// Moves on to `end`; none of the numbers passed has arrived, as far as is known yet.
    pub(super) fn advance(&mut self, end: u64) {
        let mut at = self.end.max(end.saturating_sub(HISTORY));
        self.end = self.end.max(end);
        while at < end {
            let (word, bit) = Self::position(at);
            let whole_words = ((end - at) / 64) as usize;
            if bit == 1 && whole_words > 0 {
                // As far as the ring goes on in one piece.
                let last = self.words.len().min(word + whole_words);
                self.words[word..last].fill(0);
                at += (last - word) as u64 * 64;
                continue;
            }
            let rest = (64 - at % 64).min(end - at);
            // As many ones as there are numbers left in the word, from this one's bit on.
            let passed = if rest == 64 { u64::MAX } else { ((1 << rest) - 1) * bit };
            self.words[word] &= !passed;
            at += rest;
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

    /// Notes that `seq`, below the floor, arrived; nothing when it is too long ago.
    pub(super) fn set_seen(&mut self, seq: u64) {
        if seq + HISTORY < self.end {
            return;
        }
        let (word, bit) = Self::position(seq);
        self.words[word] |= bit;
    }
}
