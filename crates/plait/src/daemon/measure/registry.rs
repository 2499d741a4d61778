//! Records which peers may measure, and which measurements run.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plait_proto::allowed_ips::Routes;
use plait_proto::config::Prefix;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Peer};
use crate::daemon::log_budget::{LogBudget, Verdict};
use crate::measure::wire::{Refusal, Token};
use crate::measure::{SESSION_BYTES_MAX, SESSION_TIME_MAX};

/// Flows and echoes over each path at once, and the connection that holds the measurement.
const SESSION_CONNECTIONS_MAX: usize = 2 * 33 + 1;

/// What a gateway does in a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// `plait measure` was begun here.
    Asks,
    /// The peer measures.
    Serves,
}

/// A running measurement, for `plait status`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct MeasurementStatus {
    /// The peer's key in base64.
    pub(crate) peer: String,
    /// What this gateway does in it.
    pub(crate) role: Role,
    /// The longest that it still runs, in seconds.
    pub(crate) remaining_s: u64,
}

/// Why a client is not served, with a sentence.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub(super) struct Refused {
    pub(super) why: Refusal,
    pub(super) text: String,
}

impl Refused {
    pub(super) fn new(why: Refusal, text: impl Into<String>) -> Self {
        Self { why, text: text.into() }
    }
}

/// What measuring needs to know of a peer.
#[derive(Clone, Debug)]
struct Known {
    key: String,
    prefixes: Vec<Prefix>,
    serves: bool,
    /// Likely addresses of its gateway inside the bond.
    addresses: Vec<IpAddr>,
}

#[derive(Debug, Default)]
struct State {
    peers: Vec<Known>,
    /// Measurements of this side, by the peer's key, and until when.
    asked: BTreeMap<String, Instant>,
    served: Vec<Arc<Session>>,
    log_budget: LogBudget<String>,
}

/// A measurement that a peer began.
#[derive(Debug)]
pub(super) struct Session {
    token: Token,
    peer: String,
    until: Instant,
    is_over: AtomicBool,
    claims: Mutex<Claims>,
}

/// What a measurement has used so far.
#[derive(Debug, Default)]
struct Claims {
    connections: usize,
    bytes: u64,
}

impl Session {
    pub(super) fn token(&self) -> Token {
        self.token
    }

    /// Whether it goes on.
    pub(super) fn is_alive(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed) && Instant::now() < self.until
    }

    pub(super) fn remaining(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// A connection's place in a measurement, released when dropped.
#[derive(Debug)]
pub(super) struct Place(pub(super) Arc<Session>);

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.0.claims).connections -= 1;
    }
}

/// A measurement that ends when the value is dropped.
#[derive(Debug)]
pub(super) struct Holding {
    registry: Registry,
    pub(super) session: Arc<Session>,
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.session.is_over.store(true, Ordering::Relaxed);
        self.registry.lock().served.retain(|known| !Arc::ptr_eq(known, &self.session));
    }
}

/// State shared by the service's threads, the control socket and the loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry(Arc<Mutex<State>>);

