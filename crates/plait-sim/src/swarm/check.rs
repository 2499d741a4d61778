//! What must hold at every moment, whatever happens to links and gateways.

use std::collections::VecDeque;
use std::fmt;

use plait_pair::INNER_IPS;
use plait_proto::config::{BondConfig, Order};
use plait_proto::resequencer::{LatePolicy, Timer};
use plait_proto::stats::PeerStatus;
use plait_proto::time::{Duration, Instant};

use super::load::PACKET_BYTES_MIN;
use crate::prng::Prng;

/// A packet delivered this long after it was sent is a violation: links, queues and resequencer
/// together hold none so long.
const AGE_MAX: Duration = Duration::from_secs(20);
/// Beyond the resequencer's timer, a packet may wait for the timer's own granularity.
const WAIT_TOLERANCE: Duration = Duration::from_millis(2);
/// Over long paths packets wait for the first repair, up to this (docs/algorithms/resequencing.md).
const FIRST_REPAIR_MAX: Duration = Duration::from_secs(2);
const HEADERS_BYTES: usize = 28;
const NUMBER_AT: usize = HEADERS_BYTES;
const SENT_AT: usize = NUMBER_AT + 8;
const BODY_AT: usize = SENT_AT + 8;
const BODY_PHASES: u64 = 4096;

/// A violation, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// When it was seen.
    pub at: Instant,
    /// The checker that saw it: `conservation`, `duplicate`, `order`, `memory`, `waiting`, `timer`,
    /// `chatter`, `recovery`.
    pub checker: &'static str,
    /// What was found.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = Duration::from_nanos(self.at.as_nanos()).as_secs_f64();
        write!(f, "{}: {} (at {at:.6} s)", self.checker, self.what)
    }
}

impl std::error::Error for Violation {}

pub(super) fn violation<T>(
    at: Instant,
    checker: &'static str,
    what: impl Into<String>,
) -> Result<T, Violation> {
    Err(Violation { at, checker, what: what.into() })
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    flow: u16,
    bytes: u16,
    delivered: bool,
}

/// Packets from one side to the other: records what was sent, and checks that nothing else comes
/// out.
#[derive(Debug)]
pub(super) struct Ledger {
    from: usize,
    body: Vec<u8>,
    sent: VecDeque<Sent>,
    /// The number of the first in `sent`.
    first: u64,
    /// One more than the highest number delivered, by flow, and of all.
    next: Vec<u64>,
    next_of_all: u64,
    order: Option<Order>,
    scratch: Vec<u8>,
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) delivered_packets: u64,
    /// When the last packet that was delivered had been sent.
    pub(super) delivered_sent_at: Option<Instant>,
}

impl Ledger {
    /// A ledger for packets of `flows` flows between bonds of these settings.
    pub(super) fn new(from: usize, flows: usize, bonds: &[BondConfig; 2], seed: u64) -> Self {
        let mut prng = Prng::new(seed);
        let body = (0..2048).flat_map(|_| prng.next_u64().to_be_bytes()).collect();
        // The ingress queue is fair: it keeps the order within a flow, but not among flows.
        let order = match bonds[from].order {
            Order::Bond if bonds[from].congestion.is_some() => Order::Flow,
            order => order,
        };
        let is_kept = bonds[1 - from].resequencer.late == LatePolicy::Drop && order != Order::None;
        Self {
            from,
            body,
            sent: VecDeque::new(),
            first: 0,
            next: vec![0; flows],
            next_of_all: 0,
            order: is_kept.then_some(order),
            scratch: Vec::new(),
            sent_packets: 0,
            sent_bytes: 0,
            delivered_packets: 0,
            delivered_sent_at: None,
        }
    }

    /// The next packet of a flow.
    pub(super) fn send(&mut self, now: Instant, flow: usize, bytes: u64) -> &[u8] {
        while self.sent.front().is_some_and(|oldest| oldest.at + AGE_MAX < now) {
            self.sent.pop_front();
            self.first += 1;
        }
        let bytes = u16::try_from(bytes.max(PACKET_BYTES_MIN)).expect("lengths are below an MTU");
        let flow = u16::try_from(flow).expect("a plan has few flows");
        let sent = Sent { at: now, flow, bytes, delivered: false };
        write(&mut self.scratch, &self.body, self.from, self.sent_packets, sent);
        self.sent.push_back(sent);
        self.sent_packets += 1;
        self.sent_bytes += u64::from(bytes);
        &self.scratch
    }

