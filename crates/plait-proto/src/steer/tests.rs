use super::config::AttachmentConfig;
use super::packet::testing::{echo, ip, tcp, udp};
use super::packet::{FIN, RST, SYN};
use super::*;

mod availability;
mod operations;
mod reload;

const ACK: u8 = 0x10;

fn v4(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn server() -> IpAddr {
    v4("192.0.2.9")
}

/// A client with an LTE and a Wi-Fi attachment, both with both families.
fn phone() -> ClientConfig {
    let both = |v4: &str, v6: &str| Addresses {
        v4: Some(v4.parse().expect("an address")),
        v6: Some(v6.parse().expect("an address")),
    };
    let wifi = AttachmentConfig {
        address: both("10.1.0.1", "2001:db8:1::1"),
        ..AttachmentConfig::primary("wifi")
    };
    ClientConfig {
        name: "phone".into(),
        address: both("10.0.0.1", "2001:db8::1"),
        attachments: vec![AttachmentConfig::primary("lte"), wifi],
    }
}

/// Fixed shares without probes: every attachment is in use at once.
fn fixed(lte: u16, wifi: u16) -> NodeConfig {
    let mut client = phone();
    client.attachments[0].weight = lte;
    client.attachments[1].weight = wifi;
    NodeConfig { clients: vec![client], policy: Policy::Fixed, probe: None, ..Default::default() }
}

/// A node with its time, and the answers of its clients to probes.
struct World {
    node: Node,
    now: Instant,
    /// Round-trip time of each attachment of the first client; `None`: no answer.
    rtt_ms: Vec<Option<u64>>,
    answers: Vec<(Instant, Probe)>,
    probes: Vec<(Instant, Probe)>,
}

impl World {
    fn new(config: NodeConfig) -> Self {
        config.check().expect("a sound configuration");
        let rtt_ms = vec![Some(40), Some(10)];
        let node = Node::new(config, 7);
        Self { node, now: Instant::ZERO, rtt_ms, answers: Vec::new(), probes: Vec::new() }
    }

    /// Passes time in steps of a millisecond, with probes and their answers.
    fn run_ms(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
            self.now += Duration::from_millis(1);
        }
        self.step();
    }

    fn step(&mut self) {
        let due = self.node.poll_timeout().is_some_and(|due| due <= self.now);
        if due {
            self.node.handle_timeout(self.now);
        }
        while let Some(probe) = self.node.poll_probe() {
            self.probes.push((self.now, probe));
            if let Some(rtt) = self.rtt_ms[usize::from(probe.attachment.attachment)] {
                self.answers.push((self.now + Duration::from_millis(rtt), probe));
            }
        }
        let (due, rest) = self.answers.drain(..).partition(|(at, _)| *at <= self.now);
        self.answers = rest;
        let due: Vec<_> = due;
        for (_, probe) in due {
            self.node.handle_probe_reply(self.now, probe.attachment, probe.number);
        }
    }

    /// Sends a packet towards a client and says over which attachment it went.
    fn send(&mut self, packet: &mut [u8]) -> u8 {
        match self.node.handle_downstream(self.now, packet) {
            Downstream::Forward(id) => id.attachment,
            other => panic!("expected an attachment, got {other:?}"),
        }
    }

    /// The attachments of the next `count` segments of a TCP flow.
    fn segments(&mut self, port: u16, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.send(&mut segment(port, ACK))).collect()
    }

    /// How many of the next `count` segments went over each attachment.
    fn tally(&mut self, port: u16, count: usize) -> [usize; 2] {
        let over = self.segments(port, count);
        [0, 1].map(|id| over.iter().filter(|&&at| at == id).count())
    }

    fn client(&self) -> ClientStatus {
        self.node.status(self.now).clients.remove(0)
    }
}

/// A segment of the flow to this port of the phone.
fn segment(port: u16, flags: u8) -> Vec<u8> {
    tcp((server(), 80), (v4("10.0.0.1"), port), flags, b"data")
}

