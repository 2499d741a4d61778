//! A configured peer: its handshakes and the bond with it.

use core::cell::Cell;

use super::cookies::{AskedRoutes, CookieJar};
use super::limits::{Bucket, Reached};
use super::ports::Ports;
use super::waiting::WaitingRoom;
use crate::bond::Bond;
use crate::config::PeerConfig;
use crate::drop_reason::{DropCounters, DropReason};
use crate::path::Route;
use crate::seq::BondIncarnation;
use crate::session::{InitiatorState, Timestamp};
use crate::time::{Duration, Instant};
use crate::wire::handshake::{RESPONSE_BYTES, SessionIndex};

/// Waiting times between attempts to reach a peer; the last one stays.
const RETRY: [Duration; 6] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    RETRY_MAX,
];
/// The longest waiting time.
pub(super) const RETRY_MAX: Duration = Duration::from_secs(5);
/// A peer that has no endpoint, only a route on which it was reached once, is called so many times:
/// it may be gone for good.
const CALLS_MAX: usize = RETRY.len();

/// The session in use, as far as renewing it goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionAge {
    pub(super) made_at: Instant,
    /// The side that initiated a session renews it.
    pub(super) initiator: bool,
}

/// Both ends of a bond.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ends {
    pub(super) own: BondIncarnation,
    pub(super) peer: BondIncarnation,
}

/// A bond and what it is known by.
#[derive(Debug)]
pub(super) struct NamedBond {
    pub(super) bond: Bond,
    pub(super) ends: Ends,
}

/// The answer to the newest initiation, for copies of it that arrive over other paths.
#[derive(Debug)]
pub(super) struct SentResponse {
    pub(super) timestamp: Timestamp,
    pub(super) response: [u8; RESPONSE_BYTES],
    /// The index this side chose.
    pub(super) local: SessionIndex,
    /// Where it went.
    pub(super) asked: AskedRoutes,
}

/// Attempts to make a session.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Attempts {
    pub(super) next_at: Option<Instant>,
    /// The handshake under way.
    pub(super) state: Option<InitiatorState>,
    /// Where its initiation went.
    pub(super) asked: AskedRoutes,
    pub(super) count: usize,
    /// How many went out over any link, whatever became of the waiting times.
    pub(super) sent: u64,
    /// They are for another bond, although there is one.
    pub(super) wants_another: bool,
    /// When the first of them began.
    pub(super) since: Option<Instant>,
}

impl Attempts {
    /// The next attempt comes this long after the one that begins at `now`; for a peer that is only
    /// called, a bounded number of times.
    pub(super) fn schedule(&mut self, now: Instant, only_called: bool) {
        let wait = RETRY[self.count.min(RETRY.len() - 1)];
        self.count += 1;
        self.since.get_or_insert(now);
        self.next_at = (!only_called || self.count < CALLS_MAX).then(|| now + wait);
    }

    /// There is nothing to attempt any more.
    pub(super) fn stop(&mut self) -> Option<SessionIndex> {
        let state = core::mem::take(self).state;
        state.map(|state| state.local)
    }
}

/// What each packet looks at comes first, in one cache line: with many peers that counts.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Peer {
    /// Where it is noted.
    pub(super) marks: Cell<u8>,
    /// In a box, as the next: most of a provider's peers have none.
    pub(super) bond: Option<Box<NamedBond>>,
    /// A bond that the peer asked for and has not used yet.
    pub(super) next_bond: Option<Box<NamedBond>>,
    pub(super) session: Option<SessionAge>,
    pub(super) attempts: Attempts,
    pub(super) config: PeerConfig,
    /// The names of the bond that this side gave up last.
    pub(super) gone: Option<Ends>,
    /// This side's end of the next bond that begins.
    pub(super) own_end: BondIncarnation,
    pub(super) answer: Option<SentResponse>,
    pub(super) reached: Reached,
    pub(super) newest_timestamp: Timestamp,
    pub(super) initiation_accepted_at: Option<Instant>,
    /// When this side last told the peer that its timestamp is stale.
    pub(super) refused_at: Option<Instant>,
    /// This side's timestamps for the peer must be greater: the peer said so.
    pub(super) timestamp_floor: Timestamp,
    /// When this side last asked for another bond because the one in use delivered nothing.
    pub(super) made_anew_at: Option<Instant>,
    pub(super) initiated_at: Option<Instant>,
    /// When this side last began anew at once because its timestamp was stale.
    pub(super) corrected_at: Option<Instant>,
    pub(super) cookies: CookieJar,
    /// Where the peer was reached when there was a bond.
    pub(super) remembered: Vec<Route>,
    pub(super) waiting: WaitingRoom,
    /// What the bond carried last, in bytes: the next one starts from it.
    pub(super) inner_mtu: Option<u16>,
    /// How often senders of packets for this peer may still be told of sizes.
    pub(super) told_size: Bucket,
    pub(super) handshakes: u64,
    /// What its earlier bonds dropped; in a box, because most of a provider's peers have none.
    pub(super) past_drops: Option<Box<DropCounters>>,
    /// Which attempt the peer answered: it went to the endpoint that works.
    pub(super) answered_attempt: usize,
    /// Which of its ports work over which link.
    pub(super) ports: Ports,
}

