//! Writes TCP segments: for simulators, measurements and tests.

use core::net::IpAddr;

use super::{
    CHECKSUM, OPTION_NOP, OPTION_SACK, OPTION_TIMESTAMPS, SACK_BLOCK_BYTES, SackBlock, TCP,
    TCP_HEADER_BYTES, TIMESTAMPS_BYTES, TcpFlags, TcpFlow, TcpSeq,
};

const OPTIONS_BYTES_MAX: usize = 40;
const TTL: u8 = 64;

/// What a segment is made of.
#[derive(Clone, Copy, Debug)]
pub struct TcpSegment<'a> {
    /// Both ends; both addresses of the same IP version.
    pub flow: TcpFlow,
    /// Flags.
    pub flags: TcpFlags,
    /// Sequence number of the first byte.
    pub seq: TcpSeq,
    /// Acknowledgement number.
    pub ack: TcpSeq,
    /// The window as it stands in the header, unscaled.
    pub window: u16,
    /// The sender's clock and the echo of the other's.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of the SACK option; none: no option. What finds no room is left out: four blocks fit,
    /// beside timestamps three.
    pub sack: &'a [SackBlock],
    /// Data.
    pub payload: &'a [u8],
}

impl<'a> TcpSegment<'a> {
    /// A segment with data, or an acknowledgement without: the ACK flag and nothing else.
    pub const fn new(flow: TcpFlow, seq: TcpSeq, ack: TcpSeq, payload: &'a [u8]) -> Self {
        let flags = TcpFlags(TcpFlags::ACK);
        Self { flow, flags, seq, ack, window: 0xffff, timestamps: None, sack: &[], payload }
    }

    /// The IP packet, with right checksums.
    ///
    /// # Panics
    ///
    /// When the addresses are of two versions, or the payload does not fit into a packet.
    pub fn to_packet(&self) -> Vec<u8> {
        let options = self.options();
        let bytes = TCP_HEADER_BYTES + options.len() + self.payload.len();
        let mut packet = self.ip_header(bytes);
        let at = packet.len();
        packet.extend_from_slice(&self.flow.source_port.to_be_bytes());
        packet.extend_from_slice(&self.flow.destination_port.to_be_bytes());
        packet.extend_from_slice(&self.seq.0.to_be_bytes());
        packet.extend_from_slice(&self.ack.0.to_be_bytes());
        packet.push((((TCP_HEADER_BYTES + options.len()) / 4) << 4) as u8);
        packet.push(self.flags.0);
        packet.extend_from_slice(&self.window.to_be_bytes());
        packet.extend_from_slice(&[0; 4]);
        packet.extend_from_slice(&options);
        packet.extend_from_slice(self.payload);
        let checksum = !sum_of_segment(&packet, at);
        packet[at + CHECKSUM..at + CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    /// Options in the order and with the padding that most systems use.
    fn options(&self) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some((value, echo)) = self.timestamps {
            let length = TIMESTAMPS_BYTES as u8;
            options.extend_from_slice(&[OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMPS, length]);
            options.extend_from_slice(&value.to_be_bytes());
            options.extend_from_slice(&echo.to_be_bytes());
        }
        let room = (OPTIONS_BYTES_MAX - options.len() - 4) / SACK_BLOCK_BYTES;
        let blocks = &self.sack[..self.sack.len().min(room)];
        if !blocks.is_empty() {
            let length = (2 + blocks.len() * SACK_BLOCK_BYTES) as u8;
            options.extend_from_slice(&[OPTION_NOP, OPTION_NOP, OPTION_SACK, length]);
            for block in blocks {
                options.extend_from_slice(&block.left.0.to_be_bytes());
                options.extend_from_slice(&block.right.0.to_be_bytes());
            }
        }
        options
    }

    fn ip_header(&self, payload_bytes: usize) -> Vec<u8> {
        match (self.flow.source, self.flow.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = u16::try_from(20 + payload_bytes).expect("a payload that fits");
                let mut header = vec![0x45, 0];
                header.extend_from_slice(&total.to_be_bytes());
                header.extend_from_slice(&[0, 0, 0x40, 0, TTL, TCP, 0, 0]);
                header.extend_from_slice(&source.octets());
                header.extend_from_slice(&destination.octets());
                let checksum = !folded(sum_of_words(&header));
                header[10..12].copy_from_slice(&checksum.to_be_bytes());
                header
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let length = u16::try_from(payload_bytes).expect("a payload that fits");
                let mut header = vec![0x60, 0, 0, 0];
                header.extend_from_slice(&length.to_be_bytes());
                header.extend_from_slice(&[TCP, TTL]);
                header.extend_from_slice(&source.octets());
                header.extend_from_slice(&destination.octets());
                header
            }
            _ => panic!("both addresses of a flow are of the same IP version"),
        }
    }
}

/// The one's complement sum over the TCP segment at `at` and its pseudo-header (RFC 9293 §3.1);
/// 0xffff when the checksum in it is right.
pub(super) fn sum_of_segment(packet: &[u8], at: usize) -> u16 {
    let addresses = if packet[0] >> 4 == 4 { &packet[12..20] } else { &packet[8..40] };
    let length = (packet.len() - at) as u32;
    folded(sum_of_words(addresses) + sum_of_words(&packet[at..]) + length + u32::from(TCP))
}

/// The sum of 16-bit words; packets are far too short for it to overflow.
fn sum_of_words(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    bytes.chunks(2).map(word).sum()
}

const fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
