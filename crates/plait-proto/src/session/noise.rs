//! Noise by snow, in a form that leaves nothing behind: snow wipes nothing itself.
//!
//! Three things see to it. Secrets that snow keeps in boxes (keys, ciphers, the hash) are boxes of
//! this module, wiped when dropped. The chaining key, which snow keeps and copies in the open, is
//! under a mask that only such a box holds. And after each call the stack that snow used is
//! overwritten.

use core::cell::RefCell;
use core::hint::black_box;
use std::sync::LazyLock;

use aws_lc_rs::agreement::{self, UnparsedPublicKey, X25519};
use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::{Zeroize as _, Zeroizing};

use super::keys::{DirectionSecret, PresharedKey, PrivateKey, PublicKey};
#[cfg(feature = "simulation")]
use super::toy_handshake;
use crate::rng::Rng;
use crate::wipe::on_wiped_stack;

static PROTOCOL: LazyLock<NoiseParams> = LazyLock::new(|| {
    let name = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
    name.parse().expect("snow knows this protocol name")
});
/// Where the preshared key is mixed in: the 2 of `psk2`.
const PSK_AT: u8 = 2;
/// More than snow and the primitives below it use.
const STACK_BYTES: usize = 24 << 10;

/// What a handshake is made of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Primitives {
    /// What the protocol's name says.
    Real,
    /// What costs nothing and hides nothing.
    #[cfg(feature = "simulation")]
    Toy,
}

impl Primitives {
    /// Runs `work`, and wipes where it had its secrets, if they are any.
    fn on_stack<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Real => on_wiped_stack::<STACK_BYTES, _>(work),
            #[cfg(feature = "simulation")]
            Self::Toy => work(),
        }
    }
}

/// One side of a handshake.
#[derive(Debug)]
pub(super) struct Noise {
    state: Box<HandshakeState>,
    primitives: Primitives,
}

impl Drop for Noise {
    fn drop(&mut self) {
        let wiped = self.state.set_psk(usize::from(PSK_AT), &[0; 32]);
        debug_assert!(wiped.is_ok(), "a key of 32 bytes fits its place");
        black_box(&mut self.state);
    }
}

