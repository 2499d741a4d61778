//! How much faster than its estimate startup sends.

use super::model::Round;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// draft-ietf-ccwg-bbr-06 section 5.3.1: the smallest gain that doubles the rate per round trip.
const DOUBLING: u64 = 277;
/// A flow that has less to send than the path takes is sent so much faster than it grows, once a
/// burst has shown what the path carries.
const GROWTH_MARGIN_PERCENT: u64 = 150;
const LEAST: u64 = 125;
/// As long as the queue of a burst is that short it harms nobody.
const HARMLESS: Duration = Duration::from_millis(50);
/// And as long as it is that small, however slow the path seems.
const HARMLESS_BYTES: u64 = 64_000;

/// The gain, in per cent. Where the path always has packets to send it is the one that doubles the
/// rate. Where a flow's window limits it, a burst is at most a round trip's worth of packets, come
/// late and together: at the doubling gain almost two thirds of them would stand in a queue, which
/// over a far path is longer than queues are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartupGain {
    /// Gain beyond a harmless burst; `None` while there is always enough to send.
    limit_percent: Option<u64>,
    /// Acknowledged in the latest whole round.
    acked_bytes: u64,
    /// What would stand in the queue of a path that carries the estimate times this gain.
    queued_bytes: u64,
    sent_at: Instant,
}

impl StartupGain {
    /// The gain for the next packet of a path that is believed to carry `rate`.
    pub(super) fn percent(&self, rate: Rate) -> u64 {
        match self.limit_percent {
            Some(limit) if self.queued_bytes > harmless_bytes(rate) => limit,
            _ => DOUBLING,
        }
    }

    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, rate: Rate) {
        let percent = self.limit_percent.unwrap_or(DOUBLING);
        let carried = rate.bytes_in(now.since(self.sent_at)).saturating_mul(percent) / 100;
        self.queued_bytes = self.queued_bytes.saturating_sub(carried) + bytes;
        self.sent_at = now;
    }

    /// A round is over.
    pub(super) fn on_round(&mut self, round: &Round) {
        let before = core::mem::replace(&mut self.acked_bytes, round.acked_bytes);
        self.limit_percent = (round.wanted_packets && before > 0).then(|| {
            let growth = round.acked_bytes * GROWTH_MARGIN_PERCENT / before;
            growth.clamp(LEAST, DOUBLING)
        });
    }
}

fn harmless_bytes(rate: Rate) -> u64 {
    rate.bytes_in(HARMLESS).max(HARMLESS_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gain after each of so many packets that leave at once over a path that is believed to
    /// carry 20 Mbit/s, once rounds with so many bytes acknowledged are over.
    fn gains(acked_bytes: [u64; 2], wanted_packets: bool, packets: usize) -> Vec<u64> {
        let rate = Rate::from_mbit(20);
        let mut gain = StartupGain::default();
        for acked_bytes in acked_bytes {
            gain.on_round(&Round { acked_bytes, wanted_packets, ..Round::default() });
        }
        let send = |_| {
            gain.on_sent(Instant::from_millis(600), 1500, rate);
            gain.percent(rate)
        };
        (0..packets).map(send).collect()
    }

    /// Two geostationary links of 20 Mbit/s: what a stall of the resequencer held back came as a
    /// burst of a whole round trip, left at 2.77 times the rate for a quarter of a second, and 1246
    /// packets of it were lost.
    #[test]
    fn regression_a_burst_of_a_flow_that_does_not_grow_overruns_no_queue() {
        // 50 ms are 125,000 bytes, 83 packets.
        let gains = gains([1_500_000, 1_500_000], true, 90);
        assert_eq!(gains.iter().position(|gain| *gain != 277), Some(83));
        assert!(gains[83..].iter().all(|gain| *gain == 150));
    }

    #[test]
    fn a_flow_that_grows_is_sent_as_much_faster() {
        let last = |before, after| gains([before, after], true, 90)[89];
        assert_eq!(
            [last(100, 100), last(100, 130), last(100, 200), last(100, 60)],
            [150, 195, 277, 125]
        );
    }

    #[test]
    fn who_always_has_packets_doubles() {
        assert_eq!(gains([1_500_000, 1_500_000], false, 90), [277; 90]);
    }

    #[test]
    fn a_burst_that_the_path_carried_meanwhile_is_none() {
        let rate = Rate::from_mbit(20);
        let mut gain = StartupGain::default();
        for acked_bytes in [1_500_000, 1_500_000] {
            let wanted_packets = true;
            gain.on_round(&Round { acked_bytes, wanted_packets, ..Round::default() });
        }
        for packet in 0..1000 {
            // A packet takes 600 us.
            gain.on_sent(
                Instant::from_millis(600) + Duration::from_micros(600) * packet,
                1500,
                rate,
            );
            assert_eq!(gain.percent(rate), 277);
        }
    }
}