/// Nothing panics while holding a lock of this module, and the guarded data is always consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// Applies this configuration. Measurements that it no longer allows end.
    pub(crate) fn follow(&self, config: &Config) {
        let mut state = self.lock();
        state.peers = config.peers.iter().map(|peer| known(config, peer)).collect();
        let State { peers, served, .. } = &mut *state;
        for session in served {
            if !peers.iter().any(|peer| peer.key == session.peer && peer.serves) {
                session.is_over.store(true, Ordering::Relaxed);
            }
        }
    }

    /// There is one more peer.
    pub(crate) fn add(&self, config: &Config, peer: &Peer) {
        self.lock().peers.push(known(config, peer));
    }

    /// A peer is gone, and so is its measurement.
    pub(crate) fn remove(&self, key: &str) {
        let mut state = self.lock();
        state.asked.remove(key);
        for session in state.served.iter().filter(|session| session.peer == key) {
            session.is_over.store(true, Ordering::Relaxed);
        }
        if let Some(at) = state.peers.iter().position(|peer| peer.key == key) {
            state.peers.swap_remove(at);
        }
    }

    /// A peer begins a measurement.
    pub(super) fn open(
        &self,
        source: IpAddr,
        seconds: u16,
        token: Token,
    ) -> Result<Holding, Refused> {
        let mut state = self.lock();
        let peer = state.served_peer(source)?;
        let length = Duration::from_secs(seconds.into());
        if length > SESSION_TIME_MAX {
            let most = SESSION_TIME_MAX.as_secs();
            return Err(Refused::new(Refusal::TooMuch, format!("it may take {most} s at most")));
        }
        if let Some(other) = state.served.iter().find(|session| session.peer == peer) {
            let seconds = other.remaining().as_secs() + 1;
            let text = format!("one is running already, for up to {seconds} s more");
            return Err(Refused::new(Refusal::Busy, text));
        }
        let session = Arc::new(Session {
            token,
            peer,
            until: Instant::now() + length,
            is_over: AtomicBool::new(false),
            claims: Mutex::default(),
        });
        state.served.push(session.clone());
        Ok(Holding { registry: self.clone(), session })
    }

    /// The key of the peer that an address belongs to, whether it may measure or not.
    pub(super) fn peer_of(&self, source: IpAddr) -> Option<String> {
        let state = self.lock();
        state.peer_at(source).map(|peer| peer.key.clone())
    }

    /// Whether a measurement's beginning and end are logged: a peer could begin thousands.
    pub(super) fn may_tell(&self, session: &Session) -> bool {
        matches!(self.lock().log_budget.take(&session.peer), Verdict::Write { .. })
    }

    /// One more connection of a measurement, which may carry so many bytes.
    pub(super) fn join(&self, source: IpAddr, token: &Token, bytes: u64) -> Result<Place, Refused> {
        let state = self.lock();
        let peer = state.served_peer(source)?;
        let named = |session: &&Arc<Session>| session.token == *token && session.peer == peer;
        let session = state.served.iter().find(named).filter(|session| session.is_alive());
        let session = session.ok_or_else(|| Refused::new(Refusal::UnknownToken, "it is over"))?;
        let mut claims = lock(&session.claims);
        let claimed = claims.bytes.saturating_add(bytes);
        if claims.connections >= SESSION_CONNECTIONS_MAX || claimed > SESSION_BYTES_MAX {
            return Err(Refused::new(Refusal::TooMuch, "too many connections or bytes"));
        }
        *claims = Claims { connections: claims.connections + 1, bytes: claimed };
        drop(claims);
        Ok(Place(session.clone()))
    }

    /// A measurement of this side begins. Returns the addresses at which the peer may answer, the
    /// likeliest first; `None` when there is no such peer.
    pub(crate) fn begin(&self, peer: &str, seconds: u32) -> Option<Vec<IpAddr>> {
        let mut state = self.lock();
        let addresses = state.peers.iter().find(|known| known.key == peer)?.addresses.clone();
        let length = Duration::from_secs(seconds.into()).min(SESSION_TIME_MAX);
        state.asked.insert(peer.to_owned(), Instant::now() + length);
        Some(addresses)
    }

    /// It has ended.
    pub(crate) fn end(&self, peer: &str) {
        self.lock().asked.remove(peer);
    }

    /// The running measurements.
    pub(crate) fn status(&self) -> Vec<MeasurementStatus> {
        let mut state = self.lock();
        let now = Instant::now();
        state.asked.retain(|_, until| *until > now);
        let status = |peer: &str, role, until: Instant| {
            let remaining_s = until.saturating_duration_since(now).as_secs();
            MeasurementStatus { peer: peer.to_owned(), role, remaining_s }
        };
        let asked = state.asked.iter().map(|(peer, until)| status(peer, Role::Asks, *until));
        let served =
            state.served.iter().map(|known| status(&known.peer, Role::Serves, known.until));
        asked.chain(served).collect()
    }
}

impl State {
    /// The peer that an address belongs to.
    fn peer_at(&self, source: IpAddr) -> Option<&Known> {
        let peers = self.peers.iter().enumerate();
        let routes = Routes::new(peers.map(|(at, peer)| (at, &peer.prefixes[..])));
        routes.peer_of(source).map(|at| &self.peers[at])
    }

    /// The key of the peer that an address belongs to, if that may measure.
    fn served_peer(&self, source: IpAddr) -> Result<String, Refused> {
        let served = self.peer_at(source).filter(|peer| peer.serves).map(|peer| peer.key.clone());
        served.ok_or_else(|| {
            Refused::new(Refusal::NotAllowed, "its configuration does not let this peer measure")
        })
    }
}

fn known(config: &Config, peer: &Peer) -> Known {
    let prefixes: Vec<Prefix> = peer.allowed_ips.iter().map(|prefix| prefix.value.into()).collect();
    Known {
        key: peer.public_key.value.to_string(),
        addresses: likely_addresses(config, &prefixes),
        prefixes,
        serves: peer.measure.unwrap_or(config.gateway.measure),
    }
}

/// The peer's single addresses; else the first host of a network that both gateways are in.
fn likely_addresses(config: &Config, prefixes: &[Prefix]) -> Vec<IpAddr> {
    let bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let single = prefixes.iter().filter(|prefix| prefix.length == bits(prefix.address));
    let mut addresses: Vec<IpAddr> = single.map(|prefix| prefix.address).collect();
    let own = config.gateway.addresses.iter();
    for cidr in own.filter(|cidr| cidr.length < bits(cidr.address)) {
        let first = match cidr.network().address {
            IpAddr::V4(network) => IpAddr::from((network.to_bits() | 1).to_be_bytes()),
            IpAddr::V6(network) => IpAddr::from((network.to_bits() | 1).to_be_bytes()),
        };
        let is_peers = prefixes.iter().any(|prefix| prefix.contains(first));
        if first != cidr.address && is_peers && !addresses.contains(&first) {
            addresses.push(first);
        }
    }
    addresses
}

#[cfg(test)]
pub(super) mod tests;
