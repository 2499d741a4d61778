//! The ingress: takes inner packets from the host and sends them over paths.
//!
//! A packet's way out, stage by stage, each in a file of its own:
//! 1. `classify`: which kind of flow, and whether it is pinned to a path;
//! 2. `queue`: waits while no path has room; passes through in an open loop;
//! 3. `pick`: the scheduler chooses a path, for a contiguous run of packets;
//! 4. `number`: bond sequence number, predecessor, packet number, strictly in sequence;
//! 5. `seal`: encrypts into the path's open run; needs nothing but the key and the numbers.
//!
//! Runs leave through `poll_transmit`. What was lost on a path, is overdue there, or was in flight
//! when the path stopped answering takes the way again from stage 2 (`repair`). What is known of
//! the paths stands in `paths`; `feedback` is what the peer says of them, `control` what this side
//! says to the peer.

mod classify;
mod control;
mod feedback;
mod number;
mod paths;
mod pick;
mod pins;
mod queue;
mod redundancy;
mod repair;
mod seal;

use classify::Classified;
use number::Numbering;
use paths::Paths;
use pick::{Pick, Picker, quickest_of};
use pins::Pins;
pub use pins::{PIN_TIME, PINS_MAX, PinError};
use queue::Queue;
use redundancy::Redundancy;
pub use seal::SendSession;
use seal::seal;

use crate::config::BondConfig;
use crate::congestion::ControllerConfig;
use crate::drop_reason::{DropCounters, DropReason};
use crate::output::{Transmit, TransmitQueue};
use crate::path::SendPath;
use crate::rng::Rng;
use crate::scheduler::{FlowClass, PacketInfo, Part};
use crate::seq::{BondSeq, PathId};
use crate::stats::BacklogStatus;
use crate::time::{Duration, Instant, earlier};
use crate::wire::Kind;
use crate::wire::ecn::Ecn;
use crate::wire::ip::{Inner, room_needed};
use crate::wire::sealed::{DATA_OVERHEAD_BYTES, DataPrefix};

/// No path has room before then, or before an acknowledgement comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Retry(Option<Instant>);

/// The sending half of a bond.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Ingress {
    session: SendSession,
    /// Nothing is sealed under a session that is older (spec K-6).
    reject_after: Duration,
    pins: Pins,
    paths: Paths,
    picker: Picker,
    numbering: Numbering,
    /// Datagrams on their way to the sockets.
    out: TransmitQueue,
    /// When overdue packets are looked for again.
    overdue_at: Option<Instant>,
    /// Inner packets and bytes taken from the host and sent.
    pub sent_packets: u64,
    /// Inner bytes taken from the host and sent.
    pub sent_bytes: u64,
    redundancy: Redundancy,
    queue: Queue,
    /// The frames of a control datagram, until they are sealed.
    control_body: Vec<u8>,
    /// The largest inner packet that either host takes.
    inner_mtu: u16,
    /// Packets that were dropped after they had been taken.
    pub drops: DropCounters,
}

