//! How large a datagram a path carries: packetization-layer path MTU discovery by probes of the
//! path's own, without ICMP (RFC 8899; `docs/algorithms/path-mtu.md`).
//!
//! Sizes are bytes at the outer IP layer. The machine says which size to probe and when; whoever
//! owns it sends the probe, brings the echo back and says when data flows and when it is lost.

use crate::time::{Duration, Instant};

/// Sizes to fall back to, from what nearly every path carries (RFC 8899 §5.1.2: BASE_PLPMTU) to
/// what every IPv4 host takes (RFC 791 §3.1).
const BASES: [u32; 3] = [1280, 1024, 576];
/// The MTUs of common links and tunnels, tried before the rest is bisected.
const LIKELY: [u32; 16] = [
    1360, 1380, 1400, 1420, 1436, 1452, 1460, 1472, 1480, 1492, 1500, 2048, 4352, 8192, 8968, 9000,
];
/// A search ends when the answer is known this closely.
const STEP_MIN: u32 = 16;
/// A size is refused when this many probes of it stayed unanswered (RFC 8899 §5.1.2: MAX_PROBES)
/// while other datagrams came over the path.
const UNANSWERED_MAX: u32 = 3;
/// And when this many did, whatever came.
const PROBES_MAX: u32 = 10;
/// A probe counts as unanswered after this long, or a probe timeout if longer.
const PROBE_TIMEOUT_MIN: Duration = Duration::from_millis(250);
/// A larger size is looked for again this long after a search (RFC 8899 §5.1.1: PMTU_RAISE_TIMER).
const RAISE_INTERVAL: Duration = Duration::from_secs(600);
/// The same when not even the smallest base was answered.
const RAISE_INTERVAL_FLOOR: Duration = Duration::from_secs(60);
/// The size in use is confirmed this often while data flows (RFC 8899 §5.1.1: CONFIRMATION_TIMER).
const CONFIRM_INTERVAL: Duration = Duration::from_secs(60);
/// Loss asks for a confirmation at most this often.
const SUSPICION_INTERVAL: Duration = Duration::from_secs(2);
/// So many large datagrams lost with none delivered after them are suspicious.
pub const SUSPICIOUS_LOSSES: u32 = 3;
/// What data makes due comes no sooner than this after it.
const REACTION_TIME: Duration = Duration::from_millis(10);

/// What the machine is finding out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Nothing is known: the largest useful size is probed first, because it mostly passes.
    Untried,
    /// Whether this base passes.
    Base(usize),
    /// Where between what passed and what failed the limit lies.
    Search,
    /// Whether a larger size passes by now.
    Raise,
    /// Whether the size in use still passes.
    Confirm,
    /// Nothing, for now.
    Done,
}

/// A probe under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct UnderWay {
    id: u32,
    size: u32,
    sent_at: Instant,
    /// Something else came over the path since.
    heard: bool,
}

/// A probe to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MtuProbe {
    /// What the echo names.
    pub id: u32,
    /// Length of the probe's datagram at the outer IP layer.
    pub size: u32,
    /// The one before stayed unanswered: a small probe is to go with it, so that a path that is
    /// dead is told from one that does not carry the size.
    pub repeated: bool,
}

/// What the machine may go by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Circumstances {
    /// The path carries data, or could.
    pub up: bool,
    /// Probes are sent only while the path carries data.
    pub metered: bool,
    /// The path's probe timeout (RFC 9002 §6.2.1).
    pub probe_timeout: Duration,
}

/// Path MTU of one path in one direction.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct PathMtu {
    /// Since when data flows of which no confirmation has taken note.
    data_since: Option<Instant>,
    /// The largest useful size.
    max: u32,
    /// The size in use: it passed, or it is the base under test.
    size: u32,
    /// An echo vouches for `size`.
    answered: bool,
    /// The smallest size that did not pass.
    failed: Option<u32>,
    phase: Phase,
    under_way: Option<UnderWay>,
    /// Probes of the size under test that stayed unanswered although the path answered others.
    unanswered: u32,
    /// Probes of the size under test.
    probes: u32,
    next_id: u32,
    confirm_at: Instant,
    raise_at: Instant,
    suspicion_from: Instant,
}

