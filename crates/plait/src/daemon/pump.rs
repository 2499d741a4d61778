//! Moves packets between the host's ports and the protocol, in batches.
//!
//! Outbound: TUN read → [`Endpoint::handle_packet`] → [`Endpoint::poll_transmit`] → socket.
//! Inbound: socket read → [`Endpoint::handle_datagrams`] → [`Endpoint::poll_deliver`] → TUN write.
//! The driver tells it when to read and what time it is.

use std::io;

use plait_net::batch::PacketBatch;
use plait_net::tun::TunPort;
use plait_net::udp::{BUFFERS_PER_RECEIVE, Transmit, UdpPort};
use plait_proto::config::SocketId;
use plait_proto::endpoint::{Endpoint, Event};
use plait_proto::path::Route;
use plait_proto::session::PublicKey;
use plait_proto::time::Instant;
use plait_proto::wire::ecn::Ecn;

use super::hooks::Hooks;
use super::key_log::KeyLog;
use super::log_budget::{LogBudget, Verdict};
use super::ports::SendErrors;
use super::reach::short;
use super::service::Carrying;
use super::sockets::Sockets;
use super::teller::Teller;
use super::traffic::Traffic;

/// Packets from the host handled before their datagrams are sent: at least a super-packet.
const PACKETS_PER_SEND: usize = 64;
/// Reads from the host before the sockets get their turn: half a megabyte of a TCP flow, which
/// would otherwise wait for its own acknowledgements.
const READS_PER_TURN: usize = 8;
/// The error of reading a TUN device that is down.
const EIO: i32 = 5;

/// The ports and the protocol between them.
#[derive(Debug)]
pub(super) struct Pump<T, U> {
    pub(super) endpoint: Endpoint,
    pub(super) tun: T,
    pub(super) sockets: Sockets<U>,
    pub(super) traffic: Traffic,
    pub(super) errors: SendErrors,
    /// Where the keys of sessions are written, when the owner wants that.
    pub(super) key_log: Option<KeyLog>,
    /// Contact to a peer was lost since this flag was last read.
    pub(super) lost_contact: bool,
    /// Which bonds can carry data.
    pub(super) carrying: Carrying,
    pub(super) hooks: Hooks,
    /// A bond or a path came or went since this flag was last read.
    pub(super) has_news: bool,
    teller: Teller,
    batch: PacketBatch,
    log_budget: LogBudget<PublicKey>,
}

impl<T: TunPort, U: UdpPort> Pump<T, U> {
    pub(super) fn new(endpoint: Endpoint, tun: T, hooks: Hooks) -> Self {
        Self {
            endpoint,
            tun,
            sockets: Sockets::default(),
            traffic: Traffic::default(),
            errors: SendErrors::default(),
            key_log: None,
            lost_contact: false,
            carrying: Carrying::default(),
            hooks,
            has_news: false,
            teller: Teller::default(),
            batch: PacketBatch::new(),
            log_budget: LogBudget::default(),
        }
    }

    /// Reads from the host; says whether there may be more.
    pub(super) fn read_tun(&mut self, now: impl Fn() -> Instant) -> io::Result<bool> {
        self.batch.clear();
        for _ in 0..READS_PER_TURN {
            let more = match self.tun.recv(&mut self.batch) {
                Err(error) if error.raw_os_error() == Some(EIO) => false,
                result => result?,
            };
            if !more || self.batch.len() >= PACKETS_PER_SEND {
                self.send_batch(now());
            }
            if !more {
                return Ok(false);
            }
        }
        self.send_batch(now());
        Ok(true)
    }

    fn send_batch(&mut self, now: Instant) {
        for packet in self.batch.iter() {
            self.endpoint.handle_packet(now, packet);
        }
        self.batch.clear();
        self.flush(now);
    }

    /// Reads from a socket; says whether there may be more.
    pub(super) fn read_socket(&mut self, id: SocketId, now: impl Fn() -> Instant) -> bool {
        let mut buffers = 0;
        while buffers < BUFFERS_PER_RECEIVE {
            // The clock is read after the receive, in which this thread may wait to run while
            // datagrams arrive: a round trip must not look shorter than it was.
            let mut read_at = None;
            let (endpoint, traffic) = (&mut self.endpoint, &mut self.traffic);
            let Some(socket) = self.sockets.get_mut(id) else { return false };
            let read = socket.recv(&mut |meta, datagrams| {
                let route = Route { socket: id, remote: meta.source, local: meta.destination };
                let count = datagrams.len().div_ceil(meta.stride.max(1));
                traffic.note(id, meta.source, datagrams.len() as u64, count as u64);
                let ecn = Ecn::from_bits(meta.ecn);
                let now = *read_at.get_or_insert_with(&now);
                endpoint.handle_datagrams(now, route, ecn, meta.stride, datagrams);
            });
            match read {
                Ok(0) => return false,
                Ok(count) => {
                    buffers += count;
                    self.flush(read_at.unwrap_or_else(&now));
                }
                // The paths' own probes notice serious failures.
                Err(error) => {
                    buffers += 1;
                    log::debug!("receiving on socket {}: {error}", id.0);
                }
            }
        }
        true
    }

