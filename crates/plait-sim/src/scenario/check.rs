//! `[paper]` and `[[check]]`: the paper's figures, and what a run must show.

use plait_toml::{Bounds, Problem, Section};

use super::error::no_such;
use super::metric::{self, Owners};
use super::sweep::{Axis, Selector, read_selector};
use each::Each;

mod each;
mod evaluate;
mod paper;

pub(super) use evaluate::median;
pub use evaluate::{CellResult, CheckOutcome};
pub(super) use paper::read as read_paper;
pub use paper::{Paper, PaperLine, PaperValue};

/// Something that a run must show, or a figure for the report.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// Names the check; a promise of the project such as `sim.1` may have several.
    pub name: String,
    /// What is computed.
    pub kind: CheckKind,
    /// From which metric.
    pub metric: String,
    /// Over which cells.
    pub cells: Selector,
    /// Least accepted figure; `None` for no bound.
    pub low: Option<f64>,
    /// Greatest accepted figure; `None` for no bound.
    pub high: Option<f64>,
    /// What a run without the metric counts as; `None`: it is left out.
    pub absent: Option<f64>,
    /// Whether the run fails when the check does; otherwise the report only mentions it.
    pub required: bool,
    /// Where the expectation comes from.
    pub source: String,
    /// A remark for the report; may be empty.
    pub note: String,
}

/// What a check computes. In a cell with several seeds, a metric is their median.
#[derive(Clone, PartialEq, Debug)]
pub enum CheckKind {
    /// `band`: the metric itself, in every cell; the figure is the one furthest out of the band.
    Band,
    /// `worst`: as `band`, for every single run instead of a cell's median.
    Worst,
    /// `rms-ln-error`: root mean square, over the cells, of ln(run / paper).
    RmsLnError,
    /// `ordering`: the metric falls or rises along an axis. The figure counts neighbouring cells
    /// that do not; cells that differ in another axis are not compared.
    Ordering {
        /// Falls instead of rises.
        falling: bool,
        /// The axis.
        along: String,
        /// A step the wrong way counts only if larger than this share of the value.
        slack: f64,
    },
    /// `larger`: the smallest value of the cells over the largest of some other cells.
    Larger {
        /// The other cells.
        than: Selector,
    },
    /// `ratio`: the median over the cells, over the median of another metric or of other cells.
    Ratio {
        /// The other metric.
        to_metric: String,
        /// The other cells.
        to: Selector,
    },
    /// `best`: the largest value of the cells over the largest of some other cells.
    Best {
        /// The other cells.
        to: Selector,
    },
    /// `lead`: the smallest quotient of a cell and its counterpart among the other cells, which
    /// differs from it only in the axes that choose these.
    Lead {
        /// The other cells.
        to: Selector,
    },
    /// `spread`: the largest value of the cells over the smallest.
    Spread,
    /// `share`: the share of the cells whose value is at least this.
    Share {
        /// The least accepted value of a cell.
        at_least: f64,
    },
    /// `best-fit`: splits the cells by some axes and finds the combination with the smallest rms
    /// ln-error against the paper, which is the figure. The check fails when another combination
    /// than the expected one fits best.
    BestFit {
        /// The axes that distinguish the readings.
        by: Vec<String>,
        /// The reading that should fit best; any when it chooses every cell.
        expected: Selector,
    },
    /// `hold-out`: as `best-fit`, but the reading is chosen by the paper's values without some of
    /// them, and judged by those: their rms ln-error over all choices of what is left out.
    HoldOut {
        /// The axes that distinguish the readings.
        by: Vec<String>,
        /// How many of the paper's values are left out at a time.
        left_out: usize,
    },
    /// `fit-end`: an end of the interval along an axis whose rms ln-error against the paper is at
    /// most so many times the best one's.
    FitEnd {
        /// The axis, of numbers.
        along: String,
        /// Times the best rms ln-error.
        within: f64,
        /// The largest allowed value instead of the smallest.
        largest: bool,
    },
}

/// The context for reading `[paper]` and the checks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) axes: &'a [Axis],
    pub(super) owners: Owners<'a>,
}

/// The choices of so many values are not too many to try.
const LEFT_OUT_MAX: i64 = 4;

/// Any number that a figure may be.
pub(super) const ANY: Bounds = Bounds::new(-1e12, 1e12, "");

