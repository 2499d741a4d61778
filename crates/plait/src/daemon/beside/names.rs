//! The addresses of the names that rules are for. A thread of its own asks the host's resolver,
//! since that may take time.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use plait_proto::time::Instant;
use serde::{Deserialize, Serialize};

use super::super::requests::{Request, Requests};
use crate::config::{self, Beside as Rule, Endpoint};

/// All names are asked for this often. Answers come without the time that they are good for.
const INTERVAL: Duration = Duration::from_secs(60);
/// The same while one has no address.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// An address that was not in an answer for so long is forgotten.
const KEPT: Duration = Duration::from_secs(600);
/// Addresses of one name.
const ADDRESSES_MAX: usize = 64;

/// Each name with its addresses, or why there is none.
pub(in crate::daemon) type ResolvedDomains = Vec<(String, Result<Vec<IpAddr>, String>)>;

/// The status of a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DomainStatus {
    /// The name.
    pub(crate) name: String,
    /// Its addresses of late.
    pub(crate) addresses: Vec<IpAddr>,
    /// Why it could not be resolved the last time.
    pub(crate) error: Option<String>,
}

#[derive(Debug, Default)]
struct Known {
    /// Each address with the last time it was in an answer.
    addresses: BTreeMap<IpAddr, Instant>,
    error: Option<String>,
}

/// The names of all rules.
#[derive(Default)]
pub(super) struct Domains {
    known: BTreeMap<String, Known>,
    ask_at: Instant,
    /// Questions are on their way.
    is_asking: bool,
    /// For the thread, which starts with the first question.
    requests: Option<Requests>,
    questions: Option<Sender<Vec<String>>>,
}

impl std::fmt::Debug for Domains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domains").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Domains {
    /// From now on there is somebody for the answers.
    pub(super) fn start(&mut self, requests: Requests) {
        self.requests = Some(requests);
    }

    /// Other rules. Known addresses are kept.
    pub(super) fn follow(&mut self, now: Instant, rules: &[Rule]) {
        let mut old = std::mem::take(&mut self.known);
        let names = rules.iter().flat_map(|rule| &rule.domains);
        self.known =
            names.map(|name| (name.clone(), old.remove(name).unwrap_or_default())).collect();
        self.ask_at = now;
    }

    /// When [`Self::ask`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let is_idle = self.known.is_empty() || self.is_asking || self.requests.is_none();
        (!is_idle).then_some(self.ask_at)
    }

    /// Asks for all names, when it is time to.
    pub(super) fn ask(&mut self, now: Instant) {
        if self.due_at().is_none_or(|due| due > now) {
            return;
        }
        let names: Vec<String> = self.known.keys().cloned().collect();
        let Some(questions) = self.questions() else {
            self.ask_at = now + INTERVAL;
            return;
        };
        // A thread that ended with the gateway answers no more.
        self.is_asking = questions.send(names).is_ok();
        self.ask_at = now + INTERVAL;
    }

    fn questions(&mut self) -> Option<&Sender<Vec<String>>> {
        if self.questions.is_none() {
            let requests = self.requests.clone()?;
            let (questions, receiver) = channel::<Vec<String>>();
            let answer = move || {
                for names in receiver {
                    let answers = names.into_iter().map(|name| {
                        let found = resolve(&name);
                        (name, found)
                    });
                    if !requests.send(Request::Domains(answers.collect())) {
                        return;
                    }
                }
            };
            match thread::Builder::new().name("domains".into()).spawn(answer) {
                Ok(_) => self.questions = Some(questions),
                Err(error) => log::error!("[[beside]] domains: cannot start a thread: {error}"),
            }
        }
        self.questions.as_ref()
    }

    /// Records answers; says whether addresses changed.
    pub(super) fn note(&mut self, now: Instant, answers: ResolvedDomains) -> bool {
        self.is_asking = false;
        let before = self.all();
        for (name, answer) in answers {
            let Some(known) = self.known.get_mut(&name) else { continue };
            match answer {
                Ok(addresses) => {
                    known.error = None;
                    for address in addresses {
                        let is_new = !known.addresses.contains_key(&address);
                        if !is_new || known.addresses.len() < ADDRESSES_MAX {
                            known.addresses.insert(address, now);
                        }
                    }
                }
                Err(error) => {
                    if known.error.as_ref() != Some(&error) {
                        log::warn!("[[beside]] domains: {name}: {error}; asked again");
                    }
                    known.error = Some(error);
                }
            }
        }
        for known in self.known.values_mut() {
            known.addresses.retain(|_, seen_at| now.since(*seen_at) <= KEPT);
        }
        let any_missing = self.known.values().any(|known| known.addresses.is_empty());
        self.ask_at = now + if any_missing { RETRY_INTERVAL } else { INTERVAL };
        before != self.all()
    }

    fn all(&self) -> Vec<(String, IpAddr)> {
        let each = self.known.iter();
        each.flat_map(|(name, known)| known.addresses.keys().map(|one| (name.clone(), *one)))
            .collect()
    }

    /// The addresses of a rule's names.
    pub(super) fn addresses(&self, rule: &Rule) -> Vec<IpAddr> {
        let known = rule.domains.iter().filter_map(|name| self.known.get(name));
        known.flat_map(|known| known.addresses.keys().copied()).collect()
    }

    /// The status of a rule's names.
    pub(super) fn status(&self, rule: &Rule) -> Vec<DomainStatus> {
        let known = rule.domains.iter().filter_map(|name| self.known.get_key_value(name));
        known
            .map(|(name, known)| DomainStatus {
                name: name.clone(),
                addresses: known.addresses.keys().copied().collect(),
                error: known.error.clone(),
            })
            .collect()
    }
}

fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    // Any port will do.
    let found = config::resolve(&Endpoint::Name(name.to_owned(), 443));
    let addresses = found.map_err(|problem| problem.to_string())?;
    Ok(addresses.into_iter().map(|address| address.ip().to_canonical()).collect())
}

#[cfg(test)]
mod tests {
    use plait_toml::beside::Otherwise;

    use super::*;

    fn rule(domains: &[&str]) -> Rule {
        Rule {
            line: 1,
            sources: Vec::new(),
            destinations: Vec::new(),
            domains: domains.iter().map(|name| (*name).to_owned()).collect(),
            protocol: None,
            ports: Vec::new(),
            dscp: Vec::new(),
            over: None,
            otherwise: Otherwise::Bond,
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn answer(name: &str, addresses: std::ops::Range<u8>) -> ResolvedDomains {
        let addresses = addresses.map(|last| IpAddr::from([192, 0, 2, last])).collect();
        vec![(name.to_owned(), Ok(addresses))]
    }

    #[test]
    fn addresses_are_kept_for_a_while_and_are_not_too_many() {
        let mut domains = Domains::default();
        let rule = rule(&["a.example"]);
        domains.follow(at(0), std::slice::from_ref(&rule));
        assert_eq!(domains.due_at(), None, "nobody takes the answer yet");
        assert!(domains.note(at(1), answer("a.example", 1..2)));
        assert!(!domains.note(at(61), answer("a.example", 1..2)));
        assert!(!domains.note(at(61), answer("b.example", 1..2)), "not asked for");
        assert!(domains.note(at(121), answer("a.example", 2..3)), "one more");
        assert_eq!(domains.addresses(&rule).len(), 2);
        let failed = vec![("a.example".to_owned(), Err("no answer".to_owned()))];
        assert!(!domains.note(at(661), failed.clone()), "both are kept");
        assert!(domains.note(at(662), failed), "the first is forgotten");
        let status = domains.status(&rule);
        assert_eq!(status[0].addresses, [IpAddr::from([192, 0, 2, 2])]);
        assert_eq!(status[0].error.as_deref(), Some("no answer"));
        domains.note(at(700), answer("a.example", 1..200));
        assert_eq!(domains.addresses(&rule).len(), ADDRESSES_MAX);
        domains.follow(at(701), &[]);
        assert!(domains.addresses(&rule).is_empty());
    }
}
