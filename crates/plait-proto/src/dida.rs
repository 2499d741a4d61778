//! DIDA (paper 000): hides the disorder that packet-by-packet steering causes from TCP senders, by
//! holding duplicate ACKs on their way back until the gap fills or a timer ends.
//!
//! It decides which packets from a client go on, when, and with which SACK option. It is given
//! whole IP packets of both directions and the time, and knows nothing of attachments or of who
//! forwards. It needs no SYN, so it may begin in the middle of connections. The state machine, its
//! sources and deviations: `docs/algorithms/dida.md`.

mod config;
mod stats;

use core::net::IpAddr;

pub use config::{DidaConfig, GapFilled, HoldPolicy, ReleasedUntil, SackHandling, UnknownName};
pub use stats::{DidaStats, Forwarded, HeldEnds};

use crate::time::{Duration, Instant};

/// What the owner does with a packet from a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Upstream {
    /// Forward it now; its SACK option may have been masked.
    Forward,
    /// Do not forward it: a copy is kept, and comes out of [`Dida::poll_transmit`] unless its gap
    /// fills.
    Held,
}

/// All flows of a node; bounded.
///
/// After every `handle_*` and before the packet in hand is forwarded, drain
/// [`poll_transmit`](Self::poll_transmit): what it gives goes first. Then ask
/// [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Dida {
    config: DidaConfig,
    stats: DidaStats,
}

impl Dida {
    /// Knows no flow yet.
    pub fn new(config: DidaConfig) -> Self {
        Self { config, stats: DidaStats::default() }
    }

    /// The configuration in force.
    pub const fn config(&self) -> &DidaConfig {
        &self.config
    }

    /// Goes on under another configuration; flows and what is held keep their place as far as the
    /// new bounds allow. Gaps held back keep their timer.
    pub fn reconfigure(&mut self, config: DidaConfig) {
        self.config = config;
    }

    /// Takes note of a packet on its way to the client: sequence numbers, round-trip times,
    /// retransmissions. It is never held.
    pub fn handle_downstream(&mut self, now: Instant, packet: &[u8]) {
        let _ = (now, packet);
    }

    /// Decides on a packet from a client.
    pub fn handle_upstream(&mut self, now: Instant, packet: &mut [u8]) -> Upstream {
        let _ = (now, packet);
        self.stats.forwarded.unknown_flow += 1;
        Upstream::Forward
    }

    /// Takes the measured one-way delay difference between the slowest and the quickest attachment
    /// of a client with this primary address, plus jitter. It bounds the holding time from below,
    /// or is the holding time ([`HoldPolicy::DelayDifference`]).
    pub fn set_delay_difference(&mut self, client: IpAddr, difference: Duration) {
        let _ = (client, difference);
    }

    /// Does what is due at `now`: ends holds, forgets idle flows.
    pub fn handle_timeout(&mut self, now: Instant) {
        let _ = now;
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The next packet to forward towards its server, in order.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Releases everything held: the node is stopping.
    pub fn release_all(&mut self) {}

    /// Counters.
    pub fn stats(&self) -> DidaStats {
        self.stats
    }
}
