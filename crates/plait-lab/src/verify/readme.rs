//! The README's table of promises, made from the last run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::figure::Figure;

const BEGIN: &str = "<!-- promises -->";
const END: &str = "<!-- /promises -->";
const HEAD: &str = "\n| promise | measured | band | kept |\n|---|---|---|---|\n";

/// Replaces a promise's lines in the file's table.
pub(super) fn update(file: &Path, promise: &str, claim: &str, figures: &[Figure]) -> Result<()> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let new = with_rows(&text, promise, &rows(promise, claim, figures))
        .with_context(|| format!("{} has no {BEGIN} and {END}", file.display()))?;
    fs::write(file, new).with_context(|| format!("cannot write {}", file.display()))
}

/// A line for each check, and for each throughput or ratio beside it.
fn rows(promise: &str, claim: &str, figures: &[Figure]) -> Vec<String> {
    let short = |figure: &Figure| {
        let prefix = format!("{promise}: ");
        figure.name.strip_prefix(&prefix).unwrap_or(&figure.name).to_owned()
    };
    let mut rows = vec![format!("| **{promise}** {claim} | | | |")];
    let is_shown = |figure: &&Figure| {
        figure.is_check() || matches!(figure.unit.as_ref(), "Mbit/s" | "ratio" | "%")
    };
    for figure in figures.iter().filter(is_shown) {
        let kept = match (figure.is_check(), figure.ok) {
            (false, _) => "",
            (true, true) => "yes",
            (true, false) => "**no**",
        };
        let (name, value, band) = (short(figure), figure.value_text(), figure.band_text());
        rows.push(format!("| {promise}: {name} | {value} | {band} | {kept} |"));
    }
    rows
}

fn with_rows(text: &str, promise: &str, rows: &[String]) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    let mine = [format!("| **{promise}** "), format!("| {promise}: ")];
    let mut lines: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| promise |"))
        .filter(|line| !mine.iter().any(|start| line.starts_with(start.as_str())))
        .collect();
    lines.extend(rows.iter().map(String::as_str));
    // Stable: the lines of one promise stay in their order.
    lines.sort_by_key(|line| promise_of(line).to_owned());
    let body = lines.join("\n");
    Some(format!("{before}{BEGIN}\n{HEAD}{body}\n\n{END}{after}"))
}

fn promise_of(line: &str) -> &str {
    let name = line.trim_start_matches(['|', ' ', '*']);
    name.split([' ', ':', '*']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_replaces_its_own_lines_only() {
        let readme = |rows: &str| format!("a\n{BEGIN}\n{HEAD}{rows}\n{END}\nz\n");
        let figure = |n| [Figure::count("bond.2: lost", n).exactly(0.0, "s")];
        let once = with_rows(&readme(""), "bond.2", &rows("bond.2", "c", &figure(1))).unwrap();
        let other = with_rows(&once, "bond.1", &rows("bond.1", "b", &[])).unwrap();
        let again = with_rows(&other, "bond.2", &rows("bond.2", "c", &figure(0))).unwrap();
        let expected = [
            "| **bond.1** b | | | |",
            "| **bond.2** c | | | |",
            "| bond.2: lost | 0 | just 0 | yes |",
            "",
        ];
        assert_eq!(again, readme(&expected.join("\n")));
    }
}
