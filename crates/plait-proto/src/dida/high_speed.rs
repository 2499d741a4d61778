//! HighSpeed TCP's response (RFC 3649 §5): by how much a window of `w` segments grows per round
//! trip, and which share of it a loss takes away. 000 puts these into its holding time.

/// Up to this window HighSpeed TCP is standard TCP (RFC 3649's Low_Window).
const LOW_WINDOW: f64 = 38.0;
/// The window up to which the response is given (RFC 3649's High_Window).
const HIGH_WINDOW: f64 = 83_000.0;
/// Share that a loss takes away at [`HIGH_WINDOW`] (RFC 3649's High_Decrease).
const HIGH_DECREASE: f64 = 0.1;

/// Growth in segments per round trip, a(w) of RFC 3649 §5: 1 up to 38 segments; beyond 83 000 that
/// of 83 000.
pub fn alpha(w_segments: f64) -> f64 {
    if w_segments <= LOW_WINDOW {
        return 1.0;
    }
    let w = w_segments.min(HIGH_WINDOW);
    let loss_ratio = 0.078 / w.powf(1.2);
    let decrease = beta(w);
    w * w * loss_ratio * 2.0 * decrease / (2.0 - decrease)
}

/// Share of the window that a loss takes away, b(w) of RFC 3649 §5: a half up to 38 segments, a
/// tenth from 83 000 on.
pub fn beta(w_segments: f64) -> f64 {
    if w_segments <= LOW_WINDOW {
        return 0.5;
    }
    let w = w_segments.min(HIGH_WINDOW);
    let position = (w.ln() - LOW_WINDOW.ln()) / (HIGH_WINDOW.ln() - LOW_WINDOW.ln());
    (HIGH_DECREASE - 0.5) * position + 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of RFC 3649's response function, checked against Linux's table of it.
    #[test]
    fn values_of_the_response_function() {
        let known = [
            (1.0, 1.0, 0.5),
            (38.0, 1.0, 0.5),
            (118.0, 2.01, 0.441),
            (221.0, 3.01, 0.408),
            (347.0, 4.01, 0.385),
            (500.0, 5.04, 0.366),
            (1000.0, 7.74, 0.330),
            (5000.0, 19.9, 0.246),
            (10_661.0, 30.0, 0.207),
            (83_000.0, 70.7, 0.10),
            (1e9, 70.7, 0.10),
        ];
        for (w, growth, decrease) in known {
            let (a, b) = (alpha(w), beta(w));
            assert!((a / growth - 1.0).abs() < 0.003, "alpha({w}) = {a}, not {growth}");
            assert!((b - decrease).abs() < 0.0006, "beta({w}) = {b}, not {decrease}");
        }
    }
}
