//! `[[beside]]`: traffic that goes beside the bond, over a bare link.
//!
//! A table of the packet filter marks what matches a rule, before anything else looks at it: each
//! rule has a mark. Rules of policy routing lead each mark into the table of the rule's link. Every
//! link has a zone of conntrack, so that a connection that changes its way is one that the kernel
//! has not seen, and gets the source address of its new link. When a link changes, the rules of the
//! table are made again in one go; counters stay.

mod names;
mod script;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use plait_net::netlink::policy::Family;
use plait_net::netlink::{Interface, Netlink, NetlinkError};
use plait_proto::config::PeerConfig;
use plait_proto::time::Instant;
use plait_toml::beside::Otherwise;
use serde::{Deserialize, Serialize};

use super::exits::{Exit, Probes, exits};
use super::nat::{HostError, nft, nft_list, removal};
use super::policy::{filter_of, is_filter_strict, name_of, set_filter, take_from_everywhere};
use super::requests::Requests;
use super::state::StateFile;
use crate::config::identity::{SYSFS, find};
use crate::config::{Beside as Rule, Config, LinkName};
pub(crate) use names::DomainStatus;
use names::Domains;
pub(super) use names::ResolvedDomains;
use script::{Script, Way, counters, is_ours, table_name};
use ways::Ways;

/// Without news, routes and links are looked at this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Time between two rounds of pings that find the best link, when a rule asks for it.
const ROUND: Duration = Duration::from_secs(2);

/// A rule's status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct BesideStatus {
    /// What it is for, in words.
    pub(crate) rule: String,
    /// The link that the file names; `None`: the best one.
    pub(crate) over: Option<String>,
    /// What becomes of it now, by family: a link's interface, `bond`, or `blocked`.
    pub(crate) ipv4: String,
    /// The same.
    pub(crate) ipv6: String,
    /// Packets that left over a link since the rule came into force.
    pub(crate) packets: u64,
    /// Their bytes at the IP layer.
    pub(crate) bytes: u64,
    /// The names that are resolved for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) domains: Vec<DomainStatus>,
}

/// What is in force.
#[derive(Debug)]
pub(super) struct Beside {
    tun: String,
    rules: Vec<Rule>,
    /// Where each rule's traffic goes now, by family.
    ways: Vec<[Way; 2]>,
    /// The interfaces of the configured paths, by the paths' names.
    paths: BTreeMap<String, String>,
    /// Interfaces over which no peer answers, although it does over another.
    silent: BTreeSet<String>,
    endpoints: Vec<SocketAddr>,
    listen_ports: Vec<u16>,
    routing: Option<Ways>,
    probes: Probes,
    exits: Vec<Exit>,
    domains: Domains,
    /// The rules of the table in force; `None` without a table.
    in_force: Option<String>,
    /// Why they were refused the last time.
    refused: Option<String>,
    look_at: Option<Instant>,
}

