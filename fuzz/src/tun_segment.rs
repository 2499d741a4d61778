//! Splitting and joining of what a TUN device reads and writes: any vnet header before any bytes,
//! and runs of packets that almost follow each other.

use plait_net::batch::PacketBatch;
use plait_net::checksum::Sum;
use plait_net::tun::coalesce::{Candidate, Coalescer};
use plait_net::tun::segment::{Identification, split};
use plait_net::tun::vnet::{Gso, VNET_HEADER_LEN, VnetHeader};

use crate::input::Input;
use crate::reached;

const PACKETS_MAX: usize = 100;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Splitting keeps every payload byte; joining and splitting again restores every packet.
pub fn tun_segment(data: &[u8]) {
    let mut input = Input::new(data);
    match input.u8() % 3 {
        0 => {
            if let Some((header, packet)) = data[1.min(data.len())..].split_first_chunk() {
                split_any(header, packet);
            }
        }
        1 => {
            let header = read_header(&mut input);
            let mut packet = IpPacket::read(&mut input);
            packet.payload = input.bytes(usize::MAX).to_vec();
            split_any(&header, &packet.to_bytes());
        }
        _ => join_and_split(&run_of_packets(&mut input)),
    }
}

/// A header whose kind of segmentation is one that exists.
fn read_header(input: &mut Input<'_>) -> [u8; VNET_HEADER_LEN] {
    VnetHeader {
        needs_checksum: input.flag(),
        gso: input.pick([Gso::None, Gso::TcpV4, Gso::TcpV6, Gso::Udp]),
        ecn: input.flag(),
        header_len: input.u16(),
        gso_size: u16::from(input.u8()) << (input.u8() % 8),
        checksum_start: input.u8().into(),
        checksum_offset: input.pick([6, 16, 0, u16::MAX]),
    }
    .emit()
}

