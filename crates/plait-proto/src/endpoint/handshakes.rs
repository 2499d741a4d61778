//! The endpoint's part in handshakes: when to begin one, whom to answer (spec H-clauses).

use super::Endpoint;
use super::cookies::AskedRoutes;
use super::peer::{Ends, NamedBond, SentResponse};
use crate::bond::Bond;
use crate::drop_reason::DropReason;
use crate::path::Route;
use crate::session::{Finished, ResponderState, Timestamp};
use crate::time::{Duration, Instant};
use crate::wire::handshake::{INITIATION_BYTES, Initiation, RESPONSE_BYTES, Response};

/// Initiations of one peer are accepted this far apart (WireGuard accepts 50 a second).
const INITIATION_INTERVAL_MIN: Duration = Duration::from_millis(20);
/// Refusals to one peer, and what one does at once because of them, are this far apart.
const REFUSAL_INTERVAL_MIN: Duration = Duration::from_millis(250);

/// Whether something that was last done at `last` may be done again.
fn is_over(now: Instant, last: Option<Instant>, interval: Duration) -> bool {
    last.is_none_or(|last| now.since(last) >= interval)
}

impl Endpoint {
    /// Begins a handshake, over every path that may work.
    pub(super) fn initiate(&mut self, now: Instant, at: usize) {
        if let Some(old) = self.peers[at].attempts.state.take() {
            self.sessions.remove(&old.local);
            // Perhaps the peer started again and its cookies are worth nothing any more.
            self.peers[at].cookies.clear();
        }
        let local = self.random_index();
        let timestamp = self.next_timestamp(now, at);
        let hello = self.hello(self.peers[at].own_end_now());
        let peer = &self.peers[at].config;
        let state = self.identity.initiate(
            &mut self.rng,
            &peer.public_key,
            &peer.preshared_key,
            local,
            timestamp,
            hello,
        );
        let mut asked = AskedRoutes::default();
        for route in self.targets(now, at) {
            let mut message = state.message;
            if let Some(cookie) = self.peers[at].cookies.get(now, &route) {
                cookie.write_mac2(&mut message);
            }
            self.handshakes.push_single(route, &message);
            asked.add(route);
        }
        self.sessions.insert(local, at);
        let peer = &mut self.peers[at];
        let only_called = !peer.is_sought() && peer.bond.is_none();
        peer.initiated_at = Some(now);
        peer.attempts.state = Some(state);
        peer.attempts.sent += u64::from(asked.iter().next().is_some());
        peer.attempts.asked = asked;
        peer.attempts.schedule(now, only_called);
    }

    pub(super) fn handle_initiation(
        &mut self,
        now: Instant,
        route: Route,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let message = exact::<INITIATION_BYTES>(datagram)?;
        let sender = Initiation::sender(message);
        self.admit(now, route, message, Initiation::MAC1, sender)?;
        let state = self.identity.read_initiation(&mut self.rng, message)?;
        let at = *self.places.get(&state.peer).ok_or(DropReason::UnknownPeer)?;
        let peer = &mut self.peers[at];
        if state.timestamp <= peer.newest_timestamp {
            // The same initiation over a second path gets the same response.
            let answer = peer.answer.as_mut().filter(|answer| answer.timestamp == state.timestamp);
            let Some(answer) = answer else { return Err(self.refuse(now, at, route, state)) };
            self.handshakes.push_single(route, &answer.response);
            answer.asked.add(route);
            return Ok(());
        }
        if !is_over(now, peer.initiation_accepted_at, INITIATION_INTERVAL_MIN) {
            return Err(DropReason::TooManyInitiations);
        }
        self.answer(now, at, route, state)
    }

    /// An initiation is stale: somebody replays it, or the peer's clock was set back. Only the peer
    /// can read what it is told. Gives the reason under which the initiation counts.
    fn refuse(
        &mut self,
        now: Instant,
        at: usize,
        route: Route,
        state: ResponderState,
    ) -> DropReason {
        let peer = &mut self.peers[at];
        if is_over(now, peer.refused_at, REFUSAL_INTERVAL_MIN) {
            peer.refused_at = Some(now);
            let psk = &peer.config.preshared_key;
            match self.identity.refuse(state, psk, peer.newest_timestamp) {
                Ok(refusal) => self.handshakes.push_single(route, &refusal),
                Err(reason) => return reason,
            }
        }
        DropReason::StaleTimestamp
    }

