//! Copies of waiting packets, in buffers that are used again.

use crate::time::Instant;

/// Buffers kept for reuse hold at most this much together.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) seq: u64,
    pub(super) arrival: Instant,
    /// The next packet that waits for the same predecessor.
    pub(super) next_waiter: Option<u32>,
    pub(super) packet: Vec<u8>,
}

/// Entries by id; freed ids are given out again, their buffers with them.
#[derive(Debug, Default)]
pub(super) struct Store {
    entries: Vec<Entry>,
    free: Vec<u32>,
    bytes: u64,
    spare_bytes: usize,
}

impl Store {
    pub(super) fn packets(&self) -> u64 {
        (self.entries.len() - self.free.len()) as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn get(&self, id: u32) -> &Entry {
        &self.entries[id as usize]
    }

    pub(super) fn insert(
        &mut self,
        seq: u64,
        arrival: Instant,
        next_waiter: Option<u32>,
        packet: &[u8],
    ) -> u32 {
        self.bytes += packet.len() as u64;
        if let Some(id) = self.free.pop() {
            let entry = &mut self.entries[id as usize];
            self.spare_bytes -= entry.packet.capacity();
            entry.packet.clear();
            entry.packet.extend_from_slice(packet);
            (entry.seq, entry.arrival, entry.next_waiter) = (seq, arrival, next_waiter);
            return id;
        }
        let id = u32::try_from(self.entries.len()).expect("the ring bounds the entries to 2^16");
        self.entries.push(Entry { seq, arrival, next_waiter, packet: packet.to_vec() });
        id
    }

    pub(super) fn remove(&mut self, id: u32) {
        let packet = &mut self.entries[id as usize].packet;
        self.bytes -= packet.len() as u64;
        if self.spare_bytes + packet.capacity() > SPARE_BYTES_MAX {
            *packet = Vec::new();
        }
        self.spare_bytes += packet.capacity();
        self.free.push(id);
    }
}
