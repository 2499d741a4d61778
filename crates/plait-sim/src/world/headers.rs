//! Converts segments of the TCP model to IPv4 packets with real headers, for nodes between two
//! hosts that read or change them; and back from the bytes, so that a sender sees those changes.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeMap;

use plait_proto::wire::tcp::{SackBlock, TcpFlags, TcpFlow, TcpPacket, TcpSegment, TcpSeq};

use crate::packet::{End, Packet};
use crate::scenario::Scenario;
use crate::tcp::{Flags, ReceiverConfig, SackOption, Segment, SeqRange};

const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// First sequence number: close enough below 2^32 that every longer transfer wraps around.
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
    let [high, low] = (client + 1).to_be_bytes();
    Ipv4Addr::new(10, attachment, high, low).into()
}

/// Constants of an application.
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
    /// By application and flow: the highest position written, to which 32-bit sequence numbers are
    /// extended.
    highest: BTreeMap<(usize, u32), u64>,
    udp: Vec<u8>,
}

impl Headers {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let head = |spec: &crate::scenario::AppSpec| {
            let tcp = spec.traffic.tcp();
            let window = tcp.map_or(ReceiverConfig::WINDOW_BYTES_MAX, |tcp| tcp.window_bytes_max);
            let scale = (0..SCALE_MAX).find(|scale| window >> scale <= WINDOW_MAX);
            AppHead { client: spec.client, scale: scale.unwrap_or(SCALE_MAX) }
        };
        let apps = scenario.apps.iter().map(head).collect();
        Self { apps, highest: BTreeMap::new(), udp: Vec::new() }
    }

    /// A packet's bytes on the wire; for TCP with its segment.
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
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(segment.flags.syn, TcpFlags::SYN) | flag(segment.flags.ack, TcpFlags::ACK);
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

    /// A UDP packet's headers; nobody reads its content on the way.
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

    /// Reads an acknowledgement on its way to a sender: the application, the stream, and the
    /// segment.
    pub(super) fn read(&self, bytes: &[u8]) -> (usize, u32, Segment) {
        let tcp = TcpPacket::read(bytes).expect("what was written here is TCP, and stays so");
        let (app, flow_number) = self.place_of(&tcp.flow());
        let highest = self.highest.get(&(app, flow_number)).copied().unwrap_or_default();
        let (ts, echo) = tcp.timestamps().unwrap_or_default();
        let is_syn = tcp.flags().any(TcpFlags::SYN);
        // Acknowledgements carry sequence numbers of the empty direction, data those of the other.
        let is_data = tcp.payload_bytes() > 0 || (is_syn && !tcp.flags().any(TcpFlags::ACK));
        let (data, empty) = ((DATA_START, highest), (EMPTY_START, 0));
        let (own, other) = if is_data { (data, empty) } else { (empty, data) };
        let acked = |seq: TcpSeq| position(other, seq);
        let range =
            |block: SackBlock| SeqRange { start: acked(block.left), end: acked(block.right) };
        let mut blocks = tcp.sack_blocks().map(range);
        let dsack = if tcp.has_dsack() { blocks.next() } else { None };
        let scale = if is_syn { 0 } else { self.apps[app].scale };
        let segment = Segment {
            seq: if is_syn { 0 } else { position(own, tcp.seq()) },
            len: tcp.payload_bytes().into(),
            ack: if tcp.flags().any(TcpFlags::ACK) { acked(tcp.ack()) } else { 0 },
            sack: SackOption::new(dsack, blocks),
            window: u64::from(tcp.window()) << scale,
            flags: Flags { syn: is_syn, ack: tcp.flags().any(TcpFlags::ACK) },
            ts_ms: ts.into(),
            ts_echo_ms: echo.into(),
            // TCP has no packet numbers.
            number: 0,
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
    Packet { bytes: length, ..*template }
}

/// The sequence number of a position in a stream whose SYN has the number `start`.
fn number(start: TcpSeq, position: u64) -> TcpSeq {
    start.plus(1).plus(low(position))
}

/// The position in a stream that has this sequence number and is nearest to a known one.
fn position((start, near): (TcpSeq, u64), seq: TcpSeq) -> u64 {
    let distance = seq.since(number(start, near)) as i32;
    near.saturating_add_signed(distance.into())
}

const fn low(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use plait_proto::time::Instant;
    use plait_proto::wire::tcp::mask_sack;

    use super::*;
    use crate::packet::Protocol;
    use crate::scenario::Experiment;

    /// Two clients with TCP each way.
    fn headers() -> Headers {
        let text = "name = \"x/y\"\ntitle = \"t\"\nsource = \"s\"\nduration_s = 1\n\
            links.a = { rate_mbit = 10, rtt_ms = 10 }\nsteer = { links = [\"a\"], clients = 2 }\n\
            app = [{ name = \"d\", kind = \"tcp\" }, \
            { name = \"u\", kind = \"tcp\", direction = \"up\", client = 2 }]\n";
        let read = |_: &Path| Ok(text.to_owned());
        let none: [&str; 0] = [];
        let experiment = Experiment::load(Path::new("y.toml"), &none, &read);
        Headers::new(&experiment.unwrap_or_else(|errors| panic!("{errors}")).scenario)
    }

    fn packet(app: usize, stream: u32, to: End) -> Packet {
        Packet {
            app,
            stream,
            number: 5,
            sent_at: Instant::ZERO,
            bytes: 0,
            protocol: Protocol::Tcp,
            dscp: 0,
            to,
        }
    }

    #[test]
    fn what_is_read_is_what_was_written_also_where_numbers_wrap() {
        let mut headers = headers();
        // The sequence numbers of data wrap within this.
        for base in [0, 2_990_000, 3_000_001, 9_000_000_000] {
            let data = Segment {
                seq: base,
                len: 1448,
                flags: Flags { syn: false, ack: true },
                ts_ms: 77,
                ts_echo_ms: 70,
                ..Segment::default()
            };
            let dsack = (base > 0).then(|| SeqRange::new(base - 2000, 1000));
            let blocks = [SeqRange::new(base + 2000, 1000), SeqRange::new(base + 9000, 500)];
            let ack = Segment {
                ack: base + 500,
                sack: SackOption::new(dsack, blocks),
                window: 64 * 1024,
                flags: Flags { syn: false, ack: true },
                ts_ms: 80,
                ts_echo_ms: 77,
                ..Segment::default()
            };
            for (app, to) in [(0, End::Customer), (1, End::Server)] {
                for (stream, to, segment) in [(6, to, data), (7, to.other(), ack)] {
                    let bytes = headers.write(&packet(app, stream, to), Some(&segment));
                    assert_eq!(bytes.len() as u64, segment.ip_bytes());
                    assert_eq!(headers.read(&bytes), (app, stream, segment), "{base}");
                }
            }
        }
    }

    #[test]
    fn a_masked_acknowledgement_is_read_without_its_blocks() {
        let mut headers = headers();
        let sack = SackOption::new(None, [SeqRange::new(2000, 1000)]);
        let flags = Flags { syn: false, ack: true };
        let ack = Segment { ack: 1000, sack, flags, ..Segment::default() };
        let mut bytes = headers.write(&packet(0, 1, End::Server), Some(&ack));
        assert!(mask_sack(&mut bytes));
        let sack = SackOption::default();
        assert_eq!(headers.read(&bytes), (0, 1, Segment { sack, ..ack }));
    }

    #[test]
    fn clients_have_addresses_of_their_own_on_each_attachment() {
        let headers = headers();
        let flow = headers.flow(&packet(1, 0, End::Server));
        assert_eq!((flow.source, flow.destination), (client_address(1, 0), SERVER.into()));
        let all = [(0, 0), (1, 0), (0, 1), (255, 0), (256, 0)];
        let all: std::collections::BTreeSet<_> = all.map(|(c, a)| client_address(c, a)).into();
        assert_eq!(all.len(), 5);
    }
}
