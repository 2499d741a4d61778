//! What the search sees of an endpoint: what tells one situation from another as far as handshakes
//! and bonds go. Nothing here has an effect.

use super::Endpoint;
use super::peer::{NamedBond, Peer};
use crate::bond::BondShape;
use crate::seq::BondIncarnation;
use crate::session::Timestamp;
use crate::time::{Duration, Instant};
use crate::wire::handshake::SessionIndex;

/// What an endpoint has with one peer.
#[derive(Clone, Debug)]
pub struct PeerShape {
    /// The name of this side's end of the next bond.
    pub own_end: BondIncarnation,
    /// The bond in use.
    pub bond: Option<NamedBondShape>,
    /// The bond that the peer asked for and has not used.
    pub next_bond: Option<NamedBondShape>,
    /// Age of the session, and whether this side began it.
    pub session: Option<(Duration, bool)>,
    /// Index and bond of the initiation under way.
    pub initiation: Option<(SessionIndex, BondIncarnation)>,
    /// Initiations since there was an answer.
    pub attempts: usize,
    /// Time until the next.
    pub next_attempt_in: Option<Duration>,
    /// The index given in answer to the newest initiation, which is answered again.
    pub answered: Option<SessionIndex>,
    /// The newest timestamp accepted from the peer.
    pub newest_timestamp: Timestamp,
    /// The newest one sent to it.
    pub own_timestamp: Timestamp,
    /// Time since an initiation was last accepted.
    pub accepted_before: Option<Duration>,
    /// Whether packets wait for a path.
    pub has_waiting: bool,
    /// Whether the peer can be called without a bond.
    pub can_be_called: bool,
}

/// A bond and its name.
#[derive(Clone, Debug)]
pub struct NamedBondShape {
    /// This side's end.
    pub own: BondIncarnation,
    /// The peer's.
    pub peer: BondIncarnation,
    /// The bond.
    pub bond: BondShape,
}

impl Endpoint {
    /// What there is with each peer, in the order of the configuration.
    pub fn shape(&self, now: Instant) -> Vec<PeerShape> {
        self.peers.iter().map(|peer| self.peer_shape(now, peer)).collect()
    }

    fn peer_shape(&self, now: Instant, peer: &Peer) -> PeerShape {
        let bond = |named: &Option<Box<NamedBond>>| {
            let named = named.as_ref()?;
            let (own, peer) = (named.ends.own, named.ends.peer);
            Some(NamedBondShape { own, peer, bond: named.bond.shape(now) })
        };
        let initiation = peer.attempts.state.as_ref();
        PeerShape {
            own_end: peer.own_end,
            bond: bond(&peer.bond),
            next_bond: bond(&peer.next_bond),
            session: peer.session.map(|it| (now.since(it.made_at), it.initiator)),
            initiation: initiation.map(|state| (state.local, state.hello.incarnation)),
            attempts: peer.attempts.count,
            next_attempt_in: peer.attempts.next_at.map(|at| at.since(now)),
            answered: peer.answer.as_ref().map(|answer| answer.local),
            newest_timestamp: peer.newest_timestamp,
            own_timestamp: peer.timestamp_floor.max(self.last_timestamp),
            accepted_before: peer.initiation_accepted_at.map(|at| now.since(at)),
            has_waiting: peer.waiting.holds_any(now),
            can_be_called: peer.can_be_called(),
        }
    }
}