    fn answer(
        &mut self,
        now: Instant,
        at: usize,
        route: Route,
        state: ResponderState,
    ) -> Result<(), DropReason> {
        let local = self.random_index();
        let (timestamp, peer_end) = (state.timestamp, state.hello.incarnation);
        let known = self.peers[at].bond_with(peer_end).map(|named| named.ends.own);
        if known.is_none() {
            self.discard_next_bond(at);
        }
        let peer = &mut self.peers[at];
        let ends = Ends { own: known.unwrap_or(peer.own_end), peer: peer_end };
        let psk = peer.config.preshared_key.clone();
        let hello = self.hello(ends.own);
        let (established, response) = self.identity.respond(state, &psk, local, &hello)?;
        self.log_secrets_of(&established);
        let peer = &mut self.peers[at];
        peer.newest_timestamp = timestamp;
        peer.initiation_accepted_at = Some(now);
        let mut asked = AskedRoutes::default();
        asked.add(route);
        peer.answer = Some(SentResponse { timestamp, response, local, asked });
        self.handshakes.push_single(route, &response);
        self.sessions.insert(local, at);
        if let Some(named) = peer.bond_with(peer_end) {
            let forgotten = named.bond.renew(now, established, false);
            self.forget_session(forgotten);
            return Ok(());
        }
        let setup = self.bond_setup(at);
        let bond = Bond::new(now, setup, established);
        self.peers[at].next_bond = Some(Box::new(NamedBond { bond, ends }));
        Ok(())
    }

    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        route: Route,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let message = exact::<RESPONSE_BYTES>(datagram)?;
        let local = Response::receiver(message).ok_or(DropReason::UnexpectedResponse)?;
        let at = *self.sessions.get(&local).ok_or(DropReason::UnexpectedResponse)?;
        let peer = &self.peers[at];
        if peer.attempts.state.as_ref().is_none_or(|state| state.local != local) {
            let used = peer.used_bond().is_some_and(|bond| bond.has_session(local));
            return Err(if used {
                DropReason::RepeatedResponse
            } else {
                DropReason::UnexpectedResponse
            });
        }
        self.admit(now, route, message, Response::MAC1, Response::sender(message))?;
        let state = self.peers[at].attempts.state.as_mut();
        let state = state.expect("the response names the handshake under way");
        let own_end = state.hello.incarnation;
        match self.identity.finish(state, message)? {
            Finished::Session(established) => {
                self.establish(now, at, own_end, route, *established);
                Ok(())
            }
            Finished::Refused(newest) => {
                self.handle_refusal(now, at, newest);
                Err(DropReason::StaleTimestamp)
            }
        }
    }

    /// The peer knows a newer timestamp of this side: the wall clock was set back. This side begins
    /// anew above it; at once, unless it did so a moment ago.
    fn handle_refusal(&mut self, now: Instant, at: usize, newest: Timestamp) {
        let peer = &mut self.peers[at];
        peer.timestamp_floor = peer.timestamp_floor.max(newest);
        let Some(state) = peer.attempts.state.take() else { return };
        self.sessions.remove(&state.local);
        if is_over(now, peer.corrected_at, REFUSAL_INTERVAL_MIN) {
            peer.corrected_at = Some(now);
            // The peer answers here, so this attempt goes where the last one went.
            peer.attempts.count = peer.attempts.count.saturating_sub(1);
            self.initiate(now, at);
        }
    }
}

pub(super) fn exact<const N: usize>(datagram: &[u8]) -> Result<&[u8; N], DropReason> {
    datagram
        .try_into()
        .map_err(|_| if datagram.len() < N { DropReason::Truncated } else { DropReason::Oversized })
}
