//! TUN devices, sockets and netlink against the kernel, in network namespaces of their own.
//!
//! Without the rights a test prints `SKIPPED:` and the reason, or fails when PLAIT_REQUIRE_NETNS
//! is 1. Without root it runs itself again in a user namespace.

#![allow(clippy::unwrap_used, reason = "all of this is a test, its helpers too")]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plait_net::batch::PacketBatch;
use plait_net::icmp::EchoSocket;
use plait_net::icmp::advertisement::{Advertisement, NoSolicitation};
use plait_net::icmp::router::{RouterSocket, Solicitation};
use plait_net::machine::{Machine, TunDevice};
use plait_net::netlink::policy::{Action, Family, Rule, Selector, TableRoute};
use plait_net::netlink::{Monitor, Netlink, Packet, RouteInfo, Way};
use plait_net::netns::NetNs;
use plait_net::tun::coalesce::Candidate;
use plait_net::tun::{Offload, Tun, TunCounters, TunError, TunPort};
use plait_net::udp::{BindTo, Transmit, UdpPort, UdpSocket};
use socket2::{Domain, Protocol, Socket, Type};

/// Set in the copy of a test that runs in a user namespace.
const INSIDE: &str = "PLAIT_NET_TEST_IN_USER_NAMESPACE";
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `body`, the test `name`, where namespaces and TUN devices can be made.
fn run(name: &str, body: fn()) {
    match missing_right() {
        None => body(),
        Some(_) if std::env::var_os(INSIDE).is_none() && can_unshare() => {
            let program = std::env::current_exe().unwrap();
            let mut command = Command::new("unshare");
            command.arg("-Urn").arg(program).args(["--exact", name, "--nocapture"]);
            assert!(command.env(INSIDE, "1").status().unwrap().success());
        }
        Some(reason) if std::env::var("PLAIT_REQUIRE_NETNS").is_ok_and(|value| value == "1") => {
            panic!("PLAIT_REQUIRE_NETNS is set, but {reason}");
        }
        Some(reason) => report_skip(name, &reason),
    }
}

/// Past the test harness, which hides what the macros print when the test passes.
#[allow(clippy::explicit_write, reason = "the macro's output would be hidden")]
fn report_skip(name: &str, reason: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {name}: {reason}").unwrap();
}

fn missing_right() -> Option<String> {
    if !matches!(Machine::inspect().tun, TunDevice::Present { openable: true, .. }) {
        return Some("/dev/net/tun cannot be opened".to_owned());
    }
    NetNs::anonymous().err().map(|error| format!("no network namespace can be made: {error}"))
}

fn can_unshare() -> bool {
    Command::new("unshare").args(["-Urn", "true"]).status().is_ok_and(|status| status.success())
}

/// A namespace with one TUN device that has an address of each family.
struct Host {
    namespace: NetNs,
    tun: Tun,
    v4: IpAddr,
    v6: IpAddr,
}

impl Host {
    /// Host `number` of the networks 10.9.0.0/24 and fd09::/64.
    fn new(number: u8, offload: bool) -> Self {
        let namespace = NetNs::anonymous().unwrap();
        let v4 = IpAddr::from([10, 9, 0, number]);
        let v6 = IpAddr::from([0xfd09, 0, 0, 0, 0, 0, 0, u16::from(number)]);
        let tun = namespace
            .run_in(|| {
                let tun = Tun::open("ptest%d", offload).unwrap();
                let mut netlink = Netlink::open().unwrap();
                let link = netlink.link(tun.name()).unwrap().unwrap();
                netlink.add_address(link.index, v4, 24).unwrap();
                netlink.add_address(link.index, v6, 64).unwrap();
                netlink.set_up(link.index).unwrap();
                tun
            })
            .unwrap();
        Self { namespace, tun, v4, v6 }
    }

    fn udp(&self) -> UdpSocket {
        self.namespace.run_in(|| UdpSocket::bind(&BindTo::default()).unwrap()).unwrap()
    }
}

/// Carries packets between two TUN devices in a thread of its own.
struct Bridge {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<[TunCounters; 2]>,
}

