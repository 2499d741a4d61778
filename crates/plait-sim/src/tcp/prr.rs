//! Proportional rate reduction (RFC 6937): meters what is sent during fast recovery, so that the
//! flight shrinks to the new window over one round trip.

#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// The target window (ssthresh), in whole segments.
    target_bytes: u64,
    /// The window when recovery began; the RFC has the flight (RecoverFS).
    prior_bytes: u64,
    delivered_bytes: u64,
    sent_bytes: u64,
    segment_bytes: u64,
    window_bytes: u64,
}

/// What one acknowledgement during recovery showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Newly delivered.
    pub(super) delivered_bytes: u64,
    /// In flight now.
    pub(super) in_flight_bytes: u64,
    /// Whether the cumulative acknowledgement advanced and no further loss was found: then the
    /// slow-start bound is safe, otherwise packet conservation holds.
    pub(super) is_safe: bool,
}

impl Prr {
    pub(super) fn new(target_bytes: u64, prior_bytes: u64, segment_bytes: u64) -> Self {
        let target_bytes = target_bytes - target_bytes % segment_bytes;
        Self {
            target_bytes,
            prior_bytes: prior_bytes.max(1),
            delivered_bytes: 0,
            sent_bytes: 0,
            segment_bytes,
            window_bytes: target_bytes,
        }
    }

    /// RFC 6937 section 3, with the choice of the bound that Linux makes, and as in Linux by whole
    /// segments, rounded up. What delivers nothing changes nothing.
    pub(super) fn on_ack(&mut self, progress: Progress) {
        if progress.delivered_bytes == 0 {
            return;
        }
        self.delivered_bytes += progress.delivered_bytes;
        let in_flight = progress.in_flight_bytes;
        let mut allowance = if in_flight > self.target_bytes {
            let share = (u128::from(self.delivered_bytes) * u128::from(self.target_bytes))
                .div_ceil(u128::from(self.prior_bytes));
            let share = u64::try_from(share).unwrap_or(u64::MAX);
            share.next_multiple_of(self.segment_bytes).saturating_sub(self.sent_bytes)
        } else {
            let owed = self.delivered_bytes.saturating_sub(self.sent_bytes);
            let growth = if progress.is_safe { self.segment_bytes } else { 0 };
            let limit = owed.max(progress.delivered_bytes) + growth;
            limit.min(self.target_bytes - in_flight)
        };
        if self.sent_bytes == 0 {
            // The fast retransmission itself leaves at once.
            allowance = allowance.max(self.segment_bytes);
        }
        self.window_bytes = in_flight + allowance;
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    pub(super) const fn window(&self) -> u64 {
        self.window_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1000;

    fn progress(delivered: u64, in_flight: u64, is_safe: bool) -> Progress {
        Progress { delivered_bytes: delivered * S, in_flight_bytes: in_flight * S, is_safe }
    }

    #[test]
    fn above_the_target_sending_is_in_proportion() {
        // Flight 20, target 10: one segment leaves for every two that are delivered.
        let mut prr = Prr::new(10 * S, 20 * S, S);
        prr.on_ack(progress(1, 16, false));
        assert_eq!(prr.window(), 17 * S, "the fast retransmission");
        prr.on_sent(S);
        prr.on_ack(progress(1, 16, false));
        assert_eq!(prr.window(), 16 * S, "2 delivered * 10/20 - 1 sent");
        prr.on_ack(progress(2, 14, false));
        assert_eq!(prr.window(), 15 * S, "4 delivered * 10/20 - 1 sent");
    }

    #[test]
    fn below_the_target_the_bound_is_slow_start_or_conservation() {
        let mut prr = Prr::new(10 * S, 20 * S, S);
        prr.on_ack(progress(1, 4, false));
        prr.on_sent(S);
        let mut safe = prr;
        prr.on_ack(progress(1, 4, false));
        assert_eq!(prr.window(), 5 * S, "conservation: as many as were delivered");
        safe.on_ack(progress(1, 4, true));
        assert_eq!(safe.window(), 6 * S, "slow start: one more");
    }

    #[test]
    fn the_window_does_not_pass_the_target() {
        let mut prr = Prr::new(10 * S, 20 * S, S);
        prr.on_sent(S);
        prr.on_ack(progress(8, 9, true));
        assert_eq!(prr.window(), 10 * S);
    }
}
