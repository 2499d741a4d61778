//! What arrived over short intervals. Rate samples reach a round trip back, which is long when a
//! queue has built up; these do not.

use super::super::AckSample;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// An interval spans the least round-trip time, and some acknowledgements.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

/// An interval spans so many of the longest silence in it, so that a process that was not
/// scheduled for a while, and the bunch after it, are averaged; and no silence counts as longer.
const SILENCES: u32 = 3;
const SILENCE_MAX: Duration = Duration::from_millis(300);

/// An interval that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) since: Instant,
    /// What arrived.
    pub(super) rate: Rate,
    /// The rate at which that, and what was lost of it, had been sent.
    pub(super) sent_rate: Rate,
    /// The least round-trip time; `None` without a sample.
    pub(super) rtt_min: Option<Duration>,
    /// Share of what was settled that was lost.
    pub(super) loss_permille: u64,
    /// The least that was in flight.
    pub(super) in_flight_min: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    /// `None` until an acknowledgement begins an interval.
    since: Option<Instant>,
    acked_bytes: u64,
    lost_bytes: u64,
    rtt_min: Option<Duration>,
    in_flight_min: Option<u64>,
    heard_at: Instant,
    silence_max: Duration,
    /// Place in the order of sending of the newest packet that arrived, and when it had been sent:
    /// of the interval before, and now.
    sent_before: Option<(u64, Instant)>,
    sent: Option<(u64, Instant)>,
}

impl Meter {
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        min_rtt: Option<Duration>,
    ) -> Option<Reading> {
        // Of what the acknowledgement tells, not of itself.
        let arrived_at = sample.now.saturating_sub(sample.way_back_excess);
        if let Some(rtt) = sample.rtt {
            let sent_at = arrived_at.saturating_sub(rtt);
            self.sent = Some((sample.newest.sent_bytes_total, sent_at));
        }
        let Some(since) = self.since else {
            self.sent_before = self.sent;
            (self.since, self.heard_at) = (Some(arrived_at), sample.now);
            return None;
        };
        let silence = sample.now.since(self.heard_at).min(SILENCE_MAX);
        self.silence_max = self.silence_max.max(silence);
        self.heard_at = sample.now;
        let in_flight = sample.in_flight_bytes;
        self.in_flight_min = Some(self.in_flight_min.map_or(in_flight, |min| min.min(in_flight)));
        self.acked_bytes += sample.acked_bytes;
        self.lost_bytes += sample.lost_bytes;
        self.rtt_min = super::model::least(self.rtt_min, sample.rtt);
        let elapsed = arrived_at.since(since);
        let least = min_rtt.unwrap_or_default().max(INTERVAL_MIN).max(self.silence_max * SILENCES);
        if elapsed < least {
            return None;
        }
        let reading = Reading {
            since,
            in_flight_min: in_flight.min(self.in_flight_min.unwrap_or(in_flight)),
            rate: Rate::from_bytes_over(self.acked_bytes, elapsed),
            sent_rate: self.sent_rate(),
            rtt_min: self.rtt_min,
            loss_permille: super::model::permille(self.lost_bytes, self.acked_bytes),
        };
        let since = Some(arrived_at);
        let (sent_before, sent, heard_at) = (self.sent, self.sent, sample.now);
        *self = Self { since, sent_before, sent, heard_at, ..Self::default() };
        Some(reading)
    }

    fn sent_rate(&self) -> Rate {
        let (Some((from, since)), Some((to, until))) = (self.sent_before, self.sent) else {
            return Rate::ZERO;
        };
        match until.since(since) {
            Duration::ZERO => Rate::ZERO,
            elapsed => Rate::from_bytes_over(to.saturating_sub(from), elapsed),
        }
    }

    /// The next acknowledgement begins an interval.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }
}
