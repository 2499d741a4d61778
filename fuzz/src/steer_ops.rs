//! Target `steer_ops`: packets, time, probes' answers and reloads into a steering node with DIDA.
//!
//! Whatever happens: a packet changes in its destination and its checksums alone, and those stay as
//! right as they were; it goes over an attachment that is up, or the primary; what was due is done;
//! tables are bounded; nothing from a client is lost or held for ever.

use core::net::Ipv4Addr;

use plait_proto::dida::{DidaConfig, HoldPolicy};
use plait_proto::steer::{
    Addresses, AttachmentConfig, AttachmentId, AttachmentState, ClientConfig, Downstream,
    Granularity, Node, NodeConfig, OtherTraffic, Policy, Probe, ProbeConfig, UnknownClient,
    Upstream,
};
use plait_proto::time::{Duration, Instant};

use crate::input::Input;
use crate::reached;

const STEPS_MAX: usize = 2000;
const FLOWS_MAX: u32 = 4;
const PROBES_MAX: usize = 16;
const SERVER: [u8; 4] = [192, 0, 2, 9];

/// Runs the operations in `data`.
pub fn steer_ops(data: &[u8]) {
    let mut input = Input::new(data);
    let mut case = Case::new(&mut input);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        case.step(&mut input);
        case.check();
    }
    case.finish();
}

struct Case {
    node: Node,
    now: Instant,
    probes: Vec<Probe>,
}

fn config(input: &mut Input<'_>) -> NodeConfig {
    let client = |n: u8, attachments: u8| ClientConfig {
        name: format!("client {n}"),
        address: Addresses {
            v4: Some(Ipv4Addr::new(10, 0, 0, n)),
            v6: Some(u128::from(n + 1).into()),
        },
        attachments: (0..attachments).map(|at| attachment(n, at)).collect(),
    };
    let probe = ProbeConfig { timeout: Duration::from_millis(300), ..ProbeConfig::default() };
    let hold = input.pick([HoldPolicy::Optimum, HoldPolicy::Fixed(Duration::from_millis(30))]);
    NodeConfig {
        clients: vec![client(1, 2), client(2, 1 + input.u8() % 3)],
        policy: input.pick(Policy::ALL),
        granularity: input.pick([Granularity::Packet, Granularity::Packet, Granularity::Flow]),
        first_packets: input.pick([0, 2, 10]),
        other: input.pick([OtherTraffic::Flow, OtherTraffic::Primary]),
        unknown: input.pick([UnknownClient::Forward, UnknownClient::Drop]),
        probe: Some(probe),
        flows_per_client_max: FLOWS_MAX,
        flow_idle: Duration::from_secs(2),
        dida: input.flag().then_some(DidaConfig { hold, ..DidaConfig::default() }),
    }
}

/// Attachments of three kinds: the primary, one with both families, one with IPv4 alone.
fn attachment(client: u8, at: u8) -> AttachmentConfig {
    let address = Addresses {
        v4: (at > 0).then(|| Ipv4Addr::new(10, at, 0, client)),
        v6: (at == 1).then(|| (u128::from(client) << 64).into()),
    };
    AttachmentConfig { address, weight: at.into(), ..AttachmentConfig::primary(at.to_string()) }
}

impl Case {
    fn new(input: &mut Input<'_>) -> Self {
        let node = Node::new(config(input), input.u64());
        Self { node, now: Instant::ZERO, probes: Vec::new() }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() % 16 {
            0..=6 => {
                let mut packet = downstream_packet(input);
                spoil(&mut packet, input);
                self.down(packet);
            }
            7..=9 => {
                let mut packet = upstream_packet(input);
                spoil(&mut packet, input);
                self.up(packet);
            }
            10 => self.pass(Duration::from_millis(input.u16().into())),
            11 => self.pass(Duration::from_millis((input.u8() % 50).into())),
            12 | 13 => {
                let at = input.index(self.probes.len());
                if at < self.probes.len() {
                    let probe = self.probes.remove(at);
                    self.node.handle_probe_reply(self.now, probe.attachment, probe.number);
                }
            }
            14 => {
                let [client, attachment] = [input.u8() % 3, input.u8() % 4];
                let id = AttachmentId { client: client.into(), attachment };
                self.node.set_attachment_up(self.now, id, input.flag());
            }
            _ => {
                self.node.reconfigure(self.now, config(input));
                self.probes.clear();
            }
        }
        self.drain();
    }

    fn down(&mut self, mut packet: Vec<u8>) {
        let before = packet.clone();
        let status = self.node.status(self.now);
        match self.node.handle_downstream(self.now, &mut packet) {
            Downstream::Forward(id) => {
                check_rewriting(&before, &packet);
                let client = &status.clients[usize::from(id.client)];
                let attachment = &client.attachments[usize::from(id.attachment)];
                let direct = packet == before && id.attachment > 0;
                let up = attachment.state == AttachmentState::Up;
                assert!(up || direct || id.attachment == 0, "an attachment that is down");
            }
            Downstream::Unknown | Downstream::Drop(_) => {
                assert_eq!(packet, before, "what is not sent over an attachment stays as it is");
            }
        }
    }

