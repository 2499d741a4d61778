//! Chooses what a hostile peer seals: one kind alone, or all of them mixed.

use core::net::IpAddr;
use std::collections::BTreeMap;

use plait_proto::seq::{BondSeq, PacketNumber, PathId, TruncatedPacketNumber};
use plait_proto::time::{Duration, Instant};
use plait_proto::wire::Kind as Datagram;
use plait_proto::wire::control::{
    ACK_RANGES_MAX, ACKS_MAX, Ack, AckRange, FRAMES_MAX, Frame, LossReport, PathInfo,
};
use plait_proto::wire::ecn::Ecn;
use plait_proto::wire::sealed::{
    ControlPrefix, DATA_OVERHEAD_BYTES, DATA_PREFIX_BYTES, DataPrefix, HEADER_BYTES, SendTimestamp,
};

use super::inner::{UDP_V4_BYTES_MIN, syn, udp};
use super::{Heard, HostilePeer};

/// A control datagram's bytes beside its frames.
const CONTROL_OVERHEAD_BYTES: usize = HEADER_BYTES + 5 + 16;
/// One less than half of the 24-bit range: the farthest number ahead.
const FARTHEST: u64 = (1 << 23) - 1;
/// Bond sequence numbers that one jump skips: about a resequencer's span.
const JUMP: u64 = 65_000;
/// Largest gap in packet numbers: beyond the widest replay window.
const SKIP_MAX: u64 = 70_000;
/// Addresses and ports that a moving peer sends from.
const SOURCES: u64 = 64;

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// A kind of hostile datagram.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Kind {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Kind {
            /// Every kind, in the order of the enum; the first is the only harmless one.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name in reports.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

impl Kind {
    /// Whether it consists of handshakes, or requires them.
    pub const fn shakes_hands(self) -> bool {
        matches!(self, Self::Handshakes | Self::Farewells)
    }
}

kinds! {
    /// Data in order, like any peer's.
    Ordinary => "data in order",
    /// Each bond sequence number lies a resequencer's span beyond the one before.
    Jumps => "jumps of 65,000",
    /// The same, and each packet waits for one that never arrives.
    WaitingJumps => "jumps that wait",
    /// Jumps as far as a truncated number allows.
    FarJumps => "farthest jumps",
    /// Ever lower bond sequence numbers.
    Backward => "backward jumps",
    /// The same bond sequence number again and again.
    Duplicates => "duplicates",
    /// Every second packet is missing and waited for.
    Holes => "holes",
    /// Packets all over the resequencer's span that wait for missing ones.
    Scattered => "scattered over the span",
    /// A number far ahead, then those that were given up because of it.
    Late => "late",
    /// Marks that name a far next bond sequence number.
    FarMarks => "marks far ahead",
    /// Packet numbers with gaps of any size.
    NumberGaps => "gaps in packet numbers",
    /// Packet numbers that were used or lie below the window.
    OldNumbers => "old packet numbers",
    /// As many acknowledgements as fit, each of everything in flight but the first.
    Acks => "acknowledgements of all",
    /// As many acknowledgements as fit, each with as many ranges as allowed.
    AckRanges => "acknowledgements in ranges",
    /// Acknowledgements of packets never sent, and of things that do not exist.
    FalseAcks => "false acknowledgements",
    /// As many loss reports as fit.
    LossReports => "loss reports",
    /// As many challenges as fit.
    Challenges => "challenges",
    /// As many probes as fit.
    Probes => "probes",
    /// As many empty MTU probes as fit.
    MtuProbes => "MTU probes",
    /// Echoes of probes of all sizes that were never sent.
    MtuEchoes => "MTU echoes",
    /// Descriptions of the link.
    PathInfos => "path infos",
    /// As many PATH_DEAD as fit, of all paths.
    DeadPaths => "dead paths",
    /// As many PATH_CLOSE as fit, of all paths.
    ClosedPaths => "closed paths",
    /// Openings of one path after the other.
    Openings => "path opens",
    /// Data from ever-changing addresses.
    Moves => "moves",
    /// Inner source addresses of other peers.
    Spoofed => "spoofed sources",
    /// SYNs that announce odd segment sizes.
    Syns => "SYNs with odd MSS",
    /// ECN-marked datagrams around inner packets that are not ECN-capable.
    Marked => "marked, not ECT",
    /// Frames that do not parse.
    BadFrames => "bad frames",
    /// Inner packets that are not IP packets.
    BadPackets => "bad packets",
    /// Handshakes, with cookies when asked.
    Handshakes => "handshakes",
    /// A farewell, and the handshake for the next bond.
    Farewells => "farewells",
}

