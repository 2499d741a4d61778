//! BLEST (Ferlin et al., IFIP Networking 2016): a slower path is used only if the quickest one
//! would not run out of send window meanwhile. `docs/algorithms/blest.md`.

use super::delivery::{quickest_with_room_unless, smoothed_rtt};
use super::{Decision, PacketInfo, PathId, PathView, Scheduler, View};

/// Parameters of BLEST.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlestConfig {
    /// λ: scales the estimate of what the quickest path could send meanwhile.
    pub lambda: f64,
    /// |M|: the send window of the whole bond.
    pub send_window_bytes: u64,
}

impl Default for BlestConfig {
    /// λ = 1.2 as Linux starts with; |M| is the largest send buffer that Linux gives a TCP socket
    /// by default.
    fn default() -> Self {
        Self { lambda: 1.2, send_window_bytes: 4 << 20 }
    }
}

/// Estimates whether the quickest path would be blocked by what a slower one has not delivered.
#[derive(Debug)]
pub struct Blest {
    config: BlestConfig,
}

impl Blest {
    /// A new scheduler.
    pub const fn new(config: BlestConfig) -> Self {
        Self { config }
    }

    /// Section III, λ·X ≤ |M| − MSS·(inflight_S + 1), in bytes.
    fn slow_path_blocks_nothing(&self, fast: &PathView, slow: &PathView, bytes: u64) -> bool {
        let outstanding = slow.in_flight_bytes.saturating_add(bytes);
        let left = self.config.send_window_bytes.saturating_sub(outstanding);
        self.config.lambda * sent_meanwhile(fast, slow, bytes) <= left as f64
    }
}

/// X: bytes that the quick path sends in a round trip of the slow one, its window growing by a
/// segment each round: MSS·(cwnd_F + (rtts − 1)/2)·rtts, rtts = RTT_S / RTT_F.
fn sent_meanwhile(fast: &PathView, slow: &PathView, segment_bytes: u64) -> f64 {
    let rtts = smoothed_rtt(slow).as_secs_f64() / smoothed_rtt(fast).as_secs_f64().max(1e-6);
    let window = fast.window_bytes.unwrap_or(u64::MAX) as f64;
    (window + segment_bytes as f64 * (rtts - 1.0) / 2.0) * rtts
}

impl Scheduler for Blest {
    fn respects_windows(&self) -> bool {
        true
    }

    fn pick(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        quickest_with_room_unless(view, packet.bytes, |fast, slow| {
            !self.slow_path_blocks_nothing(fast, slow, packet.bytes)
        })
    }

    fn on_run(&mut self, _view: &View<'_>, _path: PathId, _bytes: u64) {}
}

#[cfg(test)]
mod tests;
