//! A captured packet as a TCP segment, with what its MPTCP options say (RFC 8684).

use std::net::{IpAddr, SocketAddr};

use aws_lc_rs::digest;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, LenSource, TransportSlice};

use crate::capture::{Link, Packet};

/// Why a packet is no segment that counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skipped {
    /// Not TCP over IP, or of a link of unknown kind.
    NotTcp,
    /// A fragment of an IP packet.
    Fragment,
    /// Headers that contradict themselves, or were not kept.
    Unreadable,
}

/// A TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sender.
    pub from: SocketAddr,
    /// Receiver.
    pub to: SocketAddr,
    /// Sequence number.
    pub seq: u32,
    /// Begins a connection.
    pub syn: bool,
    /// Acknowledges.
    pub ack: bool,
    /// Ends its direction.
    pub fin: bool,
    /// Ends the connection at once.
    pub rst: bool,
    /// Bytes of payload on the wire; fewer may have been kept.
    pub payload_bytes: u32,
    /// What it says of MPTCP.
    pub mptcp: Mptcp,
}

/// What a segment's MPTCP options say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mptcp {
    /// Whether there is any.
    pub is_there: bool,
    /// MP_CAPABLE: what follows from the sender's key and, once it is known, the receiver's.
    pub capable: [Option<Identity>; 2],
    /// MP_JOIN of a SYN: the token of the connection at the receiver.
    pub join_token: Option<u32>,
    /// Bytes of the connection that the segment, or several together, carry.
    pub mapping: Option<Mapping>,
}

/// What follows from an end's key. The key itself is a secret and not kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Names the connection at this end.
    pub token: u32,
    /// Data sequence number before its first byte.
    pub first_dsn: u64,
}

/// A run of the connection's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Number of the first one.
    pub dsn: Dsn,
    /// How many; 0 for all that follow, after a fall-back to plain TCP.
    pub length: u16,
}

/// A data sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dsn {
    /// All of it.
    Whole(u64),
    /// Its lower half.
    Low(u32),
}

impl Segment {
    /// Reads a packet's headers.
    ///
    /// # Errors
    /// [`Skipped`]
    pub fn parse(packet: &Packet<'_>) -> Result<Self, Skipped> {
        let sliced = slice(packet)?;
        let net = sliced.net.as_ref().ok_or(Skipped::NotTcp)?;
        let (from, to): (IpAddr, IpAddr) = match net {
            LaxNetSlice::Ipv4(ip) => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            LaxNetSlice::Ipv6(ip) => {
                (ip.header().source_addr().into(), ip.header().destination_addr().into())
            }
            LaxNetSlice::Arp(_) => return Err(Skipped::NotTcp),
        };
        let payload = sliced.ip_payload().ok_or(Skipped::NotTcp)?;
        if payload.fragmented {
            return Err(Skipped::Fragment);
        }
        if payload.ip_number != etherparse::IpNumber::TCP {
            return Err(Skipped::NotTcp);
        }
        let Some(TransportSlice::Tcp(tcp)) = &sliced.transport else {
            return Err(Skipped::Unreadable);
        };
        // What follows the headers on the wire: beyond what was kept, a frame has no padding.
        let kept = payload.payload.len();
        let cut = (packet.wire_bytes as usize).saturating_sub(packet.data.len());
        let whole = match (payload.incomplete, payload.len_source) {
            (true, _) => declared(net).unwrap_or(kept + cut),
            // Segments that a kernel joined beyond 64 KiB declare no length.
            (false, LenSource::Slice) => kept + cut,
            (false, _) => kept,
        };
        let header = tcp.header_slice().len();
        Ok(Self {
            from: SocketAddr::new(from, tcp.source_port()),
            to: SocketAddr::new(to, tcp.destination_port()),
            seq: tcp.sequence_number(),
            syn: tcp.syn(),
            ack: tcp.ack(),
            fin: tcp.fin(),
            rst: tcp.rst(),
            payload_bytes: u32::try_from(whole.saturating_sub(header)).unwrap_or(u32::MAX),
            mptcp: Mptcp::parse(tcp.options(), tcp.syn()),
        })
    }
}

fn slice<'a>(packet: &Packet<'a>) -> Result<LaxSlicedPacket<'a>, Skipped> {
    let data = packet.data;
    let typed = |at: usize, head: usize| {
        let kind = data.get(at..at + 2).ok_or(Skipped::Unreadable)?;
        let kind = EtherType(u16::from_be_bytes([kind[0], kind[1]]));
        Ok(LaxSlicedPacket::from_ether_type(kind, data.get(head..).ok_or(Skipped::Unreadable)?))
    };
    let ip = |data| LaxSlicedPacket::from_ip(data).map_err(|_| Skipped::Unreadable);
    match packet.link {
        Link::Ethernet => LaxSlicedPacket::from_ethernet(data).map_err(|_| Skipped::Unreadable),
        Link::Ip => ip(data),
        Link::Null => ip(data.get(4..).ok_or(Skipped::Unreadable)?),
        Link::Cooked => typed(14, 16),
        Link::Cooked2 => typed(0, 20),
        Link::Other(_) => Err(Skipped::NotTcp),
    }
}

