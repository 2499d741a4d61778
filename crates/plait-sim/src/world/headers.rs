//! Segments of the TCP model as IPv4 packets with real headers, for what stands between two hosts
//! and reads or changes them; and back from the bytes, so that a sender sees what was made of them.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;

use plait_proto::wire::tcp::{SackBlock, TcpFlags, TcpFlow, TcpPacket, TcpSegment, TcpSeq};

use super::packet::{End, Packet, Protocol};
use crate::scenario::Scenario;
use crate::scenario::app::Traffic;
use crate::tcp::{Flags, ReceiverConfig, SackOption, Segment, SeqRange};

const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Where sequence numbers begin: low enough beneath 2^32 that every longer transfer wraps around.
const DATA_START: TcpSeq = TcpSeq(u32::MAX - 3_000_000);
/// The other direction carries no data.
const EMPTY_START: TcpSeq = TcpSeq(7);
/// Ports of applications begin here, one for each; flows have ephemeral ones.
const PORTS_FROM: u16 = 5000;
const EPHEMERAL: u16 = 0x8000;
const IPV4_UDP_BYTES: usize = 28;
/// Largest window in a header (RFC 9293 section 3.1), and the largest scale (RFC 7323).
const WINDOW_MAX: u64 = 65_535;
const SCALE_MAX: u32 = 14;

/// The address of a steering node's client on an attachment; the first is the primary.
pub(super) fn client_address(client: u16, attachment: u8) -> IpAddr {
    let [high, low] = client.to_be_bytes();
    Ipv4Addr::new(10, attachment, high, low + 1).into()
}

/// What of an application does not change.
#[derive(Clone, Copy, Debug)]
struct AppHead {
    client: u16,
    /// Window scale (RFC 7323 section 2) of its receivers.
    scale: u32,
}

/// Writes and reads packets of a scenario's applications.
#[derive(Debug)]
pub(super) struct Headers {
    apps: Vec<AppHead>,
    /// By application and flow: the highest sequence number that was written, from which 32 bits
    /// are understood.
    highest: BTreeMap<(usize, u32), u64>,
    udp: Vec<u8>,
}