    /// Sends, delivers and logs what the protocol has ready.
    pub(super) fn flush(&mut self, now: Instant) {
        while let Some(out) = self.endpoint.poll_transmit() {
            let (id, remote) = (out.socket, out.remote);
            let transmit = Transmit {
                destination: remote,
                source: out.local,
                ecn: out.ecn.bits(),
                contents: out.contents,
                segment_size: out.segment_size,
            };
            let Some(socket) = self.sockets.get_mut(id) else { continue };
            let before = socket.counters();
            let result = socket.send(&transmit);
            let after = socket.counters();
            let bytes = after.sent_bytes - before.sent_bytes;
            let datagrams = after.sent_datagrams - before.sent_datagrams;
            self.traffic.note(id, remote, bytes, datagrams);
            if let Err(error) = result {
                log::debug!("sending to {remote}: {error}");
                if let Some(line) = self.errors.note(now, id, remote, &error) {
                    log::warn!("{line}");
                }
            }
        }
        while let Some(packet) = self.endpoint.poll_deliver() {
            if let Err(error) = self.tun.send(packet) {
                log::debug!("writing to the TUN device: {error}");
            }
        }
        if let Err(error) = self.tun.flush() {
            log::debug!("writing to the TUN device: {error}");
        }
        if let Some(log) = &mut self.key_log {
            log.take_from(&mut self.endpoint);
        }
        while let Some(event) = self.endpoint.poll_event() {
            self.lost_contact |= matches!(event, Event::BondDown(_) | Event::PathSilent(..));
            self.carrying.note(&event);
            self.has_news |= !matches!(event, Event::InnerMtu(..) | Event::PathMoved(..));
            self.teller.learn(&self.endpoint, &event);
            if let Some(news) = self.teller.news(&event) {
                self.hooks.tell(&news);
            }
            if self.may_tell(&event) {
                self.teller.tell(&event);
            }
            self.teller.forget(&event);
        }
    }
}

impl<T, U> Pump<T, U> {
    /// Whether the event's peer may cause another log line.
    fn may_tell(&mut self, event: &Event) -> bool {
        let peer = peer_of(event);
        match self.log_budget.take(peer) {
            Verdict::Write { left_out: 0 } => true,
            Verdict::Write { left_out } => {
                log::warn!("peer {}: {left_out} lines were left out", short(peer));
                true
            }
            Verdict::LeaveOut { is_first } => {
                if is_first {
                    let peer = short(peer);
                    log::warn!("peer {peer} causes too many lines: some are left out");
                }
                false
            }
        }
    }
}

