//! A viewer's score of a video that was played (004, Eq. 1). See
//! `docs/algorithms/viewer-score.md`.

/// What a viewer met while a clip played.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Viewing {
    /// From the wish to see the clip to its first picture, seconds.
    pub initial_load_s: f64,
    /// Times that it stopped for want of data after it had begun.
    pub stalls: u32,
    /// How long it stood still in all of them together, seconds.
    pub stalled_s: f64,
    /// Length of the clip, seconds; above 0.
    pub clip_s: f64,
}

/// How bad each of Eq. 1's three factors is: 1, 2 or 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// Of the initial load.
    pub initial_load: u8,
    /// Of the stalls per second of the clip.
    pub frequency: u8,
    /// Of the mean length of a stall.
    pub length: u8,
}

impl Viewing {
    /// Stalls per second of the clip.
    pub fn frequency_hz(&self) -> f64 {
        f64::from(self.stalls) / self.clip_s
    }

    /// Mean length of a stall, seconds; 0 without one.
    pub fn mean_stall_s(&self) -> f64 {
        if self.stalls == 0 { 0.0 } else { self.stalled_s / f64::from(self.stalls) }
    }

    /// The levels of 004's three factors; each upper bound belongs to its level.
    pub fn levels(&self) -> Levels {
        Levels {
            initial_load: level(self.initial_load_s, 1.0, 5.0),
            frequency: level(self.frequency_hz(), 0.02, 0.15),
            length: level(self.mean_stall_s(), 5.0, 10.0),
        }
    }

    /// The mean opinion score, 1.48 to 3.31 (004, Eq. 1).
    pub fn mos(&self) -> f64 {
        let Levels { initial_load, frequency, length } = self.levels();
        4.23 - 0.0672 * f64::from(initial_load)
            - 0.742 * f64::from(frequency)
            - 0.106 * f64::from(length)
    }
}

fn level(value: f64, low: f64, middle: f64) -> u8 {
    if value <= low {
        1
    } else if value <= middle {
        2
    } else {
        3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases that the measuring application's own formula is held against, too.
    const VECTORS: &str = include_str!("viewer_score/vectors.txt");

    #[test]
    fn scores_are_those_of_the_vectors() {
        let mut cases = 0;
        for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
            let values: Vec<f64> = line
                .split_whitespace()
                .map(|word| word.parse().expect("a vector is a line of numbers"))
                .collect();
            let [initial_load_s, stalls, stalled_s, clip_s, mos] = values[..] else {
                panic!("a vector has five numbers: {line}");
            };
            let viewing = Viewing { initial_load_s, stalls: stalls as u32, stalled_s, clip_s };
            assert!((viewing.mos() - mos).abs() < 5e-5, "{line}: {}", viewing.mos());
            cases += 1;
        }
        assert_eq!(cases, 12);
    }
}
