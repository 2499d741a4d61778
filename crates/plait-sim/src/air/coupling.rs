//! How much of a radio's air another radio takes: sigma_ij is the share of the frames of radio j
//! that radio i senses. A frame that is sensed keeps i silent as long as it lasts.

use plait_proto::time::Duration;

use super::radio::RadioConfig;
use crate::prng::Prng;
use crate::ratio::Ratio;

/// Radios sense energy above this (802.11-2020 clause 21, clear channel assessment), in dBm.
const SENSES_DBM: f64 = -62.0;
/// What a transmitter's filter leaves of its power in other channels, in decibels: the last step of
/// the spectral mask (802.11-2020 clause 21).
const MASK_DB: f64 = 40.0;
/// Spread of the power that arrives about its mean, in decibels: antennas' patterns, people,
/// furniture. Chosen so that a receiver of a quarter of the width senses 0.06 where the full width
/// senses 0.35, as 003's two pairs with printed figures have it.
const SPREAD_DB: f64 = 5.0;

/// Who senses whom, frame by frame.
#[derive(Clone, Debug)]
pub(super) struct Coupling {
    /// For each radio and each other one, the share of that one's frames that it senses.
    shares: Vec<Vec<(Ratio, Prng)>>,
}

impl Coupling {
    /// Radios that do not sense each other. Each pair has a generator from both radios' seeds, so
    /// that no radio's draws depend on how many others there are.
    pub(super) fn none(seeds: &[u64]) -> Self {
        let prng = |seed: u64, other: u64| Prng::new(seed.rotate_left(17) ^ other);
        let row = |seed: &u64| {
            seeds.iter().map(|other| (Ratio::ZERO, prng(*seed, *other))).collect::<Vec<_>>()
        };
        Self { shares: seeds.iter().map(row).collect() }
    }

    /// From now on `radio` senses this share of the frames of `from`.
    pub(super) fn set(&mut self, radio: usize, from: usize, share: Ratio) {
        self.shares[radio][from].0 = share;
    }

    /// Whether `radio` senses the frame that `from` begins; what it carries is worth this share of
    /// the time that it takes.
    pub(super) fn senses(&mut self, radio: usize, from: usize, worth: f64) -> bool {
        let (share, prng) = &mut self.shares[radio][from];
        radio != from && *share != Ratio::ZERO && calibrated(*share, worth).happens(prng)
    }
}

/// The probability of sensing a frame with which a radio loses `share` of what the other one's
/// traffic is worth: less for a frame that takes longer than its packets are worth. Radios that
/// sense nearly all of each other's frames sense the short ones too.
fn calibrated(share: Ratio, worth: f64) -> Ratio {
    let sigma = f64::from(share.ppm()) / 1e6;
    let probability = sigma * (worth + (1.0 - worth) * sigma.powi(ALL_SENSED_POWER));
    Ratio::from_ppm((probability * 1e6).round() as u32)
}

/// How near to 1 a coupling must be for short frames to count as long as they last: 0.8 counts
/// them with 0.04 of the difference, 0.95 with half of it.
const ALL_SENSED_POWER: i32 = 15;

/// The share of `from`'s frames that `radio` senses when their antennas are so far apart: the
/// probability that what leaks into its channel exceeds what radios sense.
pub fn estimate(radio: &RadioConfig, from: &RadioConfig, apart_m: f64) -> Ratio {
    let (own, other) = (radio.mode.width.mhz(), from.mode.width.mhz());
    let gap_mhz = (radio.centre_mhz - from.centre_mhz).abs() - (own + other) / 2.0;
    let filtered_db = if gap_mhz < 0.0 { 0.0 } else { MASK_DB };
    let narrower_db = 10.0 * (own / other).min(1.0).log10();
    let path_db = free_space_db(apart_m, from.centre_mhz);
    let leaks_dbm = from.tx_power_dbm - path_db - filtered_db + narrower_db;
    let deviations = (leaks_dbm - SENSES_DBM) / SPREAD_DB;
    // The logistic curve beside the normal distribution: off by 0.01 at most.
    let share = 1.0 / (1.0 + (-1.702 * deviations).exp());
    Ratio::from_ppm((share * 1e6).round() as u32)
}

/// Loss in free space (Friis), in decibels.
pub(super) fn free_space_db(distance_m: f64, frequency_mhz: f64) -> f64 {
    20.0 * distance_m.log10() + 20.0 * frequency_mhz.log10() - 27.55
}

/// What a radio owes: time in which it was on the air itself while it sensed another one.
///
/// It is silent for so long before its next frame, outside of frames that it senses. So a radio
/// loses the whole time of every frame that it senses, whether it was about to send or sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Debt(Duration);

impl Debt {
    pub(super) fn owe(&mut self, time: Duration) {
        self.0 += time;
    }

    pub(super) fn pay(&mut self, time: Duration) {
        self.0 = self.0.saturating_sub(time);
    }

    /// What is left; it counts as paid from now on.
    pub(super) fn left(self) -> Duration {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::radio::tests::near;
    use super::*;

    #[test]
    fn less_leaks_from_afar_at_less_power_and_into_a_narrow_channel() {
        use super::super::mcs::Width;
        let (from, radio) = (near(Width::Mhz80), near(Width::Mhz80));
        let radio = RadioConfig { centre_mhz: 5950.0, ..radio };
        let share = |radio: &RadioConfig, from: &RadioConfig, m| estimate(radio, from, m).ppm();
        let base = share(&radio, &from, 0.5);
        assert!((200_000..500_000).contains(&base), "{base}");
        assert!(share(&radio, &from, 1.0) < base);
        assert!(share(&radio, &RadioConfig { tx_power_dbm: 14.0, ..from }, 0.5) < base);
        let narrow = RadioConfig { centre_mhz: 5950.0, ..near(Width::Mhz20) };
        assert!(share(&narrow, &from, 0.5) < base / 2);
        let overlapping = RadioConfig { centre_mhz: from.centre_mhz, ..radio };
        assert!(share(&overlapping, &from, 0.5) > 999_000);
    }

    #[test]
    fn what_senses_all_senses_short_frames_too() {
        let ppm = |sigma: u32, worth| calibrated(Ratio::from_percent(sigma), worth).ppm();
        assert_eq!([1.0, 0.2].map(|worth| ppm(100, worth)), [1_000_000; 2]);
        assert_eq!((ppm(35, 1.0), ppm(35, 0.2)), (350_000, 70_000));
    }

    #[test]
    fn senses_its_share_of_the_frames_and_never_itself() {
        let mut coupling = Coupling::none(&[1, 2]);
        assert!((0..1000).all(|_| !coupling.senses(0, 1, 1.0)));
        coupling.set(0, 1, Ratio::from_percent(30));
        coupling.set(0, 0, Ratio::ONE);
        for (worth, percent) in [(1.0, 30.0), (0.5, 15.0), (0.1, 3.0)] {
            let sensed = (0..100_000).filter(|_| coupling.senses(0, 1, worth)).count();
            assert!((sensed as f64 / 1000.0 - percent).abs() < 0.5, "{worth}: {sensed}");
        }
        assert!((0..1000).all(|_| !coupling.senses(0, 0, 1.0) && !coupling.senses(1, 0, 1.0)));
    }
}
