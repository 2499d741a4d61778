//! `plait trace split`: a capture split into connections and their subflows.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use plait_trace::capture::{Capture, CaptureError};
use plait_trace::page;
use plait_trace::segment::Segment;
use plait_trace::split::Splitter;
use plait_trace::split::report::{CaptureReport, ConnectionReport, Ended, Report, SubflowReport};
use serde::Serialize;

use super::FilterArgs;
use super::sinks::cannot_write;
use crate::advice::Advised;
use crate::cli::Outcome;
use crate::cli::format::bytes;

const AFTER_HELP: &str = "\
Examples:
  tcpdump -i any -s 200 -w capture.pcap tcp     capture; the headers are enough
  plait trace split capture.pcap                bytes and throughput of each subflow
  plait trace split --port 5201 --html page.html capture.pcapng
  plait trace split --json - < capture.pcap     JSON Lines with the bytes over time

Bytes are payload, each counted once for its subflow; what was seen before is in `repeated`. The
data of an MPTCP connection counts each byte once, on whatever subflow it came. A capture on all
interfaces of a machine that forwards sees each packet twice: capture on one interface there.

Exit codes:
  0  all of it was read
  1  nothing in it is a TCP connection that was asked for
  2  an error, such as a capture that is cut off: what was read until then is printed";

/// Split a capture (pcap, pcapng) into connections and MPTCP subflows, with their bytes over time
///
/// Reads the file once, in bounded memory, and needs no rights but those to read it.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The capture; `-` is stdin
    capture: PathBuf,
    #[command(flatten)]
    filter: FilterArgs,
    /// Print JSON Lines: a `capture`, a `connection` for each, with its subflows, then a `summary`
    #[arg(long)]
    json: bool,
    /// Write a page with plots as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let name = args.capture.display();
    let from: Box<dyn io::Read + Send> = if args.capture.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let help = "give the path of a capture that this user may read";
        let file = File::open(&args.capture).map_err(|cause| {
            Advised::new(format!("{name} cannot be opened"), help).caused_by(cause)
        })?;
        Box::new(file)
    };
    let explain = |error: CaptureError| {
        let help = help(&error);
        Advised::new(format!("{name} is not read whole"), help).caused_by(error)
    };
    let mut splitter = Splitter::new(args.filter.filter());
    let ended = read(from, &mut splitter);
    if let Err(error @ (CaptureError::Empty | CaptureError::NoCapture)) = ended {
        return Err(explain(error).into());
    }
    let report = splitter.report();
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let words = sentences(&report.capture);
    match args.json {
        true => print_json(&report, &mut stdout)?,
        false => print_tables(&report, &words, &mut stdout)?,
    }
    stdout.flush()?;
    if let Some(path) = &args.html {
        let text = page::split(&words, &report);
        fs::write(path, text).map_err(|cause| cannot_write(path, cause))?;
    }
    ended.map_err(explain)?;
    Ok(if report.connections.is_empty() { Outcome::No } else { Outcome::Good })
}

fn help(error: &CaptureError) -> &'static str {
    match error {
        CaptureError::Empty | CaptureError::NoCapture => {
            "give a file of tcpdump or Wireshark, as in `tcpdump -w capture.pcap`"
        }
        CaptureError::CutOff { .. } => "let the capturing program end by Ctrl-C; its start counts",
        CaptureError::Damaged { .. } | CaptureError::TooLong { .. } | CaptureError::Read { .. } => {
            "what stands before that place counts; the rest has to be captured again"
        }
    }
}

fn read(from: impl io::Read + Send, splitter: &mut Splitter) -> Result<(), CaptureError> {
    let mut capture = Capture::open(from)?;
    while let Some(packet) = capture.next_packet()? {
        match Segment::parse(&packet) {
            Ok(segment) => splitter.segment(packet.at_ns, &segment),
            Err(why) => splitter.skip(packet.at_ns, why),
        }
    }
    Ok(())
}

