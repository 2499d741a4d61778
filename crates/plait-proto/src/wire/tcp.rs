//! A checked, read-only view of an IP packet with TCP inside; the one change that is made to it,
//! leaving SACK blocks out of its option; and a writer of such packets for simulators and tests.
//!
//! Read whole: IPv4 with or without options, and IPv6 with TCP as its first next header. Sequence
//! numbers are compared modulo 2^32 (RFC 9293 §3.4), so a view serves any moment of a connection.

mod segment;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use segment::TcpSegment;

use super::ip::updated_checksum;
use super::mss::TCP;

const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const TCP_HEADER_BYTES: usize = 20;
/// Where in the TCP header the checksum is.
const CHECKSUM: usize = 16;

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
const OPTION_SACK: u8 = 5;
const OPTION_TIMESTAMPS: u8 = 8;
const OPTION_MD5: u8 = 19;
const OPTION_AO: u8 = 29;
const TIMESTAMPS_BYTES: usize = 10;
const SACK_BLOCK_BYTES: usize = 8;
const OPTIONS_BYTES_MAX: usize = 40;

/// Why a packet is not read as TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotTcp {
    /// Another protocol, another IP version, or IPv6 extension headers before TCP.
    OtherProtocol,
    /// A fragment of an IPv4 packet.
    Fragment,
    /// Shorter or longer than its length fields say, or a header shorter than headers are.
    Truncated,
    /// Options that do not hold together: a length of 0 or 1, or past the header's end; SACK or
    /// timestamps of a wrong length or there twice.
    BadOptions,
}

/// A sequence number of TCP, which wraps around. Distances up to 2^31 tell before from after.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TcpSeq(pub u32);

impl TcpSeq {
    /// The number `bytes` further on.
    #[must_use]
    pub const fn plus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// Bytes from `earlier` on to this number, modulo 2^32.
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Whether this number comes before `other`.
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// Whether this number comes after `other`.
    pub const fn is_after(self, other: Self) -> bool {
        other.is_before(self)
    }

    /// The later of two numbers.
    #[must_use]
    pub const fn later(self, other: Self) -> Self {
        if self.is_before(other) { other } else { self }
    }
}

/// The two ends of a TCP connection, as they stand in a packet of one direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TcpFlow {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl TcpFlow {
    /// The same connection as packets of the other direction have it.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }
}

/// The flags of a TCP header (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpFlags(pub u8);

impl TcpFlags {
    /// No more data will come.
    pub const FIN: u8 = 0x01;
    /// A connection begins.
    pub const SYN: u8 = 0x02;
    /// The connection is reset.
    pub const RST: u8 = 0x04;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;

    /// Whether any of these flags is set.
    pub const fn any(self, flags: u8) -> bool {
        self.0 & flags != 0
    }
}

/// A range of received bytes above a hole (RFC 2018 §3).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SackBlock {
    /// First byte received.
    pub left: TcpSeq,
    /// First byte after it that was not.
    pub right: TcpSeq,
}

/// A TCP segment in its IP packet.
#[derive(Clone, Copy, Debug)]
pub struct TcpPacket<'a> {
    flow: TcpFlow,
    header: &'a [u8; TCP_HEADER_BYTES],
    payload_bytes: u32,
    timestamps: Option<(u32, u32)>,
    /// The blocks of the SACK option, without its kind and length; empty without one.
    sack: &'a [u8],
    has_signature: bool,
}

impl<'a> TcpPacket<'a> {
    /// Reads a whole IP packet. Neither panics nor allocates.
    pub fn read(packet: &'a [u8]) -> Result<Self, NotTcp> {
        let at = find_tcp(packet)?;
        let segment = packet.get(at..).ok_or(NotTcp::Truncated)?;
        let header = segment.first_chunk().ok_or(NotTcp::Truncated)?;
        let header_bytes = header_bytes(header);
        if header_bytes < TCP_HEADER_BYTES || header_bytes > segment.len() {
            return Err(NotTcp::Truncated);
        }
        let options = Options::read(&segment[..header_bytes])?;
        let (source, destination) = addresses(packet);
        let flow = TcpFlow {
            source,
            destination,
            source_port: u16::from_be_bytes([header[0], header[1]]),
            destination_port: u16::from_be_bytes([header[2], header[3]]),
        };
        Ok(Self {
            flow,
            header,
            payload_bytes: (segment.len() - header_bytes) as u32,
            timestamps: options.timestamps,
            sack: options.sack_at.map_or(&[], |(from, to)| &segment[from + 2..to]),
            has_signature: options.has_signature,
        })
    }

    /// The connection, as this direction has it.
    pub const fn flow(&self) -> TcpFlow {
        self.flow
    }

    /// The flags.
    pub const fn flags(&self) -> TcpFlags {
        TcpFlags(self.header[13])
    }

    /// Sequence number of the first byte.
    pub fn seq(&self) -> TcpSeq {
        TcpSeq(self.word(4))
    }

