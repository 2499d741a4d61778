//! ECF, earliest completion first (Lim et al., CoNEXT 2017): a slower path is used only if what
//! waits would not be through earlier by waiting for the quickest. `docs/algorithms/ecf.md`.

use super::delivery::{quickest_with_room_unless, smoothed_rtt};
use super::{Decision, PacketInfo, PathId, PathView, Scheduler, View};
use crate::time::Duration;

/// Parameters of ECF.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EcfConfig {
    /// β: how much longer than the slower path the quickest may take once it is waited for.
    pub beta: f64,
}

impl Default for EcfConfig {
    /// β = 0.25, the paper's.
    fn default() -> Self {
        Self { beta: 0.25 }
    }
}

/// β is counted in thousandths.
const WHOLE: u64 = 1000;

/// Compares the completion of everything that waits, by the quickest path alone and with another.
#[derive(Debug)]
pub struct Ecf {
    beta_permille: u64,
    /// Whether the last decision was to wait.
    waiting: bool,
}

impl Ecf {
    /// A new scheduler.
    pub fn new(config: EcfConfig) -> Self {
        Self { beta_permille: (config.beta * WHOLE as f64).round() as u64, waiting: false }
    }

    /// Algorithm 1 once the quickest path has no room: whether to wait for `fast` rather than to
    /// use `slow`, with `waiting_bytes` = k to be sent.
    ///
    /// Both inequalities are multiplied by the window they divide by. Their products are of 128
    /// bits: 100 ms in microseconds times 43 kB passes 32 bits.
    fn waits(&mut self, fast: &PathView, slow: &PathView, waiting_bytes: u64) -> bool {
        let (fast_rtt, slow_rtt) = (nanos(smoothed_rtt(fast)), nanos(smoothed_rtt(slow)));
        let (fast_window, slow_window) = (window(fast), window(slow));
        let waiting_bytes = u128::from(waiting_bytes);
        let deviation = nanos(deviation(fast).max(deviation(slow)));
        let hysteresis = WHOLE + if self.waiting { self.beta_permille } else { 0 };

        // n·RTT_f < (1 + waiting·β)(RTT_s + δ), n = 1 + k/cwnd_f.
        let completion_by_fast = (fast_window + waiting_bytes) * fast_rtt * u128::from(WHOLE);
        let arrival_by_slow = (slow_rtt + deviation) * fast_window * u128::from(hysteresis);
        if completion_by_fast >= arrival_by_slow {
            self.waiting = false;
            return false;
        }
        // k/cwnd_s · RTT_s ≥ 2·RTT_f + δ. Otherwise `waiting` stays as it is.
        let waits = waiting_bytes * slow_rtt >= (2 * fast_rtt + deviation) * slow_window;
        self.waiting |= waits;
        waits
    }
}

fn nanos(time: Duration) -> u128 {
    // Beyond an hour a round trip compares alike; it keeps every product within 128 bits.
    time.min(Duration::from_secs(3600)).as_nanos()
}

/// A path without a window counts as one whose window holds all that could be asked for.
fn window(path: &PathView) -> u128 {
    u128::from(path.window_bytes.unwrap_or(u64::from(u32::MAX)).max(1))
}

fn deviation(path: &PathView) -> Duration {
    path.rtt_variation.unwrap_or(Duration::ZERO)
}

impl Scheduler for Ecf {
    fn respects_windows(&self) -> bool {
        true
    }

    fn pick(&mut self, view: &View<'_>, packet: &PacketInfo) -> Decision {
        let waiting_bytes = packet.queued_bytes.saturating_add(packet.bytes);
        quickest_with_room_unless(view, packet.bytes, |fast, slow| {
            self.waits(fast, slow, waiting_bytes)
        })
    }

    fn on_run(&mut self, _view: &View<'_>, _path: PathId, _bytes: u64) {}
}

#[cfg(test)]
mod tests;
