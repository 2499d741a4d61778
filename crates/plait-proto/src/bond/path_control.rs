//! What keeps one path honest: its return-routability check, its probes, and the notice that
//! nothing comes back, that too much is lost, or that it may sleep.

use super::MARK_DELAY;
use super::loss::Loss;
use super::loss_check::{LossCheck, Step};
use super::probes::Probes;
use super::silence::{self, Silence};
use crate::path::SendPath;
use crate::stats::PathState;
use crate::time::{Duration, Instant, earlier};
use crate::wire::control::{PathInfo, Token};

/// First repetition of a challenge; it doubles up to [`CHALLENGE_INTERVAL_MAX`].
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(250);
const CHALLENGE_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// After so many without an answer the peer itself is in doubt.
const IGNORED_CHALLENGES: u32 = 3;
/// Probes while the bond carries traffic.
const PROBE_INTERVAL_ACTIVE: Duration = Duration::from_secs(1);
/// A metered path falls asleep when the bond has had no traffic for so long.
const SLEEP_AFTER: Duration = Duration::from_secs(10);

/// What a path wants to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Due {
    /// Send a challenge with this token.
    Challenge(Token),
    /// Send a probe with this id.
    Probe(u32),
    /// Nothing came back: the path is silent from now on.
    Silence,
    /// Its losses have ended.
    Healed,
    /// It is not needed now, and costs.
    Sleep,
    /// Send a mark: the path fell idle.
    Mark,
}

/// What the bond knows that matters to every path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// The bond carries traffic.
    pub(super) active: bool,
    /// When it last did.
    pub(super) last_data_at: Instant,
    /// An idle path sends something this often.
    pub(super) keepalive: Duration,
    /// Another path can carry data.
    pub(super) others_up: bool,
}

/// Control of one path.
#[derive(Debug)]
pub(super) struct PathControl {
    /// This side's link, told to the peer; `None` when the path is the peer's.
    pub(super) own_link: Option<PathInfo>,
    /// Bytes may flow: the peer answered from where it was asked.
    pub(super) validated: bool,
    /// The way back from silence.
    pub(super) silence: Silence,
    /// What the link loses.
    pub(super) loss: Loss,
    /// The way back from there.
    pub(super) loss_check: LossCheck,
    token: Token,
    challenged_at: Instant,
    challenges: u32,
    probes: Probes,
    last_probe_at: Instant,
    /// When data had last been sent before the last mark.
    marked_at_data: Option<Instant>,
}

impl PathControl {
    /// Control of a path whose first challenge is sent at once.
    pub(super) fn new(now: Instant, own_link: Option<PathInfo>, token: Token) -> Self {
        Self {
            own_link,
            validated: false,
            silence: Silence::default(),
            loss: Loss::default(),
            loss_check: LossCheck::default(),
            token,
            challenged_at: now,
            challenges: 1,
            probes: Probes::default(),
            last_probe_at: now,
            marked_at_data: None,
        }
    }

    pub(super) fn token(&self) -> Token {
        self.token
    }

