//! When the session of a bond is renewed, and when it is too old (spec K-6, K-6a).

use super::Endpoint;
use super::peer::{Peer, SessionAge};
use crate::bond::Bond;
use crate::time::Instant;

impl Endpoint {
    /// When the session is to be renewed, or refused. `None` while the bond sleeps.
    pub(super) fn session_timeout(&self, peer: &Peer, session: SessionAge) -> Option<Instant> {
        if session.initiator && peer.attempts.next_at.is_none() && !peer.is_asleep() {
            Some(session.made_at + self.config.bond.rekey.rekey_after)
        } else {
            self.rejects_at(peer, session)
        }
    }

    /// When the bond is given up for its old session. A sleeping one waits for somebody who needs
    /// it, and then has as long to be renewed as any other.
    fn rejects_at(&self, peer: &Peer, session: SessionAge) -> Option<Instant> {
        let limits = &self.config.bond.rekey;
        let too_old_at = session.made_at + limits.reject_after;
        if !peer.is_asleep() {
            return Some(too_old_at);
        }
        let time_to_renew = limits.reject_after.saturating_sub(limits.rekey_after);
        peer.attempts.since.map(|since| too_old_at.max(since + time_to_renew))
    }

    /// Whether the bond sleeps under a session that was not renewed for it: no path is woken before
    /// there is another.
    pub(super) fn sleeps_too_long(&self, now: Instant, at: usize) -> bool {
        let peer = &self.peers[at];
        let renewed_until =
            |session: SessionAge| session.made_at + self.config.bond.rekey.rekey_after;
        peer.session.is_some_and(|session| now >= renewed_until(session)) && peer.is_asleep()
    }

    /// When a bond that the peer asked for and never used is given up.
    pub(super) fn rejects_unused_at(&self, unused: &Bond) -> Instant {
        unused.session_made_at() + self.config.bond.rekey.reject_after
    }

    /// The peer never used the bond it asked for: its keys are too old.
    pub(super) fn mind_next_bond(&mut self, now: Instant, at: usize) {
        let unused = self.peers[at].next_bond.as_ref();
        if unused.is_some_and(|next| now >= self.rejects_unused_at(&next.bond)) {
            self.discard_next_bond(at);
        }
    }

    pub(super) fn mind_session(&mut self, now: Instant, at: usize) {
        let limits = self.config.bond.rekey;
        let peer = &self.peers[at];
        let Some(session) = peer.session else { return };
        if self.rejects_at(peer, session).is_some_and(|rejects_at| now >= rejects_at) {
            self.forget_bond(at);
            if self.peers[at].is_sought() {
                self.initiate(now, at);
            }
            return;
        }
        if peer.is_asleep() {
            return;
        }
        let old = session.initiator && now >= session.made_at + limits.rekey_after;
        let used_up = peer.used_bond().map(Bond::sealed_max) >= Some(limits.rekey_after_packets);
        if (old || used_up) && peer.attempts.next_at.is_none() {
            self.initiate(now, at);
        }
    }
}
