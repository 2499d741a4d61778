//! Quantities whose units would otherwise be mixed up in silence.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Duration;

/// A data rate in bits per second, at the IP layer unless the place says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(u64);

impl Rate {
    /// No data at all; as an estimate: unknown.
    pub const ZERO: Self = Self(0);

    /// A rate of `bits` bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `mbit` megabits (10^6 bits) per second.
    pub const fn from_mbit(mbit: u64) -> Self {
        Self(mbit * 1_000_000)
    }

    /// The rate at which `bytes` pass in `time`; zero when `time` is zero.
    pub fn from_bytes_over(bytes: u64, time: Duration) -> Self {
        let nanos = time.as_nanos();
        if nanos == 0 {
            return Self::ZERO;
        }
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Self(mul_div(bytes, BIT_NANOS_PER_BYTE, nanos))
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Bytes that pass in `time`, rounded down.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        mul_div(self.0, nanos, BIT_NANOS_PER_BYTE)
    }

    /// Time that `bytes` take at this rate; `Duration::MAX` at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        Duration::from_nanos(mul_div(bytes, BIT_NANOS_PER_BYTE, self.0))
    }
}

/// Bits in a byte times nanoseconds in a second.
const BIT_NANOS_PER_BYTE: u64 = 8_000_000_000;

/// `a · b / divisor` rounded down, or the largest number if that is larger. Division of 128 bits
/// is slow, and hardly ever needed.
fn mul_div(a: u64, b: u64, divisor: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / divisor,
        None => {
            u64::try_from(u128::from(a) * u128::from(b) / u128::from(divisor)).unwrap_or(u64::MAX)
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        if self.0 >= 1_000_000_000 {
            write!(f, "{:.2} Gbit/s", bits / 1e9)
        } else if self.0 >= 1_000_000 {
            write!(f, "{:.1} Mbit/s", bits / 1e6)
        } else {
            write!(f, "{:.1} kbit/s", bits / 1e3)
        }
    }
}
