//! OLIA, the Opportunistic Linked Increases Algorithm (Khalili and others, "MPTCP is not
//! Pareto-optimal: performance issues and a possible solution", CoNEXT 2012;
//! draft-khalili-mptcp-congestion-control).

use super::coupled::{Flow, Flows};
use super::window::Window;
use super::{
    AckSample, Controller, Episode, Loss, PacketState, Rto, Sent, SlowStart, Spurious, Start,
};
use crate::time::Instant;
use crate::units::Rate;

/// `olia`: shares the growth by rates, and moves it from the flows with the largest windows to
/// those whose paths are best but whose windows are not the largest.
#[derive(Clone, Debug)]
pub struct Olia {
    window: Window,
    /// Bytes acknowledged between the last two losses.
    last_gap_bytes: u64,
    /// Bytes acknowledged since the last loss.
    since_loss_bytes: u64,
}

impl Olia {
    /// A controller in slow start.
    pub fn new(start: Start, slow_start: SlowStart) -> Self {
        let window = Window::new(start, slow_start);
        Self { window, last_gap_bytes: 0, since_loss_bytes: 0 }
    }

    /// Segments per window acknowledged: the growth per acknowledged byte times the window.
    fn gain(&self, sample: &AckSample<'_>) -> f64 {
        let flows = Flows::of(sample, self.window.bytes(), self.loss_gap_bytes());
        let Some(flows) = flows else { return 1.0 };
        let share = flows.own().rate() / flows.rate();
        share * share + shift(&flows)
    }

    fn end_gap(&mut self) {
        self.last_gap_bytes = core::mem::take(&mut self.since_loss_bytes);
    }
}

/// The paper's alpha, in segments per window acknowledged: what the flow gains at the others' cost,
/// or loses to them. The flows together neither gain nor lose.
fn shift(flows: &Flows<'_>) -> f64 {
    let quality = |flow: Flow| flow.loss_gap / (flow.rtt * flow.rtt);
    let best = flows.all().map(quality).fold(0.0, f64::max);
    let largest = flows.all().map(|flow| flow.window).fold(0.0, f64::max);
    let is_largest = |flow: &Flow| flow.window >= largest;
    let is_denied = |flow: &Flow| quality(*flow) >= best && !is_largest(flow);
    let count = flows.all().count() as f64;
    let denied = flows.all().filter(is_denied).count() as f64;
    let own = flows.own();
    if denied == 0.0 {
        0.0
    } else if is_denied(&own) {
        1.0 / (count * denied)
    } else if is_largest(&own) {
        -1.0 / (count * flows.all().filter(is_largest).count() as f64)
    } else {
        0.0
    }
}

impl Controller for Olia {
    fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.window.on_sent(sent)
    }

    fn on_ack(&mut self, sample: &AckSample<'_>) {
        self.since_loss_bytes += sample.acked_bytes;
        if let Some(acked_bytes) = self.window.ramp_up(sample) {
            self.window.grow(acked_bytes, self.gain(sample));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.end_gap();
        self.window.on_loss(loss.flight_bytes.min(self.window.bytes()) / 2);
    }

    fn on_rto(&mut self, rto: &Rto) {
        if rto.episode == Episode::New {
            self.end_gap();
        }
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

    fn loss_gap_bytes(&self) -> u64 {
        self.last_gap_bytes.max(self.since_loss_bytes)
    }
}
