//! Secrets of sessions, for an owner that writes them down on purpose: with them a captured
//! conversation can be read (docs/spec/keylog.md).

use core::fmt;
use core::fmt::Write as _;

use zeroize::Zeroizing;

use super::handshake::Established;
use super::keys::{Cipher, DirectionSecret};
use crate::wire::handshake::SessionIndex;

/// One direction's secret of a session. Zeroed when dropped, never printed by `Debug`.
pub struct LoggedSecret {
    /// The receiver's index.
    session: SessionIndex,
    cipher: Cipher,
    secret: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for LoggedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoggedSecret(..)")
    }
}

impl LoggedSecret {
    /// Both directions of a session.
    pub(crate) fn of(established: &Established) -> [Self; 2] {
        let one = |session, secret: &DirectionSecret| Self {
            session,
            cipher: established.cipher,
            secret: secret.copy(),
        };
        [one(established.local, &established.receive), one(established.remote, &established.send)]
    }

    /// Its line in a key log; zeroed when dropped.
    pub fn line(&self) -> Zeroizing<String> {
        // Room for all at once: growing would leave copies behind.
        let mut line = Zeroizing::new(String::with_capacity(128));
        let index = self.session.wire() >> 8;
        // Writing to a string does not fail.
        let _ = write!(line, "PLAIT1_DIRECTION {index:06x} {} ", self.cipher as u8);
        for byte in self.secret.iter() {
            let _ = write!(line, "{byte:02x}");
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_index_cipher_and_secret() {
        let secret = LoggedSecret {
            session: SessionIndex::from_random(0xab_cdef).expect("it is not zero"),
            cipher: Cipher::ChaCha20Poly1305,
            secret: Zeroizing::new([0x5a; 32]),
        };
        let expected = format!("PLAIT1_DIRECTION abcdef 1 {}\n", "5a".repeat(32));
        assert_eq!(*secret.line(), expected);
        assert_eq!(format!("{secret:?}"), "LoggedSecret(..)");
    }
}
