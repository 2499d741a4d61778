//! Explicit congestion notification in IP headers (RFC 3168 §5): reading the field, changing it,
//! and what a tunnel does with it (RFC 6040 §4).

use super::ip::updated_checksum;
use crate::drop_reason::DropReason;

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
/// Where IPv4's header checksum is.
const CHECKSUM: usize = 10;

/// The two bits of the ECN field (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// The transport does not understand ECN; a router drops.
    #[default]
    NotEct,
    /// The transport understands ECN, and may want another kind of it (RFC 8311 §4.2).
    Ect1,
    /// The transport understands ECN.
    Ect0,
    /// A router met congestion.
    Ce,
}

impl Ecn {
    /// The codepoint in the two low bits of a traffic class octet; the others do not count.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// The field of an IP packet; not-ECT when it is neither IPv4 nor IPv6, or cut short.
    pub fn of(packet: &[u8]) -> Self {
        Self::from_bits(match version(packet) {
            Some(Version::V4) => packet[1],
            Some(Version::V6) => packet[1] >> 4,
            None => 0,
        })
    }

    /// Writes the field into an IP packet, and what follows of it into IPv4's header checksum (RFC
    /// 1624 §3). Packets that are neither IPv4 nor IPv6 stay as they are.
    pub fn write(self, packet: &mut [u8]) {
        match version(packet) {
            Some(Version::V4) => {
                let old = u16::from_be_bytes([packet[0], packet[1]]);
                packet[1] = packet[1] & !3 | self.bits();
                let new = u16::from_be_bytes([packet[0], packet[1]]);
                let sum = u16::from_be_bytes([packet[CHECKSUM], packet[CHECKSUM + 1]]);
                let sum = updated_checksum(sum, old, new).to_be_bytes();
                packet[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum);
            }
            Some(Version::V6) => packet[1] = packet[1] & !0x30 | self.bits() << 4,
            None => {}
        }
    }

    /// What the inner field becomes where the tunnel ends (RFC 6040 §4.2, figure 4; spec E-2).
    const fn decapsulated(inner: Self, outer: Self) -> Self {
        match (inner, outer) {
            (Self::NotEct, _) => Self::NotEct,
            (Self::Ce, _) | (_, Self::Ce) => Self::Ce,
            (Self::Ect0, Self::Ect1) => Self::Ect1,
            (inner, _) => inner,
        }
    }
}

/// Marks a packet: congestion was met. Says whether its transport understands that; a packet of
/// one that does not stays as it is.
pub fn mark(packet: &mut [u8]) -> bool {
    match Ecn::of(packet) {
        Ecn::NotEct => false,
        Ecn::Ect0 | Ecn::Ect1 => {
            Ecn::Ce.write(packet);
            true
        }
        Ecn::Ce => true,
    }
}

/// Refuses a packet whose transport does not understand marks in a datagram that was marked (RFC
/// 6040 §4.2; spec E-3).
///
/// # Errors
/// [`DropReason::MarkedNotEct`].
pub fn check(packet: &[u8], outer: Ecn) -> Result<(), DropReason> {
    let is_refused = outer == Ecn::Ce && Ecn::of(packet) == Ecn::NotEct;
    if is_refused { Err(DropReason::MarkedNotEct) } else { Ok(()) }
}

/// Brings what routers wrote into the outer header of a datagram on into the inner packet that it
/// carried and that [`check`] let pass (RFC 6040 §4.2; spec E-2).
pub fn decapsulate(packet: &mut [u8], outer: Ecn) {
    let inner = Ecn::of(packet);
    let ecn = Ecn::decapsulated(inner, outer);
    // Nearly all datagrams arrive as they were sent.
    if ecn != inner {
        ecn.write(packet);
    }
}

enum Version {
    V4,
    V6,
}

