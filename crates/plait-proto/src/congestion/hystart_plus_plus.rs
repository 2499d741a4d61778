//! HyStart++ (RFC 9406): a rise of the round-trip time slows the growth for some rounds before slow
//! start ends, and growth resumes if the rise was jitter.

use super::AckSample;
use super::rounds::Rounds;
use crate::time::Duration;

/// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Segments by which one acknowledgement may grow the window when packets are not paced.
const L_SEGMENTS: u64 = 8;

/// What an acknowledgement does to slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Grow by so many bytes.
    Grow(u64),
    /// Slow start is over.
    End,
}

/// The state of one slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HyStartPlusPlus {
    /// Least round-trip times of the round before and of this one.
    last_min_rtt: Option<Duration>,
    current_min_rtt: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

/// Conservative slow start (CSS).
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline_min_rtt: Duration,
    /// Rounds that have passed since it began.
    rounds: u32,
}

impl HyStartPlusPlus {
    /// Takes an acknowledgement (RFC 9406 section 4.2).
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        segment_bytes: u64,
        rounds: &mut Rounds,
    ) -> Step {
        self.take_sample(sample.rtt);
        self.judge_delay();
        if rounds.is_over(sample.newest) {
            rounds.begin();
            if self.end_round() {
                return Step::End;
            }
        }
        let growth = sample.acked_bytes.min(L_SEGMENTS * segment_bytes);
        let divisor = if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 };
        Step::Grow(growth / divisor)
    }

    fn take_sample(&mut self, rtt: Option<Duration>) {
        let Some(rtt) = rtt else { return };
        self.current_min_rtt = Some(self.current_min_rtt.map_or(rtt, |known| known.min(rtt)));
        self.samples += 1;
    }

    /// Enters conservative slow start when delay has risen, leaves it when delay has fallen again.
    fn judge_delay(&mut self) {
        let Some(current) = self.current_min_rtt.filter(|_| self.samples >= N_RTT_SAMPLE) else {
            return;
        };
        match (self.conservative, self.last_min_rtt) {
            (Some(css), _) if current < css.baseline_min_rtt => self.conservative = None,
            (None, Some(last)) if current >= last + threshold(last) => {
                self.conservative = Some(Conservative { baseline_min_rtt: current, rounds: 0 });
            }
            _ => {}
        }
    }

    /// Begins the next round; true when conservative slow start has had its rounds.
    fn end_round(&mut self) -> bool {
        self.last_min_rtt = self.current_min_rtt.take();
        self.samples = 0;
        let Some(css) = &mut self.conservative else { return false };
        css.rounds += 1;
        css.rounds >= CSS_ROUNDS
    }

    /// Whether growth is slowed.
    #[cfg(test)]
    pub(super) const fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }
}

fn threshold(min_rtt: Duration) -> Duration {
    (min_rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}
