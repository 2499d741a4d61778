//! A path that delivers less than was sent, however little that is.
//!
//! A scheduler that sees a path fall behind stops loading it, so what is in flight soon says
//! nothing. What was sent does: an interval in which less arrives than its own packets were sent
//! with, while a queue stands or packets are lost, shows the path's rate (the short-term bounds of
//! draft-ietf-ccwg-bbr-06 section 5.5.10.3 rest on the same).

use super::super::AckSample;
use super::meter::{Meter, Reading};
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// An interval spans this part of the least round-trip time.
const RTT_PART: u32 = 3;
/// Less than this part of what was sent, in per cent, is too little.
const DELIVERED_PERCENT: u64 = 90;
/// An interval that delivers this part of the rate found, in per cent, or more proves it wrong.
const REFUTED_PERCENT: u64 = 130;
/// Intervals that show it, and time since the first of them began.
const INTERVALS: u32 = 2;
const LASTING: Duration = Duration::from_millis(100);
/// The same where so much is lost, in permille, that no more may come soon.
const LASTING_LOSSY: Duration = Duration::from_millis(80);
const LOSSY_PERMILLE: u64 = 300;
/// It is forgotten after so long.
const FORGOTTEN_AFTER: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
struct Case {
    since: Instant,
    latest_at: Instant,
    intervals: u32,
    /// What arrived in the latest two intervals that show it.
    latest: Rate,
    before: Rate,
}

/// Collects intervals that show a path that carries less than believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overload {
    meter: Meter,
    case: Option<Case>,
}

impl Default for Overload {
    fn default() -> Self {
        Self { meter: Meter::new(RTT_PART), case: None }
    }
}

fn is_below(rate: Rate, of: Rate, percent: u64) -> bool {
    rate.bits_per_second() < of.bits_per_second() / 100 * percent
}

impl Overload {
    /// Gives an interval that is over.
    pub(super) fn read(
        &mut self,
        sample: &AckSample<'_>,
        min_rtt: Option<Duration>,
    ) -> Option<Reading> {
        self.meter.on_ack(sample, min_rtt)
    }

    /// Takes an interval that ends now. `may_count` when it had a queue or losses and delivered far
    /// less than the path is believed to carry. Gives the path's rate when it is certain.
    pub(super) fn on_reading(
        &mut self,
        now: Instant,
        reading: &Reading,
        may_count: bool,
    ) -> Option<Rate> {
        let counts = may_count && is_below(reading.rate, reading.sent_rate, DELIVERED_PERCENT);
        match &mut self.case {
            Some(case) if counts => {
                case.intervals += 1;
                case.latest_at = now;
                (case.before, case.latest) = (case.latest, reading.rate);
            }
            None if counts => {
                let (since, latest) = (reading.since, reading.rate);
                let case = Case { since, latest_at: now, intervals: 1, latest, before: latest };
                self.case = Some(case);
            }
            Some(case) => {
                let found = case.latest.max(case.before);
                let is_wrong = !is_below(reading.rate, found, REFUTED_PERCENT);
                if is_wrong || now.since(case.latest_at) >= FORGOTTEN_AFTER {
                    self.case = None;
                }
            }
            None => {}
        }
        let lasting = if reading.loss_permille >= LOSSY_PERMILLE { LASTING_LOSSY } else { LASTING };
        let is_certain =
            |case: &Case| case.intervals >= INTERVALS && now.since(case.since) >= lasting;
        self.case.filter(is_certain).and(self.suspected_rate(now))
    }

    /// Gives the interval that was not over when nothing came any more.
    pub(super) fn finish(&mut self) -> Option<Reading> {
        self.meter.finish()
    }

    /// The path's rate, if there is a case, however thin.
    pub(super) fn suspected_rate(&self, now: Instant) -> Option<Rate> {
        let case = self.case.filter(|case| now.since(case.latest_at) < FORGOTTEN_AFTER)?;
        Some(case.latest.max(case.before)).filter(|rate| *rate > Rate::ZERO)
    }

    /// The next acknowledgement begins an interval.
    pub(super) fn restart(&mut self) {
        self.meter.restart();
    }

    pub(super) fn forget(&mut self) {
        self.case = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ms: u64, sent_mbit: u64, arrived_mbit: u64) -> (Instant, Reading) {
        let reading = Reading {
            since: Instant::from_millis(at_ms - 30),
            rate: Rate::from_mbit(arrived_mbit),
            sent_rate: Rate::from_mbit(sent_mbit),
            rtt_min: None,
            loss_permille: 0,
            in_flight_min: 0,
        };
        (Instant::from_millis(at_ms), reading)
    }

    /// What is found after intervals of 30 ms, each with what was sent and what arrived of it.
    fn found(intervals: &[(u64, u64)]) -> Option<Rate> {
        let mut overload = Overload::default();
        let mut found = None;
        for (at_ms, (sent, arrived)) in (1..).map(|n| 30 * n).zip(intervals) {
            let (now, reading) = reading(at_ms, *sent, *arrived);
            found = found.or(overload.on_reading(now, &reading, arrived * 100 < 30 * 75));
        }
        found
    }

    #[test]
    fn a_fall_is_known_though_nothing_more_is_sent_soon() {
        let fall = [(30, 15), (30, 2), (30, 2), (2, 2), (0, 1), (0, 0)];
        assert_eq!(found(&fall), Some(Rate::from_mbit(2)));
        assert_eq!(found(&fall[..3]), None, "it must last");
    }

    #[test]
    fn a_fall_that_loses_most_is_known_sooner() {
        let mut overload = Overload::default();
        let mut found = None;
        for at_ms in [30, 60, 90] {
            let (now, reading) = reading(at_ms, 30, 1);
            let reading = Reading { loss_permille: 950, ..reading };
            found = found.or(overload.on_reading(now, &reading, true));
        }
        assert_eq!(found, Some(Rate::from_mbit(1)));
    }

    #[test]
    fn one_interval_is_a_suspicion_for_a_while() {
        let mut overload = Overload::default();
        let (now, reading) = reading(30, 30, 2);
        assert_eq!(overload.on_reading(now, &reading, true), None);
        assert_eq!(overload.suspected_rate(now + LASTING), Some(Rate::from_mbit(2)));
        assert_eq!(overload.suspected_rate(now + FORGOTTEN_AFTER), None);
    }

    #[test]
    fn what_arrives_as_it_was_sent_shows_nothing() {
        assert_eq!(found(&[(3, 3); 20]), None);
        assert_eq!(found(&[(30, 29); 20]), None);
    }

    #[test]
    fn a_gap_is_no_fall() {
        assert_eq!(found(&[(30, 20), (30, 30), (30, 30), (30, 20), (30, 30), (30, 30)]), None);
    }

    #[test]
    fn little_that_arrives_after_it_does_not_refute_it_and_much_does() {
        let (low, high) = ([(30, 2), (30, 2), (1, 1), (2, 2)], [(30, 2), (30, 2), (1, 1), (9, 9)]);
        assert_eq!(found(&[&low[..], &[(2, 2), (2, 2)]].concat()), Some(Rate::from_mbit(2)));
        assert_eq!(found(&[&high[..], &[(2, 2), (2, 2)]].concat()), None);
    }
}