impl Bridge {
    fn start(mut one: Tun, mut other: Tun) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut batch = PacketBatch::new();
            while !stopped.load(Ordering::Relaxed) {
                let there = carry(&mut one, &mut other, &mut batch);
                let back = carry(&mut other, &mut one, &mut batch);
                if !there && !back {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            [one.counters(), other.counters()]
        });
        Self { stop, thread }
    }

    fn stop(self) -> [TunCounters; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Carries what waits at `from`; false when nothing did.
fn carry(from: &mut Tun, to: &mut Tun, batch: &mut PacketBatch) -> bool {
    batch.clear();
    // As much as one burst of the sender, so that runs form without offload at `from`.
    for _ in 0..64 {
        if !from.recv(batch).unwrap() {
            break;
        }
    }
    for packet in batch.iter() {
        assert!(packet.len() <= 1500, "a packet of {} bytes was not split", packet.len());
        let tcp = packet[0] >> 4 == 4 && packet[9] == 6;
        if tcp && packet.len() > 100 {
            assert!(Candidate::examine(packet).is_some(), "a checksum is wrong: {packet:?}");
        }
        to.send(packet).unwrap();
    }
    to.flush().unwrap();
    !batch.is_empty()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

/// Sends `data` over a kernel TCP connection and returns what arrives.
fn tcp_transfer(from: &NetNs, to: &NetNs, address: IpAddr, data: &[u8]) -> Vec<u8> {
    let listener = to.run_in(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
    let destination = listener.local_addr().unwrap();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        let connect = || TcpStream::connect_timeout(&destination, PATIENCE).unwrap();
        let mut stream = from.run_in(connect).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(data).unwrap();
        drop(stream);
        receiver.join().unwrap()
    })
}

fn check_tcp(offload: [bool; 2]) {
    let (one, other) = (Host::new(1, offload[0]), Host::new(2, offload[1]));
    let (v4, v6) = (other.v4, other.v6);
    if offload[0] {
        assert!(one.tun.offload() >= Offload::Tcp);
    }
    let bridge = Bridge::start(one.tun, other.tun);
    let data = pattern(4 << 20);
    for address in [v4, v6] {
        let received = tcp_transfer(&one.namespace, &other.namespace, address, &data);
        assert!(received == data, "{} bytes of {} came through", received.len(), data.len());
    }
    let [sender, receiver] = bridge.stop();
    for counters in [sender, receiver] {
        assert_eq!((counters.dropped_malformed, counters.refused_aggregates), (0, 0));
        assert_eq!(counters.dropped_invalid, 0);
    }
    let split = sender.read_packets > 2 * sender.reads;
    assert_eq!(split, offload[0], "super-packets are read with offload only: {sender:?}");
    let joined = receiver.written_packets > 2 * receiver.written_aggregates
        && receiver.written_aggregates > 0;
    assert_eq!(joined, offload[1], "super-packets are written with offload only: {receiver:?}");
}

#[test]
fn tcp_passes_with_offload_on_both_sides() {
    run("tcp_passes_with_offload_on_both_sides", || check_tcp([true, true]));
}

#[test]
fn split_packets_have_checksums_that_the_kernel_accepts() {
    run("split_packets_have_checksums_that_the_kernel_accepts", || check_tcp([true, false]));
}

#[test]
fn single_packets_are_joined() {
    run("single_packets_are_joined", || check_tcp([false, true]));
}

#[test]
fn udp_runs_pass_with_offload_on_both_sides() {
    run("udp_runs_pass_with_offload_on_both_sides", || {
        let (one, other) = (Host::new(1, true), Host::new(2, true));
        let (mut sender, mut receiver) = (one.udp(), other.udp());
        let port = receiver.local_addr().unwrap().port();
        let offloads = [one.tun.offload(), other.tun.offload()];
        let addresses = [other.v4, other.v6];
        let bridge = Bridge::start(one.tun, other.tun);
        let contents = pattern(20_500);
        for address in addresses {
            let destination = SocketAddr::new(address, port);
            let segment_size = Some(1000);
            sender
                .send(&Transmit {
                    destination,
                    source: None,
                    ecn: 1,
                    contents: &contents,
                    segment_size,
                })
                .unwrap();
            assert_eq!(receive_all(&mut receiver, contents.len()), contents);
        }
        let [sender, receiver] = bridge.stop();
        if offloads == [Offload::TcpUdp; 2] {
            assert!(sender.read_packets >= sender.reads + 40, "{sender:?}");
            assert!(receiver.written_aggregates >= 2, "{receiver:?}");
        }
        assert_eq!((sender.dropped_malformed, receiver.refused_aggregates), (0, 0));
    });
}

/// Receives datagrams of 1000 bytes until there are `len` bytes.
fn receive_all(socket: &mut UdpSocket, len: usize) -> Vec<u8> {
    let mut received = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while received.len() < len {
        assert!(Instant::now() < deadline, "only {} bytes came", received.len());
        let mut take = |meta: plait_net::udp::ReceivedMeta, buffer: &mut [u8]| {
            assert_eq!((meta.stride.min(1000), meta.ecn), (meta.stride, 1));
            received.extend_from_slice(buffer);
        };
        if socket.recv(&mut take).unwrap() == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    received
}

#[test]
fn a_datagram_over_the_mtu_is_an_error_and_segmentation_stays() {
    run("a_datagram_over_the_mtu_is_an_error_and_segmentation_stays", || {
        let host = Host::new(1, true);
        let mut socket = host.udp();
        let segments = socket.max_segments();
        let contents = vec![0; 3500];
        for destination in [IpAddr::from([10, 9, 0, 7]), "fd09::7".parse().unwrap()] {
            let destination = SocketAddr::new(destination, 9);
            let mut transmit = Transmit {
                destination,
                source: None,
                ecn: 0,
                contents: &contents,
                segment_size: Some(1600),
            };
            let error = socket.send(&transmit).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE), "{error}");
            assert_eq!(socket.max_segments(), segments);
            transmit.segment_size = None;
            let error = socket.send(&transmit).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE), "not fragmented: {error}");
            transmit.segment_size = Some(1200);
            socket.send(&transmit).unwrap();
        }
    });
}

