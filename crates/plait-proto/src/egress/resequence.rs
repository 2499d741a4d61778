//! Stages 5 and 6, resequence and deliver: a packet waits for its predecessor, or not
//! (`resequencer`), or no longer (`passage`), and leaves in order through `poll_deliver`.

use super::Egress;
use super::delivery_watch::Fate;
use crate::config::{BondConfig, LossDetection};
use crate::output::DeliverQueue;
use crate::path::rtt::RttEstimator;
use crate::resequencer::delay_spread::DelaySpread;
use crate::resequencer::{Inserted, ResequencerConfig, Timer};
use crate::seq::PathId;
use crate::time::{Duration, Instant, earlier};
use crate::wire::sealed::{DataPrefix, SendTimestamp};

/// What is sent again may be lost again: two round trips of the slowest path, and half of them
/// again.
const REPAIRS_WAITED_FOR: u32 = 3;
/// The first repair is waited for whatever the timer's bounds are, for so many hundredths of the
/// least round-trip time of the farthest path: what arrives after its gap was given up is dropped.
const FIRST_REPAIR_PERCENT: u32 = 150;
/// Not longer than this, whatever the peer makes of the round-trip times.
const FIRST_REPAIR_MAX: Duration = Duration::from_secs(2);
/// How long packets wait for those of a stalled path.
const STALL_TIMEOUT: Duration = Duration::from_millis(250);

fn fate(inserted: Inserted) -> Fate {
    match inserted {
        Inserted::Delivered | Inserted::Waiting | Inserted::LateDelivered => Fate::Kept,
        Inserted::LateDropped => Fate::Late,
        Inserted::Forgotten | Inserted::Duplicate => Fate::Repeated,
    }
}

impl Egress {
    pub(super) fn resequence(
        &mut self,
        now: Instant,
        path: PathId,
        prefix: DataPrefix,
        packet: &[u8],
    ) {
        let seq = prefix.seq.expand(self.resequencer.expected_next());
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

    pub(super) fn release_passed(&mut self, now: Instant) {
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

    pub(super) fn follow_delay(&mut self, now: Instant, path: PathId, sent: SendTimestamp) {
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

    /// Tells the path's round-trip time.
    pub fn set_rtt(&mut self, path: PathId, rtt: &RttEstimator) {
        let (Some(srtt), Some(least)) = (rtt.smoothed(), rtt.min()) else { return };
        self.passage.set_rtt(path, srtt);
        self.follow_rtt(path, srtt, least);
        self.follow_repair_time();
    }

    /// A gap is known to the peer after the way back of its path, and filled after the way over
    /// another. The bound follows the least round trip, since a queue must not raise it.
    pub(super) fn follow_repair_time(&mut self) {
        if !self.peer_repairs {
            (self.repair_time, self.first_repair) = (Duration::ZERO, Duration::ZERO);
            return;
        }
        let slowest = self.paths.values().map(|path| path.srtt).max().unwrap_or_default();
        let farthest = self.paths.values().map(|path| path.least_rtt).max().unwrap_or_default();
        self.repair_time = slowest;
        self.first_repair = (farthest * FIRST_REPAIR_PERCENT / 100).min(FIRST_REPAIR_MAX);
    }
}

/// How losses are found decides what the resequencer does with them.
pub(super) fn resequencer_config(config: &BondConfig, peer_repairs: bool) -> ResequencerConfig {
    let count_known_lost = config.loss_detection == LossDetection::Known;
    let release_known_lost = releases_known_lost(config.loss_detection, peer_repairs);
    ResequencerConfig { count_known_lost, release_known_lost, ..config.resequencer }
}

/// What is known lost is given up, unless it comes again.
pub(super) fn releases_known_lost(detection: LossDetection, peer_repairs: bool) -> bool {
    detection == LossDetection::Known && !peer_repairs
}

pub(super) fn delay_spread(config: &BondConfig) -> Option<DelaySpread> {
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
