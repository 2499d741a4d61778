//! `plait-lab live`: a stream goes up from a customer to a real server, over one link, through two
//! proxies and through a bond. What counts is what the server has, and when.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use plait_proto::units::Rate;
use plait_sim::link::LinkConfig;
use serde::Serialize;

use crate::cli::live::LiveArgs;
use crate::emulator::{Lateness, LatenessSummary};
use crate::figure::{Figure, Summary};
use crate::machine::Machine;
use crate::output::{Output, Progress, Verdict};
use crate::topology::Topology;

mod cases;
mod frames;
mod report;
mod site;
mod stage;

use cases::{Case, Cases, Event};
use report::{RunRow, StreamRow};
use site::{By, Place};
use stage::{Protocol, Stage};

pub(crate) use stage::missing;

/// What can carry each protocol: proxies carry TCP alone.
const STREAMS: [(Protocol, By); 5] = [
    (Protocol::Rtmp, By::OneLink),
    (Protocol::Rtmp, By::Proxies),
    (Protocol::Rtmp, By::Bond),
    (Protocol::Srt, By::OneLink),
    (Protocol::Srt, By::Bond),
];
/// How long an encoder may go on sending what waits at its end.
const DRAIN_MAX: Duration = Duration::from_secs(40);
/// What came by then is counted after the encoder's end.
const AFTER_END: Duration = Duration::from_millis(500);
/// To build a network and start the programs.
const SET_UP: Duration = Duration::from_secs(4);

/// The command's result.
#[derive(Debug, Serialize)]
struct Outcome {
    machine: Machine,
    lateness: LatenessSummary,
    streams: Vec<StreamRow>,
}

pub(crate) fn print_cases(output: &Output) -> Result<Verdict> {
    output.lines(cases::OWN.lines())?;
    #[derive(Serialize)]
    struct Text {
        text: &'static str,
    }
    output.record("cases", &Text { text: cases::OWN })?;
    let summary = Summary::new("live", &[], serde_json::json!({}));
    output.record("summary", &summary)?;
    Ok(Verdict::Good)
}

pub(crate) fn run(args: &LiveArgs, output: &Output) -> Result<Verdict> {
    let missing = missing();
    ensure!(
        missing.is_empty(),
        "this machine has no {}; scripts/setup --live installs what is missing",
        missing.join(", no ")
    );
    let cases = match &args.cases {
        Some(file) => {
            let text = fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            Cases::parse(&text).with_context(|| format!("{}", file.display()))?
        }
        None => Cases::parse(cases::OWN)?,
    };
    let (cases, runs) = if args.quick { (cases.shortened(), 1) } else { (cases, args.runs) };
    let streams: Vec<(&Case, Protocol, By)> = chosen(&cases, &args.only);
    ensure!(!streams.is_empty(), "no stream's name holds {}", args.only.join(" or "));
    let time = |case: &Case| SET_UP + cases.encoded(case);
    let total: Duration = streams.iter().map(|(case, ..)| time(case) * runs as u32).sum();
    let mut progress = Progress::new(streams.len() * runs as usize, total);
    let mut lateness = Lateness::default();
    let mut rows = Vec::new();
    for (case, protocol, by) in &streams {
        let name = name_of(case, *protocol, *by);
        let mut of_stream = Vec::new();
        for run in 1..=runs {
            let _step = progress.step(&format!("{name}, run {run}"), time(case));
            let row = stream(&cases, case, (*protocol, *by), run, &mut lateness);
            let row = row.with_context(|| format!("while streaming: {name}"))?;
            output.record("run", &row)?;
            of_stream.push(row);
        }
        rows.extend(StreamRow::of(&of_stream));
    }
    let mut told_of: Vec<&Case> = streams.iter().map(|(case, ..)| *case).collect();
    told_of.dedup();
    told(&told_of, rows, &lateness, output)
}

/// The streams whose name holds one of these; all without one.
fn chosen<'a>(cases: &'a Cases, only: &[String]) -> Vec<(&'a Case, Protocol, By)> {
    let all = cases
        .cases
        .iter()
        .flat_map(|case| STREAMS.into_iter().map(move |(protocol, by)| (case, protocol, by)));
    let is_chosen = |(case, protocol, by): &(&Case, Protocol, By)| {
        let name = name_of(case, *protocol, *by);
        only.is_empty() || only.iter().any(|part| name.contains(part.as_str()))
    };
    all.filter(is_chosen).collect()
}

fn name_of(case: &Case, protocol: Protocol, by: By) -> String {
    format!("{}, {}, {}", case.name, protocol.name(), by.name())
}

