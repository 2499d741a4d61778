//! Layout of the handshake messages (spec H-1 to H-3, H-10).

use core::ops::Range;

use super::{Kind, first_byte};

/// Length of each mac.
pub const MAC_BYTES: usize = 16;
/// Encrypted content of an initiation: timestamp and hello.
pub const INITIATION_PAYLOAD_BYTES: usize = 23;
/// Encrypted content of a response: the responder's index once more, and hello.
pub const RESPONSE_PAYLOAD_BYTES: usize = 15;
/// Length of an initiation.
pub const INITIATION_BYTES: usize = Initiation::MAC1.end + MAC_BYTES;
/// Length of a response.
pub const RESPONSE_BYTES: usize = Response::MAC1.end + MAC_BYTES;
/// Length of a cookie.
pub const COOKIE_BYTES: usize = 16;
/// Length of a cookie reply.
pub const COOKIE_REPLY_BYTES: usize = CookieReply::SEALED.end;

const NOISE_KEY_BYTES: usize = 32;
const NOISE_TAG_BYTES: usize = 16;

/// Names a session at the side that chose it: 24 bits. With a path id in the low eight bits it is
/// the receiver index of a sealed datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionIndex(u32);

impl SessionIndex {
    /// The index made of the low 24 bits of a random number; `None` for zero, which names nothing.
    pub const fn from_random(random: u64) -> Option<Self> {
        let index = (random as u32) & 0x00ff_ffff;
        if index == 0 { None } else { Some(Self(index)) }
    }

    /// The session part of a receiver index.
    pub const fn from_receiver_index(index: u32) -> Self {
        Self(index >> 8)
    }

    /// The index as it travels in handshakes: in the high 24 bits, the low eight zero.
    pub const fn wire(self) -> u32 {
        self.0 << 8
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let wire = u32::from_be_bytes(bytes.try_into().ok()?);
        if wire & 0xff != 0 { None } else { Self::from_random(u64::from(wire >> 8)) }
    }
}

/// Message one: first byte, sender index, noise, mac1, mac2.
#[derive(Debug)]
pub struct Initiation;

impl Initiation {
    const SENDER: Range<usize> = 1..5;
    /// The Noise message: e, s, payload.
    pub const NOISE: Range<usize> = 5..5
        + NOISE_KEY_BYTES
        + NOISE_KEY_BYTES
        + NOISE_TAG_BYTES
        + INITIATION_PAYLOAD_BYTES
        + NOISE_TAG_BYTES;
    /// mac1, over all before it.
    pub const MAC1: Range<usize> = Self::NOISE.end..Self::NOISE.end + MAC_BYTES;

    /// A message with its cleartext parts filled in.
    pub fn frame(sender: SessionIndex) -> [u8; INITIATION_BYTES] {
        let mut message = [0; INITIATION_BYTES];
        message[0] = first_byte(Kind::Initiation);
        message[Self::SENDER].copy_from_slice(&sender.wire().to_be_bytes());
        message
    }

    /// The initiator's index.
    pub fn sender(message: &[u8; INITIATION_BYTES]) -> Option<SessionIndex> {
        SessionIndex::read(&message[Self::SENDER])
    }
}

/// Message two: first byte, receiver index, sender index, noise, mac1, mac2.
#[derive(Debug)]
pub struct Response;

impl Response {
    const RECEIVER: Range<usize> = 1..5;
    const SENDER: Range<usize> = 5..9;
    /// The Noise message: e, payload.
    pub const NOISE: Range<usize> =
        9..9 + NOISE_KEY_BYTES + RESPONSE_PAYLOAD_BYTES + NOISE_TAG_BYTES;
    /// mac1, over all before it.
    pub const MAC1: Range<usize> = Self::NOISE.end..Self::NOISE.end + MAC_BYTES;

    /// A message with its cleartext parts filled in.
    pub fn frame(sender: SessionIndex, receiver: SessionIndex) -> [u8; RESPONSE_BYTES] {
        let mut message = [0; RESPONSE_BYTES];
        message[0] = first_byte(Kind::Response);
        message[Self::RECEIVER].copy_from_slice(&receiver.wire().to_be_bytes());
        message[Self::SENDER].copy_from_slice(&sender.wire().to_be_bytes());
        message
    }

    /// A message that makes no session, with its cleartext parts filled in: no index stands where
    /// the responder's would (spec H-12).
    pub fn refusal(receiver: SessionIndex) -> [u8; RESPONSE_BYTES] {
        let mut message = [0; RESPONSE_BYTES];
        message[0] = first_byte(Kind::Response);
        message[Self::RECEIVER].copy_from_slice(&receiver.wire().to_be_bytes());
        message
    }

    /// The initiator's index, to which the response is addressed.
    pub fn receiver(message: &[u8; RESPONSE_BYTES]) -> Option<SessionIndex> {
        SessionIndex::read(&message[Self::RECEIVER])
    }

    /// The responder's index.
    pub fn sender(message: &[u8; RESPONSE_BYTES]) -> Option<SessionIndex> {
        SessionIndex::read(&message[Self::SENDER])
    }
}

/// The answer to a handshake message under load: first byte, receiver index, nonce, sealed cookie.
#[derive(Debug)]
pub struct CookieReply;

impl CookieReply {
    const RECEIVER: Range<usize> = 1..5;
    /// Nonce of XChaCha20-Poly1305.
    pub const NONCE: Range<usize> = 5..29;
    /// The cookie, encrypted, and its tag.
    pub const SEALED: Range<usize> = 29..29 + COOKIE_BYTES + NOISE_TAG_BYTES;

    /// A message with its cleartext parts filled in; all but the nonce and the cookie.
    pub fn frame(receiver: SessionIndex) -> [u8; COOKIE_REPLY_BYTES] {
        let mut message = [0; COOKIE_REPLY_BYTES];
        message[0] = first_byte(Kind::CookieReply);
        message[Self::RECEIVER].copy_from_slice(&receiver.wire().to_be_bytes());
        message
    }

    /// The index that the sender of the answered message chose.
    pub fn receiver(message: &[u8; COOKIE_REPLY_BYTES]) -> Option<SessionIndex> {
        SessionIndex::read(&message[Self::RECEIVER])
    }
}
