use core::net::{Ipv4Addr, Ipv6Addr};

use proptest::collection::vec;
use proptest::prelude::*;

use super::testing::{echo, ip, tcp, udp};
use super::*;

fn v4(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// Rewrites a packet to `to`, as a node does it.
fn rewritten(mut packet: Vec<u8>, to: IpAddr) -> Vec<u8> {
    let steerable = Steerable::read(&packet).expect("well formed");
    let rewrite = Rewrite::new(steerable.inner.destination, to).expect("one family");
    rewrite.apply(&steerable, &mut packet);
    packet
}

fn payload(packet: &[u8]) -> Payload {
    Steerable::read(packet).expect("well formed").payload
}

#[test]
fn a_udp_checksum_of_zero_stays_zero() {
    let packet = |to| udp((v4(1), 7), (to, 9), b"x", true);
    assert_eq!(rewritten(packet(v4(2)), v4(77)), packet(v4(77)));
}

#[test]
fn a_udp_checksum_that_comes_out_zero_is_sent_as_all_ones() {
    let packet = |to, word: u16| udp((v4(1), 7), (to, 9), &word.to_be_bytes(), false);
    let is_all_ones = |word: &u16| packet(v4(77), *word)[26..28] == [0xff, 0xff];
    let word = (0..=u16::MAX).find(is_all_ones).expect("one word of 65536 makes the sum so");
    assert_eq!(rewritten(packet(v4(2), word), v4(77)), packet(v4(77), word));
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut packet = tcp((v4(1), 7), (v4(2), 9), 0x10, b"data");
    packet[41] ^= 1;
    let mut expected = tcp((v4(1), 7), (v4(77), 9), 0x10, b"data");
    expected[41] ^= 1;
    assert_eq!(rewritten(packet, v4(77)), expected);
}

#[test]
fn fragments_are_known() {
    let whole = udp((v4(1), 7), (v4(2), 9), b"some data", false);
    for (byte, value) in [(6, 0x20), (7, 1)] {
        let mut fragment = whole.clone();
        fragment[byte] = value;
        assert_eq!(payload(&fragment), Payload::Fragment);
    }
    let [a, b] = [Ipv6Addr::from(1), Ipv6Addr::from(2)].map(IpAddr::V6);
    assert_eq!(payload(&ip(a, b, V6_FRAGMENT, &[], &[17, 0, 0, 1, 0, 0, 0, 1])), Payload::Fragment);
}

#[test]
fn what_cannot_be_rewritten_is_known() {
    let [a, b] = [Ipv6Addr::from(1), Ipv6Addr::from(2)].map(IpAddr::V6);
    let segment = [0; 40];
    for opaque in [
        ip(v4(1), v4(2), TCP, &[], &segment[..19]),
        ip(v4(1), v4(2), UDP, &[], &segment[..7]),
        ip(v4(1), v4(2), 50, &[], &segment),
        ip(v4(1), v4(2), 132, &[], &segment),
        ip(v4(1), v4(2), ICMPV6, &[], &segment),
        ip(a, b, ICMP, &[], &segment),
        ip(a, b, ICMPV6, &[], &segment[..3]),
        ip(a, b, 0, &[], &segment),
        ip(a, b, 43, &[], &segment),
        ip(v4(1), v4(2), TCP, &[131, 7, 4, 10, 0, 0, 3, 0], &segment),
        ip(v4(1), v4(2), TCP, &[137, 7, 4, 10, 0, 0, 3, 0], &segment),
    ] {
        assert_eq!(payload(&opaque), Payload::Opaque, "{opaque:?}");
    }
    let harmless = ip(v4(1), v4(2), TCP, &[148, 4, 0, 0], &segment);
    assert_eq!(payload(&harmless), Payload::Tcp { flags: 0 }, "router alert");
}

#[test]
fn a_packet_is_not_rewritten_across_families() {
    assert_eq!(Rewrite::new(v4(1), Ipv6Addr::from(1).into()), None);
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Tcp,
    TcpWithIpOptions,
    Udp,
    BareUdp,
    Echo,
}

/// A packet to `to`, its checksums worked out over all of it.
fn build(kind: Kind, from: IpAddr, to: IpAddr, ports: [u16; 2], data: &[u8]) -> Vec<u8> {
    let (source, destination) = ((from, ports[0]), (to, ports[1]));
    match kind {
        Kind::Tcp => tcp(source, destination, 0x10, data),
        Kind::Udp => udp(source, destination, data, false),
        Kind::BareUdp => udp(source, destination, data, true),
        Kind::Echo => echo(from, to, data),
        Kind::TcpWithIpOptions => {
            let plain = tcp(source, destination, 0x10, data);
            let options: &[u8] = if from.is_ipv4() { &[148, 4, 0, 0] } else { &[] };
            ip(from, to, TCP, options, &plain[if from.is_ipv4() { 20 } else { 40 }..])
        }
    }
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Tcp,
        Kind::TcpWithIpOptions,
        Kind::Udp,
        Kind::BareUdp,
        Kind::Echo,
    ])
}

