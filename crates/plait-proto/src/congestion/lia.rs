//! LIA, the Linked Increases Algorithm (RFC 6356).

use super::coupled::Flows;
use super::window::Window;
use super::{AckSample, Controller, Loss, PacketState, Rto, Sent, SlowStart, Spurious, Start};
use crate::time::Instant;
use crate::units::Rate;

/// `lia`: all flows together grow as fast as one NewReno on the best path would, and none faster
/// than NewReno.
#[derive(Clone, Debug)]
pub struct Lia {
    window: Window,
}

impl Lia {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart) -> Self {
        Self { window: Window::new(start, slow_start) }
    }

    /// Segments per window acknowledged. RFC 6356 equation 1 times the window: with alpha from
    /// equation 2 the total of the windows cancels out.
    fn gain(&self, sample: &AckSample<'_>) -> f64 {
        let Some(flows) = Flows::of(sample, self.window.bytes(), 0) else { return 1.0 };
        let best = flows.all().map(|flow| flow.rate() / flow.rtt).fold(0.0, f64::max);
        let rate = flows.rate();
        (flows.own().window * best / (rate * rate)).min(1.0)
    }
}

impl Controller for Lia {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.window.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        if let Some(acked_bytes) = self.window.ramp_up(sample) {
            self.window.grow(acked_bytes, self.gain(sample));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.on_loss(loss.flight_bytes.min(self.window.bytes()) / 2);
    }

    fn on_rto(&mut self, rto: &Rto) {
        self.window.on_rto(rto, rto.flight_bytes.min(self.window.bytes()) / 2);
    }

    fn on_spurious(&mut self, spurious: &Spurious) {
        self.window.undo(spurious.window_bytes);
    }

    fn on_penalty(&mut self, _now: Instant) {
        self.window.penalise();
    }

    fn window(&self) -> u64 {
        self.window.bytes()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    fn is_coupled(&self) -> bool {
        true
    }
}
