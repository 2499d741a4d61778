//! The provider with its two customers, and measurements of the honest one.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plait_net::netns::NetNs;
use plait_sim::hostile::content::Addresses;

use super::attacker::{Attacker, Phase, Sources, key};
use crate::emulator::Way;
use crate::gateway::{
    Gateway, cidr, customer_file, endpoint_v4, make_key, path_over, provider_file,
};
use crate::measure::{Pinging, Stream, Target};
use crate::process::wait_until;
use crate::scratch::Scratch;
use crate::topology::{
    LinkSpec, PROVIDER_V4, SERVER_V4, SERVER_V6, Topology, inner_v4, inner_v6, ip_batch, mtu_of,
    new_netns,
};
use crate::worker::Worker;

const LINKS: [LinkSpec; 2] = [LinkSpec::new("dsl", 50, 10, 10), LinkSpec::new("lte", 50, 20, 20)];
const HONEST: u8 = 2;
const HOSTILE: u8 = 3;
/// A prefix of the hostile customer that also contains the honest one's address.
const NESTED: &str = "10.99.0.0/25";
/// The hostile customer's link, and its addresses there.
const DEVICE: &str = "hostile";
const PROVIDER_END: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const SOURCES: Sources = Sources { first: Ipv4Addr::new(10, 77, 0, 2), count: 64 };

const UP_LIMIT: Duration = Duration::from_secs(15);
const PING_INTERVAL: Duration = Duration::from_millis(20);
const V6_PING_INTERVAL: Duration = Duration::from_millis(200);
/// Payload of a ping that makes an IPv6 packet of 1280 bytes.
const V6_PAYLOAD: u32 = 1280 - 40 - 8;
/// The port that hostile packets go to (discard, RFC 863).
const DISCARD: u16 = 9;
/// Interval of the server's packets to the hostile customer, which give it something to
/// acknowledge.
const FEED_INTERVAL: Duration = Duration::from_millis(2);
const FEED_BYTES: usize = 200;

/// The namespaces. Gateways and traffic come with [`Self::start`].
#[derive(Debug)]
pub(super) struct Network {
    topology: Topology,
    hostile: NetNs,
}

/// Measurements of the honest customer during a phase.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    pub(super) download_bps: u64,
    pub(super) p99_ms: f64,
    /// Share of the large IPv6 pings that were answered.
    pub(super) v6_answered: f64,
    /// MTU of the honest customer's TUN device or of the provider's, whichever is smaller.
    pub(super) inner_mtu: u32,
    pub(super) memory_mib: f64,
    pub(super) peak_mib: f64,
    pub(super) provider_cpu: Duration,
    pub(super) hostile_datagrams: u64,
    /// Packets at the server from the honest customer's address that the customer never sent.
    pub(super) spoofed_packets: u64,
}

impl Sample {
    /// The mean of two quiet phases.
    pub(super) fn mean(&self, other: &Self) -> Self {
        Self {
            download_bps: u64::midpoint(self.download_bps, other.download_bps),
            p99_ms: f64::midpoint(self.p99_ms, other.p99_ms),
            provider_cpu: (self.provider_cpu + other.provider_cpu) / 2,
            ..*self
        }
    }
}

impl Network {
    pub(super) fn build() -> Result<Self> {
        let topology = Topology::build(&LINKS)?;
        let hostile = new_netns("plait-hostile")?;
        let pair = format!("link add {DEVICE} type veth peer name {DEVICE} netns plait-hostile");
        ip_batch(&topology.provider, "", &[pair])?;
        let up = format!("link set dev {DEVICE} up");
        ip_batch(
            &topology.provider,
            "",
            &[format!("addr add {PROVIDER_END}/16 dev {DEVICE}"), up.clone()],
        )?;
        let mut lines: Vec<String> = (0..=SOURCES.count)
            .map(|number| format!("addr add {}/16 dev {DEVICE}", SOURCES.address(number)))
            .collect();
        lines.extend([up, format!("route add {PROVIDER_V4}/32 via {PROVIDER_END}")]);
        ip_batch(&hostile, "", &lines)?;
        Ok(Self { topology, hostile })
    }

    /// Starts gateways, traffic and the quiet attacker.
    pub(super) fn start(&mut self) -> Result<Session<'_>> {
        let scratch = Scratch::in_memory("neighbour")?;
        let customer_key = make_key(&scratch.path().join("customer.key"))?;
        let provider_key = make_key(&scratch.path().join("provider.key"))?;
        let paths = LINKS.map(|link| path_over(link.name));
        let endpoints = [endpoint_v4()];
        let customer = customer_file("customer.key", HONEST, &provider_key, &endpoints, &paths);
        let peers = [(customer_key, HONEST), (key().public_key().to_string(), HOSTILE)];
        let mut provider = provider_file("provider.key", &peers);
        if let Some(hostile) = provider.peers.last_mut() {
            hostile.allowed_ips.push(cidr(NESTED));
        }
        let topology = &self.topology;
        let netns = &topology.customer().netns;
        let provider = Gateway::start(&topology.provider, scratch.path(), "provider", &provider)?;
        let customer = Gateway::start(netns, scratch.path(), "customer", &customer)?;
        let victim = provider_key.parse().context("the provider's key is a public key")?;
        let inside = |host: u8| vec![inner_v4(host).into(), inner_v6(host).into()];
        let beyond = vec![SERVER_V4.into(), SERVER_V6.into()];
        let addresses = Addresses { own: inside(HOSTILE), foreign: inside(HONEST), beyond };
        let attacker = Attacker::start(&self.hostile, victim, addresses, SOURCES)?;
        let mut session = Session {
            network: self,
            provider,
            customer,
            attacker,
            download: None,
            discard: Discard::start(&topology.server)?,
            _scratch: scratch,
        };
        session.wait_until_up()?;
        session.download = Some(Stream::start(topology, Way::Down)?);
        Ok(session)
    }
}

