//! Packets of a capture file, pcap or pcapng, one after the other in bounded memory.

use std::io::{Chain, Cursor, Read};

use pcap_parser::traits::{PcapNGPacketBlock as _, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use thiserror::Error;

/// Room at first: the beginning that tells the format, then what is read in one go.
const ROOM_BYTES: usize = 256 * 1024;
/// Room for the longest packet or block. The largest that a kernel captures is 256 KiB long.
const ROOM_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Interfaces of a section that are remembered; one per link and program is usual.
const INTERFACES_MAX: usize = 4096;

/// Why a capture ends early. What was read until then counts.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The file has no byte.
    #[error("the file is empty")]
    Empty,
    /// It begins like neither format.
    #[error("this is no capture: it begins neither like pcap nor like pcapng")]
    NoCapture,
    /// It ends within a packet or block.
    #[error("the capture is cut off: it ends within a packet, after {offset} bytes")]
    CutOff {
        /// Where the packet begins.
        offset: u64,
    },
    /// Some length or type in it cannot be.
    #[error("the capture is damaged at byte {offset}")]
    Damaged {
        /// Where the packet or block begins.
        offset: u64,
    },
    /// A packet is longer than any kernel captures.
    #[error(
        "the capture is damaged at byte {offset}: a packet is longer than {ROOM_BYTES_MAX} bytes"
    )]
    TooLong {
        /// Where the packet or block begins.
        offset: u64,
    },
    /// The file cannot be read.
    #[error("the capture cannot be read further than {offset} bytes")]
    Read {
        /// How far it was read.
        offset: u64,
    },
}

/// What a packet begins with, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// An Ethernet header.
    Ethernet,
    /// An IP header.
    Ip,
    /// Linux "cooked" capture, on all interfaces.
    Cooked,
    /// Its second version.
    Cooked2,
    /// BSD loopback: four bytes of address family.
    Null,
    /// Something else; its packets are counted only.
    Other(i32),
}

impl Link {
    fn of(number: i32) -> Self {
        match number {
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            0 | 108 => Self::Null,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            other => Self::Other(other),
        }
    }
}

/// A packet as it was captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// When, in nanoseconds of whatever the capturing program counted from.
    pub at_ns: u64,
    /// What it begins with.
    pub link: Link,
    /// Its length on the wire.
    pub wire_bytes: u32,
    /// What of it was kept.
    pub data: &'a [u8],
}

/// An interface of a pcapng file.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Link,
    /// Units of its clock in a second.
    units: u64,
    /// Seconds to add to its clock.
    offset_s: i64,
}

/// A capture that is being read.
#[allow(missing_debug_implementations, reason = "the reader of the library has none")]
pub struct Capture<'r> {
    reader: Box<dyn PcapReaderIterator + Send + 'r>,
    interfaces: Vec<Interface>,
    /// Of a file with one link for all packets, which begins with it.
    legacy: Option<Interface>,
    /// Bytes of the packet that was given out last.
    to_consume: usize,
    offset: u64,
    room: usize,
}

/// Why the next block is not there yet.
enum Short {
    OfBytes,
    OfRoom,
    AtEnd,
}

/// What stands next in a file.
enum Next {
    Packet { at_ns: u64, link: Link, wire_bytes: u32, skip: usize, length: usize },
    Nothing,
}

impl<'r> Capture<'r> {
    /// Begins to read.
    ///
    /// # Errors
    /// [`CaptureError`]
    pub fn open(mut from: impl Read + Send + 'r) -> Result<Self, CaptureError> {
        let mut start = Vec::with_capacity(ROOM_BYTES);
        // Whole, because the library looks at the format once, however little a pipe gave.
        let read = from.by_ref().take(ROOM_BYTES as u64 / 2).read_to_end(&mut start);
        read.map_err(|_| CaptureError::Read { offset: 0 })?;
        let whole: Chain<_, _> = Cursor::new(start).chain(from);
        let reader = create_reader(ROOM_BYTES, whole).map_err(|error| match error {
            PcapError::Eof => CaptureError::Empty,
            PcapError::ReadError => CaptureError::Read { offset: 0 },
            _ => CaptureError::NoCapture,
        })?;
        let interfaces = Vec::new();
        Ok(Self { reader, interfaces, legacy: None, to_consume: 0, offset: 0, room: ROOM_BYTES })
    }

