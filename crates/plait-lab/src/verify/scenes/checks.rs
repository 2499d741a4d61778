//! scenes.1: no check was lost or weakened when the experiments became scenario files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use blake2::digest::consts::U32;
use blake2::{Blake2b, Digest as _};

use super::super::table;
use super::super::{Effort, Figure};
use super::rows::{Row, rows};

/// Every check before, its name today, and the golden tables with their digests.
const BEFORE: &str = "docs/decisions/0014-checks.md";
const SOURCE: &str = "scenes.1: no check was deleted";
const DIGEST_CHARS: usize = 16;

/// A band; without a bound it is infinite.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Band {
    low: f64,
    high: f64,
}

impl Band {
    /// Reads what [`Figure::band_text`] writes.
    fn read(text: &str) -> Option<Self> {
        let numbers = text.split(' ').filter_map(|word| word.parse().ok());
        let numbers: Vec<f64> = numbers.collect();
        let (low, high) = match (text.split(' ').next()?, &numbers[..]) {
            ("at", [bound]) if text.starts_with("at least") => (*bound, f64::INFINITY),
            ("at", [bound]) => (f64::NEG_INFINITY, *bound),
            ("just", [value]) => (*value, *value),
            (_, [low, high]) => (*low, *high),
            _ => return None,
        };
        Some(Self { low, high })
    }

    fn is_no_weaker_than(self, other: Self) -> bool {
        self.low >= other.low && self.high <= other.high
    }
}

/// How a check of before stands today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Kept,
    Weaker,
    Missing,
}

/// `before` is a row of the table: name, band, names today, why another unit is as strict.
fn standing(before: &[&str], today: &[Row]) -> Option<Standing> {
    let [name, band, now, why] = before else { return None };
    let band = Band::read(band)?;
    let names = if now.is_empty() { name } else { now };
    let mut standing = Standing::Kept;
    for name in names.split("; ") {
        // What was counted at run time may follow a name.
        let found =
            today.iter().find(|row| row.name == name || row.name.starts_with(&name_of(name)));
        let Some(own) = found.and_then(|row| Band::read(&row.band)) else {
            return Some(Standing::Missing);
        };
        if why.is_empty() && !own.is_no_weaker_than(band) {
            standing = Standing::Weaker;
        }
    }
    Some(standing)
}

fn name_of(name: &str) -> String {
    format!("{name}, ")
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

pub(in super::super) fn check(_effort: Effort) -> Result<Vec<Figure>> {
    let root = table::root()?;
    let before = root.join(BEFORE);
    let before =
        fs::read_to_string(&before).with_context(|| format!("cannot read {}", before.display()))?;
    let today = rows(&table::read(&root)?);
    let mut all = Vec::new();
    for line in before.lines().filter(|line| line.starts_with("| ")) {
        let cells = cells(line);
        if let Some(standing) = standing(&cells, &today) {
            all.push((cells[0], standing));
        }
    }
    let count = |wanted| {
        let named = all.iter().filter(|(_, standing)| *standing == wanted);
        let names: Vec<&str> = named.map(|(name, _)| *name).collect();
        names.iter().for_each(|name| crate::output::note(format!("{wanted:?}: {name}")));
        names.len() as u64
    };
    let mut figures = vec![
        Figure::count("checks before", all.len() as u64),
        Figure::count(
            "checks today",
            today.iter().filter(|row| !row.band.is_empty()).count() as u64,
        ),
        Figure::none("missing", count(Standing::Missing), SOURCE),
        Figure::none("weaker", count(Standing::Weaker), SOURCE),
    ];
    figures.extend(golden(&root, &before)?);
    Ok(figures)
}

/// Golden tables of simulated results: the same bytes as before, or a reason.
fn golden(root: &Path, before: &str) -> Result<Vec<Figure>> {
    let (mut same, mut told, mut others) = (0, 0, 0);
    for line in before.lines().filter(|line| line.starts_with("| `crates/")) {
        let [file, digest, why] = cells(line)[..] else { continue };
        let path = root.join(file.trim_matches('`'));
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        match digest_of(&text) == digest {
            true => same += 1,
            false if !why.is_empty() => told += 1,
            false => {
                crate::output::note(format!("{file} is not as it was"));
                others += 1;
            }
        }
    }
    Ok(vec![
        Figure::count("golden tables with the same bytes as before", same),
        Figure::count("golden tables that changed for a reason told", told),
        Figure::count("golden tables that changed without one", others)
            .exactly(0.0, "the same simulated results for the same seeds"),
    ])
}

fn digest_of(bytes: &[u8]) -> String {
    let digest = Blake2b::<U32>::digest(bytes);
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text[..DIGEST_CHARS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, band: &str) -> Row {
        Row { name: name.into(), band: band.into(), kept: "yes".into() }
    }

    #[test]
    fn bands_are_read_and_compared() {
        let band = |text| Band::read(text).unwrap();
        assert_eq!(band("0.970 to 1.030"), Band { low: 0.97, high: 1.03 });
        assert!(band("at least 0.900").is_no_weaker_than(band("at least 0.900")));
        assert!(!band("at least 0.890").is_no_weaker_than(band("at least 0.900")));
        assert!(band("just 0").is_no_weaker_than(band("at most 1.00 %")));
        assert!(!band("at most 5 ms").is_no_weaker_than(band("just 4")));
        assert_eq!(Band::read("band"), None);
    }

    #[test]
    fn a_check_is_found_by_its_name_today_and_judged_by_its_band() {
        let today = [
            row("a.1: new", "at most 2"),
            row("a.2: same", "at least 1"),
            row("a.3: x, of 3", "just 1"),
        ];
        let of = |before: [&str; 4]| standing(&before, &today);
        assert_eq!(of(["a.1: old", "at most 2", "a.1: new", ""]), Some(Standing::Kept));
        assert_eq!(of(["a.1: old", "at most 1", "a.1: new", ""]), Some(Standing::Weaker));
        assert_eq!(of(["a.1: old", "at most 1", "a.1: new", "another unit"]), Some(Standing::Kept));
        assert_eq!(of(["a.2: same", "at least 1", "", ""]), Some(Standing::Kept));
        assert_eq!(of(["a.3: x", "just 1", "", ""]), Some(Standing::Kept));
        assert_eq!(of(["a.1: old", "at most 2", "", ""]), Some(Standing::Missing));
        assert_eq!(of(["before", "band", "now", "why"]), None, "the table's head");
    }
}