#[test]
fn shares_come_out_exactly() {
    for (lte, wifi) in [(50, 50), (20, 80), (80, 20)] {
        let mut world = World::new(fixed(lte, wifi));
        assert_eq!(world.tally(1, 10), [10, 0], "the first packets");
        assert_eq!(world.tally(1, 1000), [usize::from(lte) * 10, usize::from(wifi) * 10]);
        let status = world.client();
        let packets: Vec<u64> = status.attachments.iter().map(|it| it.packets).collect();
        assert_eq!(packets, [u64::from(lte) * 10 + 10, u64::from(wifi) * 10]);
        let weights: Vec<_> = status.attachments.iter().map(|it| it.weight).collect();
        assert_eq!(weights, [Some(lte.into()), Some(wifi.into())]);
    }
}

#[test]
fn the_beginning_and_the_end_of_a_connection_stay_on_the_primary() {
    let mut world = World::new(NodeConfig { first_packets: 3, ..fixed(0, 1) });
    assert_eq!(world.send(&mut segment(1, SYN)), 0);
    assert_eq!(world.segments(1, 5), [0, 0, 0, 1, 1]);
    for flags in [FIN | ACK, RST, RST | ACK] {
        assert_eq!(world.send(&mut segment(1, flags)), 0);
    }
    assert_eq!(world.segments(1, 1), [1], "data after a FIN is data");
    assert_eq!(world.send(&mut segment(1, SYN | ACK)), 0);
    assert_eq!(world.segments(1, 4), [0, 0, 0, 1], "a SYN begins the flow anew");
    let counters = world.client().counters;
    assert_eq!((counters.control, counters.first, counters.steered), (5, 6, 4));
}

#[test]
fn a_packet_goes_as_it_is_or_as_if_it_had_been_sent_there() {
    let mut world = World::new(NodeConfig { first_packets: 0, ..fixed(1, 1) });
    let families = [("10.0.0.1", "10.1.0.1", "192.0.2.9"), ("2001:db8::1", "2001:db8:1::1", "::9")];
    for (primary, wifi, server) in families.map(|(a, b, c)| (v4(a), v4(b), v4(c))) {
        let build = |to| tcp((server, 80), (to, 7), ACK, b"some data");
        let mut seen = [0; 2];
        for _ in 0..4 {
            let mut packet = build(primary);
            let over = world.send(&mut packet);
            assert_eq!(packet, build([primary, wifi][usize::from(over)]));
            seen[usize::from(over)] += 1;
        }
        assert_eq!(seen, [2, 2]);
    }
}

#[test]
fn a_flow_stays_on_one_attachment_where_flows_are_steered() {
    let config = NodeConfig { granularity: Granularity::Flow, first_packets: 2, ..fixed(1, 3) };
    let mut world = World::new(config);
    let mut flows = [0; 2];
    for port in 0..40 {
        assert_eq!(world.segments(port, 2), [0, 0]);
        let over = world.segments(port, 20);
        assert!(over.iter().all(|at| *at == over[0]), "{over:?}");
        flows[usize::from(over[0])] += 1;
    }
    assert_eq!(flows, [10, 30]);
}

#[test]
fn what_is_not_tcp_is_not_split() {
    let datagram = |port: u16| udp((server(), 53), (v4("10.0.0.1"), port), b"x", false);
    let mut world = World::new(NodeConfig { first_packets: 1, ..fixed(1, 1) });
    let mut flows = [0; 2];
    for port in 0..10 {
        assert_eq!(world.send(&mut datagram(port)), 0);
        let over: Vec<u8> = (0..9).map(|_| world.send(&mut datagram(port))).collect();
        assert!(over.iter().all(|at| *at == over[0]), "{over:?}");
        flows[usize::from(over[0])] += 1;
    }
    assert_eq!(flows, [5, 5]);
    assert_eq!(world.tally(7, 21), [11, 10], "choices for flows leave those for packets alone");
    let ping = || echo(server(), v4("10.0.0.1"), b"x");
    world.send(&mut ping());
    let over: Vec<u8> = (0..9).map(|_| world.send(&mut ping())).collect();
    assert!(over.iter().all(|at| *at == over[0]), "{over:?}");

    let rule = NodeConfig { other: OtherTraffic::Primary, first_packets: 0, ..fixed(0, 1) };
    let mut world = World::new(rule);
    assert_eq!(world.send(&mut datagram(1)), 0);
    assert_eq!(world.segments(1, 1), [1], "TCP is steered all the same");
    assert_eq!(world.client().counters.other, 1);
}

