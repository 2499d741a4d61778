//! How a path's rate moves against that of the others over a few windows. What one radio gets of
//! shared air the others lose, so their rates move in opposite ways; those of links that share
//! nothing do not.

/// The latest windows count most: each by this much less than the one after it.
const FADES: f64 = 1.0 / 32.0;
/// So many changes are needed to tell.
const CHANGES_MIN: u32 = 24;
/// A change is that from so many windows before: in neighbouring ones the turns of radios and the
/// measurement's own noise hide what one gets at the others' cost.
const APART: usize = 3;
/// The correlation from which on paths may share air.
const OPPOSED: f64 = -0.5;
/// Changes count up to so many times their root mean square.
const USUAL: f64 = 2.0;

/// Products of the changes of two rates, in (bit/s)².
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sway {
    /// The rates in the latest windows, from the oldest on, as far as they follow each other.
    recent: [(f64, f64); APART],
    follows: usize,
    own: f64,
    others: f64,
    both: f64,
    changes: u32,
}

impl Sway {
    /// A window in which traffic filled all paths: what the path carried, and what all others did,
    /// in bit/s.
    pub(super) fn note(&mut self, own: u64, others: u64) {
        let now = (own as f64, others as f64);
        let before = self.recent[0];
        self.recent.rotate_left(1);
        self.recent[APART - 1] = now;
        self.follows = (self.follows + 1).min(APART + 1);
        if self.follows > APART {
            let own = self.bounded(now.0 - before.0, self.own);
            let others = self.bounded(now.1 - before.1, self.others);
            let fade = |sum: &mut f64, value: f64| *sum += (value - *sum) * FADES;
            fade(&mut self.own, own * own);
            fade(&mut self.others, others * others);
            fade(&mut self.both, own * others);
            self.changes = self.changes.saturating_add(1);
        }
    }

    /// A change, as far as it is a usual one: a step, as when coupling begins, says nothing of what
    /// comes after it, and would outweigh it for long.
    fn bounded(&self, change: f64, mean_square: f64) -> f64 {
        let bound = USUAL * mean_square.sqrt();
        if self.changes < CHANGES_MIN { change } else { change.clamp(-bound, bound) }
    }

    /// The next window does not follow the one before.
    pub(super) fn interrupt(&mut self) {
        self.follows = 0;
    }

    /// Whether one rate falls while the other rises.
    pub(super) fn is_opposed(&self) -> bool {
        let spread = (self.own * self.others).sqrt();
        self.changes >= CHANGES_MIN && self.both < OPPOSED * spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many windows of these rates in turn.
    fn after(windows: usize, rates: &[(u64, u64)]) -> Sway {
        let mut sway = Sway::default();
        rates.iter().cycle().take(windows).for_each(|(own, others)| sway.note(*own, *others));
        sway
    }

    #[test]
    fn what_one_gets_the_others_lose() {
        assert!(after(27, &[(10, 90), (20, 80)]).is_opposed());
        assert!(!after(26, &[(10, 90), (20, 80)]).is_opposed(), "too few to tell");
        assert!(!after(40, &[(10, 80), (20, 90)]).is_opposed(), "one flow slows down on both");
        assert!(!after(40, &[(10, 80), (20, 80), (20, 90), (10, 90)]).is_opposed(), "by chance");
        assert!(!after(40, &[(10, 90)]).is_opposed(), "steady");
    }

    /// While one link falls and the flows move to the other, each window brings a little of both.
    #[test]
    fn changes_count_and_not_levels() {
        let levels: Vec<_> = (0..40).map(|n| (100 - n, 50 + n + 30 * (n % 2))).collect();
        assert!(!after(40, &levels).is_opposed());
    }

    #[test]
    fn a_step_does_not_hide_what_follows() {
        let mut sway = after(40, &[(60, 250), (62, 252)]);
        let coupled = [(30, 120), (32, 112)].into_iter().cycle().take(40);
        coupled.for_each(|(own, others)| sway.note(own, others));
        assert!(sway.is_opposed());
    }

    #[test]
    fn a_gap_is_no_change() {
        let mut sway = Sway::default();
        for (own, others) in [(10, 90), (20, 80)].into_iter().cycle().take(40) {
            sway.interrupt();
            sway.note(own, others);
        }
        assert!(!sway.is_opposed());
    }
}