/// The peer that an event is about.
fn peer_of(event: &Event) -> &PublicKey {
    match event {
        Event::BondUp(peer)
        | Event::BondDown(peer)
        | Event::BondStuck(peer)
        | Event::PathUp(peer, _)
        | Event::PathSilent(peer, _)
        | Event::PathLossy(peer, _)
        | Event::PathClosed(peer, _)
        | Event::PathMoved(peer, _, _)
        | Event::InnerMtu(peer, _) => peer,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::SocketAddr;
    use std::rc::Rc;

    use plait_net::memory::{MemoryNetwork, MemoryTun, MemoryUdp};
    use plait_net::udp::{ReceivedMeta, UdpCounters};
    use plait_proto::config::{
        BondConfig, EndpointConfig, LinkConfig, LossDetection, Order, PeerConfig, Prefix,
        RekeyLimits,
    };
    use plait_proto::resequencer::ResequencerConfig;
    use plait_proto::rng::Rng;
    use plait_proto::scheduler::{Algorithm, SchedulerConfig};
    use plait_proto::session::{PresharedKey, PrivateKey};
    use plait_proto::time::Duration;
    use plait_proto::wire::dscp::Dscps;

    use super::*;

    type MemoryPump = Pump<MemoryTun, MemoryUdp>;

    fn address(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 7788).into()
    }

    /// A gateway with inner address 10.99.0.`number`; number 1 listens, number 2 has two links.
    fn gateway(network: &MemoryNetwork, number: u8) -> (MemoryPump, MemoryTun) {
        let key = |number: u8| PrivateKey::from_bytes([number; 32]);
        let (host, tun) = MemoryTun::pair();
        let peer = 3 - number;
        let own: &[u8] = if number == 1 { &[1] } else { &[2, 3] };
        let link = |at: usize| LinkConfig {
            socket: SocketId(at as u16),
            name: format!("link{at}"),
            price: 0,
            weight: 1,
            standby: false,
            metered: false,
        };
        let config = EndpointConfig {
            private_key: key(number),
            wall_clock_at_zero: Duration::from_secs(1),
            links: (0..own.len()).map(link).collect(),
            bond: BondConfig {
                scheduler: SchedulerConfig::from(Algorithm::RoundRobin),
                congestion: None,
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
        let peer = PeerConfig {
            public_key: key(peer).public_key(),
            preshared_key: PresharedKey::default(),
            endpoints: if number == 2 { vec![address(1)] } else { Vec::new() },
            allowed_ips: vec![Prefix { address: [10, 99, 0, peer].into(), length: 32 }],
            keepalive: Duration::from_secs(25),
        };
        let endpoint = Endpoint::new(config, vec![peer], Rng::from_seed([number; 32]));
        let mut pump = Pump::new(endpoint, tun, Hooks::new("plait0"));
        for (at, last) in own.iter().enumerate() {
            let socket = network.bind(address(*last)).expect("unused");
            pump.sockets.insert(SocketId(at as u16), socket);
        }
        (pump, host)
    }

    fn turn(pumps: [&mut MemoryPump; 2], now: Instant) {
        for pump in pumps {
            pump.read_tun(|| now).expect("a memory TUN never fails");
            for at in 0..pump.sockets.len() {
                pump.read_socket(SocketId(at as u16), || now);
            }
            if pump.endpoint.poll_timeout(now).is_some_and(|due| due <= now) {
                pump.endpoint.handle_timeout(now);
                pump.flush(now);
            }
        }
    }

    fn packet(from: u8, to: u8, number: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 29, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 99, 0, from, 10, 99];
        packet.extend_from_slice(&[0, to, 0, 9, 0, 9, 0, 9, 0, 0, number]);
        packet
    }

    #[test]
    fn regression_what_was_not_sent_counts_for_no_quota() {
        let network = MemoryNetwork::new();
        let (mut customer, _host) = gateway(&network, 2);
        for (at, path) in [(0, "dsl"), (1, "lte")] {
            customer.traffic.assign(SocketId(at), path);
        }
        let lte = customer.sockets.get_mut(SocketId(1)).expect("there are two");
        lte.refuse_sends(Some(101));
        customer.endpoint.start(Instant::ZERO);
        customer.flush(Instant::ZERO);
        assert!(customer.traffic.take("dsl") > 0);
        assert_eq!(customer.traffic.take("lte"), 0);
        let counters = customer.sockets.get(SocketId(1)).expect("there are two").counters();
        let status = customer.errors.status(Instant::ZERO, SocketId(1), counters);
        assert_eq!((status.sent_datagrams, status.failed_sends), (0, 1));
        assert_eq!(
            status.last_error.as_deref(),
            Some("to 192.0.2.1:7788: Network is unreachable (os error 101)")
        );
    }

    /// A port with one datagram, which notes when it was read.
    struct OnePort {
        is_read: bool,
        log: Rc<RefCell<Vec<&'static str>>>,
    }

    impl UdpPort for OnePort {
        fn send(&mut self, _: &Transmit<'_>) -> io::Result<()> {
            Ok(())
        }

        fn recv(&mut self, sink: &mut dyn FnMut(ReceivedMeta, &mut [u8])) -> io::Result<usize> {
            if core::mem::replace(&mut self.is_read, true) {
                return Ok(0);
            }
            self.log.borrow_mut().push("read");
            let source = address(9);
            sink(ReceivedMeta { source, destination: None, stride: 40, ecn: 0 }, &mut [0; 40]);
            Ok(1)
        }

        fn counters(&self) -> UdpCounters {
            UdpCounters::default()
        }
    }

    /// A thread that waited between clock and read measured 29 ms for round trips of 43 ms, and a
    /// window of two of the shorter ones does not fill the link: 37.7 of 55 Mbit/s.
    #[test]
    fn regression_the_clock_is_read_after_the_datagrams() {
        let network = MemoryNetwork::new();
        let (MemoryPump { endpoint, tun, .. }, _host) = gateway(&network, 1);
        let mut pump = Pump::new(endpoint, tun, Hooks::new("plait0"));
        let log = Rc::new(RefCell::new(Vec::new()));
        pump.sockets.insert(SocketId(0), OnePort { is_read: false, log: log.clone() });
        let now = || {
            log.borrow_mut().push("clock");
            Instant::ZERO
        };
        assert!(!pump.read_socket(SocketId(0), now));
        assert_eq!(*log.borrow(), ["read", "clock"]);
    }

    #[test]
    fn packets_cross_two_gateways_over_both_links() {
        let network = MemoryNetwork::new();
        let (mut provider, mut server) = gateway(&network, 1);
        let (mut customer, mut host) = gateway(&network, 2);
        customer.endpoint.start(Instant::ZERO);
        customer.flush(Instant::ZERO);
        let mut now = Instant::ZERO;
        for _ in 0..20 {
            turn([&mut customer, &mut provider], now);
            now += Duration::from_millis(1);
        }
        for number in 0..10 {
            host.send(&packet(2, 1, number)).expect("room");
        }
        host.flush().expect("room");
        turn([&mut customer, &mut provider], now);
        let mut got = PacketBatch::new();
        while server.recv(&mut got).expect("a memory TUN never fails") {}
        let numbers: Vec<u8> = got.iter().map(|packet| packet[28]).collect();
        assert_eq!(numbers, (0..10).collect::<Vec<u8>>());
        let status = customer.endpoint.status(now);
        assert_eq!(
            status.peers[0].paths.iter().map(|p| p.sent_packets).collect::<Vec<_>>(),
            [5, 5]
        );
    }
}