#[test]
fn fragments_and_what_cannot_be_rewritten_stay_on_the_primary() {
    let mut world = World::new(NodeConfig { first_packets: 0, ..fixed(0, 1) });
    let mut fragment = segment(1, ACK);
    fragment[6] = 0x20;
    let ipsec = ip(server(), v4("10.0.0.1"), 50, &[], &[0; 40]);
    let cut_short = ip(server(), v4("10.0.0.1"), 6, &[], &[0; 19]);
    for packet in [fragment, ipsec, cut_short] {
        let mut sent = packet.clone();
        assert_eq!(world.send(&mut sent), 0);
        assert_eq!(sent, packet);
    }
    let counters = world.client().counters;
    assert_eq!((counters.fragments, counters.opaque, counters.steered), (1, 2, 0));
    assert_eq!(world.client().flows, 0);
}

#[test]
fn packets_of_no_client_go_on_or_are_dropped_by_rule() {
    let foreign = || tcp((server(), 80), (v4("10.9.9.9"), 1), ACK, b"");
    let from_stranger = || tcp((v4("10.9.9.9"), 1), (server(), 80), ACK, b"");
    let mut node = Node::new(fixed(1, 1), 7);
    let mut packet = foreign();
    assert_eq!(node.handle_downstream(Instant::ZERO, &mut packet), Downstream::Unknown);
    assert_eq!(packet, foreign());
    assert_eq!(node.handle_upstream(Instant::ZERO, &mut from_stranger()), Upstream::Forward);
    assert_eq!(node.status(Instant::ZERO).unknown, 2);

    let mut node = Node::new(NodeConfig { unknown: UnknownClient::Drop, ..fixed(1, 1) }, 7);
    let unknown = SteerDrop::UnknownClient;
    assert_eq!(node.handle_downstream(Instant::ZERO, &mut foreign()), Downstream::Drop(unknown));
    let up = node.handle_upstream(Instant::ZERO, &mut from_stranger());
    assert_eq!(up, Upstream::Drop(unknown));
    assert_eq!(node.status(Instant::ZERO).drops["unknown-client"], 2);
}

#[test]
fn malformed_packets_are_dropped_and_counted() {
    let mut node = Node::new(fixed(1, 1), 7);
    let whole = segment(1, ACK);
    let malformed = SteerDrop::Malformed;
    for length in 0..whole.len() {
        let mut packet = whole[..length].to_vec();
        let down = node.handle_downstream(Instant::ZERO, &mut packet);
        assert_eq!(down, Downstream::Drop(malformed));
        let up = node.handle_upstream(Instant::ZERO, &mut packet);
        assert_eq!(up, Upstream::Drop(malformed));
    }
    assert_eq!(node.status(Instant::ZERO).drops["malformed"], 2 * whole.len() as u64);
}

#[test]
fn packets_to_and_from_an_attachments_own_address_are_left_alone() {
    let mut world = World::new(fixed(1, 1));
    let to_wifi = || tcp((server(), 80), (v4("10.1.0.1"), 7), ACK, b"x");
    let mut packet = to_wifi();
    assert_eq!(world.send(&mut packet), 1);
    assert_eq!(packet, to_wifi());
    let from_wifi = || tcp((v4("10.1.0.1"), 7), (server(), 80), ACK, b"x");
    let mut packet = from_wifi();
    assert_eq!(world.node.handle_upstream(world.now, &mut packet), Upstream::Forward);
    assert_eq!(packet, from_wifi());
    let counters = world.client().counters;
    assert_eq!((counters.direct, counters.upstream_direct, counters.upstream_packets), (1, 1, 0));
}

#[test]
fn a_flood_of_flows_stays_within_its_bound() {
    let mut client = phone();
    client.name = "other".into();
    client.address = v4("10.0.0.2").into();
    client.attachments.truncate(1);
    let mut config = NodeConfig { flows_per_client_max: 50, first_packets: 1, ..fixed(0, 1) };
    config.clients.push(client);
    let mut world = World::new(config);
    let other = || tcp((server(), 80), (v4("10.0.0.2"), 1), ACK, b"x");
    world.send(&mut other());
    for n in 0..20_000_u32 {
        let source: IpAddr = (0x0b00_0000 + n * 7).to_be_bytes().into();
        let mut packet = tcp((source, n as u16), (v4("10.0.0.1"), 80), ACK, b"x");
        assert_eq!(world.send(&mut packet), 0, "a flow that is not known begins on the primary");
    }
    let status = world.node.status(world.now);
    let flows: Vec<_> =
        status.clients.iter().map(|client| (client.flows, client.flows_evicted)).collect();
    assert_eq!(flows, [(50, 20_000 - 50), (1, 0)]);
}

