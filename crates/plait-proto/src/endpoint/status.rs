//! What an endpoint tells of itself, at once or peer by peer.
//!
//! With a thousand bonds the whole takes milliseconds, in which no packet would move. So an owner
//! may gather it in parts, and carry packets in between.

use super::Endpoint;
use super::peer::Peer;
use crate::drop_reason::DropCounters;
use crate::stats::{EndpointStatus, PeerStatus};
use crate::time::Instant;

/// A status that is gathered peer by peer.
#[derive(Debug, Default)]
pub struct StatusWalk {
    peers: Vec<PeerStatus>,
    /// Of the peers that were looked at. Each peer's only grow, and so does the sum.
    drops: DropCounters,
    /// The peers' places that it goes by.
    places_version: u64,
}

impl Endpoint {
    /// What there is to know.
    pub fn status(&mut self, now: Instant) -> EndpointStatus {
        let mut walk = StatusWalk::default();
        self.gather_status(now, &mut walk, usize::MAX);
        self.finish_status(walk)
    }

    /// Looks at so many more peers at most; says whether all have been looked at. It begins anew
    /// when the peers have changed meanwhile.
    pub fn gather_status(&mut self, now: Instant, walk: &mut StatusWalk, peers_max: usize) -> bool {
        if walk.places_version != self.places_version {
            let peers = Vec::with_capacity(self.peers.len());
            let places_version = self.places_version;
            *walk = StatusWalk { peers, places_version, ..StatusWalk::default() };
        }
        let from = walk.peers.len();
        let to = self.peers.len().min(from.saturating_add(peers_max));
        for at in from..to {
            walk.peers.push(self.peer_status(now, at));
            self.peers[at].add_drops(&mut walk.drops);
        }
        to == self.peers.len()
    }

    /// The status that was gathered.
    pub fn finish_status(&self, walk: StatusWalk) -> EndpointStatus {
        let StatusWalk { peers, mut drops, .. } = walk;
        for (reason, count) in self.drops.iter() {
            drops.count_many(reason, count as usize);
        }
        EndpointStatus {
            public_key: self.identity.public.to_string(),
            peers,
            drops: drops.iter().map(|(reason, count)| (reason.name().to_owned(), count)).collect(),
        }
    }

    fn peer_status(&mut self, now: Instant, at: usize) -> PeerStatus {
        let peer = &mut self.peers[at];
        let key = peer.config.public_key.to_string();
        let mut status = match peer.used_bond_mut() {
            Some(bond) => bond.status(now, key),
            None => PeerStatus::down(key, peer.attempts.next_at.is_some()),
        };
        let peer: &Peer = &self.peers[at];
        status.session_age_s = peer.session.map(|session| now.since(session.made_at).as_secs());
        status.handshakes = peer.handshakes;
        self.tell_standby_reasons(peer, &mut status);
        status.attempts = self.attempts_of(now, peer);
        for path in &mut status.paths {
            path.tried_ports = peer.ports.tried_over(&path.name);
            path.reason += &untold(&path.tried_ports);
        }
        status
    }
}

/// What is to be said of ports that did not answer.
fn untold(ports: &[u16]) -> String {
    let numbers: Vec<String> = ports.iter().map(u16::to_string).collect();
    match numbers.len() {
        0 => String::new(),
        1 => format!("; port {} did not answer", numbers[0]),
        _ => format!("; ports {} did not answer", numbers.join(", ")),
    }
}
