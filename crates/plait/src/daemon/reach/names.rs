//! Resolves the host names among the peers' endpoints: at the start, and again while a name has no
//! address or its peer does not answer. A separate thread asks DNS, since that may take time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use plait_proto::config::PeerConfig;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;
use serde::{Deserialize, Serialize};

use super::super::requests::{Request, Requests};
use crate::config::{self, Config, Endpoint, Peer};

/// A name is asked again after this, and after twice as long each time.
const WAIT_MIN: Duration = Duration::from_secs(2);
/// The longest wait: about as long as a dynamic name's address lives.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// After this the start waits no longer: the thread resolves the remaining names.
const START_TIME_MAX: Duration = Duration::from_secs(5);

/// A host name and a port.
type Name = (String, u16);

/// The result of resolving a name: addresses, or why there is none.
pub(in crate::daemon) type ResolvedName = (Name, Result<Vec<SocketAddr>, String>);

/// The status of a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct NameStatus {
    /// The name with its port.
    pub(crate) name: String,
    /// Its addresses when it was last resolved.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Why it could not be resolved the last time.
    pub(crate) error: Option<String>,
    /// Milliseconds until it is resolved again; `None`: not planned.
    pub(crate) next_in_ms: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    addresses: Vec<SocketAddr>,
    error: Option<String>,
    /// A query is in progress.
    is_asked: bool,
    /// When to resolve it again; `None` while all is well.
    next_at: Option<Instant>,
    wait: Duration,
}

/// The names of the configuration, and their known addresses.
#[derive(Debug)]
pub(in crate::daemon) struct Names {
    known: BTreeMap<Name, Known>,
    /// The endpoints, as configured, of each peer that has a name among them.
    endpoints: BTreeMap<PublicKey, Vec<Endpoint>>,
    questions: Sender<Vec<Name>>,
    /// The other end, until the thread takes it.
    receiver: Option<Receiver<Vec<Name>>>,
}

impl Names {
    /// Resolves all names of a configuration, and waits for the answers, within limits.
    pub(in crate::daemon) fn resolved(config: &Config) -> Self {
        let (questions, receiver) = channel();
        let mut names = Self {
            known: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            questions,
            receiver: Some(receiver),
        };
        names.follow(config);
        let start = std::time::Instant::now();
        let all: Vec<Name> = names.known.keys().cloned().collect();
        for name in all {
            if start.elapsed() < START_TIME_MAX {
                names.note(resolve(name));
            }
        }
        names
    }

    /// Applies the names of another configuration. Known addresses are kept.
    pub(in crate::daemon) fn follow(&mut self, config: &Config) {
        let mut old = std::mem::take(&mut self.known);
        let is_named =
            |peer: &&Peer| peer.endpoints.iter().any(|endpoint| endpoint.value.name().is_some());
        let named = config.peers.iter().filter(is_named);
        self.endpoints = named.map(|peer| (peer.public_key.value, endpoints_of(peer))).collect();
        for endpoint in self.endpoints.values().flatten() {
            if let Endpoint::Name(name, port) = endpoint {
                let name = (name.clone(), *port);
                let known = old.remove(&name).unwrap_or_default();
                self.known.entry(name).or_insert(known);
            }
        }
    }

    /// One more peer of the configuration; says whether it has a name.
    pub(super) fn add(&mut self, now: Instant, peer: &Peer) -> bool {
        let named = peer.endpoints.iter().filter_map(|endpoint| endpoint.value.name());
        let mut has_name = false;
        for (name, port) in named {
            has_name = true;
            let known = self.known.entry((name.to_owned(), port)).or_default();
            if known.addresses.is_empty() {
                (known.wait, known.next_at) = (Duration::ZERO, Some(now));
            }
        }
        if has_name {
            self.endpoints.insert(peer.public_key.value, endpoints_of(peer));
        }
        has_name
    }

    /// A peer is gone; so are its names, but those of others.
    pub(super) fn remove(&mut self, peer: &PublicKey) {
        let Some(gone) = self.endpoints.remove(peer) else { return };
        for endpoint in gone {
            if let Endpoint::Name(name, port) = &endpoint
                && !self.endpoints.values().flatten().any(|other| *other == endpoint)
            {
                self.known.remove(&(name.clone(), *port));
            }
        }
    }

    /// The peers of a configuration passed to [`Self::follow`], with their known addresses.
    pub(in crate::daemon) fn peers(&self, config: &Config) -> Vec<PeerConfig> {
        config.peer_configs(|endpoint| self.addresses(endpoint))
    }

