//! Silence of a path: when it begins, how it is probed, when it ends (spec P-5).
//!
//! A path answers when an acknowledgement or an echo tells of something sent since the last such
//! evidence. What merely arrives on it proves the other direction only.

use super::MARK_DELAY;
use crate::path::SendPath;
use crate::time::{Duration, Instant, earlier};

/// No path is given up sooner, so that a hiccup of either machine is no death.
const SILENCE_MIN: Duration = Duration::from_millis(100);
/// Without another path there is nothing to gain from haste.
const LAST_PATH_SILENCE_MIN: Duration = Duration::from_millis(250);
/// A path that brings something and answers nothing is silent after this.
const HALF_ALIVE_MAX: Duration = Duration::from_secs(1);
/// Data that stays without an answer for this long, or a probe timeout, asks for a probe.
const UNANSWERED_MIN: Duration = Duration::from_millis(30);
/// Acknowledgements may be late by this much, or by an eighth of the round trip.
const ACK_DELAY: Duration = Duration::from_millis(10);
/// The first probe of a silent path repeats after this; the time doubles.
const PROBE_INTERVAL_FIRST: Duration = Duration::from_millis(50);
const PROBE_INTERVAL_ACTIVE_MAX: Duration = Duration::from_millis(800);
/// While a path is on its way back.
const PROBE_INTERVAL_RETURN: Duration = Duration::from_millis(100);
/// A path that died within this time before has to answer for longer before it is trusted.
const DAMPING_TIME: Duration = Duration::from_secs(30);
const HOLD_FIRST: Duration = Duration::from_millis(200);
const HOLD_MAX: Duration = Duration::from_secs(5);
/// Where what is lost is sent again: a run of losses silences a path that little is sent on, and a
/// rare probe finds the run's end late. A path trusted too soon costs a repair.
const PROBE_INTERVAL_REPAIRED_MAX: Duration = Duration::from_millis(50);
/// The first probes of such a path come this quickly, if that is no more than sixteen a round trip.
const PROBE_INTERVAL_REPAIRED_MIN: Duration = Duration::from_millis(10);
const QUICK_PROBES: u32 = 32;
const HOLD_REPAIRED_MAX: Duration = Duration::from_millis(200);

/// How long data may stay without an answer before a probe asks.
pub(crate) fn probe_after(path: &SendPath) -> Duration {
    (path.rtt.probe_timeout() + ack_delay(path)).max(UNANSWERED_MIN)
}

/// When the path counts as silent, as things stand; `None` while it owes no answer.
pub(crate) fn begins_at(path: &SendPath, others_up: bool) -> Option<Instant> {
    let since = path.awaiting_since?;
    // Longer while the other direction lives: then what went out and its answers may merely be
    // lost to a full queue.
    let unless_heard = |patience: Duration| {
        (since.max(path.heard_at) + patience).min(since + patience.max(HALF_ALIVE_MAX))
    };
    if !others_up {
        return Some(unless_heard(path.rtt.patience().max(LAST_PATH_SILENCE_MIN)));
    }
    let timeout = path.rtt.probe_timeout();
    let patience = |timeout: Duration| (timeout + ack_delay(path)).max(SILENCE_MIN);
    // With few datagrams out it takes two probes more to be sure.
    let few = unless_heard(patience(timeout * 3));
    let many = path.beyond_chance_since.map(|at| (since + patience(timeout)).max(at + MARK_DELAY));
    earlier(Some(few), many)
}

fn ack_delay(path: &SendPath) -> Duration {
    path.rtt.smoothed().map_or(ACK_DELAY, |srtt| (srtt / 8).max(ACK_DELAY))
}

/// The way of a silent path back, and the memory of earlier silences.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// The latest silence began.
    began_at: Option<Instant>,
    /// Silences, each within [`DAMPING_TIME`] of the one before.
    repeated: u32,
    /// Since when everything was answered again.
    answered_since: Option<Instant>,
    last_answer_at: Option<Instant>,
    probes: u32,
    /// What is lost on the path is sent again over another: the first probes come so far apart.
    repaired: Option<Duration>,
}

impl Silence {
    /// The path went silent. `repaired` is its round trip, if what is lost on it is sent again.
    pub(crate) fn begin(&mut self, now: Instant, repaired: Option<Duration>) {
        let interval = |rtt: Duration| {
            (rtt / 16).clamp(PROBE_INTERVAL_REPAIRED_MIN, PROBE_INTERVAL_REPAIRED_MAX)
        };
        self.repaired = repaired.map(interval);
        let again = self.began_at.is_some_and(|before| now < before + DAMPING_TIME);
        self.repeated = if again { self.repeated + 1 } else { 0 };
        self.began_at = Some(now);
        self.answered_since = None;
        self.probes = 0;
    }

