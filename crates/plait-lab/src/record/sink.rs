//! Where results go: standard output when it carries JSON Lines, and a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{CheckRecord, Record, Results};
use crate::output::Output;

/// Takes one record after the other.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    output: &'a Output,
    file: Option<(PathBuf, BufWriter<File>)>,
}

impl<'a> Sink<'a> {
    /// Creates the file, so that a wrong name is reported before anything runs.
    pub(crate) fn open(file: Option<&Path>, output: &'a Output) -> Result<Self> {
        let open = |path: &Path| -> Result<(PathBuf, BufWriter<File>)> {
            let file = File::create(path).with_context(|| {
                format!("{}: cannot be written; name a file in an existing folder", path.display())
            })?;
            Ok((path.to_owned(), BufWriter::new(file)))
        };
        Ok(Self { output, file: file.map(open).transpose()? })
    }

    /// Writes a record.
    pub(crate) fn put(&mut self, record: &Record) -> Result<()> {
        match record {
            Record::Run(body) => self.output.record("run", body)?,
            Record::Cell(body) => self.output.record("cell", body)?,
            Record::Check(body) => self.output.record("check", body)?,
            Record::Scatter(body) => self.output.record("scatter", body)?,
            Record::Summary(body) => self.output.record("summary", body)?,
        }
        self.put_to_file(record)
    }

    /// Writes a record only to the file.
    pub(crate) fn put_to_file(&mut self, record: &Record) -> Result<()> {
        if let Some((path, file)) = &mut self.file {
            let line = serde_json::to_string(record)?;
            writeln!(file, "{line}")
                .with_context(|| format!("{}: cannot be written", path.display()))?;
        }
        Ok(())
    }

    /// Writes all records of an experiment.
    pub(crate) fn put_all(&mut self, results: &Results) -> Result<()> {
        for run in &results.runs {
            self.put(&Record::Run(run.clone()))?;
        }
        self.put_findings(results)
    }

    /// Writes the evaluation of the runs.
    pub(crate) fn put_findings(&mut self, results: &Results) -> Result<()> {
        for cell in &results.cells {
            self.put(&Record::Cell(cell.clone()))?;
        }
        for check in results.summary.checks.clone() {
            let scenario = results.summary.name.clone();
            self.put(&Record::Check(CheckRecord { scenario, check }))?;
        }
        for scatter in &results.scatters {
            self.put(&Record::Scatter(scatter.clone()))?;
        }
        self.put(&Record::Summary(results.summary.clone()))
    }

    /// Flushes buffered output.
    pub(crate) fn close(self) -> Result<()> {
        let Some((path, mut file)) = self.file else { return Ok(()) };
        file.flush().with_context(|| format!("{}: cannot be written", path.display()))
    }
}
