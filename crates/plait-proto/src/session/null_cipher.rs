//! The null cipher of the simulator: everything has the length it has under an AEAD, and nothing is
//! hidden. Why it exists and why no gateway can come to use it:
//! `docs/decisions/0007-null-cipher.md`.

use super::keys::Unauthentic;
use crate::seq::PacketNumber;
use crate::wire::sealed::TAG_BYTES;

/// What takes the place of a path's key. Its tag tells session, path, direction and packet number
/// apart, as an AEAD's does; it says nothing of the contents.
pub(super) struct NullKey {
    /// The part of the tag that the key decides.
    mark: u64,
}

impl NullKey {
    /// The null key in place of the AEAD key that has these bytes.
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let (mark, _) = key.split_first_chunk().expect("a key has more bytes than a mark");
        Self { mark: u64::from_be_bytes(*mark) }
    }

    /// The tag of a datagram.
    pub(super) fn tag(&self, number: PacketNumber) -> [u8; TAG_BYTES] {
        let tag = u128::from(self.mark) << 64 | u128::from(number.0);
        tag.to_be_bytes()
    }

    /// Takes the text out of `sealed` (text, then tag) if the tag fits.
    pub(super) fn open<'a>(
        &self,
        number: PacketNumber,
        sealed: &'a mut [u8],
    ) -> Result<&'a mut [u8], Unauthentic> {
        match sealed.split_last_chunk_mut() {
            Some((text, tag)) if *tag == self.tag(number) => Ok(text),
            _ => Err(Unauthentic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_fits_one_key_and_one_number() {
        let (key, other) = (NullKey::new(&[1; 32]), NullKey::new(&[2; 32]));
        let mut sealed = b"text".to_vec();
        sealed.extend_from_slice(&key.tag(PacketNumber(7)));
        assert_eq!(key.open(PacketNumber(7), &mut sealed), Ok(&mut b"text".to_owned()[..]));
        assert_eq!(key.open(PacketNumber(8), &mut sealed), Err(Unauthentic));
        assert_eq!(other.open(PacketNumber(7), &mut sealed), Err(Unauthentic));
        assert_eq!(key.open(PacketNumber(7), &mut sealed[..15]), Err(Unauthentic));
    }
}
