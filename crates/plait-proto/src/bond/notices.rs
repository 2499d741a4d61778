//! News of this side that the peer must not miss. Control datagrams are not acknowledged,
//! so each is told three times: on every path that works it arrives, or the path does not work.

use crate::seq::PathId;
use crate::time::{Duration, Instant};

/// Waiting times after the first and the second time.
const REPEAT_AFTER: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// What the peer is to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Notice {
    /// This side removed the path.
    Closed(PathId),
    /// The link below the path has another description.
    Changed(PathId),
    /// What this side runs.
    Release,
}

impl Notice {
    const fn path(self) -> Option<PathId> {
        match self {
            Self::Closed(id) | Self::Changed(id) => Some(id),
            Self::Release => None,
        }
    }
}

#[derive(Debug)]
struct Pending {
    notice: Notice,
    told: usize,
    next_at: Instant,
}

/// The notices under way.
#[derive(Debug, Default)]
pub(super) struct Notices {
    pending: Vec<Pending>,
}

impl Notices {
    /// To be told from now on. Forgets what it makes untrue.
    pub(super) fn add(&mut self, now: Instant, notice: Notice) {
        if let Some(id) = notice.path() {
            self.forget(id);
        }
        self.pending.push(Pending { notice, told: 0, next_at: now });
    }

    /// A path is gone, or another has its id.
    pub(super) fn forget(&mut self, id: PathId) {
        self.pending.retain(|pending| pending.notice.path() != Some(id));
    }

    /// Whether the notice is under way.
    pub(super) fn holds(&self, notice: Notice) -> bool {
        self.pending.iter().any(|pending| pending.notice == notice)
    }

    /// When [`Self::due`] has something to tell.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.pending.iter().map(|pending| pending.next_at).min()
    }

    /// What is to be told now.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Notice> {
        let mut due = Vec::new();
        self.pending.retain_mut(|pending| {
            if pending.next_at > now {
                return true;
            }
            due.push(pending.notice);
            let Some(wait) = REPEAT_AFTER.get(pending.told) else { return false };
            pending.told += 1;
            pending.next_at = now + *wait;
            true
        });
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec P-8, C-3: at once, after 250 ms and after another second.
    #[test]
    fn a_notice_is_told_three_times() {
        let mut notices = Notices::default();
        notices.add(Instant::ZERO, Notice::Changed(PathId(2)));
        notices.add(Instant::ZERO, Notice::Closed(PathId(2)));
        let mut told = Vec::new();
        while let Some(at) = notices.poll_timeout() {
            told.extend(notices.due(at).into_iter().map(|notice| (at, notice)));
        }
        let at = [0, 250, 1250].map(Instant::from_millis);
        assert_eq!(told, at.map(|at| (at, Notice::Closed(PathId(2)))));
    }
}
