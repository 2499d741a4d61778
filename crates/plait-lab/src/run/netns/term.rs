//! How long an application on real sockets works. Its threads sleep in the kernel, and wake up now
//! and then to look whether it is over.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plait_proto::time::Instant;

use crate::emulator::Epoch;

/// Longest sleep in a call: how soon a stop is noticed.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Term {
    epoch: Epoch,
    stop: Instant,
    quit: AtomicBool,
}

impl Term {
    /// Until `stop`, or until [`Self::quit`] is called.
    pub(super) fn until(stop: Instant, epoch: Epoch) -> Self {
        Self { epoch, stop, quit: AtomicBool::new(false) }
    }

    pub(super) fn now(&self) -> Instant {
        self.epoch.now()
    }

    pub(super) fn stop(&self) -> Instant {
        self.stop
    }

    pub(super) fn quit(&self) {
        self.quit.store(true, Ordering::Relaxed);
    }

    /// Whether it is not over.
    pub(super) fn goes_on(&self) -> bool {
        !self.quits() && self.now() < self.stop
    }

    /// Sleeps until `at`; says whether it was reached.
    pub(super) fn wait_until(&self, at: Instant) -> bool {
        loop {
            let left = at.since(self.now());
            if left.is_zero() || self.quits() {
                return left.is_zero();
            }
            std::thread::sleep(left.min(SLEEP_MAX));
        }
    }

    fn quits(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
    }
}

/// Whether a call ended only to look at the clock.
pub(super) fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
