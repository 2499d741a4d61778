//! What was checked, kept in a file, so that promises can be checked over several sittings and on
//! several machines: all of them on one state of the code, or not together.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::{Effort, table};
use crate::figure::Figure;
use crate::machine::Machine;
use crate::record::Origin;

/// One promise, checked: a line of the file, and of what `verify --json` prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Checked {
    pub(super) promise: String,
    pub(super) claim: String,
    /// Of the code, as in [`Origin`].
    pub(super) commit: String,
    pub(super) effort: Effort,
    /// The day, in UTC.
    pub(super) date: String,
    pub(super) machine: Machine,
    /// Of the bond's defaults, as in [`table::defaults`].
    #[serde(default)]
    pub(super) defaults: String,
    pub(super) figures: Vec<Figure>,
    /// Why it could not be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Checked {
    pub(super) fn now(promise: &str, claim: &str, effort: Effort) -> Self {
        Self {
            promise: promise.to_owned(),
            claim: claim.to_owned(),
            commit: Origin::new(String::new()).commit,
            effort,
            date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
            machine: Machine::detect(),
            defaults: table::defaults(),
            figures: Vec::new(),
            error: None,
        }
    }

    /// Where it comes from, for people.
    pub(super) fn origin(&self) -> String {
        format!("{}, {}, {}", self.commit, self.effort.word(), self.date)
    }
}

/// A line of a file; what else `verify --json` prints is passed over.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Promise(Box<Checked>),
    #[serde(other)]
    Other,
}

/// The promises that were checked before. New ones go to the first file.
#[derive(Debug)]
pub(super) struct Records {
    file: Option<PathBuf>,
    checked: Vec<Checked>,
}

impl Records {
    /// Reads the files, of which the first need not be there yet, and merges the others into it.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is no record, or one of another state of the code.
    pub(super) fn open(files: &[PathBuf]) -> Result<Self> {
        let commit = Origin::new(String::new()).commit;
        if !files.is_empty() && commit.ends_with("+changes") {
            bail!(
                "the code differs from commit {commit}: records of it could not be told from \
                 those of another change; commit it and build again"
            );
        }
        let mut records = Self { file: files.first().cloned(), checked: Vec::new() };
        for (place, file) in files.iter().enumerate() {
            if place == 0 && !file.exists() {
                continue;
            }
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read the records in {}", file.display()))?;
            for checked in read(&text, file, &commit)? {
                if place == 0 {
                    records.checked.push(checked);
                } else {
                    records.add(checked)?;
                }
            }
        }
        Ok(records)
    }

    /// What is known of a promise, if it was checked so thoroughly: the last such record.
    pub(super) fn find(&self, promise: &str, effort: Effort) -> Option<&Checked> {
        let fits = |checked: &&Checked| checked.promise == promise && checked.effort >= effort;
        self.checked.iter().rev().find(fits)
    }

    /// Keeps a record, unless it could not be checked, or there are no files.
    pub(super) fn add(&mut self, checked: Checked) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if checked.error.is_some() {
            return Ok(());
        }
        let line = serde_json::to_string(&Line::Promise(Box::new(checked.clone())))?;
        let opened = OpenOptions::new().create(true).append(true).open(file);
        let written = opened.and_then(|mut file| writeln!(file, "{line}"));
        written.with_context(|| format!("cannot write the record to {}", file.display()))?;
        self.checked.push(checked);
        Ok(())
    }
}

fn read(text: &str, file: &Path, commit: &str) -> Result<Vec<Checked>> {
    let mut all = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let place = format!("{}:{number}", file.display());
        let line: Line = serde_json::from_str(line).with_context(|| {
            format!("{place}: this is no record of `plait-lab verify --json` or `--resume`")
        })?;
        let Line::Promise(checked) = line else { continue };
        if checked.commit != commit {
            bail!(
                "{place}: {} was checked on commit {}, and this lab is built from {commit}: begin \
                 another file, or build that commit",
                checked.promise,
                checked.commit
            );
        }
        all.push(*checked);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn record(promise: &str, commit: &str, effort: Effort) -> Checked {
        let figures = vec![Figure::count("lost", 2).at_most(1.0, "002"), Figure::text("note", "x")];
        let commit = commit.to_owned();
        Checked { commit, figures, ..Checked::now(promise, "it holds", effort) }
    }

    fn text_of(records: &[Checked]) -> String {
        let line =
            |checked: &Checked| serde_json::to_string(&Line::Promise(Box::new(checked.clone())));
        records.iter().map(|checked| line(checked).unwrap() + "\n").collect()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let written = record("bond.1", "abc", Effort::Whole);
        let text = text_of(std::slice::from_ref(&written)) + r#"{"type":"summary","ok":true}"#;
        let read = read(&text, Path::new("f"), "abc").unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!(read[0].figures, written.figures);
        assert_eq!((&read[0].date, read[0].effort), (&written.date, Effort::Whole));
    }

    #[test]
    fn a_record_of_another_commit_and_what_is_no_record_are_refused_with_their_line() {
        let records =
            [record("bond.1", "abc", Effort::Whole), record("bond.2", "def", Effort::Whole)];
        let error = read(&text_of(&records), Path::new("f"), "abc").unwrap_err().to_string();
        assert!(error.starts_with("f:2: bond.2 was checked on commit def"), "{error}");
        assert!(error.contains("begin another file"), "{error}");
        let error = read("nonsense", Path::new("f"), "abc").unwrap_err().to_string();
        assert!(error.starts_with("f:1: this is no record"), "{error}");
    }

    #[test]
    fn what_was_checked_more_thoroughly_counts_and_errors_do_not() {
        let scratch = Scratch::in_memory("records").unwrap();
        let file = scratch.path().join("checked.jsonl");
        let mut records = Records { file: Some(file.clone()), checked: Vec::new() };
        records.add(record("bond.1", "abc", Effort::Whole)).unwrap();
        records.add(record("bond.2", "abc", Effort::Quick)).unwrap();
        let failed = record("bond.3", "abc", Effort::Whole);
        records.add(Checked { error: Some("no".into()), ..failed }).unwrap();
        assert!(records.find("bond.1", Effort::Quick).is_some());
        assert!(records.find("bond.2", Effort::Quick).is_some());
        assert!(records.find("bond.2", Effort::Whole).is_none());
        assert!(records.find("bond.3", Effort::Quick).is_none());
        let kept = fs::read_to_string(&file).unwrap();
        assert_eq!(read(&kept, &file, "abc").unwrap().len(), 2);
    }
}
