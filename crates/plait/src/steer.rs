//! The steering node: the body of `plait steer`.
//!
//! Everything is set up before packets are routed to the node. Each thing set up belongs to a value
//! that undoes it when dropped: the TUN device goes with its file, rules and routes with the
//! [`Host`], forwarding with [`Forwarding`]. So an error during set-up leaves nothing behind.
//! Connections need no state in the node: they survive its restart.

pub(crate) mod config;
mod driver;
mod host;
mod probes;
mod pump;
pub(crate) mod recipe;
mod reload;
mod requests;
mod ways;

use std::sync::mpsc::channel;

use anyhow::Context as _;
use plait_net::clock::{Clock, set_timer_slack};
use plait_net::netlink::Monitor;
use plait_net::tun::Tun;
use plait_proto::steer::{Node, ProbeKey};

use crate::advice::Advised;
use crate::config::user_of;
use crate::control::ControlSocket;
use crate::daemon::{Files, StateFile, enter_sandbox, forward, give_up, hand_over, undo};
use config::SteerConfig;
use driver::{Driver, Parts};
use host::Host;
use probes::Probes;
use pump::Pump;
pub(crate) use requests::Report;
use requests::Requests;
pub(crate) use ways::Way;

/// Nanoseconds by which the kernel may delay a wake-up to save power.
const TIMER_SLACK_NANOS: u64 = 50_000;

/// Runs the node until a signal ends it.
///
/// # Errors
///
/// Whatever cannot be set up, with its remedy; nothing is left behind then.
pub(crate) fn run(config: SteerConfig) -> anyhow::Result<()> {
    let user = user_of(config.node.user.as_ref())?;
    // What may have to be waited for comes before anything is changed.
    let identifier = u16::from_ne_bytes(host::random_bytes()?);
    let probe_key = ProbeKey::from_bytes(host::random_bytes()?);
    let seed = u64::from_ne_bytes(host::random_bytes()?);
    host::check_forwarding(&config)?;
    let control = ControlSocket::open(&config.node.control_socket, "[node]", user)?;
    let tun = Tun::open(&config.node.tun, true)?;
    let host = Host::open(&config, &tun)?;
    let mut forwarding = Forwarding::set(&config)?;
    let probes = Probes::open(identifier, probe_key).context("cannot open a socket for probes")?;
    if let Some(user) = user {
        forwarding.file.create();
        hand_over(&config.node.state_file, user);
        hand_over(&config.node.control_socket, user);
    }
    give_up(user)?;
    let files = Files {
        read: vec![&config.file],
        written: vec![&config.node.state_file, &config.node.control_socket],
        nft: false,
        programs: Vec::new(),
    };
    enter_sandbox(config.node.sandbox, &files);
    let pump = Pump::new(Node::new(config.node_config(), seed), tun);
    let (name, file) = (config.node.tun.clone(), config.file.clone());
    let (monitor, clock) = (Monitor::open()?, Clock::start());
    let (sender, receiver) = channel();
    let parts = Parts { config, pump, host, probes, monitor, clock };
    let (mut driver, waker) =
        Driver::new(parts, receiver).context("cannot watch the node's sockets")?;
    let requests = Requests::new(sender, waker);
    requests::watch_signals(requests.clone(), file.clone())?;
    let control = control.answer_with(move |client| requests::answer(client, &requests, &file))?;
    if let Err(error) = set_timer_slack(TIMER_SLACK_NANOS) {
        log::debug!("timers stay coarse: {error}");
    }
    log::info!("{name} is up");
    let result = driver.run().context("the node's loop failed");
    drop(control);
    drop(driver);
    log::info!("{name} is down");
    result
}

/// The host's forwarding, as configured; restored when dropped.
struct Forwarding {
    file: StateFile,
}

impl Forwarding {
    fn set(config: &SteerConfig) -> Result<Self, Advised> {
        let mut file = StateFile::claim(&config.node.state_file)?;
        undo(&mut file);
        let mut forwarding = Self { file };
        if config.node.forward {
            let [any_v4, any_v6] = host::families(config);
            forward(&mut forwarding.file, any_v4, any_v6, &[])
                .map_err(|error| Advised::new(error.to_string(), error.help()))?;
        }
        Ok(forwarding)
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        undo(&mut self.file);
    }
}
