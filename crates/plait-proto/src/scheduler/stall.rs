//! Notices that a path's window has stayed shut for longer than an acknowledgement takes, so that
//! nobody waits for a path that may be dead.

use super::by_path::ByPath;
use super::delivery::{ack_interval, smoothed_rtt};
use super::{PathId, PathView, View};
use crate::time::{Duration, Instant};

/// Since when each path's window has been shut.
#[derive(Debug, Default)]
pub(super) struct Stalls(ByPath<Option<Instant>>);

impl Stalls {
    /// Looks at all paths; to be called with every decision.
    pub(super) fn watch(&mut self, view: &View<'_>, bytes: u64) {
        for path in view.paths {
            let shut_since = self.0.touch(path.id);
            if path.has_window(bytes) {
                *shut_since = None;
            } else {
                shut_since.get_or_insert(view.now);
            }
        }
    }

    /// How long the path's window has been shut.
    fn shut_for(&self, path: PathId, now: Instant) -> Duration {
        let since = self.0.get(path).copied().flatten();
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Whether an acknowledgement is overdue: a smoothed round trip, four deviations (RFC 6298's
    /// timeout) and two intervals of acknowledgements have passed since the window shut.
    pub(super) fn is_stalled(&self, path: &PathView, now: Instant) -> bool {
        let rtt = smoothed_rtt(path);
        let patience = rtt + path.rtt_variation.unwrap_or(rtt / 4) * 4 + ack_interval(path) * 2;
        self.shut_for(path.id, now) > patience
    }

    /// Whether the window has been shut for two intervals of acknowledgements: longer than what
    /// should have opened it takes.
    pub(super) fn is_slow_to_open(&self, path: &PathView, now: Instant) -> bool {
        self.shut_for(path.id, now) > ack_interval(path) * 2
    }

    pub(super) fn forget(&mut self, path: PathId) {
        self.0.forget(path);
    }
}
