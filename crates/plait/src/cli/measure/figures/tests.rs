use super::*;

pub(in super::super) fn flow(mbit: f64) -> FlowFigures {
    FlowFigures { throughput_bps: (mbit * 1e6) as u64, latency: None, seconds: 7.0 }
}

/// Paths with their individual and simultaneous rates, and the bond's, in Mbit/s.
pub(in super::super) fn direction(
    paths: &[(&str, f64, f64)],
    bonded: f64,
    clean: Option<&DirectionFigures>,
) -> DirectionFigures {
    let path = |(name, individual, simultaneous): &(&str, f64, f64)| PathFigures {
        name: (*name).to_owned(),
        idle: None,
        individual: Some(flow(*individual)),
        simultaneous: (paths.len() > 1).then(|| flow(*simultaneous)),
    };
    let bond = BondFigures { idle: None, bonded: flow(bonded), overhead: None };
    let paths = paths.iter().map(path).collect();
    DirectionFigures::new(Direction::Down, paths, bond, true, clean)
}

fn close(value: Option<f64>, expected: f64) {
    let value = value.expect("there is a figure");
    assert!((value - expected).abs() < 0.0005, "{value} for {expected}");
}

/// 003's table 4.1, WhiteHaul over 20 and 80 MHz: (58.6 + 234.4) / (61.9 + 256.0) and
/// (293.0 − 256.0) / 61.9.
#[test]
fn ratio_and_benefit_are_those_of_003() {
    let clean = direction(&[("wh1", 61.9, 61.9), ("wh2", 256.0, 256.0)], 293.0, None);
    close(clean.aggregation_ratio, 0.9217);
    close(clean.aggregation_benefit, 0.5977);
    // Below the best path the benefit is a share of the best path: (240.2 − 256.0) / 256.0.
    let worse = direction(&[("wh1", 61.9, 61.9), ("wh2", 256.0, 256.0)], 240.2, None);
    close(worse.aggregation_ratio, 0.7556);
    close(worse.aggregation_benefit, -0.0617);
    let alone = direction(&[("dsl", 50.0, 0.0)], 50.0, None);
    assert_eq!((alone.aggregation_ratio, alone.aggregation_benefit), (Some(1.0), None));
}

fn texts(figures: &DirectionFigures) -> Vec<String> {
    let text = |bound: &Bound| {
        let mbit = |bps: u64| bps as f64 / 1e6;
        let Bound { equation, value_bps, limit_bps, holds, .. } = bound;
        format!("{equation} {} <= {} {holds}", mbit(*value_bps), mbit(*limit_bps))
    };
    figures.bounds.iter().map(text).collect()
}

/// 003's table 5.1, WhiteHaul over twice 80 MHz: sums 490, 407 and 396 when clean; 327, 265 and 248
/// with interference.
#[test]
fn bounds_hold_for_the_sums_of_003() {
    let clean = direction(&[("wh1", 229.0, 149.0), ("wh2", 261.0, 258.0)], 396.0, None);
    assert_eq!(
        texts(&clean),
        ["5.1 396 <= 490 true", "5.2 396 <= 407 true", "5.3 407 <= 490 true"]
    );
    let now = direction(&[("wh1", 215.0, 164.0), ("wh2", 112.0, 101.0)], 248.0, Some(&clean));
    assert_eq!(
        texts(&now),
        [
            "5.1 248 <= 327 true",
            "5.2 248 <= 265 true",
            "5.3 248 <= 265 true",
            "5.3 265 <= 327 true",
            "5.3 327 <= 490 true",
            "5.3 265 <= 407 true",
            "5.3 248 <= 396 true",
        ]
    );
}

#[test]
fn the_clean_bond_bounds_as_well_and_noise_breaks_nothing() {
    let clean = direction(&[("a", 60.0, 60.0), ("b", 50.0, 50.0)], 80.0, None);
    let now = direction(&[("a", 60.0, 60.0), ("b", 50.0, 50.0)], 101.0, Some(&clean));
    assert_eq!(texts(&now)[..2], ["5.1 101 <= 80 false", "5.2 101 <= 80 false"]);
    let noisy = direction(&[("a", 60.0, 61.0), ("b", 40.0, 40.0)], 103.0, None);
    assert_eq!(
        texts(&noisy),
        ["5.1 103 <= 100 false", "5.2 103 <= 101 true", "5.3 101 <= 100 true"]
    );
}

#[test]
fn nothing_is_compared_when_paths_were_left_out() {
    let whole = direction(&[("a", 60.0, 60.0), ("b", 50.0, 50.0)], 100.0, None);
    let DirectionFigures { paths, bond, .. } = whole.clone();
    let part = DirectionFigures::new(Direction::Down, paths, bond, false, None);
    assert_eq!((part.aggregation_ratio, part.bounds.len()), (None, 0));
    let mut missing = whole;
    missing.paths[1].individual = None;
    assert_eq!(missing.columns(), None);
}

#[test]
fn latencies_are_ranks() {
    let latency = Latency::of((1..=100).rev().collect()).expect("a hundred samples");
    assert_eq!((latency.median_us, latency.p95_us, latency.samples), (51, 96, 100));
    assert_eq!(Latency::of(vec![7]).map(|one| (one.median_us, one.p95_us)), Some((7, 7)));
    assert_eq!(Latency::of(Vec::new()), None);
}
