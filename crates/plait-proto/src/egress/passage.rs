//! How far each path has got in the bond's sequence, and so what can no longer come (spec R-3).

use crate::path::map::PathMap;
use crate::seq::{BondSeq, PathId};
use crate::time::{Duration, Instant, earlier};

/// A path has passed a number when this many datagrams came after the one that showed it.
const CONFIRMING_DATAGRAMS: usize = 3;
/// Confirmation time when the round-trip time is not known.
const CONFIRM_TIME_DEFAULT: Duration = Duration::from_millis(10);
/// What was in flight on a dead path comes over another within this time.
const RESCUE_GRACE: Duration = Duration::from_millis(200);
/// Shortest confirmation time.
const CONFIRM_TIME_MIN: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct Path {
    live: bool,
    /// It was found dead, and leaves the set then.
    leaves_at: Option<Instant>,
    /// One more than the highest number shown, after each of the last datagrams that are not yet
    /// confirmed; the oldest first.
    shown: [BondSeq; CONFIRMING_DATAGRAMS],
    shown_count: usize,
    last_at: Instant,
    /// Everything below was passed, and is confirmed.
    confirmed: BondSeq,
    confirm_time: Option<Duration>,
}

impl Path {
    fn highest(&self) -> BondSeq {
        self.shown[..self.shown_count].last().copied().unwrap_or(self.confirmed)
    }

    fn show(&mut self, passed: BondSeq) {
        let passed = passed.max(self.highest());
        if self.shown_count == CONFIRMING_DATAGRAMS {
            self.confirmed = self.shown[0];
            self.shown.rotate_left(1);
            self.shown_count -= 1;
        }
        self.shown[self.shown_count] = passed;
        self.shown_count += 1;
    }

    fn confirms_at(&self) -> Instant {
        self.last_at + self.confirm_time.unwrap_or(CONFIRM_TIME_DEFAULT)
    }
}

/// Follows every path's way through the sequence.
#[derive(Debug, Default)]
pub(super) struct Passage {
    paths: PathMap<Path>,
}

impl Passage {
    /// A datagram on `path` shows that nothing below `passed` follows on it.
    pub(super) fn show(&mut self, now: Instant, path: PathId, passed: BondSeq) {
        let path = self.paths.get_or_insert_with(path, Path::default);
        path.show(passed);
        path.last_at = now;
    }

    /// Says whether the path counts. A dead one leaves the set, but not before the peer had time to
    /// send anew what was in flight on it.
    pub(super) fn set_live(&mut self, now: Instant, path: PathId, live: bool) {
        let path = self.paths.get_or_insert_with(path, Path::default);
        if live {
            path.live = true;
            path.leaves_at = None;
        } else if path.live {
            path.leaves_at.get_or_insert(now + RESCUE_GRACE);
        }
    }

    /// Tells the path's round-trip time: an eighth of it confirms.
    pub(super) fn set_rtt(&mut self, path: PathId, srtt: Duration) {
        let time = (srtt / 8).max(CONFIRM_TIME_MIN);
        self.paths.get_or_insert_with(path, Path::default).confirm_time = Some(time);
    }

    /// Forgets a path.
    pub(super) fn remove(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    /// Below this number every live path has passed; `None` without live paths.
    pub(super) fn all_passed(&self) -> Option<BondSeq> {
        self.paths.values().filter(|path| path.live).map(|path| path.confirmed).min()
    }

    /// When time alone will confirm something.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let live = || self.paths.values().filter(|path| path.live);
        let unconfirmed = live().filter(|path| path.confirmed < path.highest());
        let leaving = live().filter_map(|path| path.leaves_at);
        earlier(unconfirmed.map(Path::confirms_at).min(), leaving.min())
    }

    /// Confirms what has stood long enough.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for path in self.paths.values_mut() {
            if path.leaves_at.is_some_and(|at| at <= now) {
                path.live = false;
                path.leaves_at = None;
            }
            if path.confirms_at() <= now {
                path.confirmed = path.highest();
                path.shown_count = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    fn passage() -> Passage {
        let mut passage = Passage::default();
        passage.set_live(Instant::ZERO, A, true);
        passage.set_live(Instant::ZERO, B, true);
        passage
    }

    /// Spec R-3.
    #[test]
    fn three_later_datagrams_confirm() {
        let mut passage = passage();
        passage.remove(B);
        for seq in [5, 6, 7] {
            passage.show(Instant::ZERO, A, BondSeq(seq));
            assert_eq!(passage.all_passed(), Some(BondSeq(0)));
        }
        passage.show(Instant::ZERO, A, BondSeq(8));
        assert_eq!(passage.all_passed(), Some(BondSeq(5)));
    }

    /// Spec R-3: an eighth of the round-trip time.
    #[test]
    fn time_confirms_too() {
        let mut passage = passage();
        passage.remove(B);
        passage.set_rtt(A, Duration::from_millis(80));
        passage.show(Instant::ZERO, A, BondSeq(5));
        assert_eq!(passage.poll_timeout(), Some(Instant::from_millis(10)));
        passage.handle_timeout(Instant::from_millis(9));
        assert_eq!(passage.all_passed(), Some(BondSeq(0)));
        passage.handle_timeout(Instant::from_millis(10));
        assert_eq!(passage.all_passed(), Some(BondSeq(5)));
        assert_eq!(passage.poll_timeout(), None);
    }

    /// Spec P-5a: 200 ms more.
    #[test]
    fn a_dead_path_leaves_when_its_packets_had_time_to_come_another_way() {
        let mut passage = passage();
        for seq in 1..=10 {
            passage.show(Instant::ZERO, A, BondSeq(seq));
        }
        passage.set_live(Instant::ZERO, B, false);
        passage.handle_timeout(Instant::from_millis(199));
        assert_eq!(passage.all_passed(), Some(BondSeq(0)));
        assert_eq!(passage.poll_timeout(), Some(Instant::from_millis(200)));
        passage.handle_timeout(Instant::from_millis(200));
        assert_eq!(passage.all_passed(), Some(BondSeq(10)));
    }

    /// Spec R-3: every live path.
    #[test]
    fn the_slowest_live_path_decides() {
        let mut passage = passage();
        for seq in 1..=10 {
            passage.show(Instant::ZERO, A, BondSeq(seq));
        }
        assert_eq!(passage.all_passed(), Some(BondSeq(0)));
        passage.remove(B);
        assert_eq!(passage.all_passed(), Some(BondSeq(7)));
    }
}
