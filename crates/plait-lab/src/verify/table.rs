//! The table of promises, made from the last run, and the README's rows of it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};
use plait_proto::congestion::ControllerConfig;
use plait_proto::resequencer::ResequencerConfig;
use plait_proto::scheduler::SchedulerConfig;

use super::records::Checked;
use crate::figure::Figure;
use crate::list::Catalogue;

/// The whole table, in the checkout.
const TABLE: &str = "docs/results/promises.md";
/// A dozen of its rows: words with the figure's name in them, value, band.
const README: &str = "README.md";
/// Before the table.
pub(super) const TABLE_BEGIN: &str = "<!-- promises -->";
const END: &str = "<!-- /promises -->";
const HEAD: &str = "\n| promise | measured | band | kept |\n|---|---|---|---|\n";

/// The checkout.
pub(super) fn root() -> Result<PathBuf> {
    let scenarios = Catalogue::find(None)?;
    Ok(scenarios.folder().parent().unwrap_or(Path::new(".")).to_owned())
}

/// The table's text.
pub(super) fn read(root: &Path) -> Result<String> {
    let file = root.join(TABLE);
    fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
}

/// Replaces a promise's rows.
pub(super) fn update(checked: &Checked) -> Result<()> {
    let root = root()?;
    let new = with_rows(&read(&root)?, &checked.promise, &rows(checked))
        .with_context(|| format!("{TABLE} has no {TABLE_BEGIN} and {END}"))?;
    let front = root.join(README);
    let text = fs::read_to_string(&front).with_context(|| format!("cannot read {README}"))?;
    fs::write(root.join(TABLE), new).with_context(|| format!("cannot write {TABLE}"))?;
    fs::write(front, with_figures(&text, &checked.figures))
        .with_context(|| format!("cannot write {README}"))
}

/// The text with the figures' values in the rows that name them.
fn with_figures(text: &str, figures: &[Figure]) -> String {
    let line = |line: &str| {
        let named = figures.iter().find(|it| line.contains(&format!("(`{}`) |", it.name)));
        let words = line.split_once("`) |").map(|(words, _)| words);
        match named.zip(words).filter(|_| line.starts_with("| ")) {
            Some((it, words)) => {
                format!("{words}`) | {} | {} |\n", it.value_text(), it.band_text())
            }
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

/// What tells one state of the bond's defaults from another: what a bond does that is told nothing.
/// Parameters of schedulers that are not the default stand in their scenarios.
pub(super) fn defaults() -> String {
    let SchedulerConfig { algorithm, earliest_delivery, .. } = SchedulerConfig::default();
    // The parameters of controllers that are not the default change nothing.
    let ControllerConfig { algorithm: controller, slow_start, fixed_window_bytes, .. } =
        ControllerConfig::default();
    let controller = format!(
        "ControllerConfig {{ algorithm: {controller:?}, slow_start: {slow_start:?}, \
         fixed_window_bytes: {fixed_window_bytes:?} }}"
    );
    let resequencer = ResequencerConfig::default();
    let all = format!("{algorithm:?} {earliest_delivery:?} {controller} {resequencer:?}");
    let digest = Blake2b::<U32>::digest(all.as_bytes());
    digest.iter().take(4).fold("defaults ".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// A line for each check, and for each throughput or ratio beside it.
fn rows(checked: &Checked) -> Vec<String> {
    let Checked { promise, claim, figures, .. } = checked;
    let short = |figure: &Figure| {
        let prefix = format!("{promise}: ");
        figure.name.strip_prefix(&prefix).unwrap_or(&figure.name).to_owned()
    };
    let (origin, machine) = (checked.origin(), checked.machine.short());
    let defaults = &checked.defaults;
    let mut rows = vec![format!("| **{promise}** {claim} | {origin} | {machine} | {defaults} |")];
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
    use super::super::Effort;
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn no_row_is_older_than_the_defaults_it_speaks_of() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let table = read(&root).expect("the checkout has it");
        let heads = table.lines().filter(|line| line.starts_with("| **"));
        let old = heads.filter(|line| !line.contains(&format!("| {} |", defaults())));
        let old: Vec<&str> = old.map(promise_of).collect();
        assert!(
            old.is_empty(),
            "the bond has the {} now, and these were checked with others: {}; run plait-lab \
             verify --table with their names",
            defaults(),
            old.join(" ")
        );
    }

    #[test]
    fn the_front_page_has_the_figures_of_the_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let table = read(&root).expect("the checkout has it");
        let front = fs::read_to_string(root.join(README)).expect("the checkout has it");
        let named = front.lines().filter_map(|line| line.strip_prefix("| ")?.split_once("(`"));
        let rows: Vec<&str> = named.filter_map(|(_, row)| row.strip_suffix(" |")).collect();
        assert!(rows.len() >= 12, "the front page has {} promises", rows.len());
        for row in rows {
            let whole = format!("| {} | yes |", row.replacen("`) |", " |", 1));
            assert!(table.contains(&whole), "the table does not have {whole}");
        }
    }

    #[test]
    fn a_figure_is_written_where_it_is_named() {
        let figures = [Figure::count("bond.2: lost", 3).exactly(0.0, "s")];
        let text = "a\n| it loses (`bond.2: lost`) | 1 | x |\n| (`bond.2: lost it`) | 1 | x |\n";
        let new =
            "a\n| it loses (`bond.2: lost`) | 3 | just 0 |\n| (`bond.2: lost it`) | 1 | x |\n";
        assert_eq!(with_figures(text, &figures), new);
    }

    #[test]
    fn a_promise_replaces_its_own_lines_only() {
        let readme = |rows: &str| format!("a\n{TABLE_BEGIN}\n{HEAD}{rows}\n{END}\nz\n");
        let figure = |n| vec![Figure::count("bond.2: lost", n).exactly(0.0, "s")];
        let checked = |promise, claim, figures| Checked {
            figures,
            commit: "abc".into(),
            date: "2026-01-31".into(),
            defaults: "d".into(),
            machine: Machine { cpu: "C".into(), cores: 2, kernel: "6".into(), build: "".into() },
            ..Checked::now(promise, claim, Effort::Quick)
        };
        let with = |text: &str, new: Checked| with_rows(text, &new.promise, &rows(&new)).unwrap();
        let once = with(&readme(""), checked("bond.2", "c", figure(1)));
        let other = with(&once, checked("bond.1", "b", Vec::new()));
        let again = with(&other, checked("bond.2", "c", figure(0)));
        let expected = [
            "| **bond.1** b | abc, quick, 2026-01-31 | C, 2 cores, Linux 6 | d |",
            "| **bond.2** c | abc, quick, 2026-01-31 | C, 2 cores, Linux 6 | d |",
            "| bond.2: lost | 0 | just 0 | yes |",
            "",
        ];
        assert_eq!(again, readme(&expected.join("\n")));
    }
}
