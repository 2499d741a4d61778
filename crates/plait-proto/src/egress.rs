//! The egress: takes sealed datagrams from paths and gives inner packets to the host in order.
//!
//! A packet's way in, stage by stage:
//! 1. parse: header, session, path;
//! 2. open: expand the number, check the replay window, decrypt — nothing before this has effect;
//! 3. account: what arrived, when, what is missing (`path`);
//! 4. check: the inner source (`allowed_ips`), marks of routers and the MSS of SYNs (`wire`); a
//!    refused packet goes on as an empty one;
//! 5. resequence: wait for the predecessor, or not (`resequencer`), or no longer (`passage`);
//! 6. deliver: packets leave through `poll_deliver`.

mod delivery_watch;
mod passage;

use delivery_watch::{DeliveryWatch, Fate};
use passage::Passage;

use crate::allowed_ips::Sources;
use crate::config::{BondConfig, LossDetection};
use crate::drop_reason::{DropCounters, DropReason};
use crate::output::DeliverQueue;
use crate::path::gaps::PathGapCounter;
use crate::path::map::PathMap;
use crate::path::received::ReceivedRanges;
use crate::path::rtt::RttEstimator;
use crate::resequencer::delay_spread::DelaySpread;
use crate::resequencer::{Inserted, Resequencer, ResequencerConfig, ResequencerStats, Timer};
use crate::seq::{PacketNumber, PathId};
use crate::session::{Cipher, DirectionSecret, PathKey, Replay, ReplayWindow};
use crate::time::{Duration, Instant, earlier};
use crate::wire::Kind;
use crate::wire::control::{Ack, Discards, Frame, LossReport};
use crate::wire::ecn::{self, Ecn};
use crate::wire::handshake::SessionIndex;
use crate::wire::ip::Inner;
use crate::wire::mss;
use crate::wire::sealed::{ControlPrefix, DataPrefix, HEADER_BYTES, Header, SendTimestamp};

/// What is sent again may be lost again: two round trips of the slowest path, and half of them
/// again.
const REPAIRS_WAITED_FOR: u32 = 3;
/// The first repair is waited for whatever the timer's bounds are, for so many hundredths of the
/// least round-trip time of the farthest path: what arrives after its gap was given up is dropped.
const FIRST_REPAIR_PERCENT: u32 = 150;
/// Not longer than this, whatever the peer makes of the round-trip times.
const FIRST_REPAIR_MAX: Duration = Duration::from_secs(2);

/// Acknowledgements are sent this often while data arrives, or every srtt/8 if that is longer.
const ACK_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// After a gap an acknowledgement may follow this soon.
const ACK_ON_GAP_INTERVAL: Duration = Duration::from_millis(1);
/// A path that carried data says within 10 ms that it has no more. When it does not, it may be
/// dead, and what was on it on its way over another path.
const STALL_AFTER: Duration = Duration::from_millis(15);
/// By then it is either heard of again or given up by its sender.
const STALL_UNTIL: Duration = Duration::from_millis(300);
/// How long packets wait for those of a stalled path.
const STALL_TIMEOUT: Duration = Duration::from_millis(250);
/// Marks on a path are worth nothing for this long after a control datagram was marked there.
const MARKS_DOUBTED: Duration = Duration::from_secs(30);
/// When a path's datagrams of one session have been silent for this long, those of another that
/// are new are no stragglers.
const STRAGGLER_TIME: Duration = Duration::from_secs(1);
/// Sessions under which datagrams are still accepted. Both sides may renew at the same time, which
/// makes two sessions: room for three such renewals.
const SESSIONS_MAX: usize = 6;

fn fate(inserted: Inserted) -> Fate {
    match inserted {
        Inserted::Delivered | Inserted::Waiting | Inserted::LateDelivered => Fate::Kept,
        Inserted::LateDropped => Fate::Late,
        Inserted::Forgotten | Inserted::Duplicate => Fate::Repeated,
    }
}

/// The session under which the egress opens.
#[derive(Debug)]
pub struct ReceiveSession {
    local: SessionIndex,
    cipher: Cipher,
    secret: DirectionSecret,
    made_at: Instant,
    paths: PathMap<EpochPath>,
}

impl ReceiveSession {
    /// A session in which nothing has arrived.
    pub fn new(now: Instant, local: SessionIndex, cipher: Cipher, secret: DirectionSecret) -> Self {
        Self { local, cipher, secret, made_at: now, paths: PathMap::default() }
    }
}

