//! A configured peer: its handshakes and the bond with it.

use crate::allowed_ips::Prefixes;
use crate::bond::Bond;
use crate::config::PeerConfig;
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
    Duration::from_secs(5),
];

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
pub(super) struct Answer {
    pub(super) timestamp: Timestamp,
    pub(super) response: [u8; RESPONSE_BYTES],
}

/// Attempts to make a session.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The handshake under way.
    pub(super) state: Option<InitiatorState>,
    pub(super) count: usize,
    pub(super) next_at: Option<Instant>,
}

impl Attempts {
    /// The next attempt comes this long after the one that begins at `now`.
    pub(super) fn schedule(&mut self, now: Instant) {
        self.next_at = Some(now + RETRY[self.count.min(RETRY.len() - 1)]);
        self.count += 1;
    }

    /// There is nothing to attempt any more.
    pub(super) fn stop(&mut self) -> Option<SessionIndex> {
        let state = core::mem::take(self).state;
        state.map(|state| state.local)
    }
}

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) config: PeerConfig,
    pub(super) prefixes: Prefixes,
    pub(super) bond: Option<NamedBond>,
    /// A bond that the peer asked for and has not used yet.
    pub(super) next_bond: Option<NamedBond>,
    /// This side's end of the next bond that begins.
    pub(super) own_end: BondIncarnation,
    pub(super) session: Option<SessionAge>,
    pub(super) attempts: Attempts,
    pub(super) answer: Option<Answer>,
    pub(super) newest_timestamp: Timestamp,
    pub(super) initiation_accepted_at: Option<Instant>,
    pub(super) handshakes: u64,
}

impl Peer {
    pub(super) fn new(config: PeerConfig, own_end: BondIncarnation) -> Self {
        Self {
            prefixes: Prefixes::new(&config.allowed_ips),
            config,
            bond: None,
            next_bond: None,
            own_end,
            session: None,
            attempts: Attempts::default(),
            answer: None,
            newest_timestamp: Timestamp::default(),
            initiation_accepted_at: None,
            handshakes: 0,
        }
    }

    /// The bond with a peer that names its end so, whether used already or not.
    pub(super) fn bond_with(&mut self, peer_end: BondIncarnation) -> Option<&mut NamedBond> {
        [&mut self.bond, &mut self.next_bond]
            .into_iter()
            .flatten()
            .find(|named| named.ends.peer == peer_end)
    }

    /// This side's end of the bond that an initiation of this side is about.
    pub(super) fn own_end_now(&self) -> BondIncarnation {
        self.bond.as_ref().map_or(self.own_end, |named| named.ends.own)
    }

    /// The bond in use.
    pub(super) fn used_bond(&self) -> Option<&Bond> {
        self.bond.as_ref().map(|named| &named.bond)
    }

    /// The bond in use.
    pub(super) fn used_bond_mut(&mut self) -> Option<&mut Bond> {
        self.bond.as_mut().map(|named| &mut named.bond)
    }

    /// Whether this side reaches out to the peer by itself.
    pub(super) fn is_sought(&self) -> bool {
        !self.config.endpoints.is_empty()
    }
}
