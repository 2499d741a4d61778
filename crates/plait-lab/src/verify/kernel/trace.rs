//! kernel.5: what tracing costs a transfer, by each source that works here; and that a trace's
//! files keep their bound however much is written.

use std::fs;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::super::{Effort, Figure};
use crate::gateway::plait_program;
use crate::measure::{Transport, median};
use crate::output::Progress;
use crate::process::{Service, wait_until};
use crate::proxy::{ByteServer, Route};
use crate::scratch::Scratch;
use crate::topology::{PROVIDER_V4, VETH_LINKS, VethTopology};

const SOURCE: &str = "kernel.5";
const LIMIT: Duration = Duration::from_secs(10);
/// Both as `plait trace --source` has them.
const SOURCES: [&str; 2] = ["tcp-probe", "sock-diag"];
/// Room for the files of the second part, and how often it is written over at least.
const BOUND_MEGABYTES: u64 = 1;
const TIMES_MIN: f64 = 20.0;
/// For the progress.
const FILES_TIME: Duration = Duration::from_secs(40);
/// Connections that are traced in the second part.
const CONNECTIONS: usize = 20;

/// A trace's last line.
#[derive(Clone, Debug, Deserialize)]
struct Summary {
    samples: u64,
    samples_per_second: f64,
    core_percent: f64,
    lost: u64,
}

/// What a pair of runs, without and with the trace, gave.
#[derive(Clone, Debug, Default)]
struct Pairs {
    plain_bps: Vec<u64>,
    traced_bps: Vec<u64>,
    shares: Vec<f64>,
    last: Option<Summary>,
}

/// What is carried again and again, without and with the trace in turns.
#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    /// The rate of the sender's link, in the words of tc(8).
    limit: Option<&'static str>,
    bytes: u64,
    pairs: usize,
    /// About, with what it takes to begin and to end.
    run_time: Duration,
}

/// The transfer that an operator has, and one that leaves no processor idle. The rate of the latter
/// differs by a tenth from one connection to the next, so it takes many short ones.
fn loads(effort: Effort) -> [Load; 2] {
    let pairs = |quick, whole| if effort.is_quick() { quick } else { whole };
    [
        Load {
            name: "1 Gbit/s",
            limit: Some("1gbit"),
            bytes: 500_000_000,
            pairs: pairs(3, 7),
            run_time: Duration::from_millis(4800),
        },
        Load {
            name: "unlimited",
            limit: None,
            bytes: 5_000_000_000,
            pairs: pairs(11, 61),
            run_time: Duration::from_millis(1800),
        },
    ]
}

pub(in super::super) fn check(effort: Effort) -> Result<Vec<Figure>> {
    let sources = working()?;
    let loads = loads(effort);
    let runs = |load: &Load| 2 * load.pairs * sources.len();
    let run_times = loads.iter().map(|load| load.run_time * runs(load) as u32);
    let time = run_times.sum::<Duration>() + FILES_TIME;
    let mut progress = Progress::new(loads.iter().map(runs).sum::<usize>() + 1, time);
    let mut figures = Vec::new();
    for load in &loads {
        for (source, pairs) in sources.iter().zip(measure(load, &sources, &mut progress)?) {
            figures.extend(costs(&format!("{source}, {}", load.name), pairs)?);
        }
    }
    if !sources.contains(&SOURCES[0]) {
        figures.push(Figure::text("tcp-probe", "does not work here"));
    }
    let _step = progress.step("files", FILES_TIME);
    figures.extend(files()?);
    Ok(figures)
}

/// The pairs of each source.
fn measure(load: &Load, sources: &[&str], progress: &mut Progress) -> Result<Vec<Pairs>> {
    let mut all = vec![Pairs::default(); sources.len()];
    for round in 0..load.pairs {
        for (source, pairs) in sources.iter().zip(&mut all) {
            let mut run = |is_traced: bool| -> Result<u64> {
                let name = if is_traced { *source } else { "no trace" };
                let _step = progress.step(&format!("{}, {name}", load.name), load.run_time);
                carry(is_traced.then_some(*source), load, pairs)
            };
            // Whichever comes first is not always the same.
            let (plain, traced) = if round % 2 == 0 {
                let plain = run(false)?;
                (plain, run(true)?)
            } else {
                let traced = run(true)?;
                (run(false)?, traced)
            };
            pairs.plain_bps.push(plain);
            pairs.traced_bps.push(traced);
            pairs.shares.push(traced as f64 / plain as f64);
        }
    }
    Ok(all)
}

/// The sources that work here; one does everywhere.
fn working() -> Result<Vec<&'static str>> {
    let topology = VethTopology::build()?;
    let plait = plait_program()?;
    let mut working = Vec::new();
    for source in SOURCES {
        let mut command = topology.provider.command(&plait);
        command.args(["trace", "--json", "--seconds", "0.1", "--source", source]);
        let done = crate::process::run_any(&mut command, "", LIMIT)?;
        if done.status.success() {
            working.push(source);
        } else if source == "sock-diag" {
            bail!("plait trace does not work: {}", done.stderr.trim());
        }
    }
    Ok(working)
}