#[test]
fn idle_flows_are_forgotten() {
    let idle = Duration::from_secs(4);
    let mut world = World::new(NodeConfig { flow_idle: idle, ..fixed(1, 1) });
    world.segments(1, 1);
    assert_eq!(world.node.poll_timeout(), Some(Instant::from_millis(1000)));
    world.run_ms(3500);
    world.segments(2, 1);
    world.run_ms(1500);
    assert_eq!((world.client().flows, world.client().flows_expired), (1, 1));
    world.run_ms(5000);
    assert_eq!((world.client().flows, world.client().flows_expired), (0, 2));
    assert_eq!(world.node.poll_timeout(), None, "nothing is left to do");
}

#[test]
fn an_attachment_without_an_address_takes_packets_as_they_are() {
    let mut config = NodeConfig { first_packets: 0, ..fixed(0, 1) };
    config.clients[0].attachments[1].address = Addresses::NONE;
    let mut world = World::new(config);
    let mut packet = segment(1, ACK);
    assert_eq!(world.send(&mut packet), 1);
    assert_eq!(packet, segment(1, ACK));
}

#[test]
fn an_attachment_carries_the_families_that_it_has() {
    let mut config = NodeConfig { first_packets: 0, ..fixed(0, 1) };
    config.clients[0].attachments[1].address.v6 = None;
    let mut world = World::new(config);
    assert_eq!(world.segments(1, 2), [1, 1]);
    let mut packet = tcp((v4("::9"), 80), (v4("2001:db8::1"), 1), ACK, b"x");
    assert_eq!(world.send(&mut packet), 0);
    assert_eq!(world.segments(1, 2), [1, 1]);
}

/// What a test does to a sound configuration.
type Change<'a> = &'a dyn Fn(&mut NodeConfig);

#[test]
fn configurations_that_cannot_be_are_refused() {
    let sound = fixed(1, 1);
    let refused = |change: Change<'_>| {
        let mut config = sound.clone();
        change(&mut config);
        config.check().expect_err("refused").to_string()
    };
    let attachment = |config: &mut NodeConfig, at: usize, address: &str| {
        config.clients[0].attachments[at].address = v4(address).into();
    };
    let cases: [(&str, Change<'_>); 15] = [
        ("at least one client", &|c| c.clients.clear()),
        ("two clients are called `phone`", &|c| c.clients.push(phone())),
        ("client `phone`: no primary address", &|c| c.clients[0].address = Addresses::NONE),
        ("client `phone`: no attachment", &|c| c.clients[0].attachments.clear()),
        ("17 attachments", &|c| {
            c.clients[0].attachments =
                (0..17).map(|n| AttachmentConfig::primary(n.to_string())).collect();
        }),
        ("two attachments are called `lte`", &|c| c.clients[0].attachments[1].name = "lte".into()),
        ("must not have an address", &|c| attachment(c, 0, "10.0.0.7")),
        ("10.0.0.1 is used twice", &|c| attachment(c, 1, "10.0.0.1")),
        ("224.0.0.1 is not the address of one host", &|c| attachment(c, 1, "224.0.0.1")),
        ("no primary address of that family", &|c| c.clients[0].address.v6 = None),
        ("`inverse-rtt` needs round-trip times", &|c| c.policy = Policy::InverseRtt),
        ("`flows_per_client_max` is 0", &|c| c.flows_per_client_max = 0),
        ("`flow_idle` is 1ns; use 1 s to a day", &|c| c.flow_idle = Duration::from_nanos(1)),
        ("`probe interval` is 0ns", &|c| {
            c.probe = Some(ProbeConfig { interval: Duration::ZERO, ..Default::default() });
        }),
        ("`unanswered_max` is 0", &|c| {
            c.probe = Some(ProbeConfig { unanswered_max: 0, ..Default::default() });
        }),
    ];
    assert_eq!(sound.check(), Ok(()));
    for (expected, change) in cases {
        let error = refused(change);
        assert!(error.contains(expected), "{error}");
    }
}
