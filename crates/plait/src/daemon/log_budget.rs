//! Limits how many log lines a peer may cause. A peer can make paths come, go and move as often as
//! it likes; without a limit it could fill the disk, or crowd out of the log what others need to
//! see.

use std::collections::BTreeMap;
use std::time::Duration;

use plait_net::clock::Clock;

/// Lines at once: more than a bond of eight paths causes when all links come and go.
const LINES_AT_ONCE: u32 = 40;
/// After those, one line per interval.
const LINE_INTERVAL: Duration = Duration::from_secs(5);
/// Peers that are tracked; as many as a configuration may have.
const PEERS_MAX: usize = 4096;

/// The lines of each peer `K`.
#[derive(Debug)]
pub(super) struct LogBudget<K> {
    clock: Clock,
    peers: BTreeMap<K, Lines>,
}

#[derive(Clone, Copy, Default, Debug)]
struct Lines {
    /// When there will be room for all lines at once again (GCRA, ITU-T I.371).
    full_at: Duration,
    left_out: u64,
}

/// What happens to a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is written, after a note that so many were left out before.
    Write { left_out: u64 },
    /// It is left out; and whether it is the first.
    LeaveOut { is_first: bool },
}

impl<K> Default for LogBudget<K> {
    fn default() -> Self {
        Self { clock: Clock::start(), peers: BTreeMap::new() }
    }
}

impl<K: Ord + Clone> LogBudget<K> {
    /// Whether one more line of `peer` is written.
    pub(super) fn take(&mut self, peer: &K) -> Verdict {
        self.take_at(self.clock.elapsed(), peer)
    }

    fn take_at(&mut self, now: Duration, peer: &K) -> Verdict {
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(peer) {
            // Forgets peers of earlier configurations, and those long silent.
            self.peers.retain(|_, lines| lines.full_at > now);
        }
        let lines = self.peers.entry(peer.clone()).or_default();
        let full_at = lines.full_at.max(now);
        if full_at - now > LINE_INTERVAL * (LINES_AT_ONCE - 1) {
            lines.left_out += 1;
            return Verdict::LeaveOut { is_first: lines.left_out == 1 };
        }
        lines.full_at = full_at + LINE_INTERVAL;
        Verdict::Write { left_out: std::mem::take(&mut lines.left_out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(budget: &mut LogBudget<u8>, from_ms: u64, lines: u64, peer: u8) -> usize {
        let at = |line| Duration::from_millis(from_ms + line);
        let verdicts = (0..lines).map(|line| budget.take_at(at(line), &peer));
        verdicts.filter(|verdict| matches!(verdict, Verdict::Write { .. })).count()
    }

    #[test]
    fn regression_a_peer_writes_no_more_than_its_lines_and_others_keep_theirs() {
        let mut budget = LogBudget::default();
        // A path that moves a thousand times a second, for an hour.
        assert_eq!(written(&mut budget, 0, 3_600_000, 1), 40 + 3600 / 5 - 1);
        assert_eq!(written(&mut budget, 3_600_000, 40, 2), 40);
    }

    #[test]
    fn what_was_left_out_is_told_once_and_counted() {
        let mut budget = LogBudget::default();
        assert_eq!(written(&mut budget, 0, 40, 1), 40);
        let now = Duration::from_secs(1);
        assert_eq!(budget.take_at(now, &1), Verdict::LeaveOut { is_first: true });
        assert_eq!(budget.take_at(now, &1), Verdict::LeaveOut { is_first: false });
        let later = now + LINE_INTERVAL;
        assert_eq!(budget.take_at(later, &1), Verdict::Write { left_out: 2 });
        let at_rest = later + LINE_INTERVAL * LINES_AT_ONCE;
        assert_eq!(written(&mut budget, at_rest.as_millis() as u64, 100, 1), 40, "full again");
    }

    #[test]
    fn peers_are_bounded() {
        let mut budget = LogBudget::default();
        for peer in 0..3 * PEERS_MAX {
            let now = Duration::from_secs(peer as u64);
            assert!(matches!(budget.take_at(now, &peer), Verdict::Write { left_out: 0 }));
            assert!(budget.peers.len() <= PEERS_MAX);
        }
    }
}
