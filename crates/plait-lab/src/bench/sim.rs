//! `plait-lab bench --sim`: how much faster than real time the simulator is.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plait_net::clock::thread_cpu_time;
use plait_sim::run::run_with;
use plait_sim::scenario::{Experiment, Scenario};
use plait_sim::world::{CipherChoice, Trace};
use serde::Serialize;

use super::More;
use crate::cli::BenchArgs;
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::measure::median;
use crate::output::Align::{Left, Right};
use crate::output::{Meter, Output, Table, Verdict};

/// Both links, both gateways and the sender run on one core.
const TWO_LINKS: &str = include_str!("sim.toml");
const UDP: &str = r#"
kind = "udp"
payload_bytes = 1400
rate = { mbit = 118, layer = "wire" }
"#;
const TCP: &str = r#"
kind = "tcp"
flows = 4
"#;
const SEED: u64 = 1;

/// The factor that UDP with the null cipher must reach.
const FACTOR_MIN: f64 = 100.0;
const SOURCE: &str = "a run of a minute takes less than a second";

/// How often, and how long in virtual time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimPlan {
    pub(crate) runs: usize,
    pub(crate) seconds: u32,
}

impl SimPlan {
    pub(crate) fn of(quick: bool) -> Self {
        if quick { Self { runs: 3, seconds: 5 } } else { Self { runs: 9, seconds: 20 } }
    }
}

/// One load with one cipher.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SimRow {
    load: &'static str,
    cipher: &'static str,
    virtual_s: u32,
    /// Median of the runs.
    cpu_ns: u64,
    /// Packets that the sender sent.
    packets: u64,
    goodput_mbit: f64,
    /// Digest of the run.
    trace: String,
    /// Runs whose digest differs from that of this load's first run.
    other_courses: usize,
}

impl SimRow {
    /// Times real time.
    fn factor(&self) -> f64 {
        f64::from(self.virtual_s) * 1e9 / self.cpu_ns as f64
    }

    fn packet_ns(&self) -> f64 {
        self.cpu_ns as f64 / self.packets as f64
    }

    fn name(&self) -> String {
        format!("{}, {} cipher", self.load, self.cipher)
    }
}

pub(crate) fn run(args: &BenchArgs, output: &Output) -> Result<Verdict> {
    let plan = SimPlan::of(args.quick);
    let rows = measure_all(plan)?;
    output.records("measurement", &rows)?;
    output.lines(table(&rows).lines())?;
    let machine = Machine::detect();
    output.line("")?;
    output.line(format!(
        "CPU time on one core for links, both gateways and application; median of {}. {}",
        plan.runs,
        machine.sentence()
    ))?;
    let figures = figures(&rows);
    let summary = Summary::new("bench", &figures, More { machine, runs: plan.runs });
    output.record("summary", &summary)?;
    for check in summary.checks.iter().filter(|check| !check.ok) {
        output.line(format!("{}: {}, {}", check.name, check.value_text(), check.band_text()))?;
    }
    Ok(Verdict::of(summary.ok))
}

/// Measures every load with every cipher.
pub(crate) fn measure_all(plan: SimPlan) -> Result<Vec<SimRow>> {
    let mut rows = Vec::new();
    let mut meter = Meter::new("bench", "runs", 4 * plan.runs);
    for (load, app) in [("UDP", UDP), ("TCP", TCP)] {
        let scenario = scenario(app, plan.seconds)?;
        let mut course = None;
        for (cipher, choice) in [("null", CipherChoice::Null), ("real", CipherChoice::Real)] {
            rows.push(measure_row(plan, load, cipher, &mut course, || {
                let result = run_with(&scenario, SEED, choice)?;
                meter.finished_one();
                Ok(result)
            })?);
        }
    }
    Ok(rows)
}