impl PathMtu {
    /// Nothing is known of a path on which datagrams of up to `max` bytes are of use.
    pub fn new(max: u32) -> Self {
        Self {
            max,
            size: BASES[0].min(max),
            answered: false,
            failed: None,
            phase: Phase::Untried,
            under_way: None,
            unanswered: 0,
            probes: 0,
            next_id: 0,
            confirm_at: Instant::ZERO,
            raise_at: Instant::ZERO,
            data_since: None,
            suspicion_from: Instant::ZERO,
        }
    }

    /// The path leads elsewhere from now on: all that was known is forgotten.
    pub fn forget(&mut self) {
        // Late echoes of the old way must not be taken for answers.
        *self = Self { next_id: self.next_id, ..Self::new(self.max) };
    }

    /// The largest datagram that may be sent, in bytes.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The largest datagram that an echo vouched for; `None` before the first.
    pub fn known(&self) -> Option<u32> {
        self.answered.then_some(self.size)
    }

    /// What there is reason to hope for: the largest useful size until it was tried, then
    /// [`Self::size`].
    pub const fn hoped(&self) -> u32 {
        if matches!(self.phase, Phase::Untried) { self.max } else { self.size }
    }

    /// Less than the largest useful size passes.
    pub const fn is_limited(&self) -> bool {
        self.hoped() < self.max
    }

    /// Datagrams larger than this are missed when the path's limit falls: it is the base that
    /// would be used then.
    pub fn fallback(&self) -> u32 {
        let below = BASES.into_iter().find(|base| *base < self.size);
        below.unwrap_or(BASES[BASES.len() - 1])
    }

    /// Data is sent over the path.
    pub fn on_data(&mut self, now: Instant) {
        self.data_since.get_or_insert(now);
    }

    /// So many datagrams above [`Self::fallback`] were lost since the last one that arrived.
    pub fn on_large_loss(&mut self, now: Instant, lost: u32) {
        let asked = self.confirm_at <= now + REACTION_TIME;
        if self.phase == Phase::Done && lost >= SUSPICIOUS_LOSSES && !asked {
            self.confirm_at = self.suspicion_from.max(now + REACTION_TIME).min(self.confirm_at);
            self.data_since.get_or_insert(now);
        }
    }

    /// The path went out of use, or came back into it: what was believed is to be confirmed then.
    /// A probe under way stays so: a path may seem dead because large datagrams vanish.
    pub fn on_use(&mut self, up: bool) {
        if up && self.phase == Phase::Done {
            self.confirm_at = Instant::ZERO;
            self.data_since = Some(Instant::ZERO);
        }
    }

    /// Something came over the path: it is not dead.
    pub fn on_heard(&mut self) {
        if let Some(probe) = &mut self.under_way {
            probe.heard = true;
        }
    }

    /// When [`Self::due`] has something to say; `None` when nothing will come of itself.
    pub fn poll_timeout(&self, now: Instant, with: Circumstances) -> Option<Instant> {
        if !with.up {
            return None;
        }
        let data_at = self.data_since.map(|since| since + REACTION_TIME);
        match (self.phase, self.under_way) {
            (_, Some(probe)) => Some(probe.sent_at + with.probe_timeout.max(PROBE_TIMEOUT_MIN)),
            (Phase::Done, None) => {
                let next = if self.size < self.max {
                    self.confirm_at.min(self.raise_at)
                } else {
                    self.confirm_at
                };
                data_at.map(|data_at| data_at.max(next))
            }
            (_, None) if with.metered => data_at,
            (_, None) => Some(now),
        }
    }

