//! How much the sender holds, in the subflows and in all, as Linux limits it: buffers that grow
//! with the congestion windows and count the kernel's own overhead.

use plait_proto::units::Rate;

/// `tcp_wmem` of the lab's hosts: the least, at first, and the most.
const BYTES_MIN: u64 = 4096;
const BYTES_FIRST: u64 = 131_072;
const BYTES_MAX: u64 = 16 << 20;
/// `tcp_sndbuf_expand`: what it allows for a segment of an Ethernet, its buffer rounded up to a
/// power of two and the descriptor.
const PER_SEGMENT_BYTES: u64 = 4096 + 256;
/// It allows twice the window, and ten segments at least.
const WINDOWS: u64 = 2;
const SEGMENTS_MIN: u64 = 10;
/// What a buffer costs besides its data: descriptor, headroom and trailer.
const OVERHEAD_BYTES: u64 = 1280;
/// The most data in one buffer (GSO).
const CHUNK_BYTES_MAX: u64 = 65_428;
/// What is sent in one buffer: a millisecond at the pacing rate, two segments at least
/// (`tcp_tso_autosize`).
const CHUNKS_PER_SECOND_SHIFT: u32 = 10;
const CHUNK_SEGMENTS_MIN: u64 = 2;

/// A subflow's send buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SubflowBuffer {
    bytes: u64,
}

impl Default for SubflowBuffer {
    fn default() -> Self {
        Self { bytes: BYTES_FIRST }
    }
}

impl SubflowBuffer {
    /// Its size.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Grows with the window, unless that is full: then the buffer holds enough
    /// (`tcp_should_expand_sndbuf`).
    pub(super) fn grow(&mut self, in_flight_bytes: u64, window_bytes: u64, segment_bytes: u64) {
        if in_flight_bytes + segment_bytes > window_bytes {
            return;
        }
        let segments = (window_bytes / segment_bytes).max(SEGMENTS_MIN);
        let wanted = WINDOWS * segments * PER_SEGMENT_BYTES;
        self.bytes = self.bytes.max(wanted.min(BYTES_MAX));
    }
}

/// What data of a subflow costs in its buffer (`sk_wmem_queued`): what was sent lies in the pieces
/// in which it was sent, the rest in large ones.
pub(super) fn memory_bytes(sent: u64, unsent: u64, pacing_rate: Rate, segment_bytes: u64) -> u64 {
    let per_piece = (pacing_rate.bits_per_second() / 8) >> CHUNKS_PER_SECOND_SHIFT;
    let segments = (per_piece / segment_bytes).max(CHUNK_SEGMENTS_MIN);
    let piece = (segments * segment_bytes).min(CHUNK_BYTES_MAX);
    let pieces = sent.div_ceil(piece) + unsent.div_ceil(CHUNK_BYTES_MAX);
    sent + unsent + pieces * OVERHEAD_BYTES
}

/// The connection's send buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendBuffer {
    /// Its size, if that is set.
    fixed: Option<u64>,
}

impl SendBuffer {
    pub(super) fn new(fixed: Option<u64>) -> Self {
        Self { fixed }
    }

    /// Up to where the application fills it now, if it writes at all: it is woken when a third is
    /// free (`sk_stream_is_writeable`). Without a size of its own it is as large as the subflows'
    /// together.
    pub(super) fn fill(&self, held: u64, subflows: impl Iterator<Item = u64>) -> Option<u64> {
        let bytes = self.fixed.unwrap_or_else(|| BYTES_MIN + subflows.sum::<u64>());
        (held <= bytes - bytes / 3).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_while_the_window_is_not_full() {
        let mut buffer = SubflowBuffer::default();
        buffer.grow(99_000, 100_000, 1424);
        assert_eq!(buffer.bytes(), 131_072, "the window is full");
        buffer.grow(50_000, 100_000, 1000);
        assert_eq!(buffer.bytes(), 2 * 100 * 4352);
        buffer.grow(0, 1 << 30, 1000);
        assert_eq!(buffer.bytes(), 16 << 20);
    }

    #[test]
    fn what_was_sent_in_small_pieces_costs_more() {
        // 82 Mbit/s: 10 kB a millisecond, seven segments.
        let rate = Rate::from_bits_per_second(81_920_000);
        assert_eq!(memory_bytes(99_680, 0, rate, 1424), 99_680 + 10 * 1280);
        assert_eq!(memory_bytes(0, 99_680, rate, 1424), 99_680 + 2 * 1280);
        let slow = Rate::from_bits_per_second(1_000_000);
        assert_eq!(memory_bytes(2848, 0, slow, 1424), 2848 + 1280);
    }

    #[test]
    fn the_application_is_woken_when_a_third_is_free() {
        let buffer = SendBuffer::new(Some(90_000));
        assert_eq!(buffer.fill(60_001, core::iter::empty()), None);
        assert_eq!(buffer.fill(60_000, core::iter::empty()), Some(90_000));
        let buffer = SendBuffer::new(None);
        assert_eq!(buffer.fill(0, [87_040, 87_040].into_iter()), Some(4096 + 2 * 87_040));
    }
}
