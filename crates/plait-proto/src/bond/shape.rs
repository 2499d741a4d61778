//! What the search sees of a bond.

use core::net::SocketAddr;

use super::Bond;
use crate::path::SendPath;
use crate::seq::{BondSeq, PathId};
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::wire::handshake::SessionIndex;

/// What tells one bond from another.
#[derive(Clone, Debug)]
pub struct BondShape {
    /// The peer's name for the session under which this side sends.
    pub sends_to: SessionIndex,
    /// The newest session while the peer has not used it.
    pub unconfirmed: Option<SessionIndex>,
    /// Sessions under which datagrams are accepted.
    pub accepts: Vec<SessionIndex>,
    /// The number of the next packet to the peer.
    pub next_seq: BondSeq,
    /// All numbers from the peer below this one are delivered or given up.
    pub floor: BondSeq,
    /// One more than the highest number from the peer.
    pub expected_seq: BondSeq,
    /// Time since the bond carried data.
    pub idle_for: Duration,
    /// Whether the owner was told that all paths are silent, and none has come up since.
    pub told_silent: bool,
    /// Its paths, by id.
    pub paths: Vec<PathShape>,
}

/// What tells one path from another.
#[derive(Clone, Copy, Debug)]
pub struct PathShape {
    /// Its id.
    pub id: PathId,
    /// Where it leads.
    pub remote: SocketAddr,
    /// Whether it may carry data.
    pub state: PathState,
    /// Whether the peer has answered a challenge.
    pub validated: bool,
    /// Whether the peer leaves challenges without an answer.
    pub ignored: bool,
    /// Whether an answer is owed.
    pub awaits: bool,
}

impl Bond {
    /// What the search sees.
    pub fn shape(&self, now: Instant) -> BondShape {
        let (floor, expected_seq) = self.egress.position();
        let path = |path: &SendPath| PathShape {
            id: path.id,
            remote: path.route.remote,
            state: path.state,
            validated: path.control.validated,
            ignored: path.control.is_ignored(),
            awaits: path.awaiting_since.is_some(),
        };
        BondShape {
            sends_to: self.ingress.session().remote,
            unconfirmed: self.unconfirmed.as_ref().map(|(local, _)| *local),
            accepts: self.session_indices().collect(),
            next_seq: self.ingress.next_seq(),
            floor,
            expected_seq,
            idle_for: now.since(self.last_data_at),
            told_silent: self.all_silent_told_at.is_some(),
            paths: self.ingress.paths().map(path).collect(),
        }
    }
}
