//! Pinned flows in a closed loop: each path that has some keeps a queue of them beside the bond's.
//!
//! A pinned packet goes over its path alone, when that path's controller and pacer let it, and so
//! does its repair. While the path cannot carry data, what waited for it goes the bond's way.

use super::super::Ingress;
use super::super::pick::Pick;
use super::super::{Classified, Retry};
use super::backlog::Backlog;
use super::inner_rtt;
use crate::drop_reason::{DropCounters, DropReason};
use crate::fq_codel::Queued;
use crate::path::SendPath;
use crate::seq::PathId;
use crate::time::{Instant, earlier};
use crate::wire::sealed::DATA_OVERHEAD_BYTES;

/// No longer unfairness is remembered, in packets.
const LEAD_MAX: i64 = 1000;

/// What waits for one path each.
#[derive(Debug)]
pub(super) struct PinnedQueues {
    /// Few: looked through faster than found.
    backlogs: Vec<(PathId, Backlog)>,
    seed: u64,
    /// Packets that left these queues rather than the bond's, while both had some.
    lead: i64,
    /// Of queues that are no more.
    dropped: DropCounters,
}

impl PinnedQueues {
    pub(super) fn new(seed: u64) -> Self {
        let dropped = DropCounters::default();
        Self { backlogs: Vec::new(), seed, lead: 0, dropped }
    }

    fn get_mut(&mut self, path: PathId) -> Option<&mut Backlog> {
        self.backlogs.iter_mut().find(|(id, _)| *id == path).map(|(_, backlog)| backlog)
    }

    pub(super) fn get_or_make(&mut self, path: PathId) -> &mut Backlog {
        let place = self.backlogs.iter().position(|(id, _)| *id == path).unwrap_or_else(|| {
            self.backlogs.push((path, Backlog::new(self.seed)));
            self.backlogs.len() - 1
        });
        &mut self.backlogs[place].1
    }

    /// Whether nothing waits for the path.
    pub(super) fn is_empty_for(&self, path: PathId) -> bool {
        self.backlogs.iter().all(|(id, backlog)| *id != path || backlog.is_empty())
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.backlogs.iter().fold(None, |at, (_, backlog)| earlier(at, backlog.poll_timeout()))
    }

    /// Packets that wait, and their bytes.
    pub(super) fn waiting(&self) -> (u64, u64) {
        let sizes = self.backlogs.iter().map(|(_, backlog)| (backlog.packets(), backlog.bytes()));
        sizes.fold((0, 0), |(packets, bytes), (more, longer)| (packets + more, bytes + longer))
    }

    /// Packets dropped so far for one reason.
    pub(super) fn drop_count(&self, reason: DropReason) -> u64 {
        let counts = self.backlogs.iter().map(|(_, backlog)| backlog.drop_count(reason));
        self.dropped.get(reason) + counts.sum::<u64>()
    }

    fn remove(&mut self, path: PathId) -> Option<Backlog> {
        let place = self.backlogs.iter().position(|(id, _)| *id == path)?;
        Some(self.backlogs.remove(place).1)
    }

    fn note_drops(&mut self, backlog: &Backlog) {
        for (reason, count) in backlog.drops() {
            self.dropped.count_many(reason, count as usize);
        }
    }
}

impl Ingress {
    /// Takes a packet on the way of its path, or into that path's queue.
    pub(in super::super) fn handle_pinned(
        &mut self,
        now: Instant,
        packet: &Classified<'_>,
        to: PathId,
    ) {
        if self.queue.is_open_loop || self.may_pass_pinned(now, packet, to) {
            return self.send(now, packet.inner, packet.bytes, now, &Pick::Pinned(to));
        }
        let backlog = self.queue.pinned.get_or_make(to);
        backlog.push(now, packet.inner, packet.bytes, packet.class);
        if backlog.poll_timeout().is_none() {
            self.drain_pinned(now);
        }
    }

    /// Whether nothing waits before the packet, and its path has room for it.
    fn may_pass_pinned(&self, now: Instant, packet: &Classified<'_>, to: PathId) -> bool {
        self.queue.pinned.is_empty_for(to)
            && !self.queue.repairs.is_waiting_for(to)
            && self.room_on(now, to, packet.bytes.len()).is_ok()
    }

    /// # Errors
    /// The path has no room for the packet; when its pacer lets it go, if the window is open.
    fn room_on(&self, now: Instant, path: PathId, bytes: usize) -> Result<(), Retry> {
        let bytes = (bytes + DATA_OVERHEAD_BYTES) as u64;
        let view = self.paths.get(path).map(SendPath::view).ok_or(Retry(None))?;
        if view.has_room(now, bytes) {
            return Ok(());
        }
        Err(Retry(view.has_window(bytes).then_some(view.ready_at)))
    }

