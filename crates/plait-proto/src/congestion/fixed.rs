//! A constant window.

use super::{AckSample, Controller, Loss, PacketState, Rto, Sent, Spurious};
use crate::units::Rate;

/// `fixed`: the same window whatever happens.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    window_bytes: u64,
}

impl Fixed {
    /// A window of `window_bytes`.
    pub const fn new(window_bytes: u64) -> Self {
        Self { window_bytes }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _sent: &Sent) -> PacketState {
        PacketState::default()
    }

    fn on_ack(&mut self, _sample: &AckSample<'_>) {}

    fn on_loss(&mut self, _loss: &Loss) {}

    fn on_rto(&mut self, _rto: &Rto) {}

    fn on_spurious(&mut self, _spurious: &Spurious) {}

    fn window(&self) -> u64 {
        self.window_bytes
    }

    fn ssthresh(&self) -> u64 {
        self.window_bytes
    }

    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
}
