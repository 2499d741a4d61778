//! Sequence numbers: full ones, and the truncated forms that travel on the wire.
//!
//! A truncated number is a different type from an expanded one, so that neither can stand where the
//! other is meant.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Identifies a path within one bond. An id is never used twice within an epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathId(pub u8);

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts every sealed datagram of a path and epoch in one direction; also the AEAD nonce
/// (002's local sequence number).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PacketNumber(pub u64);

impl PacketNumber {
    /// The low 32 bits, as they travel.
    pub const fn truncate(self) -> TruncatedPacketNumber {
        TruncatedPacketNumber(self.0 as u32)
    }

    /// The next number.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The low 32 bits of a [`PacketNumber`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TruncatedPacketNumber(pub u32);

impl TruncatedPacketNumber {
    /// The full number nearest to `expected`, the number after the highest one seen.
    pub fn expand(self, expected: PacketNumber) -> PacketNumber {
        PacketNumber(expand(u64::from(self.0), 32, expected.0))
    }
}

/// Counts every data packet of a bond in one direction (002's global sequence number).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BondSeq(pub u64);

impl BondSeq {
    /// The low 24 bits, as they travel.
    pub const fn truncate(self) -> TruncatedBondSeq {
        TruncatedBondSeq((self.0 & 0x00ff_ffff) as u32)
    }

    /// The next number.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The low 24 bits of a [`BondSeq`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TruncatedBondSeq(pub u32);

impl TruncatedBondSeq {
    /// The full number nearest to `expected`, the number after the highest one seen.
    pub fn expand(self, expected: BondSeq) -> BondSeq {
        BondSeq(expand(u64::from(self.0), 24, expected.0))
    }
}

/// Names one end of a bond. A side draws a new one when it begins without a bond; a bond lasts as
/// long as both its ends do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BondIncarnation(pub u64);

/// The value congruent to `low` modulo 2^`bits` that lies nearest to `expected` and is not
/// negative.
fn expand(low: u64, bits: u32, expected: u64) -> u64 {
    let window = 1_u64 << bits;
    let half = window / 2;
    let candidate = (expected & !(window - 1)) | low;
    if candidate + half <= expected {
        candidate + window
    } else if candidate > expected + half && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec W-7.
    #[test]
    fn expansion_takes_the_nearest_number() {
        for (full, expected) in [
            (0, 0),
            (5, 0),
            (1 << 24, (1 << 24) - 3),
            ((1 << 24) - 3, 1 << 24),
            (70_000_000, 70_000_900),
        ] {
            assert_eq!(BondSeq(full).truncate().expand(BondSeq(expected)), BondSeq(full));
        }
        assert_eq!(
            PacketNumber(1 << 33).truncate().expand(PacketNumber((1 << 33) + 100)),
            PacketNumber(1 << 33)
        );
    }

    /// Spec W-7.
    #[test]
    fn expansion_never_goes_below_zero() {
        assert_eq!(TruncatedBondSeq(0x00ff_ffff).expand(BondSeq(1)), BondSeq(0x00ff_ffff));
    }
}
