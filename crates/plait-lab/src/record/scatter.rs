//! A plot of one metric against another, with its points.

use plait_sim::scenario::Settings;
use serde::{Deserialize, Serialize};
use toml::Value;

/// A scenario's `[[scatter]]`, with the points of the cells that were run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ScatterRecord {
    pub(crate) scenario: String,
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) x: Quantity,
    pub(crate) y: Quantity,
    /// Whether there are lines of equal sum.
    pub(crate) sums: bool,
    /// The axis whose values have colours, in the order of these.
    pub(crate) colour: Option<AxisValues>,
    /// The axis whose values have panels.
    pub(crate) panel: Option<AxisValues>,
    /// What distinguishes the hollow points; empty when there are none.
    pub(crate) hollow: Vec<AxisValues>,
    /// What distinguishes the points in the colour of the text; empty when there are none.
    pub(crate) reference: Vec<AxisValues>,
    pub(crate) points: Vec<ScatterPoint>,
    pub(crate) lines: Vec<GivenLine>,
}

/// What an axis of the plot shows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Quantity {
    /// Empty for the words of its metrics.
    pub(crate) label: String,
    /// Added up.
    pub(crate) metrics: Vec<String>,
    pub(crate) unit: String,
}

/// An axis of the sweep, and some of its values.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct AxisValues {
    pub(crate) axis: String,
    pub(crate) values: Vec<Value>,
}

/// A cell's place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ScatterPoint {
    pub(crate) cell: String,
    pub(crate) settings: Settings,
    pub(crate) x: Spread,
    pub(crate) y: Spread,
    /// The paper's values of both.
    pub(crate) paper: Option<(f64, f64)>,
    /// Position of its colour among [`ScatterRecord::colour`]'s values.
    pub(crate) colour: usize,
    /// Position of its panel among [`ScatterRecord::panel`]'s values.
    pub(crate) panel: usize,
    pub(crate) hollow: bool,
    pub(crate) reference: bool,
}

/// A quantity over the seeds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// A line that the scenario gives.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct GivenLine {
    pub(crate) name: String,
    pub(crate) source: String,
    /// Straight between two; a single one is a cross.
    pub(crate) points: Vec<(f64, f64)>,
    /// The colour of the cells that it is for; `None` when they have several.
    pub(crate) colour: Option<usize>,
    /// The panels that it is drawn in.
    pub(crate) panels: Vec<usize>,
}
