//! Random operations: whatever happens, every packet for a client goes over one attachment that may
//! have it, and arrives there as if it had been sent there.

use proptest::prelude::*;

use super::*;
use crate::dida::DidaConfig;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Tcp(u8),
    Udp,
    Echo,
    Fragment,
    Opaque,
}

#[derive(Clone, Debug)]
enum Op {
    Down { client: usize, v6: bool, port: u16, kind: Kind },
    Up { client: usize, port: u16 },
    Pass { ms: u64 },
    Answer { probe: usize },
    Owner { client: u16, attachment: u8, up: bool },
    Reload { setup: usize },
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        8 => Just(Kind::Tcp(ACK)),
        2 => prop::sample::select(vec![SYN, SYN | ACK, FIN | ACK, RST]).prop_map(Kind::Tcp),
        3 => Just(Kind::Udp),
        1 => Just(Kind::Echo),
        1 => Just(Kind::Fragment),
        1 => Just(Kind::Opaque),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    let down = (0_usize..3, any::<bool>(), 0_u16..8, any_kind());
    prop_oneof![
        12 => down.prop_map(|(client, v6, port, kind)| Op::Down { client, v6, port, kind }),
        2 => (0_usize..3, 0_u16..8).prop_map(|(client, port)| Op::Up { client, port }),
        4 => (1_u64..400).prop_map(|ms| Op::Pass { ms }),
        6 => (0_usize..8).prop_map(|probe| Op::Answer { probe }),
        1 => (0_u16..3, 0_u8..4, any::<bool>())
            .prop_map(|(client, attachment, up)| Op::Owner { client, attachment, up }),
        1 => (0_usize..SETUPS).prop_map(|setup| Op::Reload { setup }),
    ]
}

const SETUPS: usize = 6;

/// Configurations from simple to rich. The phone is always there.
fn setup(n: usize) -> NodeConfig {
    let probe = Some(ProbeConfig::default());
    let mut config = NodeConfig { flows_per_client_max: 3, first_packets: 2, ..fixed(1, 2) };
    if n >= 1 {
        config = NodeConfig { probe, policy: Policy::InverseRtt, ..config };
        let address = Addresses::from(v4("10.0.0.2"));
        let attachments =
            vec![AttachmentConfig::primary("lte"), AttachmentConfig::at("wifi", v4("10.1.0.2"))];
        config.clients.insert(0, ClientConfig { name: "van".into(), address, attachments });
    }
    match n {
        2 => NodeConfig {
            policy: Policy::MinRtt,
            dida: Some(DidaConfig::default()),
            unknown: UnknownClient::Drop,
            ..config
        },
        3 => NodeConfig {
            policy: Policy::CheapestFirst,
            granularity: Granularity::Flow,
            other: OtherTraffic::Primary,
            ..config
        },
        4 => {
            config.clients[1].attachments.insert(1, AttachmentConfig::primary("as it is"));
            config.clients[1].attachments[2].address.v6 = None;
            NodeConfig { policy: Policy::RoundRobin, ..config }
        }
        5 => NodeConfig { policy: Policy::Capacity, ..config },
        _ => config,
    }
}

fn address(client: usize, v6: bool) -> IpAddr {
    v4(match (client, v6) {
        (0, false) => "10.0.0.1",
        (0, true) => "2001:db8::1",
        (1, false) => "10.0.0.2",
        (1, true) => "2001:db8::2",
        (_, false) => "10.0.0.3",
        (_, true) => "2001:db8::3",
    })
}

fn build(kind: Kind, to: IpAddr, port: u16) -> Vec<u8> {
    let from = if to.is_ipv4() { server() } else { v4("::9") };
    match kind {
        Kind::Tcp(flags) => tcp((from, 80), (to, port), flags, b"data"),
        Kind::Udp => udp((from, 53), (to, port), b"data", port == 1),
        Kind::Echo => echo(from, to, b"data"),
        Kind::Fragment if to.is_ipv4() => {
            let mut packet = udp((from, 53), (to, port), b"data", false);
            packet[6] = 0x20;
            packet
        }
        Kind::Fragment => ip(from, to, 44, &[], &[17, 0, 0, 1, 0, 0, 0, 1, 7]),
        Kind::Opaque => ip(from, to, 50, &[], &[0; 30]),
    }
}

