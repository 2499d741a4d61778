//! The hostile customer of a real gateway: a thread that has a key and sends 10,000 datagrams a
//! second of the phase's kinds.

use std::net::{Ipv4Addr, UdpSocket as PlainSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plait_net::clock::realtime_since_epoch;
use plait_net::netns::NetNs;
use plait_net::udp::{BindTo, Transmit, UdpPort as _, UdpSocket};
use plait_proto::session::{Identity, PrivateKey, PublicKey};
use plait_proto::time::Instant as CoreInstant;
use plait_proto::wire::control::Frame;
use plait_sim::hostile::content::{Addresses, Content, Kind, Made};
use plait_sim::hostile::{Heard, HostilePeer, replies_to};
use plait_sim::prng::Prng;

use crate::gateway::endpoint_v4;
use crate::process;
use crate::worker::Worker;

/// Datagrams a second.
pub(super) const PER_SECOND: u64 = 10_000;
const TICK: Duration = Duration::from_millis(1);
/// Most datagrams of a burst, when the thread has fallen behind.
const BURST_MAX: u64 = 100;
/// Longest datagram: what fits an Ethernet packet.
const BYTES_MAX: usize = 1472;
/// Bytes of ordinary datagrams: the same as those of the jumps.
const ORDINARY_BYTES: usize = 70;
/// Padding of the largest MTU probe that it answers while the path must seem tiny.
const TINY_PADDING: u16 = 500;
/// How often it tries to get a path again.
const REJOIN: Duration = Duration::from_millis(300);
/// How often each source makes a new initiation, which it repeats in between: both cost the gateway
/// the same work.
const FRESH_INITIATION: Duration = Duration::from_secs(1);

/// What the hostile customer does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// It only sends the answers that keep its path up.
    Quiet,
    /// Data in order, in packets as small as most of the hostile phases.
    Ordinary,
    Jumps,
    Acknowledgements,
    Mtu,
    Spoofed,
    Handshakes,
    Mix,
}

/// Every phase in the order of the enum, its name, and the kinds sent in it.
const PHASES: [(Phase, &str, &[Kind]); 8] = [
    (Phase::Quiet, "nothing hostile", &[]),
    (Phase::Ordinary, "as many ordinary datagrams", &[Kind::Ordinary]),
    (Phase::Jumps, "jumps", JUMPS),
    (Phase::Acknowledgements, "acknowledgements", ACKS),
    (Phase::Mtu, "MTU games", &[Kind::MtuEchoes, Kind::MtuProbes, Kind::PathInfos]),
    (Phase::Spoofed, "spoofed sources", &[Kind::Spoofed, Kind::Syns, Kind::BadPackets]),
    (Phase::Handshakes, "handshakes with cookies", &[]),
    (Phase::Mix, "all kinds mixed", Kind::ALL),
];
const JUMPS: &[Kind] = {
    use Kind::{Backward, FarJumps, FarMarks, Jumps, Scattered, WaitingJumps};
    &[Jumps, WaitingJumps, FarJumps, Backward, FarMarks, Scattered]
};
const ACKS: &[Kind] = &[Kind::Acks, Kind::AckRanges, Kind::FalseAcks];

impl Phase {
    /// All but the quiet one.
    pub(super) fn noisy() -> impl Iterator<Item = Self> {
        PHASES.iter().map(|(phase, ..)| *phase).skip(1)
    }

    pub(super) const fn name(self) -> &'static str {
        PHASES[self as usize].1
    }

    const fn kinds(self) -> &'static [Kind] {
        PHASES[self as usize].2
    }
}

/// Addresses of the attacker besides its first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sources {
    pub(super) first: Ipv4Addr,
    /// The number of addresses, which follow the first.
    pub(super) count: u8,
}

impl Sources {
    pub(super) fn address(self, number: u8) -> Ipv4Addr {
        let [a, b, c, d] = self.first.octets();
        Ipv4Addr::new(a, b, c, d + number)
    }
}

#[derive(Debug, Default)]
struct Shared {
    phase: AtomicU8,
    sent: AtomicU64,
    joined: AtomicBool,
}

/// A running attacker.
#[derive(Debug)]
pub(super) struct Attacker {
    shared: Arc<Shared>,
    worker: Worker<Result<Duration>>,
}

