//! Peers that do not answer: reports them in the log and in the status, and resolves their names
//! again.

mod names;
mod refusals;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use plait_proto::config::PeerConfig;
use plait_proto::endpoint::Endpoint;
use plait_proto::session::PublicKey;
use plait_proto::stats::AttemptsStatus;
use plait_proto::time::Instant;
use serde::{Deserialize, Serialize};

use self::names::NameStatus;
pub(super) use self::names::{Names, ResolvedName};
use self::refusals::Refusals;
use super::ports::SendErrors;
use super::requests::Requests;
use crate::config::{Config, Peer};

/// How often the state is checked while a peer does not answer.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A peer that has not answered for the first of these times is logged, and again after each of the
/// next; the last one repeats.
const TELL_AFTER: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(600),
    Duration::from_secs(3600),
];
/// A changed reason is logged at most this often.
const NEWS_INTERVAL_MIN: Duration = Duration::from_secs(30);

/// The status of a peer that this gateway tries to reach.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ContactStatus {
    /// The peer's key in base64.
    pub(crate) public_key: String,
    /// The names among its endpoints.
    pub(crate) names: Vec<NameStatus>,
    /// Why it does not answer, in words, as far as is known; `None` when it does.
    pub(crate) trouble: Option<String>,
}

/// What was logged of a peer that does not answer.
#[derive(Debug)]
struct Told {
    since: Instant,
    count: usize,
    last_at: Instant,
    last: String,
}

/// Watches the peers that this gateway tries to reach.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) names: Names,
    refusals: Refusals,
    told: BTreeMap<PublicKey, Told>,
    check_at: Option<Instant>,
}

impl Reach {
    /// A watch whose first check is due at once.
    pub(super) fn new(names: Names) -> Self {
        let check_at = Some(Instant::ZERO);
        Self { names, refusals: Refusals::default(), told: BTreeMap::new(), check_at }
    }

    /// Starts the threads.
    pub(super) fn start(&mut self, requests: Requests) -> anyhow::Result<()> {
        self.names.start(requests)?;
        self.refusals.start();
        Ok(())
    }

    /// Applies the peers of another configuration, and resolves their names again.
    pub(super) fn follow(&mut self, now: Instant, config: &Config) -> Vec<PeerConfig> {
        self.names.follow(config);
        self.names.ask_at_once(now);
        self.wake(now);
        self.names.peers(config)
    }

    /// There is one more peer: its names are resolved at once, and it is watched soon.
    pub(super) fn peer_came(&mut self, now: Instant, peer: &Peer) {
        if self.names.add(now, peer) {
            self.wake(now);
        } else if !peer.endpoints.is_empty() {
            self.check_at.get_or_insert(now + CHECK_INTERVAL);
        }
    }

    /// A peer is gone.
    pub(super) fn peer_went(&mut self, peer: &PublicKey) {
        self.names.remove(peer);
        self.told.remove(peer);
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.check_at
    }

    /// Something happened to a path or a link: makes the next check due now.
    pub(super) fn wake(&mut self, now: Instant) {
        self.check_at = Some(now);
    }

    /// A link came: names may resolve over it, and earlier attempts say little.
    pub(super) fn link_came(&mut self, now: Instant) {
        if self.names.is_waiting() {
            self.names.ask_at_once(now);
        }
        self.wake(now);
    }

    /// Checks the peers; resolves names, and logs.
    pub(super) fn run_due(&mut self, now: Instant, endpoint: &Endpoint, errors: &SendErrors) {
        let (mut silent, mut down) = (Vec::new(), Vec::new());
        for contact in endpoint.contacts() {
            if contact.has_silent_path || !contact.is_up {
                silent.push(contact.peer);
            }
            if contact.is_sought && !contact.is_up {
                down.push(contact.peer);
            }
        }
        self.names.ask(now, &silent);
        self.refusals.watch(self.asked_addresses(now, endpoint, &down));
        self.told.retain(|peer, _| down.contains(peer));
        for peer in &down {
            self.tell(now, endpoint, errors, peer);
        }
        let idle = down.is_empty() && !self.names.is_waiting();
        self.check_at = (!idle).then(|| now + CHECK_INTERVAL);
    }

    fn asked_addresses(
        &self,
        now: Instant,
        endpoint: &Endpoint,
        peers: &[PublicKey],
    ) -> Vec<SocketAddr> {
        let attempts = peers.iter().filter_map(|peer| endpoint.attempts(now, peer));
        attempts.flat_map(|attempts| addresses(&attempts)).collect()
    }

