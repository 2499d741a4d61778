//! The gateway's daemon: the body of `plait up`.
//!
//! Everything is set up before anything runs. Each thing set up belongs to a value that undoes it
//! when dropped: the TUN device goes with its file, its addresses and routes with the device, the
//! control socket's file with its guard, forwarding and NAT with [`Operations`]. So an error during
//! set-up leaves nothing behind.

mod advertisements;
mod answers;
mod beside;
mod dns;
mod driver;
mod exits;
mod forwards;
mod gather;
mod hooks;
pub(crate) mod host;
mod key_log;
mod lan;
pub(crate) mod links;
mod log_budget;
mod measure;
mod metrics;
mod nat;
mod operations;
mod outage;
mod policy;
mod ports;
mod privileges;
mod pump;
mod quota;
mod reach;
mod reload;
mod requests;
mod routes;
mod runtime;
mod sandbox;
mod service;
mod sockets;
mod state;
mod teller;
mod traffic;

use std::net::SocketAddr;
use std::sync::mpsc::channel;

use anyhow::Context as _;
use plait_net::clock::{Clock, realtime_since_epoch, set_timer_slack};
use plait_net::netlink::Monitor;
use plait_proto::config::SocketId;
use plait_proto::endpoint::Endpoint;

use crate::config::{Config, user_of};
use crate::control::ControlSocket;
pub(crate) use beside::{BesideStatus, can_go_beside};
pub(crate) use dns::{
    DnsStatus, RESOLVER_COMMAND, find_way, resolver_leftovers, restore_resolver, tell_resolver,
};
use driver::{Driver, Host};
pub(crate) use hooks::HookStatus;
use hooks::Hooks;
use key_log::KeyLog;
pub(crate) use lan::LanStatus;
use links::Links;
pub(crate) use links::{LinkState, LinkStatus};
pub(crate) use measure::{MeasurementStatus, Role};
pub(crate) use metrics::CannotListen;
pub(crate) use nat::{
    FORWARD_IPV4, FORWARD_IPV6, HostError, can_forward, can_masquerade, forward, nft, undo,
};
use operations::{Operations, Parts};
use outage::Block;
pub(crate) use outage::{OutageStatus, block_table, blocks_in_force, can_block, can_bypass, lift};
pub(crate) use ports::{SocketStatus, TunStatus};
pub(crate) use privileges::{CANNOT_BECOME_HELP, give_up, hand_over};
use pump::Pump;
pub(crate) use reach::{ContactStatus, attempts_text};
use reach::{Names, Reach};
pub(crate) use reload::log_errors;
use requests::Requests;
use routes::Routes;
pub(crate) use sandbox::{Files, enter_sandbox};
use service::Service;
pub(crate) use state::{StateFile, read_json, write_json};

/// Nanoseconds by which the kernel may delay a wake-up to save power.
const TIMER_SLACK_NANOS: u64 = 50_000;

/// Runs the gateway until a signal ends it.
///
/// # Errors
///
/// Whatever cannot be set up, with its remedy; nothing is left behind then.
pub(crate) fn run(config: Config) -> anyhow::Result<()> {
    let user = user_of(config.gateway.user.as_ref())?;
    let rng = host::random_generator()?;
    let key_log = KeyLog::open()?;
    let mut file = StateFile::claim(&config.gateway.state_file)?;
    let block = Block::put_in_force(&config, &mut file)?;
    let names = Names::resolved(&config);
    let peers = names.peers(&config);
    let endpoints = || peers.iter().flat_map(|peer| &peer.endpoints);
    let mtu = config.inner_mtu(endpoints().any(SocketAddr::is_ipv6));
    let (name, config_file) = (config.gateway.tun.clone(), config.file.clone());
    let service = Service::new(&config);
    let listening = host::open_listening_sockets(&config)?;
    let mut links = Links::new(&config, endpoints(), listening.len() as u16)?;
    let tun = host::open_tun(&config, mtu)?;
    let routes = Routes::new(tun.name())?;
    let control = ControlSocket::open(&config.gateway.control_socket, "[gateway]", user)?;
    let measuring = measure::open(&config)?;
    let scraped = metrics::open(&config)?;
    let measurements = measure::Registry::default();
    measurements.follow(&config);
    let clock = Clock::start();
    let started_at = realtime_since_epoch() - clock.elapsed();
    let link = config.listening_link(driver::LISTENING).into_iter().collect();
    let endpoint_config = config.endpoint(link, mtu, started_at);
    let serves = measuring.is_some();
    let mut hooks = Hooks::new(&name);
    let wanted_hooks = config.hooks.clone();
    let host = Parts::new(&config, (file, block), routes, mtu)?;
    let mut operations = Operations::new(config, peers.clone(), host, measurements.clone(), serves);
    operations.set_up_host()?;
    let sandbox = operations.give_up_rights(user)?;
    let mut endpoint = Endpoint::new(endpoint_config, peers, rng);
    operations.tell_known_addresses(&mut endpoint);
    // Its threads have the rights and the sandbox that are in force now.
    hooks.follow(&wanted_hooks);
    let key_log_file = key_log.as_ref().map(|log| log.begin(&mut endpoint));
    let mut pump = Pump::new(endpoint, tun, hooks);
    pump.key_log = key_log;
    for (at, socket) in listening.into_iter().enumerate() {
        pump.sockets.insert(SocketId(driver::LISTENING.0 + at as u16), socket);
    }
    let monitor = Monitor::open()?;
    let first_links = links.start()?;
    let (sender, receiver) = channel();
    let reach = Reach::new(names);
    let host = Host { links, monitor, operations, reach, service };
    let (mut driver, waker) =
        Driver::new(pump, clock, receiver, host).context("cannot watch the gateway's sockets")?;
    let requests = Requests::new(sender, waker);
    driver.start_threads(requests.clone())?;
    requests::watch_signals(requests.clone(), config_file.clone())?;
    if let Some(listener) = measuring {
        measure::serve(listener, measurements.clone(), requests.clone())?;
    }
    if let Some(listener) = scraped {
        metrics::serve(listener, requests.clone())?;
    }
    let control = {
        let identity = requests::Identity { tun: name.clone(), sandbox, key_log: key_log_file };
        requests::serve(control, identity, config_file, requests, measurements)?
    };
    make_timers_fine();
    log::info!("{name} is up; inner MTU {mtu}");
    let result = driver.run(first_links).context("the gateway's loop failed");
    drop(control);
    drop(driver);
    log::info!("{name} is down");
    result
}

fn make_timers_fine() {
    if let Err(error) = set_timer_slack(TIMER_SLACK_NANOS) {
        log::debug!("timers stay coarse: {error}");
    }
}
