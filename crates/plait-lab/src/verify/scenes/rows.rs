//! scenes.2: all promises on one state of the code, as the README's table has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::super::readme::TABLE_BEGIN;
use super::super::{Effort, Figure, promises};
use crate::list::Catalogue;
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

/// A figure of the README's table.
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

/// The checkout.
pub(super) fn root() -> Result<PathBuf> {
    let scenarios = Catalogue::find(None)?;
    Ok(scenarios.folder().parent().unwrap_or(Path::new(".")).to_owned())
}

pub(super) fn readme(root: &Path) -> Result<String> {
    let file = root.join("README.md");
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

fn lines(readme: &str) -> impl Iterator<Item = Vec<&str>> {
    let table = readme.split_once(TABLE_BEGIN).map_or("", |(_, table)| table);
    let lines = table.lines().filter(|line| line.starts_with("| "));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

pub(super) fn rows(readme: &str) -> Vec<Row> {
    let own = |cells: Vec<&str>| match cells[..] {
        [name, _, band, kept] if name.contains(": ") && !name.starts_with('*') => {
            Some(Row { name: name.into(), band: band.into(), kept: kept.into() })
        }
        _ => None,
    };
    lines(readme).filter_map(own).collect()
}

fn heads(readme: &str) -> Vec<Head> {
    let own = |cells: Vec<&str>| {
        let promise = cells.first()?.strip_prefix("**")?.split_once("** ")?.0.to_owned();
        let mut origin = cells.get(1)?.split(", ").map(str::to_owned);
        let (commit, effort) = (origin.next()?, origin.next().unwrap_or_default());
        Some(Head { promise, commit, effort })
    };
    lines(readme).filter_map(own).collect()
}

pub(in super::super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let readme = readme(&root()?)?;
    let promises: Vec<&str> = promises().map(|(name, _)| name).collect();
    Ok(figures(&readme, &promises, &Origin::new(String::new()).commit))
}

/// link.6: the README has whole rows of all of `promise.*`, and rows of all others, of one state of
/// the code.
pub(in super::super) fn check_sums(_effort: Effort) -> Result<Vec<Figure>> {
    let readme = readme(&root()?)?;
    let promises: Vec<&str> = promises().map(|(name, _)| name).collect();
    let mut figures = figures(&readme, &promises, &Origin::new(String::new()).commit);
    figures.push(sums_not_whole(&readme, &promises));
    Ok(figures)
}

fn sums_not_whole(readme: &str, promises: &[&str]) -> Figure {
    let heads = heads(readme);
    let is_whole =
        |name: &str| heads.iter().any(|head| head.promise == name && head.effort == "whole");
    let sums = promises.iter().filter(|name| name.starts_with("promise."));
    let not_whole = sums.filter(|name| !is_whole(name)).count();
    Figure::count("of promise.* not checked whole", not_whole as u64)
        .exactly(0.0, "issue 18, line 6")
}

fn figures(readme: &str, promises: &[&str], own_commit: &str) -> Vec<Figure> {
    let all = heads(readme);
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
    let rows = rows(readme);
    let broken: Vec<&Row> = rows.iter().filter(|row| row.kept == "**no**").collect();
    broken.iter().for_each(|row| crate::output::note(format!("not kept: {}", row.name)));
    let none = |name: &str, value: u64, source: &'static str| {
        Figure::count(name, value).exactly(0.0, source)
    };
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

    const README: &str = "| **bond.9** outside | x, whole, 2026-01-31 | | |\n<!-- promises -->\n
| promise | measured | band | kept |\n|---|---|---|---|
| **bond.1** fast | abc, quick, 2026-01-31 | | |\n| bond.1: A_r | 0.9 | at least 0.900 | yes |
| **promise.1** sums | abd, quick, 2026-01-31 | | |\n| promise.1: x | 1 | just 2 | **no** |\n";

    #[test]
    fn what_is_wrong_with_the_table_is_counted() {
        let found = figures(README, &["bond.1", "promise.1", "bond.2", "scenes.2"], "abc");
        let values: Vec<f64> = found
            .iter()
            .filter_map(|figure| match figure.value {
                Value::Number(number) => Some(number),
                Value::Text(_) => None,
            })
            .collect();
        assert_eq!(values, [4.0, 1.0, 1.0, 1.0, 1.0], "{found:?}");
        assert_eq!(rows(README).len(), 2);
        let sums = |promises: &[&str]| sums_not_whole(README, promises).ok;
        assert!(!sums(&["bond.1", "promise.1"]), "it is quick");
        assert!(sums(&["bond.1"]) && !sums(&["promise.2"]), "it has no row");
        let whole = README.replace("abd, quick", "abd, whole");
        assert!(sums_not_whole(&whole, &["promise.1"]).ok);
    }
}
