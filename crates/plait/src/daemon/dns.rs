//! `[dns]`: name servers that the host asks through the bond.
//!
//! The servers are told to the host's resolver once the bond carries. They stay while it is down,
//! unless traffic then goes past it (`when_down = "bypass"`): the resolver then asks whom it asked
//! before. Resolvers may take their time, so a thread of its own speaks to the [`helper`].

mod file;
mod helper;
mod program;
mod way;

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use plait_proto::endpoint::Endpoint;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;
use plait_toml::value::names;
use serde::{Deserialize, Serialize};

use self::file::RESOLV_CONF;
pub(crate) use self::helper::{COMMAND as RESOLVER_COMMAND, serve as tell_resolver};
use self::helper::{Helper, Order};
use self::way::{ENTRY, Servers, entry_of};
pub(crate) use self::way::{Way, find_way};
use super::outage::Watch;
use super::state::StateFile;
use crate::advice::Advised;
use crate::config::{Config, Dns, Peer, WhenDown};

/// Without news, the bond is looked at this often.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Where resolvconf keeps its entries, the older program and openresolv.
const ENTRIES: [&str; 3] =
    ["/run/resolvconf/interface", "/run/resolvconf/interfaces", "/run/resolvconf/keys"];

/// Which servers the host asks, and by which way it was told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct DnsStatus {
    /// The servers.
    pub(crate) servers: Vec<String>,
    /// Whose names they are asked for; `.` stands for all.
    pub(crate) domains: Vec<String>,
    /// By which way the resolver is told.
    pub(crate) way: String,
    /// Whether it was told.
    pub(crate) in_use: bool,
    /// What went wrong last.
    pub(crate) trouble: Option<String>,
}

/// What came of the orders so far.
#[derive(Clone, Default, Debug)]
struct Done {
    in_use: bool,
    trouble: Option<String>,
}

/// The resolver of a host, as a gateway tells it.
#[derive(Debug)]
pub(super) struct Resolver {
    way: Way,
    tun: String,
    /// What is to be told, if anything.
    servers: Option<Servers>,
    /// What was ordered last.
    ordered: Option<Servers>,
    /// The peers over which the servers are reached.
    peers: Vec<PublicKey>,
    watch: Watch,
    carried: bool,
    bypasses: bool,
    look_at: Instant,
    helper: Option<Helper>,
    orders: Option<Sender<Order>>,
    done: Arc<Mutex<Done>>,
    thread: Option<JoinHandle<()>>,
}

impl Resolver {
    /// Undoes what an earlier run left; finds the way and starts the helper, if there is a
    /// `[dns]`. Call it before rights are given up.
    ///
    /// # Errors
    /// This host's resolver cannot be told, with the remedy.
    pub(super) fn set_up(config: &Config, file: &mut StateFile) -> anyhow::Result<Option<Self>> {
        undo_leftover(file);
        let Some(dns) = &config.dns else { return Ok(None) };
        let tun = config.gateway.tun.clone();
        let place = format!("{}:{}: [dns]", config.file.display(), dns.line);
        let way = find_way(&tun, &dns.domains)
            .map_err(|error| Advised::new(format!("{place}: {error}"), error.help()))?;
        let helper = Helper::start(&tun, way).with_context(|| {
            format!("{place}: cannot start the process that tells the resolver")
        })?;
        file.state.dns = way.outlives_device().then(|| (tun.clone(), way.word()));
        file.save();
        Ok(Some(Self {
            way,
            tun,
            servers: None,
            ordered: None,
            peers: Vec::new(),
            watch: Watch::new(Instant::ZERO),
            carried: false,
            bypasses: false,
            look_at: Instant::ZERO,
            helper: Some(helper),
            orders: None,
            done: Arc::default(),
            thread: None,
        }))
    }

    /// Starts the thread that gives the orders: it has the rights that are in force now.
    pub(super) fn start(&mut self) -> anyhow::Result<()> {
        let Some(helper) = self.helper.take() else { return Ok(()) };
        let (sender, orders) = channel();
        let (done, way) = (self.done.clone(), self.way);
        let body = move || give_orders(helper, &orders, &done, way);
        let thread = std::thread::Builder::new().name("resolver".into()).spawn(body);
        self.thread = Some(thread.context("cannot start a thread")?);
        self.orders = Some(sender);
        Ok(())
    }

    /// Another configuration.
    pub(super) fn follow(&mut self, now: Instant, config: &Config) {
        self.bypasses = config.gateway.when_down == WhenDown::Bypass;
        self.servers = config.dns.as_ref().map(servers_of);
        let holds = |peer: &&Peer| {
            let mut servers = config.dns.iter().flat_map(|dns| &dns.servers);
            servers.any(|server| peer.allowed_ips.iter().any(|known| known.value.holds(*server)))
        };
        let key = |peer: &Peer| peer.public_key.value;
        self.peers = config.peers.iter().filter(holds).map(key).collect();
        if self.peers.is_empty() {
            self.peers = config.peers.iter().map(key).collect();
        }
        self.wake(now);
    }

