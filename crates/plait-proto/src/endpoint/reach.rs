//! Where a peer can be reached when there is no bond, and how traffic for it makes this side try.

use super::Endpoint;
use super::peer::RETRY_MAX;
use crate::bond::Bond;
use crate::drop_reason::DropReason;
use crate::path::Route;
use crate::session::PublicKey;
use crate::time::{Duration, Instant};
use crate::wire::ip::Inner;

/// Routes of one peer that are remembered.
const REMEMBERED_MAX: usize = 8;
/// While there is traffic for a peer, attempts to reach it are at most this far apart.
const RETRY_UNDER_TRAFFIC: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Over which routes each peer that opens its paths itself is, or was last, reached: what a
    /// gateway that listens must keep to call its peers after a restart.
    pub fn known_routes(&self) -> Vec<(PublicKey, Route)> {
        let of_peer = |peer: &super::Peer| {
            let mut routes: Vec<Route> =
                peer.used_bond().map(|bond| bond.peer_routes().collect()).unwrap_or_default();
            if routes.is_empty() {
                routes.clone_from(&peer.remembered);
            }
            routes.truncate(REMEMBERED_MAX);
            let key = peer.config.public_key;
            routes.into_iter().map(move |route| (key, route))
        };
        self.peers.iter().flat_map(of_peer).collect()
    }

    /// Tells over which route a peer was once reached, as [`Self::known_routes`] gave it; before
    /// [`Self::start`], which calls the peer there. A key that is no peer's is passed over.
    pub fn remember(&mut self, peer: &PublicKey, route: Route) {
        let known = self.places.get(peer).map(|at| &mut self.peers[*at]);
        if let Some(peer) = known
            && peer.remembered.len() < REMEMBERED_MAX
            && !peer.remembered.contains(&route)
        {
            peer.remembered.push(route);
        }
    }

    /// The owner waits for a peer that is being sought: it is asked as often as if there were
    /// traffic for it.
    pub fn hurry(&mut self, now: Instant, peer: &PublicKey) {
        if let Some(at) = self.places.get(peer).copied() {
            self.ask_at_once(now, at);
        }
    }

    /// What is known of a bond that ends and may help to make the next.
    pub(super) fn remember_routes_of(&mut self, at: usize, bond: &Bond) {
        let routes: Vec<Route> = bond.peer_routes().take(REMEMBERED_MAX).collect();
        if !routes.is_empty() {
            self.peers[at].remembered = routes;
        }
    }

    /// There is traffic for a peer that cannot be sent now.
    pub(super) fn await_path(
        &mut self,
        now: Instant,
        at: usize,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        let sleeps = self.sleeps_too_long(now, at);
        let peer = &mut self.peers[at];
        let (kept, expired) = peer.waiting.push(now, packet);
        self.drops.count_many(DropReason::NoSession, expired);
        let needs_session = sleeps || (peer.bond.is_none() && peer.can_be_called());
        let rested = peer.initiated_at.is_none_or(|last| now.since(last) >= RETRY_MAX);
        if needs_session && rested && peer.attempts.next_at.is_none() {
            peer.attempts.count = 0;
            self.initiate(now, at);
        }
        if kept { Ok(()) } else { Err(DropReason::NoSession) }
    }

    /// There is traffic for a peer that is being sought: the next attempt comes soon.
    pub(super) fn ask_at_once(&mut self, now: Instant, at: usize) {
        let peer = &mut self.peers[at];
        if let (Some(next), Some(last)) = (peer.attempts.next_at, peer.initiated_at) {
            peer.attempts.next_at = Some(next.min((last + RETRY_UNDER_TRAFFIC).max(now)));
        }
    }

    /// A path can carry data: what waited for one goes over it.
    pub(super) fn send_waiting(&mut self, now: Instant, at: usize) {
        let (packets, expired) = self.peers[at].waiting.take(now);
        self.drops.count_many(DropReason::NoSession, expired);
        for (_, packet) in packets {
            let Some(inner) = Inner::read(&packet) else { continue };
            if let Err(reason) = self.give_to_bond(now, at, &inner, &packet) {
                self.drops.count(reason);
            }
        }
    }
}
