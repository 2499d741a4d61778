//! One established association of two gateways: the two halves and the control of the paths.
//!
//! # Contract
//!
//! `handle_*(now, …)` takes input; `poll_transmit`, `poll_deliver`, `poll_event` and `poll_timeout`
//! give output and must be drained after every input, or once per batch of inputs. `now` never goes
//! backwards.

mod call;
mod links;
mod loss;
mod loss_check;
mod notices;
mod path_control;
mod path_ids;
mod path_mtu;
mod pins;
mod probes;
mod reconfigure;
mod route_check;
mod silence;
mod sleep;
mod status;

use core::net::SocketAddr;
use std::collections::VecDeque;

use notices::Notices;
use path_control::{Due, PathControl, Situation};
use path_ids::PathIds;
use path_mtu::InnerMtu;
use route_check::RouteChecks;

use crate::allowed_ips::Prefixes;
use crate::config::{BondConfig, LossDetection};
use crate::drop_reason::DropReason;
use crate::egress::{Egress, Opened, ReceiveSession};
use crate::feedback::Feedback;
use crate::ingress::{Ingress, SendSession};
use crate::output::Transmit;
use crate::path::Route;
use crate::path::map::PathMap;
use crate::rng::Rng;
use crate::seq::PathId;
use crate::session::{Cipher, Established};
use crate::stats::PathState;
use crate::time::{Duration, Instant, earlier};
use crate::wire::control::{Frame, PathInfo};
use crate::wire::ecn::Ecn;
use crate::wire::handshake::SessionIndex;
use crate::wire::ip::Inner;
use crate::wire::sealed::Header;

/// A path that has carried no data for this long tells the peer how far the bond is.
pub(crate) const MARK_DELAY: Duration = Duration::from_millis(10);
/// For so long after the last data the bond counts as carrying traffic.
const ACTIVE_TIME: Duration = Duration::from_secs(2);
/// So many packets within a second are more than a trickle: sleeping paths are woken for them.
const WAKING_PACKETS: u32 = 32;
/// While nothing at all comes from the peer, the owner is told so again after this.
const ALL_SILENT_AGAIN: Duration = Duration::from_secs(2);
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
    /// The peer uses the newest session: it holds the keys.
    SessionConfirmed,
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
}

/// What a bond is made of.
#[derive(Debug)]
pub struct BondSetup {
    /// How it behaves.
    pub config: BondConfig,
    /// The peer's inner prefixes.
    pub allowed: Prefixes,
    /// Keepalive interval of idle paths.
    pub keepalive: Duration,
    /// Which path ids this side gives out.
    pub parity: PathIdParity,
    /// Randomness of its own.
    pub rng: Rng,
}

/// One established association.
#[derive(Debug)]
pub struct Bond {
    ingress: Ingress,
    egress: Egress,
    paths: PathMap<PathControl>,
    /// The newest session while the peer has not used it yet.
    unconfirmed: Option<(SessionIndex, SendSession)>,
    /// The session under which this side sends.
    session: SessionIndex,
    cipher: Cipher,
    keepalive: Duration,
    scheduler: &'static str,
    parity: PathIdParity,
    ids: PathIds,
    route_checks: RouteChecks,
    notices: Notices,
    last_data_at: Instant,
    /// No path's control has anything due before this. It may be too early: every packet of data
    /// puts timers off, and few of them ever come. `None` when it is to be found anew.
    control_due: Option<Instant>,
    /// When the owner was last told that all paths are silent, since one of them was up.
    all_silent_told_at: Option<Instant>,
    any_asleep: bool,
    /// Packets since the second began that decides whether sleeping paths are woken.
    trickle: (Instant, u32),
    /// Lossy paths are left out. Off where loss reports are to steer the scheduler (002).
    leaves_out_lossy: bool,
    inner_mtu: InnerMtu,
    rng: Rng,
    events: VecDeque<BondEvent>,
}

fn split(now: Instant, established: Established) -> (SendSession, ReceiveSession) {
    let Established { send, receive, cipher, local, remote, .. } = established;
    (SendSession { remote, cipher, secret: send }, ReceiveSession::new(now, local, cipher, receive))
}