/// What the capture held, for people.
fn sentences(capture: &CaptureReport) -> Vec<String> {
    let mut words = vec![format!("{} packets in {:.3} s", capture.packets, capture.seconds)];
    let others = [
        (capture.not_tcp, "not TCP"),
        (capture.fragments, "fragments"),
        (capture.unreadable, "unreadable"),
        (capture.filtered, "left out by the filter"),
    ];
    for (count, what) in others.into_iter().filter(|(count, _)| *count > 0) {
        words[0].push_str(&format!(", {count} {what}"));
    }
    if capture.beyond_segments > 0 {
        words.push(format!(
            "more connections than can be told apart: {} segments with {} are not listed; a filter \
             helps",
            capture.beyond_segments,
            bytes(capture.beyond_bytes)
        ));
    }
    words
}

fn print_tables(report: &Report, words: &[String], out: &mut impl Write) -> io::Result<()> {
    for sentence in words {
        writeln!(out, "{sentence}")?;
    }
    for (number, connection) in report.connections.iter().enumerate() {
        writeln!(out)?;
        print_connection(number + 1, connection, out)?;
    }
    Ok(())
}

fn print_connection(
    number: usize,
    connection: &ConnectionReport,
    out: &mut impl Write,
) -> io::Result<()> {
    let [data_out, data_back] = connection.data_bytes().map(bytes);
    match connection.mptcp {
        true => writeln!(
            out,
            "{number}: MPTCP, tokens {}, data {data_out} out, {data_back} back",
            connection.tokens()
        )?,
        false => writeln!(out, "{number}: TCP, data {data_out} out, {data_back} back")?,
    }
    let name = |subflow: &SubflowReport| format!("{} > {}", subflow.client, subflow.server);
    let wide = connection.subflows.iter().map(|subflow| name(subflow).len()).max();
    let wide = wide.unwrap_or_default();
    writeln!(
        out,
        "  {:wide$} way        bytes    Mbit/s  share  repeated segments     from s       to s",
        "subflow"
    )?;
    for subflow in &connection.subflows {
        for (way, figures) in [("out", &subflow.out), ("back", &subflow.back)] {
            let ended = match (way, subflow.ended) {
                ("out", Ended::Reset) => "  reset",
                ("out", Ended::Open) => "  open",
                _ => "",
            };
            writeln!(
                out,
                "  {:wide$} {way:4} {:>10} {:>9.2} {:>4.0} % {:>9} {:>8} {:>10.3} {:>10.3}{ended}",
                if way == "out" { name(subflow) } else { String::new() },
                bytes(figures.bytes),
                figures.mbps,
                figures.share * 100.0,
                bytes(figures.repeated_bytes),
                figures.segments,
                subflow.start_s,
                subflow.end_s,
            )?;
        }
    }
    Ok(())
}

/// A record of JSON Lines.
#[derive(Serialize)]
struct Record<'a, T> {
    r#type: &'static str,
    #[serde(flatten)]
    content: &'a T,
}

#[derive(Serialize)]
struct Sums {
    connections: usize,
    subflows: usize,
    out_bytes: u64,
    back_bytes: u64,
}

fn print_json(report: &Report, out: &mut impl Write) -> anyhow::Result<()> {
    let content = &report.capture;
    writeln!(out, "{}", serde_json::to_string(&Record { r#type: "capture", content })?)?;
    for content in &report.connections {
        writeln!(out, "{}", serde_json::to_string(&Record { r#type: "connection", content })?)?;
    }
    let sum = |way: usize| report.connections.iter().map(|one| one.data_bytes()[way]).sum();
    let content = &Sums {
        connections: report.connections.len(),
        subflows: report.connections.iter().map(|one| one.subflows.len()).sum(),
        out_bytes: sum(0),
        back_bytes: sum(1),
    };
    writeln!(out, "{}", serde_json::to_string(&Record { r#type: "summary", content })?)?;
    Ok(())
}
