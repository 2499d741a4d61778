//! Stage 5, seal: encrypts what is numbered. It needs a path's key and changes nothing of the path,
//! so that it can be done elsewhere.

use zeroize::Zeroize as _;

use super::number::Numbered;
use crate::seq::PathId;
use crate::session::{Cipher, DirectionSecret, PathKey};
use crate::time::{Duration, Instant};
use crate::wire::handshake::SessionIndex;

/// The session under which the ingress seals.
#[derive(Debug)]
pub struct SendSession {
    /// The peer's name for it.
    pub remote: SessionIndex,
    /// AEAD.
    pub cipher: Cipher,
    /// Secret of this direction.
    pub secret: DirectionSecret,
    /// When both sides made it.
    pub made_at: Instant,
}

impl SendSession {
    /// The key of one of its paths.
    pub(super) fn key_of(&self, path: PathId) -> PathKey {
        self.secret.path_key(self.cipher, path)
    }

    /// Whether it is too old to send under (spec K-6).
    pub(super) fn is_expired(&self, now: Instant, reject_after: Duration) -> bool {
        now >= self.made_at + reject_after
    }

    /// Wipes its secret.
    pub(super) fn forget(&mut self) {
        self.secret.zeroize();
    }
}

/// Puts a sealed datagram at the end of `out`; its plain text is `prefix`, then `body`.
pub(super) fn seal<const PREFIX_BYTES: usize>(
    key: &PathKey,
    numbered: &Numbered,
    prefix: &[u8; PREFIX_BYTES],
    body: &[u8],
    out: &mut Vec<u8>,
) {
    key.seal_datagram(numbered.number, numbered.header, prefix, body, out);
}