    /// How long the path has to answer before it is trusted again.
    fn hold(&self) -> Duration {
        if self.repeated == 0 {
            Duration::ZERO
        } else {
            let longest = if self.repaired.is_some() { HOLD_REPAIRED_MAX } else { HOLD_MAX };
            (HOLD_FIRST * (1 << (self.repeated - 1).min(8))).min(longest)
        }
    }

    /// The silent path answered; says whether it is trusted again.
    pub(crate) fn answered(&mut self, now: Instant) -> bool {
        let gap = self.last_answer_at.is_none_or(|last| now >= last + PROBE_INTERVAL_RETURN * 4);
        if self.answered_since.is_none() || gap {
            self.answered_since = Some(now);
        }
        self.last_answer_at = Some(now);
        self.answered_since.is_some_and(|since| now >= since + self.hold())
    }

    /// The silent path answers, but not for long enough yet.
    pub(crate) fn is_ending(&self) -> bool {
        self.answered_since.is_some()
    }

    /// How long after the last probe the next one goes out; at most `longest`.
    pub(crate) fn probe_interval(&self, active: bool, longest: Duration) -> Duration {
        if self.answered_since.is_some() {
            return PROBE_INTERVAL_RETURN;
        }
        let doubled = PROBE_INTERVAL_FIRST * (1 << self.probes.min(16));
        doubled.min(match (active, self.repaired) {
            (false, _) => longest,
            (true, Some(quick)) if self.probes < QUICK_PROBES => quick,
            (true, Some(_)) => PROBE_INTERVAL_REPAIRED_MAX,
            (true, None) => PROBE_INTERVAL_ACTIVE_MAX,
        })
    }

    /// A probe went out.
    pub(crate) fn probed(&mut self, now: Instant) {
        self.probes = self.probes.saturating_add(1);
        let quiet = |last: Instant| now >= last + PROBE_INTERVAL_RETURN * 4;
        if self.answered_since.is_some() && self.last_answer_at.is_some_and(quiet) {
            self.answered_since = None;
        }
    }

    /// The bond has traffic again: probes come quickly.
    pub(crate) fn hurry(&mut self) {
        self.probes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn the_first_silence_ends_with_the_first_answer() {
        let mut silence = Silence::default();
        silence.begin(ms(1000), None);
        assert!(silence.answered(ms(1400)));
    }

    /// Spec P-5: silent less than 30 s before, it must answer for 0.2, 0.4 … s.
    #[test]
    fn a_path_that_flaps_is_held_longer_each_time() {
        let mut silence = Silence::default();
        silence.begin(ms(1000), None);
        assert!(silence.answered(ms(1400)));
        silence.begin(ms(2000), None);
        assert!(!silence.answered(ms(2100)));
        assert!(!silence.answered(ms(2250)));
        assert!(silence.answered(ms(2300)));
        silence.begin(ms(3000), None);
        let held = (0..).map(|n| 3100 + 100 * n).find(|n| silence.answered(ms(*n)));
        assert_eq!(held, Some(3500));
        silence.begin(ms(60_000), None);
        assert!(silence.answered(ms(60_100)), "long ago is forgotten");
    }

    /// Spec P-5: without a gap.
    #[test]
    fn a_missed_answer_begins_the_hold_anew() {
        let mut silence = Silence::default();
        silence.begin(ms(0), None);
        silence.begin(ms(100), None);
        assert!(!silence.answered(ms(200)));
        assert!(!silence.answered(ms(900)), "nothing for 700 ms");
        assert!(!silence.answered(ms(1000)));
        assert!(silence.answered(ms(1100)));
    }

    /// Spec P-5: after 50 ms, 100 ms … 0.8 s.
    #[test]
    fn probes_of_a_silent_path_grow_rare_and_rarer_without_traffic() {
        let mut silence = Silence::default();
        silence.begin(ms(0), None);
        let longest = Duration::from_secs(25);
        assert_eq!(silence.probe_interval(true, longest), PROBE_INTERVAL_FIRST);
        for n in 0..20 {
            silence.probed(ms(n));
        }
        assert_eq!(silence.probe_interval(true, longest), PROBE_INTERVAL_ACTIVE_MAX);
        assert_eq!(silence.probe_interval(false, longest), longest);
    }

    #[test]
    fn a_path_whose_losses_are_repaired_is_probed_and_trusted_soon() {
        let mut silence = Silence::default();
        for n in 0..10 {
            silence.begin(ms(1000 * n), Some(Duration::from_millis(320)));
        }
        let longest = Duration::from_secs(25);
        assert_eq!(silence.probe_interval(true, longest), Duration::from_millis(20));
        for n in 0..40 {
            silence.probed(ms(9000 + n));
        }
        assert_eq!(silence.probe_interval(true, longest), PROBE_INTERVAL_REPAIRED_MAX);
        assert_eq!(silence.probe_interval(false, longest), longest);
        assert!(!silence.answered(ms(9100)));
        assert!(silence.answered(ms(9300)));
    }
}
