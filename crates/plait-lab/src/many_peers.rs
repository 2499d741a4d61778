//! A provider's gateway with many peers, and the customers among them that carry packets, in memory
//! and in virtual time: what a packet costs the provider.
//!
//! Both ends are whole and have the real cipher. Only the provider's work is counted. It takes one
//! packet or datagram after the other, as when nothing can be read together: then what a packet
//! costs because of its peer shows most.

pub(crate) mod crowd;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::clock::thread_cpu_time;
use plait_pair::{bond_config, link_config};
use plait_proto::config::{BondConfig, EndpointConfig, Order, PeerConfig, Prefix, SocketId};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::rng::Rng;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::session::{PresharedKey, PrivateKey, PublicKey};
use plait_proto::time::Instant;
use plait_proto::wire::ecn::Ecn;

use crate::cli::{Load, ManyPeersArgs};
use crate::output::{self, Verdict};
use crate::process;
use crate::scratch::Scratch;

/// Virtual time between two packets of a customer: full ones would be 45 Mbit/s.
const INTERVAL: Duration = Duration::from_micros(256);
/// The provider works on so many packets of each customer, then the customers do: 10 ms. The longer
/// it is, the less do the customers' peers push the provider's out of the cache.
const STEP_PACKETS: usize = 39;
/// One way between the gateways; longer than a step.
const DELAY: Duration = Duration::from_millis(15);
/// Steps before the ones that count: handshakes are done and windows are open then.
const FIRST_STEPS: usize = 60;
/// Length of a packet: small, so that the cipher does not hide the rest.
const PACKET_BYTES: u8 = 100;
const PROVIDER: ([u8; 4], u16) = ([192, 0, 2, 1], 7788);
const PROVIDER_INNER: [u8; 4] = [10, 98, 0, 1];
const EPOCH: Duration = Duration::from_secs(1_700_000_000);
/// One run under valgrind takes seconds; longer than this it hangs.
const VALGRIND_LIMIT: Duration = Duration::from_secs(600);

/// A gateway and what is on its way to it.
#[derive(Debug)]
struct Side {
    endpoint: Endpoint,
    address: SocketAddr,
    arriving: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    /// What of it arrives within the step: back to back as a socket's batch, and of each datagram
    /// time, sender and length.
    read: Vec<u8>,
    lengths: Vec<(Instant, SocketAddr, usize)>,
    /// What it sent, back to back, and of each datagram time, receiver and end.
    sent: Vec<u8>,
    ends: Vec<(Instant, SocketAddr, usize)>,
    delivered: usize,
}

impl Load {
    /// Packets of a step, and the time between two.
    fn step(&self) -> (usize, Duration) {
        let at_once = self.active * self.rate;
        (STEP_PACKETS * at_once, INTERVAL / at_once as u32)
    }
}

impl Side {
    fn new(key: PrivateKey, address: SocketAddr, peers: Vec<PeerConfig>) -> Self {
        let algorithm = SchedulerConfig::default().algorithm;
        let congestion = algorithm.default_congestion();
        let bond = BondConfig { congestion, ..bond_config(algorithm, Order::Flow) };
        let config = EndpointConfig {
            private_key: key,
            wall_clock_at_zero: EPOCH,
            links: vec![link_config(0)],
            bond,
        };
        let mut seed = [1; 32];
        seed[..4].copy_from_slice(&bytes_of(address.ip()));
        Self {
            endpoint: Endpoint::new(config, peers, Rng::from_seed(seed)),
            address,
            arriving: VecDeque::new(),
            read: Vec::new(),
            lengths: Vec::new(),
            sent: Vec::new(),
            ends: Vec::new(),
            delivered: 0,
        }
    }

    /// Reads what arrives until `last`.
    fn read(&mut self, last: Instant) {
        self.arriving.make_contiguous().sort_by_key(|(at, ..)| *at);
        self.read.clear();
        self.lengths.clear();
        let due = self.arriving.iter().take_while(|(at, ..)| *at <= last).count();
        for (at, from, bytes) in self.arriving.drain(..due) {
            self.read.extend_from_slice(&bytes);
            self.lengths.push((at, from, bytes.len()));
        }
    }

    /// A step from `start` on: what arrives, what is due, and its host's packets, one by one.
    fn work(&mut self, start: Instant, interval: Duration, packets: &[Option<&[u8]>]) {
        let read = core::mem::take(&mut self.lengths);
        let (mut now, mut ahead, mut first) = (start, read.iter().peekable(), 0);
        for packet in packets {
            while let Some((_, from, length)) = ahead.next_if(|(at, ..)| *at <= now) {
                let route = Route { socket: SocketId(0), remote: *from, local: None };
                let bytes = &mut self.read[first..first + length];
                self.endpoint.handle_datagrams(now, route, Ecn::NotEct, *length, bytes);
                first += length;
                self.drain(now);
            }
            if self.endpoint.poll_timeout(now).is_some_and(|due| due <= now) {
                self.endpoint.handle_timeout(now);
                self.drain(now);
            }
            if let Some(packet) = packet {
                self.endpoint.handle_packet(now, packet);
                self.drain(now);
            }
            now += interval;
        }
        self.lengths = read;
    }

