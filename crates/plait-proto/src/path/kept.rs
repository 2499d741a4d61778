//! Inner packets that were sent and may have to be sent again.

use core::num::NonZeroU32;

use crate::seq::{BondSeq, PathId};
use crate::time::Instant;
use crate::wire::sealed::{DataPrefix, SendTimestamp};

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

/// Where a packet is kept: as good as the packet, and small. There is one for each.
#[derive(Debug)]
pub(super) struct KeptSlot(NonZeroU32);

impl KeptSlot {
    fn index(&self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Keeps packets, in the buffers of those that were let go.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    slots: Vec<KeptPacket>,
    /// Slots without a packet; the first of them have a buffer.
    free: Vec<KeptSlot>,
    bytes: u64,
}

impl Keeper {
    pub(super) fn keep(
        &mut self,
        prefix: DataPrefix,
        taken_at: Instant,
        packet: &[u8],
    ) -> KeptSlot {
        self.bytes += packet.len() as u64;
        let slot = self.free.pop().unwrap_or_else(|| self.new_slot());
        let kept = self.get_mut(&slot);
        let mut bytes = core::mem::take(&mut kept.bytes);
        bytes.extend_from_slice(packet);
        *kept = KeptPacket { prefix, taken_at, bytes, sends: 1, pin: None };
        slot
    }

    fn new_slot(&mut self) -> KeptSlot {
        let prefix = DataPrefix { seq: BondSeq(0).truncate(), prev: 0, sent: SendTimestamp(0) };
        let (taken_at, bytes) = (Instant::ZERO, Vec::new());
        self.slots.push(KeptPacket { prefix, taken_at, bytes, sends: 0, pin: None });
        let count = u32::try_from(self.slots.len()).ok().and_then(NonZeroU32::new);
        KeptSlot(count.expect("what is on its way is bounded, and one was just added"))
    }

    pub(super) fn get(&self, slot: &KeptSlot) -> &KeptPacket {
        &self.slots[slot.index()]
    }

    pub(super) fn get_mut(&mut self, slot: &KeptSlot) -> &mut KeptPacket {
        &mut self.slots[slot.index()]
    }

    /// The packet arrived, or nobody waits for it any more.
    pub(super) fn let_go(&mut self, slot: KeptSlot) {
        let has_room = self.free.len() < SPARE_BUFFERS_MAX;
        let bytes = &mut self.slots[slot.index()].bytes;
        self.bytes -= bytes.len() as u64;
        if has_room {
            bytes.clear();
        } else {
            *bytes = Vec::new();
        }
        self.free.push(slot);
    }

    /// The packet is another's from now on.
    pub(super) fn hand_over(&mut self, slot: KeptSlot) -> KeptPacket {
        let KeptPacket { prefix, taken_at, ref mut bytes, sends, pin } = self.slots[slot.index()];
        let bytes = core::mem::take(bytes);
        self.bytes -= bytes.len() as u64;
        self.free.push(slot);
        KeptPacket { prefix, taken_at, bytes, sends, pin }
    }

    /// Bytes of the packets that are kept.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(keeper: &mut Keeper, packet: &[u8]) -> KeptSlot {
        let prefix = DataPrefix { seq: BondSeq(7).truncate(), prev: 1, sent: SendTimestamp(0) };
        keeper.keep(prefix, Instant::ZERO, packet)
    }

    #[test]
    fn slots_are_used_again_and_packets_stay_whole() {
        let mut keeper = Keeper::default();
        let [first, second] = [&[1; 100][..], &[2; 50]].map(|packet| keep(&mut keeper, packet));
        keeper.let_go(first);
        let third = keep(&mut keeper, &[3; 20]);
        assert_eq!(keeper.bytes(), 70);
        assert_eq!(keeper.slots.len(), 2, "the third is where the first was");
        assert_eq!(keeper.hand_over(third).bytes, [3; 20]);
        assert_eq!(keeper.get(&second).bytes, [2; 50]);
        assert_eq!(keeper.bytes(), 50);
    }

    #[test]
    fn buffers_held_for_later_are_bounded() {
        let mut keeper = Keeper::default();
        let slots: Vec<KeptSlot> = (0..1000).map(|_| keep(&mut keeper, &[0; 1400])).collect();
        slots.into_iter().for_each(|slot| keeper.let_go(slot));
        let held: usize = keeper.slots.iter().map(|kept| kept.bytes.capacity()).sum();
        assert!(held <= SPARE_BUFFERS_MAX * 1400, "{held}");
        assert_eq!(keeper.bytes(), 0);
    }
}
