//! The delivery rate that an acknowledgement shows (draft-cheng-iccrg-delivery-rate-estimation,
//! section 3): data delivered between two acknowledgements over the longer of the time it took to
//! send and the time it took to be acknowledged.

use plait_proto::time::Instant;
use plait_proto::units::Rate;

/// Where the connection stood when a segment was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Snapshot {
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryRate {
    now: Snapshot,
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

    /// `bytes` were delivered; the last-sent of them left at `sent_at` with `snapshot`.
    pub(super) fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u64,
        sent_at: Instant,
        snapshot: Snapshot,
    ) -> Rate {
        self.now.delivered_bytes += bytes;
        self.now.delivered_at = now;
        self.now.first_sent_at = sent_at;
        let sending = sent_at.since(snapshot.first_sent_at);
        let acknowledging = now.since(snapshot.delivered_at);
        let delivered = self.now.delivered_bytes - snapshot.delivered_bytes;
        Rate::from_bytes_over(delivered, sending.max(acknowledging))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_sending_and_acknowledging_counts() {
        let at = Instant::from_millis;
        let mut rate = DeliveryRate::default();
        let first = rate.on_sent(at(0), true);
        let second = rate.on_sent(at(4), false);
        assert_eq!(rate.on_delivered(at(20), 1000, at(0), first).bits_per_second(), 400_000);
        // 2000 bytes over max(4 ms sending, 25 ms since the connection was idle).
        assert_eq!(rate.on_delivered(at(25), 1000, at(4), second).bits_per_second(), 640_000);
        let third = rate.on_sent(at(26), false);
        let shown = rate.on_delivered(at(46), 1000, at(26), third);
        // 1000 bytes over max(22 ms sending, 21 ms acknowledging).
        assert_eq!(shown.bits_per_second(), 363_636);
    }
}