    fn drain(&mut self, now: Instant) {
        while let Some(transmit) = self.endpoint.poll_transmit() {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
            for datagram in transmit.contents.chunks(size) {
                self.sent.extend_from_slice(datagram);
                self.ends.push((now, transmit.remote, self.sent.len()));
            }
        }
        while self.endpoint.poll_deliver().is_some() {
            self.delivered += 1;
        }
        while self.endpoint.poll_event().is_some() {}
    }

    /// Gives what was sent since the last call to whom it is for.
    fn hand_over(&mut self, mut give: impl FnMut(SocketAddr, (Instant, SocketAddr, Vec<u8>))) {
        let mut first = 0;
        for (at, to, end) in self.ends.drain(..) {
            give(to, (at + DELAY, self.address, self.sent[first..end].to_vec()));
            first = end;
        }
        self.sent.clear();
    }
}

/// The work that is counted; callgrind knows it by its name.
#[inline(never)]
fn at_provider(provider: &mut Side, at: Instant, interval: Duration, packets: &[Option<&[u8]>]) {
    provider.work(at, interval, packets);
}

/// The provider and its customers.
#[derive(Debug)]
pub(crate) struct ManyPeers {
    load: Load,
    provider: Side,
    customers: Vec<Side>,
    /// A packet of each customer, or to it.
    packets: Vec<Vec<u8>>,
    now: Instant,
    /// The provider's processor time.
    time: Duration,
}

impl ManyPeers {
    /// All of the load is under way.
    pub(crate) fn new(load: Load) -> Result<Self> {
        ensure!(
            0 < load.rate && 0 < load.active && load.active <= load.peers && load.peers < 1 << 16,
            "of fewer than 65536 peers at least one is active, and no more than there are: {load:?}"
        );
        let provider_key = PrivateKey::from_bytes([1; 32]);
        let places: Vec<usize> = (0..load.active).map(|at| at * load.peers / load.active).collect();
        let peers = (0..load.peers).map(|at| match places.binary_search(&at) {
            Ok(_) => peer(key(at).public_key(), address(10, at), Vec::new()),
            // Nobody has its private key: it is never heard of.
            Err(_) => peer(PublicKey::from_bytes(seed(at)), address(10, at), Vec::new()),
        });
        let of_provider = peer(provider_key.public_key(), PROVIDER_INNER.into(), [PROVIDER.into()]);
        let customer = |at: &usize| {
            let outer = SocketAddr::new(address(172, *at), 1000);
            Side::new(key(*at), outer, vec![of_provider.clone()])
        };
        let packet = |at: &usize| match (load.receives, address(10, *at)) {
            (true, customer) => packet(customer, PROVIDER_INNER.into()),
            (false, customer) => packet(PROVIDER_INNER.into(), customer),
        };
        let mut all = Self {
            load,
            customers: places.iter().map(customer).collect(),
            packets: places.iter().map(packet).collect(),
            provider: Side::new(provider_key, PROVIDER.into(), peers.collect()),
            now: Instant::from_millis(1),
            time: Duration::ZERO,
        };
        for customer in &mut all.customers {
            customer.endpoint.start(all.now);
            customer.drain(all.now);
        }
        (0..FIRST_STEPS).for_each(|_| all.step());
        Ok(all)
    }

    /// Carries so many packets, or a few more; returns the processor time of one at the provider,
    /// in nanoseconds.
    ///
    /// # Errors
    /// Too many were lost for the figure to mean anything.
    pub(crate) fn carry(&mut self, packets: usize) -> Result<u64> {
        let (arrived, time) = (self.arrived(), self.time);
        let steps = packets.div_ceil(self.load.step().0);
        (0..steps).for_each(|_| self.step());
        let (arrived, packets) = (self.arrived() - arrived, steps * self.load.step().0);
        ensure!(
            arrived.abs_diff(packets) <= packets / 50,
            "{arrived} of {packets} packets arrived: {:?}",
            self.load
        );
        Ok((self.time - time).as_nanos() as u64 / packets as u64)
    }

    fn arrived(&self) -> usize {
        let at_customers: usize = self.customers.iter().map(|side| side.delivered).sum();
        if self.load.receives { self.provider.delivered } else { at_customers }
    }

