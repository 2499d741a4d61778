//! Aggregation: packets that wait during contention for the medium go as one frame, as in Wi-Fi
//! (A-MPDU).

use plait_proto::time::Duration;
use plait_proto::units::Rate;

use crate::prng::Prng;

/// Before each frame the transmitter must win the medium; then up to `packets_max` packets or
/// `air_max` of air time go back to back at the link's rate, and arrive together when the last one
/// has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aggregation {
    /// The most packets of a frame; at least one goes.
    pub packets_max: u32,
    /// The longest frame; at least one packet goes.
    pub air_max: Duration,
    /// The shortest time before a frame: contention, preamble, acknowledgement.
    pub access_min: Duration,
    /// The longest time before a frame; each is drawn uniformly between both.
    pub access_max: Duration,
}

impl Aggregation {
    /// The time before a frame.
    pub(super) fn draw_access(&self, prng: &mut Prng) -> Duration {
        let spread = self.access_max.saturating_sub(self.access_min).as_nanos();
        let spread = u64::try_from(spread).unwrap_or(u64::MAX);
        self.access_min + Duration::from_nanos(prng.up_to(spread))
    }

    /// The rate of packets of 1500 bytes, when enough always wait, on a link of this rate.
    pub(super) fn mean_rate(&self, rate: Rate) -> Rate {
        let fitting = (rate.bytes_in(self.air_max) / FULL_PACKET_BYTES).max(1);
        let frame_bytes = fitting.min(self.packets_max.into()) * FULL_PACKET_BYTES;
        let access = (self.access_min + self.access_max.max(self.access_min)) / 2;
        let air = rate.time_for(frame_bytes);
        Rate::from_bytes_over(frame_bytes, access.saturating_add(air)).min(rate)
    }
}

const FULL_PACKET_BYTES: u64 = 1500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_air_that_is_contended_for_is_lost() {
        let ms = Duration::from_millis;
        let aggregation =
            Aggregation { packets_max: 10, air_max: ms(4), access_min: ms(1), access_max: ms(3) };
        let mbit = |rate| aggregation.mean_rate(Rate::from_mbit(rate)).bits_per_second() / 1000;
        // A packet takes 1 ms: 4 packets in 2 + 4 ms. Then 0.1 ms: 10 packets in 2 + 1 ms.
        assert_eq!([12, 120].map(mbit), [8_000, 40_000]);
        assert_eq!(mbit(0), 0);
    }
}
