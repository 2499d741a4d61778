//! What keeps one path honest: its return-routability check, its probes, and the notice that
//! nothing comes back.

use super::MARK_DELAY;
use crate::path::SendPath;
use crate::seq::BondSeq;
use crate::time::{Duration, Instant};
use crate::wire::control::{PathInfo, Token};

/// First repetition of a challenge; it doubles up to [`CHALLENGE_INTERVAL_MAX`].
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(250);
const CHALLENGE_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// Probes of a silent path.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Data that stays without an answer for this long, or a probe timeout, asks for a probe.
const UNANSWERED_MIN: Duration = Duration::from_millis(250);
/// A path is silent when nothing came back for this long, or three probe timeouts if longer.
const SILENCE_MIN: Duration = Duration::from_millis(1000);

/// A probe under way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    id: u32,
    sent_at: Instant,
}

/// What a path wants to send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// A challenge with this token.
    Challenge(Token),
    /// A probe with this id.
    Probe(u32),
    /// Nothing came back: the path is silent from now on.
    Silence,
    /// A mark: the path fell idle.
    Mark,
}

/// Control of one path.
#[derive(Debug)]
pub(super) struct PathControl {
    /// This side's link, told to the peer; `None` when the path is the peer's.
    pub(super) own_link: Option<PathInfo>,
    /// Bytes may flow: the peer answered from where it was asked.
    pub(super) validated: bool,
    token: Token,
    challenged_at: Instant,
    challenges: u32,
    probe: Option<Probe>,
    next_probe_id: u32,
    last_probe_at: Instant,
    /// What the last mark announced, and when data had last been sent then.
    marked: BondSeq,
    marked_at_data: Option<Instant>,
}

impl PathControl {
    /// Control of a path whose first challenge is sent at once.
    pub(super) fn new(now: Instant, own_link: Option<PathInfo>, token: Token) -> Self {
        Self {
            own_link,
            validated: false,
            token,
            challenged_at: now,
            challenges: 1,
            probe: None,
            next_probe_id: 0,
            last_probe_at: now,
            marked: BondSeq(0),
            marked_at_data: None,
        }
    }

    pub(super) fn token(&self) -> Token {
        self.token
    }

    /// A response arrived; gives the round-trip time when it answers the open challenge.
    pub(super) fn validate(&mut self, now: Instant, token: Token) -> Option<Duration> {
        if self.validated || token != self.token {
            return None;
        }
        self.validated = true;
        self.last_probe_at = now;
        Some(now.since(self.challenged_at))
    }

    /// An echo arrived; gives the round-trip time when it answers the open probe.
    pub(super) fn echo(&mut self, now: Instant, id: u32) -> Option<Duration> {
        let probe = self.probe.take_if(|probe| probe.id == id)?;
        Some(now.since(probe.sent_at))
    }

    fn next_challenge_at(&self) -> Instant {
        let doubled = CHALLENGE_INTERVAL * (1 << self.challenges.saturating_sub(1).min(5));
        self.challenged_at + doubled.min(CHALLENGE_INTERVAL_MAX)
    }

    fn silent_at(path: &SendPath) -> Option<Instant> {
        path.awaiting_since.map(|since| since + path.rtt.patience().max(SILENCE_MIN))
    }

    /// One mark an idle period: it is due again only after data flowed again.
    fn mark_at(&self, path: &SendPath, next_seq: BondSeq) -> Option<Instant> {
        let last = path.last_data_at?;
        (self.marked < next_seq && self.marked_at_data != Some(last)).then_some(last + MARK_DELAY)
    }

    /// When [`Self::due`] has something to say.
    pub(super) fn poll_timeout(
        &self,
        path: &SendPath,
        silent: bool,
        next_seq: BondSeq,
        probe_interval: Duration,
    ) -> Instant {
        if !self.validated {
            return self.next_challenge_at();
        }
        let mut next = self.last_probe_at + if silent { PROBE_INTERVAL } else { probe_interval };
        if let Some(mark_at) = self.mark_at(path, next_seq) {
            next = next.min(mark_at);
        }
        // What comes of data without an answer comes no sooner than this, and mostly a mark does.
        if !silent && path.awaiting_since.is_some_and(|since| since + UNANSWERED_MIN < next) {
            next = next.min(self.probe_at(path, silent, probe_interval));
            next = Self::silent_at(path).map_or(next, |silent_at| silent_at.min(next));
        }
        next
    }

    /// Probes come at their interval, and early when data stays without an answer.
    fn probe_at(&self, path: &SendPath, silent: bool, interval: Duration) -> Instant {
        let regular = self.last_probe_at + if silent { PROBE_INTERVAL } else { interval };
        match path.awaiting_since {
            Some(since) if !silent && self.last_probe_at < since => {
                regular.min(since + path.rtt.probe_timeout().max(UNANSWERED_MIN))
            }
            _ => regular,
        }
    }

    /// What is due now, if anything; call until `None`.
    pub(super) fn due(
        &mut self,
        now: Instant,
        path: &SendPath,
        silent: bool,
        next_seq: BondSeq,
        probe_interval: Duration,
        fresh_token: impl FnOnce() -> Token,
    ) -> Option<Due> {
        if !self.validated {
            if now < self.next_challenge_at() {
                return None;
            }
            self.token = fresh_token();
            self.challenged_at = now;
            self.challenges += 1;
            return Some(Due::Challenge(self.token));
        }
        if !silent && Self::silent_at(path).is_some_and(|at| at <= now) {
            return Some(Due::Silence);
        }
        if self.mark_at(path, next_seq).is_some_and(|at| at <= now) {
            self.marked = next_seq;
            self.marked_at_data = path.last_data_at;
            return Some(Due::Mark);
        }
        if self.probe_at(path, silent, probe_interval) <= now {
            return Some(Due::Probe(self.start_probe(now)));
        }
        None
    }

    /// Starts a probe out of turn or in turn.
    pub(super) fn start_probe(&mut self, now: Instant) -> u32 {
        let id = self.next_probe_id;
        self.next_probe_id = id.wrapping_add(1);
        self.probe = Some(Probe { id, sent_at: now });
        self.last_probe_at = now;
        id
    }
}