impl Noise {
    /// The side that sends the first message, to a peer it knows.
    pub(super) fn initiator(
        primitives: Primitives,
        rng: &mut Rng,
        private: &PrivateKey,
        prologue: &[u8],
        peer: &PublicKey,
        psk: &PresharedKey,
    ) -> Self {
        let build = |builder: Builder<'_>| {
            builder
                .psk(PSK_AT, psk.as_bytes())?
                .remote_public_key(peer.as_bytes())?
                .build_initiator()
        };
        Self::new(primitives, rng, private, prologue, build)
    }

    /// The side that answers. Who called, and with it the preshared key, is known only after the
    /// first message is read.
    pub(super) fn responder(
        primitives: Primitives,
        rng: &mut Rng,
        private: &PrivateKey,
        prologue: &[u8],
    ) -> Self {
        Self::new(primitives, rng, private, prologue, |builder| {
            builder.psk(PSK_AT, &[0; 32])?.build_responder()
        })
    }

    fn new(
        primitives: Primitives,
        rng: &mut Rng,
        private: &PrivateKey,
        prologue: &[u8],
        build: impl FnOnce(Builder<'_>) -> Result<HandshakeState, snow::Error>,
    ) -> Self {
        let resolver = Resolver { primitives, rng: RefCell::new(rng.fork()) };
        let state = primitives.on_stack(|| {
            Builder::with_resolver(PROTOCOL.clone(), Box::new(resolver))
                .local_private_key(private.as_bytes())
                .and_then(|builder| builder.prologue(prologue))
                .and_then(build)
                .map(Box::new)
        });
        let state = state.expect("each option is set once, to a key of the right length");
        Self { state, primitives }
    }

    pub(super) fn set_psk(&mut self, psk: &PresharedKey) {
        self.state
            .set_psk(usize::from(PSK_AT), psk.as_bytes())
            .expect("a key of 32 bytes fits its place");
    }

    pub(super) fn write_message(
        &mut self,
        payload: &[u8],
        message: &mut [u8],
    ) -> Result<usize, snow::Error> {
        self.primitives.on_stack(|| self.state.write_message(payload, message))
    }

    pub(super) fn read_message(
        &mut self,
        message: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, snow::Error> {
        self.primitives.on_stack(|| self.state.read_message(message, payload))
    }

    pub(super) fn get_remote_static(&self) -> Option<&[u8]> {
        self.state.get_remote_static()
    }

    /// The secrets of the initiator's and of the responder's direction (spec K-1).
    pub(super) fn split(&mut self) -> (DirectionSecret, DirectionSecret) {
        self.primitives.on_stack(|| {
            let mut halves = self.state.dangerously_get_raw_split();
            let secrets =
                (DirectionSecret::from_split(&halves.0), DirectionSecret::from_split(&halves.1));
            halves.0.zeroize();
            halves.1.zeroize();
            secrets
        })
    }
}

/// The public key of a private key.
pub(super) fn public_key(private: &[u8; 32]) -> [u8; 32] {
    on_wiped_stack::<STACK_BYTES, _>(|| public_of(&x25519_key(private)))
}

/// Whether anything can be agreed with the owner of a public key.
#[cfg(test)]
pub(super) fn agrees(public: &[u8; 32]) -> bool {
    let public = UnparsedPublicKey::new(&X25519, public);
    agreement::agree(&x25519_key(&[1; 32]), public, (), |_| Ok(())).is_ok()
}

fn x25519_key(private: &[u8; 32]) -> agreement::PrivateKey {
    agreement::PrivateKey::from_private_key(&X25519, private)
        .expect("any 32 bytes are a private key of X25519 (RFC 7748, section 5)")
}

fn public_of(key: &agreement::PrivateKey) -> [u8; 32] {
    let public = key.compute_public_key().expect("each private key has a public one");
    public.as_ref().try_into().expect("a public key of X25519 has 32 bytes")
}

/// snow's primitives, wiped, with the owner's randomness in place of the operating system's.
struct Resolver {
    primitives: Primitives,
    rng: RefCell<Rng>,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(NoiseRng(self.rng.borrow_mut().fork())))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| match self.primitives {
            Primitives::Real => Box::<Dh25519>::default() as Box<dyn Dh>,
            #[cfg(feature = "simulation")]
            Primitives::Toy => Box::<toy_handshake::ToyDh>::default(),
        })
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        #[cfg(feature = "simulation")]
        if matches!(self.primitives, Primitives::Toy) {
            return Some(Box::<toy_handshake::ToyHash>::default());
        }
        let hash = DefaultResolver.resolve_hash(choice)?;
        Some(Box::new(MaskedHash::new(hash, &mut self.rng.borrow_mut())))
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        #[cfg(feature = "simulation")]
        if matches!(self.primitives, Primitives::Toy) {
            return Some(Box::<toy_handshake::ToyCipher>::default());
        }
        Some(Box::new(WipedCipher(DefaultResolver.resolve_cipher(choice)?)))
    }
}

struct NoiseRng(Rng);

impl Random for NoiseRng {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        self.0.fill(out);
        Ok(())
    }
}

/// X25519 (RFC 7748), by the library that seals datagrams: `docs/decisions/0015-x25519.md`.
#[derive(Default)]
struct Dh25519 {
    private: Zeroizing<[u8; 32]>,
    /// The same as the library keeps it, which wipes it itself. None before a key is set.
    key: Option<agreement::PrivateKey>,
    public: [u8; 32],
}

impl Dh25519 {
    fn take_key(&mut self) {
        let key = x25519_key(&self.private);
        self.public = public_of(&key);
        self.key = Some(key);
    }
}