/// Who owns which addresses inside the bond.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The hostile peer's own, which are allowed.
    pub own: Vec<IpAddr>,
    /// Other customers' addresses, and nobody's.
    pub foreign: Vec<IpAddr>,
    /// Behind the victim, one of each family that the peer has.
    pub beyond: Vec<IpAddr>,
}

/// A datagram that is ready to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Which of the peer's addresses it comes from: 0 unless it moves.
    pub source: u16,
}

impl Made {
    /// Bytes without a mark from the peer's first address.
    pub const fn plain(bytes: Vec<u8>) -> Self {
        Self { bytes, ecn: Ecn::NotEct, source: 0 }
    }
}

/// Chooses a number from 0 to the one given, both included: at random, or as a fuzzer says.
pub type Choose<'a> = &'a mut dyn FnMut(u64) -> u64;

/// Chooses what to seal.
#[derive(Debug)]
pub struct Content {
    addresses: Addresses,
    /// Longest datagram, in bytes.
    pub bytes_max: usize,
    /// The bond sequence number after the highest one that was sent.
    next: u64,
    /// What the victim sent on each path since the last call of [`Self::forget_heard`].
    heard: BTreeMap<PathId, (PacketNumber, PacketNumber)>,
    /// The main path.
    path: u8,
    /// The path that is opened next.
    opened: u8,
    made: u64,
}

impl Content {
    /// Content for a peer whose path number `path` is up.
    pub fn new(addresses: Addresses, bytes_max: usize) -> Self {
        let heard = BTreeMap::new();
        Self { addresses, bytes_max, next: 0, heard, path: 0, opened: 1, made: 0 }
    }

    /// Notes what the victim sent, for later acknowledgements; and new sessions, in which all
    /// numbers start again.
    pub fn note(&mut self, heard: &Heard) {
        match heard {
            Heard::Data(path, number) => {
                let (low, high) = self.heard.entry(*path).or_insert((*number, *number));
                (*low, *high) = ((*low).min(*number), (*high).max(*number));
            }
            Heard::Session | Heard::Response(_) => self.heard.clear(),
            _ => {}
        }
    }

    /// Forgets the victim's datagrams so far.
    pub fn forget_heard(&mut self) {
        self.heard.clear();
    }

    /// A bond begins: its sequence numbers start at zero.
    pub fn begin_bond(&mut self) {
        self.next = 0;
        self.opened = 1;
        self.heard.clear();
    }

    /// The path that carries everything that needs no particular path.
    pub fn main_path(&self, peer: &HostilePeer) -> PathId {
        peer.own_path(self.path)
    }

