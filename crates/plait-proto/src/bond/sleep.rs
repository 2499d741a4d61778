//! Sleep of a whole bond: no path needs anything, so nothing is sent (spec P-5c).

use super::Bond;
use crate::seq::PathId;
use crate::stats::PathState;
use crate::time::Instant;

impl Bond {
    /// Whether there are paths and every one of them sleeps.
    pub fn is_asleep(&self) -> bool {
        let mut paths = self.ingress.paths().peekable();
        self.any_asleep
            && paths.peek().is_some()
            && paths.all(|path| path.state == PathState::Asleep)
    }

    /// Checks every sleeping path again.
    pub(super) fn wake_all(&mut self, now: Instant) {
        let asleep = self.ingress.paths().filter(|path| path.state == PathState::Asleep);
        let asleep: Vec<PathId> = asleep.map(|path| path.id).collect();
        for id in asleep {
            self.wake(now, id);
        }
        self.any_asleep = false;
    }
}