    /// The known addresses of an endpoint.
    pub(in crate::daemon) fn addresses(&self, endpoint: &Endpoint) -> Vec<SocketAddr> {
        match endpoint {
            Endpoint::Address(address) => vec![*address],
            Endpoint::Name(name, port) => {
                let known = self.known.get(&(name.clone(), *port));
                known.map(|known| known.addresses.clone()).unwrap_or_default()
            }
        }
    }

    /// Resolves names on a separate thread.
    pub(in crate::daemon) fn start(&mut self, requests: Requests) -> anyhow::Result<()> {
        let receiver = self.receiver.take().expect("the thread is started once");
        thread::Builder::new()
            .name("names".into())
            .spawn(move || {
                for name in receiver.into_iter().flatten() {
                    if !requests.send(Request::Resolved(resolve(name))) {
                        return;
                    }
                }
            })
            .context("cannot start a thread")?;
        Ok(())
    }

    /// Resolves every name at the next opportunity, and soon again after that: for a new
    /// configuration or a new link.
    pub(in crate::daemon) fn ask_at_once(&mut self, now: Instant) {
        for known in self.known.values_mut() {
            (known.wait, known.next_at) = (Duration::ZERO, Some(now));
        }
    }

    /// Resolves the names that are due. Names of peers that do not answer are due from time to
    /// time, and so are names without an address.
    pub(super) fn ask(&mut self, now: Instant, unanswered: &[PublicKey]) {
        let mut due = Vec::new();
        for (name, known) in &mut self.known {
            let is_of = |peer: &PublicKey| {
                let endpoints = self.endpoints.get(peer).into_iter().flatten();
                let mut names = endpoints.filter_map(Endpoint::name);
                names.any(|(known, port)| known == name.0 && port == name.1)
            };
            let was_asked_for = known.next_at.is_some_and(|next| next <= now);
            if !(known.addresses.is_empty() || unanswered.iter().any(is_of) || was_asked_for) {
                (known.wait, known.next_at) = (Duration::ZERO, None);
                continue;
            }
            if known.is_asked {
                continue;
            }
            let next = *known.next_at.get_or_insert(now + WAIT_MIN);
            if next <= now {
                known.wait = (known.wait * 2).clamp(WAIT_MIN, WAIT_MAX);
                known.next_at = Some(now + known.wait);
                known.is_asked = true;
                due.push(name.clone());
            }
        }
        if !due.is_empty() {
            // A thread that ended with the gateway answers no more.
            let _ = self.questions.send(due);
        }
    }

    /// Whether any name waits to be resolved.
    pub(super) fn is_waiting(&self) -> bool {
        self.known.values().any(|known| known.is_asked || known.next_at.is_some())
    }

    /// Records an answer, and logs what is new. Says whether addresses changed.
    pub(in crate::daemon) fn note(&mut self, (name, answer): ResolvedName) -> bool {
        let Some(known) = self.known.get_mut(&name) else { return false };
        known.is_asked = false;
        let shown = format!("{}:{}", name.0, name.1);
        match answer {
            Ok(mut addresses) => {
                // The order of a name's addresses changes from answer to answer.
                let is_known = |address: &SocketAddr| known.addresses.contains(address);
                let is_same =
                    addresses.len() == known.addresses.len() && addresses.iter().all(is_known);
                if is_same && known.error.take().is_none() {
                    return false;
                }
                known.error = None;
                addresses.dedup();
                let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                log::info!("{shown} is {}", list.join(", "));
                let differs = !is_same;
                known.addresses = addresses;
                differs
            }
            Err(error) => {
                if known.error.as_ref() != Some(&error) {
                    let kept = if known.addresses.is_empty() { "" } else { "; its address stays" };
                    let most = WAIT_MAX.as_secs();
                    log::warn!("{shown}: {error}; asked again every {most} s or sooner{kept}");
                }
                known.error = Some(error);
                false
            }
        }
    }

    /// The status of a peer's names.
    pub(super) fn status(&self, now: Instant, peer: &PublicKey) -> Vec<NameStatus> {
        let endpoints = self.endpoints.get(peer).into_iter().flatten();
        let names = endpoints.filter_map(Endpoint::name).filter_map(|(name, port)| {
            let known = self.known.get(&(name.to_owned(), port))?;
            Some(NameStatus {
                name: format!("{name}:{port}"),
                addresses: known.addresses.clone(),
                error: known.error.clone(),
                next_in_ms: known.next_at.map(|next| next.since(now).as_millis() as u64),
            })
        });
        names.collect()
    }
}

fn endpoints_of(peer: &Peer) -> Vec<Endpoint> {
    peer.endpoints.iter().map(|endpoint| endpoint.value.clone()).collect()
}

fn resolve(name: Name) -> ResolvedName {
    let resolved = config::resolve(&Endpoint::Name(name.0.clone(), name.1));
    (name, resolved.map_err(|problem| problem.to_string()))
}
