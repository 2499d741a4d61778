//! Builds packets for tests, with checksums computed by separate code.

use super::headers::{IpVersion, TCP, UDP, write_u16, write_u32};

/// A description of a TCP or UDP packet.
#[derive(Clone, Debug)]
pub(crate) struct TestPacket {
    pub(crate) version: IpVersion,
    pub(crate) udp: bool,
    pub(crate) source_port: u16,
    pub(crate) id: u16,
    pub(crate) dont_fragment: bool,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    pub(crate) window: u16,
    /// Timestamp option value; none without.
    pub(crate) timestamp: Option<u32>,
    pub(crate) payload: Vec<u8>,
}

impl TestPacket {
    pub(crate) fn new(version: IpVersion, udp: bool, payload_len: usize) -> Self {
        Self {
            version,
            udp,
            source_port: 1000,
            id: 7,
            dont_fragment: true,
            ttl: 64,
            tos: 0,
            seq: 0xffff_f000,
            ack: 5,
            flags: 0x10,
            window: 500,
            timestamp: Some(9),
            payload: (0..payload_len).map(|at| (at * 7 + at / 251) as u8).collect(),
        }
    }

    pub(crate) fn transport_len(&self) -> usize {
        let header = match (self.udp, self.timestamp) {
            (true, _) => 8,
            (false, None) => 20,
            (false, Some(_)) => 32,
        };
        header + self.payload.len()
    }

    pub(crate) fn header_len(&self) -> usize {
        let ip = if self.version == IpVersion::V4 { 20 } else { 40 };
        ip + self.transport_len() - self.payload.len()
    }

    /// The packet with full checksums.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut packet = self.bytes_without_checksum();
        let (transport, field) = self.checksum_place();
        let mut sum = !reference_checksum(&self.covered(&packet));
        if self.udp && sum == 0xffff {
            sum = 0;
        }
        write_u16(&mut packet[transport..], field, !sum);
        packet
    }

    /// The packet with the pseudo-header's sum only, as it comes from TUN.
    pub(crate) fn bytes_with_partial_checksum(&self) -> Vec<u8> {
        let mut packet = self.bytes_without_checksum();
        let (transport, field) = self.checksum_place();
        let pseudo_len = self.covered(&packet).len() - self.transport_len();
        let sum = !reference_checksum(&self.covered(&packet)[..pseudo_len]);
        write_u16(&mut packet[transport..], field, sum);
        packet
    }

    /// Offset of the transport header, and of the checksum field in it.
    pub(crate) fn checksum_place(&self) -> (usize, usize) {
        let transport = if self.version == IpVersion::V4 { 20 } else { 40 };
        (transport, if self.udp { 6 } else { 16 })
    }

    /// Pseudo-header and transport part.
    fn covered(&self, packet: &[u8]) -> Vec<u8> {
        let (transport, _) = self.checksum_place();
        let addresses =
            if self.version == IpVersion::V4 { &packet[12..20] } else { &packet[8..40] };
        let protocol = if self.udp { UDP } else { TCP };
        let mut covered = addresses.to_vec();
        covered.extend([0, protocol]);
        covered.extend((self.transport_len() as u16).to_be_bytes());
        covered.extend(&packet[transport..]);
        covered
    }

    fn bytes_without_checksum(&self) -> Vec<u8> {
        let protocol = if self.udp { UDP } else { TCP };
        let mut ip = if self.version == IpVersion::V4 {
            let mut ip = vec![0; 20];
            (ip[0], ip[1], ip[8], ip[9]) = (0x45, self.tos, self.ttl, protocol);
            write_u16(&mut ip, 2, (20 + self.transport_len()) as u16);
            write_u16(&mut ip, 4, self.id);
            ip[6] = if self.dont_fragment { 0x40 } else { 0 };
            ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            let checksum = reference_checksum(&ip);
            write_u16(&mut ip, 10, checksum);
            ip
        } else {
            let mut ip = vec![0; 40];
            (ip[0], ip[1]) = (0x60 | self.tos >> 4, self.tos << 4);
            write_u16(&mut ip, 4, self.transport_len() as u16);
            (ip[6], ip[7], ip[8], ip[23], ip[24], ip[39]) = (protocol, self.ttl, 0xfd, 1, 0xfd, 2);
            ip
        };
        let mut transport = vec![0; self.transport_len() - self.payload.len()];
        write_u16(&mut transport, 0, self.source_port);
        write_u16(&mut transport, 2, 2000);
        if self.udp {
            write_u16(&mut transport, 4, self.transport_len() as u16);
        } else {
            write_u32(&mut transport, 4, self.seq);
            write_u32(&mut transport, 8, self.ack);
            transport[12] = ((transport.len() / 4) << 4) as u8;
            transport[13] = self.flags;
            write_u16(&mut transport, 14, self.window);
            if let Some(timestamp) = self.timestamp {
                transport[20..24].copy_from_slice(&[1, 1, 8, 10]);
                write_u32(&mut transport, 24, timestamp);
            }
        }
        ip.extend(transport);
        ip.extend(&self.payload);
        ip
    }
}

/// RFC 1071 section 4.1, word by word.
pub(crate) fn reference_checksum(data: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in data.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
