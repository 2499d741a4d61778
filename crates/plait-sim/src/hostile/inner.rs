//! Inner packets: those that a customer's host could send, and some that it should not.

use core::net::{IpAddr, Ipv4Addr};

const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const UDP: u8 = 17;
const TCP: u8 = 6;
/// Least bytes of [`udp`] over IPv4.
pub(super) const UDP_V4_BYTES_MIN: usize = IPV4_BYTES + UDP_BYTES;
/// Discard (RFC 863): a receiver sends no answer.
const PORT: u16 = 9;

/// An IP header before `payload`; both addresses are of one family.
fn ip(source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            ipv4(source, destination, protocol, payload)
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let length = (payload.len() as u16).to_be_bytes();
            let head = [0x60, 0, 0, 0, length[0], length[1], protocol, 64];
            [&head[..], &source.octets(), &destination.octets(), payload].concat()
        }
        _ => Vec::new(),
    }
}

fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = ((IPV4_BYTES + payload.len()) as u16).to_be_bytes();
    let mut head = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
    head.extend_from_slice(&source.octets());
    head.extend_from_slice(&destination.octets());
    let sum = checksum(&head);
    head[10..12].copy_from_slice(&sum.to_be_bytes());
    head.extend_from_slice(payload);
    head
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        rest => u32::from(rest[0]) << 8,
    });
    let sum = words.sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded + (folded >> 16)) as u16)
}

/// An empty UDP packet of `bytes` in all, but at least its headers. Its checksum is left out, which
/// IPv4 allows.
pub(super) fn udp(source: IpAddr, destination: IpAddr, source_port: u16, bytes: usize) -> Vec<u8> {
    let header = if source.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES };
    let length = bytes.saturating_sub(header).max(UDP_BYTES);
    let mut payload = vec![0; length];
    payload[..2].copy_from_slice(&source_port.to_be_bytes());
    payload[2..4].copy_from_slice(&PORT.to_be_bytes());
    payload[4..6].copy_from_slice(&(length as u16).to_be_bytes());
    ip(source, destination, UDP, &payload)
}

/// A TCP SYN that announces this MSS. Its checksum is wrong.
pub(super) fn syn(source: IpAddr, destination: IpAddr, source_port: u16, mss: u16) -> Vec<u8> {
    let mut payload = vec![0; 24];
    payload[..2].copy_from_slice(&source_port.to_be_bytes());
    payload[2..4].copy_from_slice(&PORT.to_be_bytes());
    // Six words of header; SYN.
    payload[12..14].copy_from_slice(&[6 << 4, 2]);
    payload[20..22].copy_from_slice(&[2, 4]);
    payload[22..24].copy_from_slice(&mss.to_be_bytes());
    ip(source, destination, TCP, &payload)
}

#[cfg(test)]
mod tests {
    use plait_proto::wire::ip::Inner;
    use plait_proto::wire::mss;

    use super::*;

    #[test]
    fn packets_are_what_they_say() {
        let pairs: [[IpAddr; 2]; 2] = [
            ["10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()],
            ["fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()],
        ];
        for [source, destination] in pairs {
            let packet = udp(source, destination, 7, 200);
            assert_eq!(packet.len(), 200);
            let read = Inner::read(&packet).expect("a whole packet");
            assert_eq!((read.source, read.destination), (source, destination));
            let mut packet = syn(source, destination, 7, 9000);
            assert_eq!(Inner::read(&packet).map(|inner| inner.protocol), Some(TCP));
            assert!(mss::clamp(&mut packet, 1280), "the MSS is found");
        }
    }

    #[test]
    fn a_header_sums_to_nothing() {
        let packet = udp([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 7, 60);
        assert_eq!(checksum(&packet[..IPV4_BYTES]), 0);
    }
}
