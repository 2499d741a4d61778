//! Identities, the AEAD and the keys of paths.

use core::fmt;
use core::str::FromStr;

use aws_lc_rs::aead::{
    AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use blake2::Blake2sMac;
use blake2::digest::consts::U32;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::noise;
#[cfg(feature = "simulation")]
use super::null_cipher::NullKey;
use crate::seq::{PacketNumber, PathId};
use crate::wipe::on_wiped_stack;
use crate::wire::sealed::{Header, TAG_BYTES};

/// More than deriving a path's key uses.
const STACK_BYTES: usize = 8 << 10;

/// A key's text is not 32 bytes in base64.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a key: expected 32 bytes in base64 (44 characters ending in '=')")]
pub struct KeyError;

fn key_from_base64(text: &str) -> Result<Zeroizing<[u8; 32]>, KeyError> {
    let bytes = Zeroizing::new(BASE64.decode(text.trim()).map_err(|_| KeyError)?);
    let mut key = Zeroizing::new([0; 32]);
    if bytes.len() != key.len() {
        return Err(KeyError);
    }
    key.copy_from_slice(&bytes);
    Ok(key)
}

/// Public keys of small order, whose product with every private key is zero (RFC 7748, section
/// 6.1): 0 and 1, the two of order 8, and -1, 0 and 1 of the field again, written with its modulus.
const SMALL_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    edge(1, 0, 0),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57,
    ],
    edge(0xec, 0xff, 0x7f),
    edge(0xed, 0xff, 0x7f),
    edge(0xee, 0xff, 0x7f),
];

const fn edge(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

/// A gateway's identity as others know it: an X25519 public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key's bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether a handshake with its owner is possible: no private key has such a public key
    /// otherwise. Who takes keys from people asks before an endpoint is given one.
    pub fn can_agree(&self) -> bool {
        let mut plain = self.0;
        // The highest bit says nothing (RFC 7748, section 5).
        plain[31] &= 0x7f;
        !SMALL_ORDER.contains(&plain)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        key_from_base64(text).map(|key| Self(*key))
    }
}

macro_rules! secret_key {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The key with these bytes.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// Reads base64.
            ///
            /// # Errors
            /// When the text is not 32 bytes in base64.
            pub fn from_base64(text: &str) -> Result<Self, KeyError> {
                key_from_base64(text).map(|key| Self(*key))
            }

            /// The key in base64; zeroed when dropped.
            pub fn to_base64(&self) -> Zeroizing<String> {
                Zeroizing::new(BASE64.encode(self.0))
            }

            pub(super) const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(..)"))
            }
        }
    };
}

secret_key! {
    /// A gateway's X25519 private key. Zeroed when dropped, never printed by `Debug`.
    PrivateKey
}

secret_key! {
    /// A symmetric key that both gateways mix into the handshake (Noise psk2); all zero for none.
    PresharedKey
}

impl PresharedKey {
    /// Whether both are the same secret. For two of the owner's own: it takes no care to run for
    /// the same time whatever the keys.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl PrivateKey {
    /// The public key that belongs to this private key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(noise::public_key(&self.0))
    }
}

/// The AEAD of a session (spec K-3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cipher {
    /// AES-256-GCM, when both CPUs do AES in hardware.
    Aes256Gcm,
    /// ChaCha20-Poly1305 otherwise.
    ChaCha20Poly1305,
    /// No cipher, between two gateways of the simulator.
    #[cfg(feature = "simulation")]
    Null,
}

impl Cipher {
    /// The name in `status`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "AES-256-GCM",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            #[cfg(feature = "simulation")]
            Self::Null => "none (simulation)",
        }
    }

    /// Whether this machine does AES-GCM in hardware.
    pub fn aes_is_fast() -> bool {
        #[cfg(target_arch = "x86_64")]
        return std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        return std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        return false;
    }
}

/// One direction's key of one path in one epoch.
pub struct PathKey(Sealing);

enum Sealing {
    Aead(LessSafeKey),
    #[cfg(feature = "simulation")]
    Null(NullKey),
}

impl fmt::Debug for PathKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PathKey(..)")
    }
}

/// The datagram does not authenticate under the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unauthentic;

impl PathKey {
    /// Puts a sealed datagram at the end of `out`: header, then `prefix` and `body` encrypted, then
    /// the tag (spec W-2).
    pub fn seal_datagram(
        &self,
        number: PacketNumber,
        header: Header,
        prefix: &[u8],
        body: &[u8],
        out: &mut Vec<u8>,
    ) {
        let header = header.to_bytes();
        out.extend_from_slice(&header);
        let text_at = out.len();
        out.extend_from_slice(prefix);
        out.extend_from_slice(body);
        let tag = self.seal(number, &header, &mut out[text_at..]);
        out.extend_from_slice(&tag);
    }

    /// Encrypts `text` in place and returns the tag.
    pub fn seal(&self, number: PacketNumber, aad: &[u8], text: &mut [u8]) -> [u8; TAG_BYTES] {
        match &self.0 {
            Sealing::Aead(key) => {
                let tag = key
                    .seal_in_place_separate_tag(nonce(number), Aad::from(aad), text)
                    .expect("a datagram is far below the AEAD's length limit");
                let mut bytes = [0; TAG_BYTES];
                bytes.copy_from_slice(tag.as_ref());
                bytes
            }
            #[cfg(feature = "simulation")]
            Sealing::Null(key) => key.tag(number),
        }
    }

