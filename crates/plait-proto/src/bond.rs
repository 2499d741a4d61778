//! One established association of two gateways: the two halves and the control of the paths.
//!
//! # Contract
//!
//! `handle_*(now, …)` takes input; `poll_transmit`, `poll_deliver`, `poll_event` and `poll_timeout`
//! give output and must be drained after every input, or once per batch of inputs. `now` never goes
//! backwards.

mod call;
mod frames;
mod links;
mod notices;
mod path_ids;
mod path_mtu;
mod pins;
mod receiving;
mod reconfigure;
#[cfg(feature = "simulation")]
mod shape;
mod sleep;
mod status;
#[cfg(test)]
mod tests;
mod timers;

use core::net::SocketAddr;
use std::collections::VecDeque;

pub(crate) use links::Answers;
use notices::{Notice, Notices};
use path_ids::PathIds;
use path_mtu::InnerMtu;
use receiving::Receiving;
#[cfg(feature = "simulation")]
pub use shape::{BondShape, PathShape};

use crate::allowed_ips::Sources;
use crate::config::{BondConfig, LossDetection};
use crate::drop_reason::{DropCounters, DropReason};
use crate::egress::{Egress, Opened, ReceiveSession};
use crate::faults::Faults;
use crate::ingress::{Ingress, SendSession};
use crate::output::Transmit;
use crate::path::Route;
use crate::path::control::PathControl;
use crate::rng::Rng;
use crate::seq::PathId;
use crate::session::{Cipher, Established};
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::wire::REVISION;
use crate::wire::control::{Discards, Frame, PathInfo, Release};
use crate::wire::ecn::Ecn;
use crate::wire::handshake::SessionIndex;
use crate::wire::ip::Inner;
use crate::wire::sealed::Header;

/// For so long after the last data the bond counts as carrying traffic.
const ACTIVE_TIME: Duration = Duration::from_secs(2);
/// So many packets within a second are more than a trickle: sleeping paths are woken for them.
const WAKING_PACKETS: u32 = 32;
/// Most paths of a bond.
pub const PATHS_MAX: usize = 32;

/// Which path ids this side gives out: the sides must not collide.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathIdParity {
    /// The side with the lower public key.
    Even,
    /// The side with the higher public key.
    Odd,
}

/// Something the owner of the bond should know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BondEvent {
    /// The peer uses the newest session, which was made then: it holds the keys.
    SessionConfirmed(Instant),
    /// Nothing is accepted under this session any more.
    SessionExpired(SessionIndex),
    /// No path brings anything back.
    AllPathsSilent,
    /// The peer left.
    Closed,
    /// A path can carry data.
    PathUp(PathId),
    /// A path went silent.
    PathSilent(PathId),
    /// A path loses too much and is left out.
    PathLossy(PathId),
    /// The peer removed a path.
    PathClosed(PathId),
    /// The peer is followed to another address.
    PathMoved(PathId, SocketAddr),
    /// The largest inner packet that the host should send has changed, in bytes.
    InnerMtu(u16),
    /// One of the two ends throws away nearly all that the other sends: the bond is of no use.
    Discarding,
}

/// What a bond is made of.
#[derive(Debug)]
pub struct BondSetup {
    /// How it behaves.
    pub config: BondConfig,
    /// Keepalive interval of idle paths.
    pub keepalive: Duration,
    /// Which path ids this side gives out.
    pub parity: PathIdParity,
    /// Randomness of its own.
    pub rng: Rng,
    /// Faults that the search puts back.
    pub faults: Faults,
}

/// One established association.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Bond {
    last_data_at: Instant,
    any_asleep: bool,
    inner_mtu: InnerMtu,
    egress: Receiving,
    notices: Notices,
    ingress: Ingress,
    /// The newest session while the peer has not used it yet.
    unconfirmed: Option<(SessionIndex, SendSession)>,
    /// The session under which this side sends.
    session: SessionIndex,
    cipher: Cipher,
    /// The revision of the protocol that both sides speak (spec V-2).
    revision: u8,
    /// What this side runs, if the peer is to know, and what the peer runs, once it said so.
    release: Option<Release>,
    peer_release: Option<Release>,
    keepalive: Duration,
    scheduler: &'static str,
    parity: PathIdParity,
    ids: PathIds,
    /// The peer throws away nearly all that arrives, and when it last said so.
    peer_discards: Option<(Instant, Discards)>,
    /// When the owner was last told that all paths are silent, since one of them was up.
    all_silent_told_at: Option<Instant>,
    /// Something came from the peer.
    was_heard: bool,
    /// Packets since the second began that decides whether sleeping paths are woken.
    trickle: (Instant, u32),
    /// Lossy paths are left out. Off where loss reports are to steer the scheduler (002).
    leaves_out_lossy: bool,
    rng: Rng,
    faults: Faults,
    events: VecDeque<BondEvent>,
}