/// Three addresses of one family, with many zero and all-ones words among them.
fn any_addresses() -> impl Strategy<Value = [IpAddr; 3]> {
    let byte = prop_oneof![Just(0_u8), Just(0xff_u8), any::<u8>()];
    let v4 = prop::array::uniform3(prop::array::uniform4(byte.clone()));
    let v6 = prop::array::uniform3(prop::array::uniform16(byte));
    prop_oneof![
        v4.prop_map(|all| all.map(|octets| Ipv4Addr::from(octets).into())),
        v6.prop_map(|all| all.map(|octets| Ipv6Addr::from(octets).into())),
    ]
}

proptest! {
    /// The incremental checksums are those of the rewritten packet, bit for bit.
    #[test]
    fn rewriting_gives_what_would_have_been_sent_there(
        kind in any_kind(),
        [from, to, other] in any_addresses(),
        ports: [u16; 2],
        data in vec(any::<u8>(), 0..40),
    ) {
        // A header of which every word sums to nothing has two checksums; no packet has one.
        let packet = build(kind, from, to, ports, &data);
        let expected = build(kind, from, other, ports, &data);
        let back = rewritten(expected.clone(), to);
        prop_assert_eq!(rewritten(packet.clone(), other), expected);
        prop_assert_eq!(back, packet);
    }

    #[test]
    fn anything_is_survived(mut packet in vec(any::<u8>(), 0..120), to: u32) {
        if let Some(steerable) = Steerable::read(&packet) {
            let to = match steerable.inner.destination {
                IpAddr::V4(_) => IpAddr::V4(to.into()),
                IpAddr::V6(_) => IpAddr::V6(u128::from(to).into()),
            };
            let rewrite = Rewrite::new(steerable.inner.destination, to).expect("one family");
            if !matches!(steerable.payload, Payload::Fragment | Payload::Opaque) {
                rewrite.apply(&steerable, &mut packet);
            }
        }
    }

    /// Whole packets with any first bytes: the reader meets every header length and protocol.
    #[test]
    fn any_header_is_survived(
        v6: bool,
        protocol in prop::sample::select(vec![TCP, UDP, ICMP, ICMPV6, V6_FRAGMENT, 0, 50]),
        mut packet in vec(any::<u8>(), 20..120),
    ) {
        let length = packet.len() as u16;
        if v6 && packet.len() >= 40 {
            packet[0] = 0x60;
            packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
            packet[6] = protocol;
        } else {
            packet[0] = 0x40 | packet[0] & 15;
            packet[2..4].copy_from_slice(&length.to_be_bytes());
            packet[9] = protocol;
        }
        if let Some(steerable) = Steerable::read(&packet)
            && !matches!(steerable.payload, Payload::Fragment | Payload::Opaque)
        {
            let old = steerable.inner.destination;
            let rewrite = Rewrite::new(old, old).expect("one family");
            let mut after = packet.clone();
            rewrite.apply(&steerable, &mut after);
            prop_assert_eq!(after.len(), packet.len());
            prop_assert_eq!(Steerable::read(&after).map(|it| it.inner), Some(steerable.inner));
        }
    }
}
