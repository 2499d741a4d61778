//! `[[figure]]`: a metric by another name, or as a share of its value in other cells. Known only
//! when all cells have run, so it is not among a single run's metrics.

use plait_toml::{Problem, Section};

use super::check::CellResult;
use super::metric::{self, METRICS, Owners, unit_of};
use super::sweep::{Axis, Selector, read_selector};

/// A metric by another name, or over another one.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its name among the metrics.
    pub name: String,
    /// The metric.
    pub metric: String,
    /// The cells that have it.
    pub cells: Selector,
    /// The divisor; `None` for the metric as it is.
    pub over: Option<Over>,
}

/// What a figure compares with.
#[derive(Clone, PartialEq, Debug)]
pub struct Over {
    /// The metrics.
    pub metrics: Vec<String>,
    /// The cells that they come from: those alike in all axes that it does not name, their median
    /// with the same seed. `None`: the cell itself.
    pub cells: Option<Selector>,
    /// Whether the figure is 003's A_b over these as what each link carries, not the quotient of
    /// the metric and their sum.
    pub is_benefit: bool,
}

impl Over {
    /// The figure of a value over these; `None` over nothing.
    fn of(&self, value: f64, others: &[f64]) -> Option<f64> {
        let sum: f64 = others.iter().sum();
        if !self.is_benefit {
            return (sum != 0.0).then(|| value / sum);
        }
        let best = others.iter().copied().fold(0.0, f64::max);
        let room = if value >= best { sum - best } else { best };
        (room > 0.0).then(|| (value - best) / room)
    }
}

impl Figure {
    /// The figure of one result among all; `None` where its cell is not chosen or lacks the metric,
    /// or no cell to compare with was run.
    fn value(&self, result: &CellResult, all: &[CellResult]) -> Option<f64> {
        let value = *result.metrics.get(&self.metric)?;
        if !self.cells.chooses(&result.settings) {
            return None;
        }
        let Some(over) = &self.over else { return Some(value) };
        let alike = |cells: &Selector, other: &CellResult| {
            other.seed == result.seed
                && cells.chooses(&other.settings)
                && cells.others(&other.settings) == cells.others(&result.settings)
        };
        let other = |metric: &String| match &over.cells {
            None => result.metrics.get(metric).copied(),
            Some(cells) => {
                let others = all.iter().filter(|other| alike(cells, other));
                let values = others.filter_map(|other| other.metrics.get(metric).copied());
                super::check::median(values.collect())
            }
        };
        let others: Option<Vec<f64>> = over.metrics.iter().map(other).collect();
        let factor = if unit_of(&self.name) == "%" { 100.0 } else { 1.0 };
        over.of(value, &others?).map(|figure| figure * factor)
    }
}

/// Adds figures to the metrics of every result.
pub(super) fn add(figures: &[Figure], results: &mut [CellResult]) {
    for figure in figures {
        let values: Vec<Option<f64>> =
            results.iter().map(|result| figure.value(result, results)).collect();
        for (result, value) in results.iter_mut().zip(values) {
            result.metrics.extend(value.map(|value| (figure.name.clone(), value)));
        }
    }
}

/// Reads every figure; those that are wrong are left out. Adds all their names to `names`, which
/// holds those of the measures.
pub(super) fn read_all(
    sections: Vec<Section<'_>>,
    axes: &[Axis],
    owners: Owners<'_>,
    names: &mut Vec<String>,
) -> Vec<Figure> {
    let measures = names.clone();
    let owners = Owners { measures: &measures, ..owners };
    let mut figures = Vec::new();
    for mut section in sections {
        let name = section.text("name").unwrap_or_default();
        let taken = METRICS.iter().any(|(known, _)| *known == name);
        if taken || (!name.is_empty() && names.contains(&name)) {
            let text = format!("another metric is called \"{name}\" too");
            section.problem("name", Problem::new(text, "give the figure its own name"));
        }
        names.push(name);
        figures.extend(read(section, axes, owners));
    }
    figures
}

