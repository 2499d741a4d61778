//! LANs: networks whose hosts use this gateway as their router (`[[lan]]`).
//!
//! The gateway has its addresses there and, by router advertisements (RFC 4861), hosts get IPv6
//! addresses and a default route. While the bond is down and nothing leads past it, the gateway is
//! no default router; the prefixes stay.

mod addresses;
mod schedule;

use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, RawFd};
use std::time::Duration;

use plait_net::icmp::advertisement::{AdvertisedPrefix, Advertisement};
use plait_net::icmp::router::RouterSocket;
use plait_net::machine::fill_random;
use plait_net::netlink::{Interface, LinkInfo, Netlink};
use plait_proto::config::PeerConfig;
use plait_proto::endpoint::Endpoint;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;
use serde::{Deserialize, Serialize};

use self::schedule::{Schedule, Share};
use super::outage::Watch;
use super::state::StateFile;
use crate::advice::Advised;
use crate::config::{Cidr, Config, Lan, WhenDown};

/// AdvDefaultLifetime: three times the longest interval (RFC 4861 section 6.2.1).
const ROUTER_LIFETIME: Duration = Duration::from_secs(1800);
/// ND_VALID_LIMIT and ND_PREFERRED_LIMIT (RFC 9096): hosts forget a prefix of yesterday in time.
const VALID: Duration = Duration::from_secs(5400);
const PREFERRED: Duration = Duration::from_secs(2700);
/// RFC 8200 section 5: hosts take no smaller MTU.
const MTU_MIN: u32 = 1280;
/// The bond may come up before the first advertisement.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Without news, the bond is looked at this often; what failed is tried again.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Solicitations are read in turns, so that a flood of them takes no more than its share.
const HEARD_MAX: usize = 64;
const HEAR_PAUSE: Duration = Duration::from_millis(100);
/// Prefixes that are no longer there, of which hosts are told.
const FORMER_MAX: usize = 8;

/// What became of a `[[lan]]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct LanStatus {
    /// The interface.
    pub(crate) interface: String,
    /// The gateway's addresses there.
    pub(crate) addresses: Vec<String>,
    /// Whether hosts are told of IPv6 prefixes, as configured.
    pub(crate) advertises: bool,
    /// Whether hosts are told that this is their default router.
    pub(crate) is_default_router: bool,
    /// Advertisements sent.
    pub(crate) advertisements: u64,
    /// Solicitations heard.
    pub(crate) solicitations: u64,
    /// Those that were malformed, or came from elsewhere.
    pub(crate) refused: u64,
    /// What is missing.
    pub(crate) trouble: Option<String>,
}

/// A network.
#[derive(Debug)]
struct Network {
    lan: Lan,
    /// The interface, as far as it can be used.
    link: Option<LinkInfo>,
    /// When it was last tried to set what failed, or was set.
    failed_at: Option<Instant>,
    set_at: Option<Instant>,
    /// The interface that was switched on, if it was off; whoever switches it off later means it.
    switched_on: Option<u32>,
    trouble: Option<String>,
    /// While hosts can be told.
    schedule: Option<Schedule>,
    /// What hosts were told last.
    told: Option<Advertisement>,
    former: Vec<Cidr>,
    advertisements: u64,
    solicitations: u64,
    refused: u64,
}

/// All networks of a gateway.
#[derive(Debug)]
pub(super) struct Lans {
    networks: Vec<Network>,
    socket: Option<RouterSocket>,
    has_waiting: bool,
    hear_at: Instant,
    look_at: Instant,
    /// The peers that the hosts' IPv6 goes to by default.
    peers: Vec<PublicKey>,
    watch: Watch,
    /// Whether the bond ever carried.
    carried: bool,
    /// Whether there is a way past a bond that is down.
    bypasses: bool,
    mtu: u32,
}

impl Lans {
    /// None yet.
    pub(super) fn new(mtu: u16) -> Self {
        Self {
            networks: Vec::new(),
            socket: None,
            has_waiting: false,
            hear_at: Instant::ZERO,
            look_at: Instant::ZERO,
            peers: Vec::new(),
            watch: Watch::new(Instant::ZERO),
            carried: false,
            bypasses: false,
            mtu: mtu.into(),
        }
    }

    /// Undoes what an earlier run left, sets addresses and opens the socket.
    ///
    /// # Errors
    /// Something cannot be set up, with the remedy. An interface that is missing may come later.
    pub(super) fn set_up(
        &mut self,
        config: &Config,
        peers: &[PeerConfig],
        file: &mut StateFile,
    ) -> Result<(), Advised> {
        self.follow(Instant::ZERO, config, peers, file)?;
        for network in &self.networks {
            if let Some(trouble) = &network.trouble {
                log::info!("[[lan]] {}: waits: {trouble}", network.lan.interface);
            }
        }
        Ok(())
    }

