//! BALIA, the Balanced Linked Adaptation (Peng, Walid, Hwang and Low, "Multipath TCP: analysis,
//! design, and implementation", IEEE/ACM Transactions on Networking 24(1), 2016;
//! draft-walid-mptcp-congestion-control).

use super::coupled::{Flow, Flows};
use super::window::Window;
use super::{AckSample, Controller, Loss, PacketState, Rto, Sent, SlowStart, Spurious, Start};
use crate::time::Instant;
use crate::units::Rate;

/// A loss takes half the window times alpha, which counts up to this.
const ALPHA_MAX: f64 = 1.5;

/// `balia`: between LIA and OLIA. A flow that is slower than the fastest grows with more zeal than
/// its share, and backs off further.
#[derive(Clone, Debug)]
pub struct Balia {
    window: Window,
    /// The fastest flow's rate over this one's, as of the latest acknowledgement.
    alpha: f64,
}

impl Balia {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart) -> Self {
        Self { window: Window::new(start, slow_start), alpha: 1.0 }
    }

    /// Segments per window acknowledged: the growth per acknowledged byte times the window.
    fn gain(&self, share: f64) -> f64 {
        share * share * (1.0 + self.alpha) / 2.0 * (4.0 + self.alpha) / 5.0
    }

    /// What a loss leaves.
    fn left_bytes(&self, flight_bytes: u64) -> u64 {
        let flight = flight_bytes.min(self.window.bytes());
        flight - (flight as f64 / 2.0 * self.alpha.min(ALPHA_MAX)).ceil() as u64
    }
}

impl Controller for Balia {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.window.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        let flows = Flows::of(sample, self.window.bytes(), 0);
        let (share, alpha) = flows.map_or((1.0, 1.0), |flows| {
            let own = flows.own().rate();
            let fastest = flows.all().map(Flow::rate).fold(0.0, f64::max);
            (own / flows.rate(), fastest / own)
        });
        self.alpha = alpha;
        if let Some(acked_bytes) = self.window.ramp_up(sample) {
            self.window.grow(acked_bytes, self.gain(share));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.on_loss(self.left_bytes(loss.flight_bytes));
    }

    fn on_rto(&mut self, rto: &Rto) {
        self.window.on_rto(rto, self.left_bytes(rto.flight_bytes));
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
