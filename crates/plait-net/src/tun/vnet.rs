//! The header before every packet of an offloading TUN (virtio 1.2 section 5.1.6).

/// Bytes of the header, with the `num_buffers` field that TUN ignores.
pub const VNET_HEADER_LEN: usize = 12;

const FLAG_NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

/// What kind of segmentation a packet asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gso {
    /// One packet as it stands.
    None,
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams of equal size over IPv4 or IPv6.
    Udp,
}

/// The header in the machine's byte order, which is TUN's default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VnetHeader {
    /// The checksum field holds only the pseudo-header's sum; the rest is to be added.
    pub needs_checksum: bool,
    /// Kind of segmentation.
    pub gso: Gso,
    /// The first TCP segment carries CWR, which may not be repeated in the others.
    pub ecn: bool,
    /// Bytes of IP and transport headers. Wrong on forwarded packets, so never trusted on receipt.
    pub header_len: u16,
    /// Payload bytes per segment.
    pub gso_size: u16,
    /// Where the checksummed part begins: the transport header's offset.
    pub checksum_start: u16,
    /// Offset of the checksum field from `checksum_start`.
    pub checksum_offset: u16,
}

impl VnetHeader {
    /// The header of a packet that is complete as it stands.
    pub const PLAIN: Self = Self {
        needs_checksum: false,
        gso: Gso::None,
        ecn: false,
        header_len: 0,
        gso_size: 0,
        checksum_start: 0,
        checksum_offset: 0,
    };

    /// Reads a header; `None` when the kind of segmentation is one that was never asked for.
    pub fn parse(bytes: &[u8; VNET_HEADER_LEN]) -> Option<Self> {
        let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        let gso = match bytes[1] & !GSO_ECN {
            GSO_NONE => Gso::None,
            GSO_TCPV4 => Gso::TcpV4,
            GSO_TCPV6 => Gso::TcpV6,
            GSO_UDP_L4 => Gso::Udp,
            _ => return None,
        };
        Some(Self {
            needs_checksum: bytes[0] & FLAG_NEEDS_CSUM != 0,
            gso,
            ecn: bytes[1] & GSO_ECN != 0,
            header_len: field(2),
            gso_size: field(4),
            checksum_start: field(6),
            checksum_offset: field(8),
        })
    }

    /// Writes the header.
    pub fn emit(&self) -> [u8; VNET_HEADER_LEN] {
        let mut bytes = [0; VNET_HEADER_LEN];
        bytes[0] = if self.needs_checksum { FLAG_NEEDS_CSUM } else { 0 };
        bytes[1] = match self.gso {
            Gso::None => GSO_NONE,
            Gso::TcpV4 => GSO_TCPV4,
            Gso::TcpV6 => GSO_TCPV6,
            Gso::Udp => GSO_UDP_L4,
        };
        if self.ecn {
            bytes[1] |= GSO_ECN;
        }
        let fields = [self.header_len, self.gso_size, self.checksum_start, self.checksum_offset];
        for (at, field) in (2..).step_by(2).zip(fields) {
            bytes[at..at + 2].copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_undoes_emit() {
        for gso in [Gso::None, Gso::TcpV4, Gso::TcpV6, Gso::Udp] {
            let header = VnetHeader {
                needs_checksum: gso != Gso::None,
                gso,
                ecn: gso == Gso::TcpV6,
                header_len: 1,
                gso_size: 0x203,
                checksum_start: 0x405,
                checksum_offset: 0x607,
            };
            assert_eq!(VnetHeader::parse(&header.emit()), Some(header));
        }
    }

    #[test]
    fn unknown_segmentation_is_refused() {
        let mut bytes = VnetHeader::PLAIN.emit();
        bytes[1] = 3;
        assert_eq!(VnetHeader::parse(&bytes), None);
    }
}
