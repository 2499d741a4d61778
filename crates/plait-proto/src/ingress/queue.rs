//! Stage 2, queue: packets wait here for a path with room, and nowhere else.
//!
//! Room is what the paths' controllers and pacers allow. The queue is looked at when a packet
//! comes, when an acknowledgement makes room, and when a pacer's time has come. In an open loop
//! paths always have room: packets pass through.

mod backlog;
mod fall;
mod pinned;
mod repairs;

use backlog::Backlog;
use fall::Fall;
use pinned::PinnedQueues;
pub(super) use repairs::Repairs;

use super::classify::Classified;
use super::pick::{Pick, quickest_of};
use super::{Ingress, Retry};
use crate::drop_reason::DropReason;
use crate::fq_codel::Queued;
use crate::path::kept::KeptPacket;
use crate::scheduler::{BulkLoad, FlowClass, PathSet, PathView};
use crate::seq::PathId;
use crate::time::{Duration, Instant, earlier};
use crate::wire::ip::Inner;

/// With so much loss there is mostly something to be repaired.
const REPAIRED_PERMILLE: u16 = 2;

/// What waits.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Queue {
    /// Whether packets pass through.
    is_open_loop: bool,
    /// The bond's packets.
    backlog: Backlog,
    /// What is to be sent again.
    pub(super) repairs: Repairs,
    /// Those of flows that are pinned to a path.
    pinned: PinnedQueues,
    fall: Fall,
}

impl Queue {
    pub(super) fn new(is_open_loop: bool, seed: u64) -> Self {
        let (backlog, pinned) = (Backlog::new(seed), PinnedQueues::new(seed));
        Self { is_open_loop, backlog, pinned, repairs: Repairs::default(), fall: Fall::default() }
    }

    /// Goes on in another loop. What waits is lost but for the repairs, which may take any path:
    /// gives the queue that is no more.
    pub(super) fn restart(&mut self, is_open_loop: bool, seed: u64) -> Self {
        let repairs = core::mem::take(&mut self.repairs);
        core::mem::replace(self, Self { repairs, ..Self::new(is_open_loop, seed) })
    }

    /// The kind of flow that a packet belongs to, which counts from now on.
    pub(super) fn classify(
        &mut self,
        now: Instant,
        pin: Option<PathId>,
        inner: &Inner,
        bytes: usize,
    ) -> FlowClass {
        match pin {
            None => self.backlog.classify(now, inner, bytes),
            Some(path) => self.pinned.get_or_make(path).classify(now, inner, bytes),
        }
    }

    /// Whether a new packet of the bond waits behind others.
    pub(super) fn is_first_in_line(&self) -> bool {
        self.is_open_loop || (self.backlog.is_empty() && !self.repairs.is_waiting())
    }

    /// Puts a packet of the bond behind the others.
    pub(super) fn push(&mut self, now: Instant, packet: &Classified<'_>) {
        self.backlog.push(now, packet.inner, packet.bytes, packet.class);
    }

    /// Whether neither the bond's packets nor pinned ones wait for room on the path.
    pub(super) fn is_empty_for(&self, path: PathId) -> bool {
        self.backlog.is_empty() && self.pinned.is_empty_for(path)
    }

