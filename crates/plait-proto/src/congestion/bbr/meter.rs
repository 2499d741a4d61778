//! What arrived over short intervals. Rate samples reach a round trip back, which is long when a
//! queue has built up; these do not.

use super::super::AckSample;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// An interval spans the least round-trip time, and some acknowledgements.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

/// An interval that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// What arrived.
    pub(super) rate: Rate,
    /// The least round-trip time; `None` without a sample.
    pub(super) rtt_min: Option<Duration>,
    /// Share of what was settled that was lost.
    pub(super) loss_permille: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    /// `None` until an acknowledgement begins an interval.
    since: Option<Instant>,
    acked_bytes: u64,
    lost_bytes: u64,
    rtt_min: Option<Duration>,
}

impl Meter {
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        min_rtt: Option<Duration>,
    ) -> Option<Reading> {
        let Some(since) = self.since else {
            self.since = Some(sample.now);
            return None;
        };
        self.acked_bytes += sample.acked_bytes;
        self.lost_bytes += sample.lost_bytes;
        self.rtt_min = super::model::least(self.rtt_min, sample.rtt);
        let elapsed = sample.now.since(since);
        if elapsed < min_rtt.unwrap_or_default().max(INTERVAL_MIN) {
            return None;
        }
        let reading = Reading {
            rate: Rate::from_bytes_over(self.acked_bytes, elapsed),
            rtt_min: self.rtt_min,
            loss_permille: super::model::permille(self.lost_bytes, self.acked_bytes),
        };
        *self = Self { since: Some(sample.now), ..Self::default() };
        Some(reading)
    }

    /// The next acknowledgement begins an interval.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }
}