/// A path within one epoch.
#[derive(Debug)]
struct EpochPath {
    key: PathKey,
    replay: ReplayWindow,
    ranges: ReceivedRanges,
    largest_at: Instant,
    /// Of the same datagram, as [`SendTimestamp::transit`] has it.
    largest_transit: u16,
    /// Where this epoch's packet number zero lies among all the path's numbers.
    base: u64,
}

/// A path through all epochs.
#[derive(Debug)]
struct ReceivePath {
    received_packets: u64,
    received_bytes: u64,
    delivered_bytes: u64,
    /// One more than the highest of all the path's numbers.
    next_number: u64,
    ack_due: Option<Instant>,
    last_ack_at: Option<Instant>,
    ack_session: Option<SessionIndex>,
    /// When a control datagram last came marked: whoever marks those, which are sent Not-ECT, marks
    /// whatever passes (spec E-2).
    marked_control_at: Option<Instant>,
    /// When something last came while data was flowing; `None` since the path said that it has
    /// fallen idle.
    flowed_at: Option<Instant>,
    /// Acknowledgements come this far apart while nothing is missing.
    ack_interval: Duration,
    srtt: Duration,
    least_rtt: Duration,
}

impl Default for ReceivePath {
    fn default() -> Self {
        Self {
            received_packets: 0,
            received_bytes: 0,
            delivered_bytes: 0,
            next_number: 0,
            ack_due: None,
            last_ack_at: None,
            ack_session: None,
            marked_control_at: None,
            flowed_at: None,
            ack_interval: ACK_INTERVAL_MIN,
            srtt: Duration::ZERO,
            least_rtt: Duration::ZERO,
        }
    }
}

impl ReceivePath {
    /// Data arrived: an acknowledgement becomes due, and soon if there is a gap below it.
    fn note_data(&mut self, now: Instant, session: SessionIndex, gap: bool) {
        self.received_packets += 1;
        self.flowed_at = Some(now);
        self.ack_session = Some(session);
        let interval = if gap { ACK_ON_GAP_INTERVAL } else { self.ack_interval };
        let due = self.last_ack_at.map_or(now, |last| (last + interval).max(now));
        self.ack_due = earlier(self.ack_due, Some(due));
    }

    /// A control datagram arrived. One without frames says that the path has fallen idle.
    fn note_control(&mut self, now: Instant, is_mark: bool) {
        self.flowed_at = if is_mark { None } else { self.flowed_at.map(|_| now) };
    }

    /// What to believe of the outer field of a datagram that arrived on the path (spec E-2).
    fn believed(&self, now: Instant, outer: Ecn) -> Ecn {
        let is_told_apart = |at: Instant| now.since(at) >= MARKS_DOUBTED;
        if self.marked_control_at.is_none_or(is_told_apart) { outer } else { Ecn::NotEct }
    }

    /// Whether data stopped without a word, not long ago.
    fn has_stalled(&self, now: Instant) -> bool {
        self.flowed_at.is_some_and(|last| now > last + STALL_AFTER && now < last + STALL_UNTIL)
    }
}

/// An authentic datagram.
struct Arrival {
    now: Instant,
    /// Its session's place among those in use.
    session: usize,
    path: PathId,
    number: PacketNumber,
    ip_bytes: u32,
}

/// What a datagram turned out to be.
#[derive(Debug)]
pub enum Opened {
    /// Data; it is on its way to the host.
    Data,
    /// Frames for the bond to act on.
    Control(Vec<Frame>),
}

/// Per-path counters for status and reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiveCounters {
    /// Data packets that arrived.
    pub received_packets: u64,
    /// Bytes that arrived, at the IP layer.
    pub received_bytes: u64,
    /// Inner bytes that came over this path first.
    pub delivered_bytes: u64,
    /// Data packets counted lost.
    pub lost_packets: u64,
    /// Data packets that arrived after they had been counted lost.
    pub late_packets: u64,
}

