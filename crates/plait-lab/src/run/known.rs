//! Earlier runs kept in files (`--resume`). Runs of another build or another text of their scenario
//! are refused.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::PreparedRun;
use crate::record::{Origin, Record, RunRecord};

/// Runs by the command that repeats each. New ones go to the first file.
#[derive(Debug, Default)]
pub(crate) struct Known {
    file: Option<(PathBuf, File)>,
    runs: BTreeMap<String, RunRecord>,
}

impl Known {
    /// Reads the files, of which the first need not exist yet, and adds to it the runs that only
    /// the others have.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or written, a line that is not a record, a run of another commit
    /// or of another text of one of the scenarios.
    pub(crate) fn open(files: &[PathBuf], plans: &[PreparedRun]) -> Result<Self> {
        let Some(first) = files.first() else { return Ok(Self::default()) };
        let commit = Origin::new(String::new()).commit;
        if commit.ends_with("+changes") {
            bail!(
                "the code differs from commit {commit}: its runs could not be told from those of \
                 another change; commit it and build again"
            );
        }
        let digests: BTreeMap<&str, &str> =
            plans.iter().map(|plan| (plan.name(), plan.digest())).collect();
        let mut known = Self::default();
        let mut others = Vec::new();
        for file in files {
            if file == first && !file.exists() {
                continue;
            }
            let text = fs::read_to_string(file).with_context(|| {
                format!("{}: cannot be read; name a file of `--resume` or `--out`", file.display())
            })?;
            for run in read(&text, file, &commit, &digests)? {
                if file != first && !known.runs.contains_key(&run.command) {
                    others.push(run.clone());
                }
                known.runs.insert(run.command.clone(), run);
            }
        }
        let opened = OpenOptions::new().create(true).append(true).open(first);
        let opened = opened.with_context(|| {
            format!("{}: cannot be written; name a file in an existing folder", first.display())
        })?;
        known.file = Some((first.clone(), opened));
        others.iter().try_for_each(|run| known.write(run))?;
        Ok(known)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn find(&self, command: &str) -> Option<&RunRecord> {
        self.runs.get(command)
    }

    /// Keeps a run, if there is a file.
    pub(super) fn add(&mut self, run: &RunRecord) -> Result<()> {
        if self.file.is_some() { self.write(run) } else { Ok(()) }
    }

    /// Series are left out: they are plotted when measured, and would fill the file.
    fn write(&mut self, run: &RunRecord) -> Result<()> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let run = RunRecord { series: BTreeMap::new(), ..run.clone() };
        let line = serde_json::to_string(&Record::Run(run))?;
        writeln!(file, "{line}").with_context(|| format!("{}: cannot be written", path.display()))
    }
}

fn read(
    text: &str,
    file: &Path,
    commit: &str,
    digests: &BTreeMap<&str, &str>,
) -> Result<Vec<RunRecord>> {
    let mut runs = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let place = format!("{}:{number}", file.display());
        let record: Record = serde_json::from_str(line).with_context(|| {
            format!("{place}: no record of a run; name a file of `--resume` or `--out`")
        })?;
        let Record::Run(run) = record else { continue };
        let origin = &run.origin;
        if origin.commit != commit {
            bail!(
                "{place}: a run of commit {}, and this is {commit}; run it again with this build, \
                 or build that commit",
                origin.commit
            );
        }
        let digest = digests.get(run.scenario.as_str());
        if digest.is_some_and(|digest| *digest != origin.scenario_digest) {
            bail!(
                "{place}: a run of {} as it was before its file changed; take the line out, or the \
                 change back",
                run.scenario
            );
        }
        runs.push(run);
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(commit: &str, digest: &str) -> String {
        format!(
            concat!(
                r#"{{"type":"run","scenario":"x/y","cell":"base","settings":{{}},"seed":1,"#,
                r#""command":"c","version":"0","commit":"{}","scenario_digest":"{}","#,
                r#""interval_s":1.0,"metrics":{{}},"series":{{}}}}"#
            ),
            commit, digest
        )
    }

    fn told(text: &str) -> Result<usize> {
        let digests = BTreeMap::from([("x/y", "d1")]);
        read(text, Path::new("f"), "abc", &digests).map(|runs| runs.len())
    }

    #[test]
    fn runs_of_another_commit_or_another_text_are_refused_with_file_and_line() {
        let own = line("abc", "d1");
        assert_eq!(told(&format!("{own}\n{own}")).unwrap(), 2);
        let other = told(&format!("{own}\n{}", line("abd", "d1"))).unwrap_err().to_string();
        assert!(other.starts_with("f:2: a run of commit abd, and this is abc; "), "{other}");
        let before = told(&line("abc", "d2")).unwrap_err().to_string();
        assert!(before.starts_with("f:1: a run of x/y as it was before"), "{before}");
        assert!(told("nonsense").unwrap_err().to_string().starts_with("f:1: no record of a run"));
    }
}
