//! Target `capture_split`: captures on any bytes: as a file, as packets in a sound file, and as
//! segments with any fields.
//!
//! Every packet is counted once; a direction's bins hold its bytes, and no byte is counted that no
//! packet carried; however few bytes a read gives, the result is the same.

use std::io::Read;
use std::net::SocketAddr;

use plait_trace::capture::Capture;
use plait_trace::filter::Filter;
use plait_trace::segment::{Mptcp, Segment};
use plait_trace::split::report::Report;
use plait_trace::split::{FLOWS_MAX, Splitter};

use crate::reached;

/// Reads the bytes in every way.
pub fn capture_split(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else { return };
    match first % 4 {
        0 => file(rest),
        1 => file(&sound_file(rest)),
        _ => segments(rest),
    }
}

/// Reads a file whole, and once more in small pieces.
fn file(bytes: &[u8]) {
    let whole = read(bytes, bytes.len());
    let pieces = read(Pieces(bytes), bytes.len());
    assert_eq!(whole, pieces, "the size of a read matters");
}

fn read(from: impl Read + Send, length: usize) -> Option<(Report, Option<String>)> {
    let mut capture = match Capture::open(from) {
        Ok(capture) => capture,
        Err(error) => {
            reached::feature(format!("capture_split {:?}", core::mem::discriminant(&error)));
            return None;
        }
    };
    let mut splitter = Splitter::new(Filter::default());
    let (mut packets, mut payload) = (0_u64, 0_u64);
    let error = loop {
        let packet = match capture.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        packets += 1;
        assert!(packets <= length as u64, "a packet takes some room in its file");
        match Segment::parse(&packet) {
            Ok(segment) => {
                reached::feature(format!("capture_split {}", kind(&segment.mptcp)));
                payload += u64::from(segment.payload_bytes);
                splitter.segment(packet.at_ns, &segment);
            }
            Err(why) => {
                reached::feature(format!("capture_split {why:?} {:?}", packet.link));
                splitter.skip(packet.at_ns, why);
            }
        }
    };
    let report = splitter.report();
    check(&report, packets, payload);
    Some((report, error))
}

fn kind(mptcp: &Mptcp) -> &'static str {
    match mptcp {
        Mptcp { is_there: false, .. } => "plain",
        Mptcp { join_token: Some(_), .. } => "join",
        Mptcp { capable: [Some(_), _], .. } => "capable",
        Mptcp { mapping: Some(_), .. } => "mapping",
        _ => "mptcp",
    }
}

/// A sound pcap file of Ethernet frames with pieces of the bytes behind headers of TCP over IPv4.
fn sound_file(bytes: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, piece) in bytes.chunks(48).enumerate() {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((20 + piece.len() as u16).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(piece);
        let length = frame.len() as u32;
        for word in [number as u32, 0, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

/// Bytes of a made segment before its options.
const SEGMENT_BYTES: usize = 12;

/// Segments between few ends, with any numbers, flags and options.
fn segments(bytes: &[u8]) {
    let mut splitter = Splitter::new(Filter::default());
    let (mut packets, mut payload, mut at_ns) = (0_u64, 0_u64, 0_u64);
    for piece in bytes.chunks(SEGMENT_BYTES + 28) {
        let Some((head, options)) = piece.split_at_checked(SEGMENT_BYTES) else { break };
        let end = |port: u8| SocketAddr::from(([10, 0, 0, port % 4], 1000 + u16::from(port % 4)));
        let flags = head[2];
        let syn = flags & 1 != 0;
        let word =
            |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let segment = Segment {
            from: end(head[0]),
            to: end(head[1]),
            seq: word(4),
            syn,
            ack: flags & 2 != 0,
            fin: flags & 4 != 0,
            rst: flags & 8 != 0,
            payload_bytes: word(8) >> (flags >> 3 & 31),
            mptcp: Mptcp::parse(options, syn),
        };
        // From nanoseconds to years.
        at_ns = at_ns.wrapping_add(1 << (head[3] & 63));
        packets += 1;
        payload += u64::from(segment.payload_bytes);
        splitter.segment(at_ns, &segment);
    }
    check(&splitter.report(), packets, payload);
}

fn check(report: &Report, packets: u64, payload: u64) {
    let capture = &report.capture;
    assert_eq!(capture.packets, packets, "every packet is counted once");
    let subflows: Vec<_> = report.connections.iter().flat_map(|one| &one.subflows).collect();
    assert!(subflows.len() <= FLOWS_MAX, "the number of flows has a bound");
    let (mut segments, mut bytes) = (0, capture.beyond_bytes);
    for way in subflows.iter().flat_map(|subflow| [&subflow.out, &subflow.back]) {
        assert_eq!(way.bins.iter().sum::<u64>(), way.bytes, "bins hold what was carried");
        assert!((0.0..=1.0).contains(&way.share) && way.mbps >= 0.0, "{way:?}");
        segments += way.segments;
        bytes += way.bytes + way.repeated_bytes;
    }
    assert_eq!(bytes, payload, "every byte is counted once");
    let others = capture.not_tcp + capture.fragments + capture.unreadable;
    assert_eq!(segments + others + capture.beyond_segments, packets);
}

/// A reader that gives few bytes at a time.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = into.len().min(self.0.len()).min(7);
        let (now, later) = self.0.split_at(length);
        into[..length].copy_from_slice(now);
        self.0 = later;
        Ok(length)
    }
}