/// The attacker's key.
pub(super) fn key() -> PrivateKey {
    PrivateKey::from_bytes([77; 32])
}

impl Attacker {
    /// Starts it in its namespace, in the quiet phase.
    pub(super) fn start(
        netns: &NetNs,
        victim: PublicKey,
        addresses: Addresses,
        sources: Sources,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let open = || -> Result<(UdpSocket, Vec<PlainSocket>)> {
            let to = BindTo { address: Some(sources.address(0).into()), ..BindTo::default() };
            let others = (1..=sources.count).map(|number| {
                let socket = PlainSocket::bind((sources.address(number), 0))?;
                socket.set_nonblocking(true)?;
                Ok(socket)
            });
            Ok((UdpSocket::bind(&to)?, others.collect::<std::io::Result<_>>()?))
        };
        let (socket, others) = netns.run_in(open)?.context("cannot open the attacker's sockets")?;
        let peer = |seed: u8| HostilePeer::new(Identity::new(key()), victim, [seed; 32]);
        let strangers = others.into_iter().zip(1..).map(|(socket, seed)| Stranger {
            socket,
            peer: peer(seed),
            message: Vec::new(),
            made_at: None,
        });
        let hostile = Hostile {
            socket,
            strangers: strangers.collect(),
            peer: peer(0),
            content: Content::new(addresses, BYTES_MAX),
            prng: Prng::new(2),
            begun: Instant::now(),
            joined: false,
            tried_at: None,
            shared: Arc::clone(&shared),
        };
        let worker = Worker::start("attacker", move |goes_on| hostile.run(goes_on))?;
        Ok(Self { shared, worker })
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        self.shared.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Whether it has a path.
    pub(super) fn has_joined(&self) -> bool {
        self.shared.joined.load(Ordering::Relaxed)
    }

    /// Datagrams sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Ends it; returns its processor time.
    pub(super) fn stop(self) -> Result<Duration> {
        self.worker.stop()
    }
}

/// One of the sources of handshakes.
struct Stranger {
    socket: PlainSocket,
    peer: HostilePeer,
    message: Vec<u8>,
    made_at: Option<Instant>,
}

impl Stranger {
    fn send(&mut self) {
        if self.made_at.is_none_or(|at| at.elapsed() >= FRESH_INITIATION) {
            self.message = self.peer.initiate(realtime_since_epoch());
            self.made_at = Some(Instant::now());
        }
        // A full queue loses datagrams as the gateway's socket does.
        let _lost = self.socket.send_to(&self.message, endpoint_v4());
    }

    fn listen(&mut self) {
        let mut buffer = [0; 2048];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            if let Heard::Cookie(message) = self.peer.hear(&buffer[..length]) {
                self.message = message;
            }
        }
    }
}

struct Hostile {
    socket: UdpSocket,
    strangers: Vec<Stranger>,
    peer: HostilePeer,
    content: Content,
    prng: Prng,
    begun: Instant,
    joined: bool,
    tried_at: Option<Instant>,
    shared: Arc<Shared>,
}

impl Hostile {
    fn run(mut self, goes_on: &dyn Fn() -> bool) -> Result<Duration> {
        let (mut phase, mut since, mut sent) = (Phase::Quiet, Instant::now(), 0);
        while goes_on() {
            let (asked, ..) = PHASES[usize::from(self.shared.phase.load(Ordering::Relaxed))];
            if asked != phase {
                (phase, since, sent) = (asked, Instant::now(), 0);
                self.content.forget_heard();
                // A path's MTU is found when the path is new.
                self.joined &= phase != Phase::Mtu;
            }
            self.listen(phase);
            if !self.joined && self.tried_at.is_none_or(|at| at.elapsed() >= REJOIN) {
                self.join();
            }
            let rate = if phase == Phase::Quiet { 0 } else { PER_SECOND };
            let due = u128::from(rate) * since.elapsed().as_micros() / 1_000_000;
            let due = u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(sent).min(BURST_MAX);
            self.send_burst(phase, sent, due);
            sent += due;
            self.shared.sent.fetch_add(due, Ordering::Relaxed);
            self.shared.joined.store(self.joined, Ordering::Relaxed);
            std::thread::sleep(TICK);
        }
        process::cpu_time("thread-self")
    }