    /// Whether a packet tells this side's host that one of its packets is too large for the bond
    /// (RFC 792): its gateway sends that, no host does.
    pub(super) fn is_told_too_big(&self, packet: &[u8]) -> bool {
        const ICMP: u8 = 1;
        const FRAGMENTATION_NEEDED: [u8; 2] = [3, 4];
        let Some((head, quoted)) = packet.split_at_checked(HEADERS_BYTES) else { return false };
        let mtu = u16::from_be_bytes([head[26], head[27]]);
        let length = quoted.get(2..4).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let number = quoted.get(NUMBER_AT..SENT_AT).and_then(|bytes| bytes.try_into().ok());
        head[9] == ICMP
            && head[20..22] == FRAGMENTATION_NEEDED
            && quoted.get(12..16) == Some(&INNER_IPS[self.from][..])
            && length > mtu
            && number.is_some_and(|bytes| u64::from_be_bytes(bytes) < self.sent_packets)
    }

    /// A packet came out at the other side.
    pub(super) fn delivered(&mut self, now: Instant, packet: &[u8]) -> Result<(), Violation> {
        let number = packet.get(NUMBER_AT..SENT_AT).and_then(|bytes| bytes.try_into().ok());
        let Some(number) = number.map(u64::from_be_bytes) else {
            return violation(now, "conservation", format!("{} bytes are no packet", packet.len()));
        };
        let record = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        let Some(record) = record.and_then(|at| self.sent.get_mut(at)) else {
            let what = format!("packet {number} was not sent, or not of late");
            return violation(now, "conservation", what);
        };
        write(&mut self.scratch, &self.body, self.from, number, *record);
        if self.scratch != packet {
            let what = format!("packet {number} came out changed, or at the wrong side");
            return violation(now, "conservation", what);
        }
        if record.delivered {
            return violation(now, "duplicate", format!("packet {number} came out twice"));
        }
        record.delivered = true;
        let (flow, sent_at) = (usize::from(record.flow), record.at);
        if sent_at + AGE_MAX < now {
            let what = format!("packet {number} was on its way for {:?}", now.since(sent_at));
            return violation(now, "waiting", what);
        }
        self.delivered_packets += 1;
        self.delivered_sent_at = self.delivered_sent_at.max(Some(sent_at));
        self.check_order(now, flow, number)
    }

    /// Packets sent from `since` to `until` that have not come out.
    pub(super) fn missing(&self, since: Instant, until: Instant) -> usize {
        let sent = self.sent.iter().filter(|sent| sent.at >= since && sent.at <= until);
        sent.filter(|sent| !sent.delivered).count()
    }

    fn check_order(&mut self, now: Instant, flow: usize, number: u64) -> Result<(), Violation> {
        let next = match self.order {
            None | Some(Order::None) => return Ok(()),
            Some(Order::Flow) => &mut self.next[flow],
            Some(Order::Bond) => &mut self.next_of_all,
        };
        if number < *next {
            let what = format!("packet {number} of flow {flow} came out after {}", *next - 1);
            return violation(now, "order", what);
        }
        *next = number + 1;
        Ok(())
    }
}

/// Writes the packet that has this number and record.
fn write(out: &mut Vec<u8>, body: &[u8], from: usize, number: u64, sent: Sent) {
    const UDP: u8 = 17;
    out.clear();
    let bytes = usize::from(sent.bytes);
    out.extend_from_slice(&[0x45, 0]);
    out.extend_from_slice(&sent.bytes.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0x40, 0, 64, UDP, 0, 0]);
    out.extend_from_slice(&INNER_IPS[from]);
    out.extend_from_slice(&INNER_IPS[1 - from]);
    out.extend_from_slice(&(4000 + sent.flow).to_be_bytes());
    out.extend_from_slice(&[0, 9]);
    out.extend_from_slice(&(sent.bytes - 20).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(&sent.at.as_nanos().to_be_bytes());
    let phase = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % BODY_PHASES;
    let phase = usize::try_from(phase).expect("a phase is small");
    out.extend_from_slice(&body[phase..phase + bytes - BODY_AT]);
}

