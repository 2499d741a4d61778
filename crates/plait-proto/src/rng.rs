//! The owner's randomness: a ChaCha20 generator that the owner seeds, from the operating system in
//! the daemon, from a number in the simulator.

use core::fmt;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// A cryptographically secure generator with an explicit seed.
pub struct Rng(ChaCha20Rng);

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rng(..)")
    }
}

impl Rng {
    /// A generator that produces the same numbers for the same seed. Outside the simulator and
    /// tests the seed must come from the operating system.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    /// An independent generator, seeded from this one.
    pub fn fork(&mut self) -> Self {
        let mut seed = [0; 32];
        self.fill(&mut seed);
        Self::from_seed(seed)
    }

    /// Fills `bytes` with random data.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// A random number.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}