#[test]
fn a_host_without_ipv6_still_listens() {
    run("a_host_without_ipv6_still_listens", || {
        let namespace = NetNs::anonymous().unwrap();
        namespace.set_sysctl("net.ipv6.conf.all.disable_ipv6", "1").unwrap();
        let bind = || UdpSocket::bind(&BindTo::default()).unwrap();
        let (mut sender, mut receiver) = namespace.run_in(|| (bind(), bind())).unwrap();
        let port = receiver.local_addr().unwrap().port();
        let contents = pattern(2500);
        let transmit = Transmit {
            destination: SocketAddr::from(([127, 0, 0, 1], port)),
            source: None,
            ecn: 1,
            contents: &contents,
            segment_size: Some(1000),
        };
        sender.send(&transmit).unwrap();
        assert_eq!(receive_all(&mut receiver, contents.len()), contents);
    });
}

#[test]
fn a_plain_device_is_read_and_written_by_reference() {
    run("a_plain_device_is_read_and_written_by_reference", || {
        let host = Host::new(1, false);
        let client =
            host.namespace.run_in(|| std::net::UdpSocket::bind((host.v4, 0)).unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send_to(b"echo", "10.9.0.9:99").unwrap();
        let tun = &host.tun;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut packet = next_packet_to(tun, [10, 9, 0, 9]);
                // Addresses and ports change places, which leaves the checksums right.
                for at in (12..16).chain(20..22) {
                    packet.swap(at, if at < 16 { at + 4 } else { at + 2 });
                }
                tun.write_packet(&packet).unwrap();
            });
        });
        let mut answer = [0; 16];
        let (len, from) = client.recv_from(&mut answer).unwrap();
        assert_eq!((&answer[..len], from.to_string()), (&b"echo"[..], "10.9.0.9:99".to_owned()));
    });
}