fn version(packet: &[u8]) -> Option<Version> {
    match packet.first()? >> 4 {
        4 if packet.len() >= IPV4_HEADER_BYTES => Some(Version::V4),
        6 if packet.len() >= IPV6_HEADER_BYTES => Some(Version::V6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::wire::ip::testing::udp_v4;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    /// The one's complement sum over a header; 0xffff when the checksum in it is right.
    fn header_sum(packet: &[u8]) -> u16 {
        let header = &packet[..usize::from(packet[0] & 15) * 4];
        let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn v4(class: u8, source: [u8; 4]) -> Vec<u8> {
        let mut packet = udp_v4(source, [10, 0, 0, 2], 7, b"x");
        packet[1] = class;
        let sum = !header_sum(&packet);
        packet[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    fn v6(class: u8) -> Vec<u8> {
        let mut packet = vec![0; IPV6_HEADER_BYTES];
        packet[0] = 0x60 | class >> 4;
        packet[1] = class << 4 | 0x0a;
        packet
    }

    #[test]
    fn codepoints_have_the_bits_of_rfc_3168() {
        assert_eq!(ALL.map(Ecn::bits), [0, 1, 2, 3]);
        assert_eq!(ALL, [0xf0, 0xf1, 0xf2, 0xf3].map(Ecn::from_bits), "other bits do not count");
    }

    #[test]
    fn an_ipv6_class_crosses_two_octets() {
        let mut packet = v6(0b1011_1010);
        assert_eq!(Ecn::of(&packet), Ecn::Ect0);
        Ecn::Ce.write(&mut packet);
        assert_eq!(packet, v6(0b1011_1011), "DSCP and flow label stay");
    }

    /// Spec E-4.
    #[test]
    fn only_ect_packets_are_marked() {
        for (field, marked) in [(0, false), (1, true), (2, true), (3, true)] {
            for (mut packet, class_to) in [
                (v4(field, [10, 0, 0, 1]), v4(if marked { 3 } else { field }, [10, 0, 0, 1])),
                (v6(field), v6(if marked { 3 } else { field })),
            ] {
                assert_eq!(mark(&mut packet), marked);
                assert_eq!(packet, class_to);
            }
        }
        assert!(!mark(&mut []) && !mark(&mut [0x45; 19]) && !mark(&mut [0x62; 39]), "cut short");
    }

    /// RFC 6040 §4.2, figure 4, row by row; columns are the outer field.
    /// Spec E-2.
    #[test]
    fn a_tunnel_ends_by_the_table_of_rfc_6040() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        let outer = [NotEct, Ect0, Ect1, Ce];
        let rows = [
            (NotEct, [Some(NotEct), Some(NotEct), Some(NotEct), None]),
            (Ect0, [Some(Ect0), Some(Ect0), Some(Ect1), Some(Ce)]),
            (Ect1, [Some(Ect1), Some(Ect1), Some(Ect1), Some(Ce)]),
            (Ce, [Some(Ce), Some(Ce), Some(Ce), Some(Ce)]),
        ];
        for (inner, expected) in rows {
            let mut packet = v4(0, [10, 0, 0, 1]);
            inner.write(&mut packet);
            let end = |outer| check(&packet, outer).ok().map(|()| Ecn::decapsulated(inner, outer));
            assert_eq!(outer.map(end), expected, "{inner:?}");
        }
    }

    #[test]
    fn decapsulation_changes_the_inner_packet_or_refuses_it() {
        let address = [10, 0, 0, 1];
        let mut packet = v4(0xb8 | 2, address);
        decapsulate(&mut packet, Ecn::Ce);
        assert_eq!(packet, v4(0xb8 | 3, address), "and the checksum follows");
        decapsulate(&mut packet, Ecn::NotEct);
        assert_eq!(packet, v4(0xb8 | 3, address), "a mark stays");
        let mut packet = v4(0xb8, address);
        assert_eq!(check(&packet, Ecn::Ce), Err(DropReason::MarkedNotEct));
        decapsulate(&mut packet, Ecn::Ect0);
        assert_eq!(packet, v4(0xb8, address), "what a transport does not understand stays outside");
    }

    proptest! {
        /// Spec E-2: the IPv4 header checksum.
        #[test]
        fn the_header_checksum_stays_right(
            class in any::<u8>(), source in any::<[u8; 4]>(), to in 0..4usize,
        ) {
            let mut packet = v4(class, source);
            ALL[to].write(&mut packet);
            prop_assert_eq!(header_sum(&packet), 0xffff);
            prop_assert_eq!(Ecn::of(&packet), ALL[to]);
            prop_assert_eq!(packet[1] & !3, class & !3);
        }

        #[test]
        fn writing_never_panics(mut bytes in vec(any::<u8>(), 0..60), to in 0..4usize) {
            ALL[to].write(&mut bytes);
            let _ = Ecn::of(&bytes);
        }
    }
}