    /// Something happened to a bond.
    pub(super) fn wake(&mut self, now: Instant) {
        self.look_at = now;
    }

    /// When [`Self::run_due`] has something to do.
    pub(super) fn due_at(&self) -> Instant {
        self.watch.due_at().map_or(self.look_at, |due| due.min(self.look_at))
    }

    /// Tells the resolver what it is to ask now.
    pub(super) fn run_due(&mut self, now: Instant, endpoint: &Endpoint) {
        self.look_at = now + LOOK_INTERVAL;
        let carries = self.peers.iter().any(|peer| endpoint.is_reached(peer));
        self.watch.note(now, carries);
        self.carried |= carries;
        let in_use = self.carried && !(self.bypasses && self.watch.is_down());
        let wanted = self.servers.clone().filter(|_| in_use);
        if wanted == self.ordered {
            return;
        }
        let order = wanted.clone().map_or(Order::TakeBack, Order::Tell);
        if let Some(orders) = &self.orders {
            // The thread ends with this side alone.
            let _ = orders.send(order);
        }
        self.ordered = wanted;
    }

    /// Which servers are asked, and by which way.
    pub(super) fn status(&self) -> Option<DnsStatus> {
        let Servers { servers, domains } = self.servers.clone()?;
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(DnsStatus {
            servers: servers.iter().map(ToString::to_string).collect(),
            domains,
            way: self.way.told().to_owned(),
            in_use: done.in_use,
            trouble: done.trouble,
        })
    }

    /// Has the host ask whom it asked before; waits for that, within reason.
    pub(super) fn end(mut self, file: &mut StateFile) {
        self.orders = None;
        self.helper = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log::warn!("[dns]: `plait unblock {}` puts the name servers back", self.tun);
            return;
        }
        if !is_left(&self.tun, self.way) {
            file.state.dns = None;
            file.save();
        }
    }
}

fn servers_of(dns: &Dns) -> Servers {
    let domains = dns.domains.iter().map(ToString::to_string).collect();
    Servers { servers: dns.servers.clone(), domains }
}

/// The body of the thread.
fn give_orders(mut helper: Helper, orders: &Receiver<Order>, done: &Mutex<Done>, way: Way) {
    while let Ok(order) = orders.recv() {
        let (told, result) = (matches!(order, Order::Tell(_)), helper.order(&order));
        let told_of = match &order {
            Order::Tell(servers) => format!("{:?}", servers.servers),
            Order::TakeBack => "those that it asked before".to_owned(),
        };
        match &result {
            Ok(()) => log::info!("[dns]: the host asks {told_of}, by {}", way.told()),
            Err(error) => log::error!("[dns]: {error} ({})", help_of(way)),
        }
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(()) => *done = Done { in_use: told, trouble: None },
            Err(error) => done.trouble = Some(error),
        }
    }
}

fn help_of(way: Way) -> &'static str {
    match way {
        Way::SystemdResolved => {
            "is systemd-resolved running? A gateway that is not root needs a rule of polkit, which \
             the package has"
        }
        Way::Openresolv | Way::Resolvconf => "look at resolvconf",
        Way::ResolvConf => "a plain file is needed, in a folder that root may write",
    }
}

/// Undoes what an earlier run left.
fn undo_leftover(file: &mut StateFile) {
    let Some((tun, way)) = file.state.dns.take() else { return };
    // Somebody else may have written the file: only what is marked as plait's is taken back.
    let is_name = names::device(&tun).is_ok();
    if let Some(way) = Way::named(&way)
        && is_name
        && is_left(&tun, way)
    {
        match way.take_back(&tun) {
            Ok(()) => log::info!("[dns]: the host asks those again that it asked before"),
            Err(error) => log::warn!("[dns]: {error}; `plait unblock {tun}` tries again"),
        }
    }
    file.save();
}

fn is_left(tun: &str, way: Way) -> bool {
    match way {
        Way::SystemdResolved => false,
        Way::ResolvConf => marked().as_deref() == Some(tun),
        Way::Openresolv | Way::Resolvconf => {
            ENTRIES.iter().any(|folder| Path::new(folder).join(entry_of(tun)).exists())
        }
    }
}

/// The device by whose gateway the plain file is marked.
fn marked() -> Option<String> {
    file::read(Path::new(RESOLV_CONF)).ok().and_then(|text| file::marked_by(&text))
}

/// The devices of whose gateways this host's resolver still has servers, with the ways.
pub(crate) fn resolver_leftovers() -> Vec<(String, Way)> {
    let mut left = Vec::new();
    left.extend(marked().map(|tun| (tun, Way::ResolvConf)));
    for folder in ENTRIES {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let tun = name.to_str().and_then(|name| name.strip_suffix(ENTRY));
            left.extend(tun.map(|tun| (tun.to_owned(), Way::Resolvconf)));
        }
    }
    left.dedup();
    left.retain(|(tun, _)| names::device(tun).is_ok());
    left
}

/// Has the host ask whom it asked before.
///
/// # Errors
/// What went wrong, in words.
pub(crate) fn restore_resolver(tun: &str, way: Way) -> Result<(), String> {
    way.take_back(tun)
}
