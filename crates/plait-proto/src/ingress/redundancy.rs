//! How much may be sent twice: copies, and packets sent again before they are known lost.

use super::pick::Pick;
use crate::scheduler::PathSet;
use crate::seq::PathId;

/// At most one part in so many of what is sent.
const SPARE_PARTS: u64 = 10;
/// So much of that may be saved up.
const SPARE_BYTES_MAX: u64 = 512 * 1024;

/// The account of what a closed loop sends twice.
#[derive(Debug)]
pub(super) struct Redundancy {
    /// Bytes that may be sent twice.
    spare_bytes: u64,
    /// Packets that were sent again.
    pub(super) repaired_packets: u64,
    /// Bytes of copies.
    pub(super) copied_bytes: u64,
}

impl Default for Redundancy {
    fn default() -> Self {
        Self { spare_bytes: SPARE_BYTES_MAX, repaired_packets: 0, copied_bytes: 0 }
    }
}

impl Redundancy {
    /// A packet of `bytes` is sent for the first time.
    pub(super) fn earn(&mut self, bytes: u64) {
        self.spare_bytes = (self.spare_bytes + bytes / SPARE_PARTS).min(SPARE_BYTES_MAX);
    }

    /// Bytes that may be sent twice now.
    pub(super) const fn spare_bytes(&self) -> u64 {
        self.spare_bytes
    }

    /// Says whether there was so much.
    pub(super) fn spend(&mut self, bytes: u64) -> bool {
        let left = self.spare_bytes.checked_sub(bytes);
        self.spare_bytes = left.unwrap_or(self.spare_bytes);
        left.is_some()
    }

    /// All of the copies, or only the one over the quickest path when too much was sent twice of
    /// late.
    pub(super) fn allow_copies(
        &mut self,
        set: PathSet,
        quickest: Option<PathId>,
        bytes: u64,
    ) -> Pick {
        let copies = (set.iter().count() as u64).saturating_sub(1);
        match quickest {
            Some(one) if !self.spend(copies * bytes) => Pick::One(one),
            _ => {
                self.copied_bytes += copies * bytes;
                Pick::Copies(set)
            }
        }
    }
}
