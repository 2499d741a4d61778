//! Scenarios of `scenarios/self` on the namespaces: tests that they run, that their checks hold,
//! and that their records can be read.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::output::{Output, Verdict};
use crate::record::RunRecord;
use crate::report;
use crate::run;
use crate::scratch::Scratch;

/// The checks of a scenario.
pub(super) fn holds(name: &str, output: &Output) -> Result<()> {
    run_scenario(name, output).map(drop)
}

/// UDP arrives at its rate, over a bond and beside it.
pub(super) fn udp(output: &Output) -> Result<()> {
    let Some(run) = run_scenario("udp", output)? else { return Ok(()) };
    for series in ["link_throughput.core", "weight.second", "rtt_ms.first", "waiting", "losses"] {
        let samples = run.series.get(series).map_or(0, Vec::len);
        ensure!(samples == 30, "{series} has a sample for each 100 ms, not {samples}");
    }
    Ok(())
}

/// A transfer of a given length reports its time, which is not below the link's.
pub(super) fn transfer(output: &Output) -> Result<()> {
    let Some(run) = run_scenario("transfer", output)? else { return Ok(()) };
    let [rate, time] = ["transfer_mbit.file", "transfer_s.file"].map(|name| metric(&run, name));
    ensure!((rate * time - 16.0).abs() < 0.01, "16 Mbit in all: {:?}", run.metrics);
    Ok(())
}

/// A real steering node carries a file over both links, and UDP both ways.
pub(super) fn steer(output: &Output) -> Result<()> {
    let Some(run) = run_scenario("steer", output)? else { return Ok(()) };
    let acted = metric(&run, "held_acks") + metric(&run, "masked_acks");
    ensure!(acted > 0.0, "packets of one flow overtook each other: {:?}", run.metrics);
    Ok(())
}

fn metric(run: &RunRecord, name: &str) -> f64 {
    run.metrics.get(name).copied().unwrap_or(f64::NAN)
}

/// Runs a scenario as the command does, and reads what it wrote. `None` when the machine did not
/// keep up, such as when its host takes half of its time: then the run must have refused to give
/// any figure.
fn run_scenario(name: &str, output: &Output) -> Result<Option<RunRecord>> {
    let name = format!("self/{name}");
    let scratch = Scratch::on_disk("scenario")?;
    let out = scratch.path().join("out.jsonl");
    let experiment = ExperimentArgs { out: Some(out.clone()), ..ExperimentArgs::of(&name) };
    match run::run(&RunArgs { experiment, ..RunArgs::of("", On::Netns) }, output) {
        Err(error) if run::netns::is_too_slow(&error) => {
            let written = fs::read_to_string(&out).unwrap_or_default();
            ensure!(written.is_empty(), "figures of a machine that did not keep up: {written}");
            output.line(format!("{name}: no figures to check: {error}"))?;
            return Ok(None);
        }
        verdict => ensure!(verdict? == Verdict::Good, "{name}: a check failed"),
    }
    let results = report::read_file(&out)?;
    ensure!(results.len() == 1, "one experiment was written, not {}", results.len());
    let summary = &results[0].summary;
    ensure!(summary.on == crate::record::NETNS, "it ran on {}", summary.on);
    ensure!(summary.command.contains("--on netns"), "{}", summary.command);
    results.into_iter().flat_map(|results| results.runs).next().map(Some).context("a run")
}
