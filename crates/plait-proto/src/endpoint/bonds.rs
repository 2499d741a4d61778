//! Which bond a peer has: one is established, takes another's place, or is given up.

use super::peer::{Ends, NamedBond, SessionAge};
use super::{Endpoint, Event};
use crate::bond::{Bond, BondSetup, PathIdParity};
use crate::faults::Fault;
use crate::path::Route;
use crate::seq::BondIncarnation;
use crate::session::{Cipher, Established, Hello};
use crate::time::{Duration, Instant};
use crate::wire::REVISION;
use crate::wire::handshake::SessionIndex;

/// A bond that delivers nothing is made anew this often at most (spec R-7).
const ANEW_INTERVAL_MIN: Duration = Duration::from_secs(30);

/// For so long a bond of this side's stays, although nothing came over it, when the peer uses
/// another that it asked for at the same time.
const CROSSED_BOND_TIME: Duration = Duration::from_secs(1);

impl Endpoint {
    /// Both sides asked for a bond at once and got one each, of which one stays: if each side took
    /// the other's, both would be gone. That of the side with the lower public key does, unless
    /// nothing comes over it in time (spec H-4).
    pub(super) fn own_bond_stays(&self, now: Instant, at: usize) -> bool {
        let peer = &self.peers[at];
        let is_young = |session: SessionAge| {
            session.initiator && now.since(session.made_at) < CROSSED_BOND_TIME
        };
        self.identity.public < peer.config.public_key
            && !self.faults.has(Fault::BothCrossedBondsGo)
            && peer.session.is_some_and(is_young)
            && peer.used_bond().is_some_and(|bond| !bond.was_heard())
    }

    /// The peer used the bond it had asked for: it takes the place of the one before, and of what
    /// this side asked for.
    pub(super) fn adopt_next_bond(&mut self, now: Instant, at: usize) {
        if let Some(mut next) = self.peers[at].next_bond.take() {
            let peer = &mut self.peers[at];
            peer.answered_attempt = peer.attempts.count.saturating_sub(1);
            self.stop_attempts(at);
            self.open_paths(now, at, &mut next.bond);
            let made_at = next.bond.session_made_at();
            self.replace_bond(at, next, SessionAge { made_at, initiator: false });
        }
    }

    fn replace_bond(&mut self, at: usize, mut named: Box<NamedBond>, session: SessionAge) {
        self.drop_bond(at);
        self.retire_name(at, named.ends.own);
        if let Some(mtu) = self.peers[at].inner_mtu {
            named.bond.start_from_inner_mtu(mtu);
        }
        for index in named.bond.session_indices() {
            self.sessions.insert(index, at);
        }
        let peer = &mut self.peers[at];
        peer.bond = Some(named);
        peer.session = Some(session);
        peer.handshakes += 1;
        self.events.push_back(Event::BondUp(peer.config.public_key));
    }

    fn drop_bond(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.session = None;
        if let Some(named) = peer.bond.take() {
            peer.gone = Some(named.ends);
            named.bond.add_drops(peer.past_drops.get_or_insert_default());
            self.events.push_back(Event::BondDown(peer.config.public_key));
            for index in named.bond.session_indices() {
                self.sessions.remove(&index);
            }
            self.remember_routes_of(at, &named.bond);
        }
    }

    /// Gives the bond up. What comes next is another bond: it gets another name, and an attempt to
    /// renew this one must not be answered any more.
    pub(super) fn forget_bond(&mut self, at: usize) {
        self.drop_bond(at);
        self.stop_attempts(at);
        self.peers[at].own_end = BondIncarnation(self.rng.u64());
        // Whoever repeats the initiation of a session that is gone must begin anew.
        self.peers[at].answer = None;
    }

    /// A bond of this name is in use, or was thrown away unused: the next one gets another, so that
    /// no two bonds ever have the same pair of names (spec H-4). The peer may still hold the one
    /// that is gone, and would renew it with a bond that begins at 0.
    fn retire_name(&mut self, at: usize, own_end: BondIncarnation) {
        if self.peers[at].own_end == own_end && !self.faults.has(Fault::OneNameForTwoBonds) {
            self.peers[at].own_end = BondIncarnation(self.rng.u64());
        }
    }

