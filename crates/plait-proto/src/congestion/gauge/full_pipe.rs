//! When startup has found what the path carries.

use super::model::{Model, permille};
use crate::time::Duration;
use crate::units::Rate;

/// Growth per round that shows room, and rounds without it that show none (draft-ietf-ccwg-bbr-06
/// section 5.3.1.2).
const GROWTH_PERCENT: u64 = 125;
const ROUNDS: u32 = 3;
/// A queue that stood through the round without growth makes the case at once.
const ROUNDS_WITH_EVIDENCE: u32 = 1;
/// So does this much loss (section 5.3.1.3), the lower share only where the round trip has become
/// longer as well. Loss while the rate still grows is the path's own, and six segments in a small
/// round may be too.
const LOSS_PERMILLE: u64 = 100;
const LOSS_WITH_QUEUE_PERMILLE: u64 = 20;
const LOST_SEGMENTS: u64 = 6;
/// So much loss makes it before the round is over, since each loss lets another packet out.
const LOST_SEGMENTS_IN_ROUND: u64 = 20;
/// A queue that stands while never less than so much of the bandwidth-delay product, in per cent,
/// and so many segments are in flight is this sender's own.
const OWN_QUEUE_PERCENT: u64 = 125;
const OWN_QUEUE_SEGMENTS: u64 = 10;

/// Bursts paced far above the estimate that came back at it, and queued meanwhile, show the same in
/// so many rounds, though the pipe was empty between them: this part of the bandwidth-delay product
/// was queued in each, and more than a call or a film sends in a round, which jitter may hold up.
/// So do bursts of which as much was lost as makes the case above: a policer keeps no queue.
const BURST_ROUNDS: u32 = 8;
const BURST_PERCENT: u64 = 50;
const BURST_BYTES: u64 = 64_000;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Rate,
    rounds: u32,
    /// Rounds in which bursts queued or were dropped.
    burst_rounds: u32,
}