fn split(now: Instant, established: Established) -> (SendSession, ReceiveSession) {
    let Established { send, receive, cipher, local, remote, .. } = established;
    let send = SendSession { remote, cipher, secret: send, made_at: now };
    (send, ReceiveSession::new(now, local, cipher, receive))
}

impl Bond {
    /// A bond without paths under its first session.
    pub fn new(now: Instant, mut setup: BondSetup, established: Established) -> Self {
        let (session, cipher, peer) = (established.local, established.cipher, established.peer);
        let inner_mtu = path_mtu::agreed(setup.config.inner_mtu, established.peer.inner_mtu);
        let (send, receive) = split(now, established);
        let mut egress = Egress::new(&setup.config);
        egress.add_session(receive);
        egress.set_mss_limit(inner_mtu);
        egress.set_peer_repairs(peer.repairs);
        let mut bond = Self {
            ingress: Ingress::new(&setup.config, inner_mtu, setup.rng.fork(), send),
            egress: Receiving::new(egress),
            unconfirmed: None,
            session,
            cipher,
            revision: 0,
            release: setup.config.release,
            peer_release: None,
            keepalive: setup.keepalive,
            scheduler: setup.config.scheduler.algorithm.name(),
            parity: setup.parity,
            ids: PathIds::new(setup.parity),
            notices: Notices::default(),
            last_data_at: now,
            peer_discards: None,
            all_silent_told_at: None,
            any_asleep: false,
            was_heard: false,
            trickle: (now, 0),
            leaves_out_lossy: setup.config.loss_detection == LossDetection::Known,
            inner_mtu: InnerMtu::new(inner_mtu),
            rng: setup.rng,
            faults: setup.faults,
            events: VecDeque::new(),
        };
        bond.agree(now, peer.revision);
        bond
    }

    /// Goes on under a new session. The side that initiated the handshake knows that the peer holds
    /// the keys and uses them at once; the other waits until the peer does. Gives back the session
    /// that is forgotten for it.
    pub fn renew(
        &mut self,
        now: Instant,
        established: Established,
        initiator: bool,
    ) -> Option<SessionIndex> {
        let (local, cipher) = (established.local, established.cipher);
        self.egress.set_peer_repairs(established.peer.repairs);
        self.agree(now, established.peer.revision);
        let (send, receive) = split(now, established);
        let forgotten = self.accept_session(receive, initiator);
        if initiator {
            self.use_session(local, cipher, send);
            let ids: Vec<PathId> = match self.idle_path(now) {
                Some(one) => vec![one],
                None => self.ids_awake(),
            };
            if self.is_asleep() {
                self.wake_all(now);
            }
            for id in ids {
                self.probe(now, id);
            }
        } else {
            self.unconfirmed = Some((local, send));
        }
        forgotten
    }

    /// The lower of both sides' revisions is in force (spec V-2). A peer that can read what this side
    /// runs is told, once more if it could not before.
    fn agree(&mut self, now: Instant, peer: u8) {
        let before = core::mem::replace(&mut self.revision, peer.min(REVISION));
        if before < Release::SINCE_REVISION
            && self.revision >= Release::SINCE_REVISION
            && self.release.is_some()
        {
            self.notices.add(now, Notice::Release);
        }
    }

    fn ids_awake(&self) -> Vec<PathId> {
        let awake = self.ingress.paths().filter(|path| path.state != PathState::Asleep);
        awake.map(|path| path.id).collect()
    }

    fn use_session(&mut self, local: SessionIndex, cipher: Cipher, send: SendSession) {
        self.ids.enter_epoch(self.ingress.path_ids().into_iter());
        self.ingress.enter_session(send);
        self.session = local;
        self.cipher = cipher;
        self.unconfirmed = None;
    }

    /// Opens a path over one of this side's links, unless there is one already. Nothing happens
    /// when the bond has too many.
    pub fn open_path(&mut self, now: Instant, route: Route, link: PathInfo) {
        if let Some(known) = self.path_over(&route) {
            return self.describe_called_path(now, known, link);
        }
        if self.ingress.path_count() >= PATHS_MAX {
            return;
        }
        let Some(id) = self.ids.allocate() else { return };
        self.notices.forget(id);
        let control = PathControl::new(now, Some(link.clone()), self.rng.u64());
        let frames = [Frame::PathChallenge(control.token()), Frame::PathInfo(link.clone())];
        self.ingress.add_path(id, route, link, control);
        self.ingress.send_control(now, id, &frames);
    }

    /// The path from a socket to an address.
    fn path_over(&self, route: &Route) -> Option<PathId> {
        let same = |known: &Route| known.socket == route.socket && known.remote == route.remote;
        self.ingress.paths().find(|path| same(&path.route)).map(|path| path.id)
    }