    /// Decrypts `sealed` (ciphertext, then tag) in place and returns the plain text.
    pub fn open<'a>(
        &self,
        number: PacketNumber,
        aad: &[u8],
        sealed: &'a mut [u8],
    ) -> Result<&'a mut [u8], Unauthentic> {
        match &self.0 {
            Sealing::Aead(key) => {
                key.open_in_place(nonce(number), Aad::from(aad), sealed).map_err(|_| Unauthentic)
            }
            #[cfg(feature = "simulation")]
            Sealing::Null(key) => key.open(number, sealed),
        }
    }
}

/// Four zero bytes, then the packet number (spec K-4).
fn nonce(number: PacketNumber) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.0.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// One direction's secret of a session, from which the path keys are derived. Zeroed when dropped;
/// in a box, so that moving it leaves no copy behind.
pub struct DirectionSecret(Box<Zeroizing<[u8; 32]>>);

impl fmt::Debug for DirectionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectionSecret(..)")
    }
}

impl Zeroize for DirectionSecret {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for DirectionSecret {}

impl DirectionSecret {
    /// One half of the handshake's raw split.
    pub(super) fn from_split(half: &[u8; 32]) -> Self {
        let mut secret = Box::new(Zeroizing::new([0; 32]));
        secret.copy_from_slice(half);
        Self(secret)
    }

    /// The path's key (spec K-2): BLAKE2s, keyed with this direction's half of the split, over a
    /// label, the cipher and the path id. The split is the epoch's own, so the epoch needs no
    /// number here.
    pub fn path_key(&self, cipher: Cipher, path: PathId) -> PathKey {
        on_wiped_stack::<STACK_BYTES, _>(|| {
            let key = self.path_key_bytes(cipher, path);
            PathKey(match cipher {
                Cipher::Aes256Gcm => aead(&AES_256_GCM, &key),
                Cipher::ChaCha20Poly1305 => aead(&CHACHA20_POLY1305, &key),
                #[cfg(feature = "simulation")]
                Cipher::Null => Sealing::Null(NullKey::new(&key)),
            })
        })
    }

    pub(super) fn path_key_bytes(&self, cipher: Cipher, path: PathId) -> Zeroizing<[u8; 32]> {
        let mut mac = Blake2sMac::<U32>::new_from_slice(&self.0[..])
            .expect("BLAKE2s takes keys of up to 32 bytes");
        mac.update(b"plait 1 path key");
        mac.update(&[cipher as u8, path.0]);
        let mut key = Zeroizing::new([0; 32]);
        key.copy_from_slice(&mac.finalize_fixed());
        key
    }

    /// Another copy of it, for a log of keys.
    pub(super) fn copy(&self) -> Zeroizing<[u8; 32]> {
        let mut copy = Zeroizing::new([0; 32]);
        copy.copy_from_slice(&self.0[..]);
        copy
    }

    #[cfg(test)]
    pub(super) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

fn aead(algorithm: &'static Algorithm, key: &[u8; 32]) -> Sealing {
    let key = UnboundKey::new(algorithm, key).expect("both ciphers take keys of 32 bytes");
    Sealing::Aead(LessSafeKey::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_round_trip_and_refusal() {
        let private = PrivateKey::from_bytes([7; 32]);
        let public = private.public_key();
        assert_eq!(public.to_string().parse(), Ok(public));
        assert!("short".parse::<PublicKey>().is_err());
        assert!(BASE64.encode([0; 31]).parse::<PublicKey>().is_err());
    }

    #[test]
    fn nothing_is_agreed_with_keys_of_small_order_and_with_all_others() {
        for mut key in SMALL_ORDER {
            for bit in [0, 0x80] {
                key[31] ^= bit;
                assert!(!PublicKey::from_bytes(key).can_agree(), "{key:?}");
                assert!(!noise::agrees(&key), "{key:?}");
            }
        }
        for seed in 1..=255 {
            let key = PublicKey::from_bytes([seed; 32]);
            assert!(key.can_agree() && noise::agrees(key.as_bytes()), "{key}");
        }
    }

    /// RFC 7748 §6.1: Alice's key pair.
    #[test]
    fn public_key_of_rfc_7748() {
        let private = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
        let public = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        let private = PrivateKey::from_base64(private).expect("a key");
        assert_eq!(private.public_key().to_string(), public);
    }

    /// Spec K-2, K-4: the key by path and cipher, the nonce by number, the clear part with it.
    #[test]
    fn keys_differ_by_path_and_cipher() {
        let secret = DirectionSecret::from_split(&[1; 32]);
        let mut sealed = [0_u8; 8 + TAG_BYTES];
        let tag = secret.path_key(Cipher::ChaCha20Poly1305, PathId(0)).seal(
            PacketNumber(1),
            b"head",
            &mut sealed[..8],
        );
        sealed[8..].copy_from_slice(&tag);
        let open = |cipher, path, number, aad: &[u8]| {
            secret.path_key(cipher, path).open(number, aad, &mut sealed.clone()).is_ok()
        };
        let chacha = Cipher::ChaCha20Poly1305;
        assert!(open(chacha, PathId(0), PacketNumber(1), b"head"));
        assert!(!open(chacha, PathId(1), PacketNumber(1), b"head"));
        assert!(!open(chacha, PathId(0), PacketNumber(2), b"head"));
        assert!(!open(chacha, PathId(0), PacketNumber(1), b"hear"));
        assert!(!open(Cipher::Aes256Gcm, PathId(0), PacketNumber(1), b"head"));
    }
}