fn next_packet_to(tun: &Tun, destination: [u8; 4]) -> Vec<u8> {
    let deadline = Instant::now() + PATIENCE;
    let mut buffer = [0; 2000];
    loop {
        assert!(Instant::now() < deadline, "the packet came");
        match tun.read_packet(&mut buffer).unwrap() {
            Some(len) if buffer[0] >> 4 == 4 && buffer[16..20] == destination => {
                return buffer[..len].to_vec();
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// An ICMP message to `packet`'s sender: it would have to be fragmented to pass a link of `mtu`.
fn fragmentation_needed(packet: &[u8], mtu: u16) -> Vec<u8> {
    let mut icmp = vec![3, 4, 0, 0, 0, 0];
    icmp.extend_from_slice(&mtu.to_be_bytes());
    icmp.extend_from_slice(&packet[..28]);
    let mut ip = vec![0x45, 0, 0, 20 + icmp.len() as u8, 0, 0, 0, 0, 64, 1, 0, 0, 10, 9, 0, 9];
    ip.extend_from_slice(&packet[12..16]);
    for (part, field) in [(&mut icmp, 2), (&mut ip, 10)] {
        let words = part.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum: u32 = words.sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        part[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    }
    ip.extend_from_slice(&icmp);
    ip
}

/// Spec M-1.
#[test]
fn what_icmp_says_of_sizes_changes_nothing() {
    run("what_icmp_says_of_sizes_changes_nothing", || {
        let host = Host::new(1, false);
        let plain =
            host.namespace.run_in(|| std::net::UdpSocket::bind((host.v4, 0)).unwrap()).unwrap();
        plain.connect("10.9.0.9:99").unwrap();
        plain.send(&[0; 1400]).unwrap();
        let packet = next_packet_to(&host.tun, [10, 9, 0, 9]);
        host.tun.write_packet(&fragmentation_needed(&packet, 600)).unwrap();
        let error = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            plain
                .send(&[0; 1400])
                .err()
                .filter(|error| error.raw_os_error() == Some(libc::EMSGSIZE))
        });
        assert!(error.is_some(), "the kernel believes what it was told");
        let mut socket = host.udp();
        let transmit = Transmit {
            destination: "10.9.0.9:98".parse().unwrap(),
            source: None,
            ecn: 0,
            contents: &[0; 1400],
            segment_size: None,
        };
        socket.send(&transmit).unwrap();
        let whole = loop {
            let packet = next_packet_to(&host.tun, [10, 9, 0, 9]);
            if packet.get(22..24) == Some(&98_u16.to_be_bytes()[..]) {
                break packet;
            }
        };
        assert_eq!((whole.len(), whole[6] & 0xe0), (1428, 0x40), "in one piece, not to be cut");
        let error = socket.send(&Transmit { contents: &[0; 1473], ..transmit }).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
        assert_eq!(socket.counters().too_long_datagrams, 1);
    });
}

#[test]
fn tun_errors_say_what_is_wrong() {
    run("tun_errors_say_what_is_wrong", || {
        let namespace = NetNs::anonymous().unwrap();
        let check = || {
            let first = Tun::open("ptest", true).unwrap();
            assert_eq!(first.name(), "ptest");
            let in_use = Tun::open("ptest", true).unwrap_err();
            assert!(matches!(in_use, TunError::NameInUse { .. }), "{in_use}");
            let foreign = Tun::open("lo", true).unwrap_err();
            assert!(matches!(foreign, TunError::NameUnusable { .. }), "{foreign}");
            let long = Tun::open("sixteen-letters-", true).unwrap_err();
            assert!(matches!(long, TunError::NameTooLong { .. }), "{long}");
            drop(first);
            let again = Netlink::open().unwrap().link("ptest").unwrap();
            assert_eq!(again, None, "the interface vanishes with the device");
        };
        namespace.run_in(check).unwrap();
    });
}

#[test]
fn links_addresses_and_routes_are_set_and_read_back() {
    run("links_addresses_and_routes_are_set_and_read_back", || {
        let namespace = NetNs::anonymous().unwrap();
        namespace.run_in(check_netlink).unwrap();
    });
}

fn check_netlink() {
    let tun = Tun::open("ptest", true).unwrap();
    let mut netlink = Netlink::open().unwrap();
    assert_eq!(netlink.link("absent").unwrap(), None);
    let fresh = netlink.link(tun.name()).unwrap().unwrap();
    assert_eq!((fresh.mtu, fresh.up), (1500, false));
    let index = fresh.index;
    netlink.set_mtu(index, 1420).unwrap();
    netlink.set_gso_max_size(index, 60_000).unwrap();
    netlink.set_up(index).unwrap();
    let link = netlink.link(tun.name()).unwrap().unwrap();
    assert_eq!((link.mtu, link.up, link.running), (1420, true, true));
    assert_eq!(link.gso_max_size, Some(60_000));
    assert!(netlink.links().unwrap().iter().any(|link| link.name == "lo"));

    let v4: IpAddr = "10.8.0.1".parse().unwrap();
    let v6: IpAddr = "fd08::1".parse().unwrap();
    netlink.add_address(index, v4, 24).unwrap();
    netlink.add_address(index, v6, 64).unwrap();
    let addresses = netlink.addresses().unwrap();
    assert!(addresses.contains(&(index, v4, 24)) && addresses.contains(&(index, v6, 64)));

    let networks = [("10.99.0.0", 16, Some(77)), ("0.0.0.0", 0, None), ("fd99::", 32, Some(78))];
    for (destination, prefix, metric) in networks {
        netlink.add_route(index, destination.parse().unwrap(), prefix, metric).unwrap();
    }
    let routes = netlink.routes().unwrap();
    for (destination, prefix, metric) in networks {
        let destination = destination.parse().unwrap();
        let index = Some(index);
        let wanted = RouteInfo { destination, prefix, gateway: None, index, metric };
        assert!(routes.contains(&wanted), "{wanted:?} is not in {routes:?}");
    }

    let twice = netlink.add_address(index, v4, 24).unwrap_err();
    assert_eq!(twice.errno(), Some(libc::EEXIST));
    assert!(twice.to_string().contains("10.8.0.1/24"), "{twice}");
    let absent = netlink.set_up(9999).unwrap_err();
    assert_eq!((absent.errno(), absent.is_permission_denied()), (Some(libc::ENODEV), false));
}

#[test]
fn ways_are_looked_up_without_what_the_kernel_would_merely_try() {
    run("ways_are_looked_up_without_what_the_kernel_would_merely_try", || {
        NetNs::anonymous().unwrap().run_in(check_ways).unwrap();
    });
}

fn check_ways() {
    let mut netlink = Netlink::open().unwrap();
    assert!(netlink.may_change().unwrap());
    let [near, far] = ["pnear", "pfar"].map(|name| {
        let tun = Tun::open(name, true).unwrap();
        let index = netlink.link(name).unwrap().unwrap().index;
        netlink.set_up(index).unwrap();
        (tun, index)
    });
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    for (index, own) in [(near.1, "10.8.0.1"), (far.1, "10.9.0.1")] {
        netlink.add_address(index, address(own), 24).unwrap();
    }
    netlink.add_address(near.1, address("fd08::1"), 64).unwrap();
    netlink.add_route(near.1, address("0.0.0.0"), 0, Some(5)).unwrap();
    let mut way = |to: &str, interface: Option<u32>, source: Option<&str>| {
        let (destination, source) = (address(to), source.map(address));
        netlink.way(&Packet { destination, source, interface }).unwrap()
    };
    let over = |index, prefix| Some(Way { index: Some(index), prefix, in_main: true });
    assert_eq!(way("192.0.2.1", None, None), over(near.1, 0));
    assert_eq!(way("192.0.2.1", Some(near.1), Some("10.8.0.1")), over(near.1, 0));
    assert_eq!(way("192.0.2.1", Some(far.1), None), None, "the kernel would try it on the wire");
    assert_eq!(way("10.9.0.7", Some(far.1), None), over(far.1, 24));
    assert_eq!(way("10.9.0.1", None, None).map(|way| way.in_main), Some(false), "table local");
    assert_eq!(way("2001:db8::1", None, None), None);
    assert_eq!(way("fd08::2", Some(near.1), None), over(near.1, 64));
    assert_eq!(netlink.advertised_defaults().unwrap(), []);
    let metric = Some(5);
    let default = RouteInfo {
        destination: address("0.0.0.0"),
        prefix: 0,
        gateway: None,
        index: Some(near.1),
        metric,
    };
    assert!(netlink.routes_of_any_kind().unwrap().contains(&default));
}

#[test]
fn rules_and_routes_of_own_tables_are_set_read_back_and_removed() {
    run("rules_and_routes_of_own_tables_are_set_read_back_and_removed", || {
        NetNs::anonymous().unwrap().run_in(check_policy).unwrap();
    });
}

fn check_policy() {
    const OURS: u8 = 112;
    const OTHERS: u8 = 113;
    let tun = Tun::open("ppol", false).unwrap();
    let mut netlink = Netlink::open().unwrap();
    let index = netlink.link(tun.name()).unwrap().unwrap().index;
    netlink.set_up(index).unwrap();
    let v4: IpAddr = "10.8.0.1".parse().unwrap();
    let v6: IpAddr = "fd08::1".parse().unwrap();
    netlink.add_address(index, v4, 24).unwrap();
    netlink.add_address(index, v6, 64).unwrap();

    let rule = |priority, family, selector, action| Rule { priority, family, selector, action };
    let rules = [
        rule(5200, Family::V4, Selector::Interface("ppol".into()), Action::Table(5200)),
        rule(5201, Family::V4, Selector::Interface("lo".into()), Action::Goto(5209)),
        rule(5202, Family::V4, Selector::From(v4), Action::Table(77)),
        rule(5203, Family::V4, Selector::All, Action::Table(5201)),
        rule(5209, Family::V4, Selector::All, Action::Nop),
        rule(5202, Family::V6, Selector::From(v6), Action::Table(77)),
    ];
    for rule in &rules {
        netlink.add_rule(rule, OURS).unwrap();
    }
    let foreign = rule(5300, Family::V4, Selector::All, Action::Nop);
    netlink.add_rule(&foreign, OTHERS).unwrap();
    assert_eq!(netlink.rules_of(OURS).unwrap(), rules);
    let twice = netlink.add_rule(&rules[0], OURS).unwrap_err();
    assert_eq!(twice.errno(), Some(libc::EEXIST));

    let route = |destination: &str, prefix, gateway: Option<&str>, index| TableRoute {
        table: 5200,
        destination: destination.parse().unwrap(),
        prefix,
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        index,
    };
    let routes = [
        route("0.0.0.0", 0, None, Some(index)),
        route("10.9.0.2", 32, Some("10.8.0.7"), Some(index)),
        route("fd09::2", 128, Some("fd08::7"), Some(index)),
        TableRoute { table: 77, ..route("::", 0, None, Some(index)) },
    ];
    for route in &routes {
        netlink.add_table_route(route, OURS).unwrap();
    }
    // Without an interface the kernel finds the next hop's.
    netlink.add_table_route(&route("10.9.0.3", 32, Some("10.8.0.8"), None), OURS).unwrap();
    netlink.add_table_route(&route("10.9.0.4", 32, None, Some(index)), OTHERS).unwrap();
    let mut found = netlink.table_routes_of(OURS).unwrap();
    let mut wanted = routes.to_vec();
    wanted.push(route("10.9.0.3", 32, Some("10.8.0.8"), Some(index)));
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    // The default route of a table leads to every next hop; another table has none.
    let nowhere = TableRoute { table: 78, ..route("10.9.0.5", 32, Some("192.0.2.1"), None) };
    let nowhere = netlink.add_table_route(&nowhere, OURS).unwrap_err();
    assert_eq!(nowhere.errno(), Some(libc::ENETUNREACH));

    for rule in &rules {
        netlink.remove_rule(rule, OURS).unwrap();
    }
    for route in &found {
        netlink.remove_table_route(route, OURS).unwrap();
    }
    assert_eq!(netlink.rules_of(OURS).unwrap(), []);
    assert_eq!(netlink.table_routes_of(OURS).unwrap(), []);
    assert_eq!(netlink.rules_of(OTHERS).unwrap(), [foreign]);
    let gone = netlink.remove_rule(&rules[0], OURS).unwrap_err();
    assert_eq!(gone.errno(), Some(libc::ENOENT));
    let gone = netlink.remove_table_route(&routes[0], OURS).unwrap_err();
    assert_eq!(gone.errno(), Some(libc::ESRCH));
}

#[test]
fn an_echo_comes_back_to_its_own_socket() {
    run("an_echo_comes_back_to_its_own_socket", || {
        let namespace = NetNs::create("ptest-echo").unwrap();
        namespace.run_in(check_echo).unwrap();
    });
}

fn check_echo() {
    for (address, is_v6) in [("127.0.0.1", false), ("::1", true)] {
        let to: IpAddr = address.parse().unwrap();
        let [ours, other] = [7, 8].map(|identifier| EchoSocket::open(is_v6, identifier).unwrap());
        assert_eq!(ours.reply().unwrap(), None);
        for sequence in [1, 2] {
            ours.request(to, sequence, &[9, sequence as u8]).unwrap();
        }
        let end = Instant::now() + PATIENCE;
        for sequence in [1, 2] {
            let reply = loop {
                if let Some(reply) = ours.reply().unwrap() {
                    break reply;
                }
                assert!(Instant::now() < end, "no answer from {address}");
                std::thread::sleep(Duration::from_millis(1));
            };
            assert_eq!((reply.sequence, reply.payload), (sequence, vec![9, sequence as u8]));
            assert_eq!(reply.source, to);
        }
        assert_eq!((ours.reply().unwrap(), other.reply().unwrap()), (None, None), "{address}");
    }
}

#[test]
fn a_router_hears_its_neighbours_only_and_they_hear_it() {
    run("a_router_hears_its_neighbours_only_and_they_hear_it", check_router);
}

fn check_router() {
    let router = NetNs::anonymous().unwrap();
    let host = NetNs::anonymous().unwrap();
    router.set_sysctl("net.ipv6.conf.default.accept_dad", "0").unwrap();
    host.set_sysctl("net.ipv6.conf.default.accept_dad", "0").unwrap();
    host.set_sysctl("net.ipv6.conf.default.accept_ra", "0").unwrap();
    let run = |ns: &NetNs, command: &str| {
        let mut words = command.split(' ');
        assert!(ns.command(words.next().unwrap()).args(words).status().unwrap().success());
    };
    let process = router.command("sleep").arg("60").spawn().unwrap();
    let other = host.command("sleep").arg("60").spawn().unwrap();
    let netns = (process.id(), other.id());
    let mut ends = [process, other];
    let cable =
        format!("ip link add lan netns {} type veth peer name eth0 netns {}", netns.0, netns.1);
    run(&router, &cable);
    run(&router, "ip link set lan up");
    run(&host, "ip link set eth0 up");
    let index = |ns: &NetNs, name: &'static str| {
        ns.run_in(move || Netlink::open().unwrap().link(name).unwrap().unwrap().index).unwrap()
    };
    let (here, there) = (index(&router, "lan"), index(&host, "eth0"));
    let socket = router.run_in(|| RouterSocket::open().unwrap()).unwrap();
    socket.join(here).unwrap();
    // Both kernels have given their devices link-local addresses by now, or soon.
    let advertisement = Advertisement {
        lifetime: Duration::from_secs(1800),
        prefixes: Vec::new(),
        mtu: Some(1400),
        dns: vec!["2001:db8::53".parse().unwrap()],
        dns_lifetime: Duration::from_secs(1800),
    };
    let raw = host
        .run_in(|| Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6)).unwrap())
        .unwrap();
    raw.set_multicast_if_v6(there).unwrap();
    raw.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let routers: SocketAddr = format!("[ff02::2%{there}]:0").parse().unwrap();
    // Sound; from afar; without a code of solicitations; with an option without a length.
    let plain = [133, 0, 0, 0, 0, 0, 0, 0];
    let odd = [133, 1, 0, 0, 0, 0, 0, 0];
    let broken = [133, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    let until = Instant::now() + PATIENCE;
    while raw
        .set_multicast_hops_v6(255)
        .and_then(|()| raw.send_to(&plain, &routers.into()))
        .is_err()
    {
        assert!(Instant::now() < until, "the host never has an address");
        std::thread::sleep(Duration::from_millis(20));
    }
    raw.send_to(&odd, &routers.into()).unwrap();
    raw.send_to(&broken, &routers.into()).unwrap();
    raw.set_multicast_hops_v6(64).unwrap();
    raw.send_to(&plain, &routers.into()).unwrap();
    let mut heard = Vec::new();
    while heard.len() < 4 {
        assert!(Instant::now() < until, "{heard:?}");
        match socket.solicitation().unwrap() {
            // The kernel's own are like the first.
            Some(Solicitation { index, checked: Ok(()) }) if !heard.is_empty() => {
                assert_eq!(index, here);
            }
            Some(solicitation) => heard.push(solicitation),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    let checked: Vec<_> = heard.iter().map(|solicitation| solicitation.checked).collect();
    let refused =
        [NoSolicitation::Other(133, 1), NoSolicitation::Option, NoSolicitation::FromAfar(64)];
    assert_eq!(checked[0], Ok(()));
    assert_eq!(checked[1..], refused.map(Err));
    assert!(heard.iter().all(|solicitation| solicitation.index == here));
    // The standard library has no raw socket; this type receives the same way.
    let raw: std::net::UdpSocket = raw.into();
    let mut buffer = [0; 256];
    loop {
        assert!(Instant::now() < until, "no advertisement came");
        socket.advertise(here, &advertisement).unwrap();
        let Ok((length, from)) = raw.recv_from(&mut buffer) else { continue };
        let bytes = &buffer[..length];
        if bytes[0] != 134 {
            continue;
        }
        let IpAddr::V6(from) = from.ip() else { panic!("{from}") };
        assert!(from.is_unicast_link_local(), "{from}");
        let mut message = advertisement.message();
        message[2..4].copy_from_slice(&bytes[2..4]);
        assert_eq!(bytes, message);
        break;
    }
    for end in &mut ends {
        end.kill().unwrap();
        end.wait().unwrap();
    }
}

#[test]
fn the_monitor_tells_of_interfaces_and_addresses() {
    run("the_monitor_tells_of_interfaces_and_addresses", || {
        NetNs::anonymous().unwrap().run_in(check_monitor).unwrap();
    });
}

/// News of IPv6 comes a moment after the change.
fn await_news(monitor: &mut Monitor, what: &str) {
    let end = Instant::now() + PATIENCE;
    while !monitor.drain().unwrap() {
        assert!(Instant::now() < end, "{what}, and nothing is told");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn check_monitor() {
    let mut monitor = Monitor::open().unwrap();
    let mut netlink = Netlink::open().unwrap();
    let mut interface = || netlink.interfaces().unwrap().into_iter().find(|i| i.name == "pmon");
    assert!(!monitor.drain().unwrap());
    assert_eq!(interface(), None);

    let tun = Tun::open("pmon", false).unwrap();
    assert!(monitor.drain().unwrap(), "an interface appeared");
    let fresh = interface().unwrap();
    assert_eq!((fresh.up, fresh.running, fresh.addresses.len()), (false, false, 0));

    let index = fresh.index;
    let mut change = Netlink::open().unwrap();
    change.set_up(index).unwrap();
    let addresses: [IpAddr; 2] = ["10.8.0.1".parse().unwrap(), "fd08::1".parse().unwrap()];
    assert!(monitor.drain().unwrap(), "it was switched on");
    for (address, prefix) in addresses.into_iter().zip([24, 64]) {
        change.add_address(index, address, prefix).unwrap();
        await_news(&mut monitor, &format!("{address} was added"));
    }
    let used = interface().unwrap();
    assert!(used.up && used.running);
    assert!(addresses.iter().all(|address| used.addresses.contains(address)), "{used:?}");

    // More than the socket's buffer holds: the kernel drops news, and the monitor still works.
    for round in 0..1000 {
        change.set_mtu(index, 1300 + round % 2).unwrap();
    }
    assert!(monitor.drain().unwrap());
    drop(tun);
    await_news(&mut monitor, "the interface vanished");
    assert_eq!(interface(), None);
}
