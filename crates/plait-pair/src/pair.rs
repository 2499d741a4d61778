//! Both sides, the links between them, and time.

use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;

use plait_proto::config::{BondConfig, PeerConfig, SocketId};
use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::path::Route;
use plait_proto::session::PublicKey;
use plait_proto::stats::PathState;
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::ecn::Ecn;

use crate::flying::Flying;
use crate::gateway::{
    CUSTOMER, PROVIDER, datagrams, link_config, provider_address, public_key, route,
};
use crate::link::{Datagram, Fault, Link};
use crate::setup::{Input, Setup};

/// Steps of one call of [`Pair::run_for`]: more mean that time stands still.
const STEPS_MAX: usize = 5_000_000;

/// Two endpoints and what is between them.
#[derive(Debug)]
pub struct Pair {
    /// Virtual time.
    pub now: Instant,
    /// The endpoints: customer and provider.
    pub sides: [Endpoint; 2],
    /// Whether each side is down.
    pub dead: [bool; 2],
    /// The customer's links.
    pub links: Vec<Link>,
    /// Where the provider is.
    pub provider_at: SocketAddr,
    /// Faults for the next datagrams, one each.
    pub faults: VecDeque<Fault>,
    /// When set, datagrams are held back here instead of being sent.
    pub held: Option<Vec<Datagram>>,
    /// Every datagram that a side sent to the other, whatever became of it.
    pub captured: Vec<Datagram>,
    /// What a side sent to addresses where the other side is not.
    pub astray: Vec<(SocketAddr, Vec<u8>)>,
    /// Inner packets that came out of each side.
    pub delivered: [Vec<Vec<u8>>; 2],
    /// Events that each side reported.
    pub events: [Vec<Event>; 2],
    setup: Setup,
    /// How many times a side started again.
    restarts: u8,
    flying: Flying<Datagram>,
    dice: u64,
}

impl Pair {
    /// Both sides started at once.
    pub fn new(setup: Setup) -> Self {
        Self::new_with_lag(setup, Duration::ZERO)
    }

    /// The provider starts this long after the customer.
    pub fn new_with_lag(setup: Setup, lag: Duration) -> Self {
        let mut pair = Self::idle(setup);
        pair.start_one(CUSTOMER);
        pair.run_for(lag);
        pair.start_one(PROVIDER);
        pair
    }

