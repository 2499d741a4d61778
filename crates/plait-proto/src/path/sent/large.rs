//! The large datagrams that a path loses, from which a fall of its MTU is known.

/// The datagrams that a path would no longer carry if its MTU fell.
#[derive(Debug)]
pub(super) struct LargeDatagrams {
    /// Those with more bytes count.
    above_bytes: u32,
    /// One more than the highest number of those that arrived.
    acked_below: u64,
    /// Those lost above `acked_below`.
    lost: u32,
}

impl LargeDatagrams {
    /// Those of more than `bytes`, from this number on.
    pub(super) const fn above(bytes: u32, number: u64) -> Self {
        Self { above_bytes: bytes, acked_below: number, lost: 0 }
    }

    /// Those lost since the last one that arrived.
    pub(super) const fn count_lost(&self) -> u32 {
        self.lost
    }

    pub(super) fn acked(&mut self, number: u64, bytes: u32) {
        if bytes > self.above_bytes && number >= self.acked_below {
            self.acked_below = number + 1;
            self.lost = 0;
        }
    }

    pub(super) fn lost(&mut self, number: u64, bytes: u32) {
        if bytes > self.above_bytes && number >= self.acked_below {
            self.lost = self.lost.saturating_add(1);
        }
    }
}
