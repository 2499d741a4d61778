//! The queue at the ingress: fair between flows, and short (FQ-CoDel, RFC 8290).
//!
//! It holds inner packets that no path has room for yet. Each flow has a queue of its own, they
//! take turns by bytes, one that sends little goes first, and one that stands is told to slow down
//! (`codel`, RFC 8289). It also tells what kind of flow a packet belongs to (`activity`). It knows
//! neither paths nor schedulers; `docs/algorithms/fq-codel.md`.

mod activity;
mod census;
pub mod codel;
mod flows;
mod store;

#[cfg(test)]
mod tests;

use self::census::Census;
use self::codel::{Parameters, Verdict};
use self::flows::{FlowId, Flows};
use self::store::Store;
use crate::drop_reason::{DropCounters, DropReason};
use crate::scheduler::{BulkLoad, FlowClass};
use crate::time::{Duration, Instant};
use crate::wire::ecn;
use crate::wire::ip::Inner;

/// Most packets that wait: small ones cost more memory than they have bytes. RFC 8290 §5.2.3 has
/// 10240.
pub const QUEUE_PACKETS_MAX: usize = 8192;

/// The target is this much of the inner flows' round trip, in hundredths, at least. A lone CUBIC
/// flow backs off to 0.7; the path stays full if 43 % of a round trip waited. RFC 8289 §4.4 takes
/// 5 to 10 % for many flows that share a queue; here other flows never wait behind this one.
pub const TARGET_PERCENT_OF_RTT: u32 = 40;

/// The target stays below this: what the longest paths would want is too long to wait.
pub const TARGET_MAX: Duration = Duration::from_millis(60);

/// And below this where the rate has fallen: a radio's comes back within seconds, and flows that
/// were cut meanwhile would not fill it again before the next fall.
pub const TARGET_FALLEN_MAX: Duration = Duration::from_millis(250);

/// The interval stays below this, whatever a path's round trip: a path that takes longer is full.
pub const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Nobody waits for what has waited this long: who asked has asked again. CoDel alone is slow to
/// shed what heeds no signal (RFC 8289 §5.4 has it signal at most a little more often each time).
const WAIT_MAX: Duration = Duration::from_secs(5);

/// A turn is at least this long, whatever the configuration says: the search for a flow with credit
/// has to end soon.
const QUANTUM_BYTES_MIN: u32 = 64;

/// Packets dropped at once from the fattest flow when the queue is full (RFC 8290 §4.1).
const DROP_BATCH_PACKETS_MAX: u32 = 64;

/// How the queue behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FqCodelConfig {
    /// The least delay that is too much (RFC 8290 §5.2.2).
    pub target: Duration,
    /// The shortest time for which it has to last (RFC 8290 §5.2.1).
    pub interval: Duration,
    /// Most inner bytes that wait (RFC 8290 §5.2.3).
    pub limit_bytes: u64,
    /// Bytes that a flow sends per turn: about a full packet (RFC 8290 §5.2.4).
    pub quantum_bytes: u32,
    /// Marks packets of transports that understand ECN instead of dropping them (RFC 8290 §5.2.6).
    pub ecn: bool,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(30),
            interval: Duration::from_millis(100),
            limit_bytes: 8 << 20,
            quantum_bytes: 1500,
            ecn: true,
        }
    }
}

/// A packet that waits, or has waited.
#[derive(Debug)]
pub struct Queued {
    /// What was read of it.
    pub inner: Inner,
    /// The packet itself, marked if it had to be. The buffer goes back by [`FqCodel::recycle`].
    pub bytes: Vec<u8>,
    /// When it entered the queue.
    pub taken_at: Instant,
    /// The kind of its flow when it entered.
    pub class: FlowClass,
}

/// What became of packets, besides leaving.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FqCodelCounters {
    /// Dropped because the queue was full.
    pub dropped_full: u64,
    /// Dropped by CoDel, because their flow waited too long.
    pub dropped_codel: u64,
    /// Marked by CoDel instead of being dropped.
    pub marked: u64,
}