    fn step(&mut self) {
        let Load { active, receives, .. } = self.load;
        let (count, interval) = self.load.step();
        let slots = || (0..count).map(|slot| slot % active);
        let to_customers = slots().map(|at| (!receives).then_some(&self.packets[at][..]));
        let to_customers: Vec<_> = to_customers.collect();
        let last = self.now + interval * (count as u32 - 1);
        self.provider.read(last);
        let clock = thread_cpu_time();
        let begun = thread_cpu_time();
        at_provider(&mut self.provider, self.now, interval, &to_customers);
        // Without what reading the clock costs.
        self.time += (thread_cpu_time() - begun).saturating_sub(begun - clock);
        for (own, customer) in self.customers.iter_mut().enumerate() {
            let packet = |at| (receives && at == own).then_some(&self.packets[own][..]);
            customer.read(last);
            customer.work(self.now, interval, &slots().map(packet).collect::<Vec<_>>());
            customer.hand_over(|_, datagram| self.provider.arriving.push_back(datagram));
        }
        let customers = &mut self.customers;
        self.provider.hand_over(|to, datagram| {
            if let Some(customer) = customers.iter_mut().find(|side| side.address == to) {
                customer.arriving.push_back(datagram);
            }
        });
        self.now += INTERVAL * STEP_PACKETS as u32;
    }
}

/// What callgrind runs: prints the processor time of a packet, too.
pub(crate) fn run(args: &ManyPeersArgs) -> Result<Verdict> {
    let ns = ManyPeers::new(args.load)?.carry(args.packets)?;
    output::note(format!("{ns} ns a packet"));
    Ok(Verdict::Good)
}

/// Instructions that each packet costs the provider, by callgrind.
///
/// # Errors
/// There is no valgrind, or it does not run this program.
pub(crate) fn instructions_per_packet(load: Load, [few, many]: [usize; 2]) -> Result<f64> {
    let scratch = Scratch::in_memory("callgrind")?;
    let count = |packets: usize| -> Result<u64> {
        let file = scratch.path().join(format!("{packets}.out"));
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--toggle-collect=*many_peers::at_provider*"]);
        command.arg(format!("--callgrind-out-file={}", file.display()));
        command.arg(std::env::current_exe()?).arg("many-peers");
        command
            .args([load.peers, load.active, load.rate, packets].map(|number| number.to_string()));
        command.args(load.receives.then_some("--receives"));
        process::run(&mut command, "", VALGRIND_LIMIT)?;
        let profile = std::fs::read_to_string(&file).context("callgrind wrote no profile")?;
        let total = profile.lines().find_map(|line| line.strip_prefix("totals: "));
        let total = total.and_then(|total| total.trim().parse().ok()).unwrap_or(0);
        ensure!(total > 0, "callgrind counted nothing: this program has lost its symbols");
        Ok(total)
    };
    let more = count(many)?.checked_sub(count(few)?);
    let more = more.context("more packets took fewer instructions")?;
    Ok(more as f64 / (many - few) as f64)
}

fn seed(at: usize) -> [u8; 32] {
    let mut seed = [77; 32];
    seed[..4].copy_from_slice(&(at as u32).wrapping_mul(0x9e37_79b1).to_be_bytes());
    seed[4..8].copy_from_slice(&(at as u32).to_be_bytes());
    seed
}

fn key(at: usize) -> PrivateKey {
    PrivateKey::from_bytes(seed(at))
}

fn address(first: u8, at: usize) -> IpAddr {
    let [.., high, low] = (at as u32).to_be_bytes();
    [first, 16, high, low].into()
}

fn bytes_of(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => unreachable!("there is only IPv4 here"),
    }
}

fn peer(
    public_key: PublicKey,
    inner: IpAddr,
    endpoints: impl IntoIterator<Item = SocketAddr>,
) -> PeerConfig {
    let [.., high, low] = bytes_of(inner);
    let inner_v6 = [0xfd00, 16, 0, 0, 0, 0, high.into(), low.into()].into();
    PeerConfig {
        public_key,
        preshared_key: PresharedKey::default(),
        endpoints: endpoints.into_iter().collect(),
        allowed_ips: vec![
            Prefix { address: inner, length: 32 },
            Prefix { address: inner_v6, length: 128 },
        ],
        keepalive: Duration::from_secs(25),
    }
}

fn packet(source: IpAddr, destination: IpAddr) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, PACKET_BYTES, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet.extend_from_slice(&bytes_of(source));
    packet.extend_from_slice(&bytes_of(destination));
    packet.extend_from_slice(&[0x80, 0, 0x80, 0, 0, PACKET_BYTES - 20, 0, 0]);
    packet.resize(PACKET_BYTES.into(), 0);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_active_customer_has_its_packets_carried() {
        let cases = [(1, 1, 2, false), (20, 3, 1, false), (20, 3, 1, true)];
        for (peers, active, rate, receives) in cases {
            let mut all = ManyPeers::new(Load { peers, active, rate, receives }).unwrap();
            assert!(all.carry(1000).unwrap() > 0);
            let least = all.customers.iter().map(|customer| customer.delivered).min();
            assert!(receives || least > Some(900 / active), "{least:?}");
        }
    }

    #[test]
    fn what_does_not_arrive_is_an_error() {
        let load = Load { peers: 10, active: 2, rate: 1, receives: false };
        let mut all = ManyPeers::new(load).unwrap();
        all.customers.pop();
        assert!(all.carry(1000).unwrap_err().to_string().contains("of 1014 packets arrived"));
    }
}
