//! Segments of subflows, with what MPTCP adds to them.

use crate::tcp::Segment;

/// Which end a segment goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Toward {
    /// The end that gets the data.
    Receiver,
    /// The end that sends it.
    Sender,
}

/// The same of an acknowledgement alone, 64-bit.
const ACK_OPTION_BYTES: u64 = 12;
/// MP_CAPABLE of a SYN and of its answer (section 3.1).
const CAPABLE_BYTES: [u64; 2] = [4, 12];
/// MP_JOIN of a SYN and of its answer (section 3.2).
const JOIN_BYTES: [u64; 2] = [12, 16];

/// A segment of a subflow with its MPTCP options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MptcpSegment {
    /// The subflow's segment.
    pub segment: Segment,
    /// Where its data lies in the connection; without data of no meaning.
    pub data_seq: u64,
    /// The next byte of the connection that the receiver expects; of acknowledgements.
    pub data_ack: u64,
    /// The byte after the last that the receiver has room for; of acknowledgements.
    pub data_right_edge: u64,
    /// Whether its subflow joins a connection rather than opens one.
    pub joins: bool,
}

impl MptcpSegment {
    /// Data sequence signal of data with a 64-bit sequence number and a 32-bit acknowledgement,
    /// padded (RFC 8684 section 3.3), as Linux sends it.
    pub const DATA_OPTION_BYTES: u64 = 24;

    /// Length at the IP layer (IPv4).
    pub fn ip_bytes(&self) -> u64 {
        let segment = &self.segment;
        let option_bytes = if segment.flags.syn {
            let bytes = if self.joins { JOIN_BYTES } else { CAPABLE_BYTES };
            bytes[usize::from(segment.flags.ack)]
        } else if segment.len > 0 {
            Self::DATA_OPTION_BYTES
        } else {
            ACK_OPTION_BYTES
        };
        segment.ip_bytes() + option_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Flags;

    #[test]
    fn lengths_count_the_options() {
        let with = |len, syn, ack, joins| {
            let flags = Flags { syn, ack };
            let segment = Segment { len, flags, ..Segment::default() };
            MptcpSegment { segment, data_seq: 0, data_ack: 0, data_right_edge: 0, joins }
        };
        // 20 + 20 + 12 of timestamps; a SYN has 20 of options beside.
        assert_eq!(with(1424, false, true, false).ip_bytes(), 1500);
        assert_eq!(with(0, false, true, true).ip_bytes(), 64);
        assert_eq!(with(0, true, false, false).ip_bytes(), 64);
        assert_eq!(with(0, true, true, true).ip_bytes(), 76);
    }
}