impl Headers {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let head = |spec: &crate::scenario::AppSpec| {
            let window = match &spec.traffic {
                Traffic::Tcp(tcp) => tcp.tcp.window_bytes_max,
                Traffic::Web(web) => web.tcp.window_bytes_max,
                Traffic::Udp(_) | Traffic::OnOff(_) | Traffic::Voip(_) => {
                    ReceiverConfig::WINDOW_BYTES_MAX
                }
            };
            let scale = (0..SCALE_MAX).find(|scale| window >> scale <= WINDOW_MAX);
            AppHead { client: spec.client, scale: scale.unwrap_or(SCALE_MAX) }
        };
        let apps = scenario.apps.iter().map(head).collect();
        Self { apps, highest: BTreeMap::new(), udp: Vec::new() }
    }

    /// A packet as it stands on the wire; TCP with its segment.
    pub(super) fn write(&mut self, packet: &Packet, segment: Option<&Segment>) -> Vec<u8> {
        match segment {
            Some(segment) => self.write_tcp(packet, segment),
            None => self.write_udp(packet),
        }
    }

    fn write_tcp(&mut self, packet: &Packet, segment: &Segment) -> Vec<u8> {
        let is_data = packet.stream.is_multiple_of(2);
        let highest = self.highest.entry((packet.app, packet.stream / 2)).or_default();
        *highest = (*highest).max(segment.seq + segment.len).max(segment.ack);
        let (own, other) =
            if is_data { (DATA_START, EMPTY_START) } else { (EMPTY_START, DATA_START) };
        // The model's SYN takes no sequence number; a real one takes the first.
        let seq = if segment.flags.syn { own } else { number(own, segment.seq) };
        let ack = if segment.flags.ack { number(other, segment.ack) } else { TcpSeq(0) };
        let block = |range: SeqRange| SackBlock {
            left: number(other, range.start),
            right: number(other, range.end),
        };
        let ranges = segment.sack.dsack().into_iter().chain(segment.sack.blocks().iter().copied());
        let blocks: Vec<SackBlock> = ranges.map(block).collect();
        let scale = if segment.flags.syn { 0 } else { self.apps[packet.app].scale };
        let payload = vec![0; usize::try_from(segment.len).expect("a segment fits a packet")];
        let flags = u8::from(segment.flags.syn) * TcpFlags::SYN
            | u8::from(segment.flags.ack) * TcpFlags::ACK;
        TcpSegment {
            flow: self.flow(packet),
            flags: TcpFlags(flags),
            seq,
            ack,
            window: u16::try_from((segment.window >> scale).min(WINDOW_MAX))
                .expect("no more than 65535"),
            timestamps: Some((low(segment.ts_ms), low(segment.ts_echo_ms))),
            sack: &blocks,
            payload: &payload,
        }
        .to_packet()
    }

    /// A UDP packet's headers; its content is nobody's business on the way.
    fn write_udp(&mut self, packet: &Packet) -> Vec<u8> {
        let flow = self.flow(packet);
        let bytes = usize::from(packet.bytes);
        self.udp.clear();
        self.udp.resize(bytes.max(IPV4_UDP_BYTES), 0);
        self.udp[0] = 0x45;
        self.udp[2..4].copy_from_slice(&packet.bytes.to_be_bytes());
        self.udp[8..10].copy_from_slice(&[64, 17]);
        for (at, address) in [(12, flow.source), (16, flow.destination)] {
            if let IpAddr::V4(address) = address {
                self.udp[at..at + 4].copy_from_slice(&address.octets());
            }
        }
        self.udp[20..22].copy_from_slice(&flow.source_port.to_be_bytes());
        self.udp[22..24].copy_from_slice(&flow.destination_port.to_be_bytes());
        self.udp[24..26].copy_from_slice(&(packet.bytes - 20).to_be_bytes());
        self.udp.clone()
    }

    /// What an acknowledgement on its way to a sender says now: the application, the stream, and
    /// the segment.
    pub(super) fn read(&self, bytes: &[u8]) -> (usize, u32, Segment) {
        let tcp = TcpPacket::read(bytes).expect("what was written here is TCP, and stays so");
        let (app, flow_number) = self.place_of(&tcp.flow());
        let highest = self.highest.get(&(app, flow_number)).copied().unwrap_or_default();
        let (ts, echo) = tcp.timestamps().unwrap_or_default();
        let is_syn = tcp.flags().any(TcpFlags::SYN);
        // Acknowledgements carry the sequence numbers of the empty direction, data the others'.
        let is_data = tcp.payload_bytes() > 0 || (is_syn && !tcp.flags().any(TcpFlags::ACK));
        let (own, other) =
            if is_data { (DATA_START, EMPTY_START) } else { (EMPTY_START, DATA_START) };
        let acked = |seq: TcpSeq| position(other, seq, highest);
        let range =
            |block: SackBlock| SeqRange { start: acked(block.left), end: acked(block.right) };
        let mut blocks = tcp.sack_blocks().map(range);
        let dsack = if tcp.has_dsack() { blocks.next() } else { None };
        let scale = if is_syn { 0 } else { self.apps[app].scale };
        let segment = Segment {
            seq: if is_syn { 0 } else { position(own, tcp.seq(), highest) },
            len: tcp.payload_bytes().into(),
            ack: if tcp.flags().any(TcpFlags::ACK) { acked(tcp.ack()) } else { 0 },
            sack: SackOption::new(dsack, blocks),
            window: u64::from(tcp.window()) << scale,
            flags: Flags { syn: is_syn, ack: tcp.flags().any(TcpFlags::ACK) },
            ts_ms: ts.into(),
            ts_echo_ms: echo.into(),
        };
        (app, 2 * flow_number + u32::from(!is_data), segment)
    }

    fn flow(&self, packet: &Packet) -> TcpFlow {
        let app = u16::try_from(packet.app).expect("an application's number is below APPS_MAX");
        let flow = (packet.stream / 2) as u16 & !EPHEMERAL;
        let down = TcpFlow {
            source: SERVER.into(),
            destination: client_address(self.apps[packet.app].client, 0),
            source_port: PORTS_FROM + app,
            destination_port: EPHEMERAL | flow,
        };
        if packet.to == End::Customer { down } else { down.reversed() }
    }

    /// Application and flow of a packet.
    fn place_of(&self, flow: &TcpFlow) -> (usize, u32) {
        let down = if flow.source == IpAddr::from(SERVER) { *flow } else { flow.reversed() };
        let app = usize::from(down.source_port - PORTS_FROM);
        (app, u32::from(down.destination_port & !EPHEMERAL))
    }
}

/// A packet of a segment that was read back.
pub(super) fn packet_of(template: &Packet, bytes: &[u8]) -> Packet {
    let length = u16::try_from(bytes.len()).expect("what was written fits 16 bits");
    Packet { bytes: length, protocol: Protocol::Tcp, ..*template }
}

/// The sequence number of a position in a stream whose SYN has the number `start`.
fn number(start: TcpSeq, position: u64) -> TcpSeq {
    start.plus(1).plus(low(position))
}

/// The position in a stream that has this sequence number and is nearest to `near`.
fn position(start: TcpSeq, seq: TcpSeq, near: u64) -> u64 {
    let distance = seq.since(number(start, near)) as i32;
    near.saturating_add_signed(distance.into())
}

const fn low(number: u64) -> u32 {
    number as u32
}