    /// The sequence number after this segment: SYN and FIN take one each (RFC 9293 §3.4).
    pub fn seq_end(&self) -> TcpSeq {
        let flags = self.flags();
        let extra = u32::from(flags.any(TcpFlags::SYN)) + u32::from(flags.any(TcpFlags::FIN));
        self.seq().plus(self.payload_bytes + extra)
    }

    /// The next byte that the sender of this packet expects; means something with
    /// [`TcpFlags::ACK`] only.
    pub fn ack(&self) -> TcpSeq {
        TcpSeq(self.word(8))
    }

    /// The window as it stands in the header, unscaled.
    pub const fn window(&self) -> u16 {
        u16::from_be_bytes([self.header[14], self.header[15]])
    }

    /// Bytes of data.
    pub const fn payload_bytes(&self) -> u32 {
        self.payload_bytes
    }

    /// The sender's clock and the echo of the other's (RFC 7323 §3); units are the senders' own.
    pub const fn timestamps(&self) -> Option<(u32, u32)> {
        self.timestamps
    }

    /// Whether it has a SACK option; one without blocks does not hold together.
    pub const fn has_sack(&self) -> bool {
        !self.sack.is_empty()
    }

    /// The blocks of the SACK option in their order; none without one.
    pub fn sack_blocks(&self) -> impl Iterator<Item = SackBlock> + 'a {
        let (blocks, _) = self.sack.as_chunks::<SACK_BLOCK_BYTES>();
        blocks.iter().map(|&[l0, l1, l2, l3, r0, r1, r2, r3]| SackBlock {
            left: TcpSeq(u32::from_be_bytes([l0, l1, l2, l3])),
            right: TcpSeq(u32::from_be_bytes([r0, r1, r2, r3])),
        })
    }

    /// Whether the first SACK block reports bytes received twice: it begins below the
    /// acknowledgement number or lies inside the second block (RFC 2883 §4).
    pub fn has_dsack(&self) -> bool {
        let mut blocks = self.sack_blocks();
        let Some(first) = blocks.next() else { return false };
        first.left.is_before(self.ack())
            || blocks.next().is_some_and(|second| {
                !first.left.is_before(second.left) && !first.right.is_after(second.right)
            })
    }

    /// Whether a signature covers it (RFC 2385, RFC 5925), so that no byte may change.
    pub const fn has_signature(&self) -> bool {
        self.has_signature
    }

    fn word(&self, at: usize) -> u32 {
        let bytes = self.header[at..].first_chunk().expect("the field lies inside the header");
        u32::from_be_bytes(*bytes)
    }
}

/// Whether an IP packet acknowledges and does nothing else: no data, no flag that begins, ends or
/// hurries a connection, and an open window.
///
/// Receivers of such a packet ignore what a later one has said already (RFC 9293 §3.10.7.4: an old
/// acknowledgement number changes nothing, an older window is not taken). A window that closes has
/// the numbers of the one that opens it again, so only their order tells them apart.
pub fn is_plain_ack(packet: &[u8]) -> bool {
    let Ok(at) = find_tcp(packet) else { return false };
    let Some(segment) = packet.get(at..) else { return false };
    let Some(header) = segment.first_chunk::<TCP_HEADER_BYTES>() else { return false };
    let flags = TcpFlags(header[13]);
    let is_open = [header[14], header[15]] != [0, 0];
    header_bytes(header) == segment.len()
        && flags.any(TcpFlags::ACK)
        && !flags.any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::URG)
        && is_open
}

/// Overwrites the SACK option with NOPs, wherever it stands; the checksum is updated incrementally
/// (RFC 1624). Says whether the packet changed: one without SACK stays as it is, and so does one
/// that is signed.
pub fn mask_sack(packet: &mut [u8]) -> bool {
    rewrite_sack(packet, &[])
}

