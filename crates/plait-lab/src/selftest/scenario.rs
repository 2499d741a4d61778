//! Scenarios on the namespaces, short ones: that they run, and that their records can be read.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::cli::{ExperimentArgs, On, RunArgs};
use crate::output::{Output, Verdict};
use crate::report;
use crate::run;
use crate::scratch::Scratch;

const HEAD: &str = "title = \"t\"\nsource = \"s\"\nbackends = [\"netns\"]\nduration_s = 3\n";

/// UDP over a bond, up and down, behind one bottleneck, and a call on a bare link.
const UDP: &str = r#"
server_rtt_ms = 4

[links.first]
rate_mbit = 30
rtt_ms = 10
through = "core"

[links.second]
rate_mbit = 30
rtt_ms = [20, 30]
loss = { p_good_bad = 0.001, p_bad_good = 0.5, good = 0, bad = 1 }

[links.core]
rate_mbit = 20
rtt_ms = 2
queue = "codel"

[bond]
links = ["first", "second"]

[bond.scheduler]
algorithm = "adaptive-wrr"
w_max = 30

[[app]]
name = "load"
kind = "udp"
rate = { mbit = 8, layer = "goodput" }

[[app]]
name = "back"
kind = "on-off"
direction = "up"
rate = { mbit = 2, layer = "wire" }

[[app]]
name = "call"
kind = "voip"
via = "core"
start_s = 0.5

[capture]
series = ["link_throughput", "goodput", "delay_ms", "weight", "rtt_ms", "losses", "waiting"]
"#;

/// Two TCP flows over a bare link.
const TCP: &str = r#"
[links.dsl]
rate_mbit = 20
rtt_ms = 20

[[app]]
name = "bulk"
kind = "tcp"
via = "dsl"
flows = 2
start_s = 0.2

[capture]
series = ["goodput", "cwnd", "queue_ms"]
"#;

/// A file without SACK, alone on its link.
const TRANSFER: &str = r#"
[links.dsl]
rate_mbit = 20
rtt_ms = 20

[[app]]
name = "file"
kind = "tcp"
via = "dsl"
flows = 2
start_s = 0.2
transfer_bytes = 1_000_000
sack = false
"#;

/// A file and steady loads through a steering node.
const STEER: &str = r#"
server_rtt_ms = 20

[links.lte]
rate_mbit = 16
rtt_ms = 40

[links.wifi]
rate_mbit = 30
rtt_ms = 6

[steer]
links = ["lte", "wifi"]
policy = "fixed"
shares = [50, 50]

[steer.dida]
hold = "optimum"

[[app]]
name = "file"
kind = "tcp"
transfer_bytes = 2_500_000

[[app]]
name = "load"
kind = "udp"
rate = { mbit = 1, layer = "goodput" }

[[app]]
name = "back"
kind = "udp"
direction = "up"
rate = { mbit = 0.5, layer = "goodput" }
"#;

/// UDP arrives at its rate, over a bond and beside it.
pub(super) fn udp(output: &Output) -> Result<()> {
    let Some(results) = run_scenario("netns-udp", UDP, output)? else { return Ok(()) };
    let run = &results.runs[0];
    let metric = |name: &str| run.metrics.get(name).copied().unwrap_or(f64::NAN);
    let load = metric("goodput_mbit.load");
    ensure!((7.6..=8.4).contains(&load), "8 Mbit/s of goodput, not {load}");
    let delay = metric("delay_p50_ms.load");
    // Half of 4 and of 10 and 2 or 20 to 30 ms.
    ensure!((7.0..=25.0).contains(&delay), "a delay of the links' and the wire's, not {delay} ms");
    ensure!(metric("mos.call") > 4.0, "a call of good quality: {}", metric("mos.call"));
    ensure!(metric("goodput_mbit.back") > 0.8, "data goes up too: {:?}", run.metrics);
    let shares = metric("bond_share_percent.core") + metric("bond_share_percent.first");
    ensure!(shares > 150.0 && shares < 200.0, "the bond's bytes are told apart: {shares}");
    for series in ["link_throughput.core", "weight.second", "rtt_ms.first", "waiting", "losses"] {
        let samples = run.series.get(series).map_or(0, Vec::len);
        ensure!(samples == 30, "{series} has a sample for each 100 ms, not {samples}");
    }
    Ok(())
}

