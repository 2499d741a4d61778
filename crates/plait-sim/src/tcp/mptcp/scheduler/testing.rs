//! Views for tests: windows in segments of 1000 bytes.

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::{ConnectionView, LocalQueue, SubflowView};

/// A usable subflow with this smoothed round-trip time and window, and nothing in flight.
pub(super) fn subflow(srtt_ms: u64, window_segments: u64) -> SubflowView {
    let srtt = Duration::from_millis(srtt_ms);
    SubflowView {
        is_usable: true,
        is_backup: false,
        srtt: Some(srtt),
        rtt_variation: Some(Duration::ZERO),
        window_bytes: window_segments * 1000,
        in_flight_bytes: 0,
        unsent_bytes: 0,
        memory_bytes: 0,
        buffer_bytes: window_segments * 8704,
        pacing_rate: Rate::from_bytes_over(window_segments * 1000, srtt),
        behind_bytes: 0,
        local: LocalQueue::default(),
    }
}

/// The same with its window full.
pub(super) fn full(srtt_ms: u64, window_segments: u64) -> SubflowView {
    let subflow = subflow(srtt_ms, window_segments);
    SubflowView { in_flight_bytes: subflow.window_bytes, ..subflow }
}

/// A connection with so many segments to send, and a window that is not in the way.
pub(super) fn connection(unsent_segments: u64) -> ConnectionView {
    ConnectionView {
        now: Instant::ZERO,
        segment_bytes: 1000,
        unsent_bytes: unsent_segments * 1000,
        room_bytes: 10_000_000,
        window_bytes: 10_000_000,
        reinjections: 0,
    }
}
