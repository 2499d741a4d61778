//! What keeps one path honest: its return-routability check, its probes, and the notice that
//! nothing comes back, that too much is lost, or that it may sleep.

pub(crate) mod loss;
pub(crate) mod loss_check;
mod probes;
pub(crate) mod silence;

use loss::Loss;
use loss_check::{LossCheck, Step};
use probes::Probes;
use silence::Silence;

use super::SendPath;
use crate::stats::PathState;
use crate::time::{Duration, Instant, earlier};
use crate::wire::control::{PathInfo, Token};

/// A path that has carried no data for this long tells the peer how far the bond is.
pub(crate) const MARK_DELAY: Duration = Duration::from_millis(10);
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
pub(crate) enum Due {
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
pub(crate) struct Situation {
    /// The bond carries traffic.
    pub(crate) active: bool,
    /// When it last did.
    pub(crate) last_data_at: Instant,
    /// An idle path sends something this often.
    pub(crate) keepalive: Duration,
    /// Another path can carry data.
    pub(crate) others_up: bool,
}

/// Control of one path.
#[derive(Debug)]
pub(crate) struct PathControl {
    /// This side's link, told to the peer; `None` when the path is the peer's.
    pub(crate) own_link: Option<PathInfo>,
    /// Bytes may flow: the peer answered from where it was asked.
    pub(crate) validated: bool,
    /// The way back from silence.
    pub(crate) silence: Silence,
    /// What the link loses.
    pub(crate) loss: Loss,
    /// The way back from there.
    pub(crate) loss_check: LossCheck,
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
    pub(crate) fn new(now: Instant, own_link: Option<PathInfo>, token: Token) -> Self {
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

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// The path is to be checked again before it carries anything; the challenge is sent at once.
    pub(crate) fn check_again(&mut self, now: Instant, token: Token) {
        self.validated = false;
        self.token = token;
        self.challenged_at = now;
        self.challenges = 1;
    }

    /// A response arrived; gives the round-trip time when it answers the open challenge.
    pub(crate) fn validate(&mut self, now: Instant, token: Token) -> Option<Duration> {
        if self.validated || token != self.token {
            return None;
        }
        self.validated = true;
        self.last_probe_at = now;
        Some(now.since(self.challenged_at))
    }

    /// Nobody answers the path's challenges: perhaps nobody has the session any more.
    pub(crate) fn is_ignored(&self) -> bool {
        !self.validated && self.challenges >= IGNORED_CHALLENGES
    }

    /// An echo arrived; gives the round-trip time when it answers a probe under way.
    pub(crate) fn echo(&mut self, now: Instant, id: u32) -> Option<Duration> {
        self.probes.echo(now, id)
    }

    /// Starts a probe out of turn or in turn.
    pub(crate) fn start_probe(&mut self, now: Instant) -> u32 {
        self.last_probe_at = now;
        self.probes.start(now)
    }

    /// A path that nobody answered is asked rarely while nobody needs it.
    fn next_challenge_at(&self, situation: &Situation) -> Instant {
        let doubled = CHALLENGE_INTERVAL * (1 << self.challenges.saturating_sub(1).min(10));
        let longest = if situation.active { CHALLENGE_INTERVAL_MAX } else { situation.keepalive };
        self.challenged_at + doubled.min(longest)
    }

    fn silent_probe_at(&self, situation: &Situation) -> Instant {
        let interval = self.silence.probe_interval(situation.active, situation.keepalive);
        self.last_probe_at + interval
    }
}

impl SendPath {
    /// One mark an idle period: it is due again only after data flowed again.
    fn mark_at(&self) -> Option<Instant> {
        let last = self.last_data_at?;
        (self.control.marked_at_data != Some(last)).then_some(last + MARK_DELAY)
    }

    /// When a path that is up sends its next probe. An idle one is kept open by its owner, who may
    /// be behind a NAT.
    fn probe_at(&self, situation: &Situation) -> Option<Instant> {
        let last_probe_at = self.control.last_probe_at;
        let regular = if situation.active {
            Some(last_probe_at + PROBE_INTERVAL_ACTIVE)
        } else {
            self.control.own_link.as_ref().map(|_| last_probe_at + situation.keepalive)
        };
        let asked = self.awaiting_since.map(|since| since.max(last_probe_at));
        earlier(regular, asked.map(|asked| asked + silence::probe_after(self)))
    }

    /// Whoever had a path checked has a use for it, though data may take some time to come.
    fn sleep_at(&self, situation: &Situation) -> Option<Instant> {
        let needed_at = situation.last_data_at.max(self.control.challenged_at);
        self.info.metered.then_some(needed_at + SLEEP_AFTER)
    }

    /// When [`Self::control_due`] has something to say.
    pub(crate) fn poll_control(&self, situation: &Situation) -> Option<Instant> {
        if self.state == PathState::Asleep {
            return None;
        }
        if !self.control.validated {
            return Some(self.control.next_challenge_at(situation));
        }
        let next = match self.state {
            PathState::Silent => Some(self.control.silent_probe_at(situation)),
            PathState::Lossy => situation.active.then(|| self.control.loss_check.poll_timeout()),
            _ => {
                let ends = earlier(
                    silence::begins_at(self, situation.others_up),
                    self.sleep_at(situation),
                );
                earlier(self.probe_at(situation), ends)
            }
        };
        earlier(next, self.mark_at())
    }

    /// What is due now, if anything; call until `None`.
    pub(crate) fn control_due(
        &mut self,
        now: Instant,
        situation: &Situation,
        fresh_token: impl FnOnce() -> Token,
    ) -> Option<Due> {
        if self.state == PathState::Asleep {
            return None;
        }
        if !self.control.validated {
            if now < self.control.next_challenge_at(situation) {
                return None;
            }
            let control = &mut self.control;
            control.token = fresh_token();
            control.challenged_at = now;
            control.challenges += 1;
            return Some(Due::Challenge(control.token));
        }
        if self.mark_at().is_some_and(|at| at <= now) {
            self.control.marked_at_data = self.last_data_at;
            return Some(Due::Mark);
        }
        match self.state {
            PathState::Silent => {
                if now < self.control.silent_probe_at(situation) {
                    return None;
                }
                self.control.silence.probed(now);
                Some(Due::Probe(self.control.start_probe(now)))
            }
            PathState::Lossy if situation.active => {
                match self.control.loss_check.step(now, self.rtt.patience())? {
                    Step::Probe => Some(Due::Probe(self.control.start_probe(now))),
                    Step::Healed => Some(Due::Healed),
                }
            }
            PathState::Up => self.due_while_up(now, situation),
            _ => None,
        }
    }

    fn due_while_up(&mut self, now: Instant, situation: &Situation) -> Option<Due> {
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(silence::begins_at(self, situation.others_up)) {
            return Some(Due::Silence);
        }
        if is_due(self.sleep_at(situation)) {
            return Some(Due::Sleep);
        }
        is_due(self.probe_at(situation)).then(|| Due::Probe(self.control.start_probe(now)))
    }
}
