//! scenes.2: all promises on one state of the code, as the table of promises has them.

use std::collections::BTreeSet;

use anyhow::Result;

use super::super::table::{self, TABLE_BEGIN};
use super::super::{Effort, Figure, promises};
use crate::record::Origin;

/// What is simulated, and checked whole.
const SIMULATED: [&str; 10] = [
    "sim.1",
    "sim.2",
    "sim.5",
    "dida.1",
    "dida.2",
    "dida.3",
    "dida.4",
    "survive.3",
    "promise.1",
    "trust.1",
];
/// They judge the table themselves.
const JUDGES: [&str; 3] = ["link.6", "scenes.1", "scenes.2"];

/// A figure of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    /// `PROMISE: FIGURE`.
    pub(super) name: String,
    pub(super) band: String,
    pub(super) kept: String,
}

/// Where a promise's figures come from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Head {
    promise: String,
    commit: String,
    effort: String,
}

fn lines(table: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = table.split_once(TABLE_BEGIN).map_or("", |(_, rows)| rows);
    let lines = rows.lines().filter(|line| line.starts_with("| "));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

pub(super) fn rows(table: &str) -> Vec<Row> {
    let own = |cells: Vec<&str>| match cells[..] {
        [name, _, band, kept] if name.contains(": ") && !name.starts_with('*') => {
            Some(Row { name: name.into(), band: band.into(), kept: kept.into() })
        }
        _ => None,
    };
    lines(table).filter_map(own).collect()
}

fn heads(table: &str) -> Vec<Head> {
    let own = |cells: Vec<&str>| {
        let promise = cells.first()?.strip_prefix("**")?.split_once("** ")?.0.to_owned();
        let mut origin = cells.get(1)?.split(", ").map(str::to_owned);
        let (commit, effort) = (origin.next()?, origin.next().unwrap_or_default());
        Some(Head { promise, commit, effort })
    };
    lines(table).filter_map(own).collect()
}

pub(in super::super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let text = table::read(&table::root()?)?;
    let promises: Vec<&str> = promises().map(|(name, _)| name).collect();
    Ok(figures(&text, &promises, &Origin::new(String::new()).commit))
}

/// link.6: the table has whole rows of all of `promise.*`, and rows of all others, of one state of
/// the code.
pub(in super::super) fn check_sums(_effort: Effort) -> Result<Vec<Figure>> {
    let text = table::read(&table::root()?)?;
    let promises: Vec<&str> = promises().map(|(name, _)| name).collect();
    let mut figures = figures(&text, &promises, &Origin::new(String::new()).commit);
    figures.push(sums_not_whole(&text, &promises));
    Ok(figures)
}

fn sums_not_whole(table: &str, promises: &[&str]) -> Figure {
    let heads = heads(table);
    let is_whole =
        |name: &str| heads.iter().any(|head| head.promise == name && head.effort == "whole");
    let sums = promises.iter().filter(|name| name.starts_with("promise."));
    let not_whole = sums.filter(|name| !is_whole(name)).count();
    Figure::none("of promise.* not checked whole", not_whole as u64, "link.6")
}

fn figures(table: &str, promises: &[&str], own_commit: &str) -> Vec<Figure> {
    let all = heads(table);
    let (mut without, mut other, mut not_whole) = (0, 0, 0);
    let mut commits = BTreeSet::new();
    for promise in promises.iter().filter(|name| !JUDGES.contains(name)) {
        let Some(head) = all.iter().find(|head| head.promise == **promise) else {
            without += 1;
            continue;
        };
        commits.insert(head.commit.as_str());
        other += u64::from(head.commit != own_commit);
        not_whole += u64::from(SIMULATED.contains(promise) && head.effort != "whole");
    }
    let rows = rows(table);
    let broken: Vec<&Row> = rows.iter().filter(|row| row.kept == "**no**").collect();
    broken.iter().for_each(|row| crate::output::note(format!("not kept: {}", row.name)));
    let none = |name: &str, value: u64, source: &'static str| Figure::none(name, value, source);
    vec![
        Figure::count("promises", promises.len() as u64),
        none("promises without a row", without, "all promises"),
        Figure::text("commits", commits.into_iter().collect::<Vec<_>>().join(", ")),
        none("promises of another commit than this lab's", other, "on one code commit"),
        none("simulated promises that were not checked whole", not_whole, "whole on the simulator"),
        none("checks that do not hold", broken.len() as u64, "none may fail"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Value;

    const TABLE: &str = "| **bond.9** outside | x, whole, 2026-01-31 | | |\n<!-- promises -->\n
| promise | measured | band | kept |\n|---|---|---|---|
| **bond.1** fast | abc, quick, 2026-01-31 | | |\n| bond.1: A_r | 0.9 | at least 0.900 | yes |
| **promise.1** sums | abd, quick, 2026-01-31 | | |\n| promise.1: x | 1 | just 2 | **no** |\n";

    #[test]
    fn what_is_wrong_with_the_table_is_counted() {
        let found = figures(TABLE, &["bond.1", "promise.1", "bond.2", "scenes.2"], "abc");
        let values: Vec<f64> = found
            .iter()
            .filter_map(|figure| match figure.value {
                Value::Number(number) => Some(number),
                Value::Text(_) => None,
            })
            .collect();
        assert_eq!(values, [4.0, 1.0, 1.0, 1.0, 1.0], "{found:?}");
        assert_eq!(rows(TABLE).len(), 2);
        let sums = |promises: &[&str]| sums_not_whole(TABLE, promises).ok;
        assert!(!sums(&["bond.1", "promise.1"]), "it is quick");
        assert!(sums(&["bond.1"]) && !sums(&["promise.2"]), "it has no row");
        let whole = TABLE.replace("abd, quick", "abd, whole");
        assert!(sums_not_whole(&whole, &["promise.1"]).ok);
    }
}
