//! The load: flows of packets that identify themselves and are all distinct.

use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::draw::Draw;

/// Smallest packet: IPv4 and UDP headers, number and time of sending.
pub(super) const PACKET_BYTES_MIN: u64 = 44;
/// Largest packet: the smallest inner MTU that plans have.
const PACKET_BYTES_MAX: u64 = 1380;

/// Packets of one flow.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The side that sends.
    pub from: usize,
    /// Lengths in bytes.
    pub bytes: (u64, u64),
    /// Most packets of a burst.
    pub burst_max: u64,
    /// Mean time between bursts.
    pub gap: Duration,
    /// When it begins and ends.
    pub span: (Instant, Instant),
    /// Longest of its occasional pauses.
    pub pause_max: Duration,
}

impl FlowPlan {
    pub(super) fn random(
        draw: &mut Draw,
        from: usize,
        packets: u64,
        active: Duration,
        per_ms: u64,
    ) -> Self {
        let (low, high) = draw.pick([
            (PACKET_BYTES_MIN, PACKET_BYTES_MAX),
            (PACKET_BYTES_MIN, 200),
            (900, PACKET_BYTES_MAX),
            (1200, 1200),
        ]);
        let burst_max = draw.spread(1, 64).max(per_ms.min(64));
        let active_us = active.as_micros() as u64;
        let start = if draw.one_in(2) { 0 } else { draw.between(0, active_us / 2) };
        let length = if draw.one_in(2) { active_us - start } else { draw.between(0, active_us) };
        let bursts = (2 * packets / (burst_max + 1)).max(1);
        let gap = Duration::from_micros((length / bursts).max(20));
        let at = |us: u64| Instant::ZERO + Duration::from_micros(us);
        let pause_max = if draw.one_in(2) { active / 4 } else { Duration::ZERO };
        let span = (at(start), at((start + length).min(active_us)));
        Self { from, bytes: (low, high), burst_max, gap, span, pause_max }
    }

    /// Flows that offer `rate` together, most of it down.
    pub(super) fn steady(draw: &mut Draw, rate: Rate, length: Duration) -> Vec<Self> {
        let shares = [(1, 60), (1, 20), (0, 15), (0, 5)];
        let flow = |(from, percent): (usize, u64)| {
            let bytes = if percent < 10 { (PACKET_BYTES_MIN, 300) } else { (1100, 1380) };
            let mean_bytes = (bytes.0 + bytes.1) / 2;
            let burst_max = draw.between(8, 32);
            let bits = (burst_max + 1) * mean_bytes * 4;
            let share = Rate::from_bits_per_second((rate.bits_per_second() * percent / 100).max(1));
            let gap = share.time_for(bits / 8);
            let span = (Instant::ZERO, Instant::ZERO + length);
            Self { from, bytes, burst_max, gap, span, pause_max: Duration::ZERO }
        };
        shares.map(flow).into()
    }
}

/// A running flow.
#[derive(Debug)]
pub(super) struct Flow {
    plan: FlowPlan,
    draw: Draw,
    next_at: Option<Instant>,
}

impl Flow {
    pub(super) fn new(plan: FlowPlan, seed: u64) -> Self {
        let next_at = (plan.span.0 < plan.span.1).then_some(plan.span.0);
        Self { plan, draw: Draw::new(seed), next_at }
    }

    pub(super) fn from(&self) -> usize {
        self.plan.from
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// The lengths of the packets that leave at `now`, when a burst is due.
    pub(super) fn burst(&mut self, now: Instant, lengths: &mut Vec<u64>) {
        let (low, high) = self.plan.bytes;
        for _ in 0..self.draw.between(1, self.plan.burst_max) {
            lengths.push(self.draw.between(low, high));
        }
        let gap_us = self.plan.gap.as_micros() as u64;
        let mut gap = Duration::from_micros(self.draw.between(1, 2 * gap_us));
        if !self.plan.pause_max.is_zero() && self.draw.one_in(64) {
            gap +=
                Duration::from_micros(self.draw.between(0, self.plan.pause_max.as_micros() as u64));
        }
        let next = now + gap;
        self.next_at = (next < self.plan.span.1).then_some(next);
    }
}
