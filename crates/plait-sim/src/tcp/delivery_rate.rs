//! The delivery rate that an acknowledgement shows (draft-cheng-iccrg-delivery-rate-estimation,
//! section 3): data delivered between two acknowledgements over the longer of the time to send it
//! and the time to acknowledge it; and whether the sender was application-limited (section 3.4).

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

/// The connection's delivery state when a segment was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snapshot {
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    pub(super) is_app_limited: bool,
}

/// The sample of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RateSample {
    /// Zero when unknown.
    pub(super) rate: Rate,
    pub(super) is_app_limited: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryRate {
    now: Snapshot,
    /// Until more than this is delivered, segments sent count as application-limited.
    limited_until: u64,
}

impl DeliveryRate {
    /// A segment leaves; `is_idle` when nothing else is in flight.
    pub(super) fn on_sent(&mut self, now: Instant, is_idle: bool) -> Snapshot {
        if is_idle {
            self.now.first_sent_at = now;
            self.now.delivered_at = now;
        }
        self.now
    }

    /// The application has no more to send although the window leaves room beyond
    /// `in_flight_bytes`.
    pub(super) fn on_app_limited(&mut self, in_flight_bytes: u64) {
        self.limited_until = self.now.delivered_bytes + in_flight_bytes;
        self.now.is_app_limited = true;
    }

    /// `bytes` were delivered; the last-sent of them left at `sent_at` with `snapshot`. A sample
    /// over less than `min_rtt` comes from a retransmitted segment whose original arrived.
    pub(super) fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        (sent_at, snapshot): (Instant, Snapshot),
        min_rtt: Duration,
    ) -> RateSample {
        self.now.delivered_bytes += bytes;
        self.now.delivered_at = now;
        self.now.first_sent_at = sent_at;
        if self.now.delivered_bytes > self.limited_until {
            self.now.is_app_limited = false;
        }
        let sending = sent_at.since(snapshot.first_sent_at);
        let acknowledging = now.since(snapshot.delivered_at);
        let delivered = self.now.delivered_bytes - snapshot.delivered_bytes;
        let interval = sending.max(acknowledging);
        let is_valid = interval >= min_rtt;
        let rate = if is_valid { Rate::from_bytes_over(delivered, interval) } else { Rate::ZERO };
        RateSample { rate, is_app_limited: snapshot.is_app_limited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn deliver(rate: &mut DeliveryRate, now: u64, bytes: u64, sent: (u64, Snapshot)) -> RateSample {
        let min_rtt = Duration::from_millis(20);
        rate.on_delivered(at(now), bytes, (at(sent.0), sent.1), min_rtt)
    }

    #[test]
    fn the_longer_of_sending_and_acknowledging_counts() {
        let mut rate = DeliveryRate::default();
        let first = rate.on_sent(at(0), true);
        let second = rate.on_sent(at(4), false);
        let shown = deliver(&mut rate, 20, 1000, (0, first));
        assert_eq!(shown.rate.bits_per_second(), 400_000);
        // 2000 bytes over max(4 ms sending, 25 ms since the connection was idle).
        let shown = deliver(&mut rate, 25, 1000, (4, second));
        assert_eq!(shown.rate.bits_per_second(), 640_000);
        let third = rate.on_sent(at(26), false);
        let shown = deliver(&mut rate, 46, 1000, (26, third));
        // 1000 bytes over max(22 ms sending, 21 ms acknowledging).
        assert_eq!(shown.rate.bits_per_second(), 363_636);
    }

    #[test]
    fn a_sample_shorter_than_a_round_trip_is_none() {
        let mut rate = DeliveryRate::default();
        rate.on_sent(at(0), true);
        let again = rate.on_sent(at(10), false);
        assert_eq!(deliver(&mut rate, 12, 9000, (10, again)).rate, Rate::ZERO);
    }

    #[test]
    fn what_is_sent_before_the_bubble_has_passed_is_limited() {
        let mut rate = DeliveryRate::default();
        let first = rate.on_sent(at(0), true);
        rate.on_app_limited(1000);
        let second = rate.on_sent(at(10), false);
        assert!(!deliver(&mut rate, 20, 1000, (0, first)).is_app_limited);
        let third = rate.on_sent(at(25), false);
        assert!(deliver(&mut rate, 30, 1000, (10, second)).is_app_limited);
        let fourth = rate.on_sent(at(31), false);
        assert!(deliver(&mut rate, 45, 1000, (25, third)).is_app_limited);
        assert!(!deliver(&mut rate, 55, 1000, (31, fourth)).is_app_limited);
    }
}
