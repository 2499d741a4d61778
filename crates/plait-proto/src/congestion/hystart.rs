//! HyStart: ends slow start at the first sign of a queue (Ha and Rhee, "Taming the elephants: new
//! TCP slow start", Computer Networks 55(9), 2011, section 4), with the constants of Linux's CUBIC.

use super::AckSample;
use super::rounds::Rounds;
use crate::time::{Duration, Instant};

/// Below this window nothing is judged, in segments.
const LOW_WINDOW_SEGMENTS: u64 = 16;
/// Samples of a round that are taken before its delay is judged.
const MIN_SAMPLES: u32 = 8;
const THRESHOLD_MIN: Duration = Duration::from_millis(4);
const THRESHOLD_MAX: Duration = Duration::from_millis(16);
/// Acknowledgements of one train lie at most this far apart.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// What Linux (since 5.5, `hystart_ack_delay`) grants for segments that are sent and received in
/// aggregates; less only above a gigabit per second.
const AGGREGATION_DELAY: Duration = Duration::from_millis(1);

/// The state of one slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStart {
    /// Least round-trip time since the start.
    min_rtt: Option<Duration>,
    round: Round,
}

#[derive(Clone, Copy, Debug, Default)]
struct Round {
    start: Instant,
    /// The latest acknowledgement of the train.
    train_end: Instant,
    min_rtt: Option<Duration>,
    samples: u32,
}

impl HyStart {
    /// Whether slow start should end now.
    pub(super) fn should_end(
        &mut self,
        sample: &AckSample<'_>,
        window_segments: u64,
        rounds: &mut Rounds,
    ) -> bool {
        let Some(rtt) = sample.rtt else { return false };
        let min_rtt = self.min_rtt.map_or(rtt, |known| known.min(rtt));
        self.min_rtt = Some(min_rtt);
        // A round ends with a cumulative acknowledgement where there are such. The newest packet
        // would end it too early where packets overtake each other: trains would be cut.
        if rounds.is_past(sample.in_order.unwrap_or(sample.newest)) {
            rounds.begin();
            self.round = Round { start: sample.now, train_end: sample.now, ..Round::default() };
        }
        // Rounds are counted from the first one on, so that each begins with a burst's first
        // acknowledgement, not with whichever finds the window large enough.
        if window_segments < LOW_WINDOW_SEGMENTS {
            return false;
        }
        let train = self.round.train_spans(sample.now, (min_rtt + AGGREGATION_DELAY) / 2);
        let delay = self.round.delay_exceeds(rtt, min_rtt + threshold(min_rtt));
        train || delay
    }
}

impl Round {
    /// Extends the train of acknowledgements and tells whether it lasts longer than `span`.
    fn train_spans(&mut self, now: Instant, span: Duration) -> bool {
        if now.since(self.train_end) > TRAIN_GAP {
            return false;
        }
        self.train_end = now;
        now.since(self.start) > span
    }

    /// Takes a sample and tells whether even the least delay of the round is above `limit`.
    fn delay_exceeds(&mut self, rtt: Duration, limit: Duration) -> bool {
        let min_rtt = self.min_rtt.map_or(rtt, |known| known.min(rtt));
        self.min_rtt = Some(min_rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        min_rtt > limit
    }
}

/// By how much the round-trip time must rise.
fn threshold(min_rtt: Duration) -> Duration {
    (min_rtt / 8).clamp(THRESHOLD_MIN, THRESHOLD_MAX)
}
