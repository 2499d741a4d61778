//! Slow start as a part of a controller: exponential growth, and what may end it before a loss.

use super::hystart::HyStart;
use super::hystart_plus_plus::{HyStartPlusPlus, Step};
use super::rounds::Rounds;
use super::{AckSample, PacketState, Sent, SlowStart};

/// The part of a controller that grows the window below `ssthresh`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    segment_bytes: u64,
    form: SlowStart,
    detector: Detector,
    /// The detector before the latest loss.
    before: Detector,
    rounds: Rounds,
}

#[derive(Clone, Copy, Debug)]
enum Detector {
    None,
    HyStart(HyStart),
    HyStartPlusPlus(HyStartPlusPlus),
}

/// What an acknowledgement does below `ssthresh`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ramped {
    /// The window is now `window_bytes`; `left_bytes` of what was acknowledged were not needed.
    Grown { window_bytes: u64, left_bytes: u64 },
    /// Delay says that the path is full: `ssthresh` is to be set to the window as it is.
    Full,
}

impl Detector {
    fn new(form: SlowStart) -> Self {
        match form {
            SlowStart::Standard => Self::None,
            SlowStart::HyStart => Self::HyStart(HyStart::default()),
            SlowStart::HyStartPlusPlus => Self::HyStartPlusPlus(HyStartPlusPlus::default()),
        }
    }
}

impl Ramp {
    pub(super) fn new(form: SlowStart, segment_bytes: u64) -> Self {
        let detector = Detector::new(form);
        Self { segment_bytes, form, detector, before: Detector::None, rounds: Rounds::default() }
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) -> PacketState {
        self.rounds.on_sent(sent)
    }

    /// A loss ends the first slow start; later ones end at `ssthresh` (RFC 9406 section 4.2).
    pub(super) fn on_loss(&mut self) {
        self.before = core::mem::replace(&mut self.detector, Detector::None);
    }

    /// The latest loss was none: the first slow start goes on, and may end as before.
    pub(super) fn on_spurious(&mut self) {
        self.detector = core::mem::replace(&mut self.before, Detector::None);
    }

    /// The next slow start is to end as the first.
    pub(super) fn restart(&mut self) {
        self.detector = Detector::new(self.form);
    }

    /// Takes an acknowledgement that arrives below `ssthresh`.
    pub(super) fn on_ack(
        &mut self,
        sample: &AckSample<'_>,
        window_bytes: u64,
        ssthresh_bytes: u64,
    ) -> Ramped {
        let growth = match &mut self.detector {
            Detector::None => sample.acked_bytes,
            Detector::HyStart(part) => {
                let segments = window_bytes / self.segment_bytes;
                if part.should_end(sample, segments, &mut self.rounds) {
                    self.detector = Detector::None;
                    return Ramped::Full;
                }
                sample.acked_bytes
            }
            Detector::HyStartPlusPlus(part) => {
                match part.on_ack(sample, self.segment_bytes, &mut self.rounds) {
                    Step::Grow(growth) => growth,
                    Step::End => {
                        self.detector = Detector::None;
                        return Ramped::Full;
                    }
                }
            }
        };
        if sample.app_limited {
            return Ramped::Grown { window_bytes, left_bytes: 0 };
        }
        let room = ssthresh_bytes - window_bytes;
        let grown = growth.min(room);
        let left_bytes = growth.saturating_sub(room);
        Ramped::Grown { window_bytes: window_bytes + grown, left_bytes }
    }

    /// Whether HyStart++ has slowed the growth.
    #[cfg(test)]
    pub(super) fn is_conservative(&self) -> bool {
        matches!(&self.detector, Detector::HyStartPlusPlus(part) if part.is_conservative())
    }
}