fn scenario(app: &str, seconds: u32) -> Result<Scenario> {
    let text = format!("duration_s = {seconds}\n{TWO_LINKS}{app}");
    let read = |_: &Path| Ok::<_, std::io::Error>(text.clone());
    let experiment = Experiment::load(Path::new("bench.toml"), &[] as &[&str], &read)?;
    let cell = experiment.cells.into_iter().next();
    Ok(cell.ok_or_else(|| anyhow!("the bench's scenario has no cell"))?.scenario)
}

fn measure_row(
    plan: SimPlan,
    load: &'static str,
    cipher: &'static str,
    course: &mut Option<Trace>,
    mut run: impl FnMut() -> Result<plait_sim::run::RunResult>,
) -> Result<SimRow> {
    let (mut times, mut other_courses, mut last) = (Vec::new(), 0, None);
    for _ in 0..plan.runs {
        let before = thread_cpu_time();
        let result = run()?;
        times.push((thread_cpu_time() - before).as_nanos() as u64);
        other_courses += usize::from(*course.get_or_insert(result.trace) != result.trace);
        last = Some(result);
    }
    let last = last.context("a plan has a run at least")?;
    Ok(SimRow {
        load,
        cipher,
        virtual_s: plan.seconds,
        cpu_ns: median(times),
        packets: last.counters["sent_packets.flow"],
        goodput_mbit: last.metrics["goodput_mbit"],
        trace: format!("{:016x}", last.trace.digest()),
        other_courses,
    })
}

/// The figures; the promised factor and the number of differing digests have bands.
pub(crate) fn figures(rows: &[SimRow]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for row in rows {
        let factor = Figure::number(row.name(), row.factor(), "times real time");
        // The factor is promised for builds without assertions.
        let is_promised = row.load == "UDP" && row.cipher == "null" && !cfg!(debug_assertions);
        figures.push(if is_promised { factor.at_least(FACTOR_MIN, SOURCE) } else { factor });
    }
    for row in rows {
        let name = format!("{}: per packet", row.name());
        figures.push(Figure::number(name, row.packet_ns(), "ns"));
    }
    let other: usize = rows.iter().map(|row| row.other_courses).sum();
    let same = Figure::count("runs of one seed that took another course", other as u64);
    figures.push(same.exactly(0.0, "a scenario and a seed are a run, whatever the cipher"));
    figures
}

/// The rows as a table for people.
fn table(rows: &[SimRow]) -> Table {
    let numbers = ["times real time", "ns per packet", "Mbit/s"].map(|name| (name, Right));
    let mut table = Table::new(&[&[("", Left)], &numbers[..], &[("course", Left)]].concat());
    for row in rows {
        table.row([
            row.name(),
            format!("{:.1}", row.factor()),
            format!("{:.0}", row.packet_ns()),
            format!("{:.1}", row.goodput_mbit),
            row.trace.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_a_load_takes_the_same_course_under_both_ciphers() {
        let rows = measure_all(SimPlan { runs: 2, seconds: 1 }).unwrap();
        let names: Vec<String> = rows.iter().map(SimRow::name).collect();
        let expected =
            ["UDP, null cipher", "UDP, real cipher", "TCP, null cipher", "TCP, real cipher"];
        assert_eq!(names, expected);
        assert_eq!(rows[0].trace, rows[1].trace);
        assert_ne!(rows[1].trace, rows[2].trace);
        assert!(rows.iter().all(|row| row.packets > 1000 && row.cpu_ns > 0), "{rows:?}");
        let figures = figures(&rows);
        assert!(figures.last().is_some_and(|same| same.is_check() && same.ok));
    }

    #[test]
    fn a_run_on_another_course_is_counted() {
        let scenario = scenario(UDP, 1).unwrap();
        let mut seed = 0;
        let plan = SimPlan { runs: 3, seconds: 1 };
        let row = measure_row(plan, "UDP", "null", &mut None, || {
            seed += 1;
            Ok(run_with(&scenario, seed, CipherChoice::Null)?)
        });
        assert_eq!(row.unwrap().other_courses, 2);
    }
}
