//! The gateway's daemon: the body of `plait up`.
//!
//! Everything is set up before anything runs. What was set up lives in values that undo it when
//! they are dropped: the TUN device goes with its file, its addresses and routes with the device,
//! the control socket's file with its guard. So an error half way leaves nothing behind.

mod driver;
mod host;
mod links;
mod pump;
mod requests;
mod sockets;

use std::sync::mpsc::channel;

use anyhow::Context as _;
use plait_net::clock::{Clock, realtime_since_epoch, set_timer_slack};
use plait_net::netlink::Monitor;
use plait_proto::endpoint::Endpoint;

use crate::config::Config;
use driver::Driver;
use links::Links;
pub(crate) use links::{LinkState, LinkStatus};
use pump::Pump;
use requests::{ControlSocket, Requests};

/// Nanoseconds by which the kernel may delay a wake-up to save power.
const TIMER_SLACK_NANOS: u64 = 50_000;

/// Runs the gateway until a signal ends it.
///
/// # Errors
///
/// Whatever cannot be set up, with its remedy; nothing is left behind then.
pub(crate) fn run(config: Config) -> anyhow::Result<()> {
    let resolved = config.resolve()?;
    let mtu = resolved.inner_mtu;
    let listening = host::open_listening_socket(&config)?;
    let endpoints = resolved.peers.iter().flat_map(|peer| &peer.endpoints);
    let mut links = Links::new(&config, endpoints, u16::from(listening.is_some()))?;
    let (tun, tun_mtu) = host::open_tun(&config, &resolved.peers, mtu)?;
    let control = ControlSocket::open(&config.gateway.control_socket)?;
    let rng = host::random_generator()?;
    let clock = Clock::start();
    let started_at = realtime_since_epoch() - clock.elapsed();
    let link = config.listening_link(driver::LISTENING).into_iter().collect();
    let endpoint = Endpoint::new(config.endpoint(link, mtu, started_at), resolved.peers, rng);
    let (sender, receiver) = channel();
    let mut pump = Pump::new(endpoint, tun);
    if let Some(socket) = listening {
        pump.sockets.insert(driver::LISTENING, socket);
    }
    let monitor = Monitor::open()?;
    let first_links = links.start()?;
    let (mut driver, waker) = Driver::new(pump, tun_mtu, clock, receiver, links, monitor)
        .context("cannot watch the gateway's sockets")?;
    let requests = Requests::new(sender, waker);
    requests::watch_signals(requests.clone())?;
    let control = control.serve(config.gateway.tun.clone(), requests)?;
    if let Err(error) = set_timer_slack(TIMER_SLACK_NANOS) {
        log::debug!("timers stay coarse: {error}");
    }
    log::info!("{} is up; inner MTU {mtu}", config.gateway.tun);
    let result = driver.run(first_links).context("the gateway's loop failed");
    drop(control);
    log::info!("{} is down", config.gateway.tun);
    result
}