/// TCP fills its link, and what cannot be known is absent.
pub(super) fn tcp(output: &Output) -> Result<()> {
    let Some(results) = run_scenario("netns-tcp", TCP, output)? else { return Ok(()) };
    let run = &results.runs[0];
    let goodput = run.metrics.get("goodput_mbit.bulk").copied().unwrap_or_default();
    ensure!((15.0..=19.5).contains(&goodput), "20 Mbit/s less headers, not {goodput}");
    let offered = run.metrics.get("offered_mbit.bulk").copied().unwrap_or_default();
    ensure!(offered >= goodput * 0.95, "what is offered is {offered}, what arrives {goodput}");
    ensure!(!run.metrics.contains_key("loss_percent"), "nobody knows which segments arrived");
    let window = run.series.get("cwnd.bulk").and_then(|series| series.last().copied().flatten());
    ensure!(window.is_some_and(|segments| segments >= 2.0), "a window, not {window:?}");
    Ok(())
}

/// A transfer of a given length tells its time, which is the link's and no less.
pub(super) fn transfer(output: &Output) -> Result<()> {
    let Some(results) = run_scenario("netns-transfer", TRANSFER, output)? else { return Ok(()) };
    let metrics = &results.runs[0].metrics;
    let metric = |name: &str| metrics.get(name).copied().unwrap_or(f64::NAN);
    // 2 MB at 20 Mbit/s less headers, and the time of a handshake and of slow start.
    ensure!((0.84..2.0).contains(&metric("transfer_s.file")), "a transfer's time: {metrics:?}");
    let (rate, time) = (metric("transfer_mbit.file"), metric("transfer_s.file"));
    ensure!((rate * time - 16.0).abs() < 0.01, "16 Mbit in all: {metrics:?}");
    Ok(())
}

/// A real steering node carries a file over both links, and UDP both ways; the client has nothing
/// but the node's recipe.
pub(super) fn steer(output: &Output) -> Result<()> {
    let Some(results) = run_scenario("netns-steer", STEER, output)? else { return Ok(()) };
    let metrics = &results.runs[0].metrics;
    let metric = |name: &str| metrics.get(name).copied().unwrap_or(f64::NAN);
    ensure!(metric("transfer_s.file") < 3.0, "the file arrived: {metrics:?}");
    for (load, mbit) in [("load", 1.0), ("back", 0.5)] {
        let goodput = metric(&format!("goodput_mbit.{load}"));
        ensure!((goodput - mbit).abs() < mbit / 10.0, "{load}: {goodput} of {mbit} Mbit/s");
    }
    let [lte, wifi] = ["lte", "wifi"].map(|link| metric(&format!("link_throughput_mbit.{link}")));
    // Half of the file's 20 Mbit over 3 s, and the loads.
    ensure!(lte > 2.8 && wifi > 2.8, "both links carry the file: {lte} and {wifi} Mbit/s");
    let told = ["held_acks", "discarded_acks", "released_acks", "masked_acks"].map(metric);
    ensure!(told.iter().all(|count| *count >= 0.0), "DIDA's counters are told: {metrics:?}");
    let acted = metric("held_acks") + metric("masked_acks");
    ensure!(acted > 0.0, "packets of one flow overtook each other: {metrics:?}");
    Ok(())
}

/// Runs a scenario as the command does, and reads what it wrote. `None` when the machine did not
/// keep up, as one whose host takes away half of its time does not: then the run must have refused
/// to give any figure.
fn run_scenario(name: &str, text: &str, output: &Output) -> Result<Option<crate::record::Results>> {
    let scratch = Scratch::on_disk(name)?;
    let (file, out) = (scratch.path().join("scenario.toml"), scratch.path().join("out.jsonl"));
    fs::write(&file, format!("name = \"self/{name}\"\n{HEAD}{text}"))?;
    let args = RunArgs {
        experiment: ExperimentArgs {
            out: Some(out.clone()),
            ..ExperimentArgs::of(&file.display().to_string())
        },
        ..RunArgs::of("", On::Netns)
    };
    match run::run(&args, output) {
        Err(error) if run::netns::is_too_slow(&error) => {
            let written = fs::read_to_string(&out).unwrap_or_default();
            ensure!(written.is_empty(), "figures of a machine that did not keep up: {written}");
            output.line(format!("{name}: no figures to check: {error}"))?;
            Ok(None)
        }
        verdict => {
            ensure!(verdict? == Verdict::Good, "no check of it can fail");
            read(&out).map(Some)
        }
    }
}

fn read(out: &Path) -> Result<crate::record::Results> {
    let mut results = report::read_file(out)?;
    ensure!(results.len() == 1, "one experiment was written, not {}", results.len());
    let results = results.remove(0);
    ensure!(results.summary.on == crate::record::NETNS, "it ran on {}", results.summary.on);
    ensure!(results.summary.command.contains("--on netns"), "{}", results.summary.command);
    Ok(results)
}