    /// A pair whose paths are all up.
    ///
    /// # Panics
    /// When they are not up within half a second.
    pub fn connected(setup: Setup) -> Self {
        let links = setup.links;
        let mut pair = Self::new(setup);
        pair.run_for(Duration::from_millis(500));
        assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [links, links]);
        pair
    }

    /// Two sides that have not started.
    pub fn idle(setup: Setup) -> Self {
        Self {
            now: Instant::ZERO,
            sides: [CUSTOMER, PROVIDER].map(|side| setup.gateway(side, 0, 0).build(Endpoint::new)),
            dead: [false; 2],
            links: (0..setup.links).map(Link::new).collect(),
            provider_at: provider_address(setup.ipv6),
            faults: VecDeque::new(),
            held: None,
            captured: Vec::new(),
            astray: Vec::new(),
            delivered: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
            setup,
            restarts: 0,
            flying: Flying::default(),
            dice: 1,
        }
    }

    /// Each side contacts the peers whose addresses it knows.
    pub fn start(&mut self) {
        [CUSTOMER, PROVIDER].into_iter().for_each(|side| self.start_one(side));
    }

    fn start_one(&mut self, side: usize) {
        self.sides[side].start(self.now);
        self.drain(side);
    }

    /// The side starts again with nothing but its configuration.
    pub fn restart(&mut self, side: usize) {
        self.restart_at(side, self.seconds());
    }

    /// The side starts again; its wall clock shows so many seconds after the start.
    pub fn restart_at(&mut self, side: usize, seconds: u64) {
        self.begin_again(side, seconds, &[]);
    }

    /// The side starts again, given the routes over which it last reached its peer.
    pub fn restart_and_remember(&mut self, side: usize) {
        let routes = self.sides[side].known_routes();
        self.begin_again(side, self.seconds(), &routes);
    }

    fn begin_again(&mut self, side: usize, seconds: u64, routes: &[(PublicKey, Route)]) {
        self.dead[side] = false;
        self.sides[side] = self.another(side, seconds);
        for (peer, route) in routes {
            self.sides[side].remember(peer, *route);
        }
        self.start_one(side);
    }

    /// Another gateway with a side's key and configuration, which has seen nothing of this one.
    pub fn clone_of(&mut self, side: usize) -> Endpoint {
        self.another(side, self.seconds())
    }

    fn another(&mut self, side: usize, seconds: u64) -> Endpoint {
        self.restarts = self.restarts.wrapping_add(1);
        self.setup.gateway(side, self.restarts, seconds).build(Endpoint::new)
    }

    /// Virtual seconds that have passed.
    fn seconds(&self) -> u64 {
        self.now.since(Instant::ZERO).as_secs()
    }

    /// The largest inner packet that a side's bond carries, in bytes; without a bond, its host's
    /// MTU.
    pub fn inner_mtu(&self, side: usize) -> u16 {
        let found = self.sides[side].inner_mtu_to(&public_key(1 - side));
        found.unwrap_or(self.setup.bond.inner_mtu)
    }

    /// Paths that carry data, as a side sees it.
    pub fn paths_up(&mut self, side: usize) -> usize {
        let status = self.sides[side].status(self.now);
        let paths = status.peers.iter().flat_map(|peer| &peer.paths);
        paths.filter(|path| path.state == PathState::Up).count()
    }

    /// Gives a side another configuration: what `change` makes of the one it was built from.
    pub fn reconfigure(
        &mut self,
        side: usize,
        change: impl FnOnce(&mut Vec<PeerConfig>, &mut BondConfig),
    ) {
        let mut peers = self.setup.gateway(side, 0, 0).peers();
        let mut bond = self.setup.bond.clone();
        change(&mut peers, &mut bond);
        self.sides[side].reconfigure(self.now, peers, bond);
        self.drain(side);
    }

    /// Makes one of a side's links stand by, or ends that.
    pub fn set_standby(&mut self, side: usize, link: u16, reason: Option<&str>) {
        let (standby, reason) = (reason.is_some(), reason.map(str::to_owned));
        self.sides[side].set_standby(self.now, SocketId(link), standby, reason);
        self.drain(side);
    }

    /// Gives the customer a link that it does not have at present.
    pub fn plug(&mut self, link: usize) {
        while self.links.len() <= link {
            self.links.push(Link::new(self.links.len()));
        }
        self.links[link].plugged = true;
        self.sides[CUSTOMER].add_link(self.now, link_config(link as u16));
        self.drain(CUSTOMER);
    }

    /// Takes a link from the customer.
    pub fn unplug(&mut self, link: usize) {
        self.sides[CUSTOMER].remove_link(self.now, SocketId(link as u16));
        self.drain(CUSTOMER);
        self.links[link].plugged = false;
    }

    /// Where the customer is on a link, as the provider sees it.
    pub fn customer_address(&self, link: usize) -> SocketAddr {
        let last = link as u8 + 1;
        let port = self.links[link].port;
        if self.setup.ipv6 {
            (IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last) + 1]), port).into()
        } else {
            ([10, last, 0, 1], port).into()
        }
    }

    /// Hands inner packets to a side as one batch.
    pub fn send(&mut self, from: usize, packets: &[Vec<u8>]) {
        let (now, watch) = (self.now, self.setup.watch);
        for packet in packets {
            watch(&mut self.sides[from], now, Input::Packet, &mut |side| {
                side.handle_packet(now, packet);
            });
        }
        self.drain(from);
    }

    /// Gives a side a datagram as if it came over a link.
    pub fn inject(&mut self, to: usize, link: usize, bytes: &[u8]) {
        self.arrive(to, self.route_at(to, link), Ecn::NotEct, bytes);
    }

    /// Gives a side a datagram as if it came from some address on the first link.
    pub fn inject_from(&mut self, to: usize, remote: SocketAddr, bytes: &[u8]) {
        self.inject_over(to, Route { socket: SocketId(0), remote, local: None }, bytes);
    }

    /// Gives a side a datagram as if it came by that route.
    pub fn inject_over(&mut self, to: usize, route: Route, bytes: &[u8]) {
        self.arrive(to, route, Ecn::NotEct, bytes);
    }

    fn arrive(&mut self, to: usize, route: Route, ecn: Ecn, bytes: &[u8]) {
        if self.dead[to] {
            return;
        }
        let now = self.now;
        (self.setup.watch)(&mut self.sides[to], now, Input::Datagram(bytes), &mut |side| {
            side.handle_datagrams(now, route, ecn, bytes.len(), &mut bytes.to_vec());
        });
        self.drain(to);
    }

    fn route_at(&self, to: usize, link: usize) -> Route {
        let from = if to == CUSTOMER { self.provider_at } else { self.customer_address(link) };
        route(to, link, from)
    }

    /// The link that leads from a side to an address; `None` when the other side is not there.
    fn link_of(&self, from: usize, socket: SocketId, remote: SocketAddr) -> Option<usize> {
        if from == CUSTOMER {
            return (remote == self.provider_at).then_some(usize::from(socket.0));
        }
        (0..self.links.len()).find(|link| self.customer_address(*link) == remote)
    }

    /// Takes all output of a side after input; callers that give input to a side directly call it
    /// afterwards.
    pub fn drain(&mut self, side: usize) {
        let mut sent = Vec::new();
        while let Some(transmit) = self.sides[side].poll_transmit() {
            for bytes in datagrams(&transmit) {
                sent.push((transmit.socket, transmit.remote, transmit.ecn, bytes.to_vec()));
            }
        }
        for (socket, remote, ecn, bytes) in sent {
            let Some(link) = self.link_of(side, socket, remote) else {
                self.astray.push((remote, bytes));
                continue;
            };
            let datagram = Datagram { to: 1 - side, link, ecn, bytes };
            self.captured.push(datagram.clone());
            match &mut self.held {
                Some(held) => held.push(datagram),
                None => self.fly(datagram),
            }
        }
        while let Some(packet) = self.sides[side].poll_deliver() {
            self.delivered[side].push(packet.to_vec());
        }
        while let Some(event) = self.sides[side].poll_event() {
            self.events[side].push(event);
        }
    }

    /// Sends what was held back, and holds nothing back any more.
    pub fn release(&mut self) {
        for datagram in self.held.take().unwrap_or_default() {
            self.fly(datagram);
        }
    }

    fn fly(&mut self, mut datagram: Datagram) {
        let mut later = Duration::ZERO;
        match self.faults.pop_front() {
            Some(Fault::Drop) => return,
            Some(Fault::Delay(by)) => later = by,
            Some(Fault::Duplicate(by)) => self.arrive_in(by, datagram.clone()),
            Some(Fault::Corrupt(at, pattern)) => {
                let at = at % datagram.bytes.len();
                datagram.bytes[at] ^= pattern;
            }
            None => {}
        }
        self.arrive_in(later, datagram);
    }

    fn arrive_in(&mut self, later: Duration, mut datagram: Datagram) {
        // This generator is enough: its numbers spread well and are reproducible.
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let link = &self.links[datagram.link];
        let is_lost = (self.dice >> 33) % 100 < link.loss_percent;
        let ip_bytes = datagram.bytes.len() + if self.setup.ipv6 { 48 } else { 28 };
        if link.carries(datagram.to, ip_bytes) && !is_lost {
            datagram.ecn = link.rewrites.unwrap_or(datagram.ecn);
            self.flying.send(self.now + link.delay + later, datagram);
        }
    }

    /// Lets virtual time pass.
    ///
    /// # Panics
    /// When a timer never stops being due.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..STEPS_MAX {
            let timers = [CUSTOMER, PROVIDER]
                .map(|side| self.sides[side].poll_timeout(self.now).filter(|_| !self.dead[side]));
            let next = timers.into_iter().flatten().chain(self.flying.next_at()).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            if let Some(Datagram { to, link, ecn, bytes }) = self.flying.poll(self.now)
                && (to == PROVIDER || self.links[link].plugged)
            {
                self.arrive(to, self.route_at(to, link), ecn, &bytes);
            }
            for side in [CUSTOMER, PROVIDER] {
                if timers[side].is_some_and(|at| at <= self.now) {
                    self.sides[side].handle_timeout(self.now);
                    self.drain(side);
                }
            }
        }
        panic!("time does not pass: a timer is due for ever at {:?}", self.now);
    }
}
