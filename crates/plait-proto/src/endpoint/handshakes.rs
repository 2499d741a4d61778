//! The endpoint's part in handshakes: when to begin one, whom to answer (spec H-clauses).

use super::Endpoint;
use super::peer::{Answer, Ends, NamedBond};
use crate::bond::Bond;
use crate::drop_reason::DropReason;
use crate::path::Route;
use crate::session::ResponderState;
use crate::time::{Duration, Instant};
use crate::wire::handshake::{INITIATION_BYTES, RESPONSE_BYTES, Response};

/// Initiations of one peer are accepted this far apart (WireGuard accepts 50 a second).
const INITIATION_INTERVAL_MIN: Duration = Duration::from_millis(20);

impl Endpoint {
    /// Begins a handshake, over every path that may work.
    pub(super) fn initiate(&mut self, now: Instant, at: usize) {
        if let Some(old) = self.peers[at].attempts.state.take() {
            self.sessions.remove(&old.local);
        }
        let local = self.random_index();
        let timestamp = self.next_timestamp(now);
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
        for route in self.targets(at) {
            self.handshakes.push_single(route, &state.message);
        }
        self.sessions.insert(local, at);
        let attempts = &mut self.peers[at].attempts;
        attempts.state = Some(state);
        attempts.schedule(now);
    }

    pub(super) fn handle_initiation(
        &mut self,
        now: Instant,
        route: Route,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let message = exact::<INITIATION_BYTES>(datagram)?;
        self.identity.check_initiation(message)?;
        let state = self.identity.read_initiation(&mut self.rng, message)?;
        let at = self
            .peers
            .iter()
            .position(|peer| peer.config.public_key == state.peer)
            .ok_or(DropReason::UnknownPeer)?;
        let peer = &self.peers[at];
        if state.timestamp <= peer.newest_timestamp {
            // The same initiation over a second path gets the same response.
            let answer = peer.answer.as_ref().filter(|answer| answer.timestamp == state.timestamp);
            let answer = answer.ok_or(DropReason::StaleTimestamp)?;
            self.handshakes.push_single(route, &answer.response);
            return Ok(());
        }
        let last = peer.initiation_accepted_at;
        if last.is_some_and(|last| now.since(last) < INITIATION_INTERVAL_MIN) {
            return Err(DropReason::TooManyInitiations);
        }
        self.answer(now, at, route, state)
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
        let peer = &mut self.peers[at];
        let own_end = peer.bond_with(peer_end).map(|named| named.ends.own);
        let ends = Ends { own: own_end.unwrap_or(peer.own_end), peer: peer_end };
        let psk = peer.config.preshared_key.clone();
        let hello = self.hello(ends.own);
        let (established, response) = self.identity.respond(state, &psk, local, &hello)?;
        let peer = &mut self.peers[at];
        peer.newest_timestamp = timestamp;
        peer.initiation_accepted_at = Some(now);
        peer.answer = Some(Answer { timestamp, response });
        self.handshakes.push_single(route, &response);
        self.sessions.insert(local, at);
        if let Some(named) = peer.bond_with(peer_end) {
            let forgotten = named.bond.renew(now, established, false);
            self.sessions.retain(|index, _| Some(*index) != forgotten);
            return Ok(());
        }
        let setup = self.bond_setup(at);
        let bond = Bond::new(now, setup, established);
        if let Some(unused) = self.peers[at].next_bond.replace(NamedBond { bond, ends }) {
            for index in unused.bond.session_indices() {
                self.sessions.remove(&index);
            }
        }
        Ok(())
    }

    pub(super) fn handle_response(
        &mut self,
        now: Instant,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let message = exact::<RESPONSE_BYTES>(datagram)?;
        let local = Response::receiver(message).ok_or(DropReason::UnexpectedResponse)?;
        let at = *self.sessions.get(&local).ok_or(DropReason::UnexpectedResponse)?;
        let peer = &mut self.peers[at];
        let Some(state) = peer.attempts.state.as_mut().filter(|state| state.local == local) else {
            let used = peer.used_bond().is_some_and(|bond| bond.has_session(local));
            return Err(if used {
                DropReason::RepeatedResponse
            } else {
                DropReason::UnexpectedResponse
            });
        };
        let established = self.identity.finish(state, message)?;
        let own_end = state.hello.incarnation;
        self.establish(now, at, own_end, established);
        Ok(())
    }
}

fn exact<const N: usize>(datagram: &[u8]) -> Result<&[u8; N], DropReason> {
    datagram
        .try_into()
        .map_err(|_| if datagram.len() < N { DropReason::Truncated } else { DropReason::Oversized })
}