    fn up(&mut self, mut packet: Vec<u8>) {
        let before = packet.clone();
        match self.node.handle_upstream(self.now, &mut packet) {
            Upstream::Held => {}
            Upstream::Forward | Upstream::Drop(_) => {
                assert_eq!(packet.len(), before.len());
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.node.handle_timeout(self.now);
        let next = self.node.poll_timeout();
        assert!(next.is_none_or(|next| next > self.now), "what was due is done");
        while let Some(probe) = self.node.poll_probe() {
            if self.probes.len() < PROBES_MAX {
                self.probes.push(probe);
            }
        }
    }

    fn drain(&mut self) {
        while self.node.poll_transmit().is_some() {}
    }

    fn check(&self) {
        let status = self.node.status(self.now);
        for client in &status.clients {
            assert!(client.flows <= FLOWS_MAX.into(), "{} flows", client.flows);
            let share: f64 = client.attachments.iter().map(|it| it.share).sum();
            assert!(share == 0.0 || (share - 1.0).abs() < 1e-9, "shares add up to {share}");
        }
    }

    /// Time passes until nothing can be held any more.
    fn finish(mut self) {
        for _ in 0..100 {
            self.pass(Duration::from_millis(100));
            self.drain();
        }
        let status = self.node.status(self.now);
        reached::statistics("steer_ops", &format!("{status:?}"));
        if let Some(dida) = status.dida {
            assert_eq!(dida.held_now, 0, "nothing is held for ever");
        }
    }
}

/// A packet towards one of the clients or a stranger.
fn downstream_packet(input: &mut Input<'_>) -> Vec<u8> {
    let to = input.pick([1, 1, 1, 2, 3]);
    let third = input.pick([0, 0, 0, 1]);
    let port = u16::from(input.u8() % 8);
    let v6 = input.u8().is_multiple_of(4);
    if v6 {
        return segment_v6(u128::from(to) + 1, port, input);
    }
    let protocol = input.pick([6, 6, 6, 17, 1, 50]);
    packet_v4(SERVER, [10, third, 0, to], protocol, &transport(80, port, input))
}

fn upstream_packet(input: &mut Input<'_>) -> Vec<u8> {
    let from = input.pick([1, 1, 1, 2, 3]);
    let third = input.pick([0, 0, 0, 1]);
    let port = u16::from(input.u8() % 8);
    packet_v4([10, third, 0, from], SERVER, 6, &transport(port, 80, input))
}

/// A TCP segment whose numbers repeat often; as any other protocol it is as good as random.
fn transport(source: u16, destination: u16, input: &mut Input<'_>) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend_from_slice(&source.to_be_bytes());
    segment.extend_from_slice(&destination.to_be_bytes());
    let [seq, ack] = [input.u8() % 8, input.u8() % 8].map(|n| u32::from(n) * 1000);
    segment.extend_from_slice(&seq.to_be_bytes());
    segment.extend_from_slice(&ack.to_be_bytes());
    let flags = input.pick([0x10, 0x10, 0x10, 0x10, 0x18, 0x02, 0x12, 0x11, 0x04]);
    segment.extend_from_slice(&[0x50, flags, 1, 0]);
    segment.extend_from_slice(&input.u16().to_be_bytes());
    segment.extend_from_slice(&[0, 0]);
    segment.resize(20 + usize::from(input.pick([0_u8, 0, 1, 200])), 7);
    segment
}

fn packet_v4(from: [u8; 4], to: [u8; 4], protocol: u8, segment: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend_from_slice(&(20 + segment.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0x55, 0xaa]);
    packet.extend_from_slice(&from);
    packet.extend_from_slice(&to);
    packet.extend_from_slice(segment);
    packet
}

fn segment_v6(to: u128, port: u16, input: &mut Input<'_>) -> Vec<u8> {
    let protocol = input.pick([6, 6, 17, 58, 44, 0]);
    let segment = transport(80, port, input);
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&(segment.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[protocol, 64]);
    packet.extend_from_slice(&9_u128.to_be_bytes());
    packet.extend_from_slice(&to.to_be_bytes());
    packet.extend_from_slice(&segment);
    packet
}

/// Changes or cuts some packets.
fn spoil(packet: &mut Vec<u8>, input: &mut Input<'_>) {
    match input.u8() {
        250.. => packet.truncate(input.index(packet.len())),
        240..250 => {
            let at = input.index(packet.len());
            packet[at] = input.u8();
        }
        _ => {}
    }
}

/// Only destination and checksums have changed, and what was right is right.
fn check_rewriting(before: &[u8], after: &[u8]) {
    assert_eq!(before.len(), after.len());
    if before == after {
        return;
    }
    let v4 = before[0] >> 4 == 4;
    let (header, addresses) = match v4 {
        true => (usize::from(before[0] & 15) * 4, 12..20),
        false => (40, 8..40),
    };
    let checksum_at = match (if v4 { before[9] } else { before[6] }, v4) {
        (6, _) => Some(header + 16),
        (17, _) => Some(header + 6),
        (58, false) => Some(header + 2),
        _ => None,
    };
    let destination = addresses.start + addresses.len() / 2..addresses.end;
    for at in 0..before.len() {
        let in_checksum = checksum_at.is_some_and(|start| (start..start + 2).contains(&at));
        let in_header = v4 && (10..12).contains(&at);
        let may_change = in_checksum || in_header || destination.contains(&at);
        assert!(may_change || before[at] == after[at], "byte {at} changed");
    }
    if v4 {
        assert_eq!(sum(&[&before[..header]]), sum(&[&after[..header]]), "the header's checksum");
    }
    let Some(at) = checksum_at else { return };
    if before[at..at + 2] == [0, 0] && before[if v4 { 9 } else { 6 }] == 17 {
        assert_eq!(after[at..at + 2], [0, 0], "no checksum stays none");
        return;
    }
    let covered = |packet: &[u8]| sum(&[&packet[addresses.clone()], &packet[header..]]);
    assert_eq!(covered(before), covered(after), "the transport's checksum");
}

/// The one's complement sum, in which all ones and zero are the same.
fn sum(parts: &[&[u8]]) -> u32 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    words.map(word).fold(0, |sum, word| (sum + word) % 0xffff)
}