    /// The next packet, or `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`]; no packets come after it.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        loop {
            self.reader.consume(std::mem::take(&mut self.to_consume));
            if !self.fill()? {
                return Ok(None);
            }
            let offset = self.offset;
            let (length, next) = match self.reader.next() {
                Ok((length, block)) => {
                    (length, look(&block, length, &mut self.interfaces, &mut self.legacy))
                }
                Err(_) => return Err(CaptureError::Damaged { offset }),
            };
            self.to_consume = length;
            self.offset += length as u64;
            if let Next::Packet { at_ns, link, wire_bytes, skip, length } = next {
                let data = self.reader.data().get(skip..skip + length);
                let data = data.ok_or(CaptureError::Damaged { offset })?;
                return Ok(Some(Packet { at_ns, link, wire_bytes, data }));
            }
        }
    }

    /// Reads until a whole block is there; whether there is one.
    fn fill(&mut self) -> Result<bool, CaptureError> {
        let offset = self.offset;
        loop {
            let has_more = !self.reader.reader_exhausted();
            let held = self.reader.data().len();
            if held == 0 && !has_more {
                return Ok(false);
            }
            let state = match self.reader.next() {
                Ok(_) => return Ok(true),
                Err(PcapError::Eof) => return Ok(false),
                Err(PcapError::UnexpectedEof) => Short::AtEnd,
                Err(PcapError::Incomplete(_)) if !has_more => Short::AtEnd,
                Err(PcapError::Incomplete(_)) => Short::OfBytes,
                Err(PcapError::BufferTooSmall) => Short::OfRoom,
                Err(_) => return Err(CaptureError::Damaged { offset }),
            };
            match state {
                Short::AtEnd => return Err(CaptureError::CutOff { offset }),
                Short::OfRoom => self.grow()?,
                Short::OfBytes => {}
            }
            self.reader.refill().map_err(|_| CaptureError::Read { offset })?;
            if self.reader.data().len() == held && !self.reader.reader_exhausted() {
                self.grow()?;
            }
        }
    }

    fn grow(&mut self) -> Result<(), CaptureError> {
        if self.room >= ROOM_BYTES_MAX {
            // A length beyond all bounds may also be one that the file's end cut.
            return Err(CaptureError::TooLong { offset: self.offset });
        }
        self.room *= 2;
        self.reader.grow(self.room);
        Ok(())
    }
}

/// What a block means here. Its data is told by its place, as the block itself cannot be kept.
fn look(
    block: &PcapBlockOwned<'_>,
    block_bytes: usize,
    interfaces: &mut Vec<Interface>,
    legacy: &mut Option<Interface>,
) -> Next {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let units = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            // Upper bits tell of checksums at the end of frames.
            let link = Link::of(header.network.0 & 0xffff);
            *legacy = Some(Interface { link, units, offset_s: 0 });
            Next::Nothing
        }
        PcapBlockOwned::Legacy(packet) => {
            let Some(interface) = legacy else { return Next::Nothing };
            let fraction = u64::from(packet.ts_usec) * (1_000_000_000 / interface.units);
            let at_ns = u64::from(packet.ts_sec) * 1_000_000_000 + fraction;
            let (link, wire_bytes, length) = (interface.link, packet.origlen, packet.data.len());
            // The data is the end of it; there are heads of two lengths.
            let skip = block_bytes.saturating_sub(length);
            Next::Packet { at_ns, link, wire_bytes, skip, length }
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            Next::Nothing
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
            if interfaces.len() < INTERFACES_MAX {
                interfaces.push(Interface {
                    link: Link::of(block.linktype.0),
                    units: units(block.if_tsresol),
                    offset_s: block.if_tsoffset,
                });
            }
            Next::Nothing
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let Some(interface) = interfaces.get(packet.if_id as usize) else {
                return Next::Nothing;
            };
            let time = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            Next::Packet {
                at_ns: nanos(time, *interface),
                link: interface.link,
                wire_bytes: packet.origlen,
                skip: ENHANCED_HEAD_BYTES,
                length: packet.packet_data().len(),
            }
        }
        // A simple packet has no time, so it cannot be split over time.
        PcapBlockOwned::NG(_) => Next::Nothing,
    }
}

/// Bytes before a packet's data in an enhanced packet block.
const ENHANCED_HEAD_BYTES: usize = 28;

