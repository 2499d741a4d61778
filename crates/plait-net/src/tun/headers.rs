//! Finds the headers of an IP packet. Only reads; refuses what it cannot parse.

use crate::checksum::Sum;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

pub(crate) const IPV4_HEADER_LEN: usize = 20;
pub(crate) const IPV6_HEADER_LEN: usize = 40;
pub(crate) const TCP_HEADER_LEN: usize = 20;
pub(crate) const UDP_HEADER_LEN: usize = 8;

/// Offset of the checksum field in a TCP header.
pub(crate) const TCP_CHECKSUM: usize = 16;
/// Offset of the checksum field in a UDP header.
pub(crate) const UDP_CHECKSUM: usize = 6;
/// Offset of the flag bits in a TCP header.
pub(crate) const TCP_FLAGS: usize = 13;

pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const PSH: u8 = 0x08;
pub(crate) const URG: u8 = 0x20;
pub(crate) const CWR: u8 = 0x80;

/// IPv6 extension headers that are skipped: hop-by-hop, routing, destination options.
const SKIPPED_EXTENSIONS: [u8; 3] = [0, 43, 60];
/// More extension headers than any real packet has.
const EXTENSIONS_MAX: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IpVersion {
    V4,
    V6,
}

/// An unfragmented TCP or UDP packet whose headers lie fully inside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) version: IpVersion,
    /// [`TCP`] or [`UDP`].
    pub(crate) protocol: u8,
    /// Offset of the transport header.
    pub(crate) transport: usize,
    /// Offset of the payload.
    pub(crate) payload: usize,
}

impl Layout {
    /// Finds the headers of `packet`, which must be exactly as long as its IP header says.
    pub(crate) fn parse(packet: &[u8]) -> Option<Self> {
        let (version, protocol, transport) = match packet.first()? >> 4 {
            4 => parse_v4(packet)?,
            6 => parse_v6(packet)?,
            _ => return None,
        };
        let header = packet.get(transport..)?;
        let header_len = match protocol {
            TCP => {
                let len = usize::from(*header.get(12)? >> 4) * 4;
                if len < TCP_HEADER_LEN {
                    return None;
                }
                len
            }
            UDP => UDP_HEADER_LEN,
            _ => return None,
        };
        if header.len() < header_len {
            return None;
        }
        Some(Self { version, protocol, transport, payload: transport + header_len })
    }

    /// Offset of the checksum field from the transport header.
    pub(crate) fn checksum_offset(&self) -> usize {
        if self.protocol == TCP { TCP_CHECKSUM } else { UDP_CHECKSUM }
    }

    /// The pseudo-header's sum without the transport length (RFC 9293 section 3.1, RFC 8200
    /// section 8.1). Valid when no IPv6 routing header changes the destination.
    pub(crate) fn pseudo_header_sum(&self, packet: &[u8]) -> Sum {
        let addresses = match self.version {
            IpVersion::V4 => &packet[12..20],
            IpVersion::V6 => &packet[8..40],
        };
        Sum::new().bytes(addresses).word(u16::from(self.protocol))
    }
}

fn parse_v4(packet: &[u8]) -> Option<(IpVersion, u8, usize)> {
    let header_len = usize::from(packet[0] & 0xf) * 4;
    if header_len < IPV4_HEADER_LEN || packet.len() < header_len {
        return None;
    }
    let fragmented = read_u16(packet, 6) & 0x3fff != 0;
    if fragmented || usize::from(read_u16(packet, 2)) != packet.len() {
        return None;
    }
    Some((IpVersion::V4, packet[9], header_len))
}

fn parse_v6(packet: &[u8]) -> Option<(IpVersion, u8, usize)> {
    if packet.len() < IPV6_HEADER_LEN {
        return None;
    }
    if usize::from(read_u16(packet, 4)) != packet.len() - IPV6_HEADER_LEN {
        return None;
    }
    let mut next = packet[6];
    let mut at = IPV6_HEADER_LEN;
    for _ in 0..EXTENSIONS_MAX {
        if !SKIPPED_EXTENSIONS.contains(&next) {
            return Some((IpVersion::V6, next, at));
        }
        next = *packet.get(at)?;
        at += (usize::from(*packet.get(at + 1)?) + 1) * 8;
    }
    None
}

/// The checksum of a UDP datagram may not be zero, which would mean "none" (RFC 768).
pub(crate) fn finish_checksum(protocol: u8, sum: Sum) -> [u8; 2] {
    match sum.checksum() {
        [0, 0] if protocol == UDP => [0xff, 0xff],
        checksum => checksum,
    }
}

/// Recomputes the IPv4 header checksum over the first `header_len` bytes.
pub(crate) fn set_ipv4_header_checksum(header: &mut [u8]) {
    write_u16(header, 10, 0);
    let checksum = Sum::new().bytes(header).checksum();
    header[10..12].copy_from_slice(&checksum);
}

pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn write_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn write_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
