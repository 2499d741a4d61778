//! A gateway's long-term work: counts quotas, keeps its state file, applies another configuration,
//! whole or peer by peer and path by path.

mod members;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use plait_net::clock::realtime_since_epoch;
use plait_net::rights::UserId;
use plait_proto::config::{PeerConfig, Prefix};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;
use plait_toml::hook::HookEvent;

use self::members::{Index, NatChanges};
use self::paths::Leaving;
use super::advertisements;
use super::beside::Beside;
use super::dns::Resolver;
use super::driver::LISTENING;
use super::hooks::News;
use super::lan::Lans;
use super::links::Links;
use super::measure::Registry;
use super::nat;
use super::outage::{self, Block, Outage};
use super::privileges;
use super::quota::{Meter, QuotaStatus, month, spent_reason};
use super::reach::Names;
use super::reload::{self, Reload};
use super::routes::Routes;
use super::sandbox::{Files, enter_sandbox};
use super::state::StateFile;
use super::traffic::Traffic;
use crate::advice::Advised;
use crate::config::{Config, PathConfig, Quota, parse_key};

/// How often quotas are counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(5);
/// How often the state file is written, if anything changed.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);
/// How soon it is tried again when it could not be written.
const SAVE_AGAIN: Duration = Duration::from_secs(5);

/// A gateway's configuration, its state, and the periodic work on them.
#[derive(Debug)]
pub(super) struct Operations {
    config: Config,
    /// The peers as last given to the endpoint.
    peers: Vec<PeerConfig>,
    file: StateFile,
    meter: Meter,
    routes: Routes,
    pub(super) outage: Outage,
    pub(super) lan: Lans,
    pub(super) resolver: Option<Resolver>,
    pub(super) beside: Beside,
    measurements: Registry,
    /// Whether the measuring service has its socket: it cannot be opened later.
    serves_measurements: bool,
    /// Paths that stand by because their quota is spent.
    spent: Vec<String>,
    /// Finds the peers of `config`.
    index: Index,
    nat: NatChanges,
    leaving: Vec<Leaving>,
    /// What hooks are to be told.
    news: Vec<News>,
    count_at: Instant,
    save_at: Instant,
    /// Whether what was set up at the host stays at the end.
    leaves: bool,
}

/// What a gateway changes on its host, and the record of it.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) file: StateFile,
    /// The kill switch, if it is in force.
    pub(super) block: Option<Block>,
    pub(super) routes: Routes,
    pub(super) lan: Lans,
    pub(super) resolver: Option<Resolver>,
}

impl Parts {
    /// Undoes what an earlier run told the host's resolver; nothing else is changed yet.
    ///
    /// # Errors
    /// The host's resolver cannot be told, with the remedy.
    pub(super) fn new(
        config: &Config,
        (mut file, block): (StateFile, Option<Block>),
        routes: Routes,
        mtu: u16,
    ) -> anyhow::Result<Self> {
        let resolver = Resolver::set_up(config, &mut file)?;
        Ok(Self { file, block, routes, lan: Lans::new(mtu), resolver })
    }
}

impl Operations {
    /// `serves_measurements` tells whether the measuring service has its socket.
    pub(super) fn new(
        config: Config,
        peers: Vec<PeerConfig>,
        parts: Parts,
        measurements: Registry,
        serves_measurements: bool,
    ) -> Self {
        let Parts { file, block, routes, lan, resolver } = parts;
        Self {
            lan,
            resolver,
            peers,
            routes,
            measurements,
            serves_measurements,
            index: Index::of(&config),
            nat: NatChanges::default(),
            leaving: Vec::new(),
            news: Vec::new(),
            outage: Outage::new(block),
            beside: Beside::new(&config),
            file,
            config,
            meter: Meter::default(),
            spent: Vec::new(),
            count_at: Instant::ZERO,
            save_at: Instant::ZERO + SAVE_INTERVAL,
            leaves: false,
        }
    }

    /// Sets up routes; undoes an earlier run's leftover forwarding and NAT, and sets up its own.
    ///
    /// # Errors
    /// Something cannot be set up, with the remedy.
    pub(super) fn set_up_host(&mut self) -> Result<(), Advised> {
        self.routes.set_up(&routed(&self.config, &self.peers))?;
        nat::apply(&self.config, &prefixes(&self.peers), &mut self.file)
            .map_err(|error| Advised::new(error.to_string(), error.help()))?;
        self.outage.set_up(&self.config, &self.peers, &mut self.file);
        self.beside.set_up(&self.config, &self.peers, &mut self.file);
        self.lan.set_up(&self.config, &self.peers, &mut self.file)
    }

