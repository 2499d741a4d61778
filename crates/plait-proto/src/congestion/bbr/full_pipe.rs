//! When startup has found what the path carries.

use super::model::Model;
use crate::units::Rate;

/// Growth per round that shows room, and rounds without it that show none (draft-ietf-ccwg-bbr-06
/// section 5.3.1.2).
const GROWTH_PERCENT: u64 = 125;
const ROUNDS: u32 = 3;
/// A queue beside the missing growth makes the case sooner.
const ROUNDS_WITH_QUEUE: u32 = 2;
/// So does this much loss: at once. Loss while the rate still grows is the path's own.
const LOSS_PERMILLE: u64 = 50;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Rate,
    rounds: u32,
}

impl FullPipe {
    /// Judges a round; true when the pipe is full.
    pub(super) fn on_round(&mut self, model: &Model) -> bool {
        let bandwidth = model.bandwidth.get();
        let grown = self.baseline.bits_per_second().saturating_mul(GROWTH_PERCENT) / 100;
        if bandwidth.bits_per_second() >= grown {
            *self = Self { baseline: bandwidth, rounds: 0 };
            return false;
        }
        if model.round.is_app_limited {
            return false;
        }
        self.rounds += 1;
        let needed = if model.round.loss_permille() >= LOSS_PERMILLE {
            1
        } else if model.round.rtt_min.is_some_and(|rtt| model.min_rtt.has_queue(rtt)) {
            ROUNDS_WITH_QUEUE
        } else {
            ROUNDS
        };
        self.rounds >= needed
    }
}
