//! The ingress: takes inner packets from the host and sends them over paths.
//!
//! A packet's way out, stage by stage:
//! 1. classify: which flow, which lane (`flow`), which kind of flow (`fq_codel`);
//! 2. queue: in a closed loop, while no path has room (`closed_loop`, `backlog`);
//! 3. schedule: which path (`scheduler`), kept for a contiguous run;
//! 4. number: bond sequence number, predecessor, packet number — strictly in sequence;
//! 5. seal: into the path's open run — needs nothing but the key and the numbers;
//! 6. transmit: runs leave through `poll_transmit`.
//!
//! What was lost on a path, is overdue there, or was in flight when the path stopped answering
//! takes the way again from stage 3 (`rescue`).

mod backlog;
mod closed_loop;
mod feedback;
mod pinned_queues;
mod pins;
mod rescue;

use backlog::Backlog;
use closed_loop::ClosedLoop;
use pins::Pins;
pub use pins::{PIN_TIME, PINS_MAX, PinError};
use rescue::Rescue;
use zeroize::Zeroize as _;

use crate::config::BondConfig;
use crate::drop_reason::{DropCounters, DropReason};
use crate::flow::Lanes;
use crate::output::{Transmit, TransmitQueue};
use crate::path::kept::KeptPacket;
use crate::path::map::PathMap;
use crate::path::{Route, SendPath};
use crate::rng::Rng;
use crate::scheduler::{
    BulkLoad, Decision, FlowClass, PacketInfo, Part, PathSet, PathView, Scheduler, View,
};
use crate::seq::{BondSeq, PathId};
use crate::session::{Cipher, DirectionSecret};
use crate::stats::PathState;
use crate::time::{Duration, Instant};
use crate::wire::Kind;
use crate::wire::control::{Frame, PathInfo};
use crate::wire::ecn::Ecn;
use crate::wire::handshake::SessionIndex;
use crate::wire::ip::{Inner, room_needed};
use crate::wire::sealed::{
    ControlPrefix, DATA_OVERHEAD_BYTES, DataPrefix, HEADER_BYTES, Header, SendTimestamp, TAG_BYTES,
};

/// A run of packets stays on one path for at most this much of the path's rate, so that slow links
/// still see fine interleaving.
const RUN_TIME: Duration = Duration::from_millis(1);

/// A datagram counts as lost when it stays without an acknowledgement for this long, or three probe
/// timeouts if longer.
const UNACKNOWLEDGED_MIN: Duration = Duration::from_millis(250);

/// Bytes of packets kept per bond, in case they have to be sent again.
const KEPT_BYTES_MAX: u64 = 8 << 20;

/// The session under which the ingress seals.
#[derive(Debug)]
pub struct SendSession {
    /// The peer's name for it.
    pub remote: SessionIndex,
    /// AEAD.
    pub cipher: Cipher,
    /// Secret of this direction.
    pub secret: DirectionSecret,
    /// When both sides made it.
    pub made_at: Instant,
}

/// A contiguous run under way.
#[derive(Clone, Copy, Debug)]
struct RunInProgress {
    path: PathId,
    bytes_left: u64,
}

/// The last loss report of a path, to find what is new in the next.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    received: u64,
    net_lost: u64,
    sent_packets: u64,
}

/// The sending half of a bond.
#[derive(Debug)]
pub struct Ingress {
    scheduler: Box<dyn Scheduler>,
    lanes: Lanes,
    next_seq: BondSeq,
    session: SendSession,
    /// Nothing is sealed under a session that is older (spec K-6).
    reject_after: Duration,
    /// For which packet numbers are left out.
    rng: Rng,
    paths: PathMap<SendPath>,
    reported: PathMap<Reported>,
    run: Option<RunInProgress>,
    /// The scheduler's view, cheapest path first. It follows what sending a packet changes; after
    /// any other change it is stale, and made anew before the next decision.
    view: Vec<PathView>,
    view_is_stale: bool,
    /// Every path of the view carries inner packets of this many bytes.
    view_inner_max: usize,
    /// The largest inner packet that either host takes.
    inner_mtu: u16,
    queue: TransmitQueue,
    /// The frames of a control datagram, until they are sealed.
    control_body: Vec<u8>,
    rescue: Rescue,
    /// Controllers, queue and repair; `None` where the scheduler alone decides (002, 000).
    closed: Option<ClosedLoop>,
    pins: Pins,
    /// Packets that were dropped after they had been taken.
    pub drops: DropCounters,
    /// Inner packets and bytes taken from the host and sent.
    pub sent_packets: u64,
    /// Inner bytes taken from the host and sent.
    pub sent_bytes: u64,
}