/// Running gateways, traffic and attacker.
#[derive(Debug)]
pub(super) struct Session<'a> {
    network: &'a Network,
    provider: Gateway,
    customer: Gateway,
    attacker: Attacker,
    download: Option<Stream>,
    discard: Discard,
    _scratch: Scratch,
}

impl Session<'_> {
    fn wait_until_up(&mut self) -> Result<()> {
        let topology = &self.network.topology;
        let waited = wait_until("both customers' bonds", UP_LIMIT, || {
            let status = self.customer.status(&topology.customer().netns)?;
            let up = status.is_some_and(|status| status.is_up(LINKS.len()));
            Ok((up && self.attacker.has_joined()).then_some(()))
        });
        waited.with_context(|| format!("the provider's log ends:\n{}", self.provider.log_tail()))
    }

    /// Measures the honest customer during a phase of the hostile one.
    pub(super) fn sample(
        &mut self,
        phase: Phase,
        ramp: Duration,
        counted: Duration,
    ) -> Result<Sample> {
        self.attacker.set_phase(phase);
        std::thread::sleep(ramp);
        let topology = &self.network.topology;
        let netns = &topology.customer().netns;
        let target = Target { client: netns, server: SERVER_V4.into(), bind: None };
        let pings = |interval: Duration| (counted.as_millis() / interval.as_millis()) as u32;
        let pinging = Pinging::start(target, PING_INTERVAL, pings(PING_INTERVAL))?;
        let target = Target { server: SERVER_V6.into(), ..target };
        let (interval, count) = (V6_PING_INTERVAL, pings(V6_PING_INTERVAL));
        let v6 = Pinging::start_whole(target, interval, count, V6_PAYLOAD)?;
        let (cpu, sent, spoofed) =
            (self.provider.cpu_time()?, self.attacker.sent(), self.discard.spoofed());
        let from = Instant::now();
        std::thread::sleep(counted);
        let until = Instant::now();
        let provider_cpu = self.provider.cpu_time()?.saturating_sub(cpu);
        let hostile_datagrams = self.attacker.sent() - sent;
        self.provider.ensure_runs()?;
        self.customer.ensure_runs()?;
        let download = self.download.as_ref().context("the session has a download")?;
        if let Some(death) = download.death() {
            anyhow::bail!("the honest customer's connection ended: {death}");
        }
        let mtus = [mtu_of(netns, "plait0")?, mtu_of(&topology.provider, "plait1")?];
        Ok(Sample {
            seconds: (until - from).as_secs_f64(),
            download_bps: download.deliveries().rate_bps(from, until),
            p99_ms: pinging.answers()?.percentile_ms(99),
            v6_answered: v6.answered_share()?,
            inner_mtu: mtus[0].min(mtus[1]),
            memory_mib: self.provider.memory_mib()?,
            peak_mib: self.provider.peak_memory_mib()?,
            provider_cpu,
            hostile_datagrams,
            spoofed_packets: self.discard.spoofed() - spoofed,
        })
    }

    /// Ends everything; the gateways must end by themselves. Returns the attacker's processor time.
    pub(super) fn stop(mut self) -> Result<Duration> {
        drop(self.download.take());
        let cpu = self.attacker.stop()?;
        self.customer.stop().context("the customer's gateway")?;
        self.provider.stop().context("the provider's gateway")?;
        Ok(cpu)
    }
}

/// The server's end of hostile traffic: it counts packets from the honest customer's address, which
/// sends none there, and feeds the hostile customer.
#[derive(Debug)]
struct Discard {
    spoofed: Arc<AtomicU64>,
    _worker: Worker,
}

impl Discard {
    fn start(server: &NetNs) -> Result<Self> {
        let socket = server.run_in(|| UdpSocket::bind((SERVER_V4, DISCARD)))??;
        socket.set_nonblocking(true)?;
        let spoofed = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&spoofed);
        let worker = Worker::start("discard", move |goes_on| discard(&socket, goes_on, &counted))?;
        Ok(Self { spoofed, _worker: worker })
    }

    fn spoofed(&self) -> u64 {
        self.spoofed.load(Ordering::Relaxed)
    }
}

fn discard(socket: &UdpSocket, goes_on: &dyn Fn() -> bool, spoofed: &AtomicU64) {
    let mut buffer = [0; 2048];
    while goes_on() {
        while let Ok((_, source)) = socket.recv_from(&mut buffer) {
            if source.ip() == IpAddr::from(inner_v4(HONEST)) {
                spoofed.fetch_add(1, Ordering::Relaxed);
            }
        }
        // Until the hostile customer has a bond, nobody receives it.
        let _lost = socket.send_to(&[0; FEED_BYTES], (inner_v4(HOSTILE), DISCARD));
        std::thread::sleep(FEED_INTERVAL);
    }
}
