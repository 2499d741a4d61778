//! `plait-lab verify`: checks each of plait's promises by a measurement with a band.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::cli::{On, VerifyArgs};
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::output::Align::{Left, Right};
use crate::output::{self, Meter, Output, Table, Verdict};
use crate::record::Results;
use crate::set::Set;
use records::{Checked, Records};

mod any_link;
mod back_ends;
mod clear_text;
mod cost;
mod dida;
mod fresh_clone;
mod install;
mod kernel;
mod paper;
mod promise;
mod records;
mod road;
mod scenes;
mod simulated;
mod survive;
mod table;
pub(crate) mod trust;
pub(crate) mod video;

/// How thoroughly a promise is checked; the later stands for the earlier, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Effort {
    Quick,
    Whole,
}

impl Effort {
    fn is_quick(self) -> bool {
        self == Self::Quick
    }

    fn word(self) -> &'static str {
        if self.is_quick() { "quick" } else { "whole" }
    }

    /// Number of runs; their median counts.
    fn runs(self) -> usize {
        if self.is_quick() { 1 } else { 3 }
    }

    /// Seconds of a TCP flow.
    fn seconds(self) -> u32 {
        if self.is_quick() { 10 } else { 30 }
    }

    /// Seeds of a scenario: with five, the median counts.
    fn seeds(self) -> u64 {
        if self.is_quick() { 1 } else { 5 }
    }
}

/// How many runs of each cell the machine kept up with; none may be left out.
fn runs_made(results: &Results, wanted: u64) -> Figure {
    let least = results.cells.iter().map(|cell| cell.seeds.len() as u64).min().unwrap_or(0);
    Figure::count("runs of each cell with which the machine kept up, at least", least)
        .at_least(wanted as f64, "chosen: no run is left out")
}

/// The figure of how late emulated links released packets.
const LATENESS: &str = "links' lateness: mean / 99th percentile / most";

/// Every promise: its name, two spaces, and what it claims.
const PROMISES: &str = include_str!("verify/promises.txt");

/// How a promise is checked.
type Check = fn(Effort) -> Result<Vec<Figure>>;

/// The checks of promises that are more than scenarios; the other promises' scenarios are in the
/// set named like the part of the promise before the point.
const CHECKS: &[(&str, Check)] = &[
    ("bond.4", cost::check_bond),
    ("bond.5", clear_text::check),
    ("bond.6", fresh_clone::check),
    ("sim.1", simulated::check_table),
    ("sim.3", back_ends::check_alike),
    ("sim.4", back_ends::check_tcp_model),
    ("sim.5", cost::check_simulator),
    ("dida.5", dida::download::check),
    ("dida.6", cost::check_steering),
    ("paper.5", dida::download::check_by_capacity),
    ("survive.3", survive::swarm::check),
    ("survive.4", survive::check_idle),
    ("survive.5", survive::hostile::check),
    ("link.1", any_link::check_world),
    ("link.4", any_link::check_beside),
    ("link.6", scenes::rows::check_sums),
    ("paper.4", paper::check),
    ("promise.1", |effort| Set::figures("ladder", effort.is_quick(), On::Sim)),
    ("promise.6", promise::measure::check),
    ("install.1", install::package::check),
    ("install.2", install::boot::check),
    ("install.3", install::upgrade::check),
    ("install.4", install::runtime::check),
    ("install.5", install::metrics::check),
    ("install.6", install::when_down::check),
    ("install.7", install::wireshark::check),
    ("install.8", install::arm64::check),
    ("install.9", install::image::check),
    ("kernel.1", kernel::leftovers::check),
    ("kernel.2", kernel::controllers::check),
    ("kernel.3", kernel::tables::check),
    ("kernel.4", kernel::subflows::check),
    ("kernel.5", kernel::trace::check),
    ("kernel.6", kernel::emulator::check),
    ("road.2", cost::check_beside),
    ("road.3", road::provider::check),
    ("road.4", road::check_ways),
    ("road.5", road::check_quick_start),
    ("road.6", fresh_clone::check_times),
    ("scenes.1", scenes::checks::check),
    ("scenes.2", scenes::rows::check),
    ("scenes.3", scenes::size::check),
    ("scenes.4", scenes::check_links),
    ("scenes.5", scenes::pictures::check),
    ("trust.1", trust::search::check),
    ("trust.2", trust::neighbour::check),
    ("trust.3", trust::hostile_work::check),
    ("trust.4", trust::faults::check),
    ("trust.5", trust::set_ups::check_all),
    ("video.1", video::proxy::check),
    ("video.2", video::relays::check),
    ("video.3", video::cut::check),
    ("video.4", video::chromium::check),
    ("video.6", video::model::check),
    ("video.7", video::page::check),
    ("wifi.1", back_ends::check_mptcp_model),
];

/// All promises, each with its claim.
fn promises() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROMISES.lines().filter_map(|line| line.split_once("  "))
}

fn check(promise: &str, effort: Effort) -> Result<Vec<Figure>> {
    if let Some((_, check)) = CHECKS.iter().find(|(name, _)| *name == promise) {
        return check(effort);
    }
    Set::of_promise(set_of(promise), promise, effort.is_quick())
}

