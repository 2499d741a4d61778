//! A provider with two peers: an honest customer, and one that holds a key and seals whatever the
//! bytes say. Nothing that the second does may reach the first.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use plait_pair::{CUSTOMER, INNER_IPS, PROVIDER, Pair, number, packet_of, public_key};
use plait_proto::config::{BondConfig, PeerConfig, Prefix, RekeyLimits, SocketId};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::SchedulerConfig;
use plait_proto::seq::{BondSeq, PacketNumber, PathId};
use plait_proto::session::{Identity, PresharedKey, PrivateKey, Timestamp};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::Kind as Datagram;
use plait_proto::wire::control::Frame;
use plait_proto::wire::ecn::Ecn;
use plait_proto::wire::sealed::{ControlPrefix, SEALED_BYTES_MAX};
use plait_sim::hostile::content::{Addresses, Content, Kind, Made};
use plait_sim::hostile::{Heard, HostilePeer, replies_to};
use plait_sim::prng::Prng;

use crate::input::Input;
use crate::pair::{default_bond, pair};
use crate::reached;

const OPS_MAX: usize = 200;
/// Hostile datagrams of one operation.
const BURST_MAX: u8 = 64;
/// Virtual time that one case may pass.
const TIME_MAX: Duration = Duration::from_secs(240);
/// Packets of the honest bond in one case, each way.
const PACKETS_MAX: usize = 1000;
/// Virtual seconds that the honest bond is watched at the end.
const WATCHED_SECONDS: u32 = 5;
const FLOWS: u16 = 3;
/// Paths of one bond.
const PATHS_MAX: usize = 32;
/// The hostile peer among the provider's peers.
const HOSTILE: usize = 1;
const HOSTILE_HOST: u8 = 3;
/// What the provider may send for each byte of the hostile peer, in tenths; and beside it what it
/// sends of itself in the time between: probes, challenges, repetitions.
const ANSWERED_TENTHS_MAX: usize = 15;
const UNASKED_BYTES_PER_SECOND: usize = 20_000;
const EPOCH: Duration = Duration::from_secs(1_700_000_000);

/// The honest bond keeps its packets, its order, its MTU and its addresses; memory and answers are
/// bounded.
pub fn hostile_peer(data: &[u8]) {
    let mut input = Input::new(data);
    let mut run = Run::new(&mut input);
    for _ in 0..OPS_MAX {
        if input.is_empty() {
            break;
        }
        run.step(&mut input);
        run.check();
    }
    run.finish();
}

fn choose_config(input: &mut Input<'_>) -> BondConfig {
    let scheduler = SchedulerConfig::default();
    let congestion = scheduler.algorithm.default_congestion();
    let quick = RekeyLimits {
        rekey_after: Duration::from_secs(4),
        rekey_after_packets: 200,
        reject_after: Duration::from_secs(6),
    };
    BondConfig {
        congestion: input.pick([congestion, None]),
        scheduler,
        resequencer: ResequencerConfig {
            packets_max: input.pick([32_768, 64]),
            bytes_max: input.pick([16 << 20, 4096]),
            ..ResequencerConfig::default()
        },
        rekey: input.pick([RekeyLimits::default(), quick]),
        ..default_bond()
    }
}

fn inner_mtus(pair: &Pair) -> [Option<u16>; 2] {
    [CUSTOMER, PROVIDER].map(|side| pair.sides[side].inner_mtu_to(&public_key(1 - side)))
}

/// What one honest side sent, and which of it came out at the other.
#[derive(Default)]
struct Direction {
    sent: Vec<Vec<u8>>,
    delivered: BTreeSet<usize>,
}

struct Run {
    pair: Pair,
    config: BondConfig,
    /// By sending side.
    directions: [Direction; 2],
    peer: HostilePeer,
    /// A peer that the provider does not know.
    stranger: HostilePeer,
    content: Content,
    /// Which of its addresses it sends from.
    source: u16,
    /// It answers challenges, and MTU probes with no more padding than this.
    answers: Option<u16>,
    last_initiation: Vec<u8>,
    /// Of the honest bond at both sides, before it began.
    inner_mtus: [Option<u16>; 2],
    told_bytes: usize,
    answered_bytes: usize,
}

