//! Joins packets of one flow into a super-packet, by the rules of the kernel's own receive offload,
//! so that one write carries up to 64 KB.
//!
//! One aggregate is open at a time, which is enough after in-order delivery. Splitting an aggregate
//! must restore its packets bit for bit. So a packet with a wrong checksum is never joined (the
//! aggregate's checksum would repair it), nor one that differs in any header field that a split
//! copies.

use super::headers::{
    CWR, FIN, IPV4_HEADER_LEN, IPV6_HEADER_LEN, IpVersion, Layout, PSH, RST, SYN, TCP,
    TCP_CHECKSUM, TCP_FLAGS, UDP, UDP_CHECKSUM, URG, finish_checksum, read_u16, read_u32,
    set_ipv4_header_checksum, write_u16,
};
use super::segment::Identification;
use super::vnet::{Gso, VnetHeader};
use crate::checksum::Sum;

/// Bytes of the largest aggregate, IP header included: the limit of the IPv4 length field.
pub const AGGREGATE_BYTES_MAX: usize = 65_535;
/// Datagrams of the largest UDP aggregate: the kernel's UDP_GRO_CNT_MAX, for which receivers
/// that read with UDP_GRO size their buffers.
const UDP_DATAGRAMS_MAX: usize = 64;

/// A packet that may be part of an aggregate.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    packet: &'a [u8],
    layout: Layout,
}

impl<'a> Candidate<'a> {
    /// Looks at `packet` alone; `None` when it can only be written by itself.
    pub fn examine(packet: &'a [u8]) -> Option<Self> {
        let layout = Layout::parse(packet)?;
        let ip_is_plain = match layout.version {
            IpVersion::V4 => {
                layout.transport == IPV4_HEADER_LEN
                    && Sum::new().bytes(&packet[..IPV4_HEADER_LEN]).checksum() == [0, 0]
            }
            IpVersion::V6 => layout.transport == IPV6_HEADER_LEN,
        };
        if !ip_is_plain || packet.len() == layout.payload || packet.len() > AGGREGATE_BYTES_MAX {
            return None;
        }
        let transport = &packet[layout.transport..];
        let transport_is_plain = match layout.protocol {
            TCP => transport[TCP_FLAGS] & (SYN | RST | URG) == 0,
            _ => usize::from(read_u16(transport, 4)) == transport.len(),
        };
        let candidate = Self { packet, layout };
        (transport_is_plain && candidate.has_the_checksum_of_a_split()).then_some(candidate)
    }

    /// Whether this is UDP rather than TCP.
    pub fn is_udp(&self) -> bool {
        self.layout.protocol == UDP
    }

    fn has_the_checksum_of_a_split(&self) -> bool {
        let transport = &self.packet[self.layout.transport..];
        let field = self.layout.checksum_offset();
        let sum = self
            .layout
            .pseudo_header_sum(self.packet)
            .word(transport.len() as u16)
            .bytes(transport)
            .without_word(read_u16(transport, field));
        finish_checksum(self.layout.protocol, sum) == transport[field..field + 2]
    }

    fn transport(&self) -> &'a [u8] {
        &self.packet[self.layout.transport..self.layout.payload]
    }

    fn payload(&self) -> &'a [u8] {
        &self.packet[self.layout.payload..]
    }

    /// Whether nothing may follow: TCP with PSH or FIN.
    fn ends_aggregate(&self) -> bool {
        self.layout.protocol == TCP && self.transport()[TCP_FLAGS] & (PSH | FIN) != 0
    }
}

/// What is known of the open aggregate besides its bytes.
#[derive(Clone, Copy, Debug)]
struct Open {
    layout: Layout,
    /// Payload bytes of the first packet, hence of all but the last.
    gso_size: usize,
    packets: usize,
    /// How IPv4 identifications run; unknown before the second packet and for IPv6.
    identification: Option<Identification>,
    closed: bool,
}

/// The open aggregate and its memory.
#[derive(Debug)]
pub struct Coalescer {
    bytes: Vec<u8>,
    open: Option<Open>,
}

/// A finished aggregate, ready to be written behind its vnet header.
#[derive(Debug)]
pub struct Aggregate<'a> {
    /// The header that goes before it.
    pub vnet: VnetHeader,
    /// The super-packet, or the only packet untouched.
    pub packet: &'a [u8],
    /// Number of packets in it.
    pub packets: usize,
    /// How to number the packets when splitting it again.
    pub identification: Identification,
    /// Whether it is UDP rather than TCP.
    pub is_udp: bool,
}

impl Default for Coalescer {
    fn default() -> Self {
        Self::new()
    }
}

impl Coalescer {
    /// A coalescer with nothing open; allocates its 64 KB at once.
    pub fn new() -> Self {
        Self { bytes: Vec::with_capacity(AGGREGATE_BYTES_MAX), open: None }
    }

    /// Opens an aggregate with `candidate` as its first packet.
    ///
    /// # Panics
    /// When an aggregate is open: its packets would be lost.
    pub fn open(&mut self, candidate: &Candidate<'_>) {
        assert!(self.open.is_none(), "the open aggregate is taken before the next is opened");
        self.bytes.clear();
        self.bytes.extend_from_slice(candidate.packet);
        self.open = Some(Open {
            layout: candidate.layout,
            gso_size: candidate.payload().len(),
            packets: 1,
            identification: None,
            closed: candidate.ends_aggregate(),
        });
    }