impl Beside {
    /// Nothing yet.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            tun: config.gateway.tun.clone(),
            rules: Vec::new(),
            ways: Vec::new(),
            paths: BTreeMap::new(),
            silent: BTreeSet::new(),
            endpoints: Vec::new(),
            listen_ports: Vec::new(),
            routing: None,
            probes: Probes::paced(ROUND),
            exits: Vec::new(),
            domains: Domains::default(),
            in_force: None,
            refused: None,
            look_at: None,
        }
    }

    /// Undoes what an earlier run left, and begins. Before the links are known, rules that name a
    /// path's link wait for it.
    pub(super) fn set_up(&mut self, config: &Config, peers: &[PeerConfig], file: &mut StateFile) {
        undo(file);
        self.follow(Instant::ZERO, config, peers, file);
    }

    /// From now on names are resolved.
    pub(super) fn start(&mut self, requests: Requests) {
        self.domains.start(requests);
    }

    /// Another configuration, or other addresses of peers.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        config: &Config,
        peers: &[PeerConfig],
        file: &mut StateFile,
    ) {
        let endpoints = peers.iter().flat_map(|peer| &peer.endpoints);
        self.endpoints =
            endpoints.map(|to| SocketAddr::new(to.ip().to_canonical(), to.port())).collect();
        self.listen_ports = config.gateway.listen_ports().collect();
        if self.rules != config.beside {
            self.rules.clone_from(&config.beside);
            self.ways = vec![[Way::Bond, Way::Bond]; self.rules.len()];
            self.domains.follow(now, &self.rules);
            // Other rules have other counters.
            self.in_force = None;
        }
        if self.rules.is_empty() {
            self.stop(file);
            return;
        }
        if self.routing.is_none() {
            match Ways::new(&self.tun) {
                Ok(routing) => self.routing = Some(routing),
                Err(error) => log::error!("[[beside]]: {error:#}"),
            }
        }
        self.look_at = Some(now);
        self.run_due(now, file);
    }

    fn stop(&mut self, file: &mut StateFile) {
        self.look_at = None;
        self.probes.stop();
        self.in_force = None;
        if let Some(mut routing) = self.routing.take() {
            routing.follow(&[]);
            undo(file);
        }
    }

    /// Links came, went or changed; `paths` are the interfaces of the configured paths.
    pub(super) fn follow_links<'a>(
        &mut self,
        now: Instant,
        paths: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        self.paths = paths.map(|(path, name)| (path.to_owned(), name.to_owned())).collect();
        if self.look_at.is_some() {
            self.look_at = Some(now);
            if let Some(routing) = &mut self.routing {
                routing.may_be_gone();
            }
        }
    }

    /// Something happened to a bond or a path.
    pub(super) fn wake(&mut self, now: Instant) {
        if let Some(look_at) = &mut self.look_at {
            *look_at = now;
        }
    }

    /// These interfaces lead nowhere now, as far as the bond knows.
    pub(super) fn note_silent<'a>(&mut self, interfaces: impl Iterator<Item = &'a str>) {
        self.silent = interfaces.map(str::to_owned).collect();
    }

    /// Records addresses of names.
    pub(super) fn note(&mut self, now: Instant, answer: ResolvedDomains) {
        if self.domains.note(now, answer) && self.look_at.is_some() {
            self.look_at = Some(now);
        }
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        let look_at = self.look_at?;
        let timers = [self.domains.due_at(), self.probes.due_at()];
        Some(timers.into_iter().flatten().fold(look_at, Instant::min))
    }

    /// Looks at the links, and leads what matches over those that there are.
    pub(super) fn run_due(&mut self, now: Instant, file: &mut StateFile) {
        if self.due_at().is_none_or(|due| due > now) {
            return;
        }
        self.look_at = Some(now + LOOK_INTERVAL);
        self.domains.ask(now);
        let interfaces = match self.look() {
            Ok(interfaces) => interfaces,
            Err(error) => {
                log::warn!("[[beside]]: {error}: {}; tried again", error.source);
                return;
            }
        };
        if self.rules.iter().any(|rule| rule.over.is_none()) {
            let beyond: Vec<IpAddr> = self.endpoints.iter().map(SocketAddr::ip).collect();
            self.probes.run(now, &self.exits, &beyond);
        } else {
            self.probes.stop();
        }
        let ways: Vec<[Way; 2]> = (0..self.rules.len())
            .map(|at| Family::ALL.map(|family| self.way(now, at, family, &interfaces)))
            .collect();
        self.tell(&ways);
        self.ways = ways;
        self.apply(file);
    }

    fn look(&mut self) -> Result<Vec<Interface>, NetlinkError> {
        let mut netlink = Netlink::open()?;
        self.exits = exits(&mut netlink, &self.tun)?;
        for exit in &mut self.exits {
            exit.running &= !self.silent.contains(&exit.interface);
        }
        netlink.interfaces()
    }

    /// Where a rule's traffic of a family should go.
    fn way(&self, now: Instant, at: usize, family: Family, interfaces: &[Interface]) -> Way {
        let rule = &self.rules[at];
        let found = match &rule.over {
            None => {
                let current = match &self.ways[at][script::place(family)] {
                    Way::Over(exit) => Some(exit.interface.as_str()),
                    _ => None,
                };
                self.probes.best(now, &self.exits, family, current)
            }
            Some(over) => {
                let interface = self.interface(&over.value, interfaces);
                let is_its = |exit: &&Exit| {
                    exit.family == family && Some(exit.interface.as_str()) == interface
                };
                self.exits.iter().find(is_its)
            }
        };
        match (found.filter(|exit| exit.running), rule.otherwise) {
            (Some(exit), _) => Way::Over(exit.clone()),
            (None, Otherwise::Bond) => Way::Bond,
            (None, Otherwise::Block) => Way::Blocked,
        }
    }

    /// The interface of a link that a rule names. What several interfaces have in common is none's.
    fn interface<'a>(&'a self, over: &'a LinkName, all: &'a [Interface]) -> Option<&'a str> {
        match over {
            LinkName::Named(name) => Some(self.paths.get(name).unwrap_or(name)),
            LinkName::Identity(identity) => {
                let found = find(identity, all, Path::new(SYSFS)).ok().flatten();
                found.map(|interface| interface.name.as_str())
            }
        }
    }

    /// Says which rules have another link.
    fn tell(&self, ways: &[[Way; 2]]) {
        for ((rule, old), new) in self.rules.iter().zip(&self.ways).zip(ways) {
            for (family, (old, new)) in Family::ALL.into_iter().zip(old.iter().zip(new)) {
                if old.name() != new.name() {
                    let family = name_of(family);
                    log::info!("beside ({}): {family} goes {}", rule.told(), new.told());
                }
            }
        }
    }

    /// Puts the ways in force.
    fn apply(&mut self, file: &mut StateFile) {
        let Some(routing) = &mut self.routing else { return };
        let table = table_name(&self.tun);
        if file.state.beside_marks != Some(routing.base()) {
            file.state.beside_marks = Some(routing.base());
            file.state.beside_table = Some(table.clone());
            file.save();
        }
        for exit in self.ways.iter().flatten().filter_map(Way::exit) {
            loosen(&exit.interface, file);
        }
        routing.follow(&self.ways);
        let script = Script {
            tun: &self.tun,
            rules: &self.rules,
            ways: &self.ways,
            exits: &self.exits,
            paths: &self.paths,
            endpoints: &self.endpoints,
            listen_ports: &self.listen_ports,
            domains: &self.domains,
            base: routing.base(),
        };
        let text = script.chains();
        if self.in_force.as_ref() != Some(&text) {
            let whole = match self.in_force {
                None => format!("{}{}{text}", removal(&table), script.counters()),
                Some(_) => format!("flush table inet {table}\n{text}"),
            };
            match nft(&[], &whole) {
                Ok(()) => (self.in_force, self.refused) = (Some(text), None),
                Err(error) => {
                    let why = Some(error.of_table("[[beside]]"));
                    if let Some(why) =
                        why.as_ref().filter(|why| Some(*why) != self.refused.as_ref())
                    {
                        log::error!("{why}; tried again, the old rules stay");
                    }
                    self.refused = why;
                }
            }
        }
    }

    /// What each rule does now; its counters are for [`count`].
    pub(super) fn status(&self) -> Vec<BesideStatus> {
        let status = |(rule, [v4, v6]): (&Rule, &[Way; 2])| BesideStatus {
            rule: rule.told(),
            over: rule.over.as_ref().map(|over| over.value.to_string()),
            ipv4: v4.name().to_owned(),
            ipv6: v6.name().to_owned(),
            packets: 0,
            bytes: 0,
            domains: self.domains.status(rule),
        };
        self.rules.iter().zip(&self.ways).map(status).collect()
    }

    /// Leaves the host as it was found.
    pub(super) fn undo(&mut self, file: &mut StateFile) {
        self.stop(file);
        undo(file);
    }
}