/// Units in a second: a power of ten, or of two with the upper bit set.
fn units(resolution: u8) -> u64 {
    let power = u32::from(resolution & 0x7f);
    let units =
        if resolution & 0x80 == 0 { 10_u64.checked_pow(power) } else { 1_u64.checked_shl(power) };
    units.unwrap_or(u64::MAX)
}

fn nanos(time: u64, interface: Interface) -> u64 {
    let nanos = i128::from(time) * 1_000_000_000 / i128::from(interface.units.max(1));
    let shifted = nanos + i128::from(interface.offset_s) * 1_000_000_000;
    u64::try_from(shifted.max(0)).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A pcap file of Ethernet packets, each with its time in microseconds.
    pub(crate) fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
            file.extend(word.to_le_bytes());
        }
        for (at_us, data) in packets {
            let length = data.len() as u32;
            for word in [(at_us / 1_000_000) as u32, (at_us % 1_000_000) as u32, length, length] {
                file.extend(word.to_le_bytes());
            }
            file.extend(data);
        }
        file
    }

    /// The same as pcapng, with nanoseconds.
    pub(crate) fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut block = |kind: u32, body: Vec<u8>| {
            let length = 12 + body.len() as u32;
            file.extend(kind.to_le_bytes());
            file.extend(length.to_le_bytes());
            file.extend(body);
            file.extend(length.to_le_bytes());
        };
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
        block(0x0a0d_0d0a, words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
        // Option 9, one byte: units of 10^-9 s.
        block(1, words(&[1, 0, 0x0001_0009, 9, 0]));
        for (at_us, data) in packets {
            let time = at_us * 1000;
            let length = data.len() as u32;
            let mut body = words(&[0, (time >> 32) as u32, time as u32, length, length]);
            body.extend(data);
            body.resize(body.len().next_multiple_of(4), 0);
            block(6, body);
        }
        file
    }

    fn read(file: &[u8]) -> (Vec<(u64, usize)>, Option<CaptureError>) {
        let mut capture = match Capture::open(file) {
            Ok(capture) => capture,
            Err(error) => return (Vec::new(), Some(error)),
        };
        let mut packets = Vec::new();
        loop {
            match capture.next_packet() {
                Ok(Some(packet)) => packets.push((packet.at_ns, packet.data.len())),
                Ok(None) => return (packets, None),
                Err(error) => return (packets, Some(error)),
            }
        }
    }

    fn some_packets() -> Vec<(u64, Vec<u8>)> {
        (0..4000).map(|n| (n * 1500, vec![n as u8; 61 + n as usize % 1400])).collect()
    }

    #[test]
    fn both_formats_give_the_same_packets() {
        let packets = some_packets();
        let expected: Vec<_> = packets.iter().map(|(us, data)| (us * 1000, data.len())).collect();
        for file in [pcap(&packets), pcapng(&packets)] {
            let (found, error) = read(&file);
            assert!(error.is_none(), "{error:?}");
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_cut_file_gives_what_was_whole() {
        let packets = some_packets();
        for file in [pcap(&packets), pcapng(&packets)] {
            let (found, error) = read(&file[..file.len() - 5]);
            assert_eq!(found.len(), packets.len() - 1);
            assert!(matches!(error, Some(CaptureError::CutOff { .. })), "{error:?}");
        }
    }

    #[test]
    fn what_is_no_capture_is_told() {
        let error = |file: &[u8]| read(file).1.map(|error| error.to_string());
        assert_eq!(error(b""), Some("the file is empty".into()));
        let text = error(b"#!/bin/sh\necho this is a long enough text\n");
        assert!(text.is_some_and(|text| text.contains("no capture")));
        let mut long = pcap(&some_packets()[..2]);
        long[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(
            read(&long).1,
            Some(CaptureError::CutOff { .. } | CaptureError::TooLong { .. })
        ));
        let mut damaged = pcapng(&some_packets());
        // The length of the first packet's block.
        damaged[64..68].fill(0xff);
        assert!(read(&damaged).1.is_some());
    }

    #[test]
    fn clocks_have_their_own_units() {
        assert_eq!([units(6), units(0x80 | 10), units(0x7f)], [1_000_000, 1024, u64::MAX]);
        let clock = |units, offset_s| Interface { link: Link::Ip, units, offset_s };
        assert_eq!(nanos(2048, clock(1024, 3)), 5_000_000_000);
        assert_eq!(nanos(5, clock(1, -6)), 0);
        assert_eq!(nanos(u64::MAX, clock(1, i64::MAX)), u64::MAX);
    }
}
