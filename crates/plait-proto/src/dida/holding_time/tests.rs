use proptest::prelude::*;

use super::*;

fn conditions(rtt_ms: f64, w_segments: f64, t_e_s: f64) -> Conditions {
    Conditions { rtt_s: rtt_ms / 1e3, w_segments, t_e_s }
}

fn optimum_ms(w_segments: f64, t_e_s: f64) -> f64 {
    optimum(&conditions(100.0, w_segments, t_e_s)) * 1e3
}

/// The optimum at a round-trip time of 100 ms by window and time since the congestion event, in
/// milliseconds; 0 where there is none.
#[test]
fn table_of_the_optimum() {
    let t_e_s = [2.0, 5.0, 10.0, 30.0, 60.0];
    let table = [
        (20.0, [17.8, 36.5, 45.8, 53.6, 55.8]),
        (38.0, [1.4, 24.1, 37.3, 49.9, 53.8]),
        (100.0, [0.0, 12.9, 28.7, 45.6, 51.4]),
        (500.0, [0.0, 0.0, 12.2, 35.7, 45.3]),
    ];
    for (w, row) in table {
        for (t_e, expected) in t_e_s.into_iter().zip(row) {
            let found = optimum_ms(w, t_e);
            assert!((found - expected).abs() < 0.05 + 1e-9, "w {w}, T_E {t_e}: {found}");
        }
    }
}

/// Equation 5 as printed: far above a round trip where the paper measures 50 ms.
#[test]
fn the_printed_sign_is_wrong() {
    let printed = |w, t_e| optimum_as_printed(&conditions(100.0, w, t_e)) * 1e3;
    for (w, t_e, expected) in [(20.0, 2.0, 561.0), (38.0, 2.0, 382.0), (38.0, 30.0, 2963.0)] {
        assert!((printed(w, t_e) - expected).abs() < 0.5, "w {w}, T_E {t_e}: {}", printed(w, t_e));
    }
    // It is minus the other root: the quadratic's roots have this product.
    let c = conditions(100.0, 38.0, 30.0);
    let (a, b) = (c.failure(), c.success());
    let product = (a * c.rtt_s * c.rtt_s - b * c.rtt_s) / a;
    assert!((optimum(&c) * -optimum_as_printed(&c) - product).abs() < 1e-9);
}

/// T_MHT of equation 1 exceeds the very timeout that it is to prevent; the stricter bound does not.
#[test]
fn equation_1_does_not_bound_the_hold() {
    let timeout = Timeout { rto_s: 1.0, srtt_s: 0.1, rttvar_s: 0.01, sample_s: 0.1 };
    assert!((max_holding_time(&timeout) - 6.88).abs() < 1e-9);
    assert!((stricter_bound(&timeout) - 0.89).abs() < 1e-9);
    // Without a floor it collapses to what the sample falls short of the mean.
    let bare = Timeout::with_floor(0.1, 0.01, 0.1, 0.0);
    assert!((bare.rto_s - 0.14).abs() < 1e-9 && max_holding_time(&bare).abs() < 1e-9);
    assert!((Timeout::with_floor(0.1, 0.01, 0.1, 0.2).rto_s - 0.3).abs() < 1e-9);
    // Nor with one, once the deviation has reached it: 4 · 50 ms.
    assert!(max_holding_time(&Timeout::with_floor(0.1, 0.05, 0.1, 0.2)).abs() < 1e-9);
    assert!((stricter_bound(&Timeout::with_floor(0.1, 0.05, 0.1, 0.2)) - 0.15).abs() < 1e-9);
}