fn told(
    cases: &[&Case],
    rows: Vec<StreamRow>,
    lateness: &Lateness,
    output: &Output,
) -> Result<Verdict> {
    for case in cases {
        let links = case.specs().map(|link| link.describe()).join("; ");
        let kbit = case.kbit;
        output.line(format!("{}: {}; {kbit} kbit/s; {links}", case.name, case.title))?;
    }
    output.line("")?;
    output.lines(report::table(&rows).lines())?;
    let outcome =
        Outcome { machine: Machine::detect(), lateness: lateness.summary(), streams: rows };
    output.line(format!(
        "\nThe emulated links released packets late by {} (mean / 99th percentile / most).",
        outcome.lateness.describe()
    ))?;
    output.line(outcome.machine.sentence())?;
    output.records("stream", &outcome.streams)?;
    let figures = [Figure::count("streams", outcome.streams.len() as u64)];
    output.record("summary", &Summary::new("live", &figures, &outcome))?;
    Ok(Verdict::Good)
}

/// Streams a case once.
fn stream(
    cases: &Cases,
    case: &Case,
    (protocol, by): (Protocol, By),
    run: u64,
    lateness: &mut Lateness,
) -> Result<RunRow> {
    site::on(case, by, lateness, |Place { topology, encoder, server }| {
        let mut stage = Stage::start(&topology.server, server, protocol, cases)?;
        let mut encoding = stage.encode(encoder, server, case, cases)?;
        let limit = cases.encoded(case) + DRAIN_MAX;
        let ended = std::thread::scope(|scope| {
            let started = Instant::now();
            for event in &case.events {
                scope.spawn(move || happen(topology, event, started));
            }
            encoding.wait(limit)
        })?;
        std::thread::sleep(AFTER_END + Duration::from_millis(cases.srt_latency_ms));
        let (given, came) = (encoding.told(), stage.came()?);
        let counted = cases.counted(case);
        let fate = frames::fate(&given, &came, &counted);
        ensure!(fate.frames > 0, "the encoder gave no frame: {}", encoding.tail());
        Ok(RunRow {
            case: case.name.clone(),
            protocol: protocol.name(),
            by: by.name(),
            run,
            fate,
            reconnects: stage.taken().saturating_sub(1),
            ended,
        })
    })
}

/// Lets a link have its other rate, at its time.
fn happen(topology: &Topology, event: &Event, started: Instant) {
    let emulator = &topology.customer().links[event.link - 1].emulator;
    let sleep_until = |second: u64| {
        let at = started + Duration::from_secs(second);
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
    };
    sleep_until(event.at_s);
    if event.kbit == 0 {
        emulator.set_cut(true);
        sleep_until(event.at_s + event.for_s);
        return emulator.set_cut(false);
    }
    let rate = Rate::from_bits_per_second(event.kbit * 1000);
    let before = topology.customer().links[event.link - 1].spec.config().rate;
    emulator.reconfigure(|config| LinkConfig { rate, ..config });
    sleep_until(event.at_s + event.for_s);
    emulator.reconfigure(|config| LinkConfig { rate: before, ..config });
}

/// A short stream through a bond of which a link is cut arrives whole, by either protocol.
pub(crate) fn selftest(output: &Output) -> Result<()> {
    let cases = Cases::parse(cases::OWN)?.shortened();
    let case = cases.cases.iter().find(|case| case.name == "cut").context("a case of this name")?;
    let mut lateness = Lateness::default();
    for protocol in [Protocol::Rtmp, Protocol::Srt] {
        let row = stream(&cases, case, (protocol, By::Bond), 1, &mut lateness)?;
        output.line(format!("{row:?}"))?;
        let frames = cases.counted(case);
        ensure!(row.fate.frames == frames.end - frames.start, "frames of the encoder: {row:?}");
        ensure!(row.fate.never_came * 10 < row.fate.frames, "frames never came: {row:?}");
        let behind_s = row.fate.behind_median_s.context("something came")?;
        // A server's clock and an encoder's are one: nothing comes before it is sent.
        ensure!(behind_s > 0.01 && behind_s < 2.0, "behind: {row:?}");
        ensure!(row.reconnects == 0 && row.ended, "{row:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_chosen_by_parts_of_their_names() {
        let cases = Cases::parse(cases::OWN).unwrap();
        let chosen = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|part| (*part).to_owned()).collect();
            chosen(&cases, &only).len()
        };
        assert_eq!(chosen(&[]), 20);
        assert_eq!(chosen(&["cut"]), 5);
        assert_eq!(chosen(&["cut, RTMP", "full, SRT, bond"]), 4);
        assert_eq!(chosen(&["nothing"]), 0);
    }
}