/// The queue.
///
/// Each packet from the host is shown to [`Self::classify`] first. Then it goes straight to a path,
/// or is pushed; it goes straight only while the queue is empty, or a flow's packets overtake each
/// other.
///
/// What each packet looks at comes first, for there are many of these: it takes few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct FqCodel {
    packets: usize,
    bytes: u64,
    /// The longest packet that came: what RFC 8289 §5.6 calls the MTU.
    longest_bytes: u64,
    census: Census,
    flows: Flows,
    config: FqCodelConfig,
    parameters: Parameters,
    store: Store,
    /// Of the packet that left last.
    sojourn: Duration,
    /// Of the flow of the packet that left last: what still waits.
    flow_bytes: u64,
    counters: FqCodelCounters,
    /// Of `counters`, what [`Self::drain_drops`] has told.
    told: FqCodelCounters,
}

impl FqCodel {
    /// An empty queue; `seed` is random and keeps strangers from choosing flows that share a
    /// bucket.
    pub fn new(config: FqCodelConfig, seed: u64) -> Self {
        let quantum_bytes = config.quantum_bytes.max(QUANTUM_BYTES_MIN);
        let config = FqCodelConfig { quantum_bytes, ..config };
        let mut queue = Self {
            config,
            parameters: Parameters { target: config.target, interval: config.interval },
            flows: Flows::new(seed),
            store: Store::default(),
            packets: 0,
            bytes: 0,
            longest_bytes: 0,
            sojourn: Duration::ZERO,
            flow_bytes: 0,
            counters: FqCodelCounters::default(),
            census: Census::default(),
            told: FqCodelCounters::default(),
        };
        queue.set_round_trip(Duration::ZERO);
        queue
    }

    /// Tells the longest round trip of the inner flows. CoDel's interval is that, but not less
    /// than the configuration's and not more than [`INTERVAL_MAX`]; the target follows.
    pub fn set_round_trip(&mut self, rtt: Duration) {
        let target = (rtt * TARGET_PERCENT_OF_RTT / 100).clamp(self.config.target, TARGET_MAX);
        let interval = rtt.min(INTERVAL_MAX).max(self.config.interval);
        self.parameters = Parameters { target, interval };
    }

    /// The rate has fallen: what fitted the target at the rate before takes so much longer now.
    pub fn stretch_target(&mut self, stretched: impl Fn(Duration) -> Duration) {
        let target = self.parameters.target;
        self.parameters.target = stretched(target).min(TARGET_FALLEN_MAX).max(target);
    }

    /// No rate is known yet: until [`Self::set_round_trip`] nothing is dropped or marked for having
    /// waited, since a path's rate shows only while something waits for it.
    pub fn wait_for_rate(&mut self) {
        self.parameters.target = WAIT_MAX;
    }

    /// Takes note of a packet of so many bytes from the host, whether it will wait or not, and says
    /// what kind of flow it belongs to.
    pub fn classify(&mut self, now: Instant, inner: &Inner, bytes: usize) -> FlowClass {
        let id = self.flows.find(inner);
        let flow = self.flows.get(id);
        let class = flow.activity.record(now, bytes);
        match class {
            FlowClass::Bulk => self.census.record(now, bytes, &mut flow.counted),
            // It has rested, and begins anew.
            FlowClass::Interactive => flow.counted.is_told = false,
        }
        class
    }

    /// Lets a copy of the packet wait. When the queue is over its limit then, packets at the head
    /// of the fattest flow are dropped.
    pub fn push(&mut self, now: Instant, inner: &Inner, packet: &[u8], class: FlowClass) {
        let flow = self.flows.find(inner);
        let bytes = self.store.copy(packet);
        let packet = Queued { inner: *inner, bytes, taken_at: now, class };
        self.count_in(&packet);
        self.store.push_back(&mut self.flows.get(flow).chain, packet);
        self.flows.list(flow, self.config.quantum_bytes);
        self.keep_limit();
    }

    /// The next packet to send: new flows first, then by turns (RFC 8290 §4.2). On the way packets
    /// of flows that waited too long are marked or dropped.
    pub fn pop(&mut self, now: Instant) -> Option<Queued> {
        loop {
            let flow = self.flows.turn(self.config.quantum_bytes)?;
            let Some(packet) = self.dequeue(now, flow) else {
                self.flows.get(flow).codel.on_empty();
                self.flows.on_empty();
                continue;
            };
            let flow = self.flows.get(flow);
            flow.credit_bytes -= packet.bytes.len() as i64;
            self.flow_bytes = flow.chain.bytes();
            self.sojourn = now.since(packet.taken_at);
            return Some(packet);
        }
    }

