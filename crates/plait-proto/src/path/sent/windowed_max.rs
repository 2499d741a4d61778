//! The highest delivery rate of the last second.

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// How long a delivery rate counts.
const RATE_WINDOW: Duration = Duration::from_secs(1);

/// The maximum over two half windows: cheap, and late by at most half a window.
#[derive(Debug, Default)]
pub(super) struct WindowedMax {
    current: Rate,
    previous: Rate,
    since: Instant,
}

impl WindowedMax {
    /// `bytes` arrived in `interval`.
    pub(super) fn update(&mut self, now: Instant, bytes: u64, interval: Duration) {
        if now.since(self.since) >= RATE_WINDOW / 2 {
            self.previous = self.current;
            self.current = Rate::ZERO;
            self.since = now;
        }
        // One of many is the highest, and a division costs more than all else here.
        if self.current.bytes_in(interval) <= bytes {
            self.current = self.current.max(Rate::from_bytes_over(bytes, interval));
        }
    }

    pub(super) fn get(&self) -> Rate {
        self.current.max(self.previous)
    }
}
