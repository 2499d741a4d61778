//! A third peer at the provider, which has a key and follows no rule. It has its own link without
//! faults; the checkers watch only the other two.

use std::net::{IpAddr, SocketAddr};

use plait_pair::{CUSTOMER, INNER_IPS, KEEPALIVE, PROVIDER, WALL_CLOCK_AT_ZERO};
use plait_proto::config::{PeerConfig, Prefix, SocketId};
use plait_proto::path::Route;
use plait_proto::session::{Identity, PresharedKey, PrivateKey, PublicKey};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::control::Frame;

use super::draw::Draw;
use crate::hostile::content::{Addresses, Content, Kind, Made};
use crate::hostile::{Heard, HostilePeer, replies_to};
use crate::world::CipherChoice;

const ADDRESS: [u8; 4] = [172, 16, 0, 1];
const PORT: u16 = 2000;
/// Its inner address, and its prefix, which also contains the customer's address.
const INNER_IP: [u8; 4] = [10, 99, 0, 3];
const NESTED: ([u8; 4], u8) = ([10, 99, 0, 0], 25);
/// Delay until its answers reach the provider.
const DELAY: Duration = Duration::from_millis(5);
/// After so many bursts without a path it tries to get one.
const BURSTS_WITHOUT_PATH: u32 = 8;
/// One burst in so many begins another bond.
const NEW_BOND_ONE_IN: u64 = 64;

fn private_key() -> PrivateKey {
    PrivateKey::from_bytes([3; 32])
}

/// The provider's configuration of it.
pub(super) fn peer_config() -> PeerConfig {
    let prefix = |(address, length): ([u8; 4], u8)| Prefix { address: address.into(), length };
    PeerConfig {
        public_key: private_key().public_key(),
        preshared_key: PresharedKey::default(),
        endpoints: Vec::new(),
        allowed_ips: vec![prefix((INNER_IP, 32)), prefix(NESTED)],
        keepalive: KEEPALIVE,
    }
}

/// Whether an address is one of the intruder's.
pub(super) fn is_address(remote: SocketAddr) -> bool {
    remote.ip() == IpAddr::from(ADDRESS)
}

/// Whether an inner packet comes from the intruder's host.
pub(super) fn is_source(packet: &[u8]) -> bool {
    packet.get(12..16) == Some(&INNER_IP[..])
}

/// The intruder and its state.
#[derive(Debug)]
pub(super) struct Intruder {
    peer: HostilePeer,
    content: Content,
    draw: Draw,
    /// The kind that it sends for a while; `None`: all kinds.
    kind: Option<Kind>,
    bursts_left: u64,
    /// Bursts since it last had a path.
    without_path: u32,
    burst_at: Instant,
    /// Answers, and when they arrive.
    answers: Vec<(Instant, Made)>,
}

impl Intruder {
    pub(super) fn new(victim: PublicKey, cipher: CipherChoice, mut draw: Draw) -> Self {
        let identity = match cipher {
            CipherChoice::Null => Identity::without_cipher(private_key()),
            CipherChoice::Real => Identity::new(private_key()),
        };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&draw.next().to_be_bytes());
        let addresses = Addresses {
            own: vec![INNER_IP.into()],
            foreign: vec![INNER_IPS[CUSTOMER].into(), [10, 7, 7, 7].into()],
            beyond: vec![INNER_IPS[PROVIDER].into()],
        };
        Self {
            peer: HostilePeer::new(identity, victim, seed),
            content: Content::new(addresses, 1472),
            draw,
            kind: None,
            bursts_left: 0,
            without_path: BURSTS_WITHOUT_PATH,
            burst_at: Instant::ZERO,
            answers: Vec::new(),
        }
    }

    pub(super) fn next_at(&self) -> Instant {
        let answers = self.answers.iter().map(|(at, _)| *at);
        answers.chain([self.burst_at]).min().expect("there is always a next burst")
    }

    /// Datagrams that arrive at the provider now, each with its route.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<(Route, Made)> {
        let (due, later) = core::mem::take(&mut self.answers)
            .into_iter()
            .partition(|(at, _): &(Instant, Made)| *at <= now);
        self.answers = later;
        let due: Vec<(Instant, Made)> = due;
        let mut arriving: Vec<Made> = due.into_iter().map(|(_, made)| made).collect();
        if self.burst_at <= now {
            self.burst_at = now + self.draw.millis_spread(1, 300);
            arriving.extend(self.burst(now));
        }
        let route = |source| Route {
            socket: SocketId(0),
            remote: (ADDRESS, PORT + source).into(),
            local: None,
        };
        arriving.into_iter().map(|made| (route(made.source), made)).collect()
    }

    fn wall_clock(now: Instant) -> Duration {
        WALL_CLOCK_AT_ZERO + now.since(Instant::ZERO)
    }

    fn burst(&mut self, now: Instant) -> Vec<Made> {
        self.without_path += 1;
        if self.without_path > BURSTS_WITHOUT_PATH || self.draw.one_in(NEW_BOND_ONE_IN) {
            self.without_path = 0;
            self.peer.forget_bond();
            self.content.begin_bond();
            return vec![Made::plain(self.peer.initiate(Self::wall_clock(now)))];
        }
        if self.bursts_left == 0 {
            self.bursts_left = self.draw.between(1, 20);
            self.kind = (!self.draw.one_in(8)).then(|| {
                let at = self.draw.between(0, Kind::ALL.len() as u64 - 1);
                Kind::ALL[at as usize]
            });
        }
        self.bursts_left -= 1;
        let count = self.draw.spread(1, 100);
        let Self { peer, content, draw, kind, .. } = self;
        let mut choose = |max: u64| match max {
            u64::MAX => draw.next(),
            max => draw.next() % (max + 1),
        };
        let made = (0..count).filter_map(|_| match kind {
            Some(kind) => content.make(*kind, peer, now, Self::wall_clock(now), &mut choose),
            None => content.make_any(peer, now, Self::wall_clock(now), &mut choose),
        });
        made.collect()
    }

    /// The provider sent it something.
    pub(super) fn hear(&mut self, now: Instant, datagram: &[u8]) {
        let heard = self.peer.hear(datagram);
        self.content.note(&heard);
        let answer = match heard {
            Heard::Session => self.say(now, &[Frame::PathChallenge(1)]),
            Heard::Cookie(message) | Heard::Response(message) => Some(message),
            Heard::Control(_, frames) => {
                self.without_path = 0;
                // Sometimes it does not answer.
                let is_silent = self.draw.one_in(8);
                let replies = if is_silent { Vec::new() } else { replies_to(&frames, u16::MAX) };
                if replies.is_empty() { None } else { self.say(now, &replies) }
            }
            Heard::Data(..) | Heard::Nothing => None,
        };
        self.answers.extend(answer.map(|bytes| (now + DELAY, Made::plain(bytes))));
    }

    fn say(&mut self, now: Instant, frames: &[Frame]) -> Option<Vec<u8>> {
        self.content.say(&mut self.peer, now, frames)
    }
}
