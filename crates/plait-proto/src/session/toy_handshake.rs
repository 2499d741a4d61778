//! A Diffie-Hellman function that anybody can undo, for the search through handshakes, which makes
//! a million of them: `docs/decisions/0013-search.md`. It commutes, so that both ends agree, and
//! distinguishes keys. It keeps nothing secret. No gateway can come to use it for the reasons of
//! `docs/decisions/0007-null-cipher.md`.

use snow::types::{Dh, Random};

use super::keys::{PrivateKey, PublicKey};

/// A Mersenne prime: powers of [`GENERATOR`] modulo it stand for points of the curve.
const MODULUS: u64 = (1 << 61) - 1;
const GENERATOR: u64 = 37;
const KEY_BYTES: usize = 32;

/// Takes the place of Curve25519 in the handshake, with keys of the same length.
#[derive(Default)]
pub(super) struct ToyDh {
    private: [u8; KEY_BYTES],
    public: [u8; KEY_BYTES],
}

impl PrivateKey {
    /// The public key that belongs to this private key in the search.
    pub fn toy_public_key(&self) -> PublicKey {
        let mut dh = ToyDh::default();
        dh.set(self.as_bytes());
        PublicKey::from_bytes(dh.public)
    }
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(MODULUS)) as u64;
    let (mut base, mut result) = (base % MODULUS, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    result
}

fn number(key: &[u8]) -> u64 {
    let (first, _) = key.split_first_chunk().expect("a key has more bytes than a number");
    u64::from_be_bytes(*first)
}

/// An exponent that is neither zero nor a multiple of the group's order.
fn exponent(private: &[u8]) -> u64 {
    number(private) % (MODULUS - 2) + 1
}

fn write(number: u64, out: &mut [u8]) {
    out[..8].copy_from_slice(&number.to_be_bytes());
    out[8..KEY_BYTES].fill(0);
}

impl Dh for ToyDh {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_BYTES
    }

    fn priv_len(&self) -> usize {
        KEY_BYTES
    }

    fn set(&mut self, privkey: &[u8]) {
        self.private.copy_from_slice(privkey);
        write(power(GENERATOR, exponent(&self.private)), &mut self.public);
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        let mut private = [0; KEY_BYTES];
        rng.try_fill_bytes(&mut private)?;
        self.set(&private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private
    }

    fn dh(&self, pubkey: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        write(power(number(pubkey), exponent(&self.private)), out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_agree_and_a_third_does_not() {
        let keys = [[1; 32], [2; 32], [3; 32]].map(PrivateKey::from_bytes);
        let shared = |own: usize, other: usize| {
            let mut dh = ToyDh::default();
            dh.set(keys[own].as_bytes());
            let mut out = [0; 32];
            dh.dh(keys[other].toy_public_key().as_bytes(), &mut out).unwrap();
            out
        };
        assert_eq!(shared(0, 1), shared(1, 0));
        assert_ne!(shared(0, 1), shared(0, 2));
    }
}
