//! Fixed-width tables.

use std::iter;

/// Alignment of a cell in its column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table whose columns are as wide as their widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let column = |(name, align): &(&str, Align)| ((*name).to_owned(), *align);
        Self { columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    /// A column of names on the left, and columns of numbers.
    pub(crate) fn of_numbers(columns: &[impl AsRef<str>]) -> Self {
        let aligns = iter::once(Align::Left).chain(iter::repeat(Align::Right));
        let columns = columns.iter().map(|name| name.as_ref().to_owned()).zip(aligns).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row; missing cells stay empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().collect();
        assert!(row.len() <= self.columns.len(), "a row has no more cells than columns");
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// The table as lines: head, rule, rows.
    pub(crate) fn lines(&self) -> Vec<String> {
        let head: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|n| {
                let cells = self.rows.iter().map(|row| row[n].chars().count());
                cells.chain([head[n].chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        [&head, &rule].into_iter().chain(&self.rows).map(|row| self.line(row, &widths)).collect()
    }

    fn line(&self, row: &[String], widths: &[usize]) -> String {
        let cells =
            row.iter().zip(widths).zip(&self.columns).map(
                |((cell, width), (_, align))| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                },
            );
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("setup", Align::Left), ("Mbit/s", Align::Right)]);
        table.row(["bond".into(), "115.2".into()]);
        table.row(["plait over dsl".into()]);
        assert_eq!(
            table.lines(),
            [
                "setup           Mbit/s",
                "--------------  ------",
                "bond             115.2",
                "plait over dsl",
            ]
        );
    }
}
