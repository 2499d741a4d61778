//! Compares splitting and joining with each other and with packets built another way.

use std::cell::{Cell, RefCell};
use std::io;

use proptest::prelude::*;

use super::TunCounters;
use super::coalesce::{Candidate, Coalescer};
use super::headers::{CWR, FIN, IpVersion, PSH, SYN};
use super::segment::{Identification, Malformed, split, split_super_packet};
use super::test_packets::TestPacket;
use super::vnet::{Gso, VNET_HEADER_LEN, VnetHeader};
use super::writer::{AggregateWriter, RawDevice};
use crate::batch::PacketBatch;

const VERSIONS: [IpVersion; 2] = [IpVersion::V4, IpVersion::V6];

fn vnet_for(packet: &TestPacket, gso_size: usize) -> VnetHeader {
    let (transport, field) = packet.checksum_place();
    VnetHeader {
        needs_checksum: true,
        gso: match (packet.udp, packet.version) {
            (true, _) => Gso::Udp,
            (false, IpVersion::V4) => Gso::TcpV4,
            (false, IpVersion::V6) => Gso::TcpV6,
        },
        ecn: !packet.udp && packet.flags & CWR != 0,
        header_len: packet.header_len() as u16,
        gso_size: gso_size as u16,
        checksum_start: transport as u16,
        checksum_offset: field as u16,
    }
}

/// The packets that `packet` stands for, made one by one.
fn expected_segments(packet: &TestPacket, gso_size: usize) -> Vec<Vec<u8>> {
    let count = packet.payload.len().div_ceil(gso_size);
    let segment = |(index, payload): (usize, &[u8])| {
        let mut segment = packet.clone();
        segment.payload = payload.to_vec();
        segment.id = packet.id.wrapping_add(index as u16);
        segment.seq = packet.seq.wrapping_add((index * gso_size) as u32);
        if index > 0 {
            segment.flags &= !CWR;
        }
        if index + 1 < count {
            segment.flags &= !(PSH | FIN);
        }
        segment.bytes()
    };
    packet.payload.chunks(gso_size).enumerate().map(segment).collect()
}

fn split_to_vec(vnet: &VnetHeader, packet: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut batch = PacketBatch::new();
    split(vnet, &mut packet.to_vec(), &mut batch)?;
    Ok(batch.iter().map(<[u8]>::to_vec).collect())
}

#[test]
fn a_super_packet_becomes_the_packets_it_stands_for() {
    for version in VERSIONS {
        for udp in [false, true] {
            let mut packet = TestPacket::new(version, udp, 5001);
            packet.flags |= CWR | PSH | FIN;
            packet.id = 0xffff;
            let mut vnet = vnet_for(&packet, 1400);
            vnet.header_len = 3;
            let bytes = packet.bytes_with_partial_checksum();
            assert_eq!(split_to_vec(&vnet, &bytes), Ok(expected_segments(&packet, 1400)));
            vnet.needs_checksum = false;
            assert_eq!(split_to_vec(&vnet, &bytes), Ok(expected_segments(&packet, 1400)));
        }
    }
}