    /// These frames, in order, over the main path; `None` without a session.
    pub fn say(&self, peer: &mut HostilePeer, now: Instant, frames: &[Frame]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut text));
        peer.control(self.main_path(peer), ControlPrefix::new(now, BondSeq(0)), &text)
    }

    /// The next datagram of a kind; `None` when it needs a session and there is none.
    pub fn make(
        &mut self,
        kind: Kind,
        peer: &mut HostilePeer,
        now: Instant,
        wall_clock: Duration,
        choose: Choose<'_>,
    ) -> Option<Made> {
        self.made += 1;
        let mut made = Made::plain(Vec::new());
        if matches!(kind, Kind::Moves) {
            made.source = choose(SOURCES - 1) as u16;
        }
        if matches!(kind, Kind::Marked) {
            made.ecn = Ecn::Ce;
        }
        made.bytes = match kind {
            Kind::Handshakes => peer.initiate(wall_clock),
            Kind::Farewells if self.made.is_multiple_of(2) => {
                peer.forget_bond();
                peer.initiate(wall_clock)
            }
            Kind::OldNumbers => self.old_number(peer, now, choose)?,
            kind => match self.frames(kind, peer, choose) {
                Some((path, frames)) => self.control(kind, peer, path, now, &frames, choose)?,
                None => self.data(kind, peer, now, choose)?,
            },
        };
        Some(made)
    }

    /// A number that was used, or is below the replay window; sometimes a new one far ahead.
    fn old_number(
        &mut self,
        peer: &mut HostilePeer,
        now: Instant,
        choose: Choose<'_>,
    ) -> Option<Vec<u8>> {
        let path = self.main_path(peer);
        let next = peer.next_number(path);
        if next.0 < SKIP_MAX || choose(63) == 0 {
            peer.skip(path, SKIP_MAX);
            return self.data(Kind::Ordinary, peer, now, choose);
        }
        let number = PacketNumber(next.0 - 1 - choose(SKIP_MAX - 1));
        let text = [&self.prefix(now, 0, 0).to_bytes()[..], &self.packet(64, choose)].concat();
        peer.seal_as(Datagram::Data, path, number, &text)
    }

    /// A datagram of any kind.
    pub fn make_any(
        &mut self,
        peer: &mut HostilePeer,
        now: Instant,
        wall_clock: Duration,
        choose: Choose<'_>,
    ) -> Option<Made> {
        let kind = Kind::ALL[choose(Kind::ALL.len() as u64 - 1) as usize];
        self.make(kind, peer, now, wall_clock, choose)
    }

    /// A datagram of any sealed kind that needs no handshake.
    pub fn make_any_sealed(
        &mut self,
        peer: &mut HostilePeer,
        now: Instant,
        wall_clock: Duration,
        choose: Choose<'_>,
    ) -> Option<Made> {
        let sealed = || Kind::ALL.iter().copied().filter(|kind| !kind.shakes_hands());
        let chosen = choose(sealed().count() as u64 - 1) as usize;
        let kind = sealed().nth(chosen).expect("chosen among so many");
        self.make(kind, peer, now, wall_clock, choose)
    }

    /// An ordinary data datagram of so many bytes, or as few as its headers have.
    pub fn ordinary(
        &mut self,
        peer: &mut HostilePeer,
        now: Instant,
        bytes: usize,
    ) -> Option<Vec<u8>> {
        let prefix = self.prefix(now, self.next, 1);
        self.next += 1;
        let bytes = bytes.max(DATA_OVERHEAD_BYTES + UDP_V4_BYTES_MIN) - DATA_OVERHEAD_BYTES;
        let (own, beyond) = (self.addresses.own[0], self.addresses.beyond[0]);
        peer.data(self.main_path(peer), prefix, &udp(own, beyond, 7, bytes))
    }

    fn prefix(&self, now: Instant, seq: u64, prev: u16) -> DataPrefix {
        DataPrefix { seq: BondSeq(seq).truncate(), prev, sent: SendTimestamp::of(now) }
    }

    /// An inner packet from one of the peer's own addresses.
    fn packet(&self, bytes: usize, choose: Choose<'_>) -> Vec<u8> {
        self.packet_from(&self.addresses.own, bytes, choose)
    }

    fn packet_from(&self, sources: &[IpAddr], bytes: usize, choose: Choose<'_>) -> Vec<u8> {
        let source = sources[choose(sources.len() as u64 - 1) as usize];
        let beyond = self.addresses.beyond.iter();
        let beyond = beyond.copied().find(|address| address.is_ipv4() == source.is_ipv4());
        udp(source, beyond.unwrap_or(source), choose(7) as u16 + 1, bytes)
    }

    /// The bond sequence number and `prev` of the next data datagram.
    fn place(&mut self, kind: Kind, choose: Choose<'_>) -> (u64, u16) {
        let at = self.next;
        let turn = self.made;
        let (seq, prev) = match kind {
            Kind::Jumps => (at + JUMP, 0),
            Kind::WaitingJumps => (at + JUMP, 1),
            Kind::FarJumps => (at + FARTHEST, choose(1) as u16),
            Kind::Backward => (at.saturating_sub(1 + choose(JUMP)), choose(1) as u16),
            Kind::Duplicates => (at.saturating_sub(1), 0),
            Kind::Holes => (at + 1, 1),
            Kind::Scattered => (at + choose(32_000), choose(32_000) as u16),
            Kind::Late if turn.is_multiple_of(16) => (at + 64, 0),
            Kind::Late => (at.saturating_sub(1 + choose(62)), 0),
            _ => (at, 1),
        };
        match kind {
            Kind::Backward => self.next = seq,
            // The span moves on, so that scattered packets leave it.
            Kind::Scattered => self.next += 8,
            Kind::Duplicates | Kind::Late if seq < at => {}
            _ => self.next = seq + 1,
        }
        (seq, prev)
    }

    fn data(
        &mut self,
        kind: Kind,
        peer: &mut HostilePeer,
        now: Instant,
        choose: Choose<'_>,
    ) -> Option<Vec<u8>> {
        let path = self.main_path(peer);
        let (seq, prev) = self.place(kind, choose);
        let prefix = self.prefix(now, seq, prev);
        let inner = match kind {
            Kind::Spoofed => self.packet_from(&self.addresses.foreign, 64, choose),
            Kind::Syns => {
                let (own, beyond) = (self.addresses.own[0], self.addresses.beyond[0]);
                syn(own, beyond, 7, choose(u64::from(u16::MAX)) as u16)
            }
            Kind::BadPackets => {
                let bytes = choose(DATA_PREFIX_BYTES as u64 * 20) as usize;
                (0..bytes).map(|_| choose(255) as u8).collect()
            }
            Kind::Ordinary => {
                let bytes = self.bytes_max - DATA_OVERHEAD_BYTES;
                self.packet(bytes, choose)
            }
            _ => self.packet(UDP_V4_BYTES_MIN, choose),
        };
        if kind == Kind::NumberGaps {
            let far = choose(15) == 0;
            peer.skip(path, choose(if far { SKIP_MAX } else { 3 }));
        }
        peer.data(path, prefix, &inner)
    }

    fn control(
        &mut self,
        kind: Kind,
        peer: &mut HostilePeer,
        path: PathId,
        now: Instant,
        frames: &[u8],
        choose: Choose<'_>,
    ) -> Option<Vec<u8>> {
        if kind == Kind::FarMarks {
            self.next += choose(FARTHEST);
        }
        peer.control(path, ControlPrefix::new(now, BondSeq(self.next)), frames)
    }

    /// The frames of a kind that consists of frames, and the path they go over.
    fn frames(
        &mut self,
        kind: Kind,
        peer: &HostilePeer,
        choose: Choose<'_>,
    ) -> Option<(PathId, Vec<u8>)> {
        let path = self.main_path(peer);
        let room = self.bytes_max.saturating_sub(CONTROL_OVERHEAD_BYTES);
        let frames = match kind {
            Kind::FarMarks => Vec::new(),
            Kind::Acks | Kind::AckRanges | Kind::FalseAcks => {
                fill(room, || Frame::Ack(self.ack(kind, peer, choose)))
            }
            Kind::LossReports => fill(room, || {
                let counts = [(); 3].map(|()| choose(u64::MAX));
                let [received, lost, late] = counts;
                Frame::LossReport(LossReport { path: any_path(path, choose), received, lost, late })
            }),
            Kind::Challenges => fill(room, || Frame::PathChallenge(choose(u64::MAX))),
            Kind::Probes => fill(room, || Frame::Probe(choose(u64::from(u32::MAX)) as u32)),
            Kind::MtuProbes => fill(room, || Frame::MtuProbe {
                id: choose(u64::from(u32::MAX)) as u32,
                padding: 0,
            }),
            Kind::MtuEchoes => fill(room, || Frame::MtuEcho(choose(64) as u32)),
            Kind::PathInfos => fill(room, || Frame::PathInfo(link(choose))),
            Kind::DeadPaths => fill(room, || Frame::PathDead(any_path(path, choose))),
            Kind::ClosedPaths => fill(room, || {
                // Its own path stays open: sealing on a closed one would only repeat that it is
                // closed.
                let closed = any_path(path, choose);
                Frame::PathClose(if closed == path { PathId(path.0 ^ 1) } else { closed })
            }),
            Kind::Openings => return Some(self.opening(peer, choose)),
            Kind::BadFrames => bad_frames(room, choose),
            Kind::Farewells => fill(1, || Frame::Close),
            _ => return None,
        };
        Some((path, frames))
    }

    /// Opens a path; closes another, so that there is room, and now and then one of the victim's.
    fn opening(&mut self, peer: &HostilePeer, choose: Choose<'_>) -> (PathId, Vec<u8>) {
        let path = peer.own_path(self.opened);
        let closed = peer.own_path(self.opened.wrapping_sub(1 + choose(31) as u8));
        self.opened = match self.opened {
            127 => 1,
            opened => opened + 1,
        };
        let mut frames = Vec::new();
        Frame::PathChallenge(choose(u64::MAX)).write(&mut frames);
        Frame::PathInfo(link(choose)).write(&mut frames);
        if closed != self.main_path(peer) {
            Frame::PathClose(closed).write(&mut frames);
        }
        (path, frames)
    }

    fn ack(&self, kind: Kind, peer: &HostilePeer, choose: Choose<'_>) -> Ack {
        let heard = self.heard.iter().next();
        let main = self.main_path(peer);
        let (path, (low, high)) =
            heard.map_or((main, (0, 0)), |(path, (low, high))| (*path, (low.0, high.0)));
        let mut ack = Ack {
            index: peer.ack_index(path),
            largest: TruncatedPacketNumber(high as u32),
            delay: choose(100) as u16,
            transit: choose(u64::from(u16::MAX)) as u16,
            // All but the lowest, which so stays in flight.
            ranges: vec![AckRange { gap: 0, length: (high - low).max(1) as u32 }],
        };
        match kind {
            Kind::AckRanges => {
                let length = (high - low) / (2 * ACK_RANGES_MAX as u64);
                let length = length.max(1) as u32;
                let range = |gap| AckRange { gap, length };
                ack.ranges = core::iter::once(range(0))
                    .chain((1..ACK_RANGES_MAX).map(|_| range(length as u16)))
                    .collect();
            }
            Kind::FalseAcks => {
                ack.largest.0 = choose(u64::from(u32::MAX)) as u32;
                ack.ranges[0].length = 1 + choose(u64::from(u32::MAX) - 1) as u32;
                if choose(3) == 0 {
                    ack.index = choose(u64::from(u32::MAX)) as u32;
                }
            }
            _ => {}
        }
        ack
    }
}

