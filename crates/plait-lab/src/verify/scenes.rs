//! scenes.4: compares the link model's limits on the simulator with the emulator and with the
//! kernel's own; and the promises about the lab itself.

pub(super) mod checks;
mod circles;
pub(super) mod rows;
pub(super) mod size;

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use plait_net::netns::NetNs;
use plait_sim::link::{Bucket, Room};
use plait_sim::scenario::Scenario;
use plait_sim::scenario::app::Traffic;
use plait_sim::scenario::rate::Shape;

use super::simulated::simulate;
use super::{Effort, Figure, back_ends};
use crate::compare::Rule;
use crate::list::Catalogue;
use crate::measure::{self, IperfServer, Span, Target};
use crate::output::{self, Progress};
use crate::process;
use crate::record::{Middle, Results, Samples};
use crate::set::of_checks;
use crate::topology::{PROVIDER_V4, VETH_LINKS, VethTopology};

pub(super) mod pictures;

/// Twelve links that together have every limit.
const LINKS: &str = "scenes/links";
const GOODPUT_SHARE: f64 = 0.05;
const DELAY_SHARE: f64 = 0.1;
/// A policer and a shaper; links and applications have the same names.
const BUCKETS: &str = "scenes/buckets";
const KERNEL_SHARE: f64 = 0.05;
const TC_LIMIT: Duration = Duration::from_secs(10);

pub(super) fn check_links(effort: Effort) -> Result<Vec<Figure>> {
    let settings: &[&str] = if effort.is_quick() { &["duration_s=6"] } else { &[] };
    let mut figures = back_ends::compared(LINKS, settings, effort, rule)?;
    figures.extend(check_kernel(effort)?);
    Ok(figures)
}

fn rule(metric: &str, _: &Results) -> Option<Rule> {
    match metric.split_once('.')?.0 {
        "goodput_mbit" => Some(Rule::Share(GOODPUT_SHARE)),
        "delay_p50_ms" | "delay_p95_ms" => Some(Rule::Share(DELAY_SHARE)),
        _ => None,
    }
}

/// Puts a bucket of the kernel in place; false where there is none.
type Attach = fn(&Scenario, &VethTopology) -> Result<bool>;

/// Compares the simulated goodput behind a bucket with that behind the kernel's, with the same
/// load.
fn check_kernel(effort: Effort) -> Result<Vec<Figure>> {
    let scenario = Catalogue::find(None)?.load(BUCKETS, &[])?.experiment.scenario;
    let simulated = simulate(BUCKETS, 1)?;
    let span = Span { seconds: effort.seconds().min(10), omit_seconds: 2 };
    let mut figures = of_checks(&simulated);
    let mut progress = Progress::new(2, span.total() * 2);
    for (name, attach) in [("shaper", shape as Attach), ("policer", police)] {
        let _step = progress.step(&format!("the kernel's {name}"), span.total());
        let topology = VethTopology::build()?;
        if !attach(&scenario, &topology)? {
            let text = "not compared: this machine's tc or kernel does not have it";
            figures.push(Figure::text(format!("{name} beside the kernel's"), text));
            continue;
        }
        let server = IpAddr::V4(PROVIDER_V4);
        let _serving = IperfServer::start(&topology.provider, server)?;
        let target = Target { client: &topology.customer, server, bind: None };
        let kernel =
            measure::udp(target, span, load_of(&scenario, name)?)?.throughput_bps as f64 / 1e6;
        let ours = Samples::of(&simulated, "base", &format!("goodput_mbit.{name}"))
            .context("the simulator gives every application's goodput")?
            .middle(Middle::Median);
        let words = format!("simulated {ours:.2} Mbit/s, the kernel's {kernel:.2} Mbit/s");
        figures.push(Figure::text(format!("{name} beside the kernel's"), words));
        let (low, high) = (1.0 - KERNEL_SHARE, 1.0 + KERNEL_SHARE);
        figures.push(
            Figure::number(format!("{name}: simulated over the kernel's"), ours / kernel, "ratio")
                .within(Some(low), Some(high), "within 5 % of each other"),
        );
    }
    Ok(figures)
}

/// The load that the scenario offers, in bits per second of payload.
fn load_of(scenario: &Scenario, name: &str) -> Result<u64> {
    let app = scenario.apps.iter().find(|app| app.name == name);
    match app.map(|app| &app.traffic) {
        Some(Traffic::Udp(udp)) => match udp.shape {
            Shape::Constant(bits) => Ok(bits.round() as u64),
            _ => bail!("{BUCKETS}: the load of {name} changes; give it a constant one"),
        },
        _ => bail!("{BUCKETS}: {name} is no UDP application; give it kind = \"udp\""),
    }
}

/// `tbf` where the provider sends to the customer.
fn shape(scenario: &Scenario, topology: &VethTopology) -> Result<bool> {
    let spec = &scenario.links["shaper"].down;
    let (Some(Bucket { rate, burst_bytes }), Room::Bytes(room)) = (spec.shaper, spec.queue.room)
    else {
        bail!("{BUCKETS}: the link shaper needs a shaper, and a queue in bytes");
    };
    let (bits, limit) = (rate.bits_per_second(), room + burst_bytes);
    let line = format!(
        "qdisc add dev {} root tbf rate {bits}bit burst {burst_bytes} limit {limit}",
        VETH_LINKS[0]
    );
    tc(&topology.provider, &[line])
}

/// `police` where the customer receives.
fn police(scenario: &Scenario, topology: &VethTopology) -> Result<bool> {
    let Some(Bucket { rate, burst_bytes }) = scenario.links["policer"].down.policer else {
        bail!("{BUCKETS}: the link policer needs a policer");
    };
    let (device, bits) = (VETH_LINKS[0], rate.bits_per_second());
    let filter = format!(
        "filter add dev {device} parent ffff: protocol all prio 1 u32 match u32 0 0 \
         action police rate {bits}bit burst {burst_bytes} conform-exceed drop"
    );
    tc(&topology.customer, &[format!("qdisc add dev {device} ingress"), filter])
}

/// Runs lines of `tc`; false when it refuses one, with its message on standard error.
fn tc(netns: &NetNs, lines: &[String]) -> Result<bool> {
    for line in lines {
        let finished =
            process::run_any(netns.command("tc").args(line.split_whitespace()), "", TC_LIMIT)?;
        if !finished.status.success() {
            output::note(format!("tc {line}: {}", finished.stderr.trim()));
            return Ok(false);
        }
    }
    Ok(true)
}