impl Bond {
    /// A bond without paths under its first session.
    pub fn new(now: Instant, mut setup: BondSetup, established: Established) -> Self {
        let (session, cipher, peer) = (established.local, established.cipher, established.peer);
        let inner_mtu = path_mtu::agreed(setup.config.inner_mtu, established.peer.inner_mtu);
        let (send, receive) = split(now, established);
        let mut egress = Egress::new(&setup.config, setup.allowed);
        egress.add_session(receive);
        egress.set_mss_limit(inner_mtu);
        egress.set_peer_repairs(peer.repairs);
        Self {
            ingress: Ingress::new(&setup.config, inner_mtu, setup.rng.u64(), send),
            egress,
            paths: PathMap::default(),
            unconfirmed: None,
            session,
            cipher,
            keepalive: setup.keepalive,
            scheduler: setup.config.scheduler.algorithm.name(),
            parity: setup.parity,
            ids: PathIds::new(setup.parity),
            route_checks: RouteChecks::default(),
            notices: Notices::default(),
            last_data_at: now,
            control_due: None,
            all_silent_told_at: None,
            any_asleep: false,
            trickle: (now, 0),
            leaves_out_lossy: setup.config.loss_detection == LossDetection::Known,
            inner_mtu: InnerMtu::new(inner_mtu),
            rng: setup.rng,
            events: VecDeque::new(),
        }
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

    fn ids_awake(&self) -> Vec<PathId> {
        let awake = self.ingress.paths().filter(|path| path.state != PathState::Asleep);
        awake.map(|path| path.id).collect()
    }

    fn use_session(&mut self, local: SessionIndex, cipher: Cipher, send: SendSession) {
        self.ids.enter_epoch(self.paths.ids());
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
        if self.paths.len() >= PATHS_MAX {
            return;
        }
        let Some(id) = self.ids.allocate() else { return };
        self.notices.forget(id);
        self.ingress.add_path(id, route, link.clone());
        let control = PathControl::new(now, Some(link.clone()), self.rng.u64());
        let frames = [Frame::PathChallenge(control.token()), Frame::PathInfo(link)];
        self.paths.insert(id, control);
        self.control_due = None;
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
        // A mark is due so long after data; all else that data makes due comes later.
        self.control_due = self.control_due.map(|due| due.min(now + MARK_DELAY));
        self.ingress.handle_packet(now, inner, packet)
    }

    /// Takes a sealed datagram.
    ///
    /// # Errors
    /// Why it was dropped; it had no effect then.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        header: Header,
        route: Route,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let ip_bytes = route.ip_bytes(datagram.len());
        let opened = self.egress.handle_datagram(now, header, ip_bytes, ecn, datagram)?;
        self.confirm(header.session);
        self.ingress.heard(now, header.path);
        self.check_route(now, &header, route);
        match opened {
            Opened::Data => {
                self.note_data(now);
                if self.state(header.path) == Some(PathState::Asleep) {
                    self.wake(now, header.path);
                }
            }
            Opened::Control(frames) => {
                self.control_due = None;
                self.handle_control(now, &header, route, frames)?;
                self.mind_mtu(now);
                self.control_due = self.find_control_due(now);
            }
        }
        Ok(())
    }

    fn note_data(&mut self, now: Instant) {
        if now >= self.last_data_at + ACTIVE_TIME {
            // Probes come sooner from now on.
            self.control_due = None;
            for control in self.paths.values_mut() {
                control.silence.hurry();
            }
        }
        self.last_data_at = now;
    }

    /// The peer used a session: it holds the keys.
    fn confirm(&mut self, session: SessionIndex) {
        if let Some((local, send)) = self.unconfirmed.take_if(|(local, _)| *local == session) {
            let cipher = send.cipher;
            self.use_session(local, cipher, send);
            self.events.push_back(BondEvent::SessionConfirmed);
        }
    }