/// Reads every check; those that are wrong are left out.
pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    around: Around<'_>,
    paper: &[PaperValue],
) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for section in sections {
        checks.extend(read(section, around, paper));
    }
    checks
}

/// The repetitions of a check; none when it is wrong.
fn read(mut section: Section<'_>, around: Around<'_>, paper: &[PaperValue]) -> Vec<Check> {
    let name = section.required_text("name", "name = \"loss-falls\"");
    let metric = metric::read(&mut section, "metric", around.owners);
    let source = section.required_text("source", "source = \"002 section 5.2\"");
    let cells = read_selector(&mut section, "where", around.axes);
    let each = Each::read(&mut section, around.axes, (name.as_deref(), &cells));
    let kind = read_kind(&mut section, around, metric.as_deref());
    let against_paper = matches!(
        kind,
        Some(
            CheckKind::RmsLnError
                | CheckKind::BestFit { .. }
                | CheckKind::HoldOut { .. }
                | CheckKind::FitEnd { .. }
        )
    );
    if let Some(metric) = metric.as_ref().filter(|_| against_paper)
        && !paper.iter().any(|value| value.metric == *metric)
        && section.is_right_so_far()
    {
        let text = format!("the paper has no value of {metric}");
        section.problem("metric", Problem::new(text, "add [[paper.value]] sections"));
    }
    let (low_default, high_default) = match kind {
        Some(CheckKind::Ordering { .. }) => (None, Some(0.0)),
        Some(CheckKind::Larger { .. }) => (Some(1.0), None),
        _ => (None, None),
    };
    let low = section.number("low", ANY).or(low_default);
    let high = section.number("high", ANY).or(high_default);
    if let Some((low, high)) = low.zip(high).filter(|(low, high)| low > high) {
        let text = format!("the band from {low} to {high} is empty");
        section.problem("low", Problem::new(text, "let low be at most high"));
    }
    let absent = section.number("absent", ANY);
    let required = section.boolean("required").unwrap_or(true);
    let note = section.text("note").unwrap_or_default();
    section.finish();
    let (Some(name), Some(kind), Some(metric), Some(source)) = (name, kind, metric, source) else {
        return Vec::new();
    };
    each.repeat(Check { name, kind, metric, cells, low, high, absent, required, source, note })
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Band,
    Worst,
    RmsLnError,
    Ordering,
    Larger,
    Ratio,
    Best,
    Lead,
    Spread,
    Share,
    BestFit,
    HoldOut,
    FitEnd,
}

const KINDS: [(&str, Kind); 13] = [
    ("band", Kind::Band),
    ("worst", Kind::Worst),
    ("rms-ln-error", Kind::RmsLnError),
    ("ordering", Kind::Ordering),
    ("larger", Kind::Larger),
    ("ratio", Kind::Ratio),
    ("best", Kind::Best),
    ("lead", Kind::Lead),
    ("spread", Kind::Spread),
    ("share", Kind::Share),
    ("best-fit", Kind::BestFit),
    ("hold-out", Kind::HoldOut),
    ("fit-end", Kind::FitEnd),
];

/// Options that belong to some kinds: kinds, options, words for the message.
const OF_KIND: &[(&[Kind], &[&str], &str)] = &[
    (&[Kind::Ordering], &["order", "slack"], "kind = \"ordering\""),
    (&[Kind::Ordering, Kind::FitEnd], &["along"], "kind = \"ordering\" or \"fit-end\""),
    (&[Kind::Larger], &["than"], "kind = \"larger\""),
    (&[Kind::Ratio], &["to_metric"], "kind = \"ratio\""),
    (&[Kind::Ratio, Kind::Best, Kind::Lead], &["to"], "kind = \"ratio\", \"best\" or \"lead\""),
    (&[Kind::BestFit, Kind::HoldOut], &["by"], "kind = \"best-fit\" or \"hold-out\""),
    (&[Kind::BestFit], &["expected"], "kind = \"best-fit\""),
    (&[Kind::HoldOut], &["left_out"], "kind = \"hold-out\""),
    (&[Kind::FitEnd], &["within", "end"], "kind = \"fit-end\""),
    (&[Kind::Share], &["at_least"], "kind = \"share\""),
];

