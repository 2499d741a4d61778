//! How far acknowledgements run ahead of the estimated rate because they come in bunches.

use crate::time::Instant;
use crate::units::Rate;

/// Rounds that one half of the window spans (draft-ietf-ccwg-bbr-06 section 5.5.9: ten in all).
const HALF_ROUNDS: u32 = 5;

/// The greatest excess of the last five to ten rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExtraAcked {
    epoch: Option<Epoch>,
    current_bytes: u64,
    previous_bytes: u64,
    rounds: u32,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    since: Instant,
    acked_bytes: u64,
}

impl ExtraAcked {
    pub(super) fn get(&self) -> u64 {
        self.current_bytes.max(self.previous_bytes)
    }

    /// Takes an acknowledgement at an estimate of `bandwidth` before it. What is more than
    /// `most_bytes` is no bunch.
    pub(super) fn on_ack(&mut self, now: Instant, bytes: u64, bandwidth: Rate, most_bytes: u64) {
        let mut epoch = self.epoch.unwrap_or(Epoch { since: now, acked_bytes: 0 });
        if epoch.acked_bytes <= bandwidth.bytes_in(now.since(epoch.since)) {
            epoch = Epoch { since: now, acked_bytes: 0 };
        }
        epoch.acked_bytes += bytes;
        let expected = bandwidth.bytes_in(now.since(epoch.since));
        let extra = epoch.acked_bytes.saturating_sub(expected).min(most_bytes);
        self.current_bytes = self.current_bytes.max(extra);
        self.epoch = Some(epoch);
    }

    pub(super) fn on_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= HALF_ROUNDS {
            self.rounds = 0;
            self.previous_bytes = core::mem::take(&mut self.current_bytes);
        }
    }

    /// Time in which nothing was sent counts neither way.
    pub(super) fn restart(&mut self) {
        self.epoch = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bunches_of_five_milliseconds_are_five_milliseconds_ahead() {
        let mut extra = ExtraAcked::default();
        let rate = Rate::from_mbit(8);
        for step in 1..100 {
            extra.on_ack(Instant::from_millis(5 * step), 5_000, rate, u64::MAX);
        }
        assert_eq!(extra.get(), 5_000);
        (0..10).for_each(|_| extra.on_round());
        assert_eq!(extra.get(), 0, "forgotten");
    }
}