/// Writes these blocks into the SACK option in place of those that are there, as many as it has
/// room for, and NOPs over what is left of it; the checksum is updated incrementally (RFC 1624).
/// Says whether there was an option to write to: a packet without SACK stays as it is, and so does
/// one that is signed.
pub fn rewrite_sack(packet: &mut [u8], blocks: &[SackBlock]) -> bool {
    let Ok(at) = find_tcp(packet) else { return false };
    let Some(segment) = packet.get_mut(at..) else { return false };
    let Some(header) = segment.first_chunk::<TCP_HEADER_BYTES>() else { return false };
    let header_bytes = header_bytes(header);
    let Some(header) = segment.get_mut(..header_bytes) else { return false };
    let Ok(Options { sack_at: Some((from, to)), has_signature: false, .. }) = Options::read(header)
    else {
        return false;
    };
    let mut option = [OPTION_NOP; OPTIONS_BYTES_MAX];
    let option = &mut option[..to - from];
    let count = blocks.len().min((option.len() - 2) / SACK_BLOCK_BYTES);
    if count > 0 {
        option[..2].copy_from_slice(&[OPTION_SACK, (2 + count * SACK_BLOCK_BYTES) as u8]);
        let (places, _) = option[2..].as_chunks_mut::<SACK_BLOCK_BYTES>();
        for (place, block) in places.iter_mut().zip(&blocks[..count]) {
            place[..4].copy_from_slice(&block.left.0.to_be_bytes());
            place[4..].copy_from_slice(&block.right.0.to_be_bytes());
        }
    }
    let mut sum = u16::from_be_bytes([header[CHECKSUM], header[CHECKSUM + 1]]);
    // The checksum's words lie at even places; the option may begin and end at odd ones.
    for word_at in (from & !1..to).step_by(2) {
        let old = u16::from_be_bytes([header[word_at], header[word_at + 1]]);
        let (start, end) = (word_at.max(from), (word_at + 2).min(to));
        header[start..end].copy_from_slice(&option[start - from..end - from]);
        let new = u16::from_be_bytes([header[word_at], header[word_at + 1]]);
        sum = updated_checksum(sum, old, new);
    }
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Bytes of a TCP header with its options, as its data offset says.
const fn header_bytes(header: &[u8; TCP_HEADER_BYTES]) -> usize {
    (header[12] >> 4) as usize * 4
}

/// Where the TCP header begins. The packet has a whole IP header then, and the length it says.
fn find_tcp(packet: &[u8]) -> Result<usize, NotTcp> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let header: &[u8; IPV4_HEADER_BYTES] = packet.first_chunk().ok_or(NotTcp::Truncated)?;
            if header[9] != TCP {
                return Err(NotTcp::OtherProtocol);
            }
            let header_bytes = usize::from(header[0] & 15) * 4;
            let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let fits = (IPV4_HEADER_BYTES..=total).contains(&header_bytes);
            if !fits || total != packet.len() {
                return Err(NotTcp::Truncated);
            }
            let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
            if fragment { Err(NotTcp::Fragment) } else { Ok(header_bytes) }
        }
        Some(6) => {
            let header: &[u8; IPV6_HEADER_BYTES] = packet.first_chunk().ok_or(NotTcp::Truncated)?;
            if header[6] != TCP {
                return Err(NotTcp::OtherProtocol);
            }
            let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let fits = payload + IPV6_HEADER_BYTES == packet.len();
            if fits { Ok(IPV6_HEADER_BYTES) } else { Err(NotTcp::Truncated) }
        }
        Some(_) => Err(NotTcp::OtherProtocol),
        None => Err(NotTcp::Truncated),
    }
}

/// Source and destination of a packet in which [`find_tcp`] found a whole IP header.
fn addresses(packet: &[u8]) -> (IpAddr, IpAddr) {
    let v4 = |at: usize| {
        let bytes: [u8; 4] = *packet[at..].first_chunk().expect("a whole IPv4 header");
        IpAddr::from(Ipv4Addr::from(bytes))
    };
    let v6 = |at: usize| {
        let bytes: [u8; 16] = *packet[at..].first_chunk().expect("a whole IPv6 header");
        IpAddr::from(Ipv6Addr::from(bytes))
    };
    if packet[0] >> 4 == 4 { (v4(12), v4(16)) } else { (v6(8), v6(24)) }
}

/// What is read of a TCP header's options.
#[derive(Default)]
struct Options {
    timestamps: Option<(u32, u32)>,
    /// Where in the header the SACK option begins and ends, kind and length included.
    sack_at: Option<(usize, usize)>,
    has_signature: bool,
}

impl Options {
    /// Reads the options of a whole TCP header.
    fn read(header: &[u8]) -> Result<Self, NotTcp> {
        let mut options = Self::default();
        let mut at = TCP_HEADER_BYTES;
        while let Some(&kind) = header.get(at) {
            match kind {
                OPTION_END => break,
                OPTION_NOP => at += 1,
                kind => {
                    let length = usize::from(*header.get(at + 1).ok_or(NotTcp::BadOptions)?);
                    if length < 2 || at + length > header.len() {
                        return Err(NotTcp::BadOptions);
                    }
                    options.take(kind, at, &header[at..at + length])?;
                    at += length;
                }
            }
        }
        Ok(options)
    }

    /// Takes the option of a kind that stands at `at`.
    fn take(&mut self, kind: u8, at: usize, option: &[u8]) -> Result<(), NotTcp> {
        match kind {
            OPTION_TIMESTAMPS => {
                let Ok(&[_, _, v0, v1, v2, v3, e0, e1, e2, e3]) =
                    <&[u8; TIMESTAMPS_BYTES]>::try_from(option)
                else {
                    return Err(NotTcp::BadOptions);
                };
                let value = u32::from_be_bytes([v0, v1, v2, v3]);
                let echo = u32::from_be_bytes([e0, e1, e2, e3]);
                match self.timestamps.replace((value, echo)) {
                    None => Ok(()),
                    Some(_) => Err(NotTcp::BadOptions),
                }
            }
            OPTION_SACK => {
                let blocks_bytes = option.len() - 2;
                let whole = blocks_bytes > 0 && blocks_bytes.is_multiple_of(SACK_BLOCK_BYTES);
                match self.sack_at.replace((at, at + option.len())) {
                    None if whole => Ok(()),
                    _ => Err(NotTcp::BadOptions),
                }
            }
            OPTION_MD5 | OPTION_AO => {
                self.has_signature = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
