//! A provider that listens on several ports, and links that let nothing through to some of them.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::VecDeque;
use std::net::SocketAddr;

use plait_pair::{
    CUSTOMER, Gateway, PROVIDER, WALL_CLOCK_AT_ZERO, bond_config, datagrams, link_config, packet,
    public_key,
};
use plait_proto::config::{Order, SocketId};
use plait_proto::endpoint::Endpoint;
use plait_proto::path::Route;
use plait_proto::scheduler::Algorithm;
use plait_proto::session::PresharedKey;
use plait_proto::stats::{PathState, PathStatus};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::ecn::Ecn;
use proptest::prelude::*;

/// The provider's ports; its sockets have their numbers in this order.
const PORTS: [u16; 3] = [7788, 443, 4500];
const LINKS: usize = 2;
/// The way over any link.
const DELAY: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_millis(5);

fn provider(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn customer(link: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, link as u8, 2], 5000))
}

struct World {
    ends: [Endpoint; 2],
    now: Instant,
    /// Arrival, whose, route, ECN field, bytes.
    flying: VecDeque<(Instant, usize, Route, Ecn, Vec<u8>)>,
    /// Link and port.
    blocked: Vec<(usize, u16)>,
    delivered: usize,
}

impl World {
    fn new(endpoints: Vec<SocketAddr>) -> Self {
        Self::with_seed(endpoints, 1)
    }

    fn with_seed(endpoints: Vec<SocketAddr>, seed: u8) -> Self {
        let gateway = |side: usize, links, seeks| Gateway {
            side,
            wall_clock_at_zero: WALL_CLOCK_AT_ZERO,
            links,
            bond: bond_config(Algorithm::RoundRobin, Order::Flow),
            seeks,
            other: public_key(1 - side),
            psk: PresharedKey::default(),
            others: Vec::new(),
            seed: [seed + side as u8; 32],
        };
        let links = (0..LINKS).map(|link| link_config(link as u16)).collect();
        let ends = [gateway(CUSTOMER, links, endpoints), gateway(PROVIDER, Vec::new(), Vec::new())]
            .map(|gateway| gateway.build(Endpoint::new));
        let (now, flying) = (Instant::ZERO, VecDeque::new());
        Self { ends, now, flying, blocked: Vec::new(), delivered: 0 }
    }

    fn start(mut self, blocked: &[(usize, u16)]) -> Self {
        self.blocked = blocked.to_vec();
        self.ends[CUSTOMER].start(self.now);
        self
    }

    fn drain(&mut self, side: usize) {
        let mut sent = Vec::new();
        while let Some(transmit) = self.ends[side].poll_transmit() {
            for bytes in datagrams(&transmit) {
                sent.push((transmit.socket, transmit.remote, transmit.ecn, bytes.to_vec()));
            }
        }
        for (socket, remote, ecn, bytes) in sent {
            let (link, port, seen) = if side == CUSTOMER {
                let at = PORTS.iter().position(|port| *port == remote.port()).unwrap();
                let (socket, link) = (SocketId(at as u16), usize::from(socket.0));
                (link, remote.port(), Route { socket, remote: customer(link), local: None })
            } else {
                let link = (0..LINKS).find(|link| customer(*link) == remote).unwrap();
                let (port, socket) = (PORTS[usize::from(socket.0)], SocketId(link as u16));
                (link, port, Route { socket, remote: provider(port), local: None })
            };
            if !self.blocked.contains(&(link, port)) {
                self.flying.push_back((self.now + DELAY, 1 - side, seen, ecn, bytes));
            }
        }
        while self.ends[side].poll_deliver().is_some() {
            self.delivered += 1;
        }
        while self.ends[side].poll_event().is_some() {}
    }

    /// Lets time pass, with a packet each way every 20 ms if there is traffic.
    fn run(&mut self, time: Duration, traffic: bool) {
        let until = self.now + time;
        let mut number = 0;
        while self.now < until {
            self.now += STEP;
            while self.flying.front().is_some_and(|(at, ..)| *at <= self.now) {
                let (_, side, route, ecn, mut bytes) = self.flying.pop_front().unwrap();
                let length = bytes.len();
                self.ends[side].handle_datagrams(self.now, route, ecn, length, &mut bytes);
                self.drain(side);
            }
            for side in [CUSTOMER, PROVIDER] {
                number += 1;
                if traffic && number % 8 < 2 {
                    self.ends[side].handle_packet(self.now, &packet(side, 1, number));
                }
                if self.ends[side].poll_timeout(self.now).is_some_and(|due| due <= self.now) {
                    self.ends[side].handle_timeout(self.now);
                    let again = self.ends[side].poll_timeout(self.now);
                    assert!(again.is_none_or(|due| due > self.now), "a timer that stays due");
                }
                self.drain(side);
            }
        }
    }

    fn path(&mut self, link: usize) -> PathStatus {
        let status = self.ends[CUSTOMER].status(self.now);
        let name = format!("link{link}");
        status.peers[0].paths.iter().find(|path| path.name == name).unwrap().clone()
    }