    /// The path is to be checked again before it carries anything; the challenge is sent at once.
    pub(super) fn check_again(&mut self, now: Instant, token: Token) {
        self.validated = false;
        self.token = token;
        self.challenged_at = now;
        self.challenges = 1;
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

    /// Nobody answers the path's challenges: perhaps nobody has the session any more.
    pub(super) fn is_ignored(&self) -> bool {
        !self.validated && self.challenges >= IGNORED_CHALLENGES
    }

    /// An echo arrived; gives the round-trip time when it answers a probe under way.
    pub(super) fn echo(&mut self, now: Instant, id: u32) -> Option<Duration> {
        self.probes.echo(now, id)
    }

    /// Starts a probe out of turn or in turn.
    pub(super) fn start_probe(&mut self, now: Instant) -> u32 {
        self.last_probe_at = now;
        self.probes.start(now)
    }

    /// A path that nobody answered is asked rarely while nobody needs it.
    fn next_challenge_at(&self, situation: &Situation) -> Instant {
        let doubled = CHALLENGE_INTERVAL * (1 << self.challenges.saturating_sub(1).min(10));
        let longest = if situation.active { CHALLENGE_INTERVAL_MAX } else { situation.keepalive };
        self.challenged_at + doubled.min(longest)
    }

    /// One mark an idle period: it is due again only after data flowed again.
    fn mark_at(&self, path: &SendPath) -> Option<Instant> {
        let last = path.last_data_at?;
        (self.marked_at_data != Some(last)).then_some(last + MARK_DELAY)
    }

    /// When a path that is up sends its next probe. An idle one is kept open by its owner, who may
    /// be behind a NAT.
    fn probe_at(&self, path: &SendPath, situation: &Situation) -> Option<Instant> {
        let regular = if situation.active {
            Some(self.last_probe_at + PROBE_INTERVAL_ACTIVE)
        } else {
            self.own_link.as_ref().map(|_| self.last_probe_at + situation.keepalive)
        };
        let asked = path.awaiting_since.map(|since| since.max(self.last_probe_at));
        earlier(regular, asked.map(|asked| asked + silence::probe_after(path)))
    }

    /// Whoever had a path checked has a use for it, though data may take some time to come.
    fn sleep_at(&self, path: &SendPath, situation: &Situation) -> Option<Instant> {
        let needed_at = situation.last_data_at.max(self.challenged_at);
        path.info.metered.then_some(needed_at + SLEEP_AFTER)
    }

    /// When [`Self::due`] has something to say.
    pub(super) fn poll_timeout(&self, path: &SendPath, situation: &Situation) -> Option<Instant> {
        if path.state == PathState::Asleep {
            return None;
        }
        if !self.validated {
            return Some(self.next_challenge_at(situation));
        }
        let next = match path.state {
            PathState::Silent => Some(self.silent_probe_at(situation)),
            PathState::Lossy => situation.active.then(|| self.loss_check.poll_timeout()),
            _ => {
                let ends = earlier(
                    silence::begins_at(path, situation.others_up),
                    self.sleep_at(path, situation),
                );
                earlier(self.probe_at(path, situation), ends)
            }
        };
        earlier(next, self.mark_at(path))
    }

    fn silent_probe_at(&self, situation: &Situation) -> Instant {
        let interval = self.silence.probe_interval(situation.active, situation.keepalive);
        self.last_probe_at + interval
    }

    /// What is due now, if anything; call until `None`.
    pub(super) fn due(
        &mut self,
        now: Instant,
        path: &SendPath,
        situation: &Situation,
        fresh_token: impl FnOnce() -> Token,
    ) -> Option<Due> {
        if path.state == PathState::Asleep {
            return None;
        }
        if !self.validated {
            if now < self.next_challenge_at(situation) {
                return None;
            }
            self.token = fresh_token();
            self.challenged_at = now;
            self.challenges += 1;
            return Some(Due::Challenge(self.token));
        }
        if self.mark_at(path).is_some_and(|at| at <= now) {
            self.marked_at_data = path.last_data_at;
            return Some(Due::Mark);
        }
        match path.state {
            PathState::Silent => {
                if now < self.silent_probe_at(situation) {
                    return None;
                }
                self.silence.probed(now);
                Some(Due::Probe(self.start_probe(now)))
            }
            PathState::Lossy if situation.active => {
                match self.loss_check.step(now, path.rtt.patience())? {
                    Step::Probe => Some(Due::Probe(self.start_probe(now))),
                    Step::Healed => Some(Due::Healed),
                }
            }
            PathState::Up => self.due_while_up(now, path, situation),
            _ => None,
        }
    }

    fn due_while_up(
        &mut self,
        now: Instant,
        path: &SendPath,
        situation: &Situation,
    ) -> Option<Due> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(silence::begins_at(path, situation.others_up)) {
            return Some(Due::Silence);
        }
        if is_due(self.sleep_at(path, situation)) {
            return Some(Due::Sleep);
        }
        is_due(self.probe_at(path, situation)).then(|| Due::Probe(self.start_probe(now)))
    }
}
