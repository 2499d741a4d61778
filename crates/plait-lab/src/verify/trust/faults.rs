//! trust.4: every fault found by use and review has a test, and all tests pass.
//!
//! The table is that of `docs/faults-found.md`. A test is named there by its package, its target
//! (`lib`, `bin NAME`, or the name of a test target) and its path.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::super::{Effort, Figure};
use crate::output::Progress;
use crate::process;

const TABLE: &str = include_str!("../../../../../docs/faults-found.md");
const HEADING: &str = "## By use and by review";
/// Expected time of one target's tests, already built.
const EXPECTED: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(1800);
/// The issues' lists: A.1 to A.8 and B.1 to B.7.
const FAULTS: [&str; 15] = [
    "A.1", "A.2", "A.3", "A.4", "A.5", "A.6", "A.7", "A.8", "B.1", "B.2", "B.3", "B.4", "B.5",
    "B.6", "B.7",
];

/// A row of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Row {
    /// The fault's number in the lists.
    number: String,
    target: Target,
    test: String,
    /// The commit at which the test failed.
    failed_at: String,
}

/// A target of `cargo test`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in super::super) struct Target {
    package: String,
    arguments: Vec<String>,
}

pub(in super::super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let rows = rows(TABLE)?;
    let mut targets: BTreeMap<&Target, Vec<&str>> = BTreeMap::new();
    for row in &rows {
        targets.entry(&row.target).or_default().push(&row.test);
    }
    let mut progress = Progress::new(targets.len(), EXPECTED * targets.len() as u32);
    let mut passed = 0;
    for (target, tests) in &targets {
        let _step = progress.step(&format!("tests of {}", target.package), EXPECTED);
        passed += run(target, tests)?;
    }
    let covered = FAULTS.iter().filter(|fault| rows.iter().any(|row| row.number == **fault));
    let seen = rows.iter().filter(|row| is_commit(&row.failed_at)).count();
    let source = "each fault of the lists has a test that passes";
    let all = rows.len() as f64;
    Ok(vec![
        Figure::count("faults of the lists with a row", covered.count() as u64)
            .exactly(FAULTS.len() as f64, source),
        Figure::count("rows of the table", rows.len() as u64),
        Figure::count("rows whose test passes", passed).exactly(all, source),
        Figure::count("rows with the commit at which the test was seen to fail", seen as u64)
            .exactly(all, "a test that cannot fail shows nothing"),
    ])
}

fn rows(document: &str) -> Result<Vec<Row>> {
    let (_, section) = document.split_once(HEADING).context("the table has its heading")?;
    let section = section.split("\n## ").next().unwrap_or(section);
    let lines = section.lines().filter(|line| line.starts_with("| A.") || line.starts_with("| B."));
    lines.map(|line| row(line).with_context(|| format!("the row {line}"))).collect()
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [number, _, test, failed_at] = cells[..] else { bail!("it has not four cells") };
    let words: Vec<&str> = test.trim_matches('`').split(' ').collect();
    let (target, test) = match words[..] {
        [package, "lib", test] => (target(package, &["--lib"]), test),
        [package, "bin", name, test] => (target(package, &["--bin", name]), test),
        [package, name, test] => (target(package, &["--test", name]), test),
        _ => bail!("its test is named in another way than PACKAGE TARGET TEST"),
    };
    Ok(Row { number: number.into(), target, test: test.into(), failed_at: failed_at.into() })
}

pub(in super::super) fn target(package: &str, arguments: &[&str]) -> Target {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Target { package: package.into(), arguments }
}

/// Runs tests of one target; says how many passed.
pub(in super::super) fn run(target: &Target, tests: &[&str]) -> Result<u64> {
    let mut command = Command::new("cargo");
    command.args(["test", "--locked", "--package", &target.package]).args(&target.arguments);
    command.args(["--", "--exact"]).args(tests).env("PLAIT_REQUIRE_NETNS", "1");
    let finished = process::run_any(&mut command, "", LIMIT)?;
    let passed = tests
        .iter()
        .filter(|test| finished.stdout.lines().any(|line| line == format!("test {test} ... ok")));
    let passed = passed.count();
    if passed < tests.len() {
        crate::output::note(&finished.stdout);
    }
    ensure!(!finished.stdout.is_empty(), "cargo test did not run: {}", finished.stderr);
    Ok(passed as u64)
}

/// Seven hexadecimal digits at the beginning.
fn is_commit(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_hexdigit).count();
    digits >= 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_understood_and_every_fault_has_one() {
        let rows = rows(TABLE).unwrap();
        for fault in FAULTS {
            assert!(rows.iter().any(|row| row.number == fault), "{fault} has no row");
        }
        assert!(rows.iter().all(|row| is_commit(&row.failed_at)), "{rows:?}");
    }

    #[test]
    fn a_row_names_package_target_and_test() {
        let read = row("| A.1 | What it was | `plait-cli bin plait a::b` | 79e8af3 |").unwrap();
        assert_eq!(read.target, target("plait-cli", &["--bin", "plait"]));
        assert_eq!((read.number.as_str(), read.test.as_str()), ("A.1", "a::b"));
        let read = row("| B.7 | x | `plait-proto it a::b` | 79e8af3 (`verify x`) |").unwrap();
        assert_eq!(read.target, target("plait-proto", &["--test", "it"]));
        assert!(is_commit(&read.failed_at) && !is_commit("not seen"));
        assert!(row("| A.1 | x | `a::b` | 79e8af3 |").is_err());
        assert!(row("| A.1 | x | 79e8af3 |").is_err());
    }
}