/// Checks a gateway's status.
pub(super) fn check_status(
    now: Instant,
    status: &PeerStatus,
    config: &BondConfig,
    links: usize,
) -> Result<(), Violation> {
    let (stats, limits) = (&status.resequencer, &config.resequencer);
    let (packets, bytes) = (stats.waiting_now_packets, stats.waiting_now_bytes);
    if packets > limits.packets_max.into() {
        return violation(now, "memory", format!("{packets} packets wait in the resequencer"));
    }
    if bytes > limits.bytes_max && packets > 1 {
        return violation(now, "memory", format!("{bytes} bytes wait in the resequencer"));
    }
    // Paths left over from rebinding are kept for a while.
    let paths_max = 4 * links + 2;
    if status.paths.len() > paths_max {
        return violation(
            now,
            "memory",
            format!("{} paths over {links} links", status.paths.len()),
        );
    }
    let told = Duration::from_micros(stats.timeout_max_us);
    let waited = Duration::from_micros(stats.waiting_max_us);
    if waited > told + WAIT_TOLERANCE {
        return violation(now, "waiting", format!("a packet waited {waited:?} of {told:?}"));
    }
    let bound = match limits.timer {
        Timer::Fixed(timeout) => timeout,
        Timer::Adaptive { .. } => FIRST_REPAIR_MAX,
    };
    if told > bound {
        return violation(now, "waiting", format!("a timeout of {told:?}, of {bound:?} allowed"));
    }
    Ok(())
}

/// Checks that a gateway sends only with a cause.
#[derive(Debug, Default)]
pub(super) struct Chatter {
    /// Inner packets taken from the host, and those that waited before.
    pub(super) taken: u64,
    /// Data datagrams received.
    pub(super) data_in: u64,
    /// Datagrams sent.
    pub(super) out: u64,
    last: [u64; 2],
}

impl Chatter {
    /// Closes a period of a second at whose end `waiting` packets wait for a path with room. Copies
    /// of a packet, acknowledgements of data and a budget for control are allowed.
    pub(super) fn close(
        &mut self,
        now: Instant,
        paths: usize,
        copies: u64,
        waiting: u64,
    ) -> Result<(), Violation> {
        const CONTROL_PER_PATH: u64 = 120;
        // A packet sent again over another path was taken before.
        let taken = self.taken + self.last[0];
        let data = self.data_in + self.last[1];
        let max = copies * taken + data + CONTROL_PER_PATH * (paths as u64 + 1);
        if self.out > max {
            let (out, taken) = (self.out, self.taken);
            let what = format!("{out} datagrams in a second for {taken} packets, of {max} allowed");
            return violation(now, "chatter", what);
        }
        *self = Self { taken: waiting, last: [self.taken, self.data_in], ..Self::default() };
        Ok(())
    }
}

/// A gateway's timer must make progress.
#[derive(Debug, Default)]
pub(super) struct TimerWatch {
    at: Instant,
    calls: u32,
    millisecond: u64,
    in_millisecond: u32,
}

impl TimerWatch {
    /// Other input: a timer may be due at once again.
    pub(super) fn input(&mut self) {
        self.calls = 0;
        self.in_millisecond = self.in_millisecond.saturating_sub(2);
    }

    /// The timer is due and was handled at `now`.
    pub(super) fn called(&mut self, now: Instant) -> Result<(), Violation> {
        const SAME_INSTANT_MAX: u32 = 4;
        const MILLISECOND_MAX: u32 = 50;
        self.calls = if self.at == now { self.calls + 1 } else { 1 };
        self.at = now;
        let millisecond = now.as_nanos() / 1_000_000;
        if self.millisecond != millisecond {
            (self.millisecond, self.in_millisecond) = (millisecond, 0);
        }
        self.in_millisecond += 1;
        if self.calls > SAME_INSTANT_MAX {
            return violation(now, "timer", "due again and again at one instant");
        }
        if self.in_millisecond > MILLISECOND_MAX {
            let what = format!("{MILLISECOND_MAX} calls more than inputs within a millisecond");
            return violation(now, "timer", what);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