    /// Sends from all queues: whoever got less room so far goes first.
    pub(super) fn drain_in_turn(&mut self, now: Instant) {
        let pinned_first = self.queue.pinned.lead <= 0;
        let both_wait = !self.queue.backlog.is_empty() && self.queue.pinned.waiting().0 > 0;
        let mut pinned = 0;
        if pinned_first {
            pinned = self.sent_by(now, Self::drain_pinned);
        }
        let others = self.sent_by(now, Self::drain_bond);
        if !pinned_first {
            pinned = self.sent_by(now, Self::drain_pinned);
        }
        let lead = self.queue.pinned.lead + pinned - others;
        self.queue.pinned.lead = if both_wait { lead.clamp(-LEAD_MAX, LEAD_MAX) } else { 0 };
    }

    /// Packets that `drain` sends.
    fn sent_by(&mut self, now: Instant, drain: fn(&mut Self, Instant)) -> i64 {
        let before = self.sent_packets;
        drain(self, now);
        (self.sent_packets - before) as i64
    }

    /// Whether something waits, or waited of late, for one path alone.
    pub(super) fn has_pinned_queues(&self) -> bool {
        !self.queue.pinned.backlogs.is_empty() || self.queue.repairs.has_pinned()
    }

    fn drain_pinned(&mut self, now: Instant) {
        self.expire_unacknowledged(now);
        for path in self.paths.ids().collect::<Vec<_>>() {
            match self.drain_path(now, path) {
                Err(Retry(at)) => self.queue.pinned.get_or_make(path).wait(now, at),
                Ok(()) => self.settle_pinned(path),
            }
        }
        let waits = !self.queue.backlog.is_empty();
        self.note_rest(now, waits);
    }

    fn drain_path(&mut self, now: Instant, id: PathId) -> Result<(), Retry> {
        while let Some(packet) = self.queue.repairs.take_pinned(now, id) {
            if let Err(retry) = self.room_on(now, id, packet.bytes.len()) {
                self.queue.repairs.put_back_pinned(packet);
                return Err(retry);
            }
            self.repair(now, id, &packet);
            self.keep_pinned(id);
        }
        let rtt = self.paths.get(id).and_then(|path| inner_rtt(&path.view()));
        if let (Some(rtt), Some(backlog)) = (rtt, self.queue.pinned.get_mut(id)) {
            backlog.follow_rtt(rtt);
        }
        while let Some(packet) = self.queue.pinned.get_mut(id).and_then(|backlog| backlog.take(now))
        {
            let has_room = self.room_on(now, id, packet.bytes.len());
            if has_room.is_ok() {
                let Queued { inner, bytes, taken_at, .. } = &packet;
                self.send(now, inner, bytes, *taken_at, &Pick::Pinned(id));
            }
            let Some(backlog) = self.queue.pinned.get_mut(id) else { break };
            match has_room {
                Ok(()) => backlog.recycle(packet),
                Err(retry) => {
                    backlog.put_back(packet);
                    return Err(retry);
                }
            }
        }
        Ok(())
    }

    /// Nothing waits for the path; without pins it needs no queue.
    fn settle_pinned(&mut self, path: PathId) {
        let has_pins = self.pins.has_path(path);
        match self.queue.pinned.get_mut(path) {
            Some(backlog) if has_pins => backlog.settle(),
            Some(_) => {
                if let Some(backlog) = self.queue.pinned.remove(path) {
                    self.queue.pinned.note_drops(&backlog);
                }
            }
            None => {}
        }
    }

    /// The packet sent last over the path is pinned to it.
    pub(in super::super) fn keep_pinned(&mut self, path: PathId) {
        if !self.queue.is_open_loop
            && let Some(path) = self.paths.get_unseen(path)
        {
            path.sent.pin(path.id);
        }
    }

    /// What waits for a path that cannot carry it goes the bond's way.
    pub(in super::super) fn release_pinned(&mut self, now: Instant, path: PathId) {
        let carries = self.paths.get(path).is_some_and(SendPath::carries_pinned);
        if carries && !self.queue.is_open_loop {
            return;
        }
        self.queue.repairs.release(path);
        let Some(mut backlog) = self.queue.pinned.remove(path) else { return };
        while let Some(Queued { inner, bytes, class, .. }) = backlog.take(now) {
            self.queue.backlog.push(now, &inner, &bytes, class);
        }
        self.queue.pinned.note_drops(&backlog);
    }
}
