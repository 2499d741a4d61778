//! The ingress in a closed loop: packets wait for a path with room, and what a path lost or keeps
//! too long is sent again.
//!
//! Room is what the paths' controllers and pacers allow. The queue is looked at when a packet
//! comes, when an acknowledgement makes room, and when a pacer's time has come.

use super::backlog::Backlog;
use super::pinned_queues::PinnedQueues;
use super::{Chosen, Ingress, quickest_of};
use crate::congestion::ControllerConfig;
use crate::drop_reason::DropReason;
use crate::fq_codel::Queued;
use crate::path::kept::KeptPacket;
use crate::scheduler::{Decision, FlowClass, PacketInfo, PathSet, PathView, Scheduler, View};
use crate::seq::PathId;
use crate::stats::{BacklogStatus, PathState};
use crate::time::{Duration, Instant, earlier};
use crate::wire::ip::Inner;

/// Copies and packets sent again before they are known lost use at most one part in so many of what
/// is sent.
const SPARE_PARTS: u64 = 10;
/// So much of that may be saved up.
const SPARE_BYTES_MAX: u64 = 512 * 1024;
/// With so much loss there is mostly something to be repaired.
const REPAIRED_PERMILLE: u16 = 2;
/// A datagram is overdue after twice the shortest round trip of its path and this.
const OVERDUE_MARGIN: Duration = Duration::from_millis(25);

/// What a closed loop has beside its paths.
#[derive(Debug)]
pub(super) struct ClosedLoop {
    /// Every path's controller.
    pub(super) controller: ControllerConfig,
    /// What waits.
    pub(super) backlog: Backlog,
    /// What waits for one path alone.
    pub(super) pinned: PinnedQueues,
    /// Bytes that may be sent twice.
    spare_bytes: u64,
    /// When overdue packets are looked for again.
    overdue_at: Option<Instant>,
    repaired_packets: u64,
    copied_bytes: u64,
}

impl ClosedLoop {
    pub(super) fn new(controller: ControllerConfig, seed: u64) -> Self {
        let backlog = Backlog::new(seed);
        Self {
            controller,
            backlog,
            pinned: PinnedQueues::new(seed),
            spare_bytes: SPARE_BYTES_MAX,
            overdue_at: None,
            repaired_packets: 0,
            copied_bytes: 0,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let overdue = earlier(self.backlog.poll_timeout(), self.overdue_at);
        earlier(overdue, self.pinned.poll_timeout())
    }

    /// Whether neither the bond's packets nor pinned ones wait for room on the path.
    pub(super) fn waits_not_for(&self, path: PathId) -> bool {
        self.backlog.is_empty() && self.pinned.is_empty_for(path)
    }

    /// Packets the queues dropped so far for one reason.
    pub(super) fn drop_count(&self, reason: DropReason) -> u64 {
        self.backlog.drop_count(reason) + self.pinned.drop_count(reason)
    }

    /// The queue's patience follows the slowest path in use. While all of them still look for
    /// their rates it has no end: an inner flow that lost packets to it would stop asking for more.
    pub(super) fn follow(&mut self, view: &[PathView]) {
        if !view.is_empty() && view.iter().all(|path| path.is_starting) {
            self.backlog.wait_for_rate();
        } else if let Some(rtt) = view.iter().filter_map(patience).max() {
            self.backlog.follow_rtt(rtt);
        }
    }

    /// A packet of `bytes` is sent for the first time.
    pub(super) fn earn(&mut self, bytes: u64) {
        self.spare_bytes = (self.spare_bytes + bytes / SPARE_PARTS).min(SPARE_BYTES_MAX);
    }

    fn spend(&mut self, bytes: u64) -> bool {
        let left = self.spare_bytes.checked_sub(bytes);
        self.spare_bytes = left.unwrap_or(self.spare_bytes);
        left.is_some()
    }

    /// All of the copies, or only the one over the quickest path when too much was sent twice of
    /// late.
    pub(super) fn allow_copies(
        &mut self,
        set: PathSet,
        quickest: Option<PathId>,
        bytes: u64,
    ) -> Chosen {
        let copies = (set.iter().count() as u64).saturating_sub(1);
        match quickest {
            Some(one) if !self.spend(copies * bytes) => Chosen::One(one),
            _ => {
                self.copied_bytes += copies * bytes;
                Chosen::Copies(set)
            }
        }
    }
}

/// The longest round trip of an inner flow that is to be expected over a path (RFC 6298 §2 counts
/// four deviations): what stands in the queue while a path grants nothing is no standing queue.
fn patience(path: &PathView) -> Option<Duration> {
    inner_rtt(path).map(|rtt| rtt + path.rtt_variation.unwrap_or_default() * 4)
}

/// The round trip of an inner flow over a path. Where packets are lost it waits for the repair,
/// another round trip, and gets what came meanwhile in one burst.
pub(super) fn inner_rtt(path: &PathView) -> Option<Duration> {
    let is_repaired = path.loss_permille >= REPAIRED_PERMILLE;
    path.srtt.map(|srtt| if is_repaired { srtt * 2 } else { srtt })
}

/// Asks a scheduler that knows no windows: it sees only paths with room.
pub(super) fn pick_with_room(
    scheduler: &mut dyn Scheduler,
    view: &View<'_>,
    packet: &PacketInfo,
) -> Decision {
    let has_room = |path: &&PathView| path.has_room(view.now, packet.bytes);
    let paths: Vec<PathView> = view.paths.iter().filter(has_room).copied().collect();
    if paths.is_empty() {
        return Decision::Blocked;
    }
    scheduler.pick(&View { now: view.now, paths: &paths }, packet)
}

/// When a pacer next lets a packet go whose window is open; `None` when all windows are full.
pub(super) fn room_at(view: &View<'_>, bytes: u64) -> Option<Instant> {
    view.paths.iter().filter(|path| path.has_window(bytes)).map(|path| path.ready_at).min()
}

impl Ingress {
    /// Goes on with other controllers, or without. What waits in a queue that is no more is lost.
    pub(super) fn set_congestion(&mut self, controller: Option<ControllerConfig>, seed: u64) {
        for path in self.paths.values_mut() {
            match &controller {
                Some(controller) => path.close_loop(controller),
                None => path.open_loop(),
            }
        }
        if let Some(closed) = self.closed.take() {
            let waiting = closed.backlog.packets() + closed.pinned.waiting().0;
            self.drops.count_many(DropReason::NoUsablePath, waiting as usize);
            for reason in [DropReason::QueueFull, DropReason::QueueDelay] {
                self.drops.count_many(reason, closed.drop_count(reason) as usize);
            }
        }
        self.closed = controller.map(|controller| ClosedLoop::new(controller, seed));
        self.paths.ids().for_each(|path| self.rescue.release(path));
        self.run = None;
        self.view_is_stale = true;
    }

