//! Random packet loss.

use crate::prng::Prng;
use crate::ratio::Ratio;

/// How packets are lost, after the transmitter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Each independently, with this probability.
    Bernoulli(Ratio),
    /// A chain of two states, good at first. The state's loss applies to each packet, then the
    /// chain moves (Gilbert, "Capacity of a burst-noise channel", BSTJ 39, 1960; Elliott,
    /// "Estimates of error rates for codes on burst-noise channels", BSTJ 42, 1963). Visits to the
    /// bad state last 1 / `bad_to_good` packets on average.
    GilbertElliott {
        /// Probability of leaving the good state, per packet.
        good_to_bad: Ratio,
        /// Probability of leaving the bad state, per packet.
        bad_to_good: Ratio,
        /// Loss in the good state.
        loss_good: Ratio,
        /// Loss in the bad state.
        loss_bad: Ratio,
    },
}

impl Loss {
    /// Nothing is lost.
    pub const NONE: Self = Self::Bernoulli(Ratio::ZERO);

    /// Share of packets lost in the long run, rounded down: for the chain, `loss_bad` and
    /// `loss_good` weighted with p/(p + r) and r/(p + r), p = `good_to_bad`, r = `bad_to_good`.
    pub fn stationary(&self) -> Ratio {
        match *self {
            Self::Bernoulli(ratio) => ratio,
            Self::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let ppm = |ratio: Ratio| u64::from(ratio.ppm());
                let moves = ppm(good_to_bad) + ppm(bad_to_good);
                if moves == 0 {
                    return loss_good;
                }
                let sum = ppm(good_to_bad) * ppm(loss_bad) + ppm(bad_to_good) * ppm(loss_good);
                Ratio::from_ppm(u32::try_from(sum / moves).expect("a mean of ratios is a ratio"))
            }
        }
    }
}

impl From<Ratio> for Loss {
    fn from(ratio: Ratio) -> Self {
        Self::Bernoulli(ratio)
    }
}

/// The chain's state; kept when the probabilities change.
#[derive(Debug, Default)]
pub(super) struct LossState {
    bad: bool,
}

impl LossState {
    /// Whether the next packet is lost.
    pub(super) fn is_lost(&mut self, loss: &Loss, prng: &mut Prng) -> bool {
        match *loss {
            Loss::Bernoulli(ratio) => ratio.happens(prng),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let (share, leave) =
                    if self.bad { (loss_bad, bad_to_good) } else { (loss_good, good_to_bad) };
                let lost = share.happens(prng);
                self.bad ^= leave.happens(prng);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: Loss = Loss::GilbertElliott {
        good_to_bad: Ratio::from_percent(1),
        bad_to_good: Ratio::from_percent(20),
        loss_good: Ratio::ZERO,
        loss_bad: Ratio::from_percent(50),
    };

    fn course(loss: &Loss, seed: u64, packets: usize) -> Vec<bool> {
        let (mut state, mut prng) = (LossState::default(), Prng::new(seed));
        (0..packets).map(|_| state.is_lost(loss, &mut prng)).collect()
    }

    #[test]
    fn stationary_loss_is_the_mean_of_both_states() {
        assert_eq!(CHAIN.stationary(), Ratio::from_ppm(23_809));
        assert_eq!(Loss::from(Ratio::from_percent(3)).stationary(), Ratio::from_percent(3));
        let still = Loss::GilbertElliott {
            good_to_bad: Ratio::ZERO,
            bad_to_good: Ratio::ZERO,
            loss_good: Ratio::from_percent(7),
            loss_bad: Ratio::ONE,
        };
        assert_eq!(still.stationary(), Ratio::from_percent(7), "it never leaves the good state");
    }

    #[test]
    fn long_run_loss_is_the_stationary_one() {
        let lost = course(&CHAIN, 11, 400_000).iter().filter(|lost| **lost).count();
        let expected = 400_000 * CHAIN.stationary().ppm() as usize / 1_000_000;
        assert!(lost.abs_diff(expected) < expected / 20, "{lost} lost, {expected} expected");
    }

    #[test]
    fn a_loss_is_likelier_after_a_loss() {
        let course = course(&CHAIN, 11, 400_000);
        let after_loss = course.windows(2).filter(|pair| pair[0]);
        let (pairs, lost) =
            after_loss.fold((0, 0), |(pairs, lost), pair| (pairs + 1, lost + u32::from(pair[1])));
        // At a loss the chain was bad; it stays bad with 0.8 and then loses half; else 0.2 · 0.
        assert!((pairs * 38 / 100..pairs * 42 / 100).contains(&lost), "{lost} of {pairs}");
    }

    #[test]
    fn certain_moves_alternate() {
        let flip = Loss::GilbertElliott {
            good_to_bad: Ratio::ONE,
            bad_to_good: Ratio::ONE,
            loss_good: Ratio::ZERO,
            loss_bad: Ratio::ONE,
        };
        assert_eq!(course(&flip, 1, 4), [false, true, false, true]);
    }
}
