//! `plait-lab verify`: plait's promises, each checked by a measurement with a band.

use anyhow::{Result, bail};
use serde::Serialize;
use serde_json::Value;

use crate::cli::VerifyArgs;
use crate::machine::Machine;
use crate::output::{self, Align, Output, Table, Verdict};

mod aggregation;
mod clear_text;
mod cost;
mod fresh_clone;
mod loss_reports;
mod packet;
mod resequencing;

/// How a promise is to be checked.
#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Runs of which the median counts.
    runs: usize,
    /// Seconds of a TCP flow.
    seconds: u32,
}

/// Something plait promises.
struct Promise {
    name: &'static str,
    claim: &'static str,
    check: fn(Effort) -> Result<Vec<Figure>>,
}

const PROMISES: &[Promise] = &[
    Promise {
        name: "bond.1",
        claim: "one TCP flow through a bond gets nine tenths of both links together",
        check: aggregation::check,
    },
    Promise {
        name: "bond.2",
        claim: "adaptive weighted round robin fills unequal links without loss or reordering",
        check: loss_reports::check,
    },
    Promise {
        name: "bond.3",
        claim: "links of very different delay do not make TCP re-send",
        check: resequencing::check,
    },
    Promise {
        name: "bond.4",
        claim: "the cost of the encryption and the bond is known",
        check: cost::check,
    },
    Promise {
        name: "bond.5",
        claim: "nothing travels in clear text, and no changed datagram gets through",
        check: clear_text::check,
    },
    Promise {
        name: "bond.6",
        claim: "a fresh clone builds and passes its tests",
        check: fresh_clone::check,
    },
];

/// One figure of a promise.
#[derive(Clone, Debug, Serialize)]
struct Figure {
    what: String,
    value: String,
    /// What the value must be; nothing for a figure that only informs.
    #[serde(skip_serializing_if = "Option::is_none")]
    band: Option<String>,
    holds: bool,
}

impl Figure {
    fn info(what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), band: None, holds: true }
    }

    fn check(
        what: impl Into<String>,
        value: impl Into<String>,
        band: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self { what: what.into(), value: value.into(), band: Some(band.into()), holds }
    }

    fn verdict(&self) -> &'static str {
        match (&self.band, self.holds) {
            (None, _) => "",
            (Some(_), true) => "holds",
            (Some(_), false) => "FAILS",
        }
    }
}

#[derive(Serialize)]
struct Checked<'a> {
    promise: &'a str,
    claim: &'a str,
    figures: &'a [Figure],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Listed<'a> {
    promise: &'a str,
    claim: &'a str,
}

#[derive(Serialize)]
struct ListSummary {
    promises: usize,
}

#[derive(Serialize)]
struct Summary {
    machine: Machine,
    checked: usize,
    failed: Vec<&'static str>,
    errors: Vec<&'static str>,
}

pub(crate) fn list(output: &Output) -> Result<Verdict> {
    for Promise { name, claim, .. } in PROMISES {
        output.line(format!("{name}  {claim}"))?;
        output.record("promise", &Listed { promise: name, claim })?;
    }
    output.record("summary", &ListSummary { promises: PROMISES.len() })?;
    Ok(Verdict::Good)
}

pub(crate) fn run(args: &VerifyArgs, output: &Output) -> Result<Verdict> {
    let effort =
        if args.quick { Effort { runs: 1, seconds: 10 } } else { Effort { runs: 3, seconds: 30 } };
    let promises = select(&args.names)?;
    let mut table = Table::new(&[
        ("promise", Align::Left),
        ("figure", Align::Left),
        ("value", Align::Right),
        ("band", Align::Left),
        ("", Align::Left),
    ]);
    let machine = Machine::detect();
    let mut summary =
        Summary { machine, checked: promises.len(), failed: Vec::new(), errors: Vec::new() };
    for promise in promises {
        check_one(promise, effort, output, &mut table, &mut summary)?;
    }
    for line in table.lines() {
        output.line(line)?;
    }
    output.line("")?;
    output.line(summary.machine.sentence())?;
    output.record("summary", &summary)?;
    if !summary.errors.is_empty() {
        bail!("could not be checked: {}", summary.errors.join(", "));
    }
    Ok(Verdict::of(summary.failed.is_empty()))
}

/// Every number of a JSON value with the way to it, in its order.
fn leaves(name: &str, value: &Value) -> Vec<Figure> {
    match value {
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| leaves(&format!("{name} {key}"), value)).collect()
        }
        Value::Null => Vec::new(),
        other => vec![Figure::info(name.replace('_', " "), other.to_string())],
    }
}

fn select(names: &[String]) -> Result<Vec<&'static Promise>> {
    if names.is_empty() {
        return Ok(PROMISES.iter().collect());
    }
    let mut selected = Vec::new();
    for name in names {
        let Some(promise) = PROMISES.iter().find(|promise| promise.name == name) else {
            bail!("there is no promise {name}; plait-lab verify --list prints all");
        };
        selected.push(promise);
    }
    Ok(selected)
}

fn check_one(
    promise: &Promise,
    effort: Effort,
    output: &Output,
    table: &mut Table,
    summary: &mut Summary,
) -> Result<()> {
    let Promise { name, claim, check } = *promise;
    output::note(format!("{name}: {claim}"));
    let (figures, error) = match check(effort) {
        Ok(figures) => (figures, None),
        Err(error) => {
            output::print_error(&error);
            (Vec::new(), Some(format!("{error:#}")))
        }
    };
    for figure in &figures {
        let band = figure.band.clone().unwrap_or_default();
        let (what, value) = (figure.what.clone(), figure.value.clone());
        table.row([name.to_owned(), what, value, band, figure.verdict().to_owned()]);
    }
    if error.is_some() {
        table.row([name.to_owned(), "error".to_owned()]);
        summary.errors.push(name);
    } else if figures.iter().any(|figure| !figure.holds) {
        summary.failed.push(name);
    }
    output.record("promise", &Checked { promise: name, claim, figures: &figures, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_found_by_name() {
        assert_eq!(select(&[]).unwrap().len(), PROMISES.len());
        assert_eq!(select(&["bond.2".into()]).unwrap()[0].name, "bond.2");
        let error = select(&["bond.9".into()]).err().unwrap();
        assert!(error.to_string().contains("--list"));
    }

    #[test]
    fn a_figure_without_a_band_has_no_verdict() {
        assert_eq!(Figure::info("a", "1").verdict(), "");
        assert_eq!(Figure::check("a", "1", "< 1", false).verdict(), "FAILS");
        assert_eq!(Figure::check("a", "0", "< 1", true).verdict(), "holds");
    }

    #[test]
    fn statistics_become_figures() {
        let value = serde_json::json!({"waited_packets": 3, "released": {"timer": 1, "gap": null}});
        let figures = leaves("resequencer", &value);
        let texts: Vec<_> = figures.iter().map(|f| format!("{}={}", f.what, f.value)).collect();
        assert!(texts.contains(&"resequencer waited packets=3".to_owned()), "{texts:?}");
        assert!(texts.contains(&"resequencer released timer=1".to_owned()), "{texts:?}");
        assert_eq!(texts.len(), 2);
    }
}