    /// Another configuration, or other peers.
    ///
    /// # Errors
    /// As those of [`Self::set_up`]; the rest is done.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        config: &Config,
        peers: &[PeerConfig],
        file: &mut StateFile,
    ) -> Result<(), Advised> {
        self.bypasses = config.gateway.when_down == WhenDown::Bypass;
        let is_led = |peer: &&PeerConfig| {
            let prefixes = &mut peer.allowed_ips.iter();
            prefixes.any(|prefix| prefix.address.is_ipv6() && prefix.length <= 1)
        };
        self.peers = peers.iter().filter(is_led).map(|peer| peer.public_key).collect();
        if config.lans.is_empty() && self.networks.is_empty() && file.state.has_no_lans() {
            return Ok(());
        }
        let mut old = std::mem::take(&mut self.networks);
        for lan in &config.lans {
            let known = old.iter().position(|known| known.lan.interface == lan.interface);
            let network = known.map(|at| old.swap_remove(at));
            self.networks.push(match network {
                Some(network) => network.changed_to(lan, now),
                None => Network::new(lan.clone()),
            });
        }
        old.iter_mut().for_each(|gone| gone.say_farewell(self.socket.as_ref()));
        let mut netlink = Netlink::open().map_err(cannot_ask)?;
        addresses::undo_all_but(&mut netlink, &config.lans, file);
        if self.socket.is_none() && config.lans.iter().any(Lan::tells) {
            self.socket = Some(RouterSocket::open().map_err(no_socket)?);
        }
        self.look(now, &mut netlink, file)
    }

    /// Interfaces came, went or changed.
    pub(super) fn follow_links(&mut self, now: Instant, file: &mut StateFile) {
        if self.networks.is_empty() {
            return;
        }
        let looked =
            Netlink::open().map_err(cannot_ask).and_then(|mut n| self.look(now, &mut n, file));
        if let Err(error) = looked {
            log::error!("{error} ({})", error.help());
        }
        self.wake(now);
    }

    /// Looks at the interfaces; sets what is missing.
    fn look(
        &mut self,
        now: Instant,
        netlink: &mut Netlink,
        file: &mut StateFile,
    ) -> Result<(), Advised> {
        let links = netlink.links().map_err(cannot_ask)?;
        let mut result = Ok(());
        for network in &mut self.networks {
            let name = &network.lan.interface.clone();
            let Some(link) = links.iter().find(|link| link.name == *name) else {
                network.lose("there is no such interface");
                (network.failed_at, network.set_at) = (None, None);
                addresses::forget(name, file);
                continue;
            };
            // Another program may take away what is set here: no contest is run with it.
            let tried_at = network.failed_at.max(network.set_at);
            if tried_at.is_some_and(|at| at + LOOK_INTERVAL > now) {
                continue;
            }
            let is_new = network.switched_on.replace(link.index) != Some(link.index);
            match addresses::set(netlink, &network.lan, (link, is_new), file) {
                Ok(changed) => network.set_at = changed.then_some(now),
                Err(error) => {
                    network.failed_at = Some(now);
                    network.trouble = Some(error.to_string());
                    result = Err(error);
                }
            }
        }
        let (links, interfaces) = (netlink.links(), netlink.interfaces());
        let links = links.map_err(cannot_ask)?;
        let interfaces = interfaces.map_err(cannot_ask)?;
        for network in &mut self.networks {
            let name = &network.lan.interface;
            let link = links.iter().find(|link| link.name == *name);
            let interface = interfaces.iter().find(|interface| interface.name == *name);
            if let Some((link, interface)) = link.zip(interface) {
                network.note(now, link, interface, self.socket.as_ref());
            }
        }
        result
    }

    /// The socket whose news [`Self::hear`] reads.
    pub(super) fn socket(&self) -> Option<RawFd> {
        self.socket.as_ref().map(RouterSocket::as_raw_fd)
    }

    /// There is something to read.
    pub(super) fn has_heard(&mut self) {
        self.has_waiting = true;
    }

    /// Something happened to a bond.
    pub(super) fn wake(&mut self, now: Instant) {
        self.look_at = now;
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        if self.networks.is_empty() {
            return None;
        }
        let sends = self.networks.iter().filter_map(|network| network.schedule);
        let sends = sends.map(Schedule::due_at);
        let hears = self.has_waiting.then_some(self.hear_at);
        let others = [Some(self.look_at), self.watch.due_at(), hears];
        sends.chain(others.into_iter().flatten()).min()
    }

    /// Does what is due.
    pub(super) fn run_due(&mut self, now: Instant, endpoint: &Endpoint, file: &mut StateFile) {
        if self.networks.is_empty() {
            return;
        }
        if self.look_at <= now {
            self.look_at = now + LOOK_INTERVAL;
            let tried = |network: &Network| network.failed_at.max(network.set_at).is_some();
            if self.networks.iter().any(tried) {
                self.follow_links(now, file);
                self.look_at = now + LOOK_INTERVAL;
            }
        }
        let carries = self.peers.iter().any(|peer| endpoint.is_reached(peer));
        self.watch.note(now, carries);
        self.carried |= carries;
        if self.has_waiting && self.hear_at <= now {
            self.hear(now);
        }
        let is_router = self.is_default_router();
        for network in &mut self.networks {
            network.advertise(now, is_router, self.mtu, self.socket.as_ref());
        }
    }

    /// Whether packets of the hosts have a way.
    fn is_default_router(&self) -> bool {
        let carries = self.carried && !self.watch.is_down();
        self.bypasses || self.peers.is_empty() || carries
    }

    /// Reads solicitations.
    fn hear(&mut self, now: Instant) {
        let Some(socket) = &self.socket else { return };
        self.has_waiting = false;
        for _ in 0..HEARD_MAX {
            let heard = match socket.solicitation() {
                Ok(None) => return,
                Ok(Some(heard)) => heard,
                Err(error) => {
                    log::debug!("solicitations are not heard: {error}");
                    return;
                }
            };
            let mut networks = self.networks.iter_mut();
            let is_its = |network: &&mut Network| {
                network.link.as_ref().is_some_and(|link| link.index == heard.index)
            };
            let Some(network) = networks.find(is_its) else { continue };
            match (heard.checked, &mut network.schedule) {
                (Ok(()), Some(schedule)) => {
                    network.solicitations += 1;
                    schedule.is_asked(now, share());
                }
                (Ok(()), None) => network.solicitations += 1,
                (Err(_), _) => network.refused += 1,
            }
        }
        self.has_waiting = true;
        self.hear_at = now + HEAR_PAUSE;
    }

    /// What became of each `[[lan]]`.
    pub(super) fn status(&self) -> Vec<LanStatus> {
        let is_router = self.is_default_router();
        let status = |network: &Network| LanStatus {
            interface: network.lan.interface.clone(),
            addresses: network.lan.addresses.iter().map(Cidr::to_string).collect(),
            advertises: network.lan.tells(),
            is_default_router: network.lan.tells() && network.schedule.is_some() && is_router,
            advertisements: network.advertisements,
            solicitations: network.solicitations,
            refused: network.refused,
            trouble: network.trouble.clone(),
        };
        self.networks.iter().map(status).collect()
    }

    /// Leaves interfaces as they were found; hosts look for another router.
    pub(super) fn undo(&mut self, file: &mut StateFile) {
        for network in &mut self.networks {
            network.say_farewell(self.socket.as_ref());
        }
        self.networks.clear();
        if !file.state.has_no_lans() {
            match Netlink::open() {
                Ok(mut netlink) => addresses::undo_all_but(&mut netlink, &[], file),
                Err(error) => log::warn!("addresses of LANs stay: {error}: {}", error.source),
            }
        }
    }
}

