//! Two axes form a matrix, as in papers: one row and one column for each value.

use plait_sim::scenario::sweep::display;

use crate::record::{CellFigure, CellRecord};

/// One metric over two axes.
#[derive(Debug)]
pub(super) struct Matrix<'a> {
    pub(super) metric: &'a str,
    pub(super) unit: &'a str,
    /// Values of the first axis.
    pub(super) rows: Vec<String>,
    /// Values of the second axis.
    pub(super) columns: Vec<String>,
    /// By row and column; `None` where the cell has no such metric.
    pub(super) figures: Vec<Vec<Option<&'a CellFigure>>>,
}

/// One matrix for each metric; none unless there are two axes.
pub(super) fn matrices<'a>(axes: &[String], cells: &'a [CellRecord]) -> Vec<Matrix<'a>> {
    let [first, second] = axes else { return Vec::new() };
    let (rows, columns) = (values(first, cells), values(second, cells));
    let mut metrics: Vec<&CellFigure> = Vec::new();
    for figure in cells.iter().flat_map(|cell| &cell.figures) {
        if !metrics.iter().any(|known| known.metric == figure.metric) {
            metrics.push(figure);
        }
    }
    let at = |metric: &str, row: &str, column: &str| {
        let cell = cells.iter().find(|cell| {
            value(first, cell).as_deref() == Some(row)
                && value(second, cell).as_deref() == Some(column)
        })?;
        cell.figures.iter().find(|figure| figure.metric == metric)
    };
    let matrix = |figure: &'a CellFigure| {
        let line = |row: &String| columns.iter().map(|c| at(&figure.metric, row, c)).collect();
        Matrix {
            metric: &figure.metric,
            unit: &figure.unit,
            figures: rows.iter().map(line).collect(),
            rows: rows.clone(),
            columns: columns.clone(),
        }
    };
    metrics.into_iter().map(matrix).collect()
}

fn value(axis: &str, cell: &CellRecord) -> Option<String> {
    cell.settings.get(axis).map(display)
}

/// The values of an axis, in the order of the cells.
fn values(axis: &str, cells: &[CellRecord]) -> Vec<String> {
    let mut values = Vec::new();
    for value in cells.iter().filter_map(|cell| value(axis, cell)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use plait_sim::scenario::Settings;
    use toml::Value;

    use super::*;

    fn cell(k: f64, t: i64, median: f64) -> CellRecord {
        let settings =
            Settings::from([("k".into(), Value::Float(k)), ("t".into(), Value::Integer(t))]);
        let figure = CellFigure {
            metric: "loss_percent".into(),
            unit: "%".into(),
            median,
            low: median,
            high: median,
            paper: None,
            paper_source: String::new(),
        };
        let (scenario, cell) = (String::new(), String::new());
        CellRecord { scenario, cell, settings, seeds: vec![1], figures: vec![figure] }
    }

    #[test]
    fn two_axes_are_rows_and_columns() {
        let cells = [cell(0.1, 50, 1.0), cell(0.1, 250, 2.0), cell(1.0, 250, 4.0)];
        let axes = ["k".to_owned(), "t".to_owned()];
        let found = matrices(&axes, &cells);
        let [matrix] = found.as_slice() else { panic!("one metric is one matrix") };
        assert_eq!(matrix.rows, ["0.1", "1"]);
        assert_eq!(matrix.columns, ["50", "250"]);
        let medians = |row: &Vec<Option<&CellFigure>>| {
            row.iter().map(|figure| figure.map(|f| f.median)).collect::<Vec<_>>()
        };
        let medians: Vec<_> = matrix.figures.iter().map(medians).collect();
        assert_eq!(medians, [[Some(1.0), Some(2.0)], [None, Some(4.0)]]);
        assert!(matrices(&axes[..1], &cells).is_empty());
    }
}
