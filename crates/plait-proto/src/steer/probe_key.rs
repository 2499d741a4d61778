//! What a probe carries, so that its answer is known: the attachment, and a mark that only the node
//! can make.
//!
//! Whoever sees a probe can send it back: that is the answer. The mark is of one probe of one
//! attachment. So what a client, or anyone on its way, sees of the probes to one attachment makes
//! no answer of another, and none to a probe that it has not seen.

use core::fmt;

use blake2::Blake2sMac;
use blake2::digest::consts::U16;
use blake2::digest::{FixedOutput as _, KeyInit as _, Update as _};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::AttachmentId;

const MARK_BYTES: usize = 16;
/// What a probe carries: mark, client, attachment.
pub const PROBE_BYTES: usize = MARK_BYTES + 2 + 1;

/// The node's key for the marks of its probes. Zeroed when dropped, never printed by `Debug`.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct ProbeKey([u8; 32]);

impl fmt::Debug for ProbeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProbeKey(..)")
    }
}

impl ProbeKey {
    /// The key with these bytes, which must be random outside tests.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What the probe `number` of an attachment carries. Attachments are numbered anew with each
    /// configuration: `generation` tells these apart.
    pub fn payload(&self, generation: u32, id: AttachmentId, number: u16) -> [u8; PROBE_BYTES] {
        let mut payload = [0; PROBE_BYTES];
        let (mark, place) = payload.split_at_mut(MARK_BYTES);
        let [high, low] = id.client.to_be_bytes();
        place.copy_from_slice(&[high, low, id.attachment]);
        let mut mac = Blake2sMac::<U16>::new_from_slice(&self.0)
            .expect("BLAKE2s takes keys of up to 32 bytes");
        mac.update(place);
        mac.update(&generation.to_be_bytes());
        mac.update(&number.to_be_bytes());
        mark.copy_from_slice(&mac.finalize_fixed());
        payload
    }

    /// The attachment whose probe `number` came back; `None` when the node did not send it.
    pub fn attachment(&self, generation: u32, number: u16, payload: &[u8]) -> Option<AttachmentId> {
        let [.., high, low, attachment] = *payload.first_chunk::<PROBE_BYTES>()?;
        let id = AttachmentId { client: u16::from_be_bytes([high, low]), attachment };
        let expected = self.payload(generation, id, number);
        let is_same = aws_lc_rs::constant_time::verify_slices_are_equal(&expected, payload);
        is_same.is_ok().then_some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: AttachmentId = AttachmentId { client: 300, attachment: 2 };

    #[test]
    fn an_answer_is_of_one_probe_of_one_attachment() {
        let key = ProbeKey::from_bytes([7; 32]);
        let payload = key.payload(4, ID, 9);
        assert_eq!(key.attachment(4, 9, &payload), Some(ID));
        assert_eq!(key.attachment(4, 10, &payload), None, "another probe");
        assert_eq!(key.attachment(5, 9, &payload), None, "another configuration");
        assert_eq!(ProbeKey::from_bytes([8; 32]).attachment(4, 9, &payload), None);
        for bit in 0..payload.len() * 8 {
            let mut forged = payload;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.attachment(4, 9, &forged), None, "bit {bit}");
        }
        for length in 0..payload.len() {
            assert_eq!(key.attachment(4, 9, &payload[..length]), None, "{length} bytes");
        }
        assert_eq!(key.attachment(4, 9, &[&payload[..], &[0]].concat()), None);
    }

    /// A client knows the probes to its own attachments, and may ask for as many as it likes.
    #[test]
    fn regression_probes_of_one_attachment_make_no_answer_of_another() {
        let key = ProbeKey::from_bytes([7; 32]);
        for other in [AttachmentId { attachment: 1, ..ID }, AttachmentId { client: 1, ..ID }] {
            for number in 0..100 {
                let mut forged = key.payload(4, ID, number);
                let place = key.payload(4, other, number);
                forged[MARK_BYTES..].copy_from_slice(&place[MARK_BYTES..]);
                assert_eq!(key.attachment(4, number, &forged), None, "{other:?}");
            }
        }
    }
}
