//! Frames of control datagrams (spec C-clauses).
//!
//! A datagram with a frame that does not parse is dropped whole, before any of its frames has an
//! effect.

use crate::seq::{PathId, TruncatedPacketNumber};

/// Bytes of an MTU_PROBE before its padding.
pub const MTU_PROBE_BYTES: usize = 7;
/// Most ranges that one acknowledgement carries.
pub const ACK_RANGES_MAX: usize = 32;
/// Most frames of a datagram: each costs the receiver far more than its bytes do.
pub const FRAMES_MAX: usize = 8;
/// Most acknowledgements of a datagram.
pub const ACKS_MAX: usize = 1;
/// Longest link name in bytes.
pub const NAME_BYTES_MAX: usize = 15;

/// Proves that the peer receives at the address to which it was sent, and that it answers from
/// there.
pub type Token = u64;

/// What a side says of one of its links when a path joins (spec C-3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathInfo {
    /// Price class.
    pub price: u8,
    /// Place in the owner's configuration.
    pub order: u8,
    /// Static weight.
    pub weight: u16,
    /// Carries data only while no other link does.
    pub standby: bool,
    /// Its paths sleep while the bond is idle.
    pub metered: bool,
    /// The link's name.
    pub name: String,
}

/// One run of packet numbers that all arrived, relative to the run above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckRange {
    /// Numbers missing between the run above and this one; 0 for the first.
    pub gap: u16,
    /// Numbers in this run, at least 1.
    pub length: u32,
}

/// What arrived on a path (spec C-6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The receiver index that the acknowledged datagrams carried: names path and epoch.
    pub index: u32,
    /// Highest packet number that arrived.
    pub largest: TruncatedPacketNumber,
    /// Time from its arrival to this acknowledgement, in units of 64 us.
    pub delay: u16,
    /// Its arrival by the receiver's clock less its send timestamp, in units of 64 us modulo 2^16.
    pub transit: u16,
    /// The runs that arrived, from the highest down.
    pub ranges: Vec<AckRange>,
}

/// Cumulative counts of data packets on a path since the bond began; they span epochs (spec C-7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossReport {
    /// The path.
    pub path: PathId,
    /// Packets that arrived.
    pub received: u64,
    /// Packets counted lost.
    pub lost: u64,
    /// Packets that arrived after they had been counted lost.
    pub late: u64,
}

/// Of the data packets that arrived lately, nearly all were thrown away (spec R-7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Discards {
    /// Packets that arrived.
    pub arrived: u32,
    /// Those thrown away, late or duplicate.
    pub discarded: u32,
}

/// A release of the program, by its three numbers (spec C-13).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Release {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number.
    pub patch: u16,
}

impl Release {
    /// The revision of the protocol from which on a peer reads [`Frame::Release`].
    pub const SINCE_REVISION: u8 = 1;

    /// Reads `X.Y.Z`; what follows a hyphen does not count.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('-').next()?.split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        let release = Self { major: next()?, minor: next()?, patch: next()? };
        numbers.next().is_none().then_some(release)
    }
}

impl core::fmt::Display for Release {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A frame of a control datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// Asks for a [`Frame::PathResponse`] over the same path.
    PathChallenge(Token),
    /// Answers a [`Frame::PathChallenge`].
    PathResponse(Token),
    /// Describes the sender's link.
    PathInfo(PathInfo),
    /// Asks for a [`Frame::ProbeEcho`] over the same path.
    Probe(u32),
    /// Answers a [`Frame::Probe`].
    ProbeEcho(u32),
    /// What arrived.
    Ack(Ack),
    /// What was lost.
    LossReport(LossReport),
    /// The sender leaves the bond.
    Close,
    /// Nothing comes back to the sender over this path.
    PathDead(PathId),
    /// The sender removed the path (spec C-10).
    PathClose(PathId),
    /// Fills its datagram up to the size that is to be tried, and asks for a [`Frame::MtuEcho`]
    /// over the same path.
    MtuProbe {
        /// What the answer names.
        id: u32,
        /// Zero bytes that follow.
        padding: u16,
    },
    /// Answers a [`Frame::MtuProbe`].
    MtuEcho(u32),
    /// The sender throws away nearly all that arrives.
    Discards(Discards),
    /// What the sender runs.
    Release(Release),
}

