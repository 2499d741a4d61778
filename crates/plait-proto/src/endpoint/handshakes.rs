//! The endpoint's part in handshakes: when to begin one, whom to answer (spec H-clauses).

use super::Endpoint;
use super::peer::{Answer, NextBond};
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
        let peer = &self.peers[at];
        let state = self.identity.initiate(
            &mut self.rng,
            &peer.config.public_key,
            &peer.config.preshared_key,
            local,
            timestamp,
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
        let timestamp = state.timestamp;
        let psk = self.peers[at].config.preshared_key.clone();
        let (established, response) = self.identity.respond(state, &psk, local)?;
        let peer = &mut self.peers[at];
        peer.newest_timestamp = timestamp;
        peer.initiation_accepted_at = Some(now);
        peer.answer = Some(Answer { timestamp, response });
        self.handshakes.push_single(route, &response);
        self.sessions.insert(local, at);
        let incarnation = established.peer.incarnation;
        let known = peer.incarnation == Some(incarnation);
        if let Some(bond) = peer.bond.as_mut().filter(|_| known) {
            let forgotten = bond.renew(now, established, false);
            self.sessions.retain(|index, _| Some(*index) != forgotten);
            return Ok(());
        }
        let setup = self.bond_setup(at);
        let bond = Bond::new(now, setup, established);
        let next = NextBond { bond, incarnation };
        if let Some(unused) = self.peers[at].next_bond.replace(next) {
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
            let used = peer.bond.as_ref().is_some_and(|bond| bond.has_session(local));
            return Err(if used {
                DropReason::RepeatedResponse
            } else {
                DropReason::UnexpectedResponse
            });
        };
        let established = self.identity.finish(state, message)?;
        self.establish(now, at, established);
        Ok(())
    }
}

fn exact<const N: usize>(datagram: &[u8]) -> Result<&[u8; N], DropReason> {
    datagram
        .try_into()
        .map_err(|_| if datagram.len() < N { DropReason::Truncated } else { DropReason::Oversized })
}