fn split_any(header: &[u8; VNET_HEADER_LEN], packet: &[u8]) {
    let Some(vnet) = VnetHeader::parse(header) else { return };
    assert_eq!(VnetHeader::parse(&vnet.emit()), Some(vnet), "a vnet header survives writing");
    let mut batch = PacketBatch::new();
    let result = split(&vnet, &mut packet.to_vec(), &mut batch);
    let outcome = result.as_ref().map(|()| batch.len().min(3));
    reached::feature(format!("tun_segment {:?} {outcome:?}", vnet.gso));
    if result.is_err() {
        assert!(batch.is_empty(), "what is refused leaves no packet behind");
        return;
    }
    if vnet.gso == Gso::None {
        let lengths: Vec<usize> = batch.iter().map(<[u8]>::len).collect();
        assert_eq!(lengths, [packet.len()], "a single packet stays one");
        return;
    }
    let gso_size = usize::from(vnet.gso_size);
    let first = batch.get(0).expect("a super-packet with payload has a segment").len();
    let added = batch.total_bytes() - packet.len();
    let count = batch.len();
    let headers = if count == 1 { 0 } else { added / (count - 1) };
    assert_eq!(headers * (count - 1), added, "every segment has a copy of the headers");
    for (index, segment) in batch.iter().enumerate() {
        assert!(index + 1 == count || segment.len() == first, "all segments but the last are full");
        assert!(segment.len() <= first, "the last segment is no longer than the others");
        assert_eq!(ip_length(segment), segment.len(), "a segment is as long as it says");
        if count > 1 {
            assert_eq!(first, headers + gso_size, "a full segment carries gso_size");
            let at = headers + index * gso_size;
            let payload = &segment[headers..];
            assert_eq!(payload, &packet[at..at + payload.len()], "payload is cut, not changed");
        }
        assert!(ipv4_checksum_fits(segment), "a segment's IPv4 checksum fits");
    }
    join_and_split(&batch.iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
}

fn ip_length(packet: &[u8]) -> usize {
    let field = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    if packet[0] >> 4 == 4 { field(2) } else { field(4) + 40 }
}

fn ipv4_checksum_fits(packet: &[u8]) -> bool {
    let header = usize::from(packet[0] & 15) * 4;
    packet[0] >> 4 != 4 || Sum::new().bytes(&packet[..header]).checksum() == [0, 0]
}

/// Joins as the writer does: what cannot be joined goes by itself, after what waits.
fn join_and_split(packets: &[Vec<u8>]) {
    let mut coalescer = Coalescer::new();
    let mut restored = Vec::new();
    for packet in packets {
        let Some(candidate) = Candidate::examine(packet) else {
            take(&mut coalescer, &mut restored);
            restored.push(packet.clone());
            continue;
        };
        if !coalescer.append(&candidate) {
            take(&mut coalescer, &mut restored);
            coalescer.open(&candidate);
        }
    }
    take(&mut coalescer, &mut restored);
    assert_eq!(restored.len(), packets.len(), "as many packets come out as went in");
    for (restored, packet) in restored.iter().zip(packets) {
        assert_eq!(restored, packet, "joining and splitting restores every packet");
    }
}

fn take(coalescer: &mut Coalescer, restored: &mut Vec<Vec<u8>>) {
    let Some(aggregate) = coalescer.take() else { return };
    let (gso, packets) = (aggregate.vnet.gso, aggregate.packets.min(3));
    reached::feature(format!("tun_segment joined {gso:?} {packets}"));
    let mut batch = PacketBatch::new();
    let result = split(&aggregate.vnet, &mut aggregate.packet.to_vec(), &mut batch);
    assert_eq!(result, Ok(()), "an aggregate can be split");
    assert_eq!(batch.len(), aggregate.packets, "an aggregate holds the packets it counts");
    for segment in batch.iter() {
        let mut segment = segment.to_vec();
        if aggregate.identification == Identification::Fixed && aggregate.packets > 1 {
            set_identification(&mut segment, [aggregate.packet[4], aggregate.packet[5]]);
        }
        restored.push(segment);
    }
}

/// The kernel counts identifications up; a run of equal ones is undone here.
fn set_identification(packet: &mut [u8], identification: [u8; 2]) {
    if packet[0] >> 4 == 4 {
        packet[4..6].copy_from_slice(&identification);
        packet[10..12].fill(0);
        let checksum = Sum::new().bytes(&packet[..20]).checksum();
        packet[10..12].copy_from_slice(&checksum);
    }
}

/// An IPv4 or IPv6 packet with TCP or UDP in it.
#[derive(Clone)]
struct IpPacket {
    v6: bool,
    udp: bool,
    identification: u16,
    dont_fragment: bool,
    traffic_class: u8,
    port: u8,
    seq: u32,
    ack: u32,
    flags: u8,
    options: usize,
    payload: Vec<u8>,
}

impl IpPacket {
    fn read(input: &mut Input<'_>) -> Self {
        Self {
            v6: input.flag(),
            udp: input.flag(),
            identification: input.u16(),
            dont_fragment: input.flag(),
            traffic_class: input.u8(),
            port: input.u8(),
            seq: input.u64() as u32,
            ack: 1,
            flags: input.pick([0x10, 0x18, 0x11, 0x90, 0x50]),
            options: usize::from(input.u8() % 4) * 4,
            payload: Vec::new(),
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut transport = vec![0, self.port, 0, 9];
        let field = if self.udp {
            transport.extend([0; 4]);
            let length = (8 + self.payload.len()) as u16;
            transport[4..6].copy_from_slice(&length.to_be_bytes());
            6
        } else {
            transport.extend(self.seq.to_be_bytes());
            transport.extend(self.ack.to_be_bytes());
            let header_words = 5 + self.options as u8 / 4;
            transport.extend([header_words << 4, self.flags, 1, 0, 0, 0, 0, 0]);
            transport.resize(20 + self.options, 1);
            16
        };
        transport.extend_from_slice(&self.payload);
        let protocol = if self.udp { UDP } else { TCP };
        let mut ip = if self.v6 {
            self.ipv6_header(protocol, transport.len())
        } else {
            self.ipv4_header(protocol, transport.len())
        };
        let addresses = if self.v6 { &ip[8..40] } else { &ip[12..20] };
        let pseudo = Sum::new().bytes(addresses).word(protocol.into());
        let sum = pseudo.word(transport.len() as u16).bytes(&transport);
        let checksum = match sum.checksum() {
            [0, 0] if self.udp => [0xff, 0xff],
            checksum => checksum,
        };
        transport[field..field + 2].copy_from_slice(&checksum);
        ip.extend(transport);
        ip
    }

    fn ipv4_header(&self, protocol: u8, body: usize) -> Vec<u8> {
        let mut header = vec![0; 20];
        (header[0], header[1], header[8], header[9]) = (0x45, self.traffic_class, 64, protocol);
        header[2..4].copy_from_slice(&((20 + body) as u16).to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        header[6] = if self.dont_fragment { 0x40 } else { 0 };
        header[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let checksum = Sum::new().bytes(&header).checksum();
        header[10..12].copy_from_slice(&checksum);
        header
    }

    fn ipv6_header(&self, protocol: u8, body: usize) -> Vec<u8> {
        let mut header = vec![0; 40];
        (header[0], header[1]) = (0x60 | self.traffic_class >> 4, self.traffic_class << 4);
        header[4..6].copy_from_slice(&(body as u16).to_be_bytes());
        (header[6], header[7], header[8], header[24], header[39]) = (protocol, 64, 0xfd, 0xfd, 2);
        header
    }
}

/// Packets of one flow that mostly follow each other; each step may break the run in one way.
fn run_of_packets(input: &mut Input<'_>) -> Vec<Vec<u8>> {
    let mut next = IpPacket::read(input);
    let size = usize::from(input.u8()) * 8;
    let mut packets = Vec::new();
    while !input.is_empty() && packets.len() < PACKETS_MAX {
        let step = input.u8();
        let bytes = if step == 1 { usize::from(input.u8()) } else { size };
        next.payload = (0..bytes).map(|at| (at ^ packets.len()) as u8).collect();
        match step {
            2 => next.flags = input.u8(),
            3 => next.ack = next.ack.wrapping_add(1),
            4 => next.port ^= 1,
            5 => next.seq = next.seq.wrapping_add(input.u8().into()),
            6 => next.traffic_class = input.u8(),
            7 => next.udp = !next.udp,
            8 => next.v6 = !next.v6,
            9 => next.options = usize::from(input.u8() % 4) * 4,
            10 => next.dont_fragment = !next.dont_fragment,
            _ => {}
        }
        let mut packet = next.to_bytes();
        if step == 11 {
            let at = input.index(packet.len());
            packet[at] ^= input.u8();
        }
        packets.push(packet);
        next.seq = next.seq.wrapping_add(bytes as u32);
        next.identification = next.identification.wrapping_add(u16::from(step != 12));
    }
    packets
}
