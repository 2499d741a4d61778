//! Tables of rungs and their results.

use std::collections::BTreeSet;

use super::Missing;
use super::score::{Rung, Score, joined, known};
use super::sum::{Sum, broken};
use crate::cli::On;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::output::Align::{Left, Right};
use crate::output::Table;
use crate::policy::Policy;

/// The kind of figures of a back-end, to distinguish them from the other's.
pub(super) fn kind(on: On) -> &'static str {
    match on {
        On::Sim => "simulated, in virtual time",
        On::Netns => "measured, in network namespaces",
    }
}

/// The source of the figures, like [`Machine::sentence`].
pub(super) fn machine(on: On, machine: &Machine) -> String {
    let verb = match on {
        On::Sim => "Computed",
        On::Netns => "Measured",
    };
    machine.sentence_of(verb)
}

/// The rungs without results.
pub(super) fn list(rungs: &[Rung]) -> Vec<String> {
    let columns = ["rung", "stands for", "links: Mbit/s down/up, round trip", "load", "", ""];
    let mut table = Table::new(&columns.map(|column| (column, Left)));
    for rung in rungs {
        let mark =
            |is_marked: bool, word: &str| if is_marked { word.to_owned() } else { String::new() };
        table.row([
            rung.rung.clone(),
            rung.stands_for.clone(),
            rung.links.join(" + "),
            rung.load.clone(),
            mark(rung.steady, "steady"),
            mark(rung.on_netns, "netns"),
        ]);
    }
    table.lines()
}

/// Every rung with one policy, in the given order.
pub(super) fn scores(scores: &[&Score]) -> Vec<String> {
    let mut table = Table::of_numbers(&[
        "rung", "A_r", "A_b", "of best", "Mbit/s", "seeds", "alone", "ping", "base", "gap ms",
        "shares %",
    ]);
    for score in scores {
        table.row([score.rung.clone()].into_iter().chain(figures(score)));
    }
    table.lines()
}

/// A rung's figures in the order of the columns: A_r first.
pub(super) fn figures(score: &Score) -> [String; 10] {
    let (low, high) = score.mbit_range;
    [
        format!("{:.3}", score.ratio()),
        format!("{:.2}", score.benefit()),
        format!("{:.3}", score.against_best()),
        format!("{:.1}", score.mbit),
        format!("{low:.1}..{high:.1}"),
        joined(&score.alone_mbit, 1),
        known(score.ping_ms, 0),
        score.base_rtt_ms.to_string(),
        format!("{:.0}", score.standstill_ms),
        joined(&score.shares, 0),
    ]
}

/// Requested scenarios without figures, and why.
pub(super) fn missing(missing: &[Missing]) -> Vec<String> {
    missing.iter().map(|Missing { rung, why }| format!("{rung}: not run: {why}")).collect()
}

/// Several policies side by side: `rungs` has one score for each policy.
pub(super) fn side_by_side(policies: &[Policy], rungs: &[Vec<Score>]) -> Vec<String> {
    let mut lines: Vec<String> =
        (1..).zip(policies).map(|(at, policy)| format!("{at}: {policy}")).collect();
    let mut columns = vec!["rung".to_owned()];
    for name in ["A_r", "of best", "ping", "gap ms"] {
        columns.extend((1..=policies.len()).map(|at| format!("{name} {at}")));
    }
    let mut table = Table::of_numbers(&columns);
    for scores in rungs {
        let column = |of: &dyn Fn(&Score) -> String| scores.iter().map(of).collect::<Vec<_>>();
        let name = scores.first().map_or("", |score| score.rung.as_str());
        let cells = [
            vec![name.to_owned()],
            column(&|score| format!("{:.3}", score.ratio())),
            column(&|score| format!("{:.3}", score.against_best())),
            column(&|score| known(score.ping_ms, 0)),
            column(&|score| format!("{:.0}", score.standstill_ms)),
        ];
        table.row(cells.concat());
    }
    lines.extend(table.lines());
    lines
}

/// The result of each kind of rungs, and of all together.
pub(super) fn sums(scores: &[&Score]) -> Vec<String> {
    let ratios = ["kind", "rungs", "A_r lowest", "median", "mean", "of best lowest", "kept"];
    let times = ["ping above base, median", "most", "gap most"];
    let mut table = Table::of_numbers(&[&ratios[..], &times].concat());
    let mut row = |name: &str, scores: &[&Score]| {
        if scores.is_empty() {
            return;
        }
        let sum = Sum::of(scores);
        table.row([
            name.to_owned(),
            sum.rungs.to_string(),
            format!("{:.3}", sum.ratio_min),
            format!("{:.3}", sum.ratio_median),
            format!("{:.3}", sum.ratio_mean),
            format!("{:.3}", sum.against_best_min),
            sum.kept.to_string(),
            known(sum.ping_above_base_median_ms, 0),
            known(sum.ping_above_base_max_ms, 0),
            format!("{:.0}", sum.standstill_max_ms),
        ]);
    };
    let kind_of =
        |score: &Score| score.rung.split_once('/').map_or("", |(kind, _)| kind).to_owned();
    let kinds: BTreeSet<String> = scores.iter().map(|score| kind_of(score)).collect();
    for kind in kinds {
        let of_kind = |score: &&&Score| kind_of(score) == kind;
        let own: Vec<&Score> = scores.iter().filter(of_kind).copied().collect();
        row(&kind, &own);
    }
    let steady: Vec<&Score> = scores.iter().filter(|score| score.steady).copied().collect();
    row("steady", &steady);
    row("all", scores);
    table.lines()
}

/// The promise in words, with the rungs that break it and their measurements.
pub(super) fn promise(scores: &[&Score]) -> Vec<String> {
    let sum = Sum::of(scores);
    let mut lines = vec![format!(
        "The bond had at least 0.98 of its best link's rate on {} of {} rungs ({:.1} %), and in \
         the median {:.2} of the links' sum.",
        sum.kept,
        sum.rungs,
        100.0 * sum.kept_share(),
        sum.ratio_median,
    )];
    if let Some((ratio, rung)) = &sum.steady_lowest {
        lines.push(format!(
            "A_r of {} steady rungs: lowest {ratio:.3} ({rung}), {} below 0.95",
            sum.steady, sum.steady_below
        ));
    }
    for (score, what) in broken(scores) {
        lines.push(format!("  {}: {what}: {}", score.rung, score.reason()));
    }
    lines
}

/// The set's checks.
pub(super) fn checks(figures: &[Figure]) -> Vec<String> {
    let mut table = Table::new(&[("check", Left), ("value", Right), ("band", Left), ("", Left)]);
    for figure in figures {
        let (value, band) = (figure.value_text(), figure.band_text());
        table.row([figure.name.to_string(), value, band, figure.verdict().to_owned()]);
    }
    if figures.is_empty() { Vec::new() } else { table.lines() }
}
