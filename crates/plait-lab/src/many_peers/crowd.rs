//! Customers of a real gateway, a thousand in one thread: each has a bond with one path, and is
//! idle.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result};
use plait_net::clock::{Clock, realtime_since_epoch};
use plait_net::netns::NetNs;
use plait_net::rights::raise_open_files;
use plait_pair::{bond_config, link_config};
use plait_proto::config::{EndpointConfig, Order, PeerConfig, SocketId};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::rng::Rng;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::session::{PresharedKey, PrivateKey, PublicKey};
use plait_proto::time::Instant;
use plait_proto::wire::ecn::Ecn;
use plait_toml::gateway::Peer;
use tokio::time::sleep;

use crate::gateway::idle_peer;
use crate::worker::Worker;

/// From one customer's first word to the next one's: fewer than a gateway answers without a cookie.
const APART: Duration = Duration::from_millis(12);
/// How often it looks whether it is to go on.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Open files besides the customers' sockets.
const OTHER_FILES: u64 = 200;

/// Customers that run until this is dropped.
#[derive(Debug)]
pub(crate) struct Crowd {
    _worker: Worker,
}

/// The provider's section for the customer with this number, from 1 on.
pub(crate) fn member(at: usize) -> Peer {
    Peer { public_key: key(at).public_key().to_string(), ..idle_peer(at) }
}

fn key(at: usize) -> PrivateKey {
    let mut bytes = [55; 32];
    bytes[..8].copy_from_slice(&(at as u64).to_be_bytes());
    PrivateKey::from_bytes(bytes)
}

impl Crowd {
    /// Starts the customers from 1 to `count` in a namespace. They call one after the other.
    pub(crate) fn start(
        netns: &NetNs,
        count: usize,
        provider: SocketAddr,
        provider_key: PublicKey,
    ) -> Result<Self> {
        raise_open_files(count as u64 + OTHER_FILES).context("too few files may be open")?;
        let bind = || -> std::io::Result<Vec<UdpSocket>> {
            (0..count).map(|_| UdpSocket::bind(("0.0.0.0", 0))).collect()
        };
        let sockets = netns.run_in(bind)??;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let worker = Worker::start("crowd", move |goes_on| {
            let tasks = tokio::task::LocalSet::new();
            for (at, socket) in (1..).zip(sockets) {
                tasks.spawn_local(async move {
                    sleep(APART * at as u32).await;
                    // What fails shows in the provider's count of bonds.
                    let _ended = run(at, socket, provider, provider_key).await;
                });
            }
            tasks.block_on(&runtime, async {
                while goes_on() {
                    sleep(LOOK_INTERVAL).await;
                }
            });
        })?;
        Ok(Self { _worker: worker })
    }
}

fn endpoint(at: usize, provider: SocketAddr, provider_key: PublicKey, clock: &Clock) -> Endpoint {
    let algorithm = SchedulerConfig::default().algorithm;
    let congestion = algorithm.default_congestion();
    let bond =
        plait_proto::config::BondConfig { congestion, ..bond_config(algorithm, Order::Flow) };
    let config = EndpointConfig {
        private_key: key(at),
        wall_clock_at_zero: realtime_since_epoch() - clock.elapsed(),
        links: vec![link_config(0)],
        bond,
    };
    let peer = PeerConfig {
        public_key: provider_key,
        preshared_key: PresharedKey::default(),
        endpoints: vec![provider],
        allowed_ips: Vec::new(),
        keepalive: Duration::from_secs(25),
    };
    let mut seed = [66; 32];
    seed[..8].copy_from_slice(&(at as u64).to_be_bytes());
    Endpoint::new(config, vec![peer], Rng::from_seed(seed))
}

/// One customer, for ever.
async fn run(
    at: usize,
    socket: UdpSocket,
    provider: SocketAddr,
    provider_key: PublicKey,
) -> std::io::Result<()> {
    socket.set_nonblocking(true)?;
    let socket = tokio::net::UdpSocket::from_std(socket)?;
    let clock = Clock::start();
    let now = || Instant::ZERO + clock.elapsed();
    let mut endpoint = endpoint(at, provider, provider_key, &clock);
    endpoint.start(now());
    let mut buffer = [0; 2048];
    loop {
        while let Some(transmit) = endpoint.poll_transmit() {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
            for datagram in transmit.contents.chunks(size) {
                // A full queue loses it, as a link may.
                let _sent = socket.try_send_to(datagram, transmit.remote);
            }
        }
        while endpoint.poll_deliver().is_some() {}
        while endpoint.poll_event().is_some() {}
        let due = endpoint.poll_timeout(now()).map(|due| due.since(now()));
        tokio::select! {
            read = socket.recv_from(&mut buffer) => {
                if let Ok((length, remote)) = read {
                    let route = Route { socket: SocketId(0), remote, local: None };
                    let datagram = &mut buffer[..length];
                    endpoint.handle_datagrams(now(), route, Ecn::NotEct, length, datagram);
                }
            }
            () = sleep(due.unwrap_or(LOOK_INTERVAL)) => endpoint.handle_timeout(now()),
        }
    }
}