    /// The probe that is due now, if any.
    pub fn due(&mut self, now: Instant, with: Circumstances) -> Option<MtuProbe> {
        if self.poll_timeout(now, with).is_none_or(|due| due > now) {
            return None;
        }
        let last = self.under_way.take();
        if let Some(last) = last {
            self.unanswered += u32::from(last.heard);
        }
        if self.unanswered >= UNANSWERED_MAX || self.probes >= PROBES_MAX {
            self.refused(now);
        } else if self.phase == Phase::Done {
            let raise = self.size < self.max && self.raise_at <= now;
            self.begin(if raise { Phase::Raise } else { Phase::Confirm });
        }
        let size = self.size_under_test()?;
        // An echo of any of a size's probes is an answer, late ones included.
        let id = last.filter(|last| last.size == size).map_or(self.next_id, |last| last.id);
        self.next_id = id.wrapping_add(1);
        self.probes += 1;
        self.under_way = Some(UnderWay { id, size, sent_at: now, heard: false });
        Some(MtuProbe { id, size, repeated: last.is_some() })
    }

    fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.unanswered = 0;
        self.probes = 0;
    }

    fn size_under_test(&self) -> Option<u32> {
        match self.phase {
            Phase::Untried | Phase::Raise => Some(self.max),
            Phase::Base(_) | Phase::Confirm => Some(self.size),
            Phase::Search => self.next_size(),
            Phase::Done => None,
        }
    }

    /// The next size of a search: the middle one of the likely sizes that are left, then halves.
    fn next_size(&self) -> Option<u32> {
        let failed = self.failed.unwrap_or(self.max + 1);
        let left = |size: &&u32| **size > self.size && **size < failed;
        let count = LIKELY.iter().filter(left).count();
        let middle = LIKELY.iter().filter(left).nth(count / 2).copied();
        let halved = (failed > self.size + STEP_MIN).then(|| self.size.midpoint(failed));
        middle.or(halved)
    }

    /// An echo arrived; says whether it answers the probe under way.
    pub fn echo(&mut self, now: Instant, id: u32) -> bool {
        let Some(probe) = self.under_way.take_if(|probe| probe.id == id) else { return false };
        self.size = probe.size;
        self.answered = true;
        match self.phase {
            Phase::Base(_) | Phase::Search => self.search(now),
            Phase::Confirm => {
                self.suspicion_from = now + SUSPICION_INTERVAL;
                self.done(now, self.raise_at);
            }
            Phase::Untried | Phase::Raise | Phase::Done => self.done(now, now + RAISE_INTERVAL),
        }
        true
    }

    /// The size under test does not pass.
    fn refused(&mut self, now: Instant) {
        match self.phase {
            Phase::Untried => self.fall_back(now, self.max, 0),
            Phase::Confirm => self.fall_back(now, self.size, 0),
            Phase::Base(at) => self.fall_back(now, self.size, at + 1),
            Phase::Raise => {
                self.failed = Some(self.max);
                self.search(now);
            }
            Phase::Search => {
                self.failed = self.next_size();
                self.search(now);
            }
            Phase::Done => {}
        }
    }

    /// Tries the bases below what failed, from the `first` on.
    fn fall_back(&mut self, now: Instant, failed: u32, first: usize) {
        self.failed = Some(failed);
        self.answered = false;
        match (first..BASES.len()).find(|at| BASES[*at] < failed) {
            Some(at) => {
                self.size = BASES[at];
                self.begin(Phase::Base(at));
            }
            // Nothing was answered: small packets may pass all the same, and larger ones later.
            None => self.done(now, now + RAISE_INTERVAL_FLOOR),
        }
    }

    fn search(&mut self, now: Instant) {
        self.begin(Phase::Search);
        if self.next_size().is_none() {
            self.done(now, now + RAISE_INTERVAL);
        }
    }

    fn done(&mut self, now: Instant, raise_at: Instant) {
        self.begin(Phase::Done);
        self.raise_at = raise_at;
        self.confirm_at = now + CONFIRM_INTERVAL;
        self.data_since = None;
    }
}

#[cfg(test)]
mod tests;
