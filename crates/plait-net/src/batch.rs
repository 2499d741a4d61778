//! Many packets in one contiguous arena, reused from read to read.

/// IP packets in the order they came, stored back to back. Clearing keeps the memory, so a batch
/// that has seen its largest load allocates no more.
#[derive(Clone, Debug, Default)]
pub struct PacketBatch {
    arena: Vec<u8>,
    /// End of each packet in `arena`; a packet starts where the one before it ends.
    ends: Vec<usize>,
}

impl PacketBatch {
    /// An empty batch without memory of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the packets and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.ends.clear();
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no packet.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all packets together.
    pub fn total_bytes(&self) -> usize {
        self.arena.len()
    }

    /// Appends a copy of `packet`.
    pub fn push(&mut self, packet: &[u8]) {
        self.push_parts(packet, &[]);
    }

    /// Appends the packet `header` followed by `payload` and returns it for finishing touches.
    pub fn push_parts(&mut self, header: &[u8], payload: &[u8]) -> &mut [u8] {
        let start = self.arena.len();
        self.arena.extend_from_slice(header);
        self.arena.extend_from_slice(payload);
        self.ends.push(self.arena.len());
        &mut self.arena[start..]
    }

    /// Packet `index`, counted from zero.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        Some(&self.arena[self.start(index)..end])
    }

    /// Packet `index` for changes in place; its length stays.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut [u8]> {
        let end = *self.ends.get(index)?;
        let start = self.start(index);
        Some(&mut self.arena[start..end])
    }

    /// The packets in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        (0..self.ends.len()).map(|index| &self.arena[self.start(index)..self.ends[index]])
    }

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_in_order_and_memory_stays() {
        let mut batch = PacketBatch::new();
        batch.push(b"first");
        batch.push(b"");
        batch.push_parts(b"th", b"ird")[0] = b'T';
        assert_eq!(batch.iter().collect::<Vec<_>>(), [&b"first"[..], b"", b"Third"]);
        assert_eq!(batch.get(2), Some(&b"Third"[..]));
        assert_eq!(batch.get(3), None);
        assert_eq!((batch.len(), batch.total_bytes()), (3, 10));
        batch.get_mut(0).unwrap()[4] = b'!';
        assert_eq!(batch.get(0), Some(&b"firs!"[..]));

        let capacity = batch.arena.capacity();
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.arena.capacity(), capacity);
    }
}
