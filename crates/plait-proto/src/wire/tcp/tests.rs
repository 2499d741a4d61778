use proptest::collection::vec;
use proptest::prelude::*;

use super::segment::sum_of_segment;
use super::*;

fn flow(v6: bool) -> TcpFlow {
    let (source, destination) = if v6 {
        (IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2]))
    } else {
        (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]))
    };
    TcpFlow { source, destination, source_port: 443, destination_port: 51_000 }
}

fn block(left: u32, right: u32) -> SackBlock {
    SackBlock { left: TcpSeq(left), right: TcpSeq(right) }
}

fn ack<'a>(v6: bool, sack: &'a [SackBlock]) -> TcpSegment<'a> {
    TcpSegment { sack, ..TcpSegment::new(flow(v6), TcpSeq(7), TcpSeq(1000), &[]) }
}

/// Where TCP begins in the packets of these tests.
fn tcp_at(v6: bool) -> usize {
    if v6 { IPV6_HEADER_BYTES } else { IPV4_HEADER_BYTES }
}

/// A packet with these options, which may be no options at all, and a right checksum.
fn with_options(v6: bool, options: &[u8]) -> Vec<u8> {
    let mut packet = TcpSegment::new(flow(v6), TcpSeq(1), TcpSeq(2), &[]).to_packet();
    let at = tcp_at(v6);
    let padded = options.len().div_ceil(4) * 4;
    packet.extend_from_slice(options);
    packet.resize(at + TCP_HEADER_BYTES + padded, 0);
    packet[at + 12] = (((TCP_HEADER_BYTES + padded) / 4) << 4) as u8;
    let length = (packet.len() - if v6 { IPV6_HEADER_BYTES } else { 0 }) as u16;
    let length_at = if v6 { 4 } else { 2 };
    packet[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
    packet[at + CHECKSUM..at + CHECKSUM + 2].fill(0);
    let checksum = !sum_of_segment(&packet, at);
    packet[at + CHECKSUM..at + CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    packet
}

#[test]
fn a_segment_is_read_as_it_was_built() {
    for v6 in [false, true] {
        let blocks = [block(2000, 3000), block(4000, 5000)];
        let segment = TcpSegment {
            flags: TcpFlags(TcpFlags::ACK | TcpFlags::FIN),
            window: 501,
            timestamps: Some((77, 88)),
            payload: b"data",
            ..ack(v6, &blocks)
        };
        let packet = segment.to_packet();
        let read = TcpPacket::read(&packet).expect("well formed");
        assert_eq!(read.flow(), flow(v6));
        assert_eq!(read.flags(), segment.flags);
        assert_eq!((read.seq(), read.ack(), read.window()), (TcpSeq(7), TcpSeq(1000), 501));
        assert_eq!(read.seq_end(), TcpSeq(7 + 4 + 1), "FIN takes a number");
        assert_eq!((read.payload_bytes(), read.timestamps()), (4, Some((77, 88))));
        assert_eq!(read.sack_blocks().collect::<Vec<_>>(), blocks);
        assert!(!read.has_dsack() && !read.has_signature());
        assert_eq!(sum_of_segment(&packet, tcp_at(v6)), 0xffff);
    }
}

#[test]
fn ipv4_options_are_stepped_over() {
    let mut packet = ack(false, &[]).to_packet();
    packet.splice(20..20, [1, 1, 1, 0]);
    packet[0] = 0x46;
    packet[3] += 4;
    assert_eq!(TcpPacket::read(&packet).expect("well formed").ack(), TcpSeq(1000));
}

#[test]
fn what_is_not_tcp_says_why() {
    let v4 = ack(false, &[]).to_packet();
    let v6 = ack(true, &[]).to_packet();
    let changed = |packet: &[u8], at: usize, byte: u8| {
        let mut packet = packet.to_vec();
        packet[at] = byte;
        packet
    };
    let cases = [
        (changed(&v4, 9, 17), NotTcp::OtherProtocol),
        (changed(&v4, 0, 0x55), NotTcp::OtherProtocol),
        (changed(&v6, 6, 0), NotTcp::OtherProtocol),
        (changed(&v4, 6, 0x20), NotTcp::Fragment),
        (changed(&v4, 7, 1), NotTcp::Fragment),
        (Vec::new(), NotTcp::Truncated),
        (v4[..v4.len() - 1].to_vec(), NotTcp::Truncated),
        (v6[..30].to_vec(), NotTcp::Truncated),
        ([&v4[..], &[0]].concat(), NotTcp::Truncated),
        (changed(&v4, 0, 0x44), NotTcp::Truncated),
        (changed(&v4, 0, 0x4f), NotTcp::Truncated),
        (changed(&v4, 32, 0x40), NotTcp::Truncated),
        (changed(&v6, 52, 0xf0), NotTcp::Truncated),
        (with_options(false, &[5]), NotTcp::BadOptions),
        (with_options(false, &[5, 1, 0, 0]), NotTcp::BadOptions),
        (with_options(false, &[5, 2, 0, 0]), NotTcp::BadOptions),
        (with_options(true, &[5, 9, 0, 0, 0, 0, 0, 0, 0]), NotTcp::BadOptions),
        (with_options(true, &[8, 4, 0, 0]), NotTcp::BadOptions),
        (with_options(true, &[99, 5, 0, 0]), NotTcp::BadOptions),
        (with_options(false, &[[5, 10, 0, 0, 0, 0, 0, 0, 0, 0]; 2].concat()), NotTcp::BadOptions),
        (with_options(false, &[[8, 10, 0, 0, 0, 0, 0, 0, 0, 0]; 2].concat()), NotTcp::BadOptions),
    ];
    for (packet, why) in cases {
        assert_eq!(TcpPacket::read(&packet).err(), Some(why), "{packet:02x?}");
        let mut masked = packet.clone();
        assert!(!mask_sack(&mut masked) && masked == packet, "{packet:02x?}");
    }
}

#[test]
fn sequence_numbers_wrap() {
    let high = TcpSeq(u32::MAX - 10);
    let low = high.plus(20);
    assert_eq!((low, low.since(high)), (TcpSeq(9), 20));
    assert!(high.is_before(low) && low.is_after(high) && !low.is_before(high));
    assert!(!low.is_before(low) && !low.is_after(low));
    assert_eq!((high.later(low), low.later(high)), (low, low));
}

/// RFC 2883 section 4: what was received twice lies below the acknowledgement number, or inside
/// the block that follows.
#[test]
fn dsack_is_told_from_sack() {
    let cases: [(&[SackBlock], bool); 7] = [
        (&[], false),
        (&[block(2000, 3000)], false),
        (&[block(500, 600)], true),
        (&[block(500, 600), block(2000, 3000)], true),
        (&[block(2100, 2200), block(2000, 3000)], true),
        (&[block(4000, 5000), block(2000, 3000)], false),
        (&[block(2000, 3000), block(2100, 2200)], false),
    ];
    for (blocks, dsack) in cases {
        let packet = ack(false, blocks).to_packet();
        let read = TcpPacket::read(&packet).expect("well formed");
        assert_eq!(read.has_dsack(), dsack, "{blocks:?}");
    }
}

#[test]
fn a_signature_is_seen_and_keeps_the_packet_as_it_is() {
    for kind in [OPTION_MD5, OPTION_AO] {
        let options = [&[kind, 6, 1, 2, 3, 4, 5, 10][..], &[0; 8]].concat();
        let mut packet = with_options(false, &options);
        let read = TcpPacket::read(&packet).expect("well formed");
        assert!(read.has_signature() && read.has_sack());
        let before = packet.clone();
        assert!(!mask_sack(&mut packet));
        assert_eq!(packet, before);
    }
}

#[test]
fn only_the_sack_option_is_masked() {
    for v6 in [false, true] {
        let blocks = [block(2000, 3000), block(4000, 5000)];
        let segment = TcpSegment { timestamps: Some((77, 88)), ..ack(v6, &blocks) };
        let mut packet = segment.to_packet();
        assert!(mask_sack(&mut packet));
        let read = TcpPacket::read(&packet).expect("still well formed");
        assert!(!read.has_sack());
        assert_eq!((read.timestamps(), read.ack()), (Some((77, 88)), TcpSeq(1000)));
        assert_eq!(sum_of_segment(&packet, tcp_at(v6)), 0xffff);
        assert!(!mask_sack(&mut packet), "there is none left");
    }
}

fn bytes(range: core::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), range)
}