/// The payload's length by the IP header.
fn declared(net: &LaxNetSlice<'_>) -> Option<usize> {
    match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let total = usize::from(header.total_len());
            total.checked_sub(header.slice().len()).filter(|_| total > 0)
        }
        LaxNetSlice::Ipv6(ip) => {
            let total = usize::from(ip.header().payload_length());
            let extensions = ip.extensions().slice().len();
            total.checked_sub(extensions).filter(|_| total > 0)
        }
        LaxNetSlice::Arp(_) => None,
    }
}

const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
/// MPTCP's option kind, and its subtypes (RFC 8684 section 8.2).
const MPTCP: u8 = 30;
const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
const DSS: u8 = 2;
/// Flags of a DSS option (section 3.3).
const DATA_FIN: u8 = 0x10;
const DSN_WHOLE: u8 = 0x08;
const HAS_MAPPING: u8 = 0x04;
const ACK_WHOLE: u8 = 0x02;
const HAS_ACK: u8 = 0x01;

impl Mptcp {
    /// Reads a segment's options; what is malformed is as if it were not there.
    pub fn parse(options: &[u8], is_syn: bool) -> Self {
        let mut found = Self::default();
        let mut rest = options;
        while let Some((&kind, after)) = rest.split_first() {
            match kind {
                END_OF_OPTIONS => break,
                NO_OPERATION => {
                    rest = after;
                    continue;
                }
                _ => {}
            }
            let length = usize::from(after.first().copied().unwrap_or_default());
            let Some(option) = rest.get(..length).filter(|option| option.len() >= 2) else { break };
            rest = &rest[length..];
            if kind == MPTCP {
                found.read(option, is_syn);
            }
        }
        found
    }

    fn read(&mut self, option: &[u8], is_syn: bool) {
        let Some((&subtype, &flags)) = option.get(2).zip(option.get(3)) else { return };
        self.is_there = true;
        match subtype >> 4 {
            MP_CAPABLE => self.read_capable(option, subtype & 0x0f),
            MP_JOIN if is_syn && option.len() == 12 => self.join_token = u32_at(option, 4),
            DSS if flags & HAS_MAPPING != 0 => self.mapping = mapping(option, flags),
            _ => {}
        }
    }

    fn read_capable(&mut self, option: &[u8], version: u8) {
        let key = |at: usize| option.get(at..at + 8).map(|key| Identity::of(key, version));
        self.capable = [key(4), key(12)];
        // The first data has the keys once more and its length, in place of a mapping (3.1).
        let length = option.get(20..22).map(|length| u16::from_be_bytes([length[0], length[1]]));
        if let (Some(length), [Some(sender), _]) = (length, self.capable) {
            let dsn = Dsn::Whole(sender.first_dsn.wrapping_add(1));
            self.mapping = Some(Mapping { dsn, length });
        }
    }
}

impl Identity {
    /// RFC 8684 section 3.1 and, for version 0, RFC 6824 section 3.1.
    fn of(key: &[u8], version: u8) -> Self {
        let algorithm =
            if version == 0 { &digest::SHA1_FOR_LEGACY_USE_ONLY } else { &digest::SHA256 };
        let hash = digest::digest(algorithm, key);
        let hash = hash.as_ref();
        let last = hash.len() - 8;
        Self {
            token: u32_at(hash, 0).unwrap_or_default(),
            first_dsn: u64_at(hash, last).unwrap_or_default(),
        }
    }
}