    /// Gives up rights that are no longer needed, and gives the user the files it must keep
    /// writing; then enters the sandbox and returns the parts in force.
    pub(super) fn give_up_rights(
        &mut self,
        user: Option<UserId>,
    ) -> anyhow::Result<Vec<&'static str>> {
        let gateway = &self.config.gateway;
        if user.is_some() || gateway.sandbox {
            // Afterwards its folder may be out of reach.
            self.file.create();
        }
        if self.file.is_behind() {
            self.save_at = self.save_at.min(Instant::ZERO + SAVE_AGAIN);
        }
        if let Some(user) = user {
            privileges::hand_over(&gateway.state_file, user);
            privileges::hand_over(&gateway.control_socket, user);
        }
        privileges::give_up(user)?;
        let keys = self.config.key_files().map(|file| file.value.as_path());
        let files = Files {
            read: keys.chain([self.config.file.as_path()]).collect(),
            written: vec![&gateway.state_file, &gateway.control_socket],
            nft: self.config.needs_nft(),
            programs: self.config.hook_programs().collect(),
        };
        Ok(enter_sandbox(gateway.sandbox, &files))
    }

    /// Tells the endpoint, before its start, where its peers were last reached, so that a listening
    /// gateway calls them.
    pub(super) fn tell_known_addresses(&self, endpoint: &mut Endpoint) {
        if self.config.gateway.listen_port.is_none() {
            return;
        }
        for (peer, addresses) in &self.file.state.addresses {
            log::debug!("{peer} was last reached at {addresses:?}");
            let Ok(key) = parse_key(peer) else { continue };
            for remote in addresses {
                let route = Route { socket: LISTENING, remote: *remote, local: None };
                endpoint.remember(&PublicKey::from_bytes(*key), route);
            }
        }
    }

    /// The peers in the endpoint's form.
    pub(super) fn peers(&self) -> &[PeerConfig] {
        &self.peers
    }

    /// Applies the names' current addresses. An address at which a peer still answers is kept, even
    /// if its name no longer resolves to it.
    pub(super) fn follow_names(&mut self, now: Instant, endpoint: &mut Endpoint, names: &Names) {
        let mut peers = names.peers(&self.config);
        let mut differs = false;
        for (peer, old) in peers.iter_mut().zip(&self.peers) {
            let up = endpoint.remotes_up(&peer.public_key);
            for address in old.endpoints.iter().filter(|address| up.contains(address)) {
                if !peer.endpoints.contains(address) {
                    peer.endpoints.push(*address);
                }
            }
            let is_known = |address| old.endpoints.contains(address);
            let is_same =
                peer.endpoints.len() == old.endpoints.len() && peer.endpoints.iter().all(is_known);
            if is_same {
                peer.endpoints.clone_from(&old.endpoints);
            }
            differs |= !is_same;
        }
        if differs {
            self.peers.clone_from(&peers);
            self.outage.follow(now, &self.config, &peers, &mut self.file);
            self.beside.follow(now, &self.config, &peers, &mut self.file);
            endpoint.reconfigure(now, peers, endpoint.bond_config().clone());
        }
    }

    /// The configuration file, and the fingerprint of what was read of it.
    pub(super) fn file(&self) -> (&Path, &str) {
        (&self.config.file, &self.config.fingerprint)
    }

    /// The file says what is in force: somebody wrote it so.
    pub(super) fn note_saved(&mut self, fingerprint: String) {
        self.config.fingerprint = fingerprint;
    }

    /// What hooks are to be told since this was last asked.
    pub(super) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// The configured paths.
    pub(super) fn paths(&self) -> &[PathConfig] {
        &self.config.paths
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Instant {
        let any_quota = self.config.paths.iter().any(|path| path.quota.is_some());
        let periodic = if any_quota { self.count_at.min(self.save_at) } else { self.save_at };
        let resolver = self.resolver.as_ref().map(Resolver::due_at);
        let host = [self.outage.due_at(), self.beside.due_at(), self.lan.due_at(), resolver];
        let others = host.into_iter().chain([self.nat.due(), self.leaving_due()]);
        others.flatten().fold(periodic, Instant::min)
    }

    /// Does what is due.
    pub(super) fn run_due(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        traffic: &mut Traffic,
        links: &Links,
    ) {
        let wanted = routed(&self.config, &self.peers);
        let host = outage::Host { file: &mut self.file, routes: &mut self.routes, wanted };
        self.outage.run_due(now, endpoint, host);
        if self.lan.due_at().is_some_and(|due| due <= now) {
            self.lan.run_due(now, endpoint, &mut self.file);
        }
        if let Some(resolver) = self.resolver.as_mut().filter(|known| known.due_at() <= now) {
            resolver.run_due(now, endpoint);
        }
        if self.beside.due_at().is_some_and(|due| due <= now) {
            let sockets = endpoint.silent_sockets();
            let silent = sockets.into_iter().filter_map(|socket| links.interface_of(socket));
            self.beside.note_silent(silent);
            self.beside.run_due(now, &mut self.file);
        }
        if self.count_at <= now {
            self.count(now, endpoint, traffic, links);
            self.count_at = now + COUNT_INTERVAL;
        }
        if self.nat.due().is_some_and(|due| due <= now) {
            self.follow_with_nat();
        }
        if self.save_at <= now {
            self.keep(endpoint);
            self.save_at = now + SAVE_INTERVAL;
        }
        if self.file.is_behind() {
            self.save_at = self.save_at.min(now + SAVE_AGAIN);
        }
    }

    /// Lets the host's resolver follow the bond, if that is configured.
    pub(super) fn start_resolver(&mut self) -> anyhow::Result<()> {
        let Some(resolver) = &mut self.resolver else { return Ok(()) };
        resolver.follow(Instant::ZERO, &self.config);
        resolver.start()
    }

    /// Something happened to a bond.
    pub(super) fn wake(&mut self, now: Instant) {
        self.outage.wake(now);
        self.lan.wake(now);
        if let Some(resolver) = &mut self.resolver {
            resolver.wake(now);
        }
    }

    /// Writes the last counts and addresses to the state file.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        traffic: &mut Traffic,
        links: &Links,
    ) {
        self.count(now, endpoint, traffic, links);
        self.keep(endpoint);
        self.outage.end();
    }

    fn keep(&mut self, endpoint: &Endpoint) {
        let known = known_addresses(endpoint);
        let peers: BTreeSet<_> =
            self.config.peers.iter().map(|peer| peer.public_key.value.to_string()).collect();
        let addresses = &mut self.file.state.addresses;
        addresses.retain(|peer, _| peers.contains(peer));
        addresses.extend(known);
        self.file.save();
    }

    /// Links came, went or changed: assigns their traffic to their paths, and keeps standby for
    /// spent quotas.
    pub(super) fn follow_links(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        traffic: &mut Traffic,
        links: &Links,
    ) {
        for (socket, path) in links.sockets() {
            traffic.assign(socket, path);
        }
        self.outage.follow_links(now, &self.config);
        self.lan.follow_links(now, &mut self.file);
        let states = links.states().filter(|(_, link)| !link.interface.is_empty());
        self.beside.follow_links(
            now,
            states.map(|(at, link)| (self.config.paths[at].name.as_str(), link.interface.as_str())),
        );
        let [_, any_ipv6] = nat::forwarded(&self.config, &self.config.allowed_prefixes());
        if any_ipv6 {
            advertisements::keep_on(&mut self.file, links.interfaces());
        }
        self.count(now, endpoint, traffic, links);
    }

    /// Counts the traffic of each path that has a quota, over all links of a wildcard together; the
    /// links of a path that has spent its quota stand by.
    fn count(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        traffic: &mut Traffic,
        links: &Links,
    ) {
        let wall = realtime_since_epoch();
        let clock_was_set = self.meter.was_clock_set(now.since(Instant::ZERO), wall);
        for path in &self.config.paths {
            let Some(quota) = path.quota else { continue };
            let sockets = links.sockets().filter(|(_, name)| *name == path.name);
            let months = self.file.state.used_bytes.entry(path.name.clone()).or_default();
            let this_month = month(wall, quota.first_day);
            let bytes = traffic.take(&path.name);
            let used = self.meter.add(&path.name, months, &this_month, clock_was_set, bytes);
            let spent = used >= quota.bytes;
            let was_spent = self.spent.contains(&path.name);
            if spent {
                let reason = spent_reason(used, quota.bytes);
                if !was_spent {
                    let name = &path.name;
                    log::warn!(plait_link = name; "path {name}: {reason}; it stands by");
                    self.news.push(News {
                        event: HookEvent::QuotaSpent,
                        peer: None,
                        path: Some(path.name.clone()),
                        reason: Some(reason.clone()),
                    });
                    self.spent.push(path.name.clone());
                }
                for (socket, _) in sockets {
                    endpoint.set_standby(now, socket, true, Some(reason.clone()));
                }
            } else if was_spent {
                let name = &path.name;
                log::info!(plait_link = name; "path {name}: within its quota again");
                self.spent.retain(|name| *name != path.name);
                for (socket, _) in sockets {
                    endpoint.set_standby(now, socket, path.standby, None);
                }
            }
        }
    }

    /// How far each path that has a quota has spent it.
    pub(super) fn quotas(&self) -> Vec<QuotaStatus> {
        let wall = realtime_since_epoch();
        let used = |path: &PathConfig, quota: Quota| {
            let months = self.file.state.used_bytes.get(&path.name);
            months.and_then(|months| months.get(&month(wall, quota.first_day))).copied()
        };
        let status = |path: &PathConfig| {
            let quota = path.quota?;
            Some(QuotaStatus {
                path: path.name.clone(),
                used_bytes: used(path, quota).unwrap_or(0),
                limit_bytes: quota.bytes,
            })
        };
        self.config.paths.iter().filter_map(status).collect()
    }

    /// Applies another configuration. Update the links afterwards, then call
    /// [`Self::follow_links`].
    pub(super) fn reload(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        links: &Links,
        reload: Reload,
    ) {
        let Reload { config, peers } = reload;
        for change in reload::needs_restart(&self.config, &config, self.serves_measurements) {
            log::warn!("{change} changed: a restart is needed for it to have an effect");
        }
        let config = reload::keep_what_stays(&self.config, config);
        let bond = config.bond(endpoint.bond_config().inner_mtu);
        if reload::host_differs(&self.config, &config)
            && let Err(error) = nat::apply(&config, &prefixes(&peers), &mut self.file)
        {
            log::error!("{error} ({}); both are off now", error.help());
        }
        self.outage.follow(now, &config, &peers, &mut self.file);
        self.beside.follow(now, &config, &peers, &mut self.file);
        self.routes.follow(&self.outage.led(routed(&config, &peers)));
        if let Err(error) = self.lan.follow(now, &config, &peers, &mut self.file) {
            log::error!("{error} ({})", error.help());
        }
        if let Some(resolver) = &mut self.resolver {
            resolver.follow(now, &config);
        }
        self.peers.clone_from(&peers);
        endpoint.reconfigure(now, peers, bond);
        self.forget_spent(now, endpoint, links);
        self.forget_leaving(now, endpoint, links);
        self.measurements.follow(&config);
        let index = Index::of(&config);
        self.tell_new_peers(&index);
        self.index = index;
        self.nat = NatChanges::default();
        self.config = config;
        log::info!("{}: read again", self.config.file.display());
    }

    /// Puts links back to their configured standby, until the next count.
    fn forget_spent(&mut self, now: Instant, endpoint: &mut Endpoint, links: &Links) {
        for path in self.config.paths.iter().filter(|path| self.spent.contains(&path.name)) {
            for (socket, _) in links.sockets().filter(|(_, name)| *name == path.name) {
                endpoint.set_standby(now, socket, path.standby, None);
            }
        }
        self.spent.clear();
    }
}