    /// Logs one line at first, and then less and less often, unless the reason changes.
    fn tell(&mut self, now: Instant, endpoint: &Endpoint, errors: &SendErrors, peer: &PublicKey) {
        let Some(attempts) = endpoint.attempts(now, peer) else { return };
        let why = self.why(now, &attempts, errors);
        let told = self.told.entry(*peer).or_insert_with(|| Told {
            since: now,
            count: 0,
            last_at: now,
            last: String::new(),
        });
        let wait = TELL_AFTER[told.count.min(TELL_AFTER.len() - 1)];
        let is_due = now.since(told.last_at) >= wait;
        let is_news =
            told.count > 0 && told.last != why && now.since(told.last_at) >= NEWS_INTERVAL_MIN;
        if is_due || is_news {
            let seconds = now.since(told.since).as_secs();
            log::warn!(
                "peer {} does not answer for {seconds} s, {}: {why}",
                short(peer),
                attempts_text(&attempts)
            );
            told.count += 1;
            (told.last_at, told.last) = (now, why);
        }
    }

    /// The reason, as far as known.
    fn why(&self, now: Instant, attempts: &AttemptsStatus, errors: &SendErrors) -> String {
        if attempts.asked.is_empty() {
            return "there is no link to call it over".into();
        }
        if let Some(error) = errors.latest(now, attempts) {
            return error;
        }
        let since = Duration::from_millis(attempts.since_ms);
        match self.refusals.about(&addresses(attempts)) {
            Some((ago, error)) if ago <= since => {
                format!("{} {} (ICMP from {})", error.destination, error.why, error.from)
            }
            _ => "nothing comes back".into(),
        }
    }

    /// The status of every peer that this gateway tries to reach.
    pub(super) fn status(
        &self,
        now: Instant,
        endpoint: &Endpoint,
        errors: &SendErrors,
    ) -> Vec<ContactStatus> {
        let contacts = endpoint.contacts().filter_map(|contact| {
            let names = self.names.status(now, &contact.peer);
            if !contact.is_sought && names.is_empty() {
                return None;
            }
            let attempts = endpoint.attempts(now, &contact.peer).filter(|_| !contact.is_up);
            let unresolved = names.iter().find_map(|name| {
                let error = name.error.as_ref().filter(|_| !contact.is_sought)?;
                Some(error.clone())
            });
            let trouble = unresolved.or_else(|| Some(self.why(now, &attempts?, errors)));
            Some(ContactStatus { public_key: contact.peer.to_string(), names, trouble })
        });
        contacts.collect()
    }
}

/// The addresses that attempts went to.
fn addresses(attempts: &AttemptsStatus) -> Vec<SocketAddr> {
    let asked = attempts.asked.iter().filter_map(|asked| asked.remote.parse().ok());
    let mut addresses: Vec<SocketAddr> = asked.collect();
    addresses.dedup();
    addresses
}

/// How many attempts there were, where they went, and when the next one comes.
pub(crate) fn attempts_text(attempts: &AttemptsStatus) -> String {
    let seconds = |ms: u64| format!("{}.{} s", ms / 1000, ms % 1000 / 100);
    let mut remotes: Vec<&str> = attempts.asked.iter().map(|asked| &*asked.remote).collect();
    let mut links: Vec<&str> = attempts.asked.iter().map(|asked| &*asked.link).collect();
    for list in [&mut remotes, &mut links] {
        list.sort_unstable();
        list.dedup();
        list.retain(|text| !text.is_empty());
    }
    let mut text =
        format!("attempts {}, the last {} ago", attempts.count, seconds(attempts.last_ms_ago));
    if !remotes.is_empty() {
        text.push_str(&format!(", to {}", remotes.join(", ")));
    }
    if !links.is_empty() {
        text.push_str(&format!(" over {}", links.join(", ")));
    }
    match attempts.next_in_ms {
        Some(next) => text.push_str(&format!("; the next in {}", seconds(next))),
        None => text.push_str("; no more until there is traffic for it"),
    }
    text
}

/// A peer's key as people recognise it.
pub(super) fn short(peer: &PublicKey) -> String {
    let key = peer.to_string();
    format!("{}…", &key[..key.len().min(8)])
}
