//! The measurement's table, and its JSON document.

use serde::{Deserialize, Serialize};

use super::advice::advice;
use super::figures::{Bound, DirectionFigures, FlowFigures, Latency};
use crate::cli::format::{bytes, duration, milliseconds};
use crate::output::Style;

/// What a measurement may cost, or has cost.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Cost {
    pub(super) seconds: f64,
    /// Over all links, both directions, framing included.
    pub(super) bytes: u64,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// Name of the TUN device.
    pub(super) tun: String,
    /// The peer's key in base64.
    pub(super) peer: String,
    pub(super) announced: Cost,
    pub(super) used: Cost,
    /// Phases that ended because their bytes were over.
    pub(super) cut_phases: usize,
    pub(super) directions: Vec<DirectionFigures>,
    /// The advice, a sentence or two for each direction.
    pub(super) advice: Vec<String>,
}

const HEADINGS: [&str; 7] =
    ["", "alone", "at once", "idle ms", "alone ms", "at once ms", "95 % ms"];

impl Report {
    /// Computes the derived figures, against `clean` measurements where there are any. `whole` says
    /// whether the paths measured are all those of the bond.
    pub(super) fn compare(&mut self, whole: bool, clean: &[DirectionFigures]) {
        let compared = std::mem::take(&mut self.directions).into_iter().map(|one| {
            let clean = clean.iter().find(|clean| clean.direction == one.direction);
            DirectionFigures::new(one.direction, one.paths, one.bond, whole, clean)
        });
        self.directions = compared.collect();
        let several = self.directions.len() > 1;
        for figures in &self.directions {
            let prefix = several.then(|| format!("{}: ", figures.direction.name()));
            let prefix = prefix.unwrap_or_default();
            self.advice.extend(advice(figures).into_iter().map(|text| format!("{prefix}{text}")));
        }
    }

    /// For people.
    pub(super) fn text(&self, style: Style) -> String {
        let mut text = String::new();
        for figures in &self.directions {
            text.push_str(&direction_text(figures, style));
            text.push('\n');
        }
        if self.cut_phases > 0 {
            text.push_str(&format!(
                "{} of the runs ended early because their bytes were over: --max-bytes allows \
                 more\n",
                self.cut_phases
            ));
        }
        text.push_str(&format!(
            "Mbit/s of TCP payload, without framing; took {} of {} and {} of {}\n",
            duration(self.used.seconds as u64),
            duration(self.announced.seconds as u64),
            bytes(self.used.bytes),
            bytes(self.announced.bytes)
        ));
        for sentence in &self.advice {
            text.push_str(&format!("{}\n", style.bold(sentence)));
        }
        text
    }
}

fn direction_text(figures: &DirectionFigures, style: Style) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows[0][0] = figures.direction.name().to_owned();
    let median = |latency: Option<Latency>| milliseconds(latency.map(|one| one.median_us));
    let loaded = |flow: Option<FlowFigures>| median(flow.and_then(|flow| flow.latency));
    let worst = |flow: Option<FlowFigures>| {
        milliseconds(flow.and_then(|flow| flow.latency).map(|latency| latency.p95_us))
    };
    for path in &figures.paths {
        rows.push(vec![
            path.name.clone(),
            mbit(path.individual),
            mbit(path.simultaneous),
            median(path.idle),
            loaded(path.individual),
            loaded(path.simultaneous),
            worst(path.individual),
        ]);
    }
    if let Some(columns) = figures.columns().filter(|_| figures.paths.len() > 1) {
        let sums = [columns.individual_bps, columns.simultaneous_bps].map(mbit_of);
        rows.push([vec!["sum".to_owned()], sums.to_vec()].concat());
    }
    let bonded = Some(figures.bond.bonded);
    let idle = median(figures.bond.idle);
    let (name, none) = ("bond".to_owned(), String::new);
    rows.push(vec![name, mbit(bonded), none(), idle, loaded(bonded), none(), worst(bonded)]);
    let mut text = table(&rows, style);
    if let Some(ratio) = figures.aggregation_ratio {
        text.push_str(&format!("  A_r {ratio:.3}"));
        if let Some(benefit) = figures.aggregation_benefit {
            text.push_str(&format!(", A_b {benefit:.3}"));
        }
        text.push('\n');
    }
    if let Some(overhead) = figures.bond.overhead {
        text.push_str(&format!(
            "  overhead {overhead:.3}: bytes on the links for each inner one\n"
        ));
    }
    for bound in &figures.bounds {
        text.push_str(&bound_text(bound));
    }
    text
}