fn set_of(promise: &str) -> &str {
    promise.split_once('.').map_or(promise, |(set, _)| set)
}

#[derive(Serialize)]
struct Listed<'a> {
    promise: &'a str,
    claim: &'a str,
}

#[derive(Serialize)]
struct More {
    machine: Machine,
    /// Promises that could not be checked.
    errors: Vec<&'static str>,
}

pub(crate) fn list(output: &Output) -> Result<Verdict> {
    for (name, claim) in promises() {
        output.line(format!("{name}  {claim}"))?;
        output.record("promise", &Listed { promise: name, claim })?;
    }
    output.record("summary", &Summary::new("verify", &[], serde_json::json!({})))?;
    Ok(Verdict::Good)
}

pub(crate) fn run(args: &VerifyArgs, output: &Output) -> Result<Verdict> {
    let effort = if args.quick { Effort::Quick } else { Effort::Whole };
    let promises = select(&args.names)?;
    let mut records = Records::open(&args.resume)?;
    let heads = [("promise", Left), ("figure", Left), ("value", Right), ("band", Left), ("", Left)];
    let mut table = Table::new(&heads);
    let mut all = Vec::new();
    let mut errors = Vec::new();
    let is_new = |(name, _): &&(&str, &str)| records.find(name, effort).is_none();
    let mut meter = Meter::new("verify", "promises", promises.iter().filter(is_new).count());
    for (name, claim) in promises {
        let checked = checked((name, claim), effort, &mut records, &mut meter)?;
        tell(&checked, &mut table);
        output.record("promise", &checked)?;
        if checked.error.is_some() {
            errors.push(name);
            continue;
        }
        if args.table {
            table::update(&checked)?;
        }
        all.extend(checked.figures);
    }
    drop(meter);
    output.lines(table.lines())?;
    let machine = Machine::detect();
    output.line("")?;
    output.line(machine.sentence())?;
    let unchecked = errors.join(", ");
    let mut summary = Summary::new("verify", &all, More { machine, errors });
    summary.ok &= unchecked.is_empty();
    output.record("summary", &summary)?;
    if !unchecked.is_empty() {
        bail!("could not be checked: {unchecked}");
    }
    Ok(Verdict::of(summary.ok))
}

fn select(names: &[String]) -> Result<Vec<(&'static str, &'static str)>> {
    if names.is_empty() {
        return Ok(promises().collect());
    }
    let mut selected = Vec::new();
    for name in names {
        let Some(promise) = promises().find(|(known, _)| known == name) else {
            bail!("there is no promise {name}; plait-lab verify --list prints all");
        };
        selected.push(promise);
    }
    Ok(selected)
}

/// The earlier check of a promise, or a new one.
fn checked(
    (name, claim): (&str, &str),
    effort: Effort,
    records: &mut Records,
    meter: &mut Meter,
) -> Result<Checked> {
    if let Some(known) = records.find(name, effort) {
        output::note(format!("{name}: {claim} (checked before: {})", known.origin()));
        return Ok(known.clone());
    }
    output::note(format!("{name}: {claim} ({})", meter.text()));
    let mut checked = Checked::now(name, claim, effort);
    match check(name, effort) {
        Ok(figures) => checked.figures = figures,
        Err(error) => {
            output::print_error(&error);
            checked.error = Some(format!("{error:#}"));
        }
    }
    for figure in &mut checked.figures {
        figure.name = format!("{name}: {}", figure.name);
    }
    records.add(checked.clone())?;
    meter.finished_one();
    Ok(checked)
}

/// The promise's rows of the table.
fn tell(checked: &Checked, table: &mut Table) {
    let name = &checked.promise;
    if checked.error.is_some() {
        table.row([name.clone(), "error".to_owned()]);
    }
    for figure in &checked.figures {
        let short = figure.name.strip_prefix(&format!("{name}: ")).unwrap_or(&figure.name);
        let (value, band) = (figure.value_text(), figure.band_text());
        table.row([name.clone(), short.to_owned(), value, band, figure.verdict().to_owned()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::{Catalogue, SETS};

    #[test]
    fn promises_are_found_by_name() {
        assert_eq!(select(&[]).unwrap().len(), PROMISES.lines().count());
        assert_eq!(select(&["bond.2".into()]).unwrap()[0].0, "bond.2");
        let error = select(&["bond.9".into()]).err().unwrap();
        assert!(error.to_string().contains("--list"));
    }

    #[test]
    fn every_promise_has_a_check_in_code_or_scenarios_in_its_set() {
        let sets = Catalogue::find(None).unwrap().folder().join(SETS);
        for (name, claim) in promises() {
            assert!(!claim.is_empty() && !name.contains(' '), "{name}: {claim}");
            let in_code = CHECKS.iter().filter(|(known, _)| *known == name).count();
            let set = sets.join(set_of(name)).with_extension("toml");
            let set = std::fs::read_to_string(set).unwrap_or_default();
            let in_set = usize::from(set.contains(&format!("promise = \"{name}\"\n")));
            assert_eq!(in_code + in_set, 1, "{name}: {in_code} in code, {in_set} in its set");
        }
        assert!(CHECKS.iter().all(|(name, _)| promises().any(|(known, _)| known == *name)));
    }
}
