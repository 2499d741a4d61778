//! Splits a super-packet from an offloading TUN into the IP packets it stands for.
//!
//! Works only from the vnet header and the packet. The headers are parsed again, because the header
//! length in the vnet header is wrong on forwarded packets.

use super::headers::{
    CWR, FIN, IPV6_HEADER_LEN, IpVersion, Layout, PSH, TCP, TCP_FLAGS, UDP, finish_checksum,
    read_u16, read_u32, set_ipv4_header_checksum, write_u16, write_u32,
};
use super::vnet::{Gso, VnetHeader};
use crate::batch::PacketBatch;
use crate::checksum::Sum;

/// A packet whose headers are inconsistent: a counted drop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// How IPv4 identifications run over the segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identification {
    /// One more per segment, as the kernel does.
    Consecutive,
    /// The same in all: only with "don't fragment" (RFC 6864 section 4.1).
    Fixed,
}

/// Appends to `out` the packets that `packet` with header `vnet` stands for: a complete one as it
/// is, one with a partial checksum with the full one, a super-packet as its segments.
pub fn split(vnet: &VnetHeader, packet: &mut [u8], out: &mut PacketBatch) -> Result<(), Malformed> {
    if vnet.gso != Gso::None {
        return split_super_packet(vnet, packet, Identification::Consecutive, out);
    }
    if vnet.needs_checksum {
        complete_checksum(vnet, packet)?;
    }
    out.push(packet);
    Ok(())
}

/// Adds what is missing to the partial checksum of a single packet.
fn complete_checksum(vnet: &VnetHeader, packet: &mut [u8]) -> Result<(), Malformed> {
    let start = usize::from(vnet.checksum_start);
    let field = start + usize::from(vnet.checksum_offset);
    if start >= packet.len() || field + 2 > packet.len() {
        return Err(Malformed);
    }
    let is_udp = Layout::parse(packet).is_some_and(|layout| layout.protocol == UDP);
    let checksum =
        finish_checksum(if is_udp { UDP } else { TCP }, Sum::new().bytes(&packet[start..]));
    packet[field..field + 2].copy_from_slice(&checksum);
    Ok(())
}

/// What all segments of one super-packet share.
struct Template<'a> {
    layout: Layout,
    headers: &'a [u8],
    /// Pseudo-header's sum without the transport length.
    pseudo_header: Sum,
    identification: Identification,
    gso_size: usize,
}

/// Splits a super-packet; `identification` says how IPv4 identifications run.
pub(crate) fn split_super_packet(
    vnet: &VnetHeader,
    packet: &[u8],
    identification: Identification,
    out: &mut PacketBatch,
) -> Result<(), Malformed> {
    let layout = Layout::parse(packet).ok_or(Malformed)?;
    let kind_matches = match vnet.gso {
        Gso::None => false,
        Gso::TcpV4 => layout.protocol == TCP && layout.version == IpVersion::V4,
        Gso::TcpV6 => layout.protocol == TCP && layout.version == IpVersion::V6,
        Gso::Udp => layout.protocol == UDP,
    };
    let (headers, payload) = packet.split_at(layout.payload);
    if !kind_matches || vnet.gso_size == 0 || payload.is_empty() {
        return Err(Malformed);
    }
    // The partial sum is right even where a routing header makes the addresses misleading.
    let pseudo_header = if vnet.needs_checksum {
        let transport_len = (packet.len() - layout.transport) as u16;
        let partial = read_u16(headers, layout.transport + layout.checksum_offset());
        Sum::new().word(partial).without_word(transport_len)
    } else {
        layout.pseudo_header_sum(packet)
    };
    let gso_size = usize::from(vnet.gso_size);
    let template = Template { layout, headers, pseudo_header, identification, gso_size };
    let count = payload.len().div_ceil(gso_size);
    for (index, chunk) in payload.chunks(gso_size).enumerate() {
        let segment = out.push_parts(headers, chunk);
        template.finish(segment, index, index + 1 == count);
    }
    Ok(())
}

impl Template<'_> {
    /// Turns a copy of the super-packet's headers into those of segment `index`.
    fn finish(&self, segment: &mut [u8], index: usize, last: bool) {
        let segment_len = segment.len();
        let transport_at = self.layout.transport;
        match self.layout.version {
            IpVersion::V4 => {
                write_u16(segment, 2, segment_len as u16);
                if self.identification == Identification::Consecutive {
                    let id = read_u16(self.headers, 4).wrapping_add(index as u16);
                    write_u16(segment, 4, id);
                }
                set_ipv4_header_checksum(&mut segment[..transport_at]);
            }
            IpVersion::V6 => write_u16(segment, 4, (segment_len - IPV6_HEADER_LEN) as u16),
        }
        let transport = &mut segment[transport_at..];
        let transport_len = transport.len() as u16;
        if self.layout.protocol == TCP {
            let advance = (index * self.gso_size) as u32;
            let seq = read_u32(transport, 4).wrapping_add(advance);
            write_u32(transport, 4, seq);
            if index > 0 {
                transport[TCP_FLAGS] &= !CWR;
            }
            if !last {
                transport[TCP_FLAGS] &= !(FIN | PSH);
            }
        } else {
            write_u16(transport, 4, transport_len);
        }
        let field = self.layout.checksum_offset();
        write_u16(transport, field, 0);
        let sum = self.pseudo_header.word(transport_len).bytes(transport);
        let checksum = finish_checksum(self.layout.protocol, sum);
        transport[field..field + 2].copy_from_slice(&checksum);
    }
}
