//! The records that a run writes as JSON Lines and a report reads again. A record can be understood
//! without the scenario's file.

use std::collections::BTreeMap;

use plait_sim::scenario::check::CheckKind;
use plait_sim::scenario::{CellResult, Check, CheckOutcome, Scenario, Settings};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;

mod samples;
mod scatter;
mod sink;

pub(crate) use samples::{Middle, Samples};
pub(crate) use scatter::{AxisValues, GivenLine, Quantity, ScatterPoint, ScatterRecord, Spread};
pub(crate) use sink::Sink;

/// The name of the simulator as a back-end.
pub(crate) const SIM: &str = "sim";
/// The name of the namespaces as a back-end.
pub(crate) const NETNS: &str = "netns";
/// The name in comparisons: both.
pub(crate) const BOTH: &str = "sim and netns";

/// Ends the name of a series that is the paper's line for it.
pub(crate) const IN_PAPER: &str = ", in the paper";

/// One line of the results.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Record {
    Run(RunRecord),
    Cell(CellRecord),
    Check(CheckRecord),
    Scatter(ScatterRecord),
    Summary(SummaryRecord),
}

/// The program and the scenario text of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) version: String,
    /// The last commit that changed what the lab is built from; ends in
    /// `+changes` when the code differed from it.
    #[serde(default = "unknown")]
    pub(crate) commit: String,
    /// The digest of the scenario and the files it names; empty without a scenario.
    #[serde(default = "unknown")]
    pub(crate) scenario_digest: String,
}

/// For records without it, such as those of a build outside of a checkout.
fn unknown() -> String {
    "unknown".into()
}

impl Origin {
    pub(crate) fn new(scenario_digest: String) -> Self {
        let (version, commit) = (env!("CARGO_PKG_VERSION").into(), env!("PLAIT_COMMIT").into());
        Self { version, commit, scenario_digest }
    }

    /// Version and commit for people.
    pub(crate) fn build(&self) -> String {
        match self.commit.as_str() {
            "unknown" => format!("{} of an unknown commit", self.version),
            commit => format!("{} of commit {commit}", self.version),
        }
    }
}

/// One cell with one seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    pub(crate) scenario: String,
    pub(crate) cell: String,
    pub(crate) settings: Settings,
    pub(crate) seed: u64,
    /// The command that repeats exactly this run.
    pub(crate) command: String,
    /// What the command needs to give the same result.
    #[serde(flatten)]
    pub(crate) origin: Origin,
    /// Time that each sample of a series covers.
    pub(crate) interval_s: f64,
    /// Metrics by full name, without those that have no value.
    pub(crate) metrics: BTreeMap<String, f64>,
    /// Series by full name; an interval without a value, such as the delay of no packet, is null.
    pub(crate) series: BTreeMap<String, Vec<Option<f64>>>,
}

impl RunRecord {
    pub(crate) fn new(
        name: &str,
        scenario: &Scenario,
        result: CellResult,
        command: String,
        origin: Origin,
    ) -> Self {
        let finite = |value: f64| value.is_finite().then_some(value);
        let samples = |values: Vec<f64>| values.into_iter().map(finite).collect();
        let (settings, interval) = (&result.settings, scenario.capture.interval);
        let lines = scenario.paper.lines.iter().map(|line| {
            let drawn = line.samples(settings, interval, scenario.duration);
            (format!("{}{IN_PAPER}", line.series), drawn)
        });
        let lines: Vec<_> = lines.filter(|(_, drawn)| !drawn.is_empty()).collect();
        let captured = result.series.into_iter().map(|(name, values)| (name, samples(values)));
        Self {
            scenario: name.to_owned(),
            cell: result.cell,
            settings: result.settings,
            seed: result.seed,
            command,
            origin,
            interval_s: scenario.capture.interval.as_secs_f64(),
            metrics: result.metrics.into_iter().filter(|(_, value)| value.is_finite()).collect(),
            series: captured.chain(lines).collect(),
        }
    }

    /// The input of the checks: settings and metrics.
    pub(crate) fn result(&self) -> CellResult {
        CellResult {
            cell: self.cell.clone(),
            settings: self.settings.clone(),
            seed: self.seed,
            metrics: self.metrics.clone(),
            series: BTreeMap::new(),
        }
    }
}

/// One cell: its figures over all seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CellRecord {
    pub(crate) scenario: String,
    pub(crate) cell: String,
    pub(crate) settings: Settings,
    pub(crate) seeds: Vec<u64>,
    /// The metrics that the paper or a check mentions.
    pub(crate) figures: Vec<CellFigure>,
}