#[test]
fn the_optimum_has_a_supremum_and_needs_time() {
    assert!((SUPREMUM_RTT - 0.582).abs() < 0.0005);
    for (rtt_ms, supremum_ms) in [(100.0, 58.2), (20.0, 11.6)] {
        let late = optimum(&conditions(rtt_ms, 38.0, 1e7)) * 1e3;
        assert!((late - supremum_ms).abs() < 0.05, "{late}");
    }
    // T_E below which it is 0, at 100 ms: the deadlock.
    for (w, t_e) in [(38.0, 1.9), (100.0, 3.1), (500.0, 6.3)] {
        assert!(optimum_ms(w, t_e - 0.1) == 0.0 && optimum_ms(w, t_e + 0.1) > 0.0, "w {w}");
    }
    // 50 ms need this ratio.
    let c = conditions(100.0, 38.0, 1.597 * 19.0);
    assert!((c.rho_s() - 1.597).abs() < 1e-9 && (optimum(&c) - 0.05).abs() < 1e-5);
}

/// The net-growth variant: all of the range soon after a loss, then towards 0.58 round trips.
#[test]
fn net_growth_falls_with_time() {
    let best_ms = |t_e| net_growth(&conditions(100.0, 38.0, t_e), 0.6) * 1e3;
    assert!((best_ms(10.0) - 104.0).abs() < 0.5, "{}", best_ms(10.0));
    assert!((best_ms(30.0) - 69.0).abs() < 0.5, "{}", best_ms(30.0));
    assert_eq!((best_ms(0.0), best_ms(1.0)), (600.0, 600.0));
    assert!((best_ms(1e7) - 58.2).abs() < 0.1);
}

#[test]
fn the_range_has_the_width_asked_for() {
    let c = conditions(100.0, 38.0, 30.0);
    let best = optimum(&c);
    let range = operating_range(&c, 0.6, 0.02).expect("an optimum exists");
    assert!((range.high_s - range.low_s - 0.02).abs() < 1e-9);
    assert!(range.low_s < best && best < range.high_s);
    // The rise up to the optimum is steeper than the fall beyond it: less room below.
    assert!(best - range.low_s < range.high_s - best);
    assert_eq!(operating_range(&conditions(100.0, 38.0, 1.0), 0.6, 0.02), None);
    assert_eq!(operating_range(&c, 0.04, 0.02), None, "the optimum lies beyond the bound");
}

/// The claim that ϑ is concave everywhere is wrong, though its only stationary point is a maximum.
#[test]
fn the_gain_is_not_concave() {
    let c = Conditions { rtt_s: 0.1, w_segments: 38.0, t_e_s: 30.0 };
    let at = |t_s: f64| c.gain(t_s, 0.6);
    assert!(at(0.25) + at(0.35) > 2.0 * at(0.30), "convex there");
}

proptest! {
    /// No hold on a fine grid gains more than the optimum.
    #[test]
    fn the_optimum_is_the_best(
        rtt_ms in 5.0_f64..400.0,
        w in 1.0_f64..2000.0,
        t_e in 0.0_f64..120.0,
    ) {
        let c = conditions(rtt_ms, w, t_e);
        let t_mht = 2.0 * c.rtt_s;
        let best = optimum(&c);
        prop_assert!((0.0..c.rtt_s * SUPREMUM_RTT).contains(&best));
        let top = c.gain(best, t_mht);
        for step in 0..=400 {
            let t = t_mht * f64::from(step) / 400.0;
            let gain = c.gain(t, t_mht);
            prop_assert!(best == 0.0 || gain <= top + 1e-9 * top.abs(), "{t} beats {best}");
        }
    }

    #[test]
    fn net_growth_is_the_best(
        rtt_ms in 5.0_f64..400.0,
        w in 1.0_f64..2000.0,
        t_e in 0.0_f64..120.0,
        t_max in 0.01_f64..2.0,
    ) {
        let c = conditions(rtt_ms, w, t_e);
        let best = net_growth(&c, t_max);
        prop_assert!(best > 0.0 && best <= t_max);
        let top = c.net_gain(best, t_max);
        for step in 0..=400 {
            let t = t_max * f64::from(step) / 400.0;
            let gain = c.net_gain(t, t_max);
            prop_assert!(gain <= top + 1e-9 * top.abs().max(1.0), "{t} beats {best}");
        }
    }
}
