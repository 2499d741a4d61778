//! `plait-lab report`: shows results again, as tables and as one page with plots.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::cli::ReportArgs;
use crate::output::{self, Output, Verdict};
use crate::record::{CheckFigure, CheckRecord, Results};

mod bars;
mod html;
mod matrix;
mod panel;
mod points;
mod read;
mod scatter;
mod svg;
mod sweep;
pub(crate) mod words;

pub(crate) use bars::{Bar, Whole, bars};
pub(crate) use html::{Lead, document, figure, figure_of, key, page_led_by};
pub(crate) use panel::{Drawn, Form, Key};
pub(crate) use svg::{Line, Mark, Plot, escape, range};

/// The file that a page will be written to.
#[derive(Debug)]
pub(crate) struct PageFile {
    path: PathBuf,
    file: File,
}

impl PageFile {
    /// Creates the file, so that a wrong name is reported before anything runs.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| {
            format!("{}: cannot be written; name a file in an existing folder", path.display())
        })?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes the page of these experiments.
    pub(crate) fn write(self, all: &[Results]) -> Result<()> {
        self.write_text(&html::page(all))
    }

    /// Writes a page.
    pub(crate) fn write_text(mut self, page: &str) -> Result<()> {
        let written = self.file.write_all(page.as_bytes());
        written.with_context(|| format!("{}: cannot be written", self.path.display()))?;
        output::note(format!("The page is {}.", self.path.display()));
        Ok(())
    }
}

/// The last record: every check of every experiment.
#[derive(Serialize)]
struct ReportSummary<'a> {
    name: &'static str,
    checks: Vec<&'a CheckFigure>,
    ok: bool,
    experiments: usize,
}

/// The experiments in a file.
pub(crate) fn read_file(file: &Path) -> Result<Vec<Results>> {
    let text = fs::read_to_string(file).with_context(|| {
        format!("{}: cannot be read; name a file of `plait-lab run --out`", file.display())
    })?;
    read::results(file, &text)
}

/// Prints the results in the files; the verdict is that of all their required checks.
pub(crate) fn run(args: &ReportArgs, output: &Output) -> Result<Verdict> {
    let mut all: Vec<Results> = Vec::new();
    for file in &args.files {
        all.extend(read_file(file)?);
    }
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    for (index, results) in all.iter().enumerate() {
        if index > 0 {
            output.line("")?;
        }
        output.lines(words::experiment(results))?;
        print_records(results, output)?;
    }
    let summary = ReportSummary {
        name: "report",
        checks: all.iter().flat_map(|results| &results.summary.checks).collect(),
        ok: all.iter().all(|results| results.summary.ok),
        experiments: all.len(),
    };
    output.record("summary", &summary)?;
    if let Some(page) = page {
        page.write(&all)?;
    }
    Ok(Verdict::of(summary.ok))
}

fn print_records(results: &Results, output: &Output) -> Result<()> {
    output.records("run", &results.runs)?;
    output.records("cell", &results.cells)?;
    output.records("scatter", &results.scatters)?;
    for check in results.summary.checks.clone() {
        let scenario = results.summary.name.clone();
        output.record("check", &CheckRecord { scenario, check })?;
    }
    Ok(())
}