impl FullPipe {
    /// Judges the round so far, or as a whole when it is over; true when the pipe is full.
    pub(super) fn on_ack(&mut self, model: &Model, segment_bytes: u64, round_over: bool) -> bool {
        let bandwidth = model.rate();
        let grown = self.baseline.bits_per_second().saturating_mul(GROWTH_PERCENT) / 100;
        let has_grown = bandwidth.bits_per_second() >= grown;
        if round_over && has_grown {
            *self = Self { baseline: bandwidth, ..Self::default() };
        }
        let round = &model.round;
        let is_longer =
            round.rtt_min.is_some_and(|rtt| model.min_rtt.queue_of(rtt) > Duration::ZERO);
        let has_queue = round.rtt_min.is_some_and(|rtt| model.min_rtt.has_queue(rtt));
        // Whoever overruns a queue, or keeps one standing, sends enough, whatever he could have
        // sent besides.
        let overruns = is_longer && round.lost_bytes > 0;
        let enough = model.gain_bytes(OWN_QUEUE_PERCENT).max(OWN_QUEUE_SEGMENTS * segment_bytes);
        let stands = has_queue && round.in_flight_min.is_some_and(|bytes| bytes >= enough);
        if has_grown {
            return false;
        }
        // A queue that overran while the path looked for more has nothing to do with how much
        // there was to send at the round's end.
        let has_overrun = round.overrun_bytes >= LOST_SEGMENTS_IN_ROUND * segment_bytes
            && permille(round.overrun_bytes, round.acked_bytes) >= LOSS_WITH_QUEUE_PERMILLE;
        if has_overrun {
            return true;
        }
        let burst = model.gain_bytes(BURST_PERCENT).max(BURST_BYTES);
        let is_dropped = round.lost_bytes >= LOST_SEGMENTS * segment_bytes
            && round.loss_permille() >= LOSS_PERMILLE;
        if round_over && (round.queued_bytes >= burst || is_dropped) {
            self.burst_rounds += 1;
            if self.burst_rounds >= BURST_ROUNDS {
                return true;
            }
        }
        // What was sent when there was enough is still on its way.
        let settled_bytes = round.acked_bytes + round.lost_bytes;
        let is_thin =
            round_over && round.in_flight_min.is_some_and(|least| settled_bytes < least / 2);
        if is_thin || round.is_app_limited && !overruns && !stands {
            return false;
        }
        let most = if is_longer { LOSS_WITH_QUEUE_PERMILLE } else { LOSS_PERMILLE };
        let is_lossy = |segments| {
            round.lost_bytes >= segments * segment_bytes && round.loss_permille() >= most
        };
        if !round_over {
            return is_lossy(LOST_SEGMENTS_IN_ROUND);
        }
        self.rounds += 1;
        let shows_it = has_queue && (overruns || !round.is_app_limited);
        let has_evidence = shows_it || is_lossy(LOST_SEGMENTS);
        self.rounds >= if has_evidence { ROUNDS_WITH_EVIDENCE } else { ROUNDS }
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::Round;
    use super::*;
    use crate::time::Instant;

    /// Where a link sends in turns, what comes of one turn is a small part of what is on its way,
    /// and waited for it: neither a full pipe nor a queue.
    #[test]
    fn regression_a_thin_round_says_nothing() {
        let is_full = |acked_bytes| {
            let mut model = Model::default();
            model.min_rtt.on_sample(Instant::ZERO, Duration::from_millis(25));
            model.bandwidth.update(Rate::from_mbit(20), true);
            let mut pipe = FullPipe { baseline: model.rate(), ..FullPipe::default() };
            let (rtt_min, in_flight_min) = (Some(Duration::from_millis(90)), Some(100_000));
            model.round = Round { acked_bytes, rtt_min, in_flight_min, ..Round::default() };
            pipe.on_ack(&model, 1500, true)
        };
        assert!(!is_full(49_999));
        assert!(is_full(50_000));
    }

    /// A flow that never fills its paths comes over the slower one in bursts. Paced at 2.77 times
    /// the estimate they queue, and the queue is gone when the next one comes: for no whole round
    /// is there enough to send, nor does a queue stand, and startup went on for good.
    #[test]
    fn regression_bursts_that_queue_end_a_startup_that_is_never_in_demand() {
        let rounds_until_full = |queued_percent: u64, growth_percent: u64| {
            let mut model = Model::default();
            model.min_rtt.on_sample(Instant::ZERO, Duration::from_millis(80));
            let mut pipe = FullPipe::default();
            (0..40).find(|round| {
                let kbit = 80_000 * (100 + growth_percent * round) / 100;
                model.bandwidth.update(Rate::from_bits_per_second(kbit * 1000), true);
                model.round = Round {
                    acked_bytes: model.gain_bytes(130),
                    queued_bytes: model.gain_bytes(queued_percent),
                    rtt_min: Some(Duration::from_millis(80)),
                    in_flight_min: Some(model.gain_bytes(40)),
                    is_app_limited: true,
                    ..Round::default()
                };
                pipe.on_ack(&model, 1500, true)
            })
        };
        assert_eq!(rounds_until_full(60, 0), Some(8), "the first round sets the baseline");
        assert_eq!(rounds_until_full(40, 0), None, "a short queue may be jitter");
        assert_eq!(rounds_until_full(60, 30), None, "it grows");
    }

    /// Behind a policer they are dropped instead, and each loss makes the flow's window smaller:
    /// the path is never in demand, and loses a third for as long as startup goes on.
    #[test]
    fn regression_bursts_that_are_dropped_end_a_startup_that_is_never_in_demand() {
        let rounds_until_full = |lost_segments: u64| {
            let mut model = Model::default();
            model.min_rtt.on_sample(Instant::ZERO, Duration::from_millis(10));
            model.bandwidth.update(Rate::from_mbit(60), true);
            let mut pipe = FullPipe::default();
            (0..40).find(|_| {
                model.round = Round {
                    acked_bytes: 60_000,
                    lost_bytes: lost_segments * 1500,
                    rtt_min: Some(Duration::from_millis(10)),
                    in_flight_min: Some(0),
                    is_app_limited: true,
                    ..Round::default()
                };
                pipe.on_ack(&model, 1500, true)
            })
        };
        assert_eq!(rounds_until_full(6), Some(8), "the first round sets the baseline");
        assert_eq!(rounds_until_full(4), None, "a bad radio loses as much");
    }
}
