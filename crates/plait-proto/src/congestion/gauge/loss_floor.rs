//! What the path loses of itself, whatever is sent.

/// Bytes over which a share is taken, in segments of 1500 bytes' worth: enough for per cents.
const BLOCK_BYTES: u64 = 100 * 1500;
/// Weight of a new block, as a part.
const PART: u64 = 4;
/// More is not made up for: it may be a queue too short to be seen, or an outage.
const PERMILLE_MAX: u64 = 100;

/// Share of bytes lost while the controller sent no more than the path carries and no queue stood.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossFloor {
    /// In millionths.
    ppm: u64,
    acked_bytes: u64,
    lost_bytes: u64,
}

impl LossFloor {
    pub(super) fn permille(&self) -> u64 {
        self.ppm / 1000
    }

    /// The share was measured elsewhere.
    pub(super) fn adopt(&mut self, permille: u64) {
        *self = Self { ppm: permille.min(PERMILLE_MAX) * 1000, ..Self::default() };
    }

    /// Takes a round's outcomes, which teach no more than `most_permille`.
    pub(super) fn on_round(&mut self, acked_bytes: u64, lost_bytes: u64, most_permille: u64) {
        self.acked_bytes += acked_bytes;
        self.lost_bytes += lost_bytes;
        let bytes = self.acked_bytes + self.lost_bytes;
        if bytes < BLOCK_BYTES {
            return;
        }
        let share = (self.lost_bytes.saturating_mul(1_000_000) / bytes)
            .min(PERMILLE_MAX.min(most_permille) * 1000);
        self.ppm = (self.ppm * (PART - 1) + share) / PART;
        (self.acked_bytes, self.lost_bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_share_is_found() {
        let mut floor = LossFloor::default();
        (0..40).for_each(|_| floor.on_round(196_000, 4_000, 1000));
        assert_eq!(floor.permille(), 19, "20, from below");
        (0..40).for_each(|_| floor.on_round(0, 200_000, 1000));
        assert!((98..=100).contains(&floor.permille()), "at most: {}", floor.permille());
    }
}