struct Case {
    node: Node,
    now: Instant,
    probes: Vec<Probe>,
    /// Packets given to the phone.
    given: u64,
}

impl Case {
    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Down { client, v6, port, kind } => self.down(client, v6, port, kind),
            Op::Up { client, port } => {
                let mut packet = tcp((address(client, false), port), (server(), 80), ACK, b"");
                let _ = self.node.handle_upstream(self.now, &mut packet);
                while self.node.poll_transmit().is_some() {}
            }
            Op::Pass { ms } => {
                self.now += Duration::from_millis(ms);
                self.node.handle_timeout(self.now);
                let next = self.node.poll_timeout();
                assert!(next.is_none_or(|next| next > self.now), "what was due is done");
                while let Some(probe) = self.node.poll_probe() {
                    self.probes.push(probe);
                }
                let excess = self.probes.len().saturating_sub(8);
                self.probes.drain(..excess);
            }
            Op::Answer { probe } if probe < self.probes.len() => {
                let probe = self.probes.remove(probe);
                self.node.handle_probe_reply(self.now, probe.attachment, probe.number);
            }
            Op::Answer { .. } => {}
            Op::Owner { client, attachment, up } => {
                let id = AttachmentId { client, attachment };
                self.node.set_attachment_up(self.now, id, up);
            }
            Op::Reload { setup: n } => {
                self.node.reconfigure(self.now, setup(n));
                self.probes.clear();
            }
        }
    }

    fn down(&mut self, client: usize, v6: bool, port: u16, kind: Kind) {
        let to = address(client, v6);
        let mut packet = build(kind, to, port);
        let before = packet.clone();
        let config = self.node.config().clone();
        let place = config.clients.iter().position(|it| it.address.like(to) == Some(to));
        let Some(place) = place else {
            let verdict = self.node.handle_downstream(self.now, &mut packet);
            assert!(!matches!(verdict, Downstream::Forward(_)), "{verdict:?}");
            assert_eq!(packet, before);
            return;
        };
        let states: Vec<bool> = self.node.status(self.now).clients[place]
            .attachments
            .iter()
            .map(|it| it.state == AttachmentState::Up)
            .collect();
        let verdict = self.node.handle_downstream(self.now, &mut packet);
        let Downstream::Forward(id) = verdict else { panic!("a client's packet: {verdict:?}") };
        assert_eq!(usize::from(id.client), place);
        let at = usize::from(id.attachment);
        assert!(states[at] || at == 0, "only the primary is used without being up");
        let attachment = &config.clients[place].attachments[at];
        let arrives_at = attachment.address.like(to).unwrap_or(to);
        let as_it_is = attachment.address.is_empty();
        assert!(as_it_is || arrives_at != to, "it has no address of this family");
        if matches!(kind, Kind::Fragment | Kind::Opaque) {
            assert!(as_it_is, "what cannot be rewritten is not");
            assert_eq!(packet, before);
        } else {
            assert_eq!(packet, build(kind, arrives_at, port));
        }
        let is_control = matches!(kind, Kind::Tcp(flags) if flags & (SYN | FIN | RST) != 0);
        assert!(!is_control || !states[0] || at == 0, "it belongs on the primary");
        self.given += u64::from(client == 0);
    }

    fn check(&self) {
        let status = self.node.status(self.now);
        let phone = status.clients.last().expect("the phone is there");
        assert!(phone.flows <= 3, "{} flows", phone.flows);
        let of = &phone.counters;
        let counted = of.steered + of.control + of.first + of.fragments + of.opaque + of.other;
        assert_eq!(counted + of.last_resort, self.given, "every packet is counted once");
    }
}

proptest! {
    #[test]
    fn whatever_happens_packets_go_where_they_may(
        first in 0..SETUPS,
        ops in prop::collection::vec(any_op(), 0..300),
    ) {
        let node = Node::new(setup(first), 7);
        let mut case = Case { node, now: Instant::ZERO, probes: Vec::new(), given: 0 };
        for op in &ops {
            case.apply(op);
            case.check();
        }
    }
}