fn mapping(option: &[u8], flags: u8) -> Option<Mapping> {
    let ack = match (flags & HAS_ACK != 0, flags & ACK_WHOLE != 0) {
        (false, _) => 0,
        (true, false) => 4,
        (true, true) => 8,
    };
    let at = 4 + ack;
    let (dsn, after) = if flags & DSN_WHOLE != 0 {
        (Dsn::Whole(u64_at(option, at)?), at + 8)
    } else {
        (Dsn::Low(u32_at(option, at)?), at + 4)
    };
    let length = option.get(after + 4..after + 6)?;
    let length = u16::from_be_bytes([length[0], length[1]]);
    // The end of the data takes a number of its own.
    let is_end = flags & DATA_FIN != 0 && length > 0;
    let length = length - u16::from(is_end);
    (!is_end || length > 0).then_some(Mapping { dsn, length })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use etherparse::PacketBuilder;

    use super::*;

    /// An Ethernet frame of a segment with raw options.
    pub(crate) fn frame(segment: &Segment, options: &[u8]) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let ip = match (segment.from.ip(), segment.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), 64),
            (IpAddr::V6(from), IpAddr::V6(to)) => ethernet.ipv6(from.octets(), to.octets(), 64),
            _ => panic!("one family"),
        };
        let mut tcp = ip.tcp(segment.from.port(), segment.to.port(), segment.seq, 1000);
        let flags: [(bool, Flag); 4] = [
            (segment.syn, |tcp| tcp.syn()),
            (segment.ack, |tcp| tcp.ack(1)),
            (segment.fin, |tcp| tcp.fin()),
            (segment.rst, |tcp| tcp.rst()),
        ];
        for (is, set) in flags {
            tcp = if is { set(tcp) } else { tcp };
        }
        let mut padded = options.to_vec();
        padded.resize(options.len().next_multiple_of(4), NO_OPERATION);
        let tcp = tcp.options_raw(&padded).unwrap();
        let mut frame = Vec::new();
        tcp.write(&mut frame, &vec![7; segment.payload_bytes as usize]).unwrap();
        frame
    }

    type Tcp = etherparse::PacketBuilderStep<etherparse::TcpHeader>;
    type Flag = fn(Tcp) -> Tcp;

    pub(crate) fn segment(from: &str, to: &str) -> Segment {
        Segment {
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            seq: 1,
            syn: false,
            ack: true,
            fin: false,
            rst: false,
            payload_bytes: 100,
            mptcp: Mptcp::default(),
        }
    }

    fn parse(data: &[u8], wire_bytes: usize) -> Result<Segment, Skipped> {
        let wire_bytes = wire_bytes as u32;
        Segment::parse(&Packet { at_ns: 0, link: Link::Ethernet, wire_bytes, data })
    }

    #[test]
    fn what_is_written_is_read() {
        let mut all = vec![
            segment("10.0.0.1:5000", "10.0.0.2:80"),
            segment("[fd00::1]:5000", "[fd00::2]:80"),
        ];
        all[1].syn = true;
        for segment in all {
            let frame = frame(&segment, &[]);
            assert_eq!(parse(&frame, frame.len()), Ok(segment));
            // Of a capture that kept the headers only, the lengths are those of the wire.
            assert_eq!(parse(&frame[..frame.len() - 90], frame.len()), Ok(segment));
            assert!(parse(&frame[..30], frame.len()).is_err());
        }
    }

    #[test]
    fn a_short_frame_s_padding_is_no_payload() {
        let mut segment = segment("10.0.0.1:5000", "10.0.0.2:80");
        segment.payload_bytes = 0;
        let mut frame = frame(&segment, &[]);
        frame.resize(60, 0);
        assert_eq!(parse(&frame, 60), Ok(segment));
    }

    #[test]
    fn other_packets_are_told_apart() {
        let udp = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([1; 4], [2; 4], 9).udp(1, 2);
        let mut frame = Vec::new();
        udp.write(&mut frame, &[1, 2, 3]).unwrap();
        assert_eq!(parse(&frame, frame.len()), Err(Skipped::NotTcp));
    }

    #[test]
    fn keys_become_tokens() {
        // Option: MP_CAPABLE, version 1, two keys, 100 bytes of data.
        let mut option = vec![MPTCP, 22, 0x01, 0x01];
        option.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        option.extend([8, 7, 6, 5, 4, 3, 2, 1]);
        option.extend(100_u16.to_be_bytes());
        let mptcp = Mptcp::parse(&option, false);
        let sender = mptcp.capable[0].unwrap();
        // SHA-256 of the bytes 1 to 8, by another program.
        assert_eq!(sender.token, 0x66_84_0d_da);
        assert!(mptcp.capable[1].is_some());
        let expected = Mapping { dsn: Dsn::Whole(sender.first_dsn + 1), length: 100 };
        assert_eq!(mptcp.mapping, Some(expected));
    }

    #[test]
    fn mappings_have_short_and_long_numbers() {
        let option = |flags: u8, body: &[u8]| {
            let mut option = vec![MPTCP, 4 + body.len() as u8, DSS << 4, flags];
            option.extend(body);
            Mptcp::parse(&option, false).mapping
        };
        let short = option(HAS_MAPPING | HAS_ACK, &[9, 9, 9, 9, 0, 0, 0, 5, 0, 0, 0, 1, 0, 50]);
        assert_eq!(short, Some(Mapping { dsn: Dsn::Low(5), length: 50 }));
        let long = [0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 50];
        let end = option(HAS_MAPPING | DSN_WHOLE | DATA_FIN, &long);
        assert_eq!(end, Some(Mapping { dsn: Dsn::Whole((1 << 32) + 5), length: 49 }));
        assert_eq!(option(HAS_MAPPING, &[1, 2]), None);
        let join = [MPTCP, 12, MP_JOIN << 4, 2, 0xa, 0xb, 0xc, 0xd, 1, 2, 3, 4];
        assert_eq!(Mptcp::parse(&join, true).join_token, Some(0x0a0b_0c0d));
        assert_eq!(Mptcp::parse(&join, false).join_token, None);
    }

    #[test]
    fn malformed_options_end_the_list() {
        assert_eq!(Mptcp::parse(&[MPTCP], false), Mptcp::default());
        assert_eq!(Mptcp::parse(&[MPTCP, 0, 0, 0], false), Mptcp::default());
        assert_eq!(Mptcp::parse(&[MPTCP, 40, 0, 0], false), Mptcp::default());
    }
}
