//! A gateway in this process with two peers, one ordinary and one hostile, in virtual time.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plait_net::clock::thread_cpu_time;
use plait_proto::config::{
    BondConfig, EndpointConfig, LinkConfig, LossDetection, Order, PeerConfig, Prefix, RekeyLimits,
    SocketId,
};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::rng::Rng;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::session::{Identity, PresharedKey, PrivateKey};
use plait_proto::stats::PathState;
use plait_proto::time::Instant;
use plait_proto::wire::control::Frame;
use plait_proto::wire::dscp::Dscps;
use plait_sim::hostile::content::{Addresses, Content, Kind, Made};
use plait_sim::hostile::{Heard, HostilePeer, replies_to};
use plait_sim::prng::Prng;

/// Longest datagram of either peer: what fits an Ethernet packet.
const BYTES_MAX: usize = 1472;
/// Virtual time between two datagrams: 10,000 a second.
const INTERVAL: Duration = Duration::from_micros(100);
pub(super) const DATAGRAMS_PER_SECOND: f64 = 10_000.0;
/// Datagrams that the gateway reads at once.
const BATCH: usize = 16;
/// Bytes of an inner packet of the gateway's host.
const HOST_PACKET_BYTES: usize = 200;
/// Attempts to get a path up.
const TRIES_MAX: usize = 50;
/// Age at which a peer renews its session.
const RENEWED_AFTER_S: u64 = 100;
const EPOCH: Duration = Duration::from_secs(1_700_000_000);

const ORDINARY: usize = 0;
const HOSTILE: usize = 1;

/// How the gateway's paths are controlled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loop {
    /// The scheduler alone decides.
    Open,
    /// plait's default controller.
    Closed,
}

impl Loop {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open loop",
            Self::Closed => "closed loop",
        }
    }
}

/// The cost of datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cost {
    pub(super) datagrams: u64,
    pub(super) bytes: u64,
    /// Processor time of the gateway.
    pub(super) time: Duration,
    /// Bytes that the gateway sent.
    pub(super) answered_bytes: u64,
}

impl Cost {
    pub(super) fn add(&mut self, other: &Self) {
        self.datagrams += other.datagrams;
        self.bytes += other.bytes;
        self.time += other.time;
        self.answered_bytes += other.answered_bytes;
    }

    pub(super) fn us_each(&self) -> f64 {
        self.time.as_secs_f64() * 1e6 / self.datagrams.max(1) as f64
    }
}

/// A datagram with its arrival time and sender.
#[derive(Debug)]
pub(super) struct Arriving {
    pub(super) made: Made,
    at: Instant,
    party: usize,
}

#[derive(Debug)]
struct Party {
    peer: HostilePeer,
    content: Content,
    address: IpAddr,
    /// Its inner address.
    inner: IpAddr,
}

/// Datagrams that the gateway sent, back to back.
#[derive(Debug, Default)]
struct Answers {
    bytes: Vec<u8>,
    /// Receiver and end of each datagram.
    ends: Vec<(IpAddr, usize)>,
}

/// The gateway, its peers, and time.
#[derive(Debug)]
pub(super) struct Scene {
    gateway: Endpoint,
    parties: [Party; 2],
    now: Instant,
    prng: Prng,
    answers: Answers,
    /// Packets of the ordinary peer that the gateway gave to its host.
    pub(super) delivered: u64,
    /// Packets of the gateway's host to the hostile peer.
    pub(super) sent_to_hostile: u64,
}

fn party(number: u8, gateway: &PrivateKey) -> Party {
    let identity = Identity::new(PrivateKey::from_bytes([10 + number; 32]));
    let inner = |host: u8| IpAddr::from([10, 9, 0, host]);
    let inner_v6 = |host: u16| IpAddr::from([0xfd00, 9, 0, 0, 0, 0, 0, host]);
    let host = 2 + number;
    let own = vec![inner(host), inner_v6(host.into())];
    let foreign = vec![inner(3 - number), inner_v6(u16::from(3 - number)), inner(77)];
    let addresses = Addresses { own, foreign, beyond: vec![inner(1), inner_v6(1)] };
    Party {
        peer: HostilePeer::new(identity, gateway.public_key(), [20 + number; 32]),
        content: Content::new(addresses, BYTES_MAX),
        address: [10, 1, number, 1].into(),
        inner: inner(host),
    }
}