impl Dh for Dh25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.take_key();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), snow::Error> {
        rng.try_fill_bytes(&mut *self.private)?;
        #[cfg(test)]
        tests::fix_ephemeral(&mut self.private);
        tests_see(&*self.private);
        self.take_key();
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    /// # Errors
    ///
    /// `Dh` for a public key of small order, whose product with every private key is zero
    /// (RFC 7748, section 6.1), and before a private key is set.
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let key = self.key.as_ref().ok_or(snow::Error::Dh)?;
        let public = public.first_chunk::<32>().ok_or(snow::Error::Dh)?;
        let public = UnparsedPublicKey::new(&X25519, public);
        agreement::agree(key, public, snow::Error::Dh, |shared| {
            tests_see(shared);
            out[..32].copy_from_slice(shared);
            Ok(())
        })
    }
}

/// The hash, which gives its caller chaining keys under a mask and takes them so. What is dropped
/// with it is the mask, without which the caller's copies say nothing.
struct MaskedHash {
    hash: Box<dyn Hash>,
    mask: Zeroizing<[u8; 32]>,
    /// The chaining key that every handshake begins with. It is public and has no mask.
    first: [u8; 32],
}

impl Drop for MaskedHash {
    fn drop(&mut self) {
        self.hash.reset();
        black_box(&mut self.hash);
    }
}

impl MaskedHash {
    fn new(mut hash: Box<dyn Hash>, rng: &mut Rng) -> Self {
        let (mut mask, mut first) = (Zeroizing::new([0; 32]), [0; 32]);
        rng.fill(&mut *mask);
        hash.reset();
        hash.input(PROTOCOL.name.as_bytes());
        hash.result(&mut first);
        Self { hash, mask, first }
    }

    fn mask(&self, key: &mut [u8]) {
        key.iter_mut().zip(&*self.mask).for_each(|(byte, mask)| *byte ^= mask);
    }
}

impl Hash for MaskedHash {
    fn name(&self) -> &'static str {
        self.hash.name()
    }

    fn block_len(&self) -> usize {
        self.hash.block_len()
    }

    fn hash_len(&self) -> usize {
        self.hash.hash_len()
    }

    fn reset(&mut self) {
        self.hash.reset();
    }

    fn input(&mut self, data: &[u8]) {
        self.hash.input(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        self.hash.result(out);
    }

    fn hkdf(
        &mut self,
        chaining_key: &[u8],
        input: &[u8],
        outputs: usize,
        next_key: &mut [u8],
        second: &mut [u8],
        third: &mut [u8],
    ) {
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(chaining_key);
        if *key != self.first {
            self.mask(&mut *key);
        }
        self.hash.hkdf(&*key, input, outputs, next_key, second, third);
        for output in [&*next_key, &*second, &*third] {
            tests_see(output);
        }
        // Without input it is the split, whose first output is a result and no chaining key.
        if !input.is_empty() {
            self.mask(next_key);
        }
    }
}

/// A cipher whose key is overwritten when it is dropped.
struct WipedCipher(Box<dyn Cipher>);

impl Drop for WipedCipher {
    fn drop(&mut self) {
        self.0.set(&[0; 32]);
        black_box(&mut self.0);
    }
}

impl Cipher for WipedCipher {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0.set(key);
    }

    fn encrypt(&self, nonce: u64, ad: &[u8], text: &[u8], out: &mut [u8]) -> usize {
        self.0.encrypt(nonce, ad, text, out)
    }

    fn decrypt(
        &self,
        nonce: u64,
        ad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, snow::Error> {
        self.0.decrypt(nonce, ad, sealed, out)
    }
}

#[cfg(not(test))]
fn tests_see(_: &[u8]) {}

#[cfg(test)]
use tests::see as tests_see;

#[cfg(test)]
pub(super) mod tests;