impl Ingress {
    /// An ingress without paths; no inner packet is larger than `inner_mtu`.
    pub fn new(config: &BondConfig, inner_mtu: u16, mut rng: Rng, session: SendSession) -> Self {
        let lane_seed = rng.u64();
        Self {
            scheduler: config.scheduler.build(),
            lanes: Lanes::new(config.order, lane_seed),
            next_seq: BondSeq(0),
            session,
            reject_after: config.rekey.reject_after,
            rng,
            paths: PathMap::default(),
            reported: PathMap::default(),
            run: None,
            view: Vec::new(),
            view_is_stale: true,
            view_inner_max: 0,
            inner_mtu,
            queue: TransmitQueue::default(),
            control_body: Vec::new(),
            rescue: Rescue::default(),
            closed: config.congestion.map(|controller| ClosedLoop::new(controller, lane_seed)),
            pins: Pins::default(),
            drops: DropCounters::default(),
            sent_packets: 0,
            sent_bytes: 0,
        }
    }

    /// Goes on with another scheduler or order; sequence numbers go on.
    pub fn reconfigure(&mut self, old: &BondConfig, new: &BondConfig, lane_seed: u64) {
        self.reject_after = new.rekey.reject_after;
        if old.scheduler != new.scheduler {
            self.scheduler = new.scheduler.build();
            self.run = None;
        }
        if old.congestion != new.congestion {
            self.set_congestion(new.congestion, lane_seed);
        }
        if old.order != new.order {
            self.lanes = Lanes::new(new.order, lane_seed);
        }
    }