    /// Puts a packet into the queue behind others.
    pub(super) fn enqueue(&mut self, now: Instant, inner: &Inner, packet: &[u8], class: FlowClass) {
        if let Some(closed) = &mut self.closed {
            closed.backlog.push(now, inner, packet, class);
        }
    }

    /// Puts a packet that found no room into the empty queue.
    pub(super) fn begin_backlog(
        &mut self,
        now: Instant,
        inner: &Inner,
        packet: &[u8],
        class: FlowClass,
        retry_at: Option<Instant>,
    ) {
        if let Some(closed) = &mut self.closed {
            closed.backlog.push(now, inner, packet, class);
            closed.backlog.wait(now, retry_at);
        }
        self.note_rest(now, true);
    }

    /// All that may leave now has left; `waits` when more is there for whatever path.
    fn note_rest(&mut self, now: Instant, waits: bool) {
        let Some(closed) = &self.closed else { return };
        for path in self.paths.values_mut() {
            path.note_rest(now, waits || !closed.pinned.is_empty_for(path.id));
        }
    }

    /// The same, with what the bond's queue has.
    pub(super) fn note_rest_of_all(&mut self, now: Instant) {
        let waits = self.closed.as_ref().is_some_and(|closed| !closed.backlog.is_empty());
        self.note_rest(now, waits);
    }

    /// Sends from the queues while there is room; what is to be sent again goes first.
    pub(super) fn drain(&mut self, now: Instant) {
        if self.has_pinned_queues() {
            self.drain_in_turn(now);
        } else {
            self.drain_bond(now);
        }
    }

    /// Sends from the queue of the bond.
    pub(super) fn drain_bond(&mut self, now: Instant) {
        if self.closed.is_none() {
            return;
        }
        let outcome = self.drain_rescue(now).and_then(|()| self.drain_queue(now));
        self.note_rest(now, outcome.is_err());
        if let Some(closed) = &mut self.closed {
            match outcome {
                Err(retry_at) => closed.backlog.wait(now, retry_at),
                Ok(()) => closed.backlog.settle(),
            }
        }
    }

