//! Whether the bond with a peer carries, with some patience both ways, so that a path that comes
//! and goes does not move the host's routes each time.

use std::time::Duration;

use plait_proto::time::Instant;

/// Without a path for so long, the bond counts as down.
const DOWN_AFTER: Duration = Duration::from_millis(500);
/// With a path for so long, it counts as up again.
const UP_AFTER: Duration = Duration::from_secs(1);
/// What the first handshake may take.
const FIRST_TIME: Duration = Duration::from_secs(3);

/// What is known of a bond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Carries,
    /// No path carries; down from the time named on.
    Doubtful {
        until: Instant,
    },
    Down {
        since: Instant,
    },
    /// A path carries again; up from the time named on.
    Returning {
        since: Instant,
        until: Instant,
    },
}

/// A watch over one bond.
#[derive(Clone, Copy, Debug)]
pub(in crate::daemon) struct Watch(State);

impl Watch {
    /// A bond that is still to come.
    pub(in crate::daemon) fn new(now: Instant) -> Self {
        Self(State::Doubtful { until: now + FIRST_TIME })
    }

    /// Notes whether a path carries now; says whether the bond went down or came back.
    pub(in crate::daemon) fn note(&mut self, now: Instant, carries: bool) -> bool {
        let was_down = self.is_down();
        self.0 = match (self.0, carries) {
            (State::Carries | State::Doubtful { .. }, true) => State::Carries,
            (State::Carries, false) => State::Doubtful { until: now + DOWN_AFTER },
            (State::Doubtful { until }, false) if until <= now => State::Down { since: now },
            (State::Down { since }, true) => State::Returning { since, until: now + UP_AFTER },
            (State::Returning { until, .. }, true) if until <= now => State::Carries,
            (State::Returning { since, .. }, false) => State::Down { since },
            (same, _) => same,
        };
        was_down != self.is_down()
    }

    /// Whether the bond counts as down.
    pub(in crate::daemon) fn is_down(self) -> bool {
        self.down_since().is_some()
    }

    /// Since when it counts as down.
    pub(in crate::daemon) fn down_since(self) -> Option<Instant> {
        match self.0 {
            State::Down { since } | State::Returning { since, .. } => Some(since),
            State::Carries | State::Doubtful { .. } => None,
        }
    }

    /// Whether no path carries now, or none did a moment ago.
    pub(in crate::daemon) fn is_in_doubt(self) -> bool {
        self.0 != State::Carries
    }

    /// When [`Self::note`] may have another answer without anything having happened.
    pub(in crate::daemon) fn due_at(self) -> Option<Instant> {
        match self.0 {
            State::Doubtful { until } | State::Returning { until, .. } => Some(until),
            State::Carries | State::Down { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_bond_is_down_after_a_moment_without_a_path_and_up_after_one_with() {
        let mut watch = Watch::new(at(0));
        assert!(!watch.note(at(2999), false) && !watch.is_down());
        assert!(!watch.note(at(2999), true) && !watch.is_in_doubt());
        assert!(!watch.note(at(5000), false));
        assert_eq!(watch.due_at(), Some(at(5500)));
        assert!(!watch.note(at(5499), false) && watch.note(at(5500), false));
        assert_eq!(watch.down_since(), Some(at(5500)));
        assert!(!watch.note(at(9000), true) && watch.is_down());
        assert!(!watch.note(at(9900), false) && !watch.note(at(9901), true));
        assert!(!watch.note(at(10_900), true) && watch.note(at(10_901), true));
        assert!(!watch.is_down());
    }

    #[test]
    fn a_bond_that_never_comes_is_down_after_the_first_time() {
        let mut watch = Watch::new(at(0));
        assert!(!watch.note(at(0), false));
        assert!(watch.note(at(3000), false));
    }
}
