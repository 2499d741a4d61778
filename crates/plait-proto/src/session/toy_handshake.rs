//! Noise's primitives in a form that anybody can undo, for the search through handshakes, which
//! makes millions of them: `docs/decisions/0013-search.md`. The Diffie-Hellman function commutes,
//! so that both ends agree; hash and cipher tell inputs, keys, numbers and texts apart. They keep
//! nothing secret. No gateway can come to use them, for the reasons of
//! `docs/decisions/0007-null-cipher.md`.

use snow::types::{Cipher, Dh, Hash, Random};

use super::keys::{PrivateKey, PublicKey};
use crate::wire::handshake::MAC_BYTES;
use crate::wire::sealed::TAG_BYTES;

/// A Mersenne prime: multiples of [`GENERATOR`] modulo it stand for points of the curve.
const MODULUS_BITS: u32 = 61;
const MODULUS: u64 = (1 << MODULUS_BITS) - 1;
const GENERATOR: u64 = 37;
const KEY_BYTES: usize = 32;
/// An odd number without a pattern: the fraction of the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

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

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    let folded = (product as u64 & MODULUS) + (product >> MODULUS_BITS) as u64;
    if folded >= MODULUS { folded - MODULUS } else { folded }
}

fn number(key: &[u8]) -> u64 {
    let (first, _) = key.split_first_chunk().expect("a key has more bytes than a number");
    u64::from_be_bytes(*first)
}

/// A factor other than zero.
fn factor(private: &[u8]) -> u64 {
    number(private) % (MODULUS - 1) + 1
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
        write(times(GENERATOR, factor(&self.private)), &mut self.public);
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
        write(times(number(pubkey) % MODULUS, factor(&self.private)), out);
        Ok(())
    }
}

/// Takes the place of BLAKE2s.
#[derive(Clone, Copy, Default)]
pub(super) struct ToyHash {
    state: u64,
}

impl ToyHash {
    fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Self::default();
        for part in parts {
            hash.input(part);
        }
        hash
    }

    fn word(&mut self, word: u64) {
        self.state = (self.state ^ word).wrapping_mul(MULTIPLIER);
        self.state ^= self.state >> 32;
    }

    /// The hash, of any length.
    fn write(self, out: &mut [u8]) {
        for (place, bytes) in (1_u64..).zip(out.chunks_mut(8)) {
            let mut end = self;
            end.word(place);
            bytes.copy_from_slice(&end.state.to_be_bytes()[..bytes.len()]);
        }
    }
}

impl Hash for ToyHash {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        KEY_BYTES
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn input(&mut self, data: &[u8]) {
        self.word(data.len() as u64 + 1);
        for bytes in data.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            self.word(u64::from_be_bytes(word));
        }
    }

    fn result(&mut self, out: &mut [u8]) {
        self.write(&mut out[..KEY_BYTES]);
    }

    fn hkdf(
        &mut self,
        chaining_key: &[u8],
        input: &[u8],
        outputs: usize,
        first: &mut [u8],
        second: &mut [u8],
        third: &mut [u8],
    ) {
        let both = Self::of(&[chaining_key, input]);
        for (place, out) in (1_u64..).zip([first, second, third]).take(outputs) {
            let mut own = both;
            own.word(place);
            own.write(&mut out[..KEY_BYTES]);
        }
    }
}

/// Takes the place of keyed BLAKE2s.
pub(super) fn mac1(to: &PublicKey, message: &[u8]) -> [u8; MAC_BYTES] {
    let mut mac = [0; MAC_BYTES];
    ToyHash::of(&[to.as_bytes(), message]).write(&mut mac);
    mac
}

/// Takes the place of ChaCha20-Poly1305: the text as it is, then a tag.
#[derive(Default)]
pub(super) struct ToyCipher {
    key: [u8; KEY_BYTES],
}

impl ToyCipher {
    fn tag(&self, nonce: u64, ad: &[u8], text: &[u8]) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        ToyHash::of(&[&self.key, &nonce.to_be_bytes(), ad, text]).write(&mut tag);
        tag
    }
}

impl Cipher for ToyCipher {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; KEY_BYTES]) {
        self.key = *key;
    }

    fn encrypt(&self, nonce: u64, ad: &[u8], text: &[u8], out: &mut [u8]) -> usize {
        let end = text.len() + TAG_BYTES;
        out[..text.len()].copy_from_slice(text);
        out[text.len()..end].copy_from_slice(&self.tag(nonce, ad, text));
        end
    }

    fn decrypt(
        &self,
        nonce: u64,
        ad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, snow::Error> {
        match sealed.split_last_chunk() {
            Some((text, tag)) if *tag == self.tag(nonce, ad, text) => {
                out[..text.len()].copy_from_slice(text);
                Ok(text.len())
            }
            _ => Err(snow::Error::Decrypt),
        }
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

    #[test]
    fn a_text_opens_under_its_key_number_and_associated_data_only() {
        let cipher = |byte| {
            let mut cipher = ToyCipher::default();
            cipher.set(&[byte; 32]);
            cipher
        };
        let (mut sealed, mut text) = ([0; 20], [0; 20]);
        assert_eq!(cipher(1).encrypt(7, b"ad", b"text", &mut sealed), 20);
        assert_eq!(cipher(1).decrypt(7, b"ad", &sealed, &mut text), Ok(4));
        assert_eq!(&text[..4], b"text");
        assert!(cipher(2).decrypt(7, b"ad", &sealed, &mut text).is_err());
        assert!(cipher(1).decrypt(8, b"ad", &sealed, &mut text).is_err());
        assert!(cipher(1).decrypt(7, b"da", &sealed, &mut text).is_err());
    }
}