proptest! {
    #[test]
    fn reading_never_panics(mut packet in bytes(0..120), v6: bool, whole: bool) {
        // Half of the packets get past the checks of the IP header.
        let at = tcp_at(v6);
        if whole && packet.len() >= at + TCP_HEADER_BYTES {
            let head = with_options(v6, &[]);
            packet[..at].copy_from_slice(&head[..at]);
            let (length_at, length) = if v6 { (5, packet.len() - at) } else { (3, packet.len()) };
            packet[length_at] = length as u8;
        }
        if let Ok(read) = TcpPacket::read(&packet) {
            let _ = (read.has_dsack(), read.seq_end(), read.sack_blocks().count());
        }
        mask_sack(&mut packet);
    }

    #[test]
    fn what_is_built_is_read_back(
        v6: bool,
        (seq, acked, window, flags) in any::<(u32, u32, u16, u8)>(),
        timestamps in proptest::option::of(any::<(u32, u32)>()),
        blocks in vec(any::<(u32, u32)>(), 0..6),
        payload in bytes(0..50),
    ) {
        let blocks: Vec<_> = blocks.into_iter().map(|(left, right)| block(left, right)).collect();
        let segment = TcpSegment {
            flow: flow(v6),
            flags: TcpFlags(flags),
            seq: TcpSeq(seq),
            ack: TcpSeq(acked),
            window,
            timestamps,
            sack: &blocks,
            payload: &payload,
        };
        let packet = segment.to_packet();
        let read = TcpPacket::read(&packet).expect("well formed");
        prop_assert_eq!(sum_of_segment(&packet, tcp_at(v6)), 0xffff);
        prop_assert_eq!((read.flow(), read.flags()), (flow(v6), TcpFlags(flags)));
        prop_assert_eq!((read.seq().0, read.ack().0, read.window()), (seq, acked, window));
        prop_assert_eq!(read.timestamps(), timestamps);
        prop_assert_eq!(read.payload_bytes() as usize, payload.len());
        let room = if timestamps.is_some() { 3 } else { 4 };
        let kept: Vec<_> = blocks.iter().copied().take(room).collect();
        prop_assert_eq!(read.sack_blocks().collect::<Vec<_>>(), kept);
    }

    /// The option may begin at odd places, behind any number of NOPs.
    #[test]
    fn masking_keeps_the_checksum_right(
        v6: bool,
        nops in 0_usize..5,
        count in 1_usize..5,
        body in bytes(32..33),
    ) {
        let mut options = vec![OPTION_NOP; nops];
        options.extend_from_slice(&[OPTION_SACK, (2 + count * 8) as u8]);
        options.extend_from_slice(&body[..count * 8]);
        let mut packet = with_options(v6, &options);
        let before = packet.clone();
        prop_assert!(mask_sack(&mut packet));
        let at = tcp_at(v6);
        prop_assert_eq!(sum_of_segment(&packet, at), 0xffff);
        let from = at + TCP_HEADER_BYTES + nops;
        let to = from + 2 + count * 8;
        prop_assert!(packet[from..to].iter().all(|&byte| byte == OPTION_NOP));
        prop_assert_eq!(&packet[to..], &before[to..]);
        prop_assert_eq!(&packet[..at + CHECKSUM], &before[..at + CHECKSUM]);
    }
}