/// One of 256 paths; half the time the peer's main one.
fn any_path(main: PathId, choose: Choose<'_>) -> PathId {
    if choose(1) == 0 { main } else { PathId(choose(255) as u8) }
}

fn link(choose: Choose<'_>) -> PathInfo {
    PathInfo {
        price: choose(255) as u8,
        order: choose(255) as u8,
        weight: choose(65_535) as u16,
        standby: choose(1) == 1,
        metered: choose(1) == 1,
        name: "hostile".to_owned(),
    }
}

/// As many frames as a datagram may have (spec C-1) and as fit into `room` bytes, and at least one.
fn fill(room: usize, mut frame: impl FnMut() -> Frame) -> Vec<u8> {
    let (mut frames, mut one) = (Vec::new(), Vec::new());
    let first = frame();
    first.write(&mut frames);
    let count_max = if matches!(first, Frame::Ack(_)) { ACKS_MAX } else { FRAMES_MAX };
    for _ in 1..count_max {
        one.clear();
        frame().write(&mut one);
        if frames.len() + one.len() > room {
            break;
        }
        frames.extend_from_slice(&one);
    }
    frames
}

/// Frames of which the last does not parse: of no known type, or cut short.
fn bad_frames(room: usize, choose: Choose<'_>) -> Vec<u8> {
    let mut frames = fill(room.saturating_sub(2), || Frame::Probe(1));
    if choose(1) == 0 {
        frames.push(14 + choose(241) as u8);
    } else {
        frames.extend_from_slice(&[1, 0]);
    }
    frames
}