impl Run {
    fn new(input: &mut Input<'_>) -> Self {
        let config = choose_config(input);
        let identity = Identity::new(PrivateKey::from_bytes([3; 32]));
        let peer = HostilePeer::new(identity, public_key(PROVIDER), [7; 32]);
        let stranger = Identity::new(PrivateKey::from_bytes([4; 32]));
        let stranger = HostilePeer::new(stranger, public_key(PROVIDER), [8; 32]);
        // Either its own address, or a prefix in which the honest customer's lies as well.
        let (last, length) = input.pick([(HOSTILE_HOST, 32), (0, 24)]);
        let other = PeerConfig {
            public_key: peer.public_key(),
            preshared_key: PresharedKey::default(),
            endpoints: Vec::new(),
            allowed_ips: vec![Prefix { address: [10, 99, 0, last].into(), length }],
            keepalive: Duration::from_secs(25),
        };
        let inner = |host: u8| IpAddr::from([10, 99, 0, host]);
        let addresses = Addresses {
            own: vec![inner(HOSTILE_HOST)],
            foreign: vec![INNER_IPS[CUSTOMER].into(), INNER_IPS[PROVIDER].into(), [9; 4].into()],
            beyond: vec![INNER_IPS[PROVIDER].into()],
        };
        let mut pair = pair(config.clone(), vec![other]);
        pair.start();
        // Long enough to know what the paths carry.
        pair.run_for(Duration::from_secs(3));
        let inner_mtus = inner_mtus(&pair);
        Self {
            pair,
            config,
            directions: Default::default(),
            peer,
            stranger,
            content: Content::new(addresses, 1472),
            source: 0,
            answers: Some(1472),
            last_initiation: Vec::new(),
            inner_mtus,
            told_bytes: 0,
            answered_bytes: 0,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        match op % 16 {
            0..=4 => self.content(input),
            5 | 6 => self.raw(input),
            7 => self.handshake(input),
            8 => self.wait(Duration::from_millis(input.u8().into())),
            9 => self.wait(Duration::from_millis(100 * u64::from(input.u16() % 600))),
            10 | 11 => {
                let count = usize::from(input.u8() % 32);
                self.send(usize::from(op >> 7), count, input.pick([0, 1000]));
            }
            12 => {
                let mut packet = packet_of(PROVIDER, 0, 0, input.pick([32, 1000]));
                packet[16..20].copy_from_slice(&[10, 99, 0, HOSTILE_HOST]);
                for _ in 0..input.u8() % 64 {
                    self.give("packet of the host", |side, now| side.handle_packet(now, &packet));
                }
                self.pair.drain(PROVIDER);
            }
            13 => self.source = u16::from(input.u8() % 8),
            14 => self.answers = input.pick([Some(1472), None, Some(300), Some(0)]),
            _ => self.join(),
        }
        self.settle();
    }

    fn wall_clock(&self) -> Duration {
        EPOCH + Duration::from_nanos(self.pair.now.as_nanos())
    }

    /// Several datagrams of one kind, or of all.
    fn content(&mut self, input: &mut Input<'_>) {
        let one = Kind::ALL.get(usize::from(input.u8()) % (Kind::ALL.len() + 1)).copied();
        let (count, mut prng) = (input.u8() % BURST_MAX, Prng::new(input.u16().into()));
        for _ in 0..=count {
            let (now, wall_clock) = (self.pair.now, self.wall_clock());
            let last = Kind::ALL.len() as u64 - 1;
            let kind = one.unwrap_or_else(|| Kind::ALL[prng.up_to(last) as usize]);
            let (content, peer) = (&mut self.content, &mut self.peer);
            let mut choose = |max| prng.up_to(max);
            let made = content.make(kind, peer, now, wall_clock, &mut choose);
            if let Some(made) = made {
                self.tell(kind.name(), &made);
            }
        }
    }

    /// Any text, sealed, on any path and under any number.
    fn raw(&mut self, input: &mut Input<'_>) {
        let shape = input.u8();
        let (kind, message) = match shape & 1 {
            0 => (Datagram::Control, "sealed frames"),
            _ => (Datagram::Data, "sealed data"),
        };
        let path =
            if shape & 2 == 0 { self.content.main_path(&self.peer) } else { PathId(input.u8()) };
        let length = usize::from(input.u8());
        let text = input.bytes(length).to_vec();
        let sealed = match shape & 12 {
            4 => {
                let number = PacketNumber(u64::from(input.u16()) << (shape >> 4));
                self.peer.seal_as(kind, path, number, &text)
            }
            8 => {
                self.peer.skip(path, u64::from(input.u16()) << (shape >> 4));
                self.peer.seal(kind, path, &text)
            }
            _ => self.peer.seal(kind, path, &text),
        };
        if let Some(bytes) = sealed {
            let ecn = Ecn::from_bits(shape >> 6);
            self.tell(message, &Made { bytes, ecn, source: 0 });
        }
    }

    fn handshake(&mut self, input: &mut Input<'_>) {
        let wall_clock = self.wall_clock();
        let bytes = match input.u8() % 8 {
            0 => self.last_initiation.clone(),
            6 => self.stranger.initiate(wall_clock),
            7 => return self.garbage(input),
            1 => {
                self.peer.forget_bond();
                self.peer.initiate(wall_clock)
            }
            2 => self.peer.initiate_at(Timestamp([input.u8(); 12])),
            3 => {
                self.peer.forget_cookie();
                self.peer.initiate(wall_clock)
            }
            4 => {
                self.peer.set_inner_mtu(input.u16());
                self.peer.initiate(wall_clock)
            }
            _ => self.peer.initiate(wall_clock),
        };
        self.last_initiation.clone_from(&bytes);
        self.tell("initiation", &Made { bytes, ecn: Ecn::NotEct, source: 0 });
    }

    /// Bytes that nobody sealed: any, or too many.
    fn garbage(&mut self, input: &mut Input<'_>) {
        let length = usize::from(input.u8());
        let mut bytes = input.bytes(length).to_vec();
        if length == usize::from(u8::MAX) {
            bytes.resize(SEALED_BYTES_MAX + 1, 0);
        }
        let message = bytes.first().map_or("nothing", |first| reached::message(*first));
        self.tell(message, &Made { bytes, ecn: Ecn::NotEct, source: 0 });
    }

    /// The whole way to a path that is up.
    fn join(&mut self) {
        self.answers = Some(1472);
        let wall_clock = self.wall_clock();
        self.peer.forget_bond();
        self.content.begin_bond();
        let bytes = self.peer.initiate(wall_clock);
        self.tell("initiation", &Made { bytes, ecn: Ecn::NotEct, source: 0 });
        self.settle();
        self.say(self.content.main_path(&self.peer), &[Frame::PathChallenge(1)]);
        self.settle();
    }

    fn say(&mut self, path: PathId, frames: &[Frame]) {
        let mut text = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut text));
        let prefix = ControlPrefix::new(self.pair.now, BondSeq(0));
        if let Some(bytes) = self.peer.control(path, prefix, &text) {
            self.tell("polite control", &Made { bytes, ecn: Ecn::NotEct, source: 0 });
        }
    }

    fn tell(&mut self, message: &'static str, made: &Made) {
        let remote = SocketAddr::from(([10, 200, 0, 1], 2000 + self.source + made.source));
        let route = Route { socket: SocketId(0), remote, local: None };
        self.told_bytes += made.bytes.len();
        let (ecn, stride, mut bytes) = (made.ecn, made.bytes.len(), made.bytes.clone());
        self.give(message, |side, now| {
            side.handle_datagrams(now, route, ecn, stride, &mut bytes);
        });
        self.pair.drain(PROVIDER);
    }

    /// Gives the provider input that has to do with the hostile peer.
    fn give(&mut self, message: &'static str, act: impl FnOnce(&mut Endpoint, Instant)) {
        let (side, now) = (&mut self.pair.sides[PROVIDER], self.pair.now);
        reached::around(side, now, HOSTILE, message, |side| act(side, now));
    }

    /// The peer reads what was sent to it, and answers.
    fn settle(&mut self) {
        for (_, datagram) in core::mem::take(&mut self.pair.astray) {
            self.answered_bytes += datagram.len();
            let heard = self.peer.hear(&datagram);
            self.content.note(&heard);
            let Some(padding_max) = self.answers else { continue };
            match heard {
                Heard::Control(path, frames) => {
                    let replies = replies_to(&frames, padding_max);
                    if !replies.is_empty() {
                        self.say(path, &replies);
                    }
                }
                Heard::Cookie(bytes) => {
                    self.tell("with cookie", &Made { bytes, ecn: Ecn::NotEct, source: 0 });
                }
                Heard::Response(bytes) => {
                    self.tell("response", &Made { bytes, ecn: Ecn::NotEct, source: 0 });
                }
                _ => {}
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        if (self.pair.now + time).since(Instant::ZERO) <= TIME_MAX {
            self.pair.run_for(time);
        }
    }

    /// Honest packets.
    fn send(&mut self, from: usize, count: usize, bytes: usize) {
        let direction = &mut self.directions[from];
        let first = direction.sent.len();
        let last = (first + count).min(PACKETS_MAX);
        let packets: Vec<Vec<u8>> =
            (first..last).map(|at| packet_of(from, at as u16 % FLOWS, at as u32, bytes)).collect();
        direction.sent.extend_from_slice(&packets);
        self.pair.send(from, &packets);
    }

    fn check(&mut self) {
        for side in [CUSTOMER, PROVIDER] {
            for packet in core::mem::take(&mut self.pair.delivered[side]) {
                self.arrived(side, &packet);
            }
        }
        assert_eq!(
            inner_mtus(&self.pair),
            self.inner_mtus,
            "another peer's path is nobody else's MTU"
        );
        let status = self.pair.sides[PROVIDER].status(self.pair.now);
        let limits = &self.config.resequencer;
        for peer in &status.peers {
            let (packets, bytes) =
                (peer.resequencer.waiting_now_packets, peer.resequencer.waiting_now_bytes);
            assert!(packets < limits.packets_max.into(), "{packets} packets wait");
            assert!(bytes <= limits.bytes_max || packets == 1, "{bytes} bytes wait");
            assert!(peer.paths.len() <= PATHS_MAX, "{} paths", peer.paths.len());
        }
        let hostile = &status.peers[HOSTILE];
        let seconds = self.pair.now.since(Instant::ZERO).as_secs() as usize + 1;
        let data: usize = hostile.inner_sent_bytes as usize * 8;
        let asked = self.told_bytes * ANSWERED_TENTHS_MAX / 10;
        let limit = asked + data + UNASKED_BYTES_PER_SECOND * seconds;
        assert!(self.answered_bytes <= limit, "{} bytes answered", self.answered_bytes);
        reached::statistics("hostile_peer", &format!("{:?}", hostile.resequencer));
    }

    fn arrived(&mut self, side: usize, packet: &[u8]) {
        let source = packet.get(12..16).unwrap_or_default();
        if side == PROVIDER && source != INNER_IPS[CUSTOMER] {
            // The hostile peer's own, and what the endpoint itself tells the host.
            assert!(source.starts_with(&INNER_IPS[0][..3]), "{source:?} is not of its prefix");
            return;
        }
        assert_eq!(source, INNER_IPS[1 - side], "who sends to side {side}");
        let direction = &mut self.directions[1 - side];
        let at = number(packet) as usize;
        let sent = direction.sent.get(at).map(Vec::as_slice);
        assert_eq!(sent, Some(packet), "only the honest peer sends from its address");
        assert!(direction.delivered.insert(at), "packet {at} came out twice");
    }

    /// The honest bond has lost nothing but what its own small buffers gave up, and works on.
    fn finish(&mut self) {
        for _ in 0..WATCHED_SECONDS {
            for side in [CUSTOMER, PROVIDER] {
                let at = self.directions[side].sent.len();
                let packet = packet_of(side, at as u16 % FLOWS, at as u32, 0);
                self.directions[side].sent.push(packet.clone());
                self.pair.send(side, &[packet]);
            }
            self.pair.run_for(Duration::from_secs(1));
            self.settle();
            self.check();
        }
        for side in [CUSTOMER, PROVIDER] {
            let status = self.pair.sides[1 - side].status(self.pair.now);
            let late = status.peers[0].resequencer.late_dropped as usize;
            let Direction { sent, delivered } = &self.directions[side];
            let missing = sent.len() - delivered.len();
            assert!(missing <= late, "{missing} honest packets of side {side} do not come out");
            assert!(delivered.contains(&(sent.len() - 1)), "the last one of side {side} comes out");
        }
    }
}