/// A metric of a cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CellFigure {
    pub(crate) metric: String,
    pub(crate) unit: String,
    /// Median over the seeds.
    pub(crate) median: f64,
    /// Smallest of the seeds.
    pub(crate) low: f64,
    /// Largest of the seeds.
    pub(crate) high: f64,
    /// The paper's value; in a comparison, the simulator's.
    pub(crate) paper: Option<f64>,
    /// Its place in the paper; may be empty.
    pub(crate) paper_source: String,
}

/// A check of a scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct CheckRecord {
    pub(crate) scenario: String,
    #[serde(flatten)]
    pub(crate) check: CheckFigure,
}

/// A check's figure and verdict, in the form of every command's figures and with words.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CheckFigure {
    pub(crate) name: String,
    /// `None` when no cell has the metrics it needs.
    pub(crate) value: Option<f64>,
    pub(crate) unit: String,
    /// Least accepted value.
    pub(crate) low: Option<f64>,
    /// Greatest accepted value.
    pub(crate) high: Option<f64>,
    pub(crate) ok: bool,
    /// Where the expectation comes from.
    pub(crate) source: String,
    /// Whether the run fails when this is not `ok`.
    pub(crate) required: bool,
    /// Whether it has an expectation; otherwise it only informs.
    pub(crate) expected: bool,
    /// What was compared, and where it is worst.
    pub(crate) words: String,
}

impl CheckFigure {
    pub(crate) fn new(check: &Check, outcome: CheckOutcome) -> Self {
        let CheckOutcome { name, value, unit, low, high, ok, required, source, words } = outcome;
        let has_reading = match &check.kind {
            CheckKind::BestFit { expected, .. } => !expected.describe().is_empty(),
            _ => false,
        };
        let expected = low.is_some() || high.is_some() || has_reading;
        Self { name, value, unit, low, high, ok, source, required, expected, words }
    }
}

/// The last record of an experiment, in the form of every command's summary.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SummaryRecord {
    /// The scenario's name.
    pub(crate) name: String,
    pub(crate) checks: Vec<CheckFigure>,
    /// Whether every required check holds.
    pub(crate) ok: bool,
    pub(crate) title: String,
    pub(crate) source: String,
    /// The back-end.
    pub(crate) on: String,
    pub(crate) duration_s: f64,
    /// The sweep's axes in the scenario's order.
    pub(crate) axes: Vec<String>,
    /// The first seed.
    pub(crate) seed: u64,
    /// 0 where nothing is seeded.
    pub(crate) seeds: u64,
    /// Real time that everything took.
    pub(crate) elapsed_s: f64,
    /// The command that repeats everything.
    pub(crate) command: String,
    #[serde(flatten)]
    pub(crate) origin: Origin,
    pub(crate) machine: Machine,
}

impl SummaryRecord {
    pub(crate) fn is_simulated(&self) -> bool {
        self.on == SIM
    }

    pub(crate) fn is_comparison(&self) -> bool {
        self.on == BOTH
    }
}

/// The records of one experiment; its checks are in the summary.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Results {
    pub(crate) runs: Vec<RunRecord>,
    pub(crate) cells: Vec<CellRecord>,
    pub(crate) scatters: Vec<ScatterRecord>,
    pub(crate) summary: SummaryRecord,
}

#[cfg(test)]
mod tests {
    use plait_sim::scenario::sweep::Selector;

    use super::*;
    use crate::figure::Figure;

    fn check(kind: CheckKind) -> CheckFigure {
        let check = Check {
            name: "a".into(),
            kind,
            metric: "loss_percent".into(),
            cells: Selector::default(),
            low: None,
            high: None,
            absent: None,
            required: true,
            source: "s".into(),
            note: String::new(),
        };
        CheckFigure::new(&check, check.evaluate(&[], &[]))
    }

    #[test]
    fn a_reading_is_expected_without_a_band() {
        let best_fit = |axes: &[&str]| {
            let values = axes.iter().map(|axis| ((*axis).to_owned(), vec![1.into()]));
            check(CheckKind::BestFit { by: Vec::new(), expected: Selector::choosing(values) })
        };
        assert!(best_fit(&["k"]).expected);
        assert!(!best_fit(&[]).expected);
        assert!(!check(CheckKind::Band).expected);
    }

    #[test]
    fn a_check_has_the_form_of_every_figure() {
        let figure = serde_json::to_value(Figure::text("a", "b")).unwrap();
        let check = serde_json::to_value(check(CheckKind::Spread)).unwrap();
        for name in figure.as_object().unwrap().keys() {
            assert!(check.get(name).is_some(), "{name} is in {check}");
        }
    }
}
