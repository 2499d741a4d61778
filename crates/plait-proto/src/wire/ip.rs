//! Read-only views of inner packets: just enough to route, to check the source and to tell flows
//! apart.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// What the gateway reads of an inner packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inner {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Next protocol; for IPv6 the first header's.
    pub protocol: u8,
    /// Source and destination port as they stand in the packet; 0 where there are none, as in
    /// fragments.
    pub ports: u32,
}

impl Inner {
    /// Reads a packet; `None` when it is neither IPv4 nor IPv6 or its length field does not fit.
    pub fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::read_v4(packet),
            6 => Self::read_v6(packet),
            _ => None,
        }
    }

    fn read_v4(packet: &[u8]) -> Option<Self> {
        let header: &[u8; 20] = packet.first_chunk()?;
        let header_bytes = usize::from(header[0] & 15) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header_bytes < 20 || total != packet.len() || header_bytes > total {
            return None;
        }
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
        Some(Self {
            source: Ipv4Addr::new(s0, s1, s2, s3).into(),
            destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
            protocol: header[9],
            ports: if fragment { 0 } else { ports(header[9], &packet[header_bytes..]) },
        })
    }

    fn read_v6(packet: &[u8]) -> Option<Self> {
        let header: &[u8; 40] = packet.first_chunk()?;
        let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
        if payload + 40 != packet.len() {
            return None;
        }
        let source: [u8; 16] = header[8..24].try_into().ok()?;
        let destination: [u8; 16] = header[24..40].try_into().ok()?;
        Some(Self {
            source: Ipv6Addr::from(source).into(),
            destination: Ipv6Addr::from(destination).into(),
            protocol: header[6],
            ports: ports(header[6], &packet[40..]),
        })
    }
}

/// Every IPv6 link carries this much (RFC 8200 §5).
pub const IPV6_MTU_MIN: usize = 1280;

/// The largest inner packet that a path must carry to carry this one, in bytes. A path below the
/// least that IPv6 asks of a link carries no IPv6, whatever the packet's size (spec M-4).
pub fn room_needed(packet: &[u8]) -> usize {
    let is_ipv6 = packet.first().is_some_and(|first| first >> 4 == 6);
    if is_ipv6 { packet.len().max(IPV6_MTU_MIN) } else { packet.len() }
}

/// The Internet checksum of the parts, one after the other (RFC 1071); all but the last are of even
/// length.
pub(super) fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 = words
        .map(|word| u64::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])))
        .sum();
    let folded = (sum & 0xffff_ffff) + (sum >> 32);
    let folded = (folded & 0xffff) + (folded >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

fn ports(protocol: u8, payload: &[u8]) -> u32 {
    match (protocol, payload.first_chunk()) {
        (TCP | UDP | SCTP, Some(ports)) => u32::from_be_bytes(*ports),
        _ => 0,
    }
}

/// The checksum after one word changed (RFC 1624 §3, equation 3).
pub(super) const fn updated_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = !checksum as u32 + !old as u32 + new as u32;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
pub(crate) mod testing {
    /// An IPv4 UDP packet with this payload and a zero checksum.
    pub(crate) fn udp_v4(
        source: [u8; 4],
        destination: [u8; 4],
        ports: u32,
        body: &[u8],
    ) -> Vec<u8> {
        let total = (28 + body.len()) as u16;
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&total.to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
        packet.extend_from_slice(&source);
        packet.extend_from_slice(&destination);
        packet.extend_from_slice(&ports.to_be_bytes());
        packet.extend_from_slice(&(total - 20).to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
        packet.extend_from_slice(body);
        packet
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_udp_over_ipv4() {
        let packet = testing::udp_v4([10, 0, 0, 1], [10, 0, 0, 2], 0x1234_5678, b"x");
        let inner = Inner::read(&packet).expect("well formed");
        assert_eq!(inner.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(inner.destination, IpAddr::from([10, 0, 0, 2]));
        assert_eq!((inner.protocol, inner.ports), (17, 0x1234_5678));
        assert_eq!(Inner::read(&packet[..packet.len() - 1]), None, "cut short");
    }

    #[test]
    fn a_fragment_has_no_ports() {
        let mut packet = testing::udp_v4([10, 0, 0, 1], [10, 0, 0, 2], 7, b"x");
        packet[6] = 0x20;
        assert_eq!(Inner::read(&packet).expect("well formed").ports, 0);
    }

    proptest! {
        #[test]
        fn reading_never_panics(bytes in vec(any::<u8>(), 0..100)) {
            let _ = Inner::read(&bytes);
        }
    }
}
