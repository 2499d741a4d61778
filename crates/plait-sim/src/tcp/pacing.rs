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

    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        controller: &dyn Controller,
        srtt: Option<Duration>,
    ) {
        if let Some(rate) = self.rate(controller, srtt) {
            self.next_at = self.next_at.max(now) + rate.time_for(bytes);
        }
    }

    fn rate(&self, controller: &dyn Controller, srtt: Option<Duration>) -> Option<Rate> {
        if let Some(rate) = controller.pacing_rate() {
            return Some(rate);
        }
        let srtt = srtt.filter(|_| self.pacing == Pacing::Always)?;
        // Linux: tcp_pacing_ss_ratio below half of ssthresh, tcp_pacing_ca_ratio above.
        let window = controller.window();
        let percent = if window < controller.ssthresh() / 2 { 200 } else { 120 };
        Some(Rate::from_bytes_over(window * percent / 100, srtt)).filter(|rate| *rate > Rate::ZERO)
    }
}