    /// Takes one inner packet on its whole way, or into the queue.
    ///
    /// # Errors
    /// Why the packet cannot be sent; nothing was numbered then.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        inner: &Inner,
        packet: &[u8],
    ) -> Result<(), DropReason> {
        if self.is_expired(now) {
            return Err(DropReason::ExpiredSession);
        }
        if let Some(path) = self.pinned(now, inner, room_needed(packet)) {
            self.handle_pinned(now, inner, packet, path);
            return Ok(());
        }
        let class = match &mut self.closed {
            None => FlowClass::default(),
            Some(closed) => {
                let class = closed.backlog.classify(now, inner, packet.len());
                if !closed.backlog.is_empty() || self.rescue.is_waiting() {
                    self.enqueue(now, inner, packet, class);
                    return Ok(());
                }
                class
            }
        };
        match self.schedule(now, packet, class)? {
            Chosen::Later(retry_at) => self.begin_backlog(now, inner, packet, class, retry_at),
            chosen => self.send(now, inner, packet, now, &chosen),
        }
        Ok(())
    }

    /// Numbers a packet and sends it over the chosen path or paths.
    fn send(&mut self, now: Instant, inner: &Inner, packet: &[u8], taken: Instant, over: &Chosen) {
        let seq = self.next_seq;
        let prefix = DataPrefix {
            seq: seq.truncate(),
            prev: match over {
                // A path keeps the order of its packets, and nothing is sent again.
                Chosen::Pinned(_) if self.closed.is_none() => 0,
                _ => self.lanes.predecessor_distance(inner, packet, seq),
            },
            sent: SendTimestamp::of(now),
        };
        self.next_seq = seq.next();
        match over {
            Chosen::One(path) => {
                self.seal_data(now, *path, prefix, packet);
                self.keep(*path, prefix, taken, packet);
            }
            Chosen::Pinned(path) => {
                self.seal_data(now, *path, prefix, packet);
                self.keep(*path, prefix, taken, packet);
                self.keep_pinned(*path);
            }
            Chosen::Copies(set) => {
                let quickest = quickest_of(&self.view, *set);
                for at in 0..self.view.len() {
                    let path = self.view[at].id;
                    if set.contains(path) {
                        self.seal_data(now, path, prefix, packet);
                        if Some(path) == quickest && self.closed.is_some() {
                            self.keep(path, prefix, taken, packet);
                        }
                    }
                }
            }
            Chosen::Later(_) => unreachable!("a packet that waits is not sent"),
        }
        self.sent_packets += 1;
        self.sent_bytes += packet.len() as u64;
        if let Some(closed) = &mut self.closed {
            closed.earn(packet.len() as u64);
        }
    }

    /// Packets dropped after they had been taken, for one reason.
    pub fn drop_count(&self, reason: DropReason) -> u64 {
        let queues = self.closed.as_ref().map_or(0, |closed| closed.drop_count(reason));
        let repairs = if reason == DropReason::TooOldToRepair { self.rescue.given_up() } else { 0 };
        self.drops.get(reason) + queues + repairs
    }

    /// Keeps what was sent just now, in case its path does not answer.
    fn keep(&mut self, path: PathId, prefix: DataPrefix, taken_at: Instant, packet: &[u8]) {
        if self.paths.len() < 2 && self.closed.is_none() {
            return;
        }
        let kept: u64 = self.paths.values().map(|path| path.sent.kept_bytes()).sum();
        let kept = kept + self.rescue.bytes();
        if kept + packet.len() as u64 <= KEPT_BYTES_MAX
            && let Some(path) = self.paths.get_mut(path)
        {
            path.sent.keep(prefix, taken_at, packet);
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.closed {
            Some(closed) => closed.poll_timeout(),
            None => self.rescue.poll_timeout(),
        }
    }

    /// Sends what could not be sent before: from the queue, or the next portion of what was in
    /// flight on paths that stopped answering.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.closed.is_some() {
            self.repair_overdue(now);
            self.drain(now);
            return;
        }
        if self.rescue.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        if !self.paths.values().any(|path| path.state == PathState::Up) {
            self.rescue.postpone(now);
            return;
        }
        self.refresh_view();
        self.rescue.begin_portion(now, &self.view);
        while let Some(packet) = self.rescue.next(now) {
            if let Ok(Chosen::One(path)) = self.schedule(now, &packet.bytes, FlowClass::Bulk) {
                self.send_again(now, path, &packet);
            }
        }
    }

    /// Sends a packet once more, under its old place in the sequence.
    fn send_again(&mut self, now: Instant, path: PathId, packet: &KeptPacket) {
        let prefix = self.seal_again(now, path, packet);
        self.keep(path, prefix, packet.taken_at, &packet.bytes);
        if let Some(path) = self.paths.get_mut(path) {
            path.sent.note_sends(packet.sends.saturating_add(1));
        }
    }

    /// The same, and not again after that.
    fn seal_again(&mut self, now: Instant, path: PathId, packet: &KeptPacket) -> DataPrefix {
        let prefix = DataPrefix { sent: SendTimestamp::of(now), ..packet.prefix };
        self.seal_data(now, path, prefix, &packet.bytes);
        prefix
    }

    fn schedule(
        &mut self,
        now: Instant,
        packet: &[u8],
        class: FlowClass,
    ) -> Result<Chosen, DropReason> {
        let bytes = (packet.len() + DATA_OVERHEAD_BYTES) as u64;
        let room = room_needed(packet);
        if let Some(path) = self.go_on_with_run(now, room, bytes) {
            return Ok(Chosen::One(path));
        }
        self.expire_unacknowledged(now);
        self.refresh_view();
        if self.view.is_empty() {
            return Err(DropReason::NoUsablePath);
        }
        let fitting;
        let paths = if room <= self.view_inner_max {
            &self.view
        } else {
            fitting = self.paths_for(room).ok_or(DropReason::TooBigForPath)?;
            &fitting
        };
        let backlog = self.closed.as_ref().map(|closed| &closed.backlog);
        let queued_bytes = backlog.map_or(0, Backlog::bytes);
        let load = backlog.map_or_else(BulkLoad::default, Backlog::bulk_load);
        let packet = PacketInfo { bytes, class, queued_bytes, load };
        let view = View { now, paths };
        let decision = match &self.closed {
            Some(_) if !self.scheduler.minds_windows() => {
                closed_loop::pick_with_room(self.scheduler.as_mut(), &view, &packet)
            }
            _ => self.scheduler.pick(&view, &packet),
        };
        match (decision, &mut self.closed) {
            (Decision::Send(path), _) => {
                self.begin_run(path, bytes);
                Ok(Chosen::One(path))
            }
            (Decision::Copies(set), Some(closed)) if self.scheduler.minds_windows() => {
                Ok(closed.allow_copies(set, quickest_of(&self.view, set), bytes))
            }
            (Decision::Copies(set), _) => Ok(Chosen::Copies(set)),
            (Decision::Wait { until }, Some(_)) => Ok(Chosen::Later(Some(until))),
            (Decision::Blocked, Some(_)) => Ok(Chosen::Later(closed_loop::room_at(&view, bytes))),
            // Without a queue there is nothing to wait in.
            (Decision::Wait { .. } | Decision::Blocked, None) => Err(DropReason::NoUsablePath),
        }
    }

    /// The path of the run in progress, if the packet may join it.
    fn go_on_with_run(&mut self, now: Instant, room: usize, bytes: u64) -> Option<PathId> {
        let run = self.run.as_mut()?;
        if run.bytes_left < bytes || room > self.view_inner_max {
            return None;
        }
        if self.closed.is_some() {
            let path = self.view.iter().find(|view| view.id == run.path)?;
            if self.view_is_stale || !path.has_room(now, bytes) {
                return None;
            }
        }
        run.bytes_left -= bytes;
        self.scheduler.on_run(&View { now, paths: &self.view }, run.path);
        Some(run.path)
    }

    /// What was lost last on a path must not count as in flight for ever.
    fn expire_unacknowledged(&mut self, now: Instant) {
        for path in self.paths.values_mut() {
            // Hardly ever is anything as old as that.
            if path.sent.oldest_at().is_some_and(|oldest| oldest + UNACKNOWLEDGED_MIN < now) {
                let patience = path.rtt.patience().max(UNACKNOWLEDGED_MIN);
                let lost_bytes = path.sent.expire(now.saturating_sub(patience));
                if let Some(congestion) = &mut path.congestion
                    && lost_bytes > 0
                {
                    congestion.on_timeout(now, lost_bytes, &path.sent);
                }
                self.rescue.add(now, path.sent.take_lost());
                path.mtu.on_large_loss(now, path.sent.large_lost());
                self.view_is_stale = true;
            }
        }
    }

    fn begin_run(&mut self, path: PathId, first_bytes: u64) {
        let rate = self.view.iter().find(|view| view.id == path).map(|view| view.delivery_rate);
        let bytes = rate.map_or(0, |rate| rate.bytes_in(RUN_TIME));
        self.run = Some(RunInProgress { path, bytes_left: bytes.saturating_sub(first_bytes) });
    }

    fn refresh_view(&mut self) {
        if self.view_is_stale {
            self.view = self.usable_paths();
            let paths = self.view.iter().filter_map(|view| self.paths.get(view.id));
            self.view_inner_max = paths.map(SendPath::inner_max).min().unwrap_or(0);
            self.view_is_stale = false;
            if let Some(closed) = &mut self.closed {
                closed.follow(&self.view);
            }
        }
        debug_assert_eq!(self.view, self.usable_paths(), "the view follows the paths");
    }

    /// Usable paths, cheapest first: those of the best standing there is.
    fn usable_paths(&self) -> Vec<PathView> {
        let best = self.paths.values().filter_map(standing).min();
        let usable = self.paths.values().filter(|path| best.is_some() && standing(path) == best);
        let mut view: Vec<PathView> = usable.map(SendPath::view).collect();
        view.sort_by_key(|view| (view.price, view.order, view.id));
        view
    }

    /// The paths of the view that carry inner packets of so many bytes, or may, as long as it was
    /// not tried.
    fn paths_for(&self, room: usize) -> Option<Vec<PathView>> {
        let that = |fits: &dyn Fn(&SendPath) -> bool| {
            let fits = |view: &&PathView| self.paths.get(view.id).is_some_and(fits);
            let paths: Vec<_> = self.view.iter().filter(fits).copied().collect();
            (!paths.is_empty()).then_some(paths)
        };
        that(&|path| room <= path.inner_max()).or_else(|| that(&|path| room <= path.inner_hoped()))
    }

    /// Whether the session is too old to send under (spec K-6).
    fn is_expired(&self, now: Instant) -> bool {
        now >= self.session.made_at + self.reject_after
    }

    /// Wipes the keys of a session that is too old, for a bond that stays without one (spec K-6a).
    pub fn forget_expired_keys(&mut self, now: Instant) {
        if self.is_expired(now) {
            self.session.secret.zeroize();
            for path in self.paths.values_mut() {
                path.forget_key(self.session.secret.path_key(self.session.cipher, path.id));
            }
        }
    }

    fn seal_data(&mut self, now: Instant, path: PathId, prefix: DataPrefix, packet: &[u8]) {
        if self.is_expired(now) {
            self.drops.count(DropReason::ExpiredSession);
            return;
        }
        let Some(path) = self.paths.get_mut(path) else { return };
        path.leave_out_numbers(&mut self.rng);
        let length = packet.len() + DATA_OVERHEAD_BYTES;
        let bytes = path.route.ip_bytes(length);
        let queue_is_empty =
            self.closed.as_ref().is_none_or(|closed| closed.waits_not_for(path.id));
        path.on_sent(now, bytes, queue_is_empty);
        if let Some(view) = self.view.iter_mut().find(|view| view.id == path.id) {
            view.in_flight_bytes = path.sent.in_flight_bytes();
            view.sent_packets = path.sent_packets;
            if let Some(congestion) = &path.congestion {
                view.ready_at = congestion.ready_at();
            }
        }
        let out = self.queue.append(path.id, path.route, Ecn::of(packet), length);
        seal(path, Kind::Data, out, &prefix.to_bytes(), packet);
    }

    /// Sends a control datagram over a path; without frames it is a mark.
    pub fn send_control(&mut self, now: Instant, path: PathId, frames: &[Frame]) {
        if self.is_expired(now) {
            self.drops.count(DropReason::ExpiredSession);
            return;
        }
        let Some(path) = self.paths.get_mut(path) else { return };
        path.leave_out_numbers(&mut self.rng);
        if frames.iter().any(|frame| matches!(frame, Frame::Probe(_))) {
            path.await_answer(now);
        }
        let prefix = ControlPrefix::new(now, self.next_seq).to_bytes();
        self.control_body.clear();
        for frame in frames {
            frame.write(&mut self.control_body);
        }
        let body = &self.control_body;
        let length = HEADER_BYTES + prefix.len() + body.len() + TAG_BYTES;
        path.sent.sent_unacknowledged();
        self.view_is_stale = true;
        path.control_packets += 1;
        path.sent_bytes += u64::from(path.route.ip_bytes(length));
        let out = if frames.iter().any(|frame| matches!(frame, Frame::MtuProbe { .. })) {
            self.queue.append_alone(path.id, path.route, length)
        } else {
            self.queue.append(path.id, path.route, Ecn::NotEct, length)
        };
        seal(path, Kind::Control, out, &prefix, body);
    }

    /// Sends a control datagram of a path over another route than the one in use.
    pub fn send_control_to(&mut self, now: Instant, id: PathId, route: Route, frames: &[Frame]) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let in_use = core::mem::replace(&mut path.route, route);
        self.send_control(now, id, frames);
        if let Some(path) = self.paths.get_mut(id) {
            path.route = in_use;
        }
    }

    /// Whether [`Self::poll_transmit`] has something.
    pub fn has_transmit(&self) -> bool {
        self.queue.has_more()
    }

    /// The next send; valid until the next call. Ends the run in progress: a batch is over.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        self.run = None;
        self.queue.poll()
    }

    /// Takes the contents of the last send, with an empty buffer in exchange.
    pub fn take_contents(&mut self, spare: Vec<u8>) -> Vec<u8> {
        self.queue.take_contents(spare)
    }

    /// Adds a path that is to be validated.
    pub fn add_path(&mut self, id: PathId, route: Route, info: PathInfo) {
        let key = self.session.secret.path_key(self.session.cipher, id);
        let mut path = SendPath::new(id, route, info, self.session.remote, key, self.inner_mtu);
        if let Some(closed) = &self.closed {
            path.close_loop(&closed.controller);
        }
        self.paths.insert(id, path);
        self.view_is_stale = true;
    }

    /// Removes a path. What was in flight on it is sent over another.
    pub fn remove_path(&mut self, now: Instant, id: PathId) {
        self.rescue_from(now, id);
        self.paths.remove(id);
        self.reported.remove(id);
        self.pins.forget_path(id);
        self.release_pinned(now, id);
        self.scheduler.on_path_gone(id);
        self.run = None;
        self.view_is_stale = true;
        self.drain(now);
    }

    /// Changes whether a path may carry data. What was in flight on one that may no longer is sent
    /// over another.
    pub fn set_state(&mut self, now: Instant, id: PathId, state: PathState) {
        if let Some(path) = self.paths.get_mut(id) {
            path.state = state;
            path.mtu.on_use(matches!(state, PathState::Up | PathState::Lossy));
        }
        if matches!(state, PathState::Silent | PathState::Lossy) {
            if let Some(congestion) =
                self.paths.get_mut(id).and_then(|path| path.congestion.as_mut())
            {
                congestion.on_silence(now);
            }
            self.rescue_from(now, id);
        }
        self.release_pinned(now, id);
        self.run = None;
        self.view_is_stale = true;
        self.drain(now);
    }

    /// A path leads elsewhere from now on. What was on its way to an address that was left is sent
    /// again: it is lost there, and would fill the window of a controller that begins anew.
    pub fn move_path(&mut self, now: Instant, id: PathId, route: Route) {
        if self.paths.get_mut(id).is_some_and(|path| path.move_to(route)) {
            self.rescue_from(now, id);
        }
        self.view_is_stale = true;
        self.drain(now);
    }

    fn rescue_from(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let packets = path.sent.forget_all();
        path.rescued_packets += packets.len() as u64;
        path.settle();
        self.rescue.add(now, packets);
    }

    /// Something authentic arrived on a path.
    pub fn heard(&mut self, now: Instant, id: PathId) {
        if let Some(path) = self.paths.get_mut(id) {
            path.heard_at = now;
        }
    }

    /// Goes on under a new session; every path keeps its id and gets a new key.
    pub fn enter_session(&mut self, session: SendSession) {
        for path in self.paths.values_mut() {
            path.enter_epoch(session.remote, session.secret.path_key(session.cipher, path.id));
        }
        self.session = session;
    }

    /// The session in use.
    pub const fn session(&self) -> &SendSession {
        &self.session
    }

    /// A path.
    pub fn path(&self, id: PathId) -> Option<&SendPath> {
        self.paths.get(id)
    }

    /// A path, to take samples.
    pub fn path_mut(&mut self, id: PathId) -> Option<&mut SendPath> {
        self.view_is_stale = true;
        self.paths.get_mut(id)
    }

    /// All paths, by id.
    pub fn paths(&self) -> impl Iterator<Item = &SendPath> {
        self.paths.values()
    }

    /// The sequence number of the next data packet.
    pub const fn next_seq(&self) -> BondSeq {
        self.next_seq
    }

    /// The scheduler's weights by path, where it has them.
    pub fn weights(&mut self, now: Instant) -> Vec<(PathId, u32)> {
        self.refresh_view();
        self.scheduler.weights(&View { now, paths: &self.view })
    }

    /// What the scheduler makes of a path that is up; the view is as fresh as that of
    /// [`Ingress::weights`].
    pub fn part(&self, now: Instant, path: PathId) -> Option<Part> {
        self.scheduler.part(&View { now, paths: &self.view }, path)
    }
}

