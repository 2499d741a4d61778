//! New entropy for the generator. An endpoint draws secrets at handshakes only, and after each of
//! them it asks for more: whoever has read its memory once does not know the next ones.

use super::Endpoint;

impl Endpoint {
    /// Whether secrets were drawn since entropy was last mixed in. The owner of a real gateway
    /// answers with [`Self::mix_in`].
    pub fn wants_entropy(&self) -> bool {
        self.rng.wants_entropy()
    }

    /// Makes all later secrets depend on `entropy` of the operating system.
    pub fn mix_in(&mut self, entropy: &[u8; 32]) {
        self.rng.mix_in(entropy);
    }
}