impl Operations {
    /// What was set up at the host stays when the gateway ends: another one, which follows at once,
    /// takes it over as after a crash.
    pub(super) fn leave_for_successor(&mut self) {
        self.leaves = true;
    }
}

impl Drop for Operations {
    /// Leaves the host as it was found, unless a successor takes it over.
    fn drop(&mut self) {
        // The process beside this one ends with it, and the next has one of its own.
        if let Some(resolver) = self.resolver.take() {
            resolver.end(&mut self.file);
        }
        if self.leaves {
            self.file.save();
            return;
        }
        // Hosts are told while their packets are still forwarded.
        self.lan.undo(&mut self.file);
        nat::undo(&mut self.file);
        self.outage.undo(&mut self.file);
        self.beside.undo(&mut self.file);
    }
}

fn prefixes(peers: &[PeerConfig]) -> Vec<Prefix> {
    peers.iter().flat_map(|peer| peer.allowed_ips.clone()).collect()
}

/// The prefixes for which the host gets routes.
fn routed(config: &Config, peers: &[PeerConfig]) -> Vec<Prefix> {
    if config.gateway.routes { prefixes(peers) } else { Vec::new() }
}

/// Where peers that call are reached now, or were reached last.
fn known_addresses(endpoint: &Endpoint) -> BTreeMap<String, Vec<SocketAddr>> {
    let mut known: BTreeMap<String, Vec<SocketAddr>> = BTreeMap::new();
    for (peer, route) in endpoint.known_routes() {
        let addresses = known.entry(peer.to_string()).or_default();
        if route.socket == LISTENING && !addresses.contains(&route.remote) {
            addresses.push(route.remote);
        }
    }
    known.retain(|_, addresses| !addresses.is_empty());
    known
}