impl Peer {
    pub(super) fn new(config: PeerConfig, own_end: BondIncarnation) -> Self {
        Self {
            marks: Cell::default(),
            config,
            bond: None,
            next_bond: None,
            gone: None,
            own_end,
            session: None,
            attempts: Attempts::default(),
            answer: None,
            reached: Reached::default(),
            newest_timestamp: Timestamp::default(),
            initiation_accepted_at: None,
            refused_at: None,
            timestamp_floor: Timestamp::default(),
            made_anew_at: None,
            initiated_at: None,
            corrected_at: None,
            cookies: CookieJar::default(),
            remembered: Vec::new(),
            waiting: WaitingRoom::default(),
            inner_mtu: None,
            told_size: Bucket::default(),
            handshakes: 0,
            past_drops: None,
            answered_attempt: 0,
            ports: Ports::default(),
        }
    }

    /// The bond with a peer that names its end so, whether used already or not.
    pub(super) fn bond_with(&mut self, peer_end: BondIncarnation) -> Option<&mut NamedBond> {
        [&mut self.bond, &mut self.next_bond]
            .into_iter()
            .flatten()
            .map(|named| &mut **named)
            .find(|named| named.ends.peer == peer_end)
    }

    /// This side's end of the bond that an initiation of this side is about.
    pub(super) fn own_end_now(&self) -> BondIncarnation {
        let kept = self.bond.as_ref().filter(|_| !self.attempts.wants_another);
        kept.map_or(self.own_end, |named| named.ends.own)
    }

    /// The bond in use.
    pub(super) fn used_bond(&self) -> Option<&Bond> {
        self.bond.as_ref().map(|named| &named.bond)
    }

    /// The bond in use.
    pub(super) fn used_bond_mut(&mut self) -> Option<&mut Bond> {
        self.bond.as_mut().map(|named| &mut named.bond)
    }

    /// Packets that its bonds dropped, for one reason.
    pub(super) fn drop_count(&self, reason: DropReason) -> u64 {
        let past = self.past_drops.as_ref().map_or(0, |past| past.get(reason));
        past + self.used_bond().map_or(0, |bond| bond.drop_count(reason))
    }

    /// Adds the packets that its bonds dropped.
    pub(super) fn add_drops(&self, sum: &mut DropCounters) {
        for (reason, count) in self.past_drops.iter().flat_map(|past| past.iter()) {
            sum.count_many(reason, count as usize);
        }
        if let Some(bond) = self.used_bond() {
            bond.add_drops(sum);
        }
    }

    /// Whether a path of the bond in use can carry data.
    pub(super) fn is_up(&self) -> bool {
        self.used_bond().is_some_and(Bond::is_up)
    }

    /// Whether every path of the bond in use sleeps.
    pub(super) fn is_asleep(&self) -> bool {
        self.used_bond().is_some_and(Bond::is_asleep)
    }

    /// Whether this side reaches out to the peer by itself.
    pub(super) fn is_sought(&self) -> bool {
        !self.config.endpoints.is_empty()
    }

    /// Whether there is any address to try.
    pub(super) fn can_be_called(&self) -> bool {
        self.is_sought() || !self.remembered.is_empty()
    }
}