/// The receiving half of a bond.
#[derive(Debug)]
pub struct Egress {
    sessions: Vec<ReceiveSession>,
    paths: PathMap<ReceivePath>,
    gaps: PathGapCounter,
    passage: Passage,
    delay_spread: Option<DelaySpread>,
    /// How long a gap takes to be filled by the peer: a round trip of the slowest path.
    repair_time: Duration,
    /// How long the first repair of a gap takes at the least, and half of that again.
    first_repair: Duration,
    resequencer: Resequencer,
    watch: DeliveryWatch,
    /// The peer sends again what was lost: it is waited for.
    peer_repairs: bool,
    loss_detection: LossDetection,
    reject_after: Duration,
    report_interval: Duration,
    report_due: Option<Instant>,
    /// The earliest `ack_due` of any path.
    first_ack_due: Option<Instant>,
    allowed: Sources,
    queue: DeliverQueue,
    /// The largest inner packet that this side sends, in bytes.
    inner_mtu: u16,
    /// Inner packets given to the host.
    pub delivered_packets: u64,
    /// Inner bytes given to the host.
    pub delivered_bytes: u64,
    /// Drops after opening: bad inner packets and sources that are not allowed.
    pub drops: DropCounters,
}

impl Egress {
    /// An egress that has received nothing.
    pub fn new(config: &BondConfig, allowed: Sources) -> Self {
        let resequencer = resequencer_config(config, false);
        let delay_spread = delay_spread(config);
        Self {
            sessions: Vec::new(),
            paths: PathMap::default(),
            gaps: PathGapCounter::new(),
            passage: Passage::default(),
            delay_spread,
            repair_time: Duration::ZERO,
            first_repair: Duration::ZERO,
            resequencer: Resequencer::new(resequencer),
            watch: DeliveryWatch::default(),
            peer_repairs: false,
            loss_detection: config.loss_detection,
            reject_after: config.rekey.reject_after,
            report_interval: config.report_interval,
            report_due: None,
            first_ack_due: None,
            allowed,
            queue: DeliverQueue::default(),
            inner_mtu: config.inner_mtu,
            delivered_packets: 0,
            delivered_bytes: 0,
            drops: DropCounters::default(),
        }
    }

    /// Goes on under another configuration; what waits goes on waiting, by the new rules.
    pub fn reconfigure(&mut self, old: &BondConfig, new: &BondConfig) {
        let resequencer = resequencer_config(new, self.peer_repairs);
        if resequencer != resequencer_config(old, self.peer_repairs) {
            self.resequencer.reconfigure(resequencer);
        }
        self.loss_detection = new.loss_detection;
        if old.resequencer.timer != new.resequencer.timer {
            self.delay_spread = delay_spread(new);
        }
        self.report_interval = new.report_interval;
        self.reject_after = new.rekey.reject_after;
    }

    /// Says whether the peer sends again what its paths lose.
    pub fn set_peer_repairs(&mut self, peer_repairs: bool) {
        if peer_repairs != self.peer_repairs {
            self.peer_repairs = peer_repairs;
            self.gaps.set_leaves_out(peer_repairs);
            let config = self.resequencer.config();
            let release_known_lost = releases_known_lost(self.loss_detection, peer_repairs);
            self.resequencer.reconfigure(ResequencerConfig { release_known_lost, ..config });
        }
    }

    /// Accepts other inner sources from now on.
    pub fn set_allowed(&mut self, allowed: Sources) {
        self.allowed = allowed;
    }

    /// Accepts datagrams under one more session; the oldest beyond six is forgotten.
    pub fn add_session(&mut self, session: ReceiveSession) -> Option<SessionIndex> {
        self.sessions.push(session);
        (self.sessions.len() > SESSIONS_MAX).then(|| self.sessions.remove(0).local)
    }

    /// Accepts nothing under this session any more.
    pub fn remove_session(&mut self, index: SessionIndex) {
        self.sessions.retain(|session| session.local != index);
    }

    /// When the oldest session is too old.
    pub fn sessions_expire_at(&self) -> Option<Instant> {
        self.sessions.iter().map(|session| session.made_at + self.reject_after).min()
    }

    /// Wipes the sessions that are too old, and names them.
    pub fn forget_expired(&mut self, now: Instant) -> Vec<SessionIndex> {
        let is_old = |session: &ReceiveSession| now >= session.made_at + self.reject_after;
        let expired = self.sessions.iter().filter(|session| is_old(session));
        let expired: Vec<_> = expired.map(|session| session.local).collect();
        self.sessions.retain(|session| !expired.contains(&session.local));
        expired
    }

    /// Whether datagrams with this index belong here.
    pub fn has_session(&self, index: SessionIndex) -> bool {
        self.sessions.iter().any(|session| session.local == index)
    }