#[test]
fn a_partial_checksum_is_completed() {
    for version in VERSIONS {
        for udp in [false, true] {
            let packet = TestPacket::new(version, udp, 99);
            let vnet = VnetHeader { gso: Gso::None, ..vnet_for(&packet, 0) };
            let bytes = packet.bytes_with_partial_checksum();
            assert_eq!(split_to_vec(&vnet, &bytes), Ok(vec![packet.bytes()]));
        }
    }
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_all_ones() {
    let mut packet = TestPacket::new(IpVersion::V4, true, 2);
    let found = (0..=u16::MAX).find(|value| {
        packet.payload = value.to_be_bytes().to_vec();
        packet.bytes()[26..28] == [0xff, 0xff]
    });
    assert!(found.is_some(), "one payload of all must sum up to zero");
    let vnet = VnetHeader { gso: Gso::None, ..vnet_for(&packet, 0) };
    let bytes = packet.bytes_with_partial_checksum();
    assert_eq!(split_to_vec(&vnet, &bytes), Ok(vec![packet.bytes()]));
    packet.payload = [packet.payload.clone(), packet.payload.clone()].concat();
    let bytes = packet.bytes_with_partial_checksum();
    assert_eq!(split_to_vec(&vnet_for(&packet, 2), &bytes), Ok(expected_segments(&packet, 2)));
}

#[test]
fn a_routing_header_keeps_the_partial_sum() {
    let plain = TestPacket::new(IpVersion::V6, true, 100);
    let mut bytes = plain.bytes_with_partial_checksum();
    let routing = [17, 0, 4, 1, 0, 0, 0, 0];
    bytes.splice(40..40, routing);
    (bytes[5], bytes[6]) = (bytes[5] + 8, 43);
    // The sum was made with the final destination; the header shows the next hop.
    bytes[39] = 77;
    let vnet = VnetHeader { checksum_start: 48, ..vnet_for(&plain, 100) };
    let mut split = split_to_vec(&vnet, &bytes).unwrap().remove(0);
    split.drain(40..48);
    assert_eq!(split[40..], plain.bytes()[40..]);
}

#[test]
fn super_packets_that_do_not_hold_together_are_refused() {
    let packet = TestPacket::new(IpVersion::V4, false, 3000);
    let (good, bytes) = (vnet_for(&packet, 1000), packet.bytes_with_partial_checksum());
    let refused = |vnet: VnetHeader, bytes: &[u8]| split_to_vec(&vnet, bytes) == Err(Malformed);
    assert!(!refused(good, &bytes));
    assert!(refused(VnetHeader { gso_size: 0, ..good }, &bytes));
    assert!(refused(VnetHeader { gso: Gso::TcpV6, ..good }, &bytes));
    assert!(refused(VnetHeader { gso: Gso::Udp, ..good }, &bytes));
    assert!(refused(good, &bytes[..bytes.len() - 1]));
    assert!(refused(good, &[]));
    let mut fragment = bytes.clone();
    fragment[7] = 1;
    assert!(refused(good, &fragment));
    let single = VnetHeader { gso: Gso::None, checksum_start: u16::MAX, ..good };
    assert!(refused(single, &bytes));
}

/// Joins `packets` greedily; each aggregate as its vnet header, bytes and numbering.
fn join(packets: &[Vec<u8>]) -> Vec<(VnetHeader, Vec<u8>, Identification)> {
    let mut coalescer = Coalescer::new();
    let mut written = Vec::new();
    let flush = |coalescer: &mut Coalescer, written: &mut Vec<_>| {
        if let Some(done) = coalescer.take() {
            written.push((done.vnet, done.packet.to_vec(), done.identification));
        }
    };
    for packet in packets {
        let Some(candidate) = Candidate::examine(packet) else {
            flush(&mut coalescer, &mut written);
            written.push((VnetHeader::PLAIN, packet.clone(), Identification::Consecutive));
            continue;
        };
        if !coalescer.append(&candidate) {
            flush(&mut coalescer, &mut written);
            coalescer.open(&candidate);
        }
    }
    flush(&mut coalescer, &mut written);
    written
}

/// Number of writes that two packets take, the second changed by `change`.
fn writes_for_pair(
    version: IpVersion,
    udp: bool,
    change: impl Fn(&mut TestPacket, &mut TestPacket),
) -> usize {
    let mut first = TestPacket::new(version, udp, 1000);
    let mut second = first.clone();
    second.seq = second.seq.wrapping_add(1000);
    second.id += 1;
    change(&mut first, &mut second);
    join(&[first.bytes(), second.bytes()]).len()
}

#[test]
fn packets_join_only_where_a_split_restores_them() {
    type Change = fn(&mut TestPacket, &mut TestPacket);
    let joins: [(&str, Change); 4] = [
        ("as they are", |_, _| ()),
        ("push on the second", |_, second| second.flags |= PSH),
        ("shorter second", |_, second| second.payload.truncate(1)),
        ("congestion window reduced on the first", |first, _| first.flags |= CWR),
    ];
    let tcp_parts: [(&str, Change); 8] = [
        ("sequence gap", |_, second| second.seq = second.seq.wrapping_add(1)),
        ("other ack", |_, second| second.ack += 1),
        ("other window", |_, second| second.window += 1),
        ("other option", |_, second| second.timestamp = Some(10)),
        ("push on the first", |first, _| first.flags |= PSH),
        ("fin on the first", |first, _| first.flags |= FIN),
        ("syn", |_, second| second.flags |= SYN),
        ("congestion window reduced on the second", |_, second| second.flags |= CWR),
    ];
    let parts: [(&str, Change); 5] = [
        ("other port", |_, second| second.source_port += 1),
        ("other ttl", |_, second| second.ttl -= 1),
        ("other tos", |_, second| second.tos = 3),
        ("longer second", |first, _| first.payload.truncate(999)),
        ("empty second", |_, second| second.payload.clear()),
    ];
    for version in VERSIONS {
        for (name, change) in joins {
            assert_eq!(writes_for_pair(version, false, change), 1, "{version:?} tcp: {name}");
            assert_eq!(writes_for_pair(version, true, change), 1, "{version:?} udp: {name}");
        }
        for (name, change) in tcp_parts {
            assert_eq!(writes_for_pair(version, false, change), 2, "{version:?} tcp: {name}");
        }
        for (name, change) in parts {
            assert_eq!(writes_for_pair(version, false, change), 2, "{version:?} tcp: {name}");
            assert_eq!(writes_for_pair(version, true, change), 2, "{version:?} udp: {name}");
        }
    }
}

#[test]
fn ipv4_identifications_run_on_or_stand_still_without_fragmentation() {
    let pair = |dont_fragment: bool, distance: u16| {
        writes_for_pair(IpVersion::V4, true, |first, second| {
            (first.dont_fragment, second.dont_fragment) = (dont_fragment, dont_fragment);
            second.id = first.id.wrapping_add(distance);
        })
    };
    assert_eq!((pair(true, 1), pair(true, 0), pair(true, 2)), (1, 1, 2));
    assert_eq!((pair(false, 1), pair(false, 0)), (1, 2));
    let mut packets = vec![TestPacket::new(IpVersion::V4, true, 100); 3];
    packets[2].id += 2;
    let bytes: Vec<_> = packets.iter().map(TestPacket::bytes).collect();
    assert_eq!(join(&bytes).len(), 2, "a run that stood still may not go on");
}

#[test]
fn a_wrong_or_absent_checksum_never_joins() {
    for udp in [false, true] {
        let packet = TestPacket::new(IpVersion::V4, udp, 100);
        let good = packet.bytes();
        assert!(Candidate::examine(&good).is_some());
        let (transport, field) = packet.checksum_place();
        for at in [10, transport + field, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert!(Candidate::examine(&bad).is_none(), "byte {at}");
        }
        let mut absent = good.clone();
        absent[transport + field..transport + field + 2].fill(0);
        assert!(Candidate::examine(&absent).is_none());
    }
}

#[test]
fn aggregates_stay_below_64_kilobytes_and_64_datagrams() {
    let tcp: Vec<_> = (0..60u32)
        .map(|index| {
            let mut packet = TestPacket::new(IpVersion::V4, false, 1448);
            packet.seq = packet.seq.wrapping_add(index * 1448);
            packet.id += index as u16;
            packet.bytes()
        })
        .collect();
    let lens: Vec<_> = join(&tcp).iter().map(|(_, bytes, _)| bytes.len()).collect();
    assert_eq!(lens, [52 + 45 * 1448, 52 + 15 * 1448]);
    let udp = vec![TestPacket::new(IpVersion::V6, true, 10).bytes(); 65];
    let lens: Vec<_> = join(&udp).iter().map(|(_, bytes, _)| bytes.len()).collect();
    assert_eq!(lens, [48 + 64 * 10, 48 + 10]);
}

/// A device that keeps what was written and may refuse aggregates or everything.
#[derive(Default)]
struct FakeDevice {
    written: RefCell<Vec<Vec<u8>>>,
    aggregates: Cell<usize>,
    refuses_aggregates: bool,
    full: Cell<bool>,
}

impl RawDevice for FakeDevice {
    fn write(&self, header: &[u8; VNET_HEADER_LEN], packet: &[u8]) -> io::Result<()> {
        let vnet = VnetHeader::parse(header).expect("a known kind");
        if self.full.get() {
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        if vnet.gso != Gso::None {
            self.aggregates.set(self.aggregates.get() + 1);
            if self.refuses_aggregates {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
        }
        self.written.borrow_mut().extend(split_to_vec(&vnet, packet).expect("well formed"));
        Ok(())
    }
}

fn tcp_run(count: u32) -> Vec<Vec<u8>> {
    let segment = |index: u32| {
        let mut packet = TestPacket::new(IpVersion::V4, false, 700);
        packet.seq = packet.seq.wrapping_add(index * 700);
        packet.bytes()
    };
    (0..count).map(segment).collect()
}

#[test]
fn a_refused_aggregate_is_written_singly_and_none_is_tried_again() {
    let device = FakeDevice { refuses_aggregates: true, ..FakeDevice::default() };
    let mut writer = AggregateWriter::new(true, true);
    let mut counters = TunCounters::default();
    let packets = tcp_run(5);
    for _ in 0..2 {
        for packet in &packets {
            writer.send(&device, packet, &mut counters).unwrap();
        }
        writer.flush(&device, &mut counters).unwrap();
    }
    assert_eq!(*device.written.borrow(), [packets.clone(), packets].concat());
    assert_eq!((device.aggregates.get(), counters.refused_aggregates), (1, 1));
    assert_eq!((counters.written_packets, counters.written_aggregates), (10, 0));
}

#[test]
fn a_closed_aggregate_is_written_without_a_flush() {
    let device = FakeDevice::default();
    let mut writer = AggregateWriter::new(true, true);
    let mut counters = TunCounters::default();
    let mut last = TestPacket::new(IpVersion::V4, false, 10);
    last.seq = last.seq.wrapping_add(1400);
    let packets = [tcp_run(2), vec![last.bytes()]].concat();
    for packet in &packets {
        writer.send(&device, packet, &mut counters).unwrap();
    }
    assert_eq!(device.aggregates.get(), 1);
    assert_eq!(device.written.borrow().len(), 3);
}

#[test]
fn a_full_device_drops_and_counts() {
    let device = FakeDevice::default();
    device.full.set(true);
    let mut writer = AggregateWriter::new(true, true);
    let mut counters = TunCounters::default();
    for packet in tcp_run(3) {
        writer.send(&device, &packet, &mut counters).unwrap();
    }
    writer.send(&device, &[0x45], &mut counters).unwrap();
    assert_eq!((counters.dropped_full, counters.written_packets), (4, 0));
}

/// One step of a stream of two flows that mostly run on.
#[derive(Clone, Debug)]
struct Step {
    flow: usize,
    payload_len: usize,
    flags: u8,
    ack_moves: bool,
    id_stands: bool,
    seq_jumps: bool,
    corrupt: bool,
}

fn step() -> impl Strategy<Value = Step> {
    (
        prop_oneof![9 => Just(0usize), 1 => Just(1)],
        prop_oneof![8 => Just(1200usize), 1 => 0usize..1300],
        prop_oneof![9 => Just(0u8), 1 => any::<u8>()],
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
    )
        .prop_map(|(flow, payload_len, flags, ack_moves, id_stands, seq_jumps, corrupt)| {
            Step {
                flow,
                payload_len,
                flags: flags | 0x10,
                ack_moves,
                id_stands,
                seq_jumps,
                corrupt,
            }
        })
}

/// The packets of `steps`, in order.
fn stream(version: IpVersion, udp: bool, steps: &[Step]) -> Vec<Vec<u8>> {
    let mut flows = [TestPacket::new(version, udp, 0), TestPacket::new(version, udp, 0)];
    flows[1].source_port += 1;
    let mut packets = Vec::new();
    for step in steps {
        let flow = &mut flows[step.flow];
        flow.seq = flow.seq.wrapping_add(flow.payload.len() as u32 + u32::from(step.seq_jumps));
        flow.id = flow.id.wrapping_add(u16::from(!step.id_stands));
        flow.ack += u32::from(step.ack_moves);
        flow.flags = step.flags;
        flow.payload = (0..step.payload_len).map(|at| (at ^ packets.len()) as u8).collect();
        let mut bytes = flow.bytes();
        if step.corrupt {
            *bytes.last_mut().unwrap() ^= 0x55;
        }
        packets.push(bytes);
    }
    packets
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn joining_and_splitting_restores_every_packet(
        v6 in any::<bool>(),
        udp in any::<bool>(),
        steps in proptest::collection::vec(step(), 1..120),
    ) {
        let packets = stream(VERSIONS[usize::from(v6)], udp, &steps);
        let mut batch = PacketBatch::new();
        for (vnet, mut bytes, identification) in join(&packets) {
            let result = if vnet.gso == Gso::None {
                split(&vnet, &mut bytes, &mut batch)
            } else {
                split_super_packet(&vnet, &bytes, identification, &mut batch)
            };
            prop_assert_eq!(result, Ok(()));
        }
        let restored: Vec<_> = batch.iter().map(<[u8]>::to_vec).collect();
        prop_assert_eq!(restored, packets);
    }

    #[test]
    fn splitting_and_joining_restores_the_super_packet(
        v6 in any::<bool>(),
        udp in any::<bool>(),
        payload_len in 2usize..20_000,
        gso_size in 320usize..1500,
        flags in any::<u8>(),
    ) {
        prop_assume!(payload_len > gso_size);
        let mut packet = TestPacket::new(VERSIONS[usize::from(v6)], udp, payload_len);
        packet.flags = flags & (CWR | PSH | FIN) | 0x10;
        let vnet = vnet_for(&packet, gso_size);
        let bytes = packet.bytes_with_partial_checksum();
        let segments = split_to_vec(&vnet, &bytes).unwrap();
        prop_assert_eq!(&segments, &expected_segments(&packet, gso_size));
        prop_assert_eq!(join(&segments), vec![(vnet, bytes, Identification::Consecutive)]);
    }

    #[test]
    fn random_bytes_never_panic(
        header in any::<[u8; VNET_HEADER_LEN]>(),
        packet in proptest::collection::vec(any::<u8>(), 0..200),
        first in prop_oneof![Just(0x45u8), Just(0x4f), Just(0x60), any::<u8>()],
        protocol in prop_oneof![Just(6u8), Just(17), Just(0), Just(43)],
    ) {
        let mut read = header.to_vec();
        read.extend(&packet);
        let _ = super::unpack(&mut read, &mut PacketBatch::new());
        let _ = super::unpack(&mut packet.clone(), &mut PacketBatch::new());
        let mut likely = packet.clone();
        likely.resize(likely.len().max(60), 0);
        let len = likely.len() as u16;
        (likely[0], likely[9]) = (first, protocol);
        if first == 0x60 {
            likely[6] = protocol;
            likely[4..6].copy_from_slice(&(len - 40).to_be_bytes());
        } else {
            likely[2..4].copy_from_slice(&len.to_be_bytes());
            likely[6..8].fill(0);
        }
        let fields = VnetHeader::parse(&header).unwrap_or(VnetHeader::PLAIN);
        for gso in [Gso::None, Gso::TcpV4, Gso::TcpV6, Gso::Udp] {
            let vnet = VnetHeader { gso, ..fields };
            let _ = split_to_vec(&vnet, &likely);
        }
        let _ = join(&[likely.clone(), likely]);
    }
}