/// Flags of PATH_INFO.
const STANDBY: u8 = 1;
const METERED: u8 = 2;

const PATH_CHALLENGE: u8 = 1;
const PATH_RESPONSE: u8 = 2;
const PATH_INFO: u8 = 3;
const PROBE: u8 = 4;
const PROBE_ECHO: u8 = 5;
const ACK: u8 = 6;
const LOSS_REPORT: u8 = 7;
const CLOSE: u8 = 8;
const PATH_DEAD: u8 = 9;
const PATH_CLOSE: u8 = 10;
const MTU_PROBE: u8 = 11;
const MTU_ECHO: u8 = 12;
const DISCARDS: u8 = 13;
const RELEASE: u8 = 14;

impl Frame {
    /// Appends the frame.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::PathChallenge(token) => put(out, PATH_CHALLENGE, &[&token.to_be_bytes()]),
            Self::PathResponse(token) => put(out, PATH_RESPONSE, &[&token.to_be_bytes()]),
            Self::PathInfo(info) => {
                let name = &info.name.as_bytes()[..info.name.len().min(NAME_BYTES_MAX)];
                let weight = info.weight.to_be_bytes();
                let length = name.len() as u8;
                let fixed = [info.price, info.order, weight[0], weight[1], info.flags(), length];
                put(out, PATH_INFO, &[&fixed, name]);
            }
            Self::Probe(id) => put(out, PROBE, &[&id.to_be_bytes()]),
            Self::ProbeEcho(id) => put(out, PROBE_ECHO, &[&id.to_be_bytes()]),
            Self::Ack(ack) => ack.write(out),
            Self::LossReport(report) => {
                let counts = [report.received, report.lost, report.late].map(u64::to_be_bytes);
                put(out, LOSS_REPORT, &[&[report.path.0], counts.as_flattened()]);
            }
            Self::Close => put(out, CLOSE, &[]),
            Self::PathDead(path) => put(out, PATH_DEAD, &[&[path.0]]),
            Self::PathClose(path) => put(out, PATH_CLOSE, &[&[path.0]]),
            Self::MtuProbe { id, padding } => {
                put(out, MTU_PROBE, &[&id.to_be_bytes(), &padding.to_be_bytes()]);
                out.resize(out.len() + usize::from(*padding), 0);
            }
            Self::MtuEcho(id) => put(out, MTU_ECHO, &[&id.to_be_bytes()]),
            Self::Discards(Discards { arrived, discarded }) => {
                put(out, DISCARDS, &[&arrived.to_be_bytes(), &discarded.to_be_bytes()]);
            }
            Self::Release(Release { major, minor, patch }) => {
                put(out, RELEASE, &[[*major, *minor, *patch].map(u16::to_be_bytes).as_flattened()]);
            }
        }
    }

    /// Whether a frame answers it.
    pub const fn asks(&self) -> bool {
        matches!(self, Self::PathChallenge(_) | Self::Probe(_) | Self::MtuProbe { .. })
    }

    /// Reads all frames of a control datagram; `None` when one of them does not parse, or when
    /// there are more than [`FRAMES_MAX`], or [`ACKS_MAX`] acknowledgements (spec C-1).
    pub fn read_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let mut reader = Reader(bytes);
        // Room for all at once: growing step by step costs more than reading them.
        let mut frames = Vec::with_capacity(if bytes.is_empty() { 0 } else { FRAMES_MAX });
        let mut acks = 0;
        while !reader.0.is_empty() {
            acks += usize::from(reader.0[0] == ACK);
            if frames.len() == FRAMES_MAX || acks > ACKS_MAX {
                return None;
            }
            frames.push(Self::read(&mut reader)?);
        }
        Some(frames)
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.u8()? {
            PATH_CHALLENGE => Self::PathChallenge(reader.u64()?),
            PATH_RESPONSE => Self::PathResponse(reader.u64()?),
            PATH_INFO => Self::PathInfo(PathInfo::read(reader)?),
            PROBE => Self::Probe(reader.u32()?),
            PROBE_ECHO => Self::ProbeEcho(reader.u32()?),
            ACK => Self::Ack(Ack::read(reader)?),
            LOSS_REPORT => Self::LossReport(LossReport {
                path: PathId(reader.u8()?),
                received: reader.u64()?,
                lost: reader.u64()?,
                late: reader.u64()?,
            }),
            CLOSE => Self::Close,
            PATH_DEAD => Self::PathDead(PathId(reader.u8()?)),
            PATH_CLOSE => Self::PathClose(PathId(reader.u8()?)),
            MTU_PROBE => Self::MtuProbe { id: reader.u32()?, padding: reader.zeros()? },
            MTU_ECHO => Self::MtuEcho(reader.u32()?),
            DISCARDS => {
                Self::Discards(Discards { arrived: reader.u32()?, discarded: reader.u32()? })
            }
            RELEASE => {
                let (major, minor, patch) = (reader.u16()?, reader.u16()?, reader.u16()?);
                Self::Release(Release { major, minor, patch })
            }
            _ => return None,
        })
    }
}

