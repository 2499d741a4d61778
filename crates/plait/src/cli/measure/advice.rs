//! One sentence or two about what the figures mean.

use super::figures::{DirectionFigures, Latency};

/// Below this share of their individual throughputs, paths disturb each other.
const DISTURBED: f64 = 0.9;
/// The bond may be this much below the best path before it is called slower.
const NEVER_SLOWER: f64 = 0.98;
/// Share of a path that plait's framing costs: a path that adds less cannot pay for it.
const FRAMING: f64 = 0.04;
/// Above this share of its paths' sum the links must have changed during the measurement.
const CHANGED: f64 = 1.05;
/// Latency that load may add without being mentioned, in microseconds.
const QUEUE_US: u64 = 100_000;

/// The advice, the most important first.
pub(super) fn advice(figures: &DirectionFigures) -> Vec<String> {
    let first = of_the_bond(figures);
    let second = disturbed(figures)
        .or_else(|| too_small(figures))
        .or_else(|| changed(figures))
        .or_else(|| queue(figures));
    // The advice on a slow bond names the path already.
    first.into_iter().chain(second).collect()
}

fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

/// How much of its paths' throughput the bond gives.
fn of_the_bond(figures: &DirectionFigures) -> Option<String> {
    let ratio = figures.aggregation_ratio?;
    let bonded = figures.bond.bonded.throughput_bps as f64;
    let (best, best_bps) = extreme(figures, |one, other| one > other)?;
    let (weakest, _) = extreme(figures, |one, other| one < other)?;
    let count = figures.paths.len();
    if count > 1 && bonded < NEVER_SLOWER * best_bps as f64 {
        let share = percent(bonded / best_bps as f64);
        return Some(format!(
            "the bond gives {share} of {best} alone: path {weakest} adds less than it costs: set \
             it standby"
        ));
    }
    Some(match count {
        1 => format!("the bond gives {} of its only path", percent(ratio)),
        2 => format!("the bond gives {} of both links together", percent(ratio)),
        _ => format!("the bond gives {} of its {count} links together", percent(ratio)),
    })
}

fn disturbed(figures: &DirectionFigures) -> Option<String> {
    let columns = figures.columns().filter(|_| figures.aggregation_ratio.is_some())?;
    let share = columns.simultaneous_bps as f64 / columns.individual_bps.max(1) as f64;
    if share >= DISTURBED {
        return None;
    }
    let names: Vec<&str> = figures.paths.iter().map(|path| path.name.as_str()).collect();
    let (last, others) = names.split_last()?;
    Some(format!(
        "{} and {last} disturb each other: together they give {} of what each gives alone",
        others.join(", "),
        percent(share)
    ))
}

fn too_small(figures: &DirectionFigures) -> Option<String> {
    let (best, best_bps) = extreme(figures, |one, other| one > other)?;
    let (weakest, least_bps) = extreme(figures, |one, other| one < other)?;
    let share = least_bps as f64 / best_bps.max(1) as f64;
    (best != weakest && share < FRAMING).then(|| {
        format!(
            "path {weakest} has {share:.1} % of {best}, less than the framing costs: set it \
             standby",
            share = share * 100.0
        )
    })
}

fn changed(figures: &DirectionFigures) -> Option<String> {
    let broken = figures.bounds.iter().any(|bound| !bound.holds);
    let above = figures.aggregation_ratio.is_some_and(|ratio| ratio > CHANGED);
    (broken || above).then(|| {
        "the links changed from run to run: measure longer (--seconds), or at another hour"
            .to_owned()
    })
}

fn queue(figures: &DirectionFigures) -> Option<String> {
    let loaded = figures.bond.bonded.latency?.median_us;
    let idle = figures.bond.idle.as_ref().map(|idle: &Latency| idle.median_us)?;
    (loaded > idle + QUEUE_US).then(|| {
        format!(
            "under load the bond answers after {} ms, idle after {}: a queue fills behind the \
             gateway",
            loaded / 1000,
            idle / 1000
        )
    })
}

/// The path that is best, or weakest, on its own; of equal ones the first.
fn extreme(figures: &DirectionFigures, beats: fn(u64, u64) -> bool) -> Option<(&str, u64)> {
    let paths = figures.paths.iter();
    let mut alone =
        paths.filter_map(|path| Some((path.name.as_str(), path.individual?.throughput_bps)));
    let first = alone.next()?;
    Some(alone.fold(first, |best, one| if beats(one.1, best.1) { one } else { best }))
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::direction;
    use super::*;

    #[test]
    fn a_good_bond_is_said_to_be_good() {
        let figures = direction(&[("dsl", 60.0, 60.0), ("lte", 40.0, 40.0)], 94.0, None);
        assert_eq!(advice(&figures), ["the bond gives 94 % of both links together"]);
        let three = [("a", 50.0, 50.0), ("b", 30.0, 30.0), ("c", 20.0, 20.0)];
        let figures = direction(&three, 97.0, None);
        assert_eq!(advice(&figures), ["the bond gives 97 % of its 3 links together"]);
        let figures = direction(&[("dsl", 50.0, 0.0)], 50.0, None);
        assert_eq!(advice(&figures), ["the bond gives 100 % of its only path"]);
    }

    #[test]
    fn a_bond_below_its_best_path_is_told_which_path_to_leave() {
        let figures = direction(&[("dsl", 50.0, 50.0), ("lte", 10.0, 10.0)], 45.0, None);
        assert_eq!(
            advice(&figures),
            ["the bond gives 90 % of dsl alone: path lte adds less than it costs: set it standby"]
        );
    }

    #[test]
    fn paths_that_disturb_each_other_are_named() {
        let figures = direction(&[("lte", 60.0, 40.0), ("wlan", 40.0, 30.0)], 69.0, None);
        assert_eq!(
            advice(&figures),
            [
                "the bond gives 69 % of both links together",
                "lte and wlan disturb each other: together they give 70 % of what each gives alone",
            ]
        );
    }

    #[test]
    fn a_path_that_cannot_pay_for_the_framing_is_named() {
        let figures = direction(&[("fibre", 500.0, 500.0), ("lte", 10.0, 10.0)], 505.0, None);
        assert_eq!(
            advice(&figures)[1],
            "path lte has 2.0 % of fibre, less than the framing costs: set it standby"
        );
    }

    #[test]
    fn links_that_changed_and_queues_get_a_word() {
        let figures = direction(&[("dsl", 50.0, 50.0), ("lte", 40.0, 40.0)], 100.0, None);
        assert!(advice(&figures)[1].starts_with("the links changed from run to run"));
        let mut figures = direction(&[("dsl", 50.0, 50.0), ("lte", 40.0, 40.0)], 88.0, None);
        let latency = |median_us| Some(Latency { median_us, p95_us: median_us, samples: 20 });
        figures.bond.idle = latency(20_000);
        figures.bond.bonded.latency = latency(120_000);
        assert_eq!(advice(&figures).len(), 1, "not more than 100 ms");
        figures.bond.bonded.latency = latency(350_000);
        assert!(advice(&figures)[1].starts_with("under load the bond answers after 350 ms, idle"));
    }

    #[test]
    fn nothing_is_said_of_what_was_not_compared() {
        let mut figures = direction(&[("dsl", 50.0, 50.0), ("lte", 40.0, 40.0)], 88.0, None);
        figures.paths.clear();
        figures.aggregation_ratio = None;
        assert_eq!(advice(&figures), Vec::<String>::new());
    }
}