    fn now(&self) -> CoreInstant {
        CoreInstant::from_nanos(self.begun.elapsed().as_nanos() as u64)
    }

    fn join(&mut self) {
        self.tried_at = Some(Instant::now());
        self.peer.forget_bond();
        self.content.begin_bond();
        let initiation = self.peer.initiate(realtime_since_epoch());
        self.transmit(0, &initiation, None);
    }

    fn send_burst(&mut self, phase: Phase, sent: u64, count: u64) {
        if phase == Phase::Handshakes {
            let strangers = self.strangers.len();
            for number in sent..sent + count {
                self.strangers[number as usize % strangers].send();
            }
            return;
        }
        let kinds = phase.kinds();
        let mut run = Run::default();
        for number in sent..sent + count {
            let kind = kinds[number as usize % kinds.len()];
            let (now, wall_clock) = (self.now(), realtime_since_epoch());
            let (content, peer, prng) = (&mut self.content, &mut self.peer, &mut self.prng);
            let made = match phase {
                Phase::Ordinary => content.ordinary(peer, now, ORDINARY_BYTES).map(Made::plain),
                _ => content.make(kind, peer, now, wall_clock, &mut |max| prng.up_to(max)),
            };
            let Some(made) = made else { continue };
            if !run.takes(&made) {
                self.send_run(&run);
                run = Run::default();
            }
            run.add(&made);
        }
        self.send_run(&run);
    }

    fn send_run(&mut self, run: &Run) {
        if !run.bytes.is_empty() {
            self.transmit(run.ecn, &run.bytes, Some(run.segment));
        }
    }

    fn transmit(&mut self, ecn: u8, contents: &[u8], segment_size: Option<usize>) {
        let destination = endpoint_v4();
        let transmit = Transmit { destination, source: None, ecn, contents, segment_size };
        // A full queue loses datagrams as the gateway's socket does.
        let _lost = self.socket.send(&transmit);
    }

    fn listen(&mut self, phase: Phase) {
        self.strangers.iter_mut().for_each(Stranger::listen);
        let mut datagrams = Vec::new();
        let mut take = |meta: plait_net::udp::ReceivedMeta, bytes: &mut [u8]| {
            datagrams.extend(bytes.chunks(meta.stride).map(<[u8]>::to_vec));
        };
        while self.socket.recv(&mut take).is_ok_and(|buffers| buffers > 0) {}
        let padding_max = if phase == Phase::Mtu { TINY_PADDING } else { u16::MAX };
        for datagram in datagrams {
            let heard = self.peer.hear(&datagram);
            self.content.note(&heard);
            match heard {
                Heard::Session => self.say(&[Frame::PathChallenge(1)]),
                Heard::Response(message) | Heard::Cookie(message) => {
                    self.transmit(0, &message, None);
                }
                Heard::Control(_, frames) => {
                    self.joined |= frames.contains(&Frame::PathResponse(1));
                    self.joined &= !frames.contains(&Frame::Close);
                    let replies = replies_to(&frames, padding_max);
                    if !replies.is_empty() {
                        self.say(&replies);
                    }
                }
                Heard::Data(..) | Heard::Nothing => {}
            }
        }
    }

    fn say(&mut self, frames: &[Frame]) {
        let now = self.now();
        if let Some(bytes) = self.content.say(&mut self.peer, now, frames) {
            self.transmit(0, &bytes, None);
        }
    }
}

/// Datagrams of one length and one ECN mark, sent in one call.
#[derive(Debug, Default)]
struct Run {
    bytes: Vec<u8>,
    segment: usize,
    ecn: u8,
}

impl Run {
    const BYTES_MAX: usize = 60_000;

    fn takes(&self, made: &Made) -> bool {
        self.bytes.is_empty()
            || (made.bytes.len() == self.segment
                && made.ecn.bits() == self.ecn
                && self.bytes.len() + self.segment <= Self::BYTES_MAX)
    }

    fn add(&mut self, made: &Made) {
        (self.segment, self.ecn) = (made.bytes.len(), made.ecn.bits());
        self.bytes.extend_from_slice(&made.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_own_row() {
        assert_eq!(PHASES.len(), Phase::Mix as usize + 1);
        assert!((0..).zip(PHASES).all(|(at, (phase, ..))| phase as usize == at));
    }
}
