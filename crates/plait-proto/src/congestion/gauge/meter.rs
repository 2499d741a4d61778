//! What arrived over short intervals. Rate samples reach a round trip back, which is long when a
//! queue has built up; these do not.

use super::super::AckSample;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// An interval spans the least round-trip time or a part of it, and some acknowledgements.
const INTERVAL_MIN: Duration = Duration::from_millis(20);

/// An interval spans so many of the longest silence in it, so that a process that was not
/// scheduled for a while, and the bunch after it, are averaged; and no silence counts as longer.
const SILENCES: u32 = 3;
const SILENCE_MAX: Duration = Duration::from_millis(300);

/// Packets sent within so long were sent at once.
const MOMENT: Duration = Duration::from_millis(1);

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

#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    /// An interval spans this part of the least round-trip time at least.
    part: u32,
    /// `None` until an acknowledgement begins an interval.
    since: Option<Instant>,
    acked_bytes: u64,
    lost_bytes: u64,
    rtt_min: Option<Duration>,
    in_flight_min: Option<u64>,
    heard_at: Instant,
    /// The latest, less what it waited on its way.
    arrived_at: Instant,
    silence_max: Duration,
    /// Place in the order of sending of the newest packet that arrived, and when it had been sent:
    /// of the interval before, and now.
    sent_before: Option<(u64, Instant)>,
    sent: Option<(u64, Instant)>,
}

impl Default for Meter {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Meter {
    pub(super) const fn new(part: u32) -> Self {
        Self {
            part,
            since: None,
            acked_bytes: 0,
            lost_bytes: 0,
            rtt_min: None,
            in_flight_min: None,
            heard_at: Instant::ZERO,
            arrived_at: Instant::ZERO,
            silence_max: Duration::ZERO,
            sent_before: None,
            sent: None,
        }
    }

    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        min_rtt: Option<Duration>,
    ) -> Option<Reading> {
        // Of what the acknowledgement tells, not of itself.
        let arrived_at = sample.now.saturating_sub(sample.way_back_excess.unwrap_or_default());
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
        let part = min_rtt.unwrap_or_default() / self.part;
        let least = part.max(INTERVAL_MIN).max(self.silence_max * SILENCES);
        self.arrived_at = arrived_at;
        if elapsed < least {
            return None;
        }
        let reading = self.reading(since, elapsed);
        let since = Some(arrived_at);
        let (sent_before, sent, heard_at) = (self.sent, self.sent, sample.now);
        *self = Self { since, sent_before, sent, heard_at, ..Self::new(self.part) };
        Some(reading)
    }

    /// The interval up to the latest acknowledgement, though it be too short: none comes any more.
    pub(super) fn finish(&mut self) -> Option<Reading> {
        let since = self.since?;
        let elapsed = self.arrived_at.since(since);
        let reading = (elapsed >= INTERVAL_MIN / 2).then(|| self.reading(since, elapsed));
        self.restart();
        reading
    }

    fn reading(&self, since: Instant, elapsed: Duration) -> Reading {
        Reading {
            since,
            in_flight_min: self.in_flight_min.unwrap_or(0),
            rate: Rate::from_bytes_over(self.acked_bytes, elapsed),
            sent_rate: self.sent_rate(),
            rtt_min: self.rtt_min,
            loss_permille: super::model::permille(self.lost_bytes, self.acked_bytes),
        }
    }

    fn sent_rate(&self) -> Rate {
        let (Some((from, since)), Some((to, until))) = (self.sent_before, self.sent) else {
            return Rate::ZERO;
        };
        // What was sent at one moment was sent fast, and a time of sending is known no better.
        let elapsed = until.since(since).max(MOMENT);
        Rate::from_bytes_over(to.saturating_sub(from), elapsed)
    }

    /// The next acknowledgement begins an interval.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.part);
    }
}
