//! What a gateway tells the sender of an inner packet that it cannot carry whole (RFC 792, RFC 1191
//! §4, RFC 4443 §3.1 and §3.2).
//!
//! The messages come from the inner packet's destination: the gateway's own inner address may not
//! be one, and a host that checks whether a source is reached over the device it came from
//! (`rp_filter`) takes this one.

use core::net::IpAddr;

use super::ip::{Inner, checksum};

const ICMPV4: u8 = 1;
const ICMPV6: u8 = 58;
const HOP_LIMIT: u8 = 64;
/// IPv4: type and code of "fragmentation needed and DF set".
const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
const PACKET_TOO_BIG: [u8; 2] = [2, 0];
/// IPv6: "no route to destination".
const NO_ROUTE: [u8; 2] = [1, 0];
/// ICMPv4 messages of these types are answered; all others may be errors (RFC 1122 §3.2.2).
const ICMPV4_QUERIES: [u8; 2] = [0, 8];
/// The message holds as much of the packet as fits so many bytes (RFC 1812 §4.3.2.3, RFC 4443
/// §2.4).
const IPV4_BYTES_MAX: usize = 576;
const IPV6_BYTES_MAX: usize = 1280;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const ICMP_HEADER_BYTES: usize = 8;

/// Tells a sender the largest packet that its destination takes now. `None` when it must not be
/// told.
pub fn too_big(packet: &[u8], inner: &Inner, mtu: u16) -> Option<Vec<u8>> {
    match may_be_told(packet, inner)? {
        IpAddr::V4(_) => Some(message_v4(packet, mtu)),
        IpAddr::V6(_) => Some(message_v6(packet, PACKET_TOO_BIG, mtu.into())),
    }
}

/// Tells the sender of an IPv6 packet that nothing to its destination carries IPv6 now. `None` when
/// it must not be told.
pub fn no_ipv6(packet: &[u8], inner: &Inner) -> Option<Vec<u8>> {
    let source = may_be_told(packet, inner)?;
    source.is_ipv6().then(|| message_v6(packet, NO_ROUTE, 0))
}

/// The sender, unless nobody is to be told: of an error, of a later fragment, or where the source
/// is no single host (RFC 1122 §3.2.2, RFC 4443 §2.4 e).
fn may_be_told(packet: &[u8], inner: &Inner) -> Option<IpAddr> {
    let (header_bytes, is_later_fragment) = match inner.source {
        IpAddr::V4(_) => {
            let header = packet.first_chunk::<IPV4_HEADER_BYTES>()?;
            let offset = u16::from_be_bytes([header[6], header[7]]) & 0x1fff;
            (usize::from(header[0] & 15) * 4, offset != 0)
        }
        IpAddr::V6(_) => (IPV6_HEADER_BYTES, false),
    };
    let kind = packet.get(header_bytes).copied();
    let is_error = match inner.protocol {
        ICMPV4 => kind.is_none_or(|kind| !ICMPV4_QUERIES.contains(&kind)),
        ICMPV6 => kind.is_none_or(|kind| kind < 128),
        _ => false,
    };
    let is_one_host = match inner.source {
        IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
    };
    (!is_error && !is_later_fragment && is_one_host).then_some(inner.source)
}

fn message_v4(packet: &[u8], mtu: u16) -> Vec<u8> {
    let quoted =
        &packet[..packet.len().min(IPV4_BYTES_MAX - IPV4_HEADER_BYTES - ICMP_HEADER_BYTES)];
    let total = (IPV4_HEADER_BYTES + ICMP_HEADER_BYTES + quoted.len()) as u16;
    let mut message = vec![0x45, 0];
    message.extend_from_slice(&total.to_be_bytes());
    message.extend_from_slice(&[0, 0, 0, 0, HOP_LIMIT, ICMPV4, 0, 0]);
    message.extend_from_slice(&packet[16..20]);
    message.extend_from_slice(&packet[12..16]);
    let sum = checksum(&[&message]);
    message[10..12].copy_from_slice(&sum.to_be_bytes());
    let [mtu_high, mtu_low] = mtu.to_be_bytes();
    let [kind, code] = FRAGMENTATION_NEEDED;
    let mut header = [kind, code, 0, 0, 0, 0, mtu_high, mtu_low];
    let sum = checksum(&[&header, quoted]);
    header[2..4].copy_from_slice(&sum.to_be_bytes());
    message.extend_from_slice(&header);
    message.extend_from_slice(quoted);
    message
}