impl Network {
    fn new(lan: Lan) -> Self {
        Self {
            lan,
            link: None,
            failed_at: None,
            set_at: None,
            switched_on: None,
            trouble: None,
            schedule: None,
            told: None,
            former: Vec::new(),
            advertisements: 0,
            solicitations: 0,
            refused: 0,
        }
    }

    /// The same network with other options.
    fn changed_to(mut self, lan: &Lan, now: Instant) -> Self {
        if self.lan.addresses != lan.addresses {
            let gone = self.lan.ipv6().filter(|own| !lan.addresses.contains(own));
            self.former.extend(gone.collect::<Vec<_>>());
            let is_former = |own: &Cidr| !lan.ipv6().any(|new| new.network() == own.network());
            self.former.retain(is_former);
            self.former.truncate(FORMER_MAX);
        }
        if self.lan.tells() && !lan.tells() {
            self.schedule = None;
        }
        (self.failed_at, self.set_at) = (None, None);
        self.lan = lan.clone();
        if let Some(schedule) = &mut self.schedule {
            schedule.has_news(now);
        }
        self
    }

    /// Nobody can be told anything for now.
    fn lose(&mut self, why: &str) {
        if self.trouble.as_deref() != Some(why) && self.link.is_some() {
            log::warn!("[[lan]] {}: {why}", self.lan.interface);
        }
        self.trouble = Some(why.to_owned());
        (self.link, self.schedule, self.told) = (None, None, None);
    }

