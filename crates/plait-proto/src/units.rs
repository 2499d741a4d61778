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
        Self(u64::try_from(u128::from(bytes) * 8_000_000_000 / nanos).unwrap_or(u64::MAX))
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Bytes that pass in `time`, rounded down.
    pub fn bytes_in(self, time: Duration) -> u64 {
        let bytes = u128::from(self.0) * time.as_nanos() / 8_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Time that `bytes` take at this rate; `Duration::MAX` at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
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
