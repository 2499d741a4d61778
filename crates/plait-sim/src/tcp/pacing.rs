//! When the next segment may leave if segments are paced.

use plait_proto::congestion::Controller;
use plait_proto::time::{Duration, Instant};
use plait_proto::units::Rate;

use super::config::Pacing;

#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    pacing: Pacing,
    next_at: Instant,
}

impl Pacer {
    pub(super) fn new(pacing: Pacing) -> Self {
        Self { pacing, next_at: Instant::ZERO }
    }

    /// When the next segment may leave.
    pub(super) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// A segment left: `data_bytes`, which is what controllers count, in `ip_bytes`.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        (data_bytes, ip_bytes): (u64, u64),
        controller: &dyn Controller,
        srtt: Option<Duration>,
    ) {
        let time = match controller.pacing_rate() {
            Some(rate) => Some(rate.time_for(data_bytes)),
            None => self.rate(controller, srtt).map(|rate| rate.time_for(ip_bytes)),
        };
        if let Some(time) = time {
            self.next_at = self.next_at.max(now) + time;
        }
    }

    /// The rate for a controller that sets none.
    fn rate(&self, controller: &dyn Controller, srtt: Option<Duration>) -> Option<Rate> {
        let srtt = srtt.filter(|_| self.pacing == Pacing::Always)?;
        Some(linux_rate(controller, 0, srtt)).filter(|rate| *rate > Rate::ZERO)
    }
}

/// Linux's rate for a controller that sets none: `tcp_pacing_ss_ratio` below half of ssthresh,
/// `tcp_pacing_ca_ratio` above, of the window or of what is outstanding, if that is more.
pub(super) fn linux_rate(
    controller: &dyn Controller,
    outstanding_bytes: u64,
    srtt: Duration,
) -> Rate {
    let window = controller.window();
    let percent = if window < controller.ssthresh() / 2 { 200 } else { 120 };
    Rate::from_bytes_over(window.max(outstanding_bytes) * percent / 100, srtt)
}