    /// Appends `candidate` to the open aggregate; false when there is none or it does not fit.
    pub fn append(&mut self, candidate: &Candidate<'_>) -> bool {
        let Some(open) = &mut self.open else { return false };
        let payload = candidate.payload();
        let limit = if candidate.is_udp() { UDP_DATAGRAMS_MAX } else { usize::MAX };
        if open.closed
            || payload.len() > open.gso_size
            || open.packets >= limit
            || self.bytes.len() + payload.len() > AGGREGATE_BYTES_MAX
            || !follows(open, &self.bytes, candidate)
        {
            return false;
        }
        if open.layout.version == IpVersion::V4 {
            match next_identification(open, &self.bytes, candidate.packet) {
                Some(identification) => open.identification = Some(identification),
                None => return false,
            }
        }
        if candidate.layout.protocol == TCP {
            let ending = candidate.transport()[TCP_FLAGS] & (PSH | FIN);
            self.bytes[open.layout.transport + TCP_FLAGS] |= ending;
        }
        self.bytes.extend_from_slice(payload);
        open.packets += 1;
        open.closed = payload.len() < open.gso_size || candidate.ends_aggregate();
        true
    }

    /// Whether the open aggregate can take no more.
    pub fn is_closed(&self) -> bool {
        self.open.is_some_and(|open| open.closed)
    }

    /// Ends the open aggregate and hands it out; `None` when there is none.
    pub fn take(&mut self) -> Option<Aggregate<'_>> {
        let open = self.open.take()?;
        let is_udp = open.layout.protocol == UDP;
        let vnet = if open.packets == 1 {
            VnetHeader::PLAIN
        } else {
            finish_headers(&open, &mut self.bytes)
        };
        Some(Aggregate {
            vnet,
            packet: &self.bytes,
            packets: open.packets,
            identification: open.identification.unwrap_or(Identification::Consecutive),
            is_udp,
        })
    }
}

/// Whether the headers of `candidate` are those that a split would give the next segment, apart
/// from the IPv4 identification.
fn follows(open: &Open, first: &[u8], candidate: &Candidate<'_>) -> bool {
    let (layout, next) = (&open.layout, candidate.packet);
    if layout.version != candidate.layout.version
        || layout.protocol != candidate.layout.protocol
        || layout.payload != candidate.layout.payload
    {
        return false;
    }
    let same_ip = match layout.version {
        IpVersion::V4 => {
            first[0..2] == next[0..2]
                && first[6..10] == next[6..10]
                && first[12..20] == next[12..20]
        }
        IpVersion::V6 => first[0..4] == next[0..4] && first[6..40] == next[6..40],
    };
    let first = &first[layout.transport..layout.payload];
    let next = candidate.transport();
    let same_ports = first[0..4] == next[0..4];
    if layout.protocol == UDP || !same_ip || !same_ports {
        return same_ip && same_ports;
    }
    let carried = (open.gso_size * open.packets) as u32;
    let flags_differ = (first[TCP_FLAGS] ^ next[TCP_FLAGS]) & !(CWR | PSH | FIN) != 0;
    read_u32(next, 4) == read_u32(first, 4).wrapping_add(carried)
        && first[8..13] == next[8..13]
        && !flags_differ
        && next[TCP_FLAGS] & CWR == 0
        && first[14..16] == next[14..16]
        && first[18..] == next[18..]
}

/// How identifications run if `next` is appended; `None` when it breaks the run.
fn next_identification(open: &Open, first: &[u8], next: &[u8]) -> Option<Identification> {
    let dont_fragment = next[6] & 0x40 != 0;
    let distance = read_u16(next, 4).wrapping_sub(read_u16(first, 4));
    let run = if usize::from(distance) == open.packets {
        Identification::Consecutive
    } else if distance == 0 && dont_fragment {
        Identification::Fixed
    } else {
        return None;
    };
    open.identification.is_none_or(|so_far| so_far == run).then_some(run)
}

/// Gives the aggregate the lengths and the partial checksum of a super-packet.
fn finish_headers(open: &Open, bytes: &mut [u8]) -> VnetHeader {
    let layout = &open.layout;
    let total_len = bytes.len();
    match layout.version {
        IpVersion::V4 => {
            write_u16(bytes, 2, total_len as u16);
            set_ipv4_header_checksum(&mut bytes[..layout.transport]);
        }
        IpVersion::V6 => write_u16(bytes, 4, (total_len - IPV6_HEADER_LEN) as u16),
    }
    let transport_len = (total_len - layout.transport) as u16;
    let partial = layout.pseudo_header_sum(bytes).word(transport_len).partial();
    let transport = &mut bytes[layout.transport..];
    let checksum_offset = if layout.protocol == TCP {
        TCP_CHECKSUM
    } else {
        write_u16(transport, 4, transport_len);
        UDP_CHECKSUM
    };
    transport[checksum_offset..checksum_offset + 2].copy_from_slice(&partial);
    VnetHeader {
        needs_checksum: true,
        gso: match (layout.protocol, layout.version) {
            (UDP, _) => Gso::Udp,
            (_, IpVersion::V4) => Gso::TcpV4,
            (_, IpVersion::V6) => Gso::TcpV6,
        },
        ecn: layout.protocol == TCP && transport[TCP_FLAGS] & CWR != 0,
        header_len: layout.payload as u16,
        gso_size: open.gso_size as u16,
        checksum_start: layout.transport as u16,
        checksum_offset: checksum_offset as u16,
    }
}