/// The lower, the better a path is to be used; `None` when it is not to be used at all.
fn standing(path: &SendPath) -> Option<u8> {
    match path.state {
        PathState::Up if !path.info.standby => Some(0),
        PathState::Up => Some(1),
        PathState::Lossy => Some(2),
        // Better than none.
        PathState::Silent => Some(3),
        PathState::Validating | PathState::Asleep => None,
    }
}

#[derive(Debug)]
enum Chosen {
    One(PathId),
    /// The only path that its flow may take.
    Pinned(PathId),
    Copies(PathSet),
    /// No path has room before then, or before an acknowledgement comes.
    Later(Option<Instant>),
}

/// The member of `set` with the shortest round trip.
fn quickest_of(view: &[PathView], set: PathSet) -> Option<PathId> {
    let members = view.iter().filter(|path| set.contains(path.id));
    members.min_by_key(|path| path.srtt.unwrap_or(Duration::MAX)).map(|path| path.id)
}

/// Seals a datagram at the end of `out`; its plain text is `prefix`, then `body`.
fn seal<const PREFIX_BYTES: usize>(
    path: &mut SendPath,
    kind: Kind,
    out: &mut Vec<u8>,
    prefix: &[u8; PREFIX_BYTES],
    body: &[u8],
) {
    let id = path.id;
    let (session, number, key) = path.take_number();
    let header = Header { kind, session, path: id, number: number.truncate() };
    key.seal_datagram(number, header, prefix, body, out);
}