/// Carries a load once, traced at the sender or not; the rate.
fn carry(source: Option<&str>, load: &Load, pairs: &mut Pairs) -> Result<u64> {
    let topology = VethTopology::build()?;
    if let Some(rate) = load.limit {
        let mut tc = topology.provider.command("tc");
        tc.args(["qdisc", "add", "dev", VETH_LINKS[0], "root", "tbf", "rate", rate]);
        crate::process::run(tc.args(["burst", "1mb", "latency", "50ms"]), "", LIMIT)?;
    }
    let scratch = Scratch::in_memory("trace")?;
    let server = ByteServer::start(&topology.provider, PROVIDER_V4.into(), Transport::Tcp)?;
    let fetch = || -> Result<u64> {
        let customer = &topology.customer;
        let came =
            Route::Direct.fetch_unchecked(customer, Transport::Tcp, server.address, load.bytes)?;
        Ok(came.rate_bps())
    };
    let Some(source) = source else { return fetch() };
    let trace = Trace::start(&topology, scratch.path(), &["--source", source])?;
    let rate = fetch()?;
    pairs.last = Some(trace.end()?);
    Ok(rate)
}

fn costs(source: &str, pairs: Pairs) -> Result<Vec<Figure>> {
    let mut shares = pairs.shares.clone();
    shares.sort_by(f64::total_cmp);
    let last = pairs.last.context("invariant: there was a traced run")?;
    let lost = |quarter: usize| (1.0 - shares[shares.len() * quarter / 4]) * 100.0;
    Ok(vec![
        Figure::mbit(format!("{source}: throughput without it"), median(pairs.plain_bps)),
        Figure::mbit(format!("{source}: throughput with it"), median(pairs.traced_bps)),
        Figure::number(format!("{source}: throughput lost, median of pairs"), lost(2), "%")
            .at_most(5.0, SOURCE),
        Figure::text(
            format!("{source}: throughput lost, quartiles of pairs"),
            format!("{:.1} to {:.1} %", lost(3), lost(1)),
        ),
        Figure::number(format!("{source}: samples"), last.samples_per_second, "per second"),
        Figure::number(format!("{source}: of a core"), last.core_percent, "%"),
        Figure::count(format!("{source}: samples lost"), last.lost),
    ])
}

/// `plait trace` into files of a folder.
struct Trace<'a> {
    service: Service,
    folder: &'a Path,
}

impl<'a> Trace<'a> {
    fn start(topology: &VethTopology, folder: &'a Path, more: &[&str]) -> Result<Self> {
        let mut command = topology.provider.command(plait_program()?);
        command.args(["trace", "--output"]).arg(folder.join("trace.jsonl")).args(more);
        let service = Service::start(&mut command, &folder.join("log"))?;
        wait_until("the first line of plait trace", LIMIT, || {
            Ok(fs::metadata(folder.join("log")).ok().filter(|log| log.len() > 0))
        })?;
        Ok(Self { service, folder })
    }

    /// Ends it; its summary is the last line of its newest file.
    fn end(mut self) -> Result<Summary> {
        let status = self.service.stop(LIMIT)?.context("plait trace does not end")?;
        let log = fs::read_to_string(self.folder.join("log"))?;
        if !status.success() {
            bail!("plait trace failed: {}", log.trim());
        }
        let text = fs::read_to_string(self.folder.join("trace.jsonl"))?;
        let last = text.lines().last().context("a trace has a last line")?;
        serde_json::from_str(last).with_context(|| format!("the last line is {last}"))
    }
}

/// Traces many connections as often as can be, until the bound was written over many times.
fn files() -> Result<Vec<Figure>> {
    let topology = VethTopology::build()?;
    let scratch = Scratch::in_memory("trace-files")?;
    let server = ByteServer::start(&topology.provider, PROVIDER_V4.into(), Transport::Tcp)?;
    let bound = BOUND_MEGABYTES.to_string();
    let options = ["--every", "0", "--megabytes", &bound];
    let trace = Trace::start(&topology, scratch.path(), &options)?;
    let mut most = 0;
    let begun = Instant::now();
    thread::scope(|scope| -> Result<()> {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| trickle(&topology, server.address, begun));
        }
        while begun.elapsed() < WRITING {
            thread::sleep(Duration::from_millis(20));
            most = most.max(size(scratch.path())?);
        }
        Ok(())
    })?;
    let summary = trace.end()?;
    most = most.max(size(scratch.path())?);
    let line_bytes = mean_line(scratch.path())?;
    let room = BOUND_MEGABYTES as f64 * 1e6;
    let times = summary.samples as f64 * line_bytes / room;
    Ok(vec![
        Figure::number("files: written, of their bound", times, "times")
            .at_least(TIMES_MIN, SOURCE),
        Figure::number("files: most room of all together", most as f64, "bytes")
            .at_most(room, SOURCE),
    ])
}

const WRITING: Duration = Duration::from_secs(30);

/// Takes bytes slowly, so that the connection lives for the whole time and always has news.
fn trickle(topology: &VethTopology, server: SocketAddr, begun: Instant) {
    let stream = Route::Direct.open(&topology.customer, Transport::Tcp, server);
    let Ok(mut stream) = stream else { return };
    let asked = std::io::Write::write_all(&mut stream, b"GET /1000000000000 HTTP/1.1\r\n\r\n");
    let mut buffer = vec![0; 16 << 10];
    while asked.is_ok() && begun.elapsed() < WRITING {
        if stream.read(&mut buffer).is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Bytes of a trace's files.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("trace.jsonl") {
            // A file may become another one's name meanwhile.
            sum += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    Ok(sum)
}

fn mean_line(folder: &Path) -> Result<f64> {
    let text = fs::read_to_string(folder.join("trace.jsonl.1"))?;
    let lines = text.lines().count().max(1);
    Ok(text.len() as f64 / lines as f64)
}