    fn leads_to(&mut self, link: usize) -> (PathState, u16, Vec<u16>) {
        let path = self.path(link);
        let remote: SocketAddr = path.remote.parse().unwrap();
        (path.state, remote.port(), path.tried_ports)
    }
}

fn all_ports() -> Vec<SocketAddr> {
    PORTS.map(provider).to_vec()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Spec P-12, P-9.
#[test]
fn each_link_finds_its_port_and_data_flows_over_it() {
    let mut world = World::new(all_ports()).start(&[(0, 7788), (0, 443)]);
    world.run(seconds(6), true);
    assert_eq!(world.leads_to(0), (PathState::Up, 4500, vec![7788, 443]));
    assert_eq!(world.leads_to(1), (PathState::Up, 7788, vec![]));
    assert!(world.path(0).reason.contains("; ports 7788, 443 did not answer"));
    let before = world.path(0).received_packets;
    world.run(seconds(2), true);
    assert!(world.path(0).received_packets > before, "the cheaper link carries");
    assert_eq!(world.ends[CUSTOMER].status(world.now).peers[0].handshakes, 1);
}

#[test]
fn a_port_that_is_blocked_in_mid_life_is_left_for_another() {
    let mut world = World::new(all_ports()).start(&[(0, 7788)]);
    world.run(seconds(4), true);
    assert_eq!(world.leads_to(0), (PathState::Up, 443, vec![7788]));
    world.blocked = vec![(0, 443), (0, 4500)];
    world.run(seconds(8), true);
    assert_eq!(world.leads_to(0), (PathState::Up, 7788, vec![443, 4500]));
    assert_eq!(world.leads_to(1), (PathState::Up, 7788, vec![]));
}

#[test]
fn a_link_without_any_open_port_is_asked_ever_more_rarely_and_comes_back() {
    let closed: Vec<_> = PORTS.map(|port| (0, port)).to_vec();
    let mut world = World::new(all_ports()).start(&closed);
    world.run(seconds(60), false);
    let early = world.path(0).control_packets;
    assert_eq!(world.leads_to(0).0, PathState::Validating);
    assert!(early < 100, "{early} challenges in a minute");
    world.run(seconds(600), false);
    let late = world.path(0).control_packets - early;
    assert!(late < 200, "{late} challenges in ten minutes");
    world.blocked = vec![(0, 7788), (0, 4500)];
    world.run(seconds(100), false);
    assert_eq!(world.leads_to(0), (PathState::Up, 443, vec![7788, 4500]));
}

#[test]
fn one_address_with_one_port_is_asked_on() {
    let mut world = World::new(vec![provider(7788)]).start(&[(0, 7788)]);
    world.run(seconds(20), true);
    assert_eq!(world.leads_to(0), (PathState::Validating, 7788, vec![]));
    world.blocked.clear();
    world.run(seconds(6), true);
    assert_eq!(world.leads_to(0), (PathState::Up, 7788, vec![]));
}

/// The handshake begins where the peer last answered over each link.
#[test]
fn a_provider_that_starts_again_is_found_at_the_known_port() {
    let mut world = World::new(all_ports()).start(&[(0, 7788), (1, 7788), (1, 443)]);
    world.run(seconds(8), true);
    assert_eq!((world.leads_to(0).1, world.leads_to(1).1), (443, 4500));
    let again = World::with_seed(all_ports(), 7);
    world.ends[PROVIDER] = again.ends.into_iter().nth(PROVIDER).unwrap();
    world.run(seconds(6), true);
    assert_eq!(world.leads_to(0).0, PathState::Up);
    assert_eq!(world.leads_to(1).0, PathState::Up);
    assert_eq!((world.leads_to(0).1, world.leads_to(1).1), (443, 4500));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is blocked when, each link that has an open port is up within a round and a half of
    /// the longest tries.
    #[test]
    fn an_open_port_is_found(
        courses in prop::collection::vec((any::<[bool; 6]>(), 1_u64..20), 1..5),
        open in prop::collection::vec(0..PORTS.len(), LINKS),
    ) {
        let mut world = World::new(all_ports()).start(&[]);
        for (bits, time) in courses {
            let all = (0..LINKS).flat_map(|link| PORTS.map(|port| (link, port)));
            let blocked = all.zip(bits).filter(|(_, is_blocked)| *is_blocked);
            world.blocked = blocked.map(|(place, _)| place).collect();
            world.run(seconds(time), true);
        }
        let is_open = |(link, port): &(usize, u16)| PORTS[open[*link]] == *port;
        let all = (0..LINKS).flat_map(|link| PORTS.map(|port| (link, port)));
        world.blocked = all.filter(|place| !is_open(place)).collect();
        world.run(seconds(120), true);
        for (link, open) in open.iter().enumerate() {
            let (state, port, _) = world.leads_to(link);
            prop_assert_eq!((state, port), (PathState::Up, PORTS[*open]));
        }
    }
}