    /// An echo came over a path: it carries datagrams both ways. An acknowledgement, which may come
    /// over another path, does not end a silence.
    fn path_answered(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.ingress.path_mut(id) {
            path.mtu.on_heard();
        }
        let silent = self.state(id) == Some(PathState::Silent);
        let Some(control) = self.paths.get_mut(id) else { return };
        if silent && control.validated {
            if control.silence.answered(now) {
                self.set_state(now, id, PathState::Up);
            }
            self.control_due = None;
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
        if let Some(control) = self.paths.get_mut(id) {
            control.check_again(now, token);
            self.set_state(now, id, PathState::Validating);
            self.ingress.send_control(now, id, &[Frame::PathChallenge(token)]);
        }
    }

    fn state(&self, id: PathId) -> Option<PathState> {
        self.ingress.path(id).map(|path| path.state)
    }

    fn set_state(&mut self, now: Instant, id: PathId, state: PathState) {
        self.control_due = None;
        self.ingress.set_state(now, id, state);
        // A lossy path may well bring what the peer sends.
        self.egress.set_live(now, id, matches!(state, PathState::Up | PathState::Lossy));
        let is_repaired = self.ingress.path(id).is_some_and(|path| path.congestion.is_some());
        let Some(control) = self.paths.get_mut(id) else { return };
        match state {
            PathState::Up => {
                self.all_silent_told_at = None;
                control.loss.forget();
                self.events.push_back(BondEvent::PathUp(id));
            }
            PathState::Silent => {
                control.silence.begin(now, is_repaired);
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

    /// The peer found a path dead; what it finds counts here as well. A sleeping one it wanted to
    /// wake: a NAT in between may have forgotten the path, and only what this side sends opens it.
    fn handle_path_dead(&mut self, now: Instant, id: PathId) {
        match self.state(id) {
            Some(PathState::Up | PathState::Lossy) => self.set_state(now, id, PathState::Silent),
            Some(PathState::Asleep) => self.wake(now, id),
            _ => {}
        }
    }

    fn handle_control(
        &mut self,
        now: Instant,
        header: &Header,
        route: Route,
        frames: Vec<Frame>,
    ) -> Result<(), DropReason> {
        let id = header.path;
        let mut replies = Vec::new();
        if !self.paths.contains(id) {
            replies.push(self.join(now, header, route)?);
        }
        let mut reports = Vec::new();
        for frame in frames {
            match frame {
                Frame::PathChallenge(token) => {
                    replies.push(Frame::PathResponse(token));
                    // Once it has the answer the peer may send data at any moment.
                    self.egress.set_live(now, id, true);
                    if self.state(id) == Some(PathState::Asleep) {
                        self.wake(now, id);
                    }
                }
                Frame::PathResponse(token) => self.handle_response(now, id, route, token),
                Frame::PathInfo(info) => self.learn_link(id, info),
                Frame::Probe(probe) => {
                    replies.push(Frame::ProbeEcho(probe));
                    self.egress.set_live(now, id, true);
                }
                Frame::ProbeEcho(probe) => {
                    let rtt = self.paths.get_mut(id).and_then(|path| path.echo(now, probe));
                    self.handle_echo(now, id, rtt);
                }
                Frame::PathDead(dead) => self.handle_path_dead(now, dead),
                Frame::Ack(ack) => self.handle_ack(now, ack),
                Frame::LossReport(report) => reports.push(report),
                Frame::Close => self.events.push_back(BondEvent::Closed),
                Frame::PathClose(closed) => self.handle_path_close(now, closed),
                Frame::MtuProbe { id: probe, .. } => replies.push(Frame::MtuEcho(probe)),
                Frame::MtuEcho(probe) => self.handle_mtu_echo(now, id, probe),
            }
        }
        if !reports.is_empty() {
            self.ingress.handle_feedback(now, Feedback::LossReports(reports));
        }
        if !replies.is_empty() {
            self.ingress.send_control(now, id, &replies);
        }
        Ok(())
    }

    /// The peer opened a path: it is asked to answer from where it sent.
    fn join(&mut self, now: Instant, header: &Header, route: Route) -> Result<Frame, DropReason> {
        let id = header.path;
        if !self.ids.may_join(id, header.session == self.session) {
            self.refuse_closed_path(now, id);
            return Err(DropReason::ClosedPath);
        }
        if self.paths.len() >= PATHS_MAX && !self.make_room(now) {
            return Err(DropReason::TooManyPaths);
        }
        if let Some(own) = self.path_over(&route).filter(|own| self.is_own(*own)) {
            // Both sides opened a path over the same link: the side of the even ids keeps its own.
            if self.parity == PathIdParity::Even {
                return Err(DropReason::RepeatedPath);
            }
            self.remove_path(now, own);
        }
        let control = PathControl::new(now, None, self.rng.u64());
        let challenge = Frame::PathChallenge(control.token());
        self.ids.note(id);
        self.notices.forget(id);
        self.paths.insert(id, control);
        self.ingress.add_path(id, route, PathInfo::default());
        Ok(challenge)
    }

    fn is_own(&self, id: PathId) -> bool {
        self.paths.get(id).is_some_and(|path| path.own_link.is_some())
    }

    fn handle_response(&mut self, now: Instant, id: PathId, route: Route, token: u64) {
        if self.confirm_route(id, token, &route) {
            return;
        }
        let rtt = self.paths.get_mut(id).and_then(|path| path.validate(now, token));
        if rtt.is_some() {
            self.take_rtt(now, id, rtt);
            self.settle(id);
            self.set_state(now, id, PathState::Up);
        }
    }

    /// The owner of a link describes it; nobody else may.
    fn learn_link(&mut self, id: PathId, info: PathInfo) {
        if !self.is_own(id)
            && let Some(path) = self.ingress.path_mut(id)
        {
            path.info = info;
        }
    }

    fn handle_ack(&mut self, now: Instant, ack: crate::wire::control::Ack) {
        let id = PathId((ack.index & 0xff) as u8);
        let outcome = self.ingress.handle_feedback(now, Feedback::Ack(ack));
        let Some(path) = self.ingress.path_mut(id) else { return };
        if outcome.is_news {
            path.answered(now);
        }
        if let Some(srtt) = path.rtt.smoothed() {
            self.egress.set_rtt(id, srtt);
        }
        let Some(control) = self.paths.get_mut(id) else { return };
        control.loss.record(now, &path.rtt, &outcome);
        path.loss_permille = (control.loss.ratio() * 1000.0) as u16;
        let is_lossy = control.loss.is_lossy(path.congestion.is_some());
        if is_lossy && path.state == PathState::Up && self.leaves_out_lossy && self.others_up(id) {
            self.set_state(now, id, PathState::Lossy);
        }
    }

    fn handle_echo(&mut self, now: Instant, id: PathId, rtt: Option<Duration>) {
        if rtt.is_none() {
            return;
        }
        self.take_rtt(now, id, rtt);
        self.settle(id);
        if let Some(control) = self.paths.get_mut(id) {
            control.loss_check.answered();
        }
        self.path_answered(now, id);
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
            if let Some(srtt) = path.rtt.smoothed() {
                self.egress.set_rtt(id, srtt);
            }
        }
    }

    fn probe(&mut self, now: Instant, id: PathId) {
        if let Some(control) = self.paths.get_mut(id) {
            let probe = control.start_probe(now);
            self.control_due = None;
            self.ingress.send_control(now, id, &[Frame::Probe(probe)]);
        }
    }

    fn situation(&self, now: Instant, id: PathId) -> Situation {
        Situation {
            active: now < self.last_data_at + ACTIVE_TIME,
            last_data_at: self.last_data_at,
            keepalive: self.keepalive,
            others_up: self.others_up(id),
        }
    }

    /// When [`Self::handle_timeout`] is due. A time to come may be too early: asked then, the
    /// answer is a later one.
    pub fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        debug_assert!(
            self.control_due
                .zip(self.find_control_due(now))
                .is_none_or(|(known, found)| known <= found),
            "whatever brings a path's timer forward brings the bond's forward"
        );
        let control = match self.control_due {
            Some(due) if due > now => Some(due),
            _ => self.find_control_due(now),
        };
        let egress = earlier(self.egress.poll_timeout(), self.egress.poll_feedback_timeout());
        let ingress = self.ingress.poll_timeout();
        earlier(earlier(egress, control), earlier(ingress, self.notices_due()))
    }

    /// When the first of the paths has something due.
    fn find_control_due(&self, now: Instant) -> Option<Instant> {
        // Both maps have the same paths.
        let paths = self.paths.iter().zip(self.ingress.paths());
        let dues = paths.filter_map(|((id, control), path)| {
            debug_assert_eq!(id, path.id, "a path is added to and removed from both maps at once");
            control.poll_timeout(path, &self.situation(now, id))
        });
        earlier(dues.min(), self.mtu_due(now))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.egress.handle_timeout(now);
        self.send_feedback(now);
        self.send_notices(now);
        let ids: Vec<PathId> = self.paths.ids().collect();
        for id in ids {
            while let Some(due) = self.path_due(now, id) {
                self.act(now, id, due);
            }
        }
        self.mind_mtu(now);
        self.notice_silence(now);
        self.ingress.handle_timeout(now);
        self.control_due = self.find_control_due(now);
    }

    fn send_feedback(&mut self, now: Instant) {
        for (path, ack) in self.egress.take_acks(now) {
            if let Some(over) = self.feedback_path(path) {
                self.ingress.send_control(now, over, &[Frame::Ack(ack)]);
            }
        }
        if let Some(reports) = self.egress.take_loss_reports(now)
            && let Some(over) = self.fastest_path()
        {
            let frames: Vec<Frame> = reports.into_iter().map(Frame::LossReport).collect();
            self.ingress.send_control(now, over, &frames);
        }
    }

    /// The path itself when it is up, else any that is.
    fn feedback_path(&self, path: PathId) -> Option<PathId> {
        if self.state(path) == Some(PathState::Up) { Some(path) } else { self.fastest_path() }
    }

    fn fastest_path(&self) -> Option<PathId> {
        self.ingress
            .paths()
            .filter(|path| path.state == PathState::Up)
            .min_by_key(|path| (path.rtt.smoothed().unwrap_or(Duration::MAX), path.id))
            .map(|path| path.id)
    }

    fn path_due(&mut self, now: Instant, id: PathId) -> Option<Due> {
        let situation = self.situation(now, id);
        let path = self.ingress.path(id)?;
        let rng = &mut self.rng;
        self.paths.get_mut(id)?.due(now, path, &situation, || rng.u64())
    }

    fn act(&mut self, now: Instant, id: PathId, due: Due) {
        match due {
            Due::Challenge(token) => {
                let link = self.paths.get(id).and_then(|path| path.own_link.clone());
                let mut frames = vec![Frame::PathChallenge(token)];
                frames.extend(link.map(Frame::PathInfo));
                self.ingress.send_control(now, id, &frames);
                let metered = self.ingress.path(id).is_some_and(|path| path.info.metered);
                if metered && self.paths.get(id).is_some_and(PathControl::is_ignored) {
                    self.tell_dead(now, id);
                }
            }
            Due::Probe(probe) => self.ingress.send_control(now, id, &[Frame::Probe(probe)]),
            Due::Mark => self.ingress.send_control(now, id, &[]),
            Due::Silence => self.declare_silent(now, id),
            Due::Healed => self.set_state(now, id, PathState::Up),
            Due::Sleep => self.set_state(now, id, PathState::Asleep),
        }
    }

    /// The peer may be gone for good after a handshake that brought no path up: what was told once
    /// is told again.
    fn notice_silence(&mut self, now: Instant) {
        let any_up = self.ingress.paths().any(|path| path.state == PathState::Up);
        let any_silent = self.ingress.paths().any(|path| path.state == PathState::Silent)
            || self.paths.values().any(PathControl::is_ignored);
        let heard_at = self.ingress.paths().map(|path| path.heard_at).max();
        let last = self.all_silent_told_at.map(|told_at| told_at.max(heard_at.unwrap_or(told_at)));
        if any_silent && !any_up && last.is_none_or(|last| now >= last + ALL_SILENT_AGAIN) {
            self.all_silent_told_at = Some(now);
            self.events.push_back(BondEvent::AllPathsSilent);
        }
    }

    /// Tells the peer over every path that this side leaves.
    pub fn close(&mut self, now: Instant) {
        let ids: Vec<PathId> = self.paths.ids().collect();
        for id in ids {
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

    /// Routes over which the peer was reached.
    pub fn routes(&self) -> impl Iterator<Item = Route> + '_ {
        self.ingress
            .paths()
            .filter(|path| path.state != PathState::Validating)
            .map(|path| path.route)
    }

    /// Most datagrams sealed under one key of the session in use.
    pub fn sealed_max(&self) -> u64 {
        self.ingress.paths().map(|path| path.sealed_in_epoch()).max().unwrap_or(0)
    }

    /// Packets dropped after they had been taken or opened, for one reason.
    pub fn drop_count(&self, reason: DropReason) -> u64 {
        self.egress.drops.get(reason) + self.ingress.drop_count(reason)
    }
}