/// The way out.
impl Ingress {
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
        let packet = self.classify(now, inner, packet);
        if let Some(path) = packet.pin {
            self.handle_pinned(now, &packet, path);
            return Ok(());
        }
        if !self.queue.is_first_in_line() {
            self.queue.push(now, &packet);
            return Ok(());
        }
        match self.pick(now, packet.bytes, packet.class)? {
            Pick::Later(retry_at) => self.begin_backlog(now, &packet, retry_at),
            pick => self.send(now, inner, packet.bytes, now, &pick),
        }
        Ok(())
    }

    /// Picks a path for a packet.
    fn pick(&mut self, now: Instant, packet: &[u8], class: FlowClass) -> Result<Pick, DropReason> {
        let bytes = (packet.len() + DATA_OVERHEAD_BYTES) as u64;
        let room = room_needed(packet);
        if let Some(path) = self.picker.go_on(now, &self.paths, room, (bytes, class)) {
            return Ok(Pick::One(path));
        }
        self.expire_unacknowledged(now);
        self.refresh_view(now);
        let (queued_bytes, load) = (self.queue.bytes(), self.queue.bulk_load());
        let packet = PacketInfo { bytes, class, queued_bytes, load };
        let pick = self.picker.pick(now, &self.paths, room, &packet, &mut self.redundancy);
        let relieved = self.picker.take_relieved();
        if !relieved.is_empty() {
            self.paths.look_for_more(now, relieved);
        }
        pick
    }

    /// Numbers a packet and sends it where it was picked to go.
    fn send(&mut self, now: Instant, inner: &Inner, packet: &[u8], taken_at: Instant, pick: &Pick) {
        let prefix = match pick {
            // A path keeps the order of its packets, and nothing is sent again.
            Pick::Pinned(_) if !self.paths.is_closed_loop() => self.numbering.place_alone(now),
            _ => self.numbering.place(now, inner, packet),
        };
        match *pick {
            Pick::One(path) => {
                self.send_over(now, path, prefix, packet);
                self.keep(path, prefix, taken_at, packet);
            }
            Pick::Pinned(path) => {
                self.send_over(now, path, prefix, packet);
                self.keep(path, prefix, taken_at, packet);
                self.keep_pinned(path);
            }
            Pick::Copies(set) => {
                let quickest = quickest_of(self.paths.view(), set);
                for at in 0..self.paths.view().len() {
                    let path = self.paths.view()[at].id;
                    if set.contains(path) {
                        self.send_over(now, path, prefix, packet);
                        if Some(path) == quickest && self.paths.is_closed_loop() {
                            self.keep(path, prefix, taken_at, packet);
                        }
                    }
                }
            }
            Pick::Later(_) => unreachable!("a packet that waits is not sent"),
        }
        self.sent_packets += 1;
        self.sent_bytes += packet.len() as u64;
        if self.paths.is_closed_loop() {
            self.redundancy.earn(packet.len() as u64);
        }
    }

    /// Numbers and seals a packet that has its place in the bond's sequence, over one path.
    fn send_over(&mut self, now: Instant, id: PathId, prefix: DataPrefix, packet: &[u8]) {
        if self.is_expired(now) {
            self.drops.count(DropReason::ExpiredSession);
            return;
        }
        let queue_is_empty = self.queue.is_empty_for(id);
        let length = packet.len() + DATA_OVERHEAD_BYTES;
        let numbers = &mut self.numbering;
        let sent = self
            .paths
            .send(now, id, length, queue_is_empty, |path| numbers.number(path, Kind::Data));
        let Some((path, numbered)) = sent else { return };
        let out = self.out.append(id, path.route, Ecn::of(packet), length);
        seal(path.key(), &numbered, &prefix.to_bytes(), packet, out);
    }

    fn refresh_view(&mut self, now: Instant) {
        if self.paths.refresh_view() && self.paths.is_closed_loop() {
            self.queue.follow(now, self.paths.view());
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.paths.is_closed_loop() {
            earlier(self.queue.poll_timeout(), self.overdue_at)
        } else {
            self.queue.repairs.poll_timeout()
        }
    }

    /// Sends what could not be sent before: from the queue, or the next portion of what was in
    /// flight on paths that stopped answering.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.paths.is_closed_loop() {
            self.repair_overdue(now);
            self.drain(now);
        } else {
            self.send_portion(now);
        }
    }

    /// Whether [`Self::poll_transmit`] has something.
    pub fn has_transmit(&self) -> bool {
        self.out.has_more()
    }

    /// The next send; valid until the next call. Ends the run in progress: a batch is over.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        self.picker.end_run();
        self.out.poll()
    }

    /// Takes the contents of the last send, with an empty buffer in exchange.
    pub fn take_contents(&mut self, spare: Vec<u8>) -> Vec<u8> {
        self.out.take_contents(spare)
    }
}