    pub(super) fn forget_session(&mut self, index: Option<SessionIndex>) {
        if let Some(index) = index {
            self.sessions.remove(&index);
        }
    }

    /// Throws a bond away that the peer asked for and never used.
    pub(super) fn discard_next_bond(&mut self, at: usize) {
        if let Some(unused) = self.peers[at].next_bond.take() {
            for index in unused.bond.session_indices() {
                self.sessions.remove(&index);
            }
            self.retire_name(at, unused.ends.own);
        }
    }

    pub(super) fn hello(&self, own_end: BondIncarnation) -> Hello {
        Hello {
            incarnation: own_end,
            aes_is_fast: Cipher::aes_is_fast(),
            inner_mtu: self.config.bond.inner_mtu,
            repairs: self.config.bond.congestion.is_some(),
            revision: REVISION,
        }
    }

    pub(super) fn bond_setup(&mut self, at: usize) -> BondSetup {
        let peer = &self.peers[at];
        let parity = if self.identity.public < peer.config.public_key {
            PathIdParity::Even
        } else {
            PathIdParity::Odd
        };
        BondSetup {
            config: self.config.bond.clone(),
            keepalive: peer.config.keepalive,
            parity,
            rng: self.rng.fork(),
            faults: self.faults,
        }
    }

    /// The handshake that this side began, naming its end `own`, is finished: the response came by
    /// `route`.
    pub(super) fn establish(
        &mut self,
        now: Instant,
        at: usize,
        own: BondIncarnation,
        route: Route,
        established: Established,
    ) {
        self.log_secrets_of(&established);
        // The attempt that the peer answered went to the endpoint before the next one.
        let peer = &mut self.peers[at];
        peer.answered_attempt = peer.attempts.count.saturating_sub(1);
        self.note_answering_port(at, route.remote);
        self.stop_attempts(at);
        let session = SessionAge { made_at: now, initiator: true };
        let ends = Ends { own, peer: established.peer.incarnation };
        self.sessions.insert(established.local, at);
        if self.peers[at].next_bond.as_ref().is_some_and(|next| next.ends == ends) {
            // Both sides began at the same time. It is one bond with two sessions.
            self.adopt_next_bond(now, at);
        }
        if let Some(named) = self.peers[at].bond.as_mut().filter(|named| named.ends == ends) {
            let forgotten = named.bond.renew(now, established, true);
            self.forget_session(forgotten);
            let peer = &mut self.peers[at];
            peer.session = Some(session);
            peer.handshakes += 1;
            self.open_missing_paths(now, at);
            self.follow_answering_port(now, at, route);
            return;
        }
        if self.peers[at].gone == Some(ends) && !self.faults.has(Fault::OneNameForTwoBonds) {
            // The peer kept what this side gave up, and would go on in it where this side begins.
            self.sessions.remove(&established.local);
            self.peers[at].attempts.wants_another = true;
            self.initiate(now, at);
            return;
        }
        let setup = self.bond_setup(at);
        let mut bond = Bond::new(now, setup, established);
        self.open_paths(now, at, &mut bond);
        bond.call(now, route);
        self.replace_bond(at, Box::new(NamedBond { bond, ends }), session);
    }

    /// The bond delivers next to nothing: this side asks for another, and uses it until there is
    /// one (spec R-7).
    pub(super) fn make_anew(&mut self, now: Instant, at: usize) {
        if self.faults.has(Fault::OneNameForTwoBonds) {
            return;
        }
        let peer = &mut self.peers[at];
        if peer.made_anew_at.is_some_and(|last| now.since(last) < ANEW_INTERVAL_MIN) {
            return;
        }
        peer.made_anew_at = Some(now);
        self.events.push_back(Event::BondStuck(peer.config.public_key));
        peer.attempts.wants_another = true;
        peer.attempts.count = 0;
        self.initiate(now, at);
    }
}
