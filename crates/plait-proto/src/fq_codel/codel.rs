//! Controlled delay (RFC 8289): when packets have waited longer than the target for a whole
//! interval, their flow is told to slow down, and then ever more often until they no longer do.
//!
//! It sees one packet at a time, as it leaves, and says what is to happen with it. It knows no
//! queue.

use crate::time::{Duration, Instant};

/// A dropping state that begins sooner after the one before takes its rate of signals up again
/// (RFC 8289 §5.5).
const RESUME_INTERVALS: u32 = 16;

/// What delay is too much, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Acceptable standing delay (RFC 8289 §4.4).
    pub target: Duration,
    /// Time in which a queue that is merely a burst has drained: about the longest round trip of
    /// what is in the queue (RFC 8289 §4.3).
    pub interval: Duration,
}

/// What is to happen with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is sent.
    Pass,
    /// Its sender is to slow down: it is marked and sent, or dropped and the next one judged.
    Signal,
}

/// The state of one queue: that of the pseudocode in RFC 8289 §5.
#[derive(Clone, Debug, Default)]
pub struct Codel {
    /// When the delay will have been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    /// Between the first signal and the first packet that waited less than the target.
    dropping: bool,
    /// When the next signal is due, or would have been when the dropping state ended.
    signal_next: Instant,
    /// Signals in this dropping state, those it took over from the last included.
    count: u32,
    /// `count` at the start of the dropping state.
    count_first: u32,
}

impl Codel {
    /// Judges the packet at the head after its `delay` in the queue, as it is about to leave.
    /// `is_last` says that no more than one full packet waits behind it, which is no standing queue
    /// however slow the link (RFC 8289 §5.6).
    pub fn judge(
        &mut self,
        now: Instant,
        delay: Duration,
        is_last: bool,
        parameters: &Parameters,
    ) -> Verdict {
        let above = self.is_above(now, delay, is_last, parameters);
        if !self.dropping {
            if above {
                self.enter_dropping(now, parameters.interval);
                return Verdict::Signal;
            }
            return Verdict::Pass;
        }
        self.dropping = above;
        if !above || now < self.signal_next {
            return Verdict::Pass;
        }
        self.count = self.count.saturating_add(1);
        self.signal_next += spacing(parameters.interval, self.count);
        Verdict::Signal
    }

    /// The queue had nothing when a packet was to leave: there is no delay.
    pub fn on_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    fn is_above(
        &mut self,
        now: Instant,
        delay: Duration,
        is_last: bool,
        parameters: &Parameters,
    ) -> bool {
        if delay < parameters.target || is_last {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(at) => now >= at,
            None => {
                self.first_above = Some(now + parameters.interval);
                false
            }
        }
    }

    fn enter_dropping(&mut self, now: Instant, interval: Duration) {
        let last = self.count - self.count_first;
        let soon = now.since(self.signal_next) < interval * RESUME_INTERVALS;
        self.count = if last > 1 && soon { last } else { 1 };
        self.count_first = self.count;
        self.signal_next = now + spacing(interval, self.count);
        self.dropping = true;
    }
}

/// Time between signals: the interval over the square root of their count (RFC 8289 §5.3), rounded
/// down. TCP's rate falls with the square root of the loss rate, so this takes it down linearly
/// (RFC 8289 §3.3).
fn spacing(interval: Duration, count: u32) -> Duration {
    let nanos = interval.as_nanos();
    let spacing = (nanos * nanos / u128::from(count.max(1))).isqrt();
    Duration::from_nanos(u64::try_from(spacing).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters =
        Parameters { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The milliseconds of `range` in which the packet that leaves then, after this delay, is a
    /// signal. A dropped packet is followed by another with the same delay.
    fn signals(codel: &mut Codel, range: core::ops::Range<u64>, delay: Duration) -> Vec<u64> {
        let mut at = Vec::new();
        for now in range {
            while codel.judge(Instant::from_millis(now), delay, false, &PARAMETERS)
                == Verdict::Signal
            {
                at.push(now);
            }
        }
        at
    }

    #[test]
    fn spacing_falls_with_the_root_of_the_count() {
        let counts = [1, 2, 4, 100, 10_000].map(|count| spacing(ms(100), count).as_micros());
        assert_eq!(counts, [100_000, 70_710, 50_000, 10_000, 1_000]);
        assert_eq!(spacing(ms(1 << 40), 1), ms(1 << 40).min(Duration::from_nanos(u64::MAX)));
    }

    /// Golden: sums of 100 ms / √n after the first signal, each at the next whole millisecond.
    #[test]
    fn signals_follow_the_control_law() {
        let mut codel = Codel::default();
        let at = signals(&mut codel, 0..1001, ms(20));
        let expected = [
            100, 200, 271, 329, 379, 424, 464, 502, 538, 571, 603, 633, 662, 689, 716, 742, 767,
            791, 815, 838, 860, 882, 903, 924, 944, 964, 984,
        ];
        assert_eq!(at, expected);
    }

    #[test]
    fn delay_below_the_target_gives_no_signal() {
        let just_below = PARAMETERS.target - Duration::from_nanos(1);
        assert_eq!(signals(&mut Codel::default(), 0..10_000, just_below), []);
        assert_eq!(signals(&mut Codel::default(), 0..101, PARAMETERS.target), [100]);
    }

    #[test]
    fn one_short_delay_begins_the_interval_anew() {
        let mut codel = Codel::default();
        assert_eq!(signals(&mut codel, 0..99, ms(20)), []);
        assert_eq!(signals(&mut codel, 99..100, ms(1)), []);
        assert_eq!(signals(&mut codel, 100..201, ms(20)), [200]);
    }

    #[test]
    fn an_empty_queue_begins_the_interval_anew() {
        let mut codel = Codel::default();
        assert_eq!(signals(&mut codel, 0..150, ms(20)), [100]);
        codel.on_empty();
        assert_eq!(signals(&mut codel, 150..251, ms(20)), [250]);
    }

    #[test]
    fn the_last_packet_is_no_standing_queue() {
        let mut codel = Codel::default();
        for now in 0..1000 {
            let verdict = codel.judge(Instant::from_millis(now), ms(500), true, &PARAMETERS);
            assert_eq!(verdict, Verdict::Pass);
        }
    }

    #[test]
    fn a_queue_that_comes_right_back_meets_the_rate_it_left() {
        let after = |pause_ms: u64| {
            let mut codel = Codel::default();
            assert_eq!(signals(&mut codel, 0..400, ms(20)).len(), 5);
            codel.on_empty();
            let begin = 400 + pause_ms;
            let at = signals(&mut codel, begin..begin + 300, ms(20));
            at.iter().map(|now| now - begin).collect::<Vec<_>>()
        };
        assert_eq!(after(1000), [100, 150, 195, 236, 274], "from a count of 4 on");
        assert_eq!(after(2000), [100, 200, 271], "from 1 on");
    }
}
