//! Reads results from JSON Lines.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::record::{CellRecord, Record, Results, RunRecord, ScatterRecord};

/// The experiments in a file; each ends in its summary.
pub(super) fn results(file: &Path, text: &str) -> Result<Vec<Results>> {
    let file = file.display();
    let mut all = Vec::new();
    let (mut runs, mut cells) = (Vec::<RunRecord>::new(), Vec::<CellRecord>::new());
    let mut scatters = Vec::<ScatterRecord>::new();
    let mut is_open = false;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in lines.map(|(index, line)| (index + 1, line)) {
        let record: Record = serde_json::from_str(line).with_context(|| {
            format!("{file}:{number}: not a result; expected a line that `plait-lab run` wrote")
        })?;
        is_open = true;
        match record {
            Record::Run(run) => runs.push(run),
            Record::Cell(cell) => cells.push(cell),
            // The summary contains them all.
            Record::Check(_) => {}
            Record::Scatter(scatter) => scatters.push(scatter),
            Record::Summary(summary) => {
                let stranger = runs.iter().map(|run| &run.scenario);
                let others = cells.iter().map(|cell| &cell.scenario);
                let others = others.chain(scatters.iter().map(|scatter| &scatter.scenario));
                let stranger = stranger.chain(others).find(|s| **s != summary.name);
                if let Some(stranger) = stranger {
                    bail!(
                        "{file}:{number}: the summary of {} after records of {stranger}, whose own \
                         is missing; run {stranger} again",
                        summary.name
                    );
                }
                let (runs, cells) = (std::mem::take(&mut runs), std::mem::take(&mut cells));
                let scatters = std::mem::take(&mut scatters);
                all.push(Results { runs, cells, scatters, summary });
                is_open = false;
            }
        }
    }
    ensure!(
        !is_open,
        "{file}: ends without a summary, so the run was cut short; run it again to its end"
    );
    ensure!(!all.is_empty(), "{file}: holds no results; name a file of `plait-lab run --out`");
    Ok(all)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two cells, one seed, a check that fails.
    pub(in crate::report) const SAMPLE: &str = include_str!("sample.jsonl");

    fn read(text: &str) -> Result<Vec<Results>> {
        results(Path::new("r.jsonl"), text)
    }

    fn error(text: &str) -> String {
        format!("{:#}", read(text).expect_err("the text is wrong"))
    }

    #[test]
    fn several_experiments_may_follow_each_other() {
        let all = read(&format!("{SAMPLE}\n{SAMPLE}")).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].runs.len(), all[0].cells.len()), (2, 2));
        assert_eq!(all[0], all[1]);
    }

    #[test]
    fn what_was_written_is_read_again_unchanged() {
        for line in SAMPLE.lines() {
            let record: Record = serde_json::from_str(line).unwrap();
            assert_eq!(serde_json::to_string(&record).unwrap(), line);
        }
    }

    #[test]
    fn a_sample_without_a_value_is_no_error() {
        let all = read(SAMPLE).unwrap();
        assert_eq!(all[0].runs[0].series["delay_ms.flow"], [Some(20.0), None, Some(22.0)]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let text = format!("{SAMPLE}{{\"type\":\"run\"}}\n");
        let lines = SAMPLE.lines().count();
        assert!(error(&text).starts_with(&format!("r.jsonl:{}: not a result", lines + 1)));
        assert!(error("x").starts_with("r.jsonl:1: not a result"));
    }

    #[test]
    fn a_run_cut_short_is_told() {
        let cut = SAMPLE.lines().next().unwrap();
        assert!(error(cut).contains("ends without a summary"));
        assert!(error("").contains("holds no results"));
        let summary = SAMPLE.lines().last().unwrap();
        let other = cut.replace("002/sample", "002/other");
        assert!(error(&format!("{other}\n{summary}")).contains("after records of 002/other"));
    }
}
