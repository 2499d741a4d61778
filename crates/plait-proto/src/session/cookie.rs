//! Cookies: the proof that whoever sends a handshake message can receive at its address, asked for
//! under load (WireGuard paper §5.4.7; spec H-10).
//!
//! Given times, randomness and addresses, it makes and checks cookies and mac2. It does not know
//! when one is asked for.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use blake2::{Blake2s256, Blake2sMac, Digest as _};
use chacha20poly1305::aead::AeadInPlace as _;
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use super::keys::PublicKey;
use crate::drop_reason::DropReason;
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::wire::handshake::{
    COOKIE_BYTES, COOKIE_REPLY_BYTES, CookieReply, MAC_BYTES, SessionIndex,
};

const COOKIE_LABEL: &[u8] = b"plait 1 cookie";
/// A secret makes cookies for this long.
const SECRET_TIME: Duration = Duration::from_secs(120);
/// Cookies of a secret are accepted until it is this old: each is for [`Cookie::USE_TIME`] after it
/// was made, and a little longer for its way to the sender and back.
const ACCEPT_TIME: Duration = Duration::from_secs(245);

/// What an address gets, and whoever sends from there must show.
#[derive(Clone, Copy)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(..)")
    }
}

impl Cookie {
    #[cfg(test)]
    pub(super) const fn as_bytes(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }

    /// It may be shown for so long.
    pub const USE_TIME: Duration = Duration::from_secs(120);

    fn mac2(&self, before_mac2: &[u8]) -> [u8; MAC_BYTES] {
        keyed(&self.0, &[before_mac2])
    }

    /// Fills in a handshake message's mac2.
    pub fn write_mac2(&self, message: &mut [u8]) {
        let (before, mac2) = message.split_at_mut(message.len().saturating_sub(MAC_BYTES));
        mac2.copy_from_slice(&self.mac2(before));
    }

    /// The reply that brings a cookie to the sender of the message with this mac1, which chose the
    /// index `receiver`.
    pub fn seal(
        &self,
        rng: &mut Rng,
        own: &PublicKey,
        receiver: SessionIndex,
        mac1: &[u8],
    ) -> [u8; COOKIE_REPLY_BYTES] {
        let mut nonce = XNonce::default();
        rng.fill(&mut nonce);
        self.seal_with(&nonce, own, receiver, mac1)
    }

    pub(super) fn seal_with(
        &self,
        nonce: &XNonce,
        own: &PublicKey,
        receiver: SessionIndex,
        mac1: &[u8],
    ) -> [u8; COOKIE_REPLY_BYTES] {
        let mut reply = CookieReply::frame(receiver);
        reply[CookieReply::NONCE].copy_from_slice(nonce);
        let (cookie, tag) = reply[CookieReply::SEALED].split_at_mut(COOKIE_BYTES);
        cookie.copy_from_slice(&self.0);
        let made = cipher(own)
            .encrypt_in_place_detached(nonce, mac1, cookie)
            .expect("a cookie is shorter than the cipher's longest text");
        tag.copy_from_slice(&made);
        reply
    }

    /// The cookie in the reply of `peer` to this side's message with this mac1.
    ///
    /// # Errors
    /// [`DropReason::BadHandshake`] when it does not decrypt.
    pub fn open(
        reply: &[u8; COOKIE_REPLY_BYTES],
        peer: &PublicKey,
        mac1: &[u8],
    ) -> Result<Self, DropReason> {
        let nonce = XNonce::from_slice(&reply[CookieReply::NONCE]);
        let (sealed, tag) = reply[CookieReply::SEALED].split_at(COOKIE_BYTES);
        let mut cookie = [0; COOKIE_BYTES];
        cookie.copy_from_slice(sealed);
        cipher(peer)
            .decrypt_in_place_detached(nonce, mac1, &mut cookie, Tag::from_slice(tag))
            .map_err(|_| DropReason::BadHandshake)?;
        Ok(Self(cookie))
    }
}

/// The cipher of the cookies that the gateway with this key gives.
fn cipher(giver: &PublicKey) -> XChaCha20Poly1305 {
    let key = Blake2s256::new().chain_update(COOKIE_LABEL).chain_update(giver.as_bytes());
    XChaCha20Poly1305::new(&key.finalize())
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> [u8; MAC_BYTES] {
    let mut mac =
        Blake2sMac::<U16>::new_from_slice(key).expect("BLAKE2s takes keys of up to 32 bytes");
    for part in parts {
        mac.update(part);
    }
    mac.finalize_fixed().into()
}

struct Secret {
    /// In a box, so that moving it leaves no copy behind.
    key: Box<Zeroizing<[u8; 32]>>,
    made_at: Instant,
}

impl Secret {
    fn cookie(&self, source: SocketAddr) -> Cookie {
        let port = source.port().to_be_bytes();
        Cookie(match source.ip().to_canonical() {
            IpAddr::V4(ip) => keyed(&self.key[..], &[&ip.octets(), &port]),
            IpAddr::V6(ip) => keyed(&self.key[..], &[&ip.octets(), &port]),
        })
    }
}

/// What the cookies that this side gives are made from. No cookie is stored: each is a function of
/// a secret and the address.
#[derive(Default)]
pub struct CookieSecrets {
    current: Option<Secret>,
    previous: Option<Secret>,
}

impl fmt::Debug for CookieSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CookieSecrets(..)")
    }
}

impl CookieSecrets {
    /// Makes cookies from a known secret, for messages that are known byte by byte.
    #[cfg(test)]
    pub(super) fn fixed(key: [u8; 32]) -> Self {
        let key = Box::new(Zeroizing::new(key));
        Self { current: Some(Secret { key, made_at: Instant::ZERO }), previous: None }
    }