    /// Sessions in use, for the owner's table of indices.
    pub fn session_indices(&self) -> impl Iterator<Item = SessionIndex> + '_ {
        self.sessions.iter().map(|session| session.local)
    }

    /// Takes one datagram on its whole way.
    ///
    /// # Errors
    /// Why the datagram was dropped; it had no effect then.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        header: Header,
        ip_bytes: u32,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<Opened, DropReason> {
        let known = self.sessions.iter().position(|session| session.local == header.session);
        let session = known.ok_or(DropReason::UnknownIndex)?;
        if now >= self.sessions[session].made_at + self.reject_after {
            return Err(DropReason::ExpiredSession);
        }
        if header.kind == Kind::Data && !self.paths.contains(header.path) {
            return Err(DropReason::UnknownPath);
        }
        let (number, text) = open(now, &mut self.sessions[session], header, datagram)?;
        let arrival = Arrival { now, session, path: header.path, number, ip_bytes };
        match header.kind {
            Kind::Data => {
                let (prefix, packet) = DataPrefix::read(text).ok_or(DropReason::BadInnerPacket)?;
                let ecn = self.paths.get(header.path).map_or(ecn, |path| path.believed(now, ecn));
                // As good as lost: it is not acknowledged, so that the path's health shows it.
                ecn::check(packet, ecn)?;
                self.account(&arrival, prefix.sent, true);
                self.follow_delay(now, header.path, prefix.sent);
                self.resequence(now, header.path, prefix, ecn, packet);
                Ok(Opened::Data)
            }
            _ => {
                let (prefix, frames) = ControlPrefix::read(text).ok_or(DropReason::BadControl)?;
                let frames = Frame::read_all(frames).ok_or(DropReason::BadControl)?;
                self.account(&arrival, prefix.sent, false);
                if let Some(path) = self.paths.get_mut(header.path) {
                    path.note_control(now, frames.is_empty());
                    if ecn == Ecn::Ce {
                        path.marked_control_at = Some(now);
                    }
                }
                self.follow_delay(now, header.path, prefix.sent);
                let next = prefix.next_seq.expand(self.resequencer.expected_next());
                self.passage.show(now, header.path, next);
                self.release_passed(now);
                Ok(Opened::Control(frames))
            }
        }
    }

    /// What every authentic datagram tells; data makes acknowledgements and reports due.
    fn account(&mut self, arrival: &Arrival, sent: SendTimestamp, is_data: bool) {
        let Arrival { now, number, .. } = *arrival;
        let newest = self.is_current(now, arrival.session, arrival.path);
        let session = &mut self.sessions[arrival.session];
        let path = self.paths.get_or_insert_with(arrival.path, ReceivePath::default);
        let epoch = session.paths.get_mut(arrival.path);
        let epoch = epoch.expect("a path has state in the epoch in which a datagram opened");
        path.received_bytes += u64::from(arrival.ip_bytes);
        let gap = epoch.ranges.insert(number);
        if epoch.ranges.largest() == Some(number) {
            (epoch.largest_at, epoch.largest_transit) = (now, sent.transit(now));
        }
        if epoch.base == u64::MAX {
            epoch.base = path.next_number;
        }
        let overall = epoch.base + number.0;
        if is_data {
            path.note_data(now, session.local, gap);
            self.first_ack_due = earlier(self.first_ack_due, path.ack_due);
            self.report_due.get_or_insert(now + self.report_interval);
        }
        // Stragglers of an epoch that was left count only where their numbers had been seen to be
        // missing.
        if newest || overall < path.next_number {
            path.next_number = path.next_number.max(overall + 1);
            self.gaps.received(arrival.path, PacketNumber(overall));
        }
    }

    fn follow_delay(&mut self, now: Instant, path: PathId, sent: SendTimestamp) {
        if let Some(spread) = &mut self.delay_spread {
            spread.sample(now, path, sent.0);
        }
        self.adapt_timeout(now);
    }

    /// The adaptive timeout follows the spread of delays, and is patient with a path that stalled.
    fn adapt_timeout(&mut self, now: Instant) {
        let Some(timeout) = self.delay_spread.as_ref().and_then(|spread| spread.timeout(now))
        else {
            return;
        };
        let stalled = self.paths.values().any(|path| path.has_stalled(now));
        let patience = if stalled { STALL_TIMEOUT } else { Duration::ZERO };
        let all = (timeout + self.repair_time * REPAIRS_WAITED_FOR).max(patience);
        self.resequencer.set_timeout(all, self.first_repair);
    }

    fn resequence(
        &mut self,
        now: Instant,
        path: PathId,
        prefix: DataPrefix,
        outer: Ecn,
        packet: &mut [u8],
    ) {
        let seq = prefix.seq.expand(self.resequencer.expected_next());
        let allowed = Inner::read(packet)
            .ok_or(DropReason::BadInnerPacket)
            .and_then(|inner| self.allowed.check(&inner).map(|()| inner.protocol));
        ecn::decapsulate(packet, outer);
        if allowed == Ok(mss::TCP) {
            mss::clamp(packet, self.inner_mtu);
        }
        // A refused packet still takes its place in the sequence, as an empty one.
        let packet = match allowed {
            Ok(_) => &*packet,
            Err(reason) => {
                self.drops.count(reason);
                &[]
            }
        };
        let inner_bytes = packet.len() as u64;
        let mut out =
            Deliver::new(&mut self.queue, &mut self.delivered_packets, &mut self.delivered_bytes);
        let inserted =
            self.resequencer.insert(now, seq, prefix.prev, path, packet, &mut |packet| {
                out.deliver(packet);
            });
        let fate = fate(inserted);
        if fate == Fate::Kept
            && let Some(path) = self.paths.get_mut(path)
        {
            path.delivered_bytes += inner_bytes;
        }
        self.watch.record(now, fate);
        self.passage.show(now, path, seq.next());
        self.release_passed(now);
        self.attribute_losses();
    }

    fn release_passed(&mut self, now: Instant) {
        if let Some(all_passed) = self.passage.all_passed() {
            let mut out = Deliver::new(
                &mut self.queue,
                &mut self.delivered_packets,
                &mut self.delivered_bytes,
            );
            self.resequencer.path_passed(now, all_passed, &mut |packet| out.deliver(packet));
        }
    }

    fn attribute_losses(&mut self) {
        if !self.resequencer.has_lost() {
            return;
        }
        let news = self.resequencer.drain_lost();
        if news.lost > 0 {
            self.gaps.attribute(news.lost);
        }
        for (path, count) in news.recovered {
            for _ in 0..count {
                self.gaps.late(path);
            }
        }
    }

    /// Whether the peer sends on the path under this session, as far as can be seen. Two sessions
    /// that both sides make at the same time need not be used in the order in which they were made.
    fn is_current(&self, now: Instant, session: usize, path: PathId) -> bool {
        self.sessions[session + 1..]
            .iter()
            .filter_map(|later| later.paths.get(path))
            .all(|epoch| epoch.largest_at + STRAGGLER_TIME < now)
    }

    /// Whether the datagram that was just taken has the highest number of its path: none that was
    /// sent later has arrived, in this epoch or a later one.
    pub fn is_newest(&self, now: Instant, header: &Header) -> bool {
        let known = self.sessions.iter().position(|session| session.local == header.session);
        let Some(at) = known else { return false };
        let epoch = self.sessions[at].paths.get(header.path);
        let largest = epoch.and_then(|path| path.ranges.largest());
        largest.is_some_and(|largest| largest.truncate() == header.number)
            && self.is_current(now, at, header.path)
    }

    /// The lowest number that may still be delivered, and the one after the highest that arrived.
    #[cfg(feature = "simulation")]
    pub fn position(&self) -> (crate::seq::BondSeq, crate::seq::BondSeq) {
        (self.resequencer.floor(), self.resequencer.expected_next())
    }

    /// Whether [`Self::poll_deliver`] has something.
    pub fn has_delivery(&self) -> bool {
        self.queue.has_more()
    }

    /// The next packet for the host; valid until the next call.
    pub fn poll_deliver(&mut self) -> Option<&[u8]> {
        self.queue.poll()
    }

    /// When [`Self::handle_timeout`] is due for what waits.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let waiting = self.resequencer.poll_timeout();
        // Time confirms a passage; that matters only while something waits.
        waiting?;
        earlier(waiting, self.passage.poll_timeout())
    }

    /// Releases what has waited long enough.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.passage.handle_timeout(now);
        self.release_passed(now);
        self.adapt_timeout(now);
        let mut out =
            Deliver::new(&mut self.queue, &mut self.delivered_packets, &mut self.delivered_bytes);
        if self.resequencer.poll_timeout().is_some_and(|due| due <= now) {
            self.resequencer.handle_timeout(now, &mut |packet| out.deliver(packet));
        }
        self.attribute_losses();
    }

    /// When an acknowledgement or a loss report is due.
    pub fn poll_feedback_timeout(&self) -> Option<Instant> {
        earlier(self.report_due, self.first_ack_due)
    }

    fn find_first_ack_due(&mut self) {
        let due = self.paths.values().filter_map(|path| path.ack_due);
        self.first_ack_due = due.min();
    }

    /// The acknowledgements due now, each with the path it speaks of.
    pub fn take_acks(&mut self, now: Instant) -> Vec<(PathId, Ack)> {
        let mut acks = Vec::new();
        for (id, path) in self.paths.iter_mut() {
            if path.ack_due.is_none_or(|due| due > now) {
                continue;
            }
            path.ack_due = None;
            path.last_ack_at = Some(now);
            let epoch = path.ack_session.and_then(|index| {
                let session = self.sessions.iter().find(|session| session.local == index)?;
                Some((index, session.paths.get(id)?))
            });
            let Some((index, epoch)) = epoch else { continue };
            let Some(largest) = epoch.ranges.largest() else { continue };
            let delay = now.since(epoch.largest_at).as_nanos() as u64 / SendTimestamp::UNIT_NANOS;
            let ack = Ack {
                index: index.wire() | u32::from(id.0),
                largest: largest.truncate(),
                delay: u16::try_from(delay).unwrap_or(u16::MAX),
                transit: epoch.largest_transit,
                ranges: epoch.ranges.to_ack_ranges(),
            };
            acks.push((id, ack));
        }
        self.find_first_ack_due();
        acks
    }

    /// The loss reports, if they are due now.
    pub fn take_loss_reports(&mut self, now: Instant) -> Option<Vec<LossReport>> {
        self.report_due.filter(|due| *due <= now)?;
        self.report_due = None;
        let report = |(id, path): (PathId, &ReceivePath)| {
            let loss = self.gaps.loss(id);
            LossReport {
                path: id,
                received: path.received_packets,
                lost: loss.lost,
                late: loss.late,
            }
        };
        Some(self.paths.iter().map(report).collect())
    }

    /// Says whether the path may still bring something.
    pub fn set_live(&mut self, now: Instant, path: PathId, live: bool) {
        self.passage.set_live(now, path, live);
        if !live && let Some(spread) = &mut self.delay_spread {
            spread.remove(path);
        }
    }

    /// Tells the largest inner packet that this side sends: the host's TCP connections are held to
    /// it by the MSS of the SYNs they are given (spec M-5).
    pub fn set_mss_limit(&mut self, inner_mtu: u16) {
        self.inner_mtu = inner_mtu;
    }

    /// Tells the path's round-trip time.
    pub fn set_rtt(&mut self, path: PathId, rtt: &RttEstimator) {
        let (Some(srtt), Some(least)) = (rtt.smoothed(), rtt.min()) else { return };
        self.passage.set_rtt(path, srtt);
        if let Some(path) = self.paths.get_mut(path) {
            path.ack_interval = (srtt / 8).max(ACK_INTERVAL_MIN);
            (path.srtt, path.least_rtt) = (srtt, least);
        }
        self.follow_repair_time();
    }

    /// A gap is known to the peer after the way back of its path, and filled after the way over
    /// another. The bound follows the least round trip, since a queue must not raise it.
    fn follow_repair_time(&mut self) {
        if !self.peer_repairs {
            (self.repair_time, self.first_repair) = (Duration::ZERO, Duration::ZERO);
            return;
        }
        let slowest = self.paths.values().map(|path| path.srtt).max().unwrap_or_default();
        let farthest = self.paths.values().map(|path| path.least_rtt).max().unwrap_or_default();
        self.repair_time = slowest;
        self.first_repair = (farthest * FIRST_REPAIR_PERCENT / 100).min(FIRST_REPAIR_MAX);
    }

    /// Forgets a path.
    pub fn remove_path(&mut self, path: PathId) {
        self.paths.remove(path);
        self.follow_repair_time();
        self.find_first_ack_due();
        self.passage.remove(path);
        self.gaps.remove(path);
        if let Some(spread) = &mut self.delay_spread {
            spread.remove(path);
        }
    }

    /// How much later a path delivers than the quickest one; `None` when that is not measured.
    pub fn delay_excess(&self, now: Instant, path: PathId) -> Option<Duration> {
        self.delay_spread.as_ref()?.excess(now, path)
    }

    /// Whether nearly all that arrives is thrown away (spec R-7).
    pub fn discards(&self, now: Instant) -> Option<Discards> {
        self.watch.found(now)
    }

    /// The same, once a second.
    pub fn tell_discards(&mut self, now: Instant) -> Option<Discards> {
        self.watch.tell(now)
    }

    /// Paths of which anything is kept, beyond their replay windows.
    #[cfg(test)]
    pub(crate) fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// A path's counters.
    pub fn counters(&self, path: PathId) -> ReceiveCounters {
        let loss = self.gaps.loss(path);
        let received = self.paths.get(path);
        ReceiveCounters {
            received_packets: received.map_or(0, |path| path.received_packets),
            received_bytes: received.map_or(0, |path| path.received_bytes),
            delivered_bytes: received.map_or(0, |path| path.delivered_bytes),
            lost_packets: loss.lost,
            late_packets: loss.late,
        }
    }

    /// Places in the sequence that were looked at one after the other, since the start.
    pub fn slots_walked(&self) -> u64 {
        self.resequencer.slots_walked()
    }

    /// What waited, how long, and why it was released.
    pub fn resequencer_stats(&self) -> ResequencerStats {
        self.resequencer.stats()
    }
}

