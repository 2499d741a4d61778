//! A frame of many packets (A-MPDU), and the times around it.
//!
//! An exchange is the preamble, the subframes back to back, SIFS, and the block acknowledgement.
//! Before it come the arbitration space and a random number of slots.

use plait_proto::time::Duration;

/// 802.11-2020 clause 17: OFDM in 5 and 6 GHz.
pub(super) const SLOT: Duration = Duration::from_micros(9);
const SIFS: Duration = Duration::from_micros(16);
/// Best effort waits for three slots after SIFS (802.11-2020 clause 10, EDCA).
pub(super) const AIFS: Duration = Duration::from_micros(16 + 3 * 9);
/// Slots of the contention window, at first and at most (802.11-2020 clause 10, EDCA).
pub(super) const WINDOW_MIN_SLOTS: u32 = 15;
pub(super) const WINDOW_MAX_SLOTS: u32 = 1023;
/// A compressed block acknowledgement of 32 bytes at 24 Mbit/s with its legacy preamble.
const BLOCK_ACK: Duration = Duration::from_micros(32);
/// After a frame that could not be decoded, such as one of a neighbouring channel, a radio waits
/// for EIFS in place of DIFS (802.11-2020 clause 10): SIFS and an acknowledgement at 6 Mbit/s
/// longer.
pub(super) const EXTENDED: Duration = Duration::from_micros(16 + 44);
/// Mean time before an exchange of a radio that nobody disturbs.
pub(super) const ACCESS_MEAN: Duration =
    Duration::from_nanos(43_000 + WINDOW_MIN_SLOTS as u64 * 9_000 / 2);

/// Bytes around a packet in its subframe: delimiter 4, QoS header 26, LLC and SNAP 8, check
/// sequence 4, and 2 of padding in the mean. No encryption.
const SUBFRAME_BYTES: u64 = 4 + 26 + 8 + 4 + 2;

/// How much a frame may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggregate {
    /// Most subframes of a frame, which is also the window of a block acknowledgement.
    pub packets_max: u32,
    /// Longest time of the subframes; at least one goes.
    pub air_max: Duration,
}

impl Aggregate {
    /// Whether a frame of `packets` subframes that take `air` has room for one of `more`.
    pub(super) fn has_room(&self, packets: u32, air: Duration, more: Duration) -> bool {
        packets == 0 || (packets < self.packets_max && air + more <= self.air_max)
    }

    /// Subframes of a frame when enough of them, each of this length, always wait.
    pub(super) fn fitting(&self, subframe: Duration) -> u32 {
        let fitting = self.air_max.as_nanos() / subframe.as_nanos().max(1);
        u32::try_from(fitting).unwrap_or(u32::MAX).clamp(1, self.packets_max)
    }
}

/// Time of a packet's subframe.
pub(super) fn subframe(packet_bytes: u64, rate_bps: f64) -> Duration {
    let bits = (packet_bytes + SUBFRAME_BYTES) * 8;
    Duration::from_nanos((bits as f64 * 1e9 / rate_bps).ceil() as u64)
}

/// Time of an exchange whose subframes take `air`.
pub(super) fn exchange(preamble: Duration, air: Duration) -> Duration {
    preamble + air + SIFS + BLOCK_ACK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_ends_at_either_limit() {
        let us = Duration::from_micros;
        let aggregate = Aggregate { packets_max: 3, air_max: us(100) };
        assert!(aggregate.has_room(0, Duration::ZERO, us(500)), "one always goes");
        assert!(aggregate.has_room(2, us(60), us(40)));
        assert!(!aggregate.has_room(2, us(61), us(40)) && !aggregate.has_room(3, us(3), us(1)));
        assert_eq!([10, 40, 500].map(|each| aggregate.fitting(us(each))), [3, 2, 1]);
    }

    #[test]
    fn times_are_those_of_the_standard() {
        // 1544 bytes at 433.3 Mbit/s.
        assert_eq!(subframe(1500, 1_300e6 / 3.0).as_nanos(), 28_505);
        let whole = exchange(Duration::from_micros(40), Duration::from_micros(1000));
        assert_eq!(whole, Duration::from_micros(40 + 1000 + 16 + 32));
        assert_eq!(ACCESS_MEAN, Duration::from_nanos(43_000 + 67_500));
    }
}