    /// # Errors
    /// When there may be room again.
    fn drain_rescue(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        while let Some(packet) = self.rescue.take(now) {
            match self.schedule(now, &packet.bytes, FlowClass::Interactive) {
                Ok(Chosen::One(path) | Chosen::Pinned(path)) => self.repair(now, path, &packet),
                Ok(Chosen::Copies(set)) => self.repair_with_copies(now, set, &packet),
                Ok(Chosen::Later(retry_at)) => {
                    self.rescue.put_back(packet);
                    return Err(retry_at);
                }
                Err(DropReason::NoUsablePath) => {
                    self.rescue.put_back(packet);
                    return Err(None);
                }
                Err(reason) => self.drops.count(reason),
            }
        }
        Ok(())
    }

    /// One of the copies is kept: were all of them, each repair would be repaired as often.
    fn repair_with_copies(&mut self, now: Instant, set: PathSet, packet: &KeptPacket) {
        let kept = quickest_of(&self.view, set);
        for path in set.iter() {
            if Some(path) == kept {
                self.repair(now, path, packet);
            } else {
                self.seal_again(now, path, packet);
            }
        }
    }

    pub(super) fn repair(&mut self, now: Instant, path: PathId, packet: &KeptPacket) {
        self.send_again(now, path, packet);
        if let Some(closed) = &mut self.closed {
            closed.repaired_packets += 1;
        }
    }

    /// # Errors
    /// When there may be room again.
    fn drain_queue(&mut self, now: Instant) -> Result<(), Option<Instant>> {
        while let Some(Queued { inner, bytes, taken_at, class }) =
            self.closed.as_mut().and_then(|closed| closed.backlog.take(now))
        {
            let outcome = self.schedule(now, &bytes, class);
            if let Ok(chosen @ (Chosen::One(_) | Chosen::Copies(_))) = &outcome {
                self.send(now, &inner, &bytes, taken_at, chosen);
            }
            let Some(closed) = &mut self.closed else { break };
            let packet = Queued { inner, bytes, taken_at, class };
            match outcome {
                Ok(Chosen::Later(retry_at)) => {
                    closed.backlog.put_back(packet);
                    return Err(retry_at);
                }
                Ok(_) => {}
                Err(reason) => self.drops.count(reason),
            }
            closed.backlog.recycle(packet);
        }
        Ok(())
    }

    /// Packets that stay out much longer than their path needs are sent again over another, before
    /// they are known lost: somebody waits for them.
    pub(super) fn repair_overdue(&mut self, now: Instant) {
        let Some(closed) = &mut self.closed else { return };
        if closed.overdue_at.is_some_and(|at| at > now) {
            return;
        }
        closed.overdue_at = None;
        // Without another path there is nothing to do and nothing to wake up for. A second one
        // comes up with feedback.
        let up = self.paths.values().filter(|path| path.state == PathState::Up).count();
        if up < 2 {
            return;
        }
        for path in self.paths.values_mut() {
            let Some(min_rtt) = path.rtt.min().filter(|_| path.sent.in_flight_bytes() > 0) else {
                continue;
            };
            let patience = min_rtt * 2 + OVERDUE_MARGIN;
            closed.overdue_at = earlier(closed.overdue_at, Some(now + patience / 4));
            let limit = now.saturating_sub(patience);
            let packets = path.sent.take_overdue(limit, closed.spare_bytes);
            for packet in &packets {
                closed.spend(packet.len());
            }
            path.rescued_packets += packets.len() as u64;
            self.rescue.add(now, packets);
        }
    }

    /// What waits, and what was sent more than once.
    pub fn backlog_status(&self) -> Option<BacklogStatus> {
        let closed = self.closed.as_ref()?;
        let (pinned_packets, pinned_bytes) = closed.pinned.waiting();
        Some(BacklogStatus {
            congestion: closed.controller.algorithm,
            packets: closed.backlog.packets() + pinned_packets,
            bytes: closed.backlog.bytes() + pinned_bytes,
            waited_us: closed.backlog.sojourn().as_micros() as u64,
            repaired_packets: closed.repaired_packets,
            copied_bytes: closed.copied_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::testing::path;

    /// Behind a cell that grants nothing for up to 100 ms a queue stands for longer, and is none.
    #[test]
    fn regression_the_queue_has_patience_with_a_path_whose_round_trip_varies() {
        let varies = |millis| {
            let rtt_variation = Some(Duration::from_millis(millis));
            patience(&PathView { rtt_variation, ..path(0).srtt_ms(80).build() })
        };
        assert_eq!(varies(0), Some(Duration::from_millis(80)));
        assert_eq!(varies(25), Some(Duration::from_millis(180)));
    }
}