/// How losses are found decides what the resequencer does with them.
fn resequencer_config(config: &BondConfig, peer_repairs: bool) -> ResequencerConfig {
    let count_known_lost = config.loss_detection == LossDetection::Known;
    let release_known_lost = releases_known_lost(config.loss_detection, peer_repairs);
    ResequencerConfig { count_known_lost, release_known_lost, ..config.resequencer }
}

/// What is known lost is given up, unless it comes again.
fn releases_known_lost(detection: LossDetection, peer_repairs: bool) -> bool {
    detection == LossDetection::Known && !peer_repairs
}

fn delay_spread(config: &BondConfig) -> Option<DelaySpread> {
    match config.resequencer.timer {
        Timer::Adaptive { min, max } => Some(DelaySpread::new(min, max)),
        Timer::Fixed(_) => None,
    }
}

/// The end of the way in.
struct Deliver<'a> {
    queue: &'a mut DeliverQueue,
    packets: &'a mut u64,
    bytes: &'a mut u64,
}

impl<'a> Deliver<'a> {
    fn new(queue: &'a mut DeliverQueue, packets: &'a mut u64, bytes: &'a mut u64) -> Self {
        Self { queue, packets, bytes }
    }

    fn deliver(&mut self, packet: &[u8]) {
        // Empty packets stand for refused ones.
        if !packet.is_empty() {
            *self.packets += 1;
            *self.bytes += packet.len() as u64;
            self.queue.push(packet);
        }
    }
}