fn gateway(key: PrivateKey, control: Loop, parties: &[Party]) -> Endpoint {
    let scheduler = SchedulerConfig::default();
    let congestion = match control {
        Loop::Open => None,
        Loop::Closed => scheduler.algorithm.default_congestion(),
    };
    let link = LinkConfig {
        socket: SocketId(0),
        name: "any".to_owned(),
        price: 0,
        weight: 1,
        standby: false,
        metered: false,
    };
    let config = EndpointConfig {
        private_key: key,
        wall_clock_at_zero: EPOCH,
        links: vec![link],
        bond: BondConfig {
            scheduler,
            congestion,
            order: Order::Flow,
            unordered: Dscps::default(),
            resequencer: ResequencerConfig::default(),
            loss_detection: LossDetection::Known,
            report_interval: Duration::from_millis(50),
            inner_mtu: 1440,
            rekey: RekeyLimits::default(),
            release: None,
        },
    };
    let peers = parties.iter().zip(2_u8..).map(|(party, host)| PeerConfig {
        public_key: party.peer.public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: Vec::new(),
        allowed_ips: vec![
            Prefix { address: [10, 9, 0, host].into(), length: 32 },
            Prefix { address: [0xfd00, 9, 0, 0, 0, 0, 0, host.into()].into(), length: 128 },
        ],
        keepalive: Duration::from_secs(25),
    });
    Endpoint::new(config, peers.collect(), Rng::from_seed([3; 32]))
}

impl Scene {
    /// Both peers have a path up.
    pub(super) fn new(control: Loop) -> Self {
        let key = PrivateKey::from_bytes([1; 32]);
        let parties = [0, 1].map(|number| party(number, &key));
        let mut scene = Self {
            gateway: gateway(key, control, &parties),
            parties,
            now: Instant::from_millis(1),
            prng: Prng::new(1),
            answers: Answers::default(),
            delivered: 0,
            sent_to_hostile: 0,
        };
        [ORDINARY, HOSTILE].into_iter().for_each(|at| scene.ensure_up(at));
        scene
    }

    fn wall_clock(&self) -> Duration {
        EPOCH + Duration::from_nanos(self.now.as_nanos())
    }

    fn is_up(&mut self, at: usize) -> bool {
        let status = self.gateway.status(self.now);
        status.peers[at].paths.iter().any(|path| path.state == PathState::Up)
            && self.parties[at].peer.has_session()
    }

    /// Makes a bond and brings a path up, unless there is one.
    fn ensure_up(&mut self, at: usize) {
        for _ in 0..TRIES_MAX {
            if self.is_up(at) {
                return;
            }
            // Longer than any handshake limit requires.
            self.now += Duration::from_millis(300);
            let wall_clock = self.wall_clock();
            let party = &mut self.parties[at];
            party.peer.forget_bond();
            party.peer.forget_cookie();
            let initiation = party.peer.initiate(wall_clock);
            party.content.begin_bond();
            self.tell(at, initiation);
            self.settle();
            self.say(at, &[Frame::PathChallenge(1)]);
            self.settle();
        }
        panic!("peer {at} does not get a path up: {:?}", self.gateway.status(self.now));
    }

    /// Renews a session before it is refused because of its age.
    fn renew(&mut self, at: usize) {
        let age_s = self.gateway.status(self.now).peers[at].session_age_s;
        if age_s.is_some_and(|age_s| age_s >= RENEWED_AFTER_S) {
            self.now += Duration::from_millis(300);
            let initiation = self.parties[at].peer.initiate(self.wall_clock());
            self.tell(at, initiation);
            self.settle();
            self.say(at, &[Frame::Probe(1)]);
            self.settle();
        }
    }

    fn tell(&mut self, at: usize, bytes: Vec<u8>) {
        let arriving = Arriving { made: Made::plain(bytes), at: self.now, party: at };
        self.receive(vec![arriving]);
    }

    fn say(&mut self, at: usize, frames: &[Frame]) {
        let Party { peer, content, .. } = &mut self.parties[at];
        if let Some(bytes) = content.say(peer, self.now, frames) {
            self.tell(at, bytes);
        }
    }

    /// Ensures that the hostile peer has a path, and that so many packets of the gateway's host are
    /// in flight to it.
    pub(super) fn prepare(&mut self, outstanding: usize) {
        self.ensure_up(HOSTILE);
        [ORDINARY, HOSTILE].into_iter().for_each(|at| self.renew(at));
        if outstanding == 0 {
            return;
        }
        self.parties[HOSTILE].content.forget_heard();
        let destination = self.parties[HOSTILE].inner;
        let packet = host_packet(destination);
        let missing = (outstanding as u64).saturating_sub(self.on_their_way());
        self.sent_to_hostile += missing;
        for _ in 0..missing {
            self.gateway.handle_packet(self.now, &packet);
        }
        self.settle();
    }

    /// Packet slots that the gateway has walked.
    pub(super) fn slots_walked(&self) -> u64 {
        self.gateway.slots_walked()
    }

    /// Data datagrams that the hostile peer has not acknowledged.
    pub(super) fn on_their_way(&mut self) -> u64 {
        let status = self.gateway.status(self.now);
        let bytes: u64 = status.peers[HOSTILE].paths.iter().map(|path| path.in_flight_bytes).sum();
        let backlog = status.peers[HOSTILE].backlog.as_ref().map_or(0, |backlog| backlog.packets);
        backlog + bytes / (HOST_PACKET_BYTES as u64 + 60)
    }