    /// Undoes the [`Self::pop`] that gave `packet`: no path has room for it after all. It is the
    /// next of its flow again and CoDel does not judge it once more, but a new flow may come first.
    pub fn put_back(&mut self, packet: Queued) {
        let id = self.flows.find(&packet.inner);
        self.count_in(&packet);
        let flow = self.flows.get(id);
        flow.credit_bytes += packet.bytes.len() as i64;
        flow.passed_packets += 1;
        self.store.push_front(&mut flow.chain, packet);
        self.flows.list(id, self.config.quantum_bytes);
        self.keep_limit();
    }

    /// Takes back the buffer of a packet that was popped.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        self.store.recycle(buffer);
    }

    /// The next packet of a flow that CoDel lets pass, marked or not.
    fn dequeue(&mut self, now: Instant, id: FlowId) -> Option<Queued> {
        let flow = self.flows.get(id);
        while let Some(mut packet) = self.store.pop_front(&mut flow.chain) {
            self.packets -= 1;
            self.bytes -= packet.bytes.len() as u64;
            let delay = now.since(packet.taken_at);
            let has_passed = flow.passed_packets > 0;
            flow.passed_packets = flow.passed_packets.saturating_sub(1);
            if delay >= WAIT_MAX {
                self.counters.dropped_codel += 1;
                self.census.on_dropped(packet.bytes.len() as u64, &mut flow.counted);
                self.store.recycle(packet.bytes);
                continue;
            }
            if has_passed {
                return Some(packet);
            }
            let is_last = flow.chain.bytes() <= self.longest_bytes;
            match flow.codel.judge(now, delay, is_last, &self.parameters) {
                Verdict::Pass => return Some(packet),
                Verdict::Signal if self.config.ecn && ecn::mark(&mut packet.bytes) => {
                    self.counters.marked += 1;
                    flow.counted.is_told = true;
                    return Some(packet);
                }
                Verdict::Signal => {
                    self.counters.dropped_codel += 1;
                    self.census.on_dropped(packet.bytes.len() as u64, &mut flow.counted);
                    self.store.recycle(packet.bytes);
                }
            }
        }
        None
    }

    fn count_in(&mut self, packet: &Queued) {
        let bytes = packet.bytes.len() as u64;
        self.packets += 1;
        self.bytes += bytes;
        self.longest_bytes = self.longest_bytes.max(bytes);
    }

    /// Drops from the head of the fattest flow, half of it at once but not too many, as finding it
    /// takes a while; at the head, since the sooner the sender learns of it the better (RFC 8290
    /// §4.1).
    fn keep_limit(&mut self) {
        while self.bytes > self.config.limit_bytes || self.packets > QUEUE_PACKETS_MAX {
            let fattest = self.flows.fattest().expect("a queue over its limit has packets");
            let flow = self.flows.get(fattest);
            let enough_bytes = flow.chain.bytes() / 2;
            for _ in 0..DROP_BATCH_PACKETS_MAX {
                let Some(packet) = self.store.pop_front(&mut flow.chain) else { break };
                flow.passed_packets = flow.passed_packets.saturating_sub(1);
                self.packets -= 1;
                self.bytes -= packet.bytes.len() as u64;
                self.counters.dropped_full += 1;
                self.census.on_dropped(packet.bytes.len() as u64, &mut flow.counted);
                self.store.recycle(packet.bytes);
                if flow.chain.bytes() <= enough_bytes {
                    break;
                }
            }
        }
    }

    /// What the bulk flows are like.
    pub fn bulk_load(&self) -> BulkLoad {
        self.census.load()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Packets that wait.
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Inner bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Inner bytes that wait of the flow of the packet that [`Self::pop`] gave last.
    pub fn flow_bytes(&self) -> u64 {
        self.flow_bytes
    }

    /// How long the packet waited that [`Self::pop`] gave last.
    pub fn sojourn(&self) -> Duration {
        self.sojourn
    }

    /// CoDel's target and interval now.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// What became of packets since the queue was made.
    pub fn counters(&self) -> FqCodelCounters {
        self.counters
    }

    /// Adds what was dropped since the last call.
    pub fn drain_drops(&mut self, drops: &mut DropCounters) {
        let (now, told) = (self.counters, core::mem::replace(&mut self.told, self.counters));
        for (reason, count) in [
            (DropReason::QueueFull, now.dropped_full - told.dropped_full),
            (DropReason::QueueDelay, now.dropped_codel - told.dropped_codel),
        ] {
            drops.count_many(reason, usize::try_from(count).unwrap_or(usize::MAX));
        }
    }
}
