//! Inner packets that were sent and may have to be sent again.

use crate::seq::PathId;
use crate::time::Instant;
use crate::wire::sealed::DataPrefix;

/// Empty buffers held for the next packets; what is beyond goes back to the allocator.
const SPARE_BUFFERS_MAX: usize = 256;

/// An inner packet in plain text with its place in the bond's sequence.
#[derive(Debug)]
pub struct KeptPacket {
    /// Sequence number and predecessor; the send timestamp is of no use any more.
    pub prefix: DataPrefix,
    /// When it was taken from the host.
    pub taken_at: Instant,
    /// The packet.
    pub bytes: Vec<u8>,
    /// How often it was sent.
    pub sends: u8,
    /// The only path that its flow may take, if there is one.
    pub pin: Option<PathId>,
}

impl KeptPacket {
    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no packet is empty")]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Makes kept packets out of the buffers of those that were let go.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    spare: Vec<Vec<u8>>,
    bytes: u64,
}

impl Keeper {
    pub(super) fn keep(
        &mut self,
        prefix: DataPrefix,
        taken_at: Instant,
        packet: &[u8],
    ) -> KeptPacket {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(packet);
        self.bytes += packet.len() as u64;
        KeptPacket { prefix, taken_at, bytes, sends: 1, pin: None }
    }

    /// The packet arrived, or nobody waits for it any more.
    pub(super) fn let_go(&mut self, kept: KeptPacket) {
        self.bytes -= kept.bytes.len() as u64;
        if self.spare.len() < SPARE_BUFFERS_MAX {
            let mut bytes = kept.bytes;
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// The packet is another's from now on.
    pub(super) fn hand_over(&mut self, kept: KeptPacket) -> KeptPacket {
        self.bytes -= kept.bytes.len() as u64;
        kept
    }

    /// Bytes of the packets that are kept.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