fn read_kind(
    section: &mut Section<'_>,
    around: Around<'_>,
    metric: Option<&str>,
) -> Option<CheckKind> {
    let given = section.holds_any(&["kind"]);
    let kind = section.choice("kind", &KINDS).or((!given).then_some(Kind::Band));
    for (owners, options, belongs_to) in OF_KIND {
        section.know(options);
        if kind.is_some_and(|kind| !owners.contains(&kind)) {
            let name = KINDS.iter().find(|(_, known)| Some(*known) == kind).map(|(name, _)| *name);
            let setting = format!("kind = \"{}\"", name.expect("every kind has a name"));
            section.no_effect(options, &setting, belongs_to);
        }
    }
    Some(match kind? {
        Kind::Band => CheckKind::Band,
        Kind::Worst => CheckKind::Worst,
        Kind::RmsLnError => CheckKind::RmsLnError,
        Kind::Spread => CheckKind::Spread,
        Kind::Share => {
            if !section.holds_any(&["at_least"]) {
                section.missing("at_least", "at_least = 0.98");
            }
            CheckKind::Share { at_least: section.number("at_least", ANY)? }
        }
        Kind::Ordering => read_ordering(section, around.axes)?,
        Kind::Larger => {
            if !section.holds_any(&["than"]) {
                section.missing("than", "than = { k = [0.5, 1.0] }");
            }
            CheckKind::Larger { than: read_selector(section, "than", around.axes) }
        }
        Kind::Best => CheckKind::Best { to: read_others(section, around.axes) },
        Kind::Lead => CheckKind::Lead { to: read_others(section, around.axes) },
        Kind::Ratio => {
            if !section.holds_any(&["to_metric", "to"]) {
                section.missing("to", "to = { k = 0.1 }");
            }
            let to_metric = if section.holds_any(&["to_metric"]) {
                metric::read(section, "to_metric", around.owners)?
            } else {
                metric?.to_owned()
            };
            let key = if section.holds_any(&["to"]) { "to" } else { "where" };
            CheckKind::Ratio { to_metric, to: read_selector(section, key, around.axes) }
        }
        Kind::BestFit => CheckKind::BestFit {
            by: read_axes(section, "by", around.axes),
            expected: read_selector(section, "expected", around.axes),
        },
        Kind::HoldOut => CheckKind::HoldOut {
            by: read_axes(section, "by", around.axes),
            left_out: section.integer("left_out", (1, LEFT_OUT_MAX), "").unwrap_or(1),
        },
        Kind::FitEnd => read_fit_end(section, around.axes)?,
    })
}

fn read_fit_end(section: &mut Section<'_>, axes: &[Axis]) -> Option<CheckKind> {
    let examples = [
        ("along", "along = \"queue_ms\""),
        ("within", "within = 1.24"),
        ("end", "end = \"largest\""),
    ];
    for (key, example) in examples {
        if !section.holds_any(&[key]) {
            section.missing(key, example);
        }
    }
    let along = read_axes(section, "along", axes).into_iter().next();
    let within = section.number("within", Bounds::new(1.0, 100.0, "times"));
    let largest = section.choice("end", &[("smallest", false), ("largest", true)]);
    Some(CheckKind::FitEnd { along: along?, within: within?, largest: largest? })
}

fn read_others(section: &mut Section<'_>, axes: &[Axis]) -> Selector {
    if !section.holds_any(&["to"]) {
        section.missing("to", "to = { k = 0.1 }");
    }
    read_selector(section, "to", axes)
}

fn read_ordering(section: &mut Section<'_>, axes: &[Axis]) -> Option<CheckKind> {
    for (key, example) in [("order", "order = \"falling\""), ("along", "along = \"t_dwd_ms\"")] {
        if !section.holds_any(&[key]) {
            section.missing(key, example);
        }
    }
    let falling = section.choice("order", &[("falling", true), ("rising", false)]);
    let along = read_axes(section, "along", axes).into_iter().next();
    let slack = section.number("slack", Bounds::new(0.0, 1.0, "")).unwrap_or(0.0);
    Some(CheckKind::Ordering { falling: falling?, along: along?, slack })
}

fn read_axes(section: &mut Section<'_>, key: &'static str, axes: &[Axis]) -> Vec<String> {
    let mut named = Vec::new();
    for (name, place) in section.texts(key) {
        if axes.iter().any(|axis| axis.name == name) {
            named.push(name);
        } else {
            let known = axes.iter().map(|axis| axis.name.clone()).collect();
            let problem = no_such("axis of a [[sweep]]", &name, known);
            section.problem_at(&place, key, problem);
        }
    }
    named
}
