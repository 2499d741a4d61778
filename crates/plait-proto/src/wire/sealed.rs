//! Layout of sealed datagrams: data and control (spec W-2 to W-5).

use core::ops::Range;

use super::handshake::SessionIndex;
use super::{Kind, first_byte};
use crate::seq::{BondSeq, PathId, TruncatedBondSeq, TruncatedPacketNumber};
use crate::time::Instant;

const RECEIVER: Range<usize> = 1..5;
const PACKET_NUMBER: Range<usize> = 5..9;

/// First byte, receiver index, packet number: in clear, authenticated.
pub const HEADER_BYTES: usize = 9;
/// What precedes the inner packet under the seal: bond_seq, prev, send_ts.
pub const DATA_PREFIX_BYTES: usize = 7;
/// What precedes the frames under the seal: send_ts, next_bond_seq.
pub const CONTROL_PREFIX_BYTES: usize = 5;
/// The tag at the end of a sealed datagram, whatever the cipher.
pub const TAG_BYTES: usize = 16;
/// What a data datagram adds to its inner packet, beside UDP and IP.
pub const DATA_OVERHEAD_BYTES: usize = HEADER_BYTES + DATA_PREFIX_BYTES + TAG_BYTES;
/// Largest sealed datagram: a UDP payload over IPv4.
pub const SEALED_BYTES_MAX: usize = 65_507;

const _: () = assert!(DATA_OVERHEAD_BYTES == 32);

/// The clear part of a sealed datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Data or control.
    pub kind: Kind,
    /// The receiver's session.
    pub session: SessionIndex,
    /// The path within the session.
    pub path: PathId,
    /// Low bits of the packet number.
    pub number: TruncatedPacketNumber,
}

impl Header {
    /// Reads the header of a datagram whose kind is known to be a sealed one; `None` when the
    /// datagram is too short to hold a tag.
    pub fn read(kind: Kind, datagram: &[u8]) -> Option<Self> {
        if datagram.len() < HEADER_BYTES + TAG_BYTES {
            return None;
        }
        let index = u32::from_be_bytes(datagram[RECEIVER].try_into().ok()?);
        let number = u32::from_be_bytes(datagram[PACKET_NUMBER].try_into().ok()?);
        Some(Self {
            kind,
            session: SessionIndex::from_receiver_index(index),
            path: PathId((index & 0xff) as u8),
            number: TruncatedPacketNumber(number),
        })
    }

    /// The header's bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = first_byte(self.kind);
        let index = self.session.wire() | u32::from(self.path.0);
        bytes[RECEIVER].copy_from_slice(&index.to_be_bytes());
        bytes[PACKET_NUMBER].copy_from_slice(&self.number.0.to_be_bytes());
        bytes
    }
}

/// The sender's clock in units of 64 us, modulo 2^16: it wraps every 4.19 s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendTimestamp(pub u16);

impl SendTimestamp {
    /// Nanoseconds in a unit.
    pub const UNIT_NANOS: u64 = 64_000;

    /// The timestamp of an instant.
    pub const fn of(now: Instant) -> Self {
        Self((now.as_nanos() / Self::UNIT_NANOS) as u16)
    }

    /// Units from the peer's timestamp to an instant of this side's clock, modulo 2^16: the one-way
    /// delay and the difference of the clocks.
    pub const fn transit(self, arrival: Instant) -> u16 {
        Self::of(arrival).0.wrapping_sub(self.0)
    }
}

/// What precedes an inner packet under the seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataPrefix {
    /// Low bits of the bond sequence number.
    pub seq: TruncatedBondSeq,
    /// Distance to the predecessor in the lane; 0 for none.
    pub prev: u16,
    /// When it was sent.
    pub sent: SendTimestamp,
}

impl DataPrefix {
    /// Splits the plain text of a data datagram.
    pub fn read(text: &mut [u8]) -> Option<(Self, &mut [u8])> {
        let (prefix, inner) = text.split_first_chunk_mut::<DATA_PREFIX_BYTES>()?;
        let [s0, s1, s2, p0, p1, t0, t1] = *prefix;
        let prefix = Self {
            seq: TruncatedBondSeq(u32::from_be_bytes([0, s0, s1, s2])),
            prev: u16::from_be_bytes([p0, p1]),
            sent: SendTimestamp(u16::from_be_bytes([t0, t1])),
        };
        Some((prefix, inner))
    }

    /// The prefix's bytes.
    pub fn to_bytes(self) -> [u8; DATA_PREFIX_BYTES] {
        let [_, s0, s1, s2] = self.seq.0.to_be_bytes();
        let [p0, p1] = self.prev.to_be_bytes();
        let [t0, t1] = self.sent.0.to_be_bytes();
        [s0, s1, s2, p0, p1, t0, t1]
    }
}

/// What precedes the frames of a control datagram under the seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlPrefix {
    /// When it was sent.
    pub sent: SendTimestamp,
    /// The bond sequence number that the sender's next data packet will carry: on this path,
    /// nothing below it follows (spec W-5).
    pub next_seq: TruncatedBondSeq,
}

impl ControlPrefix {
    /// A control datagram's prefix.
    pub const fn new(now: Instant, next: BondSeq) -> Self {
        Self { sent: SendTimestamp::of(now), next_seq: next.truncate() }
    }

    /// Splits the plain text of a control datagram.
    pub fn read(text: &[u8]) -> Option<(Self, &[u8])> {
        let ([t0, t1, s0, s1, s2], frames) = text.split_first_chunk::<CONTROL_PREFIX_BYTES>()?;
        let prefix = Self {
            sent: SendTimestamp(u16::from_be_bytes([*t0, *t1])),
            next_seq: TruncatedBondSeq(u32::from_be_bytes([0, *s0, *s1, *s2])),
        };
        Some((prefix, frames))
    }

    /// The prefix's bytes.
    pub fn to_bytes(self) -> [u8; CONTROL_PREFIX_BYTES] {
        let [t0, t1] = self.sent.0.to_be_bytes();
        let [_, s0, s1, s2] = self.next_seq.0.to_be_bytes();
        [t0, t1, s0, s1, s2]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn header_round_trip(session in 1_u64..1 << 24, path: u8, number: u32, data: bool) {
            let header = Header {
                kind: if data { Kind::Data } else { Kind::Control },
                session: SessionIndex::from_random(session).expect("not zero"),
                path: PathId(path),
                number: TruncatedPacketNumber(number),
            };
            let mut datagram = [0; HEADER_BYTES + TAG_BYTES];
            datagram[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
            prop_assert_eq!(Kind::of(datagram[0]), Some(header.kind));
            prop_assert_eq!(Header::read(header.kind, &datagram), Some(header));
            prop_assert_eq!(Header::read(header.kind, &datagram[1..]), None);
        }

        #[test]
        fn prefix_round_trip(seq in 0_u32..1 << 24, prev: u16, sent: u16) {
            let prefix = DataPrefix {
                seq: TruncatedBondSeq(seq),
                prev,
                sent: SendTimestamp(sent),
            };
            let mut text = prefix.to_bytes().to_vec();
            text.push(9);
            let (read, inner) = DataPrefix::read(&mut text).expect("long enough");
            prop_assert_eq!(read, prefix);
            prop_assert_eq!(&*inner, &[9_u8][..]);
        }
    }
}
