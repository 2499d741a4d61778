//! The packets of all flows in one place: chains through one list of slots, and buffers that are
//! used again, so that nothing is allocated once the queue has had its usual length.

use super::Queued;

/// Buffers kept for later.
const SPARE_BUFFERS_MAX: usize = 1024;

/// A place in the store.
type SlotId = u32;

#[derive(Debug)]
struct Slot {
    /// `None` while the slot is free.
    packet: Option<Queued>,
    /// The next slot of the chain, or the next free one.
    next: Option<SlotId>,
}

/// The packets of one flow, in the order in which they came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chain {
    first: Option<SlotId>,
    last: Option<SlotId>,
    packets: u32,
    bytes: u64,
}

impl Chain {
    pub(super) const fn packets(&self) -> u32 {
        self.packets
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Slots and buffers.
#[derive(Debug, Default)]
pub(super) struct Store {
    slots: Vec<Slot>,
    free: Option<SlotId>,
    spare: Vec<Vec<u8>>,
}

impl Store {
    pub(super) fn push_back(&mut self, chain: &mut Chain, packet: Queued) {
        chain.packets += 1;
        chain.bytes += packet.bytes.len() as u64;
        let id = self.fill(packet, None);
        match chain.last.replace(id) {
            Some(last) => self.slots[last as usize].next = Some(id),
            None => chain.first = Some(id),
        }
    }

    pub(super) fn push_front(&mut self, chain: &mut Chain, packet: Queued) {
        chain.packets += 1;
        chain.bytes += packet.bytes.len() as u64;
        let id = self.fill(packet, chain.first);
        chain.first = Some(id);
        chain.last.get_or_insert(id);
    }

    pub(super) fn pop_front(&mut self, chain: &mut Chain) -> Option<Queued> {
        let id = chain.first?;
        let slot = &mut self.slots[id as usize];
        let packet = slot.packet.take().expect("a slot in a chain holds a packet");
        chain.first = core::mem::replace(&mut slot.next, self.free);
        if chain.first.is_none() {
            chain.last = None;
        }
        self.free = Some(id);
        chain.packets -= 1;
        chain.bytes -= packet.bytes.len() as u64;
        Some(packet)
    }

    fn fill(&mut self, packet: Queued, next: Option<SlotId>) -> SlotId {
        let slot = Slot { packet: Some(packet), next };
        match self.free {
            Some(id) => {
                let before = core::mem::replace(&mut self.slots[id as usize], slot);
                self.free = before.next;
                id
            }
            None => {
                self.slots.push(slot);
                SlotId::try_from(self.slots.len() - 1).expect("the queue's packets are limited")
            }
        }
    }

    /// A buffer with a copy of `packet`.
    pub(super) fn copy(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.extend_from_slice(packet);
        buffer
    }

    /// Takes a buffer back.
    pub(super) fn recycle(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    #[cfg(test)]
    pub(super) fn spare(&self) -> usize {
        self.spare.len()
    }
}