    /// Inner bytes of the bond that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.backlog.bytes()
    }

    /// What the bond's bulk flows are like.
    pub(super) fn bulk_load(&self) -> BulkLoad {
        if self.is_open_loop { BulkLoad::default() } else { self.backlog.bulk_load() }
    }

    /// Packets that wait and their bytes, pinned ones included.
    pub(super) fn waiting(&self) -> (u64, u64) {
        let (packets, bytes) = self.pinned.waiting();
        (packets + self.backlog.packets(), bytes + self.backlog.bytes())
    }

    /// How long the packet that left last had waited.
    pub(super) fn sojourn(&self) -> Duration {
        self.backlog.sojourn()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.backlog.poll_timeout(), self.pinned.poll_timeout())
    }

    /// Packets dropped so far for one reason.
    pub(super) fn drop_count(&self, reason: DropReason) -> u64 {
        self.backlog.drop_count(reason) + self.pinned.drop_count(reason)
    }

    /// The queue's patience follows the slowest path in use. While all of them still look for
    /// their rates it has no end: an inner flow that lost packets to it would stop asking for more.
    pub(super) fn follow(&mut self, now: Instant, view: &[PathView]) {
        self.fall.follow(now, view);
        if !view.is_empty() && view.iter().all(|path| path.is_starting) {
            self.backlog.wait_for_rate();
        } else if let Some(rtt) = view.iter().filter_map(patience).max() {
            self.backlog.follow_rtt(rtt);
            self.backlog.follow_fall(&self.fall);
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
fn inner_rtt(path: &PathView) -> Option<Duration> {
    let is_repaired = path.loss_permille >= REPAIRED_PERMILLE;
    path.srtt.map(|srtt| if is_repaired { srtt * 2 } else { srtt })
}

/// Leaving the queue.
impl Ingress {
    /// Puts a packet that found no room into the empty queue.
    pub(super) fn begin_backlog(
        &mut self,
        now: Instant,
        packet: &Classified<'_>,
        retry_at: Option<Instant>,
    ) {
        self.queue.push(now, packet);
        self.queue.backlog.wait(now, retry_at);
        self.note_rest(now, true);
    }

    /// All that may leave now has left; `waits` when more is there for whatever path.
    fn note_rest(&mut self, now: Instant, waits: bool) {
        let pinned = &self.queue.pinned;
        self.paths.note_rest(now, |path| waits || !pinned.is_empty_for(path));
    }

    /// Sends from the queues while there is room; what is to be sent again goes first.
    pub(super) fn drain(&mut self, now: Instant) {
        if self.queue.is_open_loop {
            return;
        }
        if self.has_pinned_queues() {
            self.drain_in_turn(now);
        } else {
            self.drain_bond(now);
        }
    }

    /// Sends from the queue of the bond.
    fn drain_bond(&mut self, now: Instant) {
        let outcome = self.drain_repairs(now).and_then(|()| self.drain_backlog(now));
        self.note_rest(now, outcome.is_err());
        match outcome {
            Err(Retry(at)) => self.queue.backlog.wait(now, at),
            Ok(()) => self.queue.backlog.settle(),
        }
    }

    fn drain_repairs(&mut self, now: Instant) -> Result<(), Retry> {
        while let Some(packet) = self.queue.repairs.take(now) {
            match self.pick(now, &packet.bytes, FlowClass::Interactive) {
                Ok(Pick::One(path) | Pick::Pinned(path)) => self.repair(now, path, &packet),
                Ok(Pick::Copies(set)) => self.repair_with_copies(now, set, &packet),
                Ok(Pick::Later(retry_at)) => {
                    self.queue.repairs.put_back(packet);
                    return Err(Retry(retry_at));
                }
                Err(DropReason::NoUsablePath) => {
                    self.queue.repairs.put_back(packet);
                    return Err(Retry(None));
                }
                Err(reason) => self.drops.count(reason),
            }
        }
        Ok(())
    }

    /// One of the copies is kept: were all of them, each repair would be repaired as often.
    fn repair_with_copies(&mut self, now: Instant, set: PathSet, packet: &KeptPacket) {
        let kept = quickest_of(self.paths.view(), set);
        for path in set.iter() {
            if Some(path) == kept {
                self.repair(now, path, packet);
            } else {
                self.send_again_unkept(now, path, packet);
            }
        }
    }

    fn drain_backlog(&mut self, now: Instant) -> Result<(), Retry> {
        while let Some(packet) = self.queue.backlog.take(now) {
            let Queued { inner, bytes, taken_at, class } = &packet;
            match self.pick(now, bytes, *class) {
                Ok(Pick::Later(retry_at)) => {
                    self.queue.backlog.put_back(packet);
                    return Err(Retry(retry_at));
                }
                Ok(pick) => self.send(now, inner, bytes, *taken_at, &pick),
                Err(reason) => self.drops.count(reason),
            }
            self.queue.backlog.recycle(packet);
        }
        Ok(())
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