/// What it is made of, and what it tells of itself.
impl Ingress {
    /// An ingress without paths; no inner packet is larger than `inner_mtu`.
    pub fn new(config: &BondConfig, inner_mtu: u16, mut rng: Rng, session: SendSession) -> Self {
        let lane_seed = rng.u64();
        Self {
            paths: Paths::new(config.congestion),
            pins: Pins::default(),
            queue: Queue::new(config.congestion.is_none(), lane_seed),
            picker: Picker::new(config.scheduler.build()),
            numbering: Numbering::new(config, lane_seed, rng),
            session,
            reject_after: config.rekey.reject_after,
            out: TransmitQueue::default(),
            control_body: Vec::new(),
            redundancy: Redundancy::default(),
            overdue_at: None,
            inner_mtu,
            drops: DropCounters::default(),
            sent_packets: 0,
            sent_bytes: 0,
        }
    }

    /// Goes on with another scheduler or order; sequence numbers go on.
    pub fn reconfigure(&mut self, old: &BondConfig, new: &BondConfig, lane_seed: u64) {
        self.reject_after = new.rekey.reject_after;
        if old.scheduler != new.scheduler {
            self.picker = Picker::new(new.scheduler.build());
        }
        if old.congestion != new.congestion {
            self.set_congestion(new.congestion, lane_seed);
        }
        if (old.order, old.unordered) != (new.order, new.unordered) {
            self.numbering.set_order(new, lane_seed);
        }
    }

    /// Goes on with other controllers, or without. What waits in a queue that is no more is lost.
    fn set_congestion(&mut self, controller: Option<ControllerConfig>, seed: u64) {
        let old = self.queue.restart(controller.is_none(), seed);
        self.drops.count_many(DropReason::NoUsablePath, old.waiting().0 as usize);
        for reason in [DropReason::QueueFull, DropReason::QueueDelay] {
            self.drops.count_many(reason, old.drop_count(reason) as usize);
        }
        self.redundancy = Redundancy::default();
        self.overdue_at = None;
        self.paths.set_controller(controller);
        self.paths.ids().for_each(|path| self.queue.repairs.release(path));
        self.picker.end_run();
    }

    /// Packets dropped after they had been taken, for one reason.
    pub fn drop_count(&self, reason: DropReason) -> u64 {
        let repairs = &self.queue.repairs;
        let given_up = if reason == DropReason::TooOldToRepair { repairs.given_up() } else { 0 };
        self.drops.get(reason) + self.queue.drop_count(reason) + given_up
    }

    /// What waits, and what was sent more than once; `None` in an open loop.
    pub fn backlog_status(&self) -> Option<BacklogStatus> {
        let controller = self.paths.controller()?;
        let (packets, bytes) = self.queue.waiting();
        Some(BacklogStatus {
            congestion: controller.algorithm,
            packets,
            bytes,
            waited_us: self.queue.sojourn().as_micros() as u64,
            repaired_packets: self.redundancy.repaired_packets,
            copied_bytes: self.redundancy.copied_bytes,
        })
    }

    /// A path.
    pub fn path(&self, id: PathId) -> Option<&SendPath> {
        self.paths.get(id)
    }

    /// All paths, by id.
    pub fn paths(&self) -> impl Iterator<Item = &SendPath> {
        self.paths.iter()
    }

    /// The sequence number of the next data packet.
    pub const fn next_seq(&self) -> BondSeq {
        self.numbering.next_seq()
    }

    /// The scheduler's weights by path, where it has them.
    pub fn weights(&mut self, now: Instant) -> Vec<(PathId, u32)> {
        self.refresh_view(now);
        self.picker.weights(now, &self.paths)
    }

    /// What the scheduler makes of a path that is up; the view is as fresh as that of
    /// [`Ingress::weights`].
    pub fn part(&self, now: Instant, path: PathId) -> Option<Part> {
        self.picker.part(now, &self.paths, path)
    }
}