    /// The cookie of an address. Randomness is used for a new secret, when one is due.
    pub fn cookie(&mut self, now: Instant, rng: &mut Rng, source: SocketAddr) -> Cookie {
        if self.current.as_ref().is_none_or(|secret| now >= secret.made_at + SECRET_TIME) {
            let mut key = Box::new(Zeroizing::new([0; 32]));
            rng.fill(&mut key[..]);
            self.previous = self.current.take();
            self.current = Some(Secret { key, made_at: now });
        }
        let secret = self.current.as_ref().expect("a secret was made if there was none");
        secret.cookie(source)
    }

    /// Whether a message from this address, with all that precedes its mac2, shows a cookie given
    /// to this address.
    pub fn accept(
        &self,
        now: Instant,
        source: SocketAddr,
        before_mac2: &[u8],
        mac2: &[u8],
    ) -> bool {
        let secrets = self.current.iter().chain(&self.previous);
        let mut valid = secrets.filter(|secret| now < secret.made_at + ACCEPT_TIME);
        valid.any(|secret| {
            let expected = secret.cookie(source).mac2(before_mac2);
            aws_lc_rs::constant_time::verify_slices_are_equal(&expected, mac2).is_ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::PrivateKey;

    const MESSAGE: [u8; 40] = [7; 40];

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn with_mac2(cookie: &Cookie) -> Vec<u8> {
        let mut message = [&MESSAGE[..], &[0; MAC_BYTES]].concat();
        cookie.write_mac2(&mut message);
        message
    }

    fn accepts(secrets: &CookieSecrets, seconds: u64, source: &str, message: &[u8]) -> bool {
        let (before, mac2) = message.split_at(MESSAGE.len());
        secrets.accept(Instant::from_millis(seconds * 1000), address(source), before, mac2)
    }

    /// Spec H-10, H-6.
    #[test]
    fn a_cookie_is_of_one_address_and_port_and_covers_the_message() {
        let (mut rng, mut secrets) = (Rng::from_seed([1; 32]), CookieSecrets::default());
        for source in ["192.0.2.1:5", "[2001:db8::1]:5"] {
            let cookie = secrets.cookie(Instant::ZERO, &mut rng, address(source));
            let message = with_mac2(&cookie);
            assert!(accepts(&secrets, 1, source, &message));
            for other in ["192.0.2.1:6", "192.0.2.2:5", "[2001:db8::2]:5", "[2001:db8::1]:6"] {
                assert!(!accepts(&secrets, 1, other, &message), "{source} for {other}");
            }
            let mut changed = message.clone();
            changed[3] ^= 1;
            assert!(!accepts(&secrets, 1, source, &changed));
        }
    }

    #[test]
    fn an_address_is_the_same_however_the_socket_writes_it() {
        let (mut rng, mut secrets) = (Rng::from_seed([1; 32]), CookieSecrets::default());
        let cookie = secrets.cookie(Instant::ZERO, &mut rng, address("[::ffff:192.0.2.1]:5"));
        assert!(accepts(&secrets, 1, "192.0.2.1:5", &with_mac2(&cookie)));
    }

    /// Spec H-10: accepted until its secret is 245 s old.
    #[test]
    fn a_cookie_is_good_for_its_time_whenever_it_was_given() {
        let source = "192.0.2.1:5";
        for given in [0, 1, 119] {
            let (mut rng, mut secrets) = (Rng::from_seed([1; 32]), CookieSecrets::default());
            secrets.cookie(Instant::ZERO, &mut rng, address(source));
            let given_at = Instant::from_millis(given * 1000);
            let message = with_mac2(&secrets.cookie(given_at, &mut rng, address(source)));
            let used_until = given + Cookie::USE_TIME.as_secs();
            // Another sender makes the secret be renewed, at the worst time.
            secrets.cookie(Instant::from_millis(121_000), &mut rng, address("192.0.2.9:9"));
            assert!(accepts(&secrets, used_until, source, &message), "given at {given} s");
            assert!(!accepts(&secrets, 246, source, &message), "given at {given} s");
        }
    }

    #[test]
    fn two_renewals_forget_a_secret() {
        let (mut rng, mut secrets) = (Rng::from_seed([1; 32]), CookieSecrets::default());
        let source = address("192.0.2.1:5");
        let message = with_mac2(&secrets.cookie(Instant::ZERO, &mut rng, source));
        for seconds in [120, 240] {
            secrets.cookie(Instant::from_millis(seconds * 1000), &mut rng, source);
        }
        assert!(!accepts(&secrets, 241, "192.0.2.1:5", &message));
    }

    /// Spec H-10.
    #[test]
    fn a_reply_is_of_one_giver_and_answers_one_message() {
        let mut rng = Rng::from_seed([1; 32]);
        let [giver, other] = [1, 2].map(|byte| PrivateKey::from_bytes([byte; 32]).public_key());
        let index = SessionIndex::from_random(0x0a_0b0c).unwrap();
        let cookie = Cookie([9; COOKIE_BYTES]);
        let reply = cookie.seal(&mut rng, &giver, index, &[5; 16]);
        assert_eq!(reply[..5], [0x13, 0x0a, 0x0b, 0x0c, 0]);
        assert_eq!(Cookie::open(&reply, &giver, &[5; 16]).unwrap().0, cookie.0);
        assert!(Cookie::open(&reply, &other, &[5; 16]).is_err(), "another giver");
        assert!(Cookie::open(&reply, &giver, &[6; 16]).is_err(), "another message");
        for bit in 5 * 8..reply.len() * 8 {
            let mut flipped = reply;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Cookie::open(&flipped, &giver, &[5; 16]).is_err(), "bit {bit}");
        }
    }
}
