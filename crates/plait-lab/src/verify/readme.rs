//! The README's table of promises, made from the last run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::records::Checked;
use crate::figure::Figure;

/// Before the table.
pub(super) const TABLE_BEGIN: &str = "<!-- promises -->";
const END: &str = "<!-- /promises -->";
const HEAD: &str = "\n| promise | measured | band | kept |\n|---|---|---|---|\n";

/// Replaces a promise's lines in the file's table.
pub(super) fn update(file: &Path, checked: &Checked) -> Result<()> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let new = with_rows(&text, &checked.promise, &rows(checked))
        .with_context(|| format!("{} has no {TABLE_BEGIN} and {END}", file.display()))?;
    fs::write(file, new).with_context(|| format!("cannot write {}", file.display()))
}

/// A line for each check, and for each throughput or ratio beside it.
fn rows(checked: &Checked) -> Vec<String> {
    let Checked { promise, claim, figures, .. } = checked;
    let short = |figure: &Figure| {
        let prefix = format!("{promise}: ");
        figure.name.strip_prefix(&prefix).unwrap_or(&figure.name).to_owned()
    };
    let mut rows = vec![format!("| **{promise}** {claim} | {} | | |", checked.origin())];
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
    let (before, rest) = text.split_once(TABLE_BEGIN)?;
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
    Some(format!("{before}{TABLE_BEGIN}\n{HEAD}{body}\n\n{END}{after}"))
}

fn promise_of(line: &str) -> &str {
    let name = line.trim_start_matches(['|', ' ', '*']);
    name.split([' ', ':', '*']).next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::records::Thoroughness;
    use super::*;

    #[test]
    fn a_promise_replaces_its_own_lines_only() {
        let readme = |rows: &str| format!("a\n{TABLE_BEGIN}\n{HEAD}{rows}\n{END}\nz\n");
        let figure = |n| vec![Figure::count("bond.2: lost", n).exactly(0.0, "s")];
        let checked = |promise, claim, figures| Checked {
            figures,
            commit: "abc".into(),
            date: "2026-01-31".into(),
            ..Checked::now(promise, claim, Thoroughness::Quick)
        };
        let with = |text: &str, new: Checked| with_rows(text, &new.promise, &rows(&new)).unwrap();
        let once = with(&readme(""), checked("bond.2", "c", figure(1)));
        let other = with(&once, checked("bond.1", "b", Vec::new()));
        let again = with(&other, checked("bond.2", "c", figure(0)));
        let expected = [
            "| **bond.1** b | abc, quick, 2026-01-31 | | |",
            "| **bond.2** c | abc, quick, 2026-01-31 | | |",
            "| bond.2: lost | 0 | just 0 | yes |",
            "",
        ];
        assert_eq!(again, readme(&expected.join("\n")));
    }
}