impl PathInfo {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (price, order, weight) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let flags = reader.u8()?;
        if flags & !(STANDBY | METERED) != 0 {
            return None;
        }
        let (standby, metered) = (flags & STANDBY != 0, flags & METERED != 0);
        Some(Self { price, order, weight, standby, metered, name: reader.name()? })
    }

    fn flags(&self) -> u8 {
        let standby = if self.standby { STANDBY } else { 0 };
        let metered = if self.metered { METERED } else { 0 };
        standby | metered
    }
}

impl Ack {
    fn write(&self, out: &mut Vec<u8>) {
        let ranges = &self.ranges[..self.ranges.len().min(ACK_RANGES_MAX)];
        let head = [
            &self.index.to_be_bytes()[..],
            &self.largest.0.to_be_bytes()[..],
            &self.delay.to_be_bytes()[..],
            &self.transit.to_be_bytes()[..],
            &[ranges.len() as u8][..],
        ];
        put(out, ACK, &head);
        for range in ranges {
            out.extend_from_slice(&range.gap.to_be_bytes());
            out.extend_from_slice(&range.length.to_be_bytes());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let index = reader.u32()?;
        let largest = TruncatedPacketNumber(reader.u32()?);
        let (delay, transit) = (reader.u16()?, reader.u16()?);
        let count = usize::from(reader.u8()?);
        if count == 0 || count > ACK_RANGES_MAX {
            return None;
        }
        let mut ranges = Vec::with_capacity(count);
        for _ in 0..count {
            let [gap @ .., a, b, c, d] = reader.take::<6>()?;
            let length = u32::from_be_bytes([a, b, c, d]);
            let range = AckRange { gap: u16::from_be_bytes(gap), length };
            if range.length == 0 || (range.gap == 0) != ranges.is_empty() {
                return None;
            }
            ranges.push(range);
        }
        Some(Self { index, largest, delay, transit, ranges })
    }
}

fn put(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    out.push(kind);
    for part in parts {
        out.extend_from_slice(part);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// A length, and as many zero bytes.
    fn zeros(&mut self) -> Option<u16> {
        let length = self.u16()?;
        let (zeros, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        zeros.iter().all(|byte| *byte == 0).then_some(length)
    }

    /// A name is shown to people and in terminals: only printable ASCII is accepted.
    fn name(&mut self) -> Option<String> {
        let length = usize::from(self.u8()?);
        if length > NAME_BYTES_MAX || length > self.0.len() {
            return None;
        }
        let (name, rest) = self.0.split_at(length);
        self.0 = rest;
        if !name.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        String::from_utf8(name.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn frame() -> impl Strategy<Value = Frame> {
        let range = (1_u16.., 1_u32..).prop_map(|(gap, length)| AckRange { gap, length });
        let times = any::<(u16, u16)>();
        let ack = (any::<u32>(), any::<u32>(), times, 1_u32.., vec(range, 0..31));
        let flags = (any::<bool>(), any::<bool>());
        let info = (any::<u8>(), any::<u8>(), any::<u16>(), flags, "[!-~]{0,15}");
        prop_oneof![
            any::<u64>().prop_map(Frame::PathChallenge),
            any::<u64>().prop_map(Frame::PathResponse),
            any::<u32>().prop_map(Frame::Probe),
            any::<u32>().prop_map(Frame::ProbeEcho),
            Just(Frame::Close),
            any::<u8>().prop_map(|path| Frame::PathDead(PathId(path))),
            any::<u8>().prop_map(|id| Frame::PathClose(PathId(id))),
            (any::<u32>(), 0_u16..1500).prop_map(|(id, padding)| Frame::MtuProbe { id, padding }),
            any::<u32>().prop_map(Frame::MtuEcho),
            any::<(u32, u32)>().prop_map(|(arrived, discarded)| {
                Frame::Discards(Discards { arrived, discarded })
            }),
            any::<[u16; 3]>().prop_map(|[major, minor, patch]| {
                Frame::Release(Release { major, minor, patch })
            }),
            info.prop_map(|(price, order, weight, (standby, metered), name)| {
                Frame::PathInfo(PathInfo { price, order, weight, standby, metered, name })
            }),
            (any::<u8>(), any::<[u64; 3]>()).prop_map(|(path, counts)| Frame::LossReport(
                LossReport {
                    path: PathId(path),
                    received: counts[0],
                    lost: counts[1],
                    late: counts[2]
                }
            )),
            ack.prop_map(|(index, largest, (delay, transit), first, rest)| {
                let mut ranges = vec![AckRange { gap: 0, length: first }];
                ranges.extend(rest);
                let largest = TruncatedPacketNumber(largest);
                Frame::Ack(Ack { index, largest, delay, transit, ranges })
            }),
        ]
    }

    proptest! {
        #[test]
        fn frames_round_trip(mut frames in vec(frame(), 0..8)) {
            let mut acks = 0..ACKS_MAX;
            frames.retain(|frame| !matches!(frame, Frame::Ack(_)) || acks.next().is_some());
            let mut bytes = Vec::new();
            for frame in &frames {
                frame.write(&mut bytes);
            }
            prop_assert_eq!(Frame::read_all(&bytes), Some(frames));
        }

        /// Spec C-1.
        #[test]
        fn more_frames_than_may_be_are_refused(frame in frame(), count in 1_usize..40) {
            let mut bytes = Vec::new();
            for _ in 0..count {
                frame.write(&mut bytes);
            }
            let is_ack = matches!(frame, Frame::Ack(_));
            let count_max = if is_ack { ACKS_MAX } else { FRAMES_MAX };
            prop_assert_eq!(Frame::read_all(&bytes).is_some(), count <= count_max);
        }

        #[test]
        fn reading_never_panics(bytes in vec(any::<u8>(), 0..200)) {
            let _ = Frame::read_all(&bytes);
        }

        /// Spec C-11: so many zero bytes.
        #[test]
        fn padding_is_zero(padding in 1_u16..1500, at: prop::sample::Index, byte in 1_u8..) {
            let mut bytes = Vec::new();
            Frame::MtuProbe { id: 7, padding }.write(&mut bytes);
            prop_assert_eq!(bytes.len(), MTU_PROBE_BYTES + usize::from(padding));
            let at = MTU_PROBE_BYTES + at.index(usize::from(padding));
            bytes[at] = byte;
            prop_assert_eq!(Frame::read_all(&bytes), None);
        }

        /// Spec C-1: a frame that does not parse.
        #[test]
        fn a_cut_frame_is_refused(frame in frame(), cut in 1_usize..2000) {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);
            let cut = cut % bytes.len();
            prop_assert!(cut == 0 || Frame::read_all(&bytes[..cut]).is_none());
        }
    }
}
