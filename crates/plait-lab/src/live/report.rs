//! What several runs of a stream come to, in words and as a table.

use serde::Serialize;

use super::frames::Fate;
use crate::output::Table;

/// Median, least and most of several runs; runs without a value are left out.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Middle {
    pub(super) median: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Middle {
    fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        Some(Self { median, least: *values.first()?, most: *values.last()? })
    }

    fn text(self, decimals: usize) -> String {
        let Self { median, least, most } = self;
        if (most - least).abs() < 0.5 * 10_f64.powi(-(decimals as i32)) {
            return format!("{median:.decimals$}");
        }
        format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
    }
}

/// One run of a stream.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct RunRow {
    pub(super) case: String,
    pub(super) protocol: &'static str,
    pub(super) by: &'static str,
    pub(super) run: u64,
    #[serde(flatten)]
    pub(super) fate: Fate,
    /// How often the server took the stream again.
    pub(super) reconnects: u64,
    /// Whether all that waited at the encoder's end was sent within the time for it.
    pub(super) ended: bool,
}

/// All runs of a stream.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct StreamRow {
    case: String,
    protocol: &'static str,
    by: &'static str,
    runs: usize,
    behind_median_s: Option<Middle>,
    behind_max_s: Option<Middle>,
    behind_last_s: Option<Middle>,
    silence_max_s: Option<Middle>,
    never_came_percent: Option<Middle>,
    damaged_percent: Option<Middle>,
    reconnects: Option<Middle>,
}

impl StreamRow {
    /// `None` of no runs.
    pub(super) fn of(rows: &[RunRow]) -> Option<Self> {
        let first = rows.first()?;
        let fate = |value: fn(&Fate) -> Option<f64>| {
            Middle::of(rows.iter().filter_map(|row| value(&row.fate)))
        };
        Some(Self {
            case: first.case.clone(),
            protocol: first.protocol,
            by: first.by,
            runs: rows.len(),
            behind_median_s: fate(|fate| fate.behind_median_s),
            behind_max_s: fate(|fate| fate.behind_max_s),
            behind_last_s: fate(|fate| fate.behind_last_s),
            silence_max_s: fate(|fate| Some(fate.silence_max_s)),
            never_came_percent: fate(|fate| Some(percent(fate.never_came, fate.frames))),
            damaged_percent: fate(|fate| Some(percent(fate.damaged, fate.frames))),
            reconnects: Middle::of(rows.iter().map(|row| row.reconnects as f64)),
        })
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

pub(super) fn table(rows: &[StreamRow]) -> Table {
    let mut table = Table::of_numbers(&[
        "",
        "behind, median s",
        "at most s",
        "at the end s",
        "silent at most s",
        "never came %",
        "damaged %",
        "reconnects",
    ]);
    let text = |middle: Option<Middle>, decimals| {
        middle.map_or_else(|| "none came".to_owned(), |middle| middle.text(decimals))
    };
    for row in rows {
        table.row([
            format!("{}, {}, {}", row.case, row.protocol, row.by),
            text(row.behind_median_s, 2),
            text(row.behind_max_s, 2),
            text(row.behind_last_s, 2),
            text(row.silence_max_s, 2),
            text(row.never_came_percent, 1),
            text(row.damaged_percent, 1),
            text(row.reconnects, 0),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(run: u64, behind: Option<f64>, never_came: u64) -> RunRow {
        RunRow {
            case: "cut".into(),
            protocol: "RTMP",
            by: "bond",
            run,
            fate: Fate {
                frames: 200,
                never_came,
                damaged: 0,
                behind_median_s: behind,
                behind_max_s: behind,
                behind_last_s: behind,
                silence_max_s: 0.04,
            },
            reconnects: 1,
            ended: true,
        }
    }

    #[test]
    fn runs_come_to_their_median_with_the_spread() {
        let rows = [row(1, Some(0.5), 0), row(2, Some(0.1), 3), row(3, Some(0.2), 1)];
        let row = StreamRow::of(&rows).unwrap();
        let behind = row.behind_median_s.unwrap();
        assert_eq!((behind.median, behind.least, behind.most), (0.2, 0.1, 0.5));
        let line = table(&[row]).lines()[2].clone();
        for part in ["cut, RTMP, bond", "0.20 (0.10 to 0.50)", "0.04", "0.5 (0.0 to 1.5)"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert_eq!(StreamRow::of(&[]), None);
    }

    #[test]
    fn a_stream_that_never_came_says_so() {
        let row = StreamRow::of(&[row(1, None, 200)]).unwrap();
        assert_eq!(row.behind_max_s, None);
        assert!(table(&[row]).lines()[2].contains("none came"));
    }
}