    /// Whether hosts can be told now: advertisements need a link-local address as their source.
    fn note(
        &mut self,
        now: Instant,
        link: &LinkInfo,
        interface: &Interface,
        socket: Option<&RouterSocket>,
    ) {
        let failed = self.failed_at.is_some_and(|at| at + LOOK_INTERVAL > now);
        let is_local =
            |address: &IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let missing = if !link.running {
            Some("the interface has no carrier")
        } else if self.lan.tells() && !interface.addresses.iter().any(is_local) {
            Some("the interface has no IPv6 link-local address")
        } else {
            None
        };
        if let Some(missing) = missing {
            return self.lose(missing);
        }
        if !failed {
            (self.failed_at, self.trouble) = (None, None);
        }
        self.link = Some(link.clone());
        let Some(socket) = socket.filter(|_| self.lan.tells() && self.schedule.is_none()) else {
            return;
        };
        if let Err(error) = socket.join(link.index) {
            // Hosts are told unasked.
            log::warn!("[[lan]] {}: solicitations are not heard: {error}", self.lan.interface);
        }
        self.schedule = Some(Schedule::new(now + FIRST_PAUSE));
    }

    /// Sends an advertisement if one is due, or if there is something new to tell.
    fn advertise(
        &mut self,
        now: Instant,
        is_router: bool,
        mtu: u32,
        socket: Option<&RouterSocket>,
    ) {
        let lifetime = if is_router { ROUTER_LIFETIME } else { Duration::ZERO };
        let advertisement = self.advertisement(lifetime, mtu);
        let (Some(schedule), Some(link), Some(socket)) = (&mut self.schedule, &self.link, socket)
        else {
            return;
        };
        // Before the first one, only good news are told early.
        let is_new = match &self.told {
            Some(told) => *told != advertisement,
            None => is_router && schedule.due_at() > now,
        };
        if is_new {
            schedule.has_news(now);
            self.told = Some(advertisement.clone());
        }
        if schedule.due_at() > now {
            return;
        }
        match socket.advertise(link.index, &advertisement) {
            Ok(()) => self.advertisements += 1,
            Err(error) => log::debug!("{}: no advertisement: {error}", self.lan.interface),
        }
        schedule.sent(now, share());
        self.told = Some(advertisement);
    }

    fn advertisement(&self, lifetime: Duration, mtu: u32) -> Advertisement {
        let prefix = |own: Cidr, preferred| match own.network().address {
            IpAddr::V6(prefix) => {
                Some(AdvertisedPrefix { prefix, length: own.length, valid: VALID, preferred })
            }
            IpAddr::V4(_) => None,
        };
        let own = self.lan.ipv6().filter_map(|own| prefix(own, PREFERRED));
        let former = self.former.iter().filter_map(|own| prefix(*own, Duration::ZERO));
        let mtu = self.link.as_ref().map_or(mtu, |link| mtu.min(link.mtu));
        Advertisement {
            lifetime,
            prefixes: own.chain(former).collect(),
            mtu: Some(mtu).filter(|mtu| *mtu >= MTU_MIN),
            dns: self.lan.dns.clone(),
            dns_lifetime: if lifetime.is_zero() { Duration::ZERO } else { ROUTER_LIFETIME },
        }
    }

    /// Ceases to be a router (RFC 4861 section 6.2.5).
    fn say_farewell(&mut self, socket: Option<&RouterSocket>) {
        let told = self.told.take().filter(|_| self.schedule.take().is_some());
        let (Some(told), Some(link), Some(socket)) = (told, &self.link, socket) else { return };
        let last = Advertisement { lifetime: Duration::ZERO, dns_lifetime: Duration::ZERO, ..told };
        if let Err(error) = socket.advertise(link.index, &last) {
            log::debug!("{}: no last advertisement: {error}", self.lan.interface);
        }
    }
}

fn share() -> Share {
    let mut bytes = [0; 2];
    // Routers would answer at the same time, no more.
    let _ = fill_random(&mut bytes);
    f64::from(u16::from_be_bytes(bytes)) / f64::from(u16::MAX)
}

fn cannot_ask(error: plait_net::netlink::NetlinkError) -> Advised {
    let help = "plait needs rtnetlink: a sandbox must allow sockets of the family AF_NETLINK";
    Advised::new(format!("[[lan]]: {error}"), help).caused_by(error.source)
}

fn no_socket(cause: std::io::Error) -> Advised {
    let help = "run plait as root, or give it CAP_NET_RAW; or set `advertise = false` and let \
                another program send advertisements";
    Advised::new("[[lan]]: router advertisements cannot be sent", help).caused_by(cause)
}
