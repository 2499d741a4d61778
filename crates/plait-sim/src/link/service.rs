//! The rate of a transmitter over time.

use std::sync::Arc;

use plait_proto::time::Instant;
use plait_proto::units::Rate;

use super::rate_steps::RateSteps;
use super::trace::{OPPORTUNITY_BYTES, Trace};

/// The rate of a transmitter over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Service {
    /// This rate at the IP layer. At rate zero nothing leaves.
    Fixed(Rate),
    /// A rate at the IP layer that changes at given times. The part of a packet sent by then stays
    /// sent.
    Steps(Arc<RateSteps>),
    /// Waiting packets leave at the trace's opportunities. A packet longer than one opportunity
    /// needs several; the rest of its last one serves the packet waiting behind it, and is lost
    /// when none waits. An opportunity serves packets that came before it, not at the same instant.
    Trace(Arc<Trace>),
}

impl Service {
    /// The rate at this time, or a trace's mean.
    pub fn rate_at(&self, now: Instant) -> Rate {
        match self {
            Self::Fixed(rate) => *rate,
            Self::Steps(steps) => steps.at(now).0,
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

/// A transmitter's position in its trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TraceCursor {
    /// Unused bytes of the opportunity before `next`.
    spare_bytes: u64,
    /// The first opportunity that has not been used.
    next: u64,
}

impl TraceCursor {
    /// The position of a transmitter that was idle until `now`.
    pub(super) fn at(service: &Service, now: Instant) -> Self {
        match service {
            Service::Fixed(_) | Service::Steps(_) => Self::default(),
            Service::Trace(trace) => Self { spare_bytes: 0, next: trace.first_after(now) },
        }
    }

    /// Bytes that left by `now`.
    pub(super) fn passed(self, trace: &Trace, now: Instant) -> u64 {
        let used = trace.first_after(now).saturating_sub(self.next);
        self.spare_bytes.saturating_add(used.saturating_mul(OPPORTUNITY_BYTES))
    }

    /// When `bytes` that begin at `now` have left; moves to that position.
    pub(super) fn send(&mut self, trace: &Trace, now: Instant, bytes: u64) -> Instant {
        if bytes <= self.spare_bytes {
            self.spare_bytes -= bytes;
            return now;
        }
        let bytes = bytes - self.spare_bytes;
        let needed = bytes.div_ceil(OPPORTUNITY_BYTES);
        self.next = self.next.saturating_add(needed);
        self.spare_bytes = (OPPORTUNITY_BYTES - bytes % OPPORTUNITY_BYTES) % OPPORTUNITY_BYTES;
        trace.opportunity_at(self.next - 1)
    }
}
