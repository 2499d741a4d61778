//! Packets with right checksums, worked out over the whole packet.

use core::net::IpAddr;

use super::{ICMP, ICMPV6, TCP, UDP};

/// The one's complement sum of these bytes.
fn sum(bytes: &[u8]) -> u32 {
    let mut sum = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    sum
}

fn checksum(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A packet of any protocol around `segment`. `options` go into an IPv4 header.
pub(crate) fn ip(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    options: &[u8],
    segment: &[u8],
) -> Vec<u8> {
    let mut packet = Vec::new();
    if source.is_ipv4() {
        let header_bytes = 20 + options.len();
        let total = (header_bytes + segment.len()) as u16;
        packet.extend_from_slice(&[0x40 | (header_bytes / 4) as u8, 0]);
        packet.extend_from_slice(&total.to_be_bytes());
        packet.extend_from_slice(&[0x12, 0x34, 0x40, 0, 63, protocol, 0, 0]);
    } else {
        packet.extend_from_slice(&[0x60, 0, 0, 0]);
        packet.extend_from_slice(&(segment.len() as u16).to_be_bytes());
        packet.extend_from_slice(&[protocol, 63]);
    }
    packet.extend_from_slice(&octets(source));
    packet.extend_from_slice(&octets(destination));
    if source.is_ipv4() {
        packet.extend_from_slice(options);
        let header = checksum(sum(&packet));
        packet[10..12].copy_from_slice(&header.to_be_bytes());
    }
    packet.extend_from_slice(segment);
    packet
}

/// The checksum of a segment whose checksum field is zero, with the pseudo-header (RFC 9293 §3.1,
/// RFC 8200 §8.1).
fn transport_checksum(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    segment: &[u8],
) -> [u8; 2] {
    let addresses = sum(&octets(source)) + sum(&octets(destination));
    let pseudo = addresses + u32::from(protocol) + segment.len() as u32;
    checksum(pseudo + sum(segment)).to_be_bytes()
}

/// A TCP segment with these control bits and data.
pub(crate) fn tcp(
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    flags: u8,
    data: &[u8],
) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend_from_slice(&source.1.to_be_bytes());
    segment.extend_from_slice(&destination.1.to_be_bytes());
    segment.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 2, 0, 0, 0, 0]);
    segment.extend_from_slice(data);
    let checksum = transport_checksum(source.0, destination.0, TCP, &segment);
    segment[16..18].copy_from_slice(&checksum);
    ip(source.0, destination.0, TCP, &[], &segment)
}

/// A UDP datagram; without a checksum when `bare`.
pub(crate) fn udp(
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    data: &[u8],
    bare: bool,
) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend_from_slice(&source.1.to_be_bytes());
    segment.extend_from_slice(&destination.1.to_be_bytes());
    segment.extend_from_slice(&(8 + data.len() as u16).to_be_bytes());
    segment.extend_from_slice(&[0, 0]);
    segment.extend_from_slice(data);
    if !bare {
        let mut checksum = transport_checksum(source.0, destination.0, UDP, &segment);
        if checksum == [0, 0] {
            checksum = [0xff, 0xff];
        }
        segment[6..8].copy_from_slice(&checksum);
    }
    ip(source.0, destination.0, UDP, &[], &segment)
}

/// An echo request of the addresses' family.
pub(crate) fn echo(source: IpAddr, destination: IpAddr, data: &[u8]) -> Vec<u8> {
    let (protocol, kind) = if source.is_ipv4() { (ICMP, 8) } else { (ICMPV6, 128) };
    let mut segment = vec![kind, 0, 0, 0, 0, 7, 0, 9];
    segment.extend_from_slice(data);
    let checksum = match protocol {
        ICMP => checksum(sum(&segment)).to_be_bytes(),
        _ => transport_checksum(source, destination, protocol, &segment),
    };
    segment[2..4].copy_from_slice(&checksum);
    ip(source, destination, protocol, &[], &segment)
}
