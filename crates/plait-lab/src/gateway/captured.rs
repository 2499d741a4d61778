//! What gateways send each other, as it is captured on links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::LISTEN_PORT;
use crate::topology::Topology;

/// What a captured IP packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Captured<'a> {
    /// A UDP datagram to or from the gateway's port whose first byte names version 1 and a kind.
    Plait { kind: u8, to: SocketAddr, payload: &'a [u8] },
    /// The kernel's own announcements on a link (IPv6 multicast groups): never forwarded, and not
    /// passed through a gateway.
    Neighbourhood,
    /// Anything else.
    Foreign,
}

/// Sorts a captured packet.
pub(crate) fn sort(packet: &[u8]) -> Captured<'_> {
    match plait_payload(packet) {
        Some((kind, to, payload)) => Captured::Plait { kind, to, payload },
        None if is_multicast_report(packet) => Captured::Neighbourhood,
        None => Captured::Foreign,
    }
}

/// An MLDv2 report (RFC 3810 section 5.2): to ff02::16, a hop-by-hop header before ICMPv6.
fn is_multicast_report(packet: &[u8]) -> bool {
    const ALL_MLDV2_ROUTERS: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16];
    const HOP_BY_HOP: u8 = 0;
    packet.first().is_some_and(|first| first >> 4 == 6)
        && packet.get(6) == Some(&HOP_BY_HOP)
        && packet.get(24..40) == Some(&ALL_MLDV2_ROUTERS)
}

fn plait_payload(packet: &[u8]) -> Option<(u8, SocketAddr, &[u8])> {
    const UDP: u8 = 17;
    const KINDS: [u8; 5] = [1, 2, 3, 4, 5];
    let (header_bytes, destination) = match packet.first()? >> 4 {
        4 if *packet.get(9)? == UDP => {
            let octets: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (usize::from(packet[0] & 15) * 4, IpAddr::from(Ipv4Addr::from(octets)))
        }
        6 if *packet.get(6)? == UDP => {
            let octets: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            (40, IpAddr::from(Ipv6Addr::from(octets)))
        }
        _ => return None,
    };
    let udp = packet.get(header_bytes..)?;
    let port = |at: usize| Some(u16::from_be_bytes([*udp.get(at)?, *udp.get(at + 1)?]));
    if port(0)? != LISTEN_PORT && port(2)? != LISTEN_PORT {
        return None;
    }
    let payload = udp.get(8..)?;
    let first = *payload.first()?;
    let kind = first & 15;
    let to = SocketAddr::from((destination, port(2)?));
    (first >> 4 == 1 && KINDS.contains(&kind)).then_some((kind, to, payload))
}

/// Payloads that the gateways sent each other, in both directions, of a topology's capture.
pub(crate) fn payloads(topology: &Topology) -> Vec<Vec<u8>> {
    let payload = |packet: Box<[u8]>| match sort(&packet) {
        Captured::Plait { payload, .. } => Some(payload.to_vec()),
        Captured::Neighbourhood | Captured::Foreign => None,
    };
    topology.captured().filter_map(|(_, packet)| payload(packet)).collect()
}

/// Whether `packet` holds `marker` anywhere.
pub(crate) fn holds(packet: &[u8], marker: &[u8]) -> bool {
    packet.windows(marker.len()).any(|window| window == marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp_v4(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[9] = 17;
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        packet.extend(source.to_be_bytes());
        packet.extend(destination.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(payload);
        packet
    }

    #[test]
    fn plait_is_told_from_the_rest() {
        let data = udp_v4(40_000, LISTEN_PORT, &[0x14, 1, 2]);
        let to = SocketAddr::from(([192, 0, 2, 1], LISTEN_PORT));
        assert_eq!(sort(&data), Captured::Plait { kind: 4, to, payload: &[0x14, 1, 2] });
        for (what, packet) in [
            ("another port", udp_v4(40_000, 53, &[0x14, 1, 2])),
            ("another version", udp_v4(LISTEN_PORT, 40_000, &[0x24, 1, 2])),
            ("an unknown kind", udp_v4(LISTEN_PORT, 40_000, &[0x1f, 1, 2])),
            ("no payload", udp_v4(LISTEN_PORT, 40_000, &[])),
            ("cut short", data[..21].to_vec()),
            ("nothing", Vec::new()),
        ] {
            assert_eq!(sort(&packet), Captured::Foreign, "{what}");
        }
    }

    #[test]
    fn ipv6_is_read_too() {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[6] = 17;
        packet.extend(&udp_v4(LISTEN_PORT, 9, &[0x15])[20..]);
        let to = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 9));
        assert_eq!(sort(&packet), Captured::Plait { kind: 5, to, payload: &[0x15] });
    }

    #[test]
    fn multicast_reports_are_the_kernels() {
        let mut report = vec![0; 76];
        report[0] = 0x60;
        report[24..26].copy_from_slice(&[0xff, 2]);
        report[39] = 0x16;
        assert_eq!(sort(&report), Captured::Neighbourhood);
        report[39] = 0x17;
        assert_eq!(sort(&report), Captured::Foreign);
    }

    #[test]
    fn a_marker_is_found_anywhere() {
        assert!(holds(b"xxmarker", b"marker"));
        assert!(!holds(b"xxmarke", b"marker"));
    }
}