/// Checks and decrypts a datagram. Only an authentic one leaves a trace: a path seen for the first
/// time gets its state after its first datagram has opened.
fn open<'a>(
    now: Instant,
    session: &mut ReceiveSession,
    header: Header,
    datagram: &'a mut [u8],
) -> Result<(PacketNumber, &'a mut [u8]), DropReason> {
    let (aad, sealed) = datagram.split_at_mut(HEADER_BYTES);
    if let Some(path) = session.paths.get_mut(header.path) {
        let expected = path.replay.highest().map_or(0, |highest| highest + 1);
        let number = header.number.expand(PacketNumber(expected));
        path.replay.check(number.0).map_err(|replay| match replay {
            Replay::Duplicate => DropReason::Replayed,
            Replay::TooOld => DropReason::TooOld,
        })?;
        let text = path.key.open(number, aad, sealed).map_err(|_| DropReason::BadTag)?;
        path.replay.accept(now, number.0).map_err(|_| DropReason::Replayed)?;
        return Ok((number, text));
    }
    let key = session.secret.path_key(session.cipher, header.path);
    let number = header.number.expand(PacketNumber(0));
    let text = key.open(number, aad, sealed).map_err(|_| DropReason::BadTag)?;
    let mut replay = ReplayWindow::new();
    replay.accept(now, number.0).map_err(|_| DropReason::TooOld)?;
    let path = EpochPath {
        key,
        replay,
        ranges: ReceivedRanges::default(),
        largest_at: now,
        largest_transit: 0,
        base: u64::MAX,
    };
    session.paths.insert(header.path, path);
    Ok((number, text))
}