    /// Takes an inner packet from the host.
    ///
    /// # Errors
    /// Why it cannot be sent.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        inner: &Inner,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        self.note_data(now);
        if self.any_asleep {
            self.consider_waking(now);
        }
        self.ingress.data_may_leave(now);
        self.ingress.handle_packet(now, inner, packet)
    }

    /// Takes a sealed datagram. `sources` are the peer's inner addresses.
    ///
    /// # Errors
    /// Why it was dropped; it had no effect then.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        header: Header,
        route: Route,
        ecn: Ecn,
        sources: Sources<'_>,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let ip_bytes = route.ip_bytes(datagram.len());
        let opened = self.egress.handle_datagram(now, header, ip_bytes, ecn, sources, datagram)?;
        self.was_heard = true;
        self.confirm(header.session);
        self.ingress.heard(now, header.path);
        self.check_route(now, &header, route);
        match opened {
            Opened::Data => {
                self.note_data(now);
                if self.state(header.path) == Some(PathState::Asleep) {
                    self.wake(now, header.path);
                }
                self.tell_discards(now);
            }
            Opened::Control(frames) => {
                self.ingress.forget_control_due();
                self.handle_control(now, &header, route, frames)?;
                self.mind_mtu(now);
            }
        }
        Ok(())
    }

    /// Tells the peer, and the owner, when nearly all that arrives is thrown away (spec R-7).
    fn tell_discards(&mut self, now: Instant) {
        let Some(discards) = self.egress.tell_discards(now) else { return };
        let up = self.ingress.paths().filter(|path| path.state == PathState::Up);
        let ids: Vec<PathId> = up.map(|path| path.id).collect();
        for id in ids {
            self.ingress.send_control(now, id, &[Frame::Discards(discards)]);
        }
        self.events.push_back(BondEvent::Discarding);
    }

    fn note_data(&mut self, now: Instant) {
        if now >= self.last_data_at + ACTIVE_TIME {
            self.ingress.hurry_probes();
        }
        self.last_data_at = now;
    }

    /// The peer used a session: it holds the keys.
    fn confirm(&mut self, session: SessionIndex) {
        if let Some((local, send)) = self.unconfirmed.take_if(|(local, _)| *local == session) {
            let (cipher, made_at) = (send.cipher, send.made_at);
            self.use_session(local, cipher, send);
            self.events.push_back(BondEvent::SessionConfirmed(made_at));
        }
    }

    /// An echo came over a path: it carries datagrams both ways. An acknowledgement, which may come
    /// over another path, does not end a silence.
    fn path_answered(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.ingress.path_mut(id) {
            path.mtu.on_heard();
        }
        let silent = self.state(id) == Some(PathState::Silent);
        let Some(path) = self.ingress.path_for_control(id) else { return };
        let control = &mut path.control;
        if silent && control.validated && control.silence.answered(now) {
            self.set_state(now, id, PathState::Up);
        }
    }

    /// Sleeping paths are woken when nothing else can carry data, or when there is more of it than
    /// a trickle.
    fn consider_waking(&mut self, now: Instant) {
        let (since, packets) = self.trickle;
        self.trickle =
            if now.since(since) > ACTIVE_TIME / 2 { (now, 1) } else { (since, packets + 1) };
        if self.is_up() && self.trickle.1 < WAKING_PACKETS {
            return;
        }
        self.wake_all(now);
    }

    /// Checks a sleeping path again; it carries data when the check is passed.
    fn wake(&mut self, now: Instant, id: PathId) {
        let token = self.rng.u64();
        if let Some(path) = self.ingress.path_for_control(id) {
            path.control.check_again(now, token);
            self.set_state(now, id, PathState::Validating);
            self.ingress.send_control(now, id, &[Frame::PathChallenge(token)]);
        }
    }

    fn state(&self, id: PathId) -> Option<PathState> {
        self.ingress.path(id).map(|path| path.state)
    }

    fn set_state(&mut self, now: Instant, id: PathId, state: PathState) {
        self.ingress.set_state(now, id, state);
        // A lossy path may well bring what the peer sends.
        self.egress.set_live(now, id, matches!(state, PathState::Up | PathState::Lossy));
        let Some(path) = self.ingress.path_for_control(id) else { return };
        let is_repaired = path.congestion.is_some();
        let repaired = is_repaired.then(|| path.rtt.smoothed().unwrap_or_default());
        let control = &mut path.control;
        match state {
            PathState::Up => {
                self.all_silent_told_at = None;
                control.loss.forget();
                self.events.push_back(BondEvent::PathUp(id));
            }
            PathState::Silent => {
                control.silence.begin(now, repaired);
                self.events.push_back(BondEvent::PathSilent(id));
            }
            PathState::Lossy => {
                control.loss_check.begin(now);
                self.events.push_back(BondEvent::PathLossy(id));
            }
            PathState::Asleep => self.any_asleep = true,
            PathState::Validating => {}
        }
    }

    /// Nothing comes back over a path: the peer is told over another, and what was in flight is
    /// sent again.
    fn declare_silent(&mut self, now: Instant, id: PathId) {
        self.set_state(now, id, PathState::Silent);
        self.tell_dead(now, id);
    }

    fn tell_dead(&mut self, now: Instant, id: PathId) {
        if let Some(other) = self.fastest_path() {
            self.ingress.send_control(now, other, &[Frame::PathDead(id)]);
        }
    }

    fn settle(&mut self, id: PathId) {
        if let Some(path) = self.ingress.path_mut(id) {
            path.settle();
        }
    }

    /// Whether a path beside this one can carry data.
    fn others_up(&self, id: PathId) -> bool {
        self.ingress.paths().any(|path| path.id != id && path.state == PathState::Up)
    }

    fn take_rtt(&mut self, now: Instant, id: PathId, rtt: Option<Duration>) {
        if let (Some(rtt), Some(path)) = (rtt, self.ingress.path_mut(id)) {
            path.rtt.sample(now, rtt);
            self.egress.set_rtt(id, &path.rtt);
        }
    }

    fn probe(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.ingress.path_for_control(id) {
            let probe = path.control.start_probe(now);
            self.ingress.send_control(now, id, &[Frame::Probe(probe)]);
        }
    }

    /// Tells the peer over every path that this side leaves.
    pub fn close(&mut self, now: Instant) {
        for id in self.ingress.path_ids() {
            self.ingress.send_control(now, id, &[Frame::Close]);
        }
    }

    /// Whether [`Self::poll_transmit`] has something.
    pub fn has_transmit(&self) -> bool {
        self.ingress.has_transmit()
    }

    /// Whether [`Self::poll_deliver`] has something.
    pub fn has_delivery(&self) -> bool {
        self.egress.has_delivery()
    }

    /// The next send; valid until the next call.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        self.ingress.poll_transmit()
    }

    /// Takes the contents of the last send, with an empty buffer in exchange.
    pub fn take_contents(&mut self, spare: Vec<u8>) -> Vec<u8> {
        self.ingress.take_contents(spare)
    }

    /// The next packet for the host; valid until the next call.
    pub fn poll_deliver(&mut self) -> Option<&[u8]> {
        self.egress.poll_deliver()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<BondEvent> {
        self.events.pop_front()
    }

    /// Whether anything came from the peer.
    pub const fn was_heard(&self) -> bool {
        self.was_heard
    }

    /// Whether datagrams with this index belong here.
    pub fn has_session(&self, index: SessionIndex) -> bool {
        self.egress.has_session(index)
    }

    /// All sessions under which datagrams are accepted.
    pub fn session_indices(&self) -> impl Iterator<Item = SessionIndex> + '_ {
        self.egress.session_indices()
    }

    /// Whether a path can carry data.
    pub fn is_up(&self) -> bool {
        self.ingress.paths().any(|path| path.state == PathState::Up)
    }

    /// When the session was made under which this side sends.
    pub fn session_made_at(&self) -> Instant {
        self.ingress.session().made_at
    }

    /// Routes over which the peer was reached.
    pub fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        self.ingress
            .paths()
            .filter(|path| path.state != PathState::Validating)
            .map(|path| path.route)
    }

    /// Where a path leads.
    pub fn route_of(&self, id: PathId) -> Option<Route> {
        self.ingress.path(id).map(|path| path.route)
    }

    /// Most datagrams sealed under one key of the session in use.
    pub fn sealed_max(&self) -> u64 {
        self.ingress.paths().map(|path| path.sealed_in_epoch()).max().unwrap_or(0)
    }

    /// Places of packets that were looked at one after the other, since the start: what data that
    /// arrives and acknowledgements make this side do beyond a fixed amount.
    pub fn slots_walked(&self) -> u64 {
        let sent: u64 = self.ingress.paths().map(|path| path.sent.slots_walked()).sum();
        sent + self.egress.slots_walked()
    }

    /// Packets dropped after they had been taken or opened, for one reason.
    pub fn drop_count(&self, reason: DropReason) -> u64 {
        self.egress.drops.get(reason) + self.ingress.drop_count(reason)
    }

    /// Adds the packets dropped after they had been taken or opened.
    pub fn add_drops(&self, sum: &mut DropCounters) {
        for reason in DropReason::ALL {
            sum.count_many(*reason, self.drop_count(*reason) as usize);
        }
    }
}