fn message_v6(packet: &[u8], [kind, code]: [u8; 2], parameter: u32) -> Vec<u8> {
    let quoted =
        &packet[..packet.len().min(IPV6_BYTES_MAX - IPV6_HEADER_BYTES - ICMP_HEADER_BYTES)];
    let payload = (ICMP_HEADER_BYTES + quoted.len()) as u16;
    let mut message = vec![0x60, 0, 0, 0];
    message.extend_from_slice(&payload.to_be_bytes());
    message.extend_from_slice(&[ICMPV6, HOP_LIMIT]);
    message.extend_from_slice(&packet[24..40]);
    message.extend_from_slice(&packet[8..24]);
    let mut header = [kind, code, 0, 0, 0, 0, 0, 0];
    header[4..].copy_from_slice(&parameter.to_be_bytes());
    let pseudo = [&u32::from(payload).to_be_bytes()[..], &[0, 0, 0, ICMPV6]].concat();
    let sum = checksum(&[&message[8..40], &pseudo, &header, quoted]);
    header[2..4].copy_from_slice(&sum.to_be_bytes());
    message.extend_from_slice(&header);
    message.extend_from_slice(quoted);
    message
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::ip::testing::udp_v4;
    use super::*;

    fn udp_v6(bytes: usize) -> Vec<u8> {
        let payload = (bytes - 40) as u16;
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend_from_slice(&payload.to_be_bytes());
        packet.extend_from_slice(&[17, 64]);
        packet.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend_from_slice(&[0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.resize(bytes, 7);
        packet
    }

    fn told(packet: &[u8], mtu: u16) -> Option<Vec<u8>> {
        too_big(packet, &Inner::read(packet).expect("well formed"), mtu)
    }

    #[test]
    fn an_ipv4_sender_is_told_the_size() {
        let packet = udp_v4([10, 0, 0, 1], [10, 0, 0, 2], 0x1234_5678, &[9; 1400]);
        let message = told(&packet, 1220).unwrap();
        let inner = Inner::read(&message).expect("a packet");
        assert_eq!(inner.source, IpAddr::from([10, 0, 0, 2]));
        assert_eq!(inner.destination, IpAddr::from([10, 0, 0, 1]));
        assert_eq!((message.len(), inner.protocol), (576, ICMPV4));
        assert_eq!(message[20..22], [3, 4]);
        assert_eq!(message[26..28], 1220_u16.to_be_bytes());
        assert_eq!(message[28..], packet[..548]);
        assert_eq!((checksum(&[&message[..20]]), checksum(&[&message[20..]])), (0, 0));
    }

    #[test]
    fn an_ipv6_sender_is_told_the_size_or_that_there_is_no_way() {
        let packet = udp_v6(1400);
        let inner = Inner::read(&packet).expect("well formed");
        let messages = [told(&packet, 1300), no_ipv6(&packet, &inner)].map(Option::unwrap);
        let kinds: [([u8; 2], u32); 2] = [([2, 0], 1300), ([1, 0], 0)];
        for (message, (kind, parameter)) in messages.iter().zip(kinds) {
            let read = Inner::read(message).expect("a packet");
            assert_eq!((read.source, read.destination), (inner.destination, inner.source));
            assert_eq!((message.len(), read.protocol), (1280, ICMPV6));
            assert_eq!(message[40..42], kind);
            assert_eq!(message[44..48], parameter.to_be_bytes());
            assert_eq!(message[48..], packet[..1232]);
            let pseudo = [0, 0, 4, 216, 0, 0, 0, ICMPV6];
            assert_eq!(checksum(&[&message[8..40], &pseudo, &message[40..]]), 0);
        }
    }

    #[test]
    fn errors_later_fragments_and_groups_are_not_told() {
        let udp = udp_v4([10, 0, 0, 1], [10, 0, 0, 2], 7, &[0; 1400]);
        let changed = |at: usize, byte: u8| {
            let mut packet = udp.clone();
            packet[at] = byte;
            packet
        };
        assert!(told(&udp, 1000).is_some());
        assert_eq!(told(&changed(7, 1), 1000), None, "a later fragment");
        assert_eq!(told(&changed(12, 224), 1000), None, "from a group");
        let icmp = |kind: u8| {
            let mut packet = changed(9, ICMPV4);
            packet[20] = kind;
            packet
        };
        assert!(told(&icmp(8), 1000).is_some(), "an echo request");
        assert_eq!(told(&icmp(3), 1000), None, "an error");
        let mut icmpv6 = udp_v6(1400);
        icmpv6[6] = ICMPV6;
        icmpv6[40] = 2;
        assert_eq!(told(&icmpv6, 1300), None, "an error");
        icmpv6[40] = 128;
        assert!(told(&icmpv6, 1300).is_some(), "an echo request");
        let inner = Inner::read(&udp).expect("well formed");
        assert_eq!(no_ipv6(&udp, &inner), None, "IPv4");
    }

    proptest! {
        #[test]
        fn any_packet_that_reads_is_answered_or_not_without_panic(
            mut packet in vec(any::<u8>(), 20..100), v6: bool,
        ) {
            packet[0] = if v6 { 0x60 } else { 0x45 };
            let length = packet.len() as u16;
            if v6 && length >= 40 {
                packet[4..6].copy_from_slice(&(length - 40).to_be_bytes());
            } else {
                packet[2..4].copy_from_slice(&length.to_be_bytes());
            }
            if let Some(inner) = Inner::read(&packet)
                && let Some(message) = too_big(&packet, &inner, 1280)
            {
                prop_assert!(Inner::read(&message).is_some());
            }
        }
    }
}
