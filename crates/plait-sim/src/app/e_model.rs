//! The network's part of the E-model (ITU-T G.107): delay and loss. See
//! `docs/algorithms/e-model.md`.

use crate::scenario::app::Codec;

/// Rating with every network-independent parameter at its default (G.107, clause 7.7).
const R_DEFAULT: f64 = 93.2;

/// Parameters of a codec from G.113 appendix I: its impairment without loss, and its robustness to
/// random packet loss.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Robustness {
    ie: f64,
    bpl: f64,
}

const fn robustness(codec: Codec) -> Robustness {
    match codec {
        Codec::G711 => Robustness { ie: 0.0, bpl: 25.1 },
        Codec::G729 => Robustness { ie: 11.0, bpl: 19.0 },
    }
}

/// The transmission rating R, not below 0, of a call with a one-way mouth-to-ear delay in
/// milliseconds and a share of lost packets from 0 to 1.
pub fn rating(codec: Codec, delay_ms: f64, loss: f64) -> f64 {
    let Robustness { ie, bpl } = robustness(codec);
    let percent = loss * 100.0;
    let equipment = ie + (95.0 - ie) * percent / (percent + bpl);
    (R_DEFAULT - delay_impairment(delay_ms) - equipment).max(0.0)
}

/// Id, by the fit of Cole and Rosenbluth ("Voice over IP performance monitoring", 2001, section 3)
/// to G.107's curves.
fn delay_impairment(delay_ms: f64) -> f64 {
    const KNEE_MS: f64 = 177.3;
    0.024 * delay_ms + 0.11 * (delay_ms - KNEE_MS).max(0.0)
}

/// The mean opinion score of a rating (G.107 annex B): 1 to 4.5.
pub fn mos(rating: f64) -> f64 {
    if rating >= 100.0 {
        return 4.5;
    }
    let r = rating.max(0.0);
    // The cubic dips below 1 for R under 6.5.
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

/// Time before a packet of 20 ms can leave: the packet itself and the codec's look-ahead.
pub fn codec_delay_ms(codec: Codec) -> f64 {
    match codec {
        Codec::G711 => 20.0,
        Codec::G729 => 25.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_known_ratings() {
        // G.107 annex B, table B.1: the limits of user satisfaction.
        for (r, score) in [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            assert!((mos(r) - score).abs() < 0.01, "{r}: {}", mos(r));
        }
        assert_eq!((mos(0.0), mos(3.0), mos(100.0)), (1.0, 1.0, 4.5));
    }

    #[test]
    fn delay_and_loss_cost_what_they_should() {
        assert_eq!(rating(Codec::G711, 0.0, 0.0), R_DEFAULT);
        // Loss equal to the codec's robustness costs half of the distance to 95.
        assert!((rating(Codec::G711, 0.0, 0.251) - (R_DEFAULT - 47.5)).abs() < 1e-9);
        assert!((rating(Codec::G729, 0.0, 0.19) - (R_DEFAULT - 53.0)).abs() < 1e-9);
        assert!((rating(Codec::G711, 100.0, 0.0) - (R_DEFAULT - 2.4)).abs() < 1e-9);
        assert!((rating(Codec::G711, 277.3, 0.0) - (R_DEFAULT - 6.6552 - 11.0)).abs() < 1e-9);
        assert_eq!(rating(Codec::G729, 2_000.0, 0.9), 0.0);
    }
}