fn read(mut section: Section<'_>, axes: &[Axis], owners: Owners<'_>) -> Option<Figure> {
    let name = section.required_text("name", "name = \"goal_1_percent\"");
    let metric = metric::read(&mut section, "metric", owners);
    let to_metrics = metric::read_all(&mut section, "to_metric", owners);
    let to = section.holds_any(&["to"]).then(|| read_selector(&mut section, "to", axes));
    section.know(&["to_metric", "to"]);
    let is_benefit = section.boolean("benefit").unwrap_or(false);
    if is_benefit && to_metrics.len() < 2 {
        let text = "a benefit is over what at least two links carry";
        section.problem("benefit", Problem::new(text, "name a metric for each in to_metric"));
    }
    let at = read_selector(&mut section, "where", axes);
    let Some((name, metric)) = name.zip(metric) else {
        section.finish();
        return None;
    };
    let is_ratio = !to_metrics.is_empty() || to.is_some();
    let (unit, own) = (unit_of(&name), unit_of(&metric));
    if is_ratio && !["", "%"].contains(&unit) {
        let text = format!("a ratio called \"{name}\" would be told in {unit}");
        section.problem("name", Problem::new(text, "let the name end in _percent or no unit"));
    } else if !is_ratio && unit != own {
        let text =
            format!("\"{name}\" does not end as \"{metric}\" does, so the unit would differ");
        section.problem("name", Problem::new(text, "let both names end in the same unit"));
    }
    section.finish();
    let metrics = if to_metrics.is_empty() { vec![metric.clone()] } else { to_metrics };
    let over = is_ratio.then_some(Over { metrics, cells: to, is_benefit });
    Some(Figure { name, metric, cells: at, over })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::scenario::sweep::Settings;

    fn result(flow: &str, seed: u64, mbit: f64) -> CellResult {
        CellResult {
            cell: format!("flow={flow}"),
            settings: Settings::from([("flow".into(), flow.into())]),
            seed,
            metrics: BTreeMap::from([("a_mbit".into(), mbit), ("b_mbit".into(), 4.0)]),
            series: BTreeMap::new(),
        }
    }

    fn figure(name: &str, over: Option<Over>) -> Figure {
        let cells = Selector::default();
        Figure { name: name.into(), metric: "a_mbit".into(), cells, over }
    }

    fn values(figure: Figure) -> Vec<Option<f64>> {
        let mut results = vec![
            result("x", 1, 3.0),
            result("x", 2, 5.0),
            result("y", 1, 6.0),
            result("z", 2, 1.0),
        ];
        let name = figure.name.clone();
        add(&[figure], &mut results);
        results.iter().map(|result| result.metrics.get(&name).copied()).collect()
    }

    #[test]
    fn a_figure_is_told_over_the_run_of_the_same_seed() {
        let cells = Selector::choosing([("flow".into(), vec!["x".into()])]);
        let over = |metric: &str, cells| {
            Some(Over { metrics: vec![metric.into()], cells, is_benefit: false })
        };
        assert_eq!(
            values(figure("r_percent", over("a_mbit", Some(cells)))),
            [Some(100.0), Some(100.0), Some(200.0), Some(20.0)]
        );
        let own = [Some(0.75), Some(1.25), Some(1.5), Some(0.25)];
        assert_eq!(values(figure("r", over("b_mbit", None))), own);
        assert_eq!(values(figure("c_mbit", None))[3], Some(1.0));
        let unknown = Selector::choosing([("flow".into(), vec!["y".into()])]);
        assert_eq!(values(figure("r", over("a_mbit", Some(unknown.clone()))))[3], None);
        let beyond = |queue: &str, flow: &str, mbit: f64| {
            let mut one = result(flow, 1, mbit);
            one.settings.insert("queue".into(), queue.into());
            one
        };
        let mut two_axes = vec![
            beyond("20", "x", 2.0),
            beyond("20", "y", 6.0),
            beyond("50", "x", 4.0),
            beyond("50", "y", 6.0),
        ];
        let cells = Selector::choosing([("flow".into(), vec!["x".into()])]);
        add(&[figure("r", over("a_mbit", Some(cells)))], &mut two_axes);
        let ratios: Vec<f64> = two_axes.iter().map(|result| result.metrics["r"]).collect();
        assert_eq!(ratios, [1.0, 3.0, 1.0, 1.5], "each over the cell with its own queue");
        let of_some = Figure { cells: unknown, ..figure("c_mbit", None) };
        assert_eq!(values(of_some), [None, None, Some(6.0), None]);
    }

    #[test]
    fn a_benefit_is_what_the_better_link_does_not_carry_alone() {
        // Links that carry 3 and 4: 7 is all of the room, 2 half of the better one.
        for (x, benefit) in [(7.0, 1.0), (5.5, 0.5), (4.0, 0.0), (2.0, -0.5)] {
            let over = Over { metrics: Vec::new(), cells: None, is_benefit: true };
            assert_eq!(over.of(x, &[3.0, 4.0]), Some(benefit), "{x}");
        }
        let over = Over {
            metrics: vec!["a_mbit".into(), "b_mbit".into()],
            cells: None,
            is_benefit: false,
        };
        assert_eq!(values(figure("r", Some(over)))[0], Some(3.0 / 7.0), "over the sum");
    }
}