    /// Makes hostile datagrams for the time from now on.
    pub(super) fn make_hostile(&mut self, kind: Option<Kind>, count: usize) -> Vec<Arriving> {
        let mut made = Vec::with_capacity(count);
        let Party { peer, content, .. } = &mut self.parties[HOSTILE];
        let prng = &mut self.prng;
        let mut choose = |max| prng.up_to(max);
        for step in 1..=count as u32 {
            let at = self.now + INTERVAL * step;
            let wall_clock = EPOCH + Duration::from_nanos(at.as_nanos());
            let next = match kind {
                Some(kind) => content.make(kind, peer, at, wall_clock, &mut choose),
                None => content.make_any_sealed(peer, at, wall_clock, &mut choose),
            };
            let next = next.expect("the peer has had a session since the scene began");
            made.push(Arriving { made: next, at, party: HOSTILE });
        }
        made
    }

    /// Makes ordinary datagrams of these lengths for the time from now on.
    pub(super) fn make_ordinary(&mut self, lengths: &[usize]) -> Vec<Arriving> {
        let Party { peer, content, .. } = &mut self.parties[ORDINARY];
        let mut make = |(step, length): (u32, &usize)| {
            let at = self.now + INTERVAL * step;
            let bytes = content.ordinary(peer, at, *length);
            let bytes = bytes.expect("the peer has had a session since the scene began");
            Arriving { made: Made::plain(bytes), at, party: ORDINARY }
        };
        (1..).zip(lengths).map(&mut make).collect()
    }

    /// Gives the gateway datagrams at their times, and measures its processor time.
    pub(super) fn receive(&mut self, mut datagrams: Vec<Arriving>) -> Cost {
        let mut cost = Cost { datagrams: datagrams.len() as u64, ..Cost::default() };
        cost.bytes = datagrams.iter().map(|datagram| datagram.made.bytes.len() as u64).sum();
        let answered_before = self.answers.bytes.len();
        let begun = thread_cpu_time();
        for batch in datagrams.chunks_mut(BATCH) {
            for Arriving { made, at, party } in batch {
                self.now = *at;
                let route = route(self.parties[*party].address, made.source);
                let stride = made.bytes.len();
                self.gateway.handle_datagrams(*at, route, made.ecn, stride, &mut made.bytes);
            }
            self.drain();
            if self.gateway.poll_timeout(self.now).is_some_and(|due| due <= self.now) {
                self.gateway.handle_timeout(self.now);
                self.drain();
            }
        }
        cost.time = thread_cpu_time() - begun;
        cost.answered_bytes = (self.answers.bytes.len() - answered_before) as u64;
        cost
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.gateway.poll_transmit() {
            let size = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
            let first = self.answers.bytes.len();
            self.answers.bytes.extend_from_slice(transmit.contents);
            let last = self.answers.bytes.len();
            let ends = (first + size..last).step_by(size).chain([last]);
            self.answers.ends.extend(ends.map(|end| (transmit.remote.ip(), end)));
        }
        let ordinary = self.parties[ORDINARY].inner;
        while let Some(packet) = self.gateway.poll_deliver() {
            let source = packet.get(12..16).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
            self.delivered += u64::from(source.map(IpAddr::from) == Some(ordinary));
        }
        while self.gateway.poll_event().is_some() {}
    }

    /// Lets the peers read the gateway's datagrams, and answer those that keep their paths up.
    pub(super) fn settle(&mut self) {
        self.drain();
        let Answers { bytes, ends } = core::mem::take(&mut self.answers);
        let (mut first, mut replies) = (0, [const { Vec::new() }; 2]);
        for (remote, end) in ends {
            let datagram = &bytes[core::mem::replace(&mut first, end)..end];
            let Some(at) = self.parties.iter().position(|party| party.address == remote) else {
                continue;
            };
            let party = &mut self.parties[at];
            let heard = party.peer.hear(datagram);
            party.content.note(&heard);
            if let Heard::Control(path, frames) = heard
                && path == party.content.main_path(&party.peer)
            {
                replies[at].extend(replies_to(&frames, BYTES_MAX as u16));
            }
        }
        for (at, frames) in replies.into_iter().enumerate() {
            if !frames.is_empty() {
                self.say(at, &frames);
            }
        }
        self.answers = Answers::default();
    }
}

fn route(address: IpAddr, source: u16) -> Route {
    Route { socket: SocketId(0), remote: SocketAddr::new(address, 1000 + source), local: None }
}

fn host_packet(destination: IpAddr) -> Vec<u8> {
    let IpAddr::V4(destination) = destination else { unreachable!("the scene has IPv4 inside") };
    let length = (HOST_PACKET_BYTES as u16).to_be_bytes();
    let mut packet = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet.extend_from_slice(&[10, 9, 0, 1]);
    packet.extend_from_slice(&destination.octets());
    packet.resize(HOST_PACKET_BYTES, 0);
    packet
}