/// Fills in the rules' counters. It runs a program: not for the loop.
pub(super) fn count(tun: &str, status: &mut [BesideStatus]) {
    if status.is_empty() {
        return;
    }
    match nft_list(&["list", "counters", "table", "inet", &table_name(tun)]) {
        Ok(text) => {
            for (at, packets, bytes) in counters(&text) {
                if let Some(status) = status.get_mut(at) {
                    (status.packets, status.bytes) = (packets, bytes);
                }
            }
        }
        Err(error) => log::debug!("{}", error.of_table("[[beside]]")),
    }
}

/// A strict reverse-path filter drops answers: the host's own way back is the bond.
fn loosen(interface: &str, file: &mut StateFile) {
    if file.state.beside_filters.contains_key(interface) || !is_filter_strict(interface) {
        return;
    }
    let Some(before) = filter_of(interface) else { return };
    file.state.beside_filters.insert(interface.to_owned(), before);
    file.save();
    take_from_everywhere(interface);
    log::info!("rp_filter of {interface} is loose: answers beside the bond come in there");
}

/// Undoes what this run or an earlier one set up.
fn undo(file: &mut StateFile) {
    if let Some(base) = file.state.beside_marks.take() {
        ways::undo(base);
    }
    if let Some(table) = file.state.beside_table.take() {
        // Somebody else may have written the file: only a table of ours is removed.
        if is_ours(&table)
            && let Err(error) = nft(&[], &removal(&table))
        {
            log::warn!("the table {table} is not removed: {error}");
        }
    }
    for (interface, before) in std::mem::take(&mut file.state.beside_filters) {
        let sound = before.parse::<u8>().is_ok_and(|value| value <= 2);
        let is_there = filter_of(&interface).is_some();
        if sound
            && is_there
            && let Err(error) = set_filter(&interface, &before)
        {
            log::warn!("rp_filter of {interface} is not set back to {before}: {error}");
        }
    }
    file.save();
}

/// Whether nft is there and, with `has_rights`, whether the kernel would take the table; nothing is
/// changed.
///
/// # Errors
/// nft is missing or refuses.
pub(crate) fn can_go_beside(config: &Config, has_rights: bool) -> Result<(), HostError> {
    if has_rights { nft(&["--check"], &script::example(config)) } else { Ok(()) }
}