/// Formats a table; rows may end before the last column.
fn table(rows: &[Vec<String>], style: Style) -> String {
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column: usize| cells(column).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..HEADINGS.len()).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let mut line = format!("  {:<w$}", row[0], w = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            line.push_str(&format!("  {cell:>width$}"));
        }
        let line = line.trim_end();
        text.push_str(&if index == 0 { style.bold(line) } else { line.to_owned() });
        text.push('\n');
    }
    text
}

fn bound_text(bound: &Bound) -> String {
    let Bound { equation, text, value_bps, limit_bps, holds } = bound;
    let verdict = if *holds { "holds" } else { "is exceeded" };
    format!(
        "  ({equation}) {text}: {} of {}, {verdict}\n",
        mbit_of(*value_bps),
        mbit_of(*limit_bps)
    )
}

fn mbit(flow: Option<FlowFigures>) -> String {
    flow.map_or_else(|| "-".into(), |flow| mbit_of(flow.throughput_bps))
}

/// Megabits per second with one decimal.
fn mbit_of(bps: u64) -> String {
    let tenths = (bps + 50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::direction;
    use super::super::plan::Direction;
    use super::*;

    fn latency(median_ms: u64) -> Option<Latency> {
        let median_us = median_ms * 1000 + 250;
        Some(Latency { median_us, p95_us: 2 * median_us, samples: 100 })
    }

    fn report() -> Report {
        let mut figures = direction(&[("dsl", 59.2, 59.0), ("lte", 55.5, 40.0)], 98.0, None);
        figures.paths[0].idle = latency(13);
        for (path, median) in figures.paths.iter_mut().zip([63, 90]) {
            path.individual.as_mut().unwrap().latency = latency(median);
        }
        figures.bond.bonded.latency = latency(70);
        figures.bond.overhead = Some(1.0674);
        let announced = Cost { seconds: 63.0, bytes: 1_000_000_000 };
        let used = Cost { seconds: 55.4, bytes: 412_345_678 };
        let (tun, peer) = ("plait0".into(), "S0VZ".into());
        let directions = vec![figures];
        Report { tun, peer, announced, used, cut_phases: 1, directions, advice: Vec::new() }
    }

    #[test]
    fn the_table_has_a_row_for_each_path_and_the_bond() {
        let mut report = report();
        report.compare(true, &[]);
        assert_eq!(
            report.text(Style::PLAIN),
            "  download  alone  at once  idle ms  alone ms  at once ms  95 % ms
  dsl        59.2     59.0     13.2      63.2           -    126.5
  lte        55.5     40.0        -      90.2           -    180.5
  sum       114.7     99.0
  bond       98.0                 -      70.2                140.5
  A_r 0.854, A_b 0.699
  overhead 1.067: bytes on the links for each inner one
  (5.1) bonded <= individual: 98.0 of 114.7, holds
  (5.2) bonded <= simultaneous: 98.0 of 99.0, holds
  (5.3) simultaneous <= individual: 99.0 of 114.7, holds

1 of the runs ended early because their bytes were over: --max-bytes allows more
Mbit/s of TCP payload, without framing; took 55 s of 1 min 3 s and 412.3 MB of 1.0 GB
the bond gives 85 % of both links together
dsl and lte disturb each other: together they give 86 % of what each gives alone
"
        );
    }

    #[test]
    fn the_document_is_read_again_as_a_clean_measurement() {
        let mut clean = report();
        clean.compare(true, &[]);
        let read: Report = serde_json::from_str(&serde_json::to_string(&clean).unwrap()).unwrap();
        assert_eq!(read.directions[0].columns(), clean.directions[0].columns());
        let mut now = report();
        now.compare(true, &read.directions);
        assert_eq!(now.directions[0].bounds.len(), 7);
        assert!(now.directions[0].bounds.iter().all(|bound| bound.holds));
    }

    #[test]
    fn sentences_say_which_direction_they_are_about_when_there_are_two() {
        let mut both = report();
        let mut up = both.directions[0].clone();
        up.direction = Direction::Up;
        both.directions.push(up);
        both.compare(true, &[]);
        assert_eq!(both.advice.len(), 4);
        assert!(both.advice[2].starts_with("upload: the bond gives 85 %"), "{:?}", both.advice);
    }
}
