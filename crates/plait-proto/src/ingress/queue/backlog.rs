//! What waits at the ingress for a path with room.
//!
//! The queue is here, short and fair, and not in the modem. A packet that finds the queue empty and
//! a path with room never enters it.

use super::fall::Fall;
use crate::drop_reason::DropReason;
use crate::fq_codel::{FqCodel, FqCodelConfig, Queued};
use crate::scheduler::{BulkLoad, FlowClass};
use crate::time::{Duration, Instant};
use crate::wire::ip::Inner;

/// When windows are full an acknowledgement makes room. Should none come, what is on its way has
/// to be looked at again.
const RETRY_INTERVAL: Duration = Duration::from_millis(25);

/// The ingress queue, and when it is looked at again.
#[derive(Debug)]
pub(super) struct Backlog {
    queue: FqCodel,
    retry_at: Option<Instant>,
}

impl Backlog {
    pub(super) fn new(seed: u64) -> Self {
        let queue = FqCodel::new(FqCodelConfig::default(), seed);
        Self { queue, retry_at: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// What the bulk flows are like.
    pub(super) fn bulk_load(&self) -> BulkLoad {
        self.queue.bulk_load()
    }

    /// Packets that wait.
    pub(super) fn packets(&self) -> u64 {
        self.queue.packets() as u64
    }

    /// The kind of flow that a packet belongs to, which counts from now on.
    pub(super) fn classify(&mut self, now: Instant, inner: &Inner, bytes: usize) -> FlowClass {
        self.queue.classify(now, inner, bytes)
    }

    pub(super) fn push(&mut self, now: Instant, inner: &Inner, packet: &[u8], class: FlowClass) {
        self.queue.push(now, inner, packet, class);
    }

    /// The packet whose turn it is.
    pub(super) fn take(&mut self, now: Instant) -> Option<Queued> {
        self.queue.pop(now)
    }

    /// It found no room.
    pub(super) fn put_back(&mut self, packet: Queued) {
        self.queue.put_back(packet);
    }

    /// Something waits; it is looked at again then, or after a while.
    pub(super) fn wait(&mut self, now: Instant, retry_at: Option<Instant>) {
        let latest = now + RETRY_INTERVAL;
        self.retry_at = Some(retry_at.map_or(latest, |at| at.min(latest)));
    }

    /// Nothing is to be looked at again.
    pub(super) fn settle(&mut self) {
        self.retry_at = None;
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.retry_at
    }

    /// The packet left: its buffer is used again.
    pub(super) fn recycle(&mut self, packet: Queued) {
        self.queue.recycle(packet.bytes);
    }

    /// The inner flows' round trip is about this long.
    pub(super) fn follow_rtt(&mut self, rtt: Duration) {
        self.queue.set_round_trip(rtt);
    }

    /// The paths carry less than lately.
    pub(super) fn follow_fall(&mut self, fall: &Fall) {
        self.queue.stretch_target(|target| fall.stretched(target));
    }

    /// What the paths carry is not known yet.
    pub(super) fn wait_for_rate(&mut self) {
        self.queue.wait_for_rate();
    }

    /// Packets the queue dropped so far for one reason.
    pub(super) fn drop_count(&self, reason: DropReason) -> u64 {
        self.drops().into_iter().find(|(known, _)| *known == reason).map_or(0, |(_, count)| count)
    }

    /// Packets the queue dropped so far, by reason.
    pub(super) fn drops(&self) -> [(DropReason, u64); 2] {
        let counters = self.queue.counters();
        [
            (DropReason::QueueFull, counters.dropped_full),
            (DropReason::QueueDelay, counters.dropped_codel),
        ]
    }

    /// How long the packet that left last had waited.
    pub(super) fn sojourn(&self) -> Duration {
        self.queue.sojourn()
    }
}
